//! Engines: who runs a level.

mod cpu;
mod state;
mod team;

pub use cpu::{CpuEngine, CpuEngineError, Simd, SimdError};
pub use team::Team;
