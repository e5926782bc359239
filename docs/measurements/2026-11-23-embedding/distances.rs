//! What a search costs that writes parents, distances or both, beside levels read off the parents, and 64 roots in one pass: copy this file
//! into `examples/`, then `cargo run --release --example distances kronecker20.sg`.
use std::{path::Path, time::Instant};

use socbfs::{
    ManySearch, Output, Until,
    graph::{BuildOptions, Layout},
    search::{Search, SearchOptions},
};

fn main() {
    let file = std::env::args().nth(1).unwrap();
    let list = socbfs::read(Path::new(&file), &Default::default()).unwrap();
    let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
    let vertices = layout.vertices();
    let (mut state, mut roots) = (7_u64, Vec::new());
    while roots.len() < 64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let root = ((state >> 33) % vertices as u64) as u32;
        if layout.input_degrees()[root as usize] > 0 {
            roots.push(root);
        }
    }
    let mut search = Search::new(&layout, &SearchOptions { threads: 2, ..SearchOptions::default() }).unwrap();
    let mut many = ManySearch::new(&layout, 2, &[]).unwrap();
    let (mut parents, mut levels, mut bytes) = (vec![0; vertices], vec![0; vertices], vec![0_u8; vertices * 64]);
    println!("what,turn,ms");
    for turn in 0..7 {
        let told = |what: &str, times: usize, work: &mut dyn FnMut(u32)| {
            let begin = Instant::now();
            roots[..times].iter().for_each(|&root| work(root));
            println!("{what},{turn},{:.4}", begin.elapsed().as_secs_f64() * 1e3 / times as f64);
        };
        told("run", 16, &mut |root| {
            search.run_uncounted(root).unwrap();
        });
        told("run and levels_into", 16, &mut |root| {
            search.run_uncounted(root).unwrap();
            search.levels_into(&mut levels);
        });
        let mut into = |root, with_parents: bool, with_levels: bool| {
            let output = Output { parents: with_parents.then_some(&mut parents[..]), levels: with_levels.then_some(&mut levels[..]) };
            search.run_into(root, Until::default(), output).unwrap();
        };
        told("parents into an array", 16, &mut |root| into(root, true, false));
        told("distances into an array", 16, &mut |root| into(root, false, true));
        told("both into arrays", 16, &mut |root| into(root, true, true));
        told("64 roots in one pass as bytes", 1, &mut |_| {
            many.levels_into(&roots, &mut bytes).unwrap();
        });
    }
}
