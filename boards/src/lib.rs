//! Prepares searches of [`socbfs`] for this machine. [`Runtime`] finds the profile of the board, the calibration and the OpenCL device, and
//! chooses the policy with its thresholds between CPU and GPU. Without a device the CPU searches alone, and that is not an error.
//!
//! ```
//! use socbfs::{BuildOptions, DeviceChoice, Layout};
//! use socbfs_boards::{Runtime, Setting};
//! use socbfs_io::Generator;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let edges = Generator::graph500(10).generate(&|_| ())?;
//! let layout = Layout::build(&edges, &BuildOptions::default())?;
//! let device = Setting::flag(DeviceChoice::Auto); // the largest GPU, if there is one
//! let runtime = Runtime { device, ..Runtime::detect()? };
//! let mut prepared = runtime.search(&layout)?;
//! let outcome = prepared.run(5)?;
//! let devices: Vec<&str> = prepared.devices.iter().map(|device| device.used.name.as_str()).collect();
//! println!("{} vertices, policy {}, beside the CPU: {devices:?}", outcome.reached, prepared.choice.policy);
//! # Ok(())
//! # }
//! ```

pub mod board;
pub mod measure;
pub mod runtime;

pub use board::{Board, CpuList, DocumentError};
pub use runtime::{CalibrationChoice, Choice, FoundCalibration, Origin, Prepared, Profile, Runtime, RuntimeError, SearchDevice, Setting};

/// Files of other machines, for tests.
#[cfg(test)]
#[path = "../../tests/fixtures/mod.rs"]
mod fixtures;
