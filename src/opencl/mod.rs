//! OpenCL, opened at run time: devices, limits that are enforced even if the driver does not enforce them, programs with a cache on disk,
//! and launches that allocate nothing.
//!
//! Set-up fails with [`OpenClError`], which has an explanation; calls during a search fail with [`DeviceError`], which owns nothing. No
//! call to [`Kernel::set`], [`Kernel::run`], [`Buffer::read`], [`Buffer::write`], [`Buffer::fill`], [`Device::finish`] or a handover of
//! memory calls the Rust allocator (a driver may allocate with its own).
//!
//! A driver that crashes, aborts, exits or hangs while it lists or opens its devices or builds a program does so in another process first,
//! and is an [`OpenClError`] here.
//!
//! The kernels are trusted like the rest of the program: OpenCL checks no access of a kernel, so a kernel that writes outside its buffers
//! corrupts memory. Everything that can be checked from outside is checked: sizes, ownership and lifetime of a kernel's arguments, and the
//! size of its work-groups.
//!
//! Every wait for a device ends: if its driver does not return from one, the device counts as lost ([`DEVICE_TIMEOUT`]).
//!
//! Memory that a failed device may still access is neither freed nor unmapped: it is leaked ([`leaked_bytes`]). Nor is
//! memory of the parent in the child of a fork, which calls no driver ([`FORKED`]).
//!
//! Source: The OpenCL Specification 1.2, Khronos Group; shared virtual memory as in 2.0.

mod buffer;
mod cache;
mod choice;
mod device;
mod error;
mod forked;
mod info;
mod kernel;
mod leaked;
mod library;
mod locked;
mod object;
mod owned;
mod pod;
mod probe;
mod program;
mod wait;

pub(crate) use buffer::align;
pub use buffer::{Buffer, HostBuffer};
pub use choice::{DeviceChoice, choose, exact_choices};
pub use device::{Device, LaunchTime, Limits};
pub use error::{
    ARGUMENT_FREED, DEVICE_TIMEOUT, DeviceError, FORKED, HOST_ONLY, HOST_OWNS_ARGUMENT, LOCAL_MEMORY_LIMIT, NO_DEVICE, OTHER_DEVICE,
    OUT_OF_RANGE, OpenClError, SEARCH_FAILED, WRONG_NUMBERS,
};
pub use info::{DeviceInfo, DeviceKind, PlatformInfo, devices, platforms};
pub(crate) use info::{LEAST_GROUP, NO_GROUPS};
pub use kernel::{Argument, Kernel};
pub use leaked::leaked_bytes;
pub use library::{given_drivers, named_library, opened_library};
pub(crate) use locked::locked;
pub use probe::{end_with, probe_with, try_driver};
pub use program::Program;

pub use forked::is_forked;
pub use info::KnownDriver;
pub use leaked::is_leaked;
pub use object::{Access, Hold, Mapped, Memory, MemoryKind, Pages, page};
pub use pod::Pod;
