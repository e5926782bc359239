//! Searches a graph again and again, on one thread, with nothing else in the program: for `perf record`, `valgrind --tool=callgrind` or an
//! emulator. The difference between two runs is the cost of searches alone.
//!
//! ```text
//! cargo run --release --example repeat_search -- GRAPH SEARCHES [avx512|avx2|neon|scalar]
//! ```

use std::{env, error::Error, path::Path};

use socbfs::{BuildOptions, Layout, Search, SearchOptions, Simd};
use socbfs_io::{ReadOptions, read};

/// Searches the graph in the file `path` from `searches` vertices that have edges, spread evenly. Returns the edges that were searched.
pub fn repeat_search(path: &Path, searches: u32, simd: Option<Simd>) -> Result<u64, Box<dyn Error>> {
    let layout = Layout::build(&read(path, &ReadOptions::default())?, &BuildOptions::default())?;
    let mut search = Search::new(&layout, &SearchOptions { threads: 1, simd, ..SearchOptions::default() })?;
    let vertices = layout.vertices() as u32;
    let mut edges = 0;
    for index in 0..searches {
        // Multiples of the golden ratio: the same roots in every run, however many searches.
        let start = ((u64::from(index.wrapping_mul(0x9e37_79b9)) * u64::from(vertices)) >> 32) as u32;
        let root = (start..vertices).chain(0..start).find(|&root| layout.input_degree(root) > 0).ok_or("the graph has no edges")?;
        edges += search.run(root)?.edges;
    }
    Ok(edges)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [path, searches, simd @ ..] = &arguments[..] else { return Err("usage: repeat_search GRAPH SEARCHES [SIMD]".into()) };
    let simd = simd.first().map(|name| name.parse()).transpose()?;
    println!("{} edges", repeat_search(Path::new(path), searches.parse()?, simd)?);
    Ok(())
}
