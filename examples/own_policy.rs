//! A policy outside the library: any type that implements `Planner` decides the direction of each level, and where it runs.
//!
//! ```text
//! cargo run --release --example own_policy
//! ```

use std::error::Error;

use socbfs::{BuildOptions, Direction, Layout, LevelPlan, LevelStats, Planner, Search, SearchOptions, Strategy, Uses};
use socbfs_boards::Runtime;
use socbfs_io::Generator;
use socbfs_policy::Policy;

/// Switches to bottom-up once: at the first level whose frontier has more than a given share of the graph's arcs.
#[derive(Clone)]
pub struct Once {
    /// Share of the graph's arcs.
    pub share: f64,
    /// What runs bottom-up levels.
    pub bottom_up: Strategy,
    is_bottom_up: bool,
}

impl Once {
    /// The planner, before its first search.
    pub fn new(share: f64, bottom_up: Strategy) -> Self {
        Self { share, bottom_up, is_bottom_up: false }
    }
}

impl Planner for Once {
    fn begin(&mut self) {
        self.is_bottom_up = false;
    }

    fn uses(&self) -> Uses {
        if self.bottom_up.is_gpu() { Uses::EITHER } else { Uses::CPU }
    }

    fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        self.is_bottom_up |= stats.frontier_edges as f64 > self.share * stats.arcs as f64;
        if self.is_bottom_up { self.bottom_up.plan() } else { Strategy::Tc.plan() }
    }
}

/// Searches a Kronecker graph from vertex 5. Returns the directions of its levels and the tree, in original vertex numbers.
pub fn search(share: f64) -> Result<(Vec<Direction>, Vec<u32>), Box<dyn Error>> {
    let edges = Generator::graph500(12).generate(&|_| ())?;
    let layout = Layout::build(&edges, &BuildOptions::default())?;
    let mut search = Search::with_planner(&layout, &SearchOptions::default(), Once::new(share, Strategy::Bc))?;
    search.run(5)?;
    Ok((search.records().iter().map(|record| record.plan.direction).collect(), search.parents().to_vec()))
}

/// The same with bottom-up levels on the GPU, which a [`Runtime`] chooses and prepares. The error says if there is none.
pub fn search_on_gpu(share: f64) -> Result<u64, Box<dyn Error>> {
    let edges = Generator::graph500(12).generate(&|_| ())?;
    let layout = Layout::build(&edges, &BuildOptions::default())?;
    let mut runtime = Runtime::detect()?;
    runtime.policy.value = Policy::planner(Once::new(share, Strategy::Bg));
    Ok(runtime.search(&layout)?.run(5)?.reached)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (directions, parents) = search(0.05)?;
    println!("{directions:?}; {} vertices", parents.iter().filter(|&&parent| parent != socbfs::NONE).count());
    match search_on_gpu(0.05) {
        Ok(reached) => println!("with bottom-up levels on the GPU: {reached} vertices"),
        Err(error) => println!("without a GPU: {error}"),
    }
    Ok(())
}
