//! Direction-optimising breadth-first search for chips whose CPU and GPU share memory.
//!
//! One graph in, one BFS tree out, and an account of the time and the energy that each level took. A search runs on the CPU alone, or on
//! the CPU and a GPU through OpenCL; at every level a policy chooses the direction (top-down or bottom-up) and where the level runs.
//!
//! # On the CPU
//!
//! ```
//! use socbfs::{BuildOptions, Layout, Search, SearchOptions, input::generate::Generator};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let edges = Generator::graph500(10).generate(&|_| ())?; // or socbfs::read(path, &ReadOptions::default())
//! let layout = Layout::build(&edges, &BuildOptions::default())?;
//! let mut search = Search::new(&layout, &SearchOptions::default())?;
//! let outcome = search.run(5)?;
//! println!("{} vertices on {} levels in {:?}", outcome.reached, outcome.levels, outcome.elapsed);
//! assert_eq!(search.parents()[5], 5); // the root is its own parent
//! # Ok(())
//! # }
//! ```
//!
//! # On the CPU and the GPU
//!
//! [`Runtime`] prepares a search for this machine: the profile of the board, the calibration, the OpenCL device, and the thresholds
//! between CPU and GPU. Without a device the CPU searches alone, and that is not an error.
//!
//! ```
//! use socbfs::{BuildOptions, DeviceChoice, Layout, Runtime, input::generate::Generator, runtime::{Given, Profile, Setting}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let edges = Generator::graph500(10).generate(&|_| ())?;
//! let layout = Layout::build(&edges, &BuildOptions::default())?;
//! let device = Some(Setting::flag(DeviceChoice::Auto)); // the largest GPU, if there is one
//! let runtime = Runtime::new(Profile::detected()?, Given { device, ..Given::default() })?;
//! let mut prepared = runtime.search(&layout)?;
//! let outcome = prepared.run(5)?;
//! let devices: Vec<&str> = prepared.devices.iter().map(|device| device.used.name.as_str()).collect();
//! println!("{} vertices, policy {}, beside the CPU: {devices:?}", outcome.reached, prepared.choice.policy);
//! # Ok(())
//! # }
//! ```
//!
//! The programs in `examples/` read a file, choose a device, measure the energy of a search, and define a policy.
//!
//! # Features
//!
//! - `compression` (default): graph files compressed with gzip, xz and zstd are read.
//! - `nvml`: discrete GPUs of NVIDIA as power sensors.

pub mod bfs;
pub mod board;
pub mod engine;
pub mod files;
pub mod graph;
pub mod input;
pub mod machine;
pub mod many;
pub mod measure;
pub mod memory;
// Public for the tests and the benchmarks of this repository; the items that a program needs are re-exported below.
#[doc(hidden)]
pub mod opencl;
pub mod policy;
pub mod runtime;
pub mod search;
pub mod stats;
pub mod validate;
pub mod words;

pub use graph::{BuildOptions, Layout};
pub use input::{ReadOptions, read};
pub use many::ManySearch;
#[doc(inline)]
pub use opencl::{Device, DeviceChoice, DeviceError, DeviceInfo, DeviceKind, Limits, OpenClError, choose, devices};
pub use policy::Policy;
pub use runtime::Runtime;
pub use search::{Outcome, Output, Search, SearchOptions, Until};
/// Power sensors, and the energy of a window of time.
pub use socbfs_power as power;

/// Compiles and runs the README's example as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles and runs the example of the page that registries show.
#[cfg(doctest)]
#[doc = include_str!("../docs/crate.md")]
struct CratePage;
