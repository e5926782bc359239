//! Direction-optimising breadth-first search for chips whose CPU and GPU share memory.
//!
//! One graph in, one BFS tree out, and an account of the time and the energy that each level took. A search runs on the CPU alone, or on
//! the CPU and a GPU through OpenCL; at every level a planner chooses the direction (top-down or bottom-up) and where the level runs.
//!
//! ```
//! use socbfs::{BuildOptions, Layout, Search, SearchOptions};
//! use socbfs_io::Generator;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let edges = Generator::graph500(10).generate(&|_| ())?; // or socbfs_io::read(path, &ReadOptions::default())
//! let layout = Layout::build(&edges, &BuildOptions::default())?;
//! let mut search = Search::new(&layout, &SearchOptions::default())?;
//! let outcome = search.run(5)?;
//! println!("{} vertices on {} levels in {:?}", outcome.reached, outcome.levels, outcome.elapsed);
//! assert_eq!(search.parents()[5], 5); // the root is its own parent
//! # Ok(())
//! # }
//! ```
//!
//! # Beside it
//!
//! - `socbfs-policy`: the policies of published systems, cost models, networks, a language for rules of one's own.
//! - `socbfs-boards`: its `Runtime` prepares a search for this machine: the profile of the board, the calibration, the OpenCL device, and
//!   the thresholds between CPU and GPU.
//! - `socbfs-io`: graph files, generators, validation.
//! - `socbfs-algo`: many roots in one pass, connected components, grids of free cells.
//! - `socbfs-power`: power sensors, and the energy of a window of time.
//!
//! The programs in `examples/` read a file, choose a device, measure the energy of a search, and define a policy.

// What most programs need is exported below.
pub mod bfs;
mod cpu;
mod engine;
pub mod files;
mod gpu;
pub mod graph;
mod hybrid;
pub mod kernels;
pub mod memory;
pub mod opencl;
pub mod part;
pub mod search;
pub mod stats;
pub mod threads;
pub mod words;

pub use graph::{
    BuildOptions, EdgeList, GraphError, GraphInfo, Layout, LayoutStats, Listing, MAX_VERTICES, NONE, Order, StepRecord, Stopper, Vertex,
    info,
};

pub use bfs::{
    AnyPlanner, Direction, GpuKernel, LevelPlan, LevelRecord, LevelStats, Placement, Planner, Records, SampledCosts, Strategy, Uses,
    level_loop,
};
pub use search::{End, Outcome, Output, OwnedSearch, Run, Search, SearchError, SearchOptions, Sources};

pub use cpu::{CpuEngineError, ParallelThresholds, Simd, SimdError};
pub use gpu::{DeviceUse, GpuEngineError, GpuOptions, GpuSetup, GraphMemory};
pub use hybrid::EngineError;
pub use memory::{OutOfMemory, SharingMode};
pub use opencl::{Device, DeviceChoice, DeviceError, DeviceInfo, DeviceKind, Limits, OpenClError, choose, devices};
pub use threads::Team;

/// Compiles and runs the README's example as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles and runs the example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../docs/crate.md")]
struct CratePage;
