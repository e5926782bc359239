//! A policy outside the library: any type that implements `Planner` can decide the direction of each level.
//!
//! ```text
//! cargo run --release --example own_policy
//! ```

use std::error::Error;

use socbfs::{
    BuildOptions, CpuEngine, Direction, Generator, Layout, LevelPlan, LevelStats, Placement, Planner, Records, Simd, Team, level_loop,
};

/// Switches to bottom-up once: at the first level whose frontier has more than a given share of the graph's arcs.
pub struct Once {
    /// Share of the graph's arcs.
    pub share: f64,
    is_bottom_up: bool,
}

impl Planner for Once {
    fn begin(&mut self) {
        self.is_bottom_up = false;
    }

    fn wants_sample(&self, _: &LevelStats) -> bool {
        false
    }

    fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        self.is_bottom_up |= stats.frontier_edges as f64 > self.share * stats.arcs as f64;
        let direction = if self.is_bottom_up { Direction::BottomUp } else { Direction::TopDown };
        LevelPlan { direction, placement: Placement::Cpu }
    }
}

/// Searches a Kronecker graph from vertex 5. Returns the directions of its levels and the tree, in original vertex numbers.
pub fn search(share: f64) -> Result<(Vec<Direction>, Vec<u32>), Box<dyn Error>> {
    let edges = Generator::graph500(12).generate(&|_| ())?;
    // An engine alone can only begin at vertices that its levels search, so leaves are kept among them.
    let layout = Layout::build(&edges, &BuildOptions { keep_leaves: true, ..BuildOptions::default() })?;
    let mut engine = CpuEngine::new(&layout, Team::new(2, &[])?, Simd::detect())?;
    let mut records = Records::with_capacity(64);
    // The engine uses the layout's own vertex numbers.
    level_loop(&mut engine, &mut Once { share, is_bottom_up: false }, layout.to_internal(5), &mut records)?;
    engine.map_back();
    Ok((records.get().iter().map(|record| record.plan.direction).collect(), engine.parents().to_vec()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (directions, parents) = search(0.05)?;
    println!("{directions:?}; {} vertices", parents.iter().filter(|&&parent| parent != socbfs::graph::NONE).count());
    Ok(())
}
