//! 64 roots in one pass beside 64 searches: copy this file into `examples/`, then
//! `cargo run --release --example many kronecker20.sg THREADS TURNS`. With `ONLY=N` in the environment the pass alone, N times.
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
    let threads: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let turns: usize = std::env::args().nth(3).unwrap().parse().unwrap();
    let mut search = Search::new(&layout, &SearchOptions { threads, ..SearchOptions::default() }).unwrap();
    let mut many = ManySearch::new(&layout, threads, &[]).unwrap();
    let (mut parents, mut levels, mut bytes) = (vec![0; vertices], vec![0; vertices], vec![0_u8; vertices * 64]);
    if let Some(times) = std::env::var("ONLY").ok().and_then(|t| t.parse::<usize>().ok()) {
        let mut ms = Vec::new();
        for _ in 0..times {
            let b = Instant::now();
            many.levels_into(&roots, &mut bytes).unwrap();
            ms.push(b.elapsed().as_secs_f64() * 1e3);
        }
        ms.sort_by(f64::total_cmp);
        println!("median {:.2} least {:.2}", ms[times / 2], ms[0]);
        return;
    }
    let mut all: Vec<(&str, Vec<f64>)> = Vec::new();
    for turn in 0..turns {
        let mut told = |what: &'static str, work: &mut dyn FnMut()| {
            let begin = Instant::now();
            work();
            let ms = begin.elapsed().as_secs_f64() * 1e3;
            if turn == 0 {
                all.push((what, vec![]))
            }
            all.iter_mut().find(|one| one.0 == what).unwrap().1.push(ms);
        };
        told("64 run", &mut || {
            for &root in &roots {
                search.run_uncounted(root).unwrap();
            }
        });
        told("64 parents into", &mut || {
            for &root in &roots {
                search.run_into(&[root], Until::default(), Output { parents: Some(&mut parents), levels: None, sources: None }).unwrap();
            }
        });
        told("64 distances into", &mut || {
            for &root in &roots {
                search.run_into(&[root], Until::default(), Output { parents: None, levels: Some(&mut levels), sources: None }).unwrap();
            }
        });
        told("many bytes", &mut || {
            many.levels_into(&roots, &mut bytes).unwrap();
        });
        if std::env::var_os("FULL").is_some() {
            let mut wide = vec![0_u32; vertices * 64];
            let mut par = vec![0_u32; vertices * 64];
            many.trees_into(&roots, &mut wide, &mut par).unwrap();
            told("many u32", &mut || {
                many.levels_into(&roots, &mut wide).unwrap();
            });
            told("many u8+parents", &mut || {
                many.trees_into(&roots, &mut bytes, &mut par).unwrap();
            });
        }
        told("many visitor nothing", &mut || {
            many.run(&roots, &|_, _, _| ()).unwrap();
        });
    }
    for (what, times) in &mut all {
        times.sort_by(f64::total_cmp);
        println!("{what:24} median {:8.2} least {:8.2}", times[times.len() / 2], times[0]);
    }
    // a checksum of what is written
    many.levels_into(&roots, &mut bytes).unwrap();
    let sum = bytes.iter().fold(1_u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    println!("sum {sum:x}");
}
