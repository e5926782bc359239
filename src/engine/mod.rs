//! Engines run levels.

mod cpu;
mod gpu;
mod hybrid;
mod state;
mod team;

pub use cpu::is_wide;
pub use cpu::{BottomUp, SPREAD, SharedBuffers, SimdKernels, prefetch, share, share_and_sum};
pub use cpu::{CpuEngine, CpuEngineError, ParallelThresholds, Simd, SimdError};
pub use gpu::{GpuEngineError, GpuOptions, GraphMemory};
pub use gpu::{PartArrays, PartFrontier, PartGpu, PartState, check_parents};
pub use hybrid::{DeviceUse, GpuSetup, HybridEngine, HybridError, HybridUse};
pub use state::OnHost;
pub use team::{AffinityGuard, Span, Team};

/// How often a thread of a [`Team`] looks for work before it looks at the clock. (Not in `team.rs`, since `tests/loom` has its own.)
const LOOKS: u32 = 64;
