//! The nearest of many depots: places depots on a graph, finds for every vertex the nearest one and its distance by one search, and prints
//! how many vertices each depot serves.
//!
//! ```text
//! cargo run --release --example nearest -- GRAPH [DEPOTS]
//! ```

use std::{collections::HashMap, env, error::Error, path::Path, time::Instant};

use socbfs::{BuildOptions, Layout, Output, Run, Search, SearchOptions, graph::NONE};
use socbfs_algo::Components;
use socbfs_io::{ReadOptions, read};

/// What depots serve.
#[derive(Debug)]
pub struct Served {
    /// Vertices for which each depot is the nearest, itself included: of several that are equally near, one is chosen.
    pub by: HashMap<u32, u32>,
    /// Connected components, and how many of them have a depot.
    pub components: (usize, usize),
    /// The largest distance.
    pub farthest: u32,
}

/// Searches the graph in the file `path` from `depots` vertices, spread evenly.
pub fn nearest(path: &Path, depots: u32) -> Result<Served, Box<dyn Error>> {
    let layout = Layout::build(&read(path, &ReadOptions::default())?, &BuildOptions::default())?;
    let mut search = Search::new(&layout, &SearchOptions::default())?;
    let vertices = layout.vertices();
    let depots: Vec<u32> = (0..depots).map(|i| (u64::from(i) * vertices as u64 / u64::from(depots)) as u32).collect();

    // Which components can be served at all. A graph is prepared once, and answers as many questions as are asked.
    let mut component = vec![0; vertices];
    let components = Components::default().find(&search, &mut component)?;
    let mut has_depot = vec![false; components];
    depots.iter().for_each(|&depot| has_depot[component[depot as usize] as usize] = true);

    let (mut distances, mut nearest) = (vec![0; vertices], vec![0; vertices]);
    let begin = Instant::now();
    let output = Output { levels: Some(&mut distances), sources: Some(&mut nearest), ..Output::default() };
    search.run(Run { output: Some(output), ..(&depots).into() })?;
    eprintln!("{} depots in {:?}", depots.len(), begin.elapsed());

    let mut by = HashMap::new();
    nearest.iter().filter(|&&depot| depot != NONE).for_each(|&depot| *by.entry(depot).or_insert(0) += 1);
    let farthest = distances.into_iter().filter(|&distance| distance != NONE).max().unwrap_or(0);
    Ok(Served { by, components: (components, has_depot.into_iter().filter(|&has| has).count()), farthest })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [path, depots @ ..] = &arguments[..] else { return Err("usage: nearest GRAPH [DEPOTS]".into()) };
    let served = nearest(Path::new(path), depots.first().map_or(Ok(1000), |depots| depots.parse())?)?;
    let (all, reached) = served.components;
    println!("{reached} of {all} components have a depot; the farthest vertex is {} steps from its depot", served.farthest);
    let mut busiest: Vec<_> = served.by.into_iter().collect();
    busiest.sort_by_key(|&(depot, vertices)| (std::cmp::Reverse(vertices), depot));
    for (depot, vertices) in busiest.iter().take(10) {
        println!("depot {depot} serves {vertices} vertices");
    }
    Ok(())
}
