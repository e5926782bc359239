//! Errors of OpenCL: [`OpenClError`] during set-up, with an explanation, and [`DeviceError`] during a search, which owns nothing so that
//! the hot loop can return it without allocating.

use std::fmt;

use opencl3::error_codes::{
    CL_DEVICE_NOT_AVAILABLE, CL_INVALID_BUFFER_SIZE, CL_INVALID_KERNEL_ARGS, CL_INVALID_WORK_GROUP_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE,
    CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES, ClError, error_text,
};

/// A reason why there is no OpenCL or no such device, or why the device can't be prepared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenClError {
    /// No OpenCL library can be opened.
    #[error(
        "no OpenCL library (libOpenCL.so.1, libOpenCL.so) can be opened; install ocl-icd-libopencl1 and the GPU's driver, or name the driver's \
         library in OPENCL_DYLIB_PATH (static programs open none)"
    )]
    NoLibrary,
    /// The library that `OPENCL_DYLIB_PATH` names can't be used.
    #[error("OPENCL_DYLIB_PATH names {named}, which can't be opened ({why}); correct or unset it")]
    NamedLibrary {
        /// The value of the variable.
        named: String,
        /// The reason.
        why: String,
    },
    /// The library finds no implementation.
    #[error(
        "the OpenCL library finds no implementation; install the GPU's driver (or pocl-opencl-icd for the CPU), and check that its .icd \
         file is in /etc/OpenCL/vendors or in the folder that OCL_ICD_VENDORS names"
    )]
    NoPlatform,
    /// A driver crashed, ended its process, or gave no answer. Another process tried it, so this one goes on.
    #[error("an OpenCL driver {fault}; update or remove it, or search on the CPU alone")]
    Driver {
        /// What it did and when, as "ended its process by SIGABRT while the devices were listed".
        fault: String,
    },
    /// This process was forked from one that had opened OpenCL.
    #[error("OpenCL was opened before this process was forked, and drivers do not survive that; search on the CPU here")]
    Forked,
    /// There are implementations, but no device.
    #[error("no OpenCL device; the platforms found: {}; check that you may open /dev/dri/renderD* or /dev/mali0 (groups render, video)", .platforms.join(", "))]
    NoDevice {
        /// Names of the platforms, with the problem of each.
        platforms: Vec<String>,
    },
    /// No device matches the choice.
    #[error("no OpenCL device matches {wanted:?}; available: {}", listed(.have))]
    NoMatch {
        /// The choice that was given.
        wanted: String,
        /// The devices there are.
        have: Vec<String>,
    },
    /// No device is a GPU that can be used.
    #[error("no OpenCL device is a GPU that can be used; available: {}", listed(.have))]
    NoGpu {
        /// The devices there are.
        have: Vec<String>,
    },
    /// The device can't run kernels.
    #[error("OpenCL device {device} can't be used: {reason}")]
    Unusable {
        /// Its name.
        device: String,
        /// Why.
        reason: String,
    },
    /// The device's compiler refused a program.
    #[error("{device} can't build the kernels (options {options:?}):\n{log}")]
    Build {
        /// Name of the device.
        device: String,
        /// Build options.
        options: String,
        /// Output of the compiler.
        log: String,
    },
    /// The program does not have the kernel.
    #[error("the program has no kernel {name:?}: {error}")]
    NoKernel {
        /// The kernel's name.
        name: String,
        /// Error of the driver.
        error: DeviceError,
    },
    /// A buffer is larger than the device or the limits allow.
    #[error("{what} needs a buffer of {bytes} bytes, but {device} takes at most {limit} in one")]
    TooLarge {
        /// What the buffer was for.
        what: &'static str,
        /// Its size in bytes.
        bytes: u64,
        /// The largest size in bytes.
        limit: u64,
        /// Name of the device.
        device: String,
    },
    /// The device has no memory left for a buffer.
    #[error("{device} has no memory for {what}: {bytes} bytes ({why}); use a smaller graph")]
    OutOfMemory {
        /// What the buffer was for.
        what: &'static str,
        /// Its size in bytes.
        bytes: u64,
        /// Name of the device.
        device: String,
        /// Error of the driver, or the limit that was exceeded.
        why: String,
    },
    /// A kernel declares more local memory than there is.
    #[error("kernel {kernel} needs {bytes} bytes of local memory, {device} has {limit}")]
    LocalMemory {
        /// Name of the kernel.
        kernel: String,
        /// Bytes it declares.
        bytes: u64,
        /// Bytes that there are.
        limit: u64,
        /// Name of the device.
        device: String,
    },
    /// A name or option contains a zero byte.
    #[error("{0:?} holds a zero byte")]
    ZeroByte(String),
    /// A call failed.
    #[error("{device}: {error}")]
    Call {
        /// Name of the device.
        device: String,
        /// The call and its code.
        error: DeviceError,
    },
}

impl OpenClError {
    /// Whether the device's compiler failed, at the program or at a kernel.
    pub(crate) fn is_of_build(&self) -> bool {
        matches!(self, Self::Build { .. } | Self::NoKernel { .. })
    }
}

fn listed(have: &[String]) -> String {
    if have.is_empty() { "none".to_owned() } else { have.join(", ") }
}

/// Declares codes of [`DeviceError`] that are not OpenCL's, each with its usual meaning.
macro_rules! codes {
    ($($(#[$doc:meta])* $vis:vis $name:ident = $code:literal: $hint:literal;)*) => {
        $($(#[$doc])* $vis const $name: i32 = $code;)*

        /// These codes, their names and meanings.
        const OWN: &[(i32, &str, &str)] = &[$(($name, stringify!($name), $hint)),*];
    };
}

codes! {
    /// [`DeviceError::code`] of a launch while the host still owns memory that the kernel was given.
    pub HOST_OWNS_ARGUMENT = -9001: "the host still owns memory that the kernel was given; hand it over first";
    /// The memory that the kernel was given has been freed.
    pub ARGUMENT_FREED = -9002: "memory that the kernel was given has been freed";
    /// More local memory than the device has, or than the limits allow.
    pub LOCAL_MEMORY_LIMIT = -9003: "the kernel needs more local memory than the device has";
    /// A range that does not lie inside the buffer.
    pub OUT_OF_RANGE = -9004: "the range is not inside the buffer";
    /// Memory that was made without a device.
    pub HOST_ONLY = -9005: "the memory was made without a device";
    /// Memory of another device than the kernel's.
    pub OTHER_DEVICE = -9006: "the memory belongs to another device";
    /// A level was planned for a device, but the search has none.
    pub NO_DEVICE = -9007: "the level was planned for a device, but the search was set up without one";
    /// A search has failed, and was not begun again.
    pub SEARCH_FAILED = -9008: "the search has failed before; begin another";
    /// The device gave numbers that no search can have.
    pub WRONG_NUMBERS = -9009: "the device gave numbers that no search can have: a bug of its driver; update it, or choose another device";
    /// The process was forked after the device was opened.
    pub FORKED = -9010: "this process was forked after the device was opened, and drivers do not survive that; search on the CPU here";
    /// A wait for the device did not end within its limit. The device counts as lost.
    pub DEVICE_TIMEOUT = -9011: "the device has not finished its work, and counts as lost; SOCBFS_DEVICE_TIMEOUT sets a longer limit, \
        --device cpu searches without the device";
    /// NVIDIA's own code for a kernel that accessed memory it must not access. It is in no header.
    NVIDIA_FAULT = -9999: "a kernel read or wrote outside its buffers, and the driver gave the device up";
}

/// A call to the device that failed. Owns nothing: returning it allocates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceError {
    /// The OpenCL function.
    pub call: &'static str,
    /// OpenCL's error code, or one of this module's (-9001 and below) if the call was refused before it reached OpenCL.
    pub code: i32,
}

impl DeviceError {
    /// See [`NO_DEVICE`].
    pub const NONE: Self = Self { call: "search", code: NO_DEVICE };

    /// See [`SEARCH_FAILED`].
    pub(crate) const FAILED_BEFORE: Self = Self { call: "search", code: SEARCH_FAILED };

    /// See [`WRONG_NUMBERS`].
    pub const WRONG: Self = Self { call: "search", code: WRONG_NUMBERS };

    /// See [`FORKED`].
    pub(crate) const FORKED: Self = Self { call: "search", code: FORKED };

    /// What is known of the code, unless it is OpenCL's.
    fn own(&self) -> Option<&'static (i32, &'static str, &'static str)> {
        OWN.iter().find(|own| own.0 == self.code)
    }

    /// The code's name in OpenCL's headers, or in this module.
    pub fn name(&self) -> &'static str {
        self.own().map_or_else(|| error_text(self.code), |own| own.1)
    }

    /// Its usual meaning; empty if the name is enough.
    pub fn hint(&self) -> &'static str {
        match self.code {
            CL_OUT_OF_RESOURCES => {
                "the device ran out of resources, or a kernel faulted or ran too long and the driver gave the device up (see dmesg)"
            }
            CL_MEM_OBJECT_ALLOCATION_FAILURE => "the device has no memory left",
            CL_OUT_OF_HOST_MEMORY => "the driver got no memory from the system",
            CL_DEVICE_NOT_AVAILABLE => "the device was lost",
            CL_INVALID_WORK_GROUP_SIZE => "the work-group is larger than the kernel may have on this device",
            CL_INVALID_KERNEL_ARGS => "an argument of the kernel was not set",
            CL_INVALID_BUFFER_SIZE => "the buffer is larger than the device takes",
            _ => self.own().map_or("", |own| own.2),
        }
    }

    /// This error with the device's name, as an error of the set-up.
    pub fn on(self, device: &str) -> OpenClError {
        OpenClError::Call { device: device.to_owned(), error: self }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.call, self.name(), self.code)?;
        match self.hint() {
            "" => Ok(()),
            hint => write!(f, ", {hint}"),
        }
    }
}

impl std::error::Error for DeviceError {}

/// Turns the code that a function of `opencl3` returns into a [`DeviceError`].
pub(super) trait Called<T> {
    /// Adds the name of the call.
    fn called(self, call: &'static str) -> Result<T, DeviceError>;
}

impl<T, E: Into<ClError>> Called<T> for Result<T, E> {
    #[inline]
    fn called(self, call: &'static str) -> Result<T, DeviceError> {
        self.map_err(|error| DeviceError { call, code: error.into().0 })
    }
}
