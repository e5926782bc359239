//! Prepares a search for this machine, for commands and programs alike: settings with their origin, the board profile, the calibration and
//! the OpenCL device.
//!
//! ```
//! use socbfs::graph::{BuildOptions, EdgeList, Layout, Listing};
//! use socbfs_boards::Runtime;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let edges = EdgeList::new(5, vec![[0, 1], [1, 2], [2, 3]], Listing::Once)?;
//! let layout = Layout::build(&edges, &BuildOptions::default())?;
//! let outcome = Runtime::detect()?.search(&layout)?.run(0)?;
//! assert_eq!((outcome.reached, outcome.levels), (4, 4));
//! # Ok(())
//! # }
//! ```

mod calibration;
mod choice;
mod error;
mod parallel;
mod prepare;
mod profile;
mod recorded;
mod settings;

pub use calibration::{CalibrationChoice, FoundCalibration, folder, text};
pub use choice::{Bound, Choice, Costs};
pub use error::RuntimeError;
pub use prepare::{Machine, OnStep, Prepared, SearchDevice, Step, UndividedDevice, during};
pub use profile::Profile;
pub use recorded::{RecordedGraph, RecordedPlans, ReplayError};
pub use settings::{Origin, Runtime, Setting};

#[cfg(test)]
mod testing {
    use socbfs::opencl::{DeviceInfo, DeviceKind};

    /// A device that exists nowhere.
    pub fn invented(platform: &str, name: &str, kind: DeviceKind, compute_units: u32) -> DeviceInfo {
        let mut info = DeviceInfo::default();
        (info.platform, info.name, info.kind, info.compute_units) = (platform.into(), name.into(), kind, compute_units);
        (info.driver, info.version) = ("1".into(), "OpenCL 1.2 x".into());
        (info.unified_memory, info.local_is_dedicated) = (true, true);
        (info.max_work_group, info.global_bytes, info.max_alloc_bytes, info.local_bytes) = (256, 1 << 30, 1 << 28, 32 << 10);
        info
    }
}
