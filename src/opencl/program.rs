//! Programs: built from source, or loaded from the cache.

use std::{ffi::CString, fmt, sync::Arc};

use cl3::{
    error_codes::CL_BUILD_PROGRAM_FAILURE,
    info_type::InfoType,
    program::{
        CL_PROGRAM_BINARIES, CL_PROGRAM_BUILD_LOG, build_program, create_program_with_binary, create_program_with_source,
        get_program_build_data, get_program_info, release_program, retain_program,
    },
};

use super::{
    cache::{Cache, Key},
    device::Device,
    error::{Called, DeviceError, OpenClError},
    kernel::Kernel,
};

/// A built program.
pub struct Program {
    device: Arc<Device>,
    handle: *mut std::ffi::c_void,
    from_cache: bool,
}

// SAFETY: programs of OpenCL may be used by any thread, and by several at a time (OpenCL 1.2, appendix A.2).
unsafe impl Send for Program {}
// SAFETY: as above.
unsafe impl Sync for Program {}

impl Program {
    /// From the cache, else from source (and then into the cache).
    pub(super) fn new(device: &Arc<Device>, cache: Option<Cache>, source: &str, options: &str) -> Result<Self, OpenClError> {
        let options_c = CString::new(options).map_err(|_| OpenClError::ZeroByte(options.to_owned()))?;
        let key = Key::new(device.info(), source, options);
        if let Some(binary) = cache.as_ref().and_then(|cache| cache.load(&key)) {
            match Self::from_binary(device, &binary, &options_c) {
                Ok(program) => return Ok(program),
                // Such as after an update of the driver that kept its version.
                Err(error) => log::debug!("the driver refuses a cached program ({error}), so it is built again"),
            }
        }
        let program = Self::from_source(device, source, options, &options_c)?;
        if let (Some(cache), Some(binary)) = (cache, program.binary()) {
            cache.store(&key, &binary);
        }
        Ok(program)
    }

    /// Another reference to a program that was built before.
    pub(super) fn again(device: &Arc<Device>, handle: *mut std::ffi::c_void) -> Option<Self> {
        // SAFETY: the device keeps the handle alive.
        unsafe { retain_program(handle) }.ok()?;
        Some(Self { device: Arc::clone(device), handle, from_cache: true })
    }

    /// A reference of its own to the handle, for the device to keep.
    pub(super) fn retained(&self) -> Option<*mut std::ffi::c_void> {
        // SAFETY: the handle lives as long as `self`.
        unsafe { retain_program(self.handle) }.ok()?;
        Some(self.handle)
    }

    fn from_source(device: &Arc<Device>, source: &str, options: &str, options_c: &CString) -> Result<Self, OpenClError> {
        let name = &device.info().name;
        let handle =
            create_program_with_source(device.context(), &[source]).called("clCreateProgramWithSource").map_err(|error| error.on(name))?;
        let program = Self { device: Arc::clone(device), handle, from_cache: false };
        match program.build(options_c) {
            Ok(()) => {
                match program.log() {
                    log if log.is_empty() => {}
                    log => log::debug!("{name} says of the kernels: {log}"),
                }
                Ok(program)
            }
            Err(error) => {
                let log = match program.log() {
                    // Some drivers explain a failure by its code alone.
                    log if log.is_empty() || error.code != CL_BUILD_PROGRAM_FAILURE => format!("{error}\n{log}"),
                    log => log,
                };
                Err(OpenClError::Build { device: name.clone(), options: options.to_owned(), log: log.trim_end().to_owned() })
            }
        }
    }

    fn from_binary(device: &Arc<Device>, binary: &[u8], options: &CString) -> Result<Self, DeviceError> {
        // SAFETY: the device is of the context; the cache has checked that the binary is what the driver gave it once.
        let handle =
            unsafe { create_program_with_binary(device.context(), &[device.id()], &[binary]) }.called("clCreateProgramWithBinary")?;
        let program = Self { device: Arc::clone(device), handle, from_cache: true };
        program.build(options)?;
        Ok(program)
    }

    fn build(&self, options: &CString) -> Result<(), DeviceError> {
        build_program(self.handle, &[self.device.id()], options, None, std::ptr::null_mut()).called("clBuildProgram")
    }

    fn log(&self) -> String {
        let bytes = get_program_build_data(self.handle, self.device.id(), CL_PROGRAM_BUILD_LOG).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim_matches(|c: char| c == '\0' || c.is_whitespace()).to_owned()
    }

    /// What the driver made of it; `None` where it does not say.
    fn binary(&self) -> Option<Vec<u8>> {
        match get_program_info(self.handle, CL_PROGRAM_BINARIES) {
            Ok(InfoType::VecVecUchar(binaries)) => binaries.into_iter().next().filter(|binary| !binary.is_empty()),
            _ => None,
        }
    }

    /// The kernel of this name, with no argument set.
    ///
    /// # Errors
    /// [`OpenClError::NoKernel`]; [`OpenClError::LocalMemory`] where it declares more than the device has or is allowed.
    pub fn kernel(&self, name: &str) -> Result<Kernel, OpenClError> {
        Kernel::new(self, name)
    }

    /// Whether it was not compiled now: it came from the cache on disk, or had been built before.
    pub fn from_cache(&self) -> bool {
        self.from_cache
    }

    /// The device it was built for.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(super) fn handle(&self) -> *mut std::ffi::c_void {
        self.handle
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.device.is_sound() {
            // SAFETY: the reference made when it was created; its kernels hold their own.
            let _ = unsafe { release_program(self.handle) };
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program(on {:?})", self.device)
    }
}
