//! Programs: built from source, or loaded from the cache.

use std::{fmt, sync::Arc};

use opencl3::{error_codes::CL_BUILD_PROGRAM_FAILURE, program::Program as Object};

use super::{
    cache::{Cache, Key},
    device::Device,
    error::{Called, DeviceError, OpenClError},
    kernel::Kernel,
    owned::Owned,
    probe,
};

/// The entry of a program that the driver has built, if it returns no binary or keeps it itself.
const BUILT: &[u8] = b"built";

/// A built program. It may consist of several, each with some of the kernels.
pub struct Program {
    objects: Vec<Arc<Owned<Object>>>,
    device: Arc<Device>,
    from_cache: bool,
}

impl Program {
    /// Loads the program from the cache, else builds it from source and stores it in the cache: its binary, or (with `keeps_kernels`: the
    /// driver has a cache of its own) only that it was built.
    pub(super) fn new(
        device: &Arc<Device>,
        cache: Option<Cache>,
        keeps_kernels: bool,
        source: &str,
        options: &str,
    ) -> Result<Self, OpenClError> {
        if options.contains('\0') {
            return Err(OpenClError::ZeroByte(options.to_owned()));
        }
        let made = |object, from_cache| Self { device: Arc::clone(device), objects: vec![Arc::new(object)], from_cache };
        let key = Key::new(device.info(), source, options);
        let entry = cache.as_ref().map(|cache| (cache, &key));
        let load = || entry.and_then(|(cache, key)| cache.load(key));
        let mut known = load();
        let is_new = known.is_none();
        if is_new {
            probe::build(device.info(), cache.as_ref(), source, options)?;
            known = load();
        }
        if let Some(binary) = known.as_deref().filter(|&binary| binary != BUILT) {
            match probe::aside(entry, || from_binary(device, binary, options)) {
                Ok(object) => return Ok(made(object, !is_new)),
                Err(error) => log::debug!("the driver refuses a cached program ({error}), so it is built again"),
            }
        }
        let object = probe::aside(entry, || from_source(device, source, options))?;
        if let Some((cache, key)) = entry.filter(|_| !keeps_kernels || known.as_deref() != Some(BUILT)) {
            // The binary is requested only if it is stored, since a driver may have to compile for it. Not every driver returns a binary.
            let binary = if keeps_kernels { None } else { object.get_binaries().ok().and_then(|binaries| binaries.into_iter().next()) };
            cache.store(key, binary.as_deref().filter(|binary| !binary.is_empty()).unwrap_or(BUILT));
        }
        Ok(made(object, false))
    }

    /// A program that was built before.
    pub(super) fn again(device: &Arc<Device>, object: &Arc<Owned<Object>>) -> Self {
        Self { device: Arc::clone(device), objects: vec![Arc::clone(object)], from_cache: true }
    }

    /// All of these programs of `device` as one.
    pub(super) fn of(device: &Arc<Device>, programs: &[Self]) -> Self {
        Self {
            device: Arc::clone(device),
            objects: programs.iter().flat_map(|program| &program.objects).cloned().collect(),
            from_cache: programs.iter().all(Self::from_cache),
        }
    }

    /// The part of it that the device keeps: not the program itself, which keeps the device.
    pub(super) fn shared(&self) -> Arc<Owned<Object>> {
        Arc::clone(&self.objects[0])
    }

    /// The kernel of this name, with no argument set.
    ///
    /// # Errors
    /// [`OpenClError::NoKernel`]; [`OpenClError::LocalMemory`] if the driver reports that it declares more local memory than the
    /// device has or the limits allow.
    pub fn kernel(&self, name: &str) -> Result<Kernel, OpenClError> {
        Kernel::new(self, name)
    }

    /// The names of its kernels.
    pub(super) fn kernel_names(&self) -> Vec<String> {
        self.objects.iter().flat_map(|object| object.kernel_names().split(';')).map(str::to_owned).collect()
    }

    /// Whether it was not compiled by this call: it came from the cache on disk, or had been built before.
    pub fn from_cache(&self) -> bool {
        self.from_cache
    }

    /// The device it was built for.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The program with this kernel, or the first if none says that it has it.
    pub(super) fn object(&self, kernel: &str) -> &Object {
        let with = self.objects.iter().find(|object| object.kernel_names().split(';').any(|name| name == kernel));
        with.unwrap_or(&self.objects[0])
    }
}

fn from_source(device: &Device, source: &str, options: &str) -> Result<Owned<Object>, OpenClError> {
    let name = &device.info().name;
    let object =
        Object::create_from_source(device.context(), source).called("clCreateProgramWithSource").map_err(|error| error.on(name))?;
    let mut object = Owned::new(object);
    let built = object.build(&[device.id()], options).called("clBuildProgram");
    let log = object.get_build_log(device.id()).unwrap_or_default();
    let log = log.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    let Err(error) = built else {
        if !log.is_empty() {
            log::debug!("{name} says of the kernels: {log}");
        }
        return Ok(object);
    };
    // Some drivers explain a failure by its code alone.
    let code_alone = log.is_empty() || error.code != CL_BUILD_PROGRAM_FAILURE;
    let log = if code_alone { format!("{error}\n{log}").trim_end().to_owned() } else { log.to_owned() };
    Err(OpenClError::Build { device: name.clone(), options: options.to_owned(), log })
}

fn from_binary(device: &Device, binary: &[u8], options: &str) -> Result<Owned<Object>, DeviceError> {
    // SAFETY: the device is of the context; the cache has checked that the binary is what the driver once returned.
    let object = unsafe { Object::create_from_binary(device.context(), &[device.id()], &[binary]) };
    let mut object = Owned::new(object.called("clCreateProgramWithBinary")?);
    object.build(&[device.id()], options).called("clBuildProgram")?;
    Ok(object)
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.device.is_sound() {
            // References that are never released keep the objects.
            std::mem::forget(self.objects.clone());
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program(on {:?})", self.device)
    }
}
