//! The OpenCL library: what it may be called, and which one was opened.

use std::{
    env,
    ffi::{CStr, CString, OsString},
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use nix::libc;

use super::{error::OpenClError, probe::mappings};

/// The variable that names the library, for the crate that opens it: several are separated by semicolons, and the first that can be opened
/// is taken. Without it, that crate tries only the first of [`LIBRARIES`].
const VARIABLE: &str = "OPENCL_DYLIB_PATH";

/// The libraries that are tried if the variable is not set. Qualcomm's driver has no version in its name; Android's are in these folders.
const LIBRARIES: &str = "libOpenCL.so.1;libOpenCL.so;/vendor/lib64/libOpenCL.so;/vendor/lib/libOpenCL.so";

/// The variable that names drivers beside those that are registered, separated by colons. Khronos' loader ends the first name by a zero
/// byte in the environment itself, so that a process that is started later would get that name alone.
pub(super) const DRIVERS: &str = "OCL_ICD_FILENAMES";

/// The value of [`DRIVERS`] before `main`.
static GIVEN: OnceLock<Option<OsString>> = OnceLock::new();

/// The environment variable that an OpenCL library may have cut, with its value before `main`. Whoever starts a process that uses OpenCL
/// should set it.
pub fn given_drivers() -> Option<(&'static str, OsString)> {
    GIVEN.get_or_init(|| env::var_os(DRIVERS)).clone().map(|names| (DRIVERS, names))
}

/// Sets the variable to [`LIBRARIES`] unless the user has set it to something. To be called before `main`. A program that loads socbfs
/// later and has threads by then keeps its environment, since they may be reading it.
pub(super) fn offer() {
    given_drivers();
    let has_one_thread = || fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1);
    if env::var_os(VARIABLE).is_none_or(|named| named.is_empty()) && has_one_thread() {
        // SAFETY: there is no other thread.
        unsafe { env::set_var(VARIABLE, LIBRARIES) };
    }
}

/// The libraries that the user has named for this process; `None` if none is.
pub fn named_library() -> Option<String> {
    env::var_os(VARIABLE).map(|named| named.to_string_lossy().into_owned()).filter(|named| named != LIBRARIES)
}

/// Loads the library that the user has named, if one is, as the crate will do: it would take another one in silence if it can't.
///
/// # Errors
/// [`OpenClError::NamedLibrary`].
pub(super) fn load_named() -> Result<(), OpenClError> {
    let Some(named) = named_library() else { return Ok(()) };
    let mut why = String::new();
    for name in named.split(';') {
        match load(name, LOADER) {
            Ok(()) => return Ok(()),
            Err(fault) => why = fault,
        }
    }
    Err(OpenClError::NamedLibrary { named, why })
}

/// A function of OpenCL libraries that programs open.
const LOADER: &CStr = c"clGetPlatformIDs";
/// A function of drivers that OpenCL libraries open.
pub(super) const DRIVER: &CStr = c"clGetExtensionFunctionAddress";

/// Loads a library, which then stays, and looks for a `function` that it must have.
///
/// # Errors
/// Why it can't be used.
pub(super) fn load(name: &str, function: &CStr) -> Result<(), String> {
    let Some(path) = CString::new(name).ok().filter(|name| !name.is_empty()) else { return Err("it is no name of a file".to_owned()) };
    // SAFETY: both are strings; the message is copied before another call of the linker. OpenCL's libraries may be loaded.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY);
        if library.is_null() {
            return Err(CStr::from_ptr(libc::dlerror()).to_string_lossy().into_owned());
        }
        if libc::dlsym(library, function.as_ptr()).is_null() {
            return Err(format!("it has no function {}", function.to_string_lossy()));
        }
    }
    Ok(())
}

/// The file of the OpenCL library that is open; `None` if none is.
pub fn opened_library() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let named = env::var(VARIABLE).unwrap_or_default();
    named.split(';').chain(LIBRARIES.split(';')).filter(|name| !name.is_empty()).find_map(|name| {
        // The files of a name without a folder end in further numbers of their version.
        let real = fs::canonicalize(name).ok().filter(|_| name.contains('/'));
        let is_it = |path: &Path| match &real {
            Some(real) => path == real,
            None => path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name)),
        };
        mappings(&maps).map(|(_, path)| path).find(|path| is_it(path)).map(Path::to_owned)
    })
}
