//! Reads a graph from a file, searches it from one vertex, and validates the tree.
//!
//! ```text
//! cargo run --release --example search_file -- GRAPH ROOT
//! ```

use std::{env, error::Error, path::Path};

use socbfs::{BuildOptions, Layout, Outcome, Search, SearchOptions};
use socbfs_io::{ReadOptions, read, validate};

/// Searches the graph in the file `path` from the vertex `root`.
pub fn search_file(path: &Path, root: u32) -> Result<Outcome, Box<dyn Error>> {
    // The format is recognised by its content: edge lists, MatrixMarket, DIMACS, METIS and others.
    let edges = read(path, &ReadOptions::default())?;
    let layout = Layout::build(&edges, &BuildOptions::default())?;
    let mut search = Search::new(&layout, &SearchOptions::default())?;
    let outcome = search.run(root)?;
    // Graph500's five checks, against the edges as they were read.
    validate(&edges, layout.directed(), root, search.parents())?;
    Ok(outcome)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [path, root] = &arguments[..] else { return Err("usage: search_file GRAPH ROOT".into()) };
    let outcome = search_file(Path::new(path), root.parse()?)?;
    println!("{} vertices on {} levels in {:?}", outcome.reached, outcome.levels, outcome.elapsed);
    Ok(())
}
