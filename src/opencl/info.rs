//! Which devices there are and what they say of themselves.
//!
//! Every property is read as bytes and decoded here: one that a driver does not know (or answers with the wrong size) counts as zero or
//! empty, and never panics.

use std::sync::{Mutex, PoisonError};

use cl3::{
    device::{
        CL_DEVICE_AVAILABLE, CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_ENDIAN_LITTLE, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE,
        CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_HOST_UNIFIED_MEMORY, CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_LOCAL_MEM_TYPE,
        CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_MAX_WORK_ITEM_SIZES,
        CL_DEVICE_MEM_BASE_ADDR_ALIGN, CL_DEVICE_NAME, CL_DEVICE_OPENCL_C_VERSION, CL_DEVICE_SVM_CAPABILITIES,
        CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, CL_DEVICE_SVM_FINE_GRAIN_BUFFER, CL_DEVICE_TYPE, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL,
        CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION, CL_LOCAL, get_device_data,
        get_device_ids,
    },
    error_codes::{CL_DEVICE_NOT_FOUND, CL_PLATFORM_NOT_FOUND_KHR, DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED},
    platform::{CL_PLATFORM_NAME, CL_PLATFORM_VENDOR, CL_PLATFORM_VERSION, get_platform_data, get_platform_ids},
};
use serde::Serialize;

use super::error::{Called, DeviceError, OpenClError};

/// Smaller buffers than this hold no graph worth a device.
const LEAST_ALLOC: u64 = 64 << 10;

/// What kind of device it is, by its own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// The host's processor.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// An accelerator.
    Accelerator,
    /// Anything else.
    Other,
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Cpu => "CPU",
            Self::Gpu => "GPU",
            Self::Accelerator => "accelerator",
            Self::Other => "other",
        })
    }
}

/// An OpenCL device and what it says of itself.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceInfo {
    /// Name of the platform (the implementation).
    pub platform: String,
    /// Version of the platform, as "OpenCL 3.0 ...".
    pub platform_version: String,
    /// Name of the device.
    pub name: String,
    /// Vendor of the device.
    pub vendor: String,
    /// Version of the driver.
    pub driver: String,
    /// Version of the device, as "OpenCL 1.2 ...".
    pub version: String,
    /// Version of the language, as "OpenCL C 1.2 ...".
    pub c_version: String,
    /// What kind of device it is.
    pub kind: DeviceKind,
    /// Compute units.
    pub compute_units: u32,
    /// Largest work-group, before a kernel's own needs are known.
    pub max_work_group: usize,
    /// Largest work-group in each dimension.
    pub max_work_item_sizes: Vec<usize>,
    /// Global memory in bytes.
    pub global_bytes: u64,
    /// Largest buffer in bytes.
    pub max_alloc_bytes: u64,
    /// Local memory of a work-group in bytes.
    pub local_bytes: u64,
    /// Whether local memory is a memory of its own (and not a part of global memory).
    pub local_is_dedicated: bool,
    /// Whether host and device share one memory.
    pub unified_memory: bool,
    /// Whether shared virtual memory is offered, with map and unmap.
    pub svm_coarse: bool,
    /// Whether shared virtual memory is offered without map and unmap.
    pub svm_fine: bool,
    /// Alignment of buffers in bytes.
    pub base_align_bytes: u32,
    /// Cache line of global memory in bytes.
    pub cacheline: u32,
    /// Why it can't be used; `None` where it can.
    pub unusable: Option<String>,
    /// The platform's handle. Handles of platforms and devices live as long as the process.
    #[serde(skip)]
    pub(super) platform_id: usize,
    /// The device's handle.
    #[serde(skip)]
    pub(super) device_id: usize,
}

/// An implementation of OpenCL.
#[derive(Debug, Clone, Serialize)]
pub struct PlatformInfo {
    /// Its name.
    pub name: String,
    /// Its vendor.
    pub vendor: String,
    /// Its version, as "OpenCL 3.0 ...".
    pub version: String,
    /// Its devices.
    pub devices: Vec<DeviceInfo>,
    /// Why it shows no devices; `None` where it shows some.
    pub problem: Option<String>,
}

/// The platforms in the order the library gives, which is no order to rely on. One that fails says so in
/// [`PlatformInfo::problem`] and does not hide the others.
///
/// # Errors
/// [`OpenClError::NoLibrary`] and [`OpenClError::NoPlatform`].
pub fn platforms() -> Result<Vec<PlatformInfo>, OpenClError> {
    // Loaders find their drivers at the first call. A second thread that calls meanwhile finds no platform, or half of one and crashes
    // (ocl-icd 2.3.1, seen where processors are slow).
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if !cl3::is_opencl_runtime_available() {
        return Err(OpenClError::NoLibrary);
    }
    match get_platform_ids() {
        Ok(ids) if !ids.is_empty() => Ok(ids.into_iter().map(platform).collect()),
        Ok(_) | Err(CL_PLATFORM_NOT_FOUND_KHR) => Err(OpenClError::NoPlatform),
        Err(DLOPEN_RUNTIME_LOAD_FAILED | DLOPEN_FUNCTION_NOT_AVAILABLE) => Err(OpenClError::NoLibrary),
        Err(code) => Err(DeviceError { call: "clGetPlatformIDs", code }.on("the OpenCL library")),
    }
}

/// The devices of all platforms. A platform that fails is logged and does not hide the others.
///
/// # Errors
/// [`OpenClError::NoLibrary`], [`OpenClError::NoPlatform`], [`OpenClError::NoDevice`]: there is no OpenCL here.
pub fn devices() -> Result<Vec<DeviceInfo>, OpenClError> {
    let (mut found, mut empty) = (Vec::new(), Vec::new());
    for platform in platforms()? {
        if let Some(problem) = platform.problem {
            log::debug!("OpenCL platform {}: {problem}", platform.name);
            empty.push(format!("{} ({problem})", platform.name));
        }
        found.extend(platform.devices);
    }
    if found.is_empty() { Err(OpenClError::NoDevice { platforms: empty }) } else { Ok(found) }
}

type Handle = *mut std::ffi::c_void;

fn platform(id: Handle) -> PlatformInfo {
    let text = |what| text(get_platform_data(id, what));
    let (name, vendor, version) = (text(CL_PLATFORM_NAME), text(CL_PLATFORM_VENDOR), text(CL_PLATFORM_VERSION));
    let (devices, problem) = match get_device_ids(id, CL_DEVICE_TYPE_ALL) {
        Ok(ids) if !ids.is_empty() => (ids.into_iter().map(|device_id| device(id, &name, &version, device_id)).collect(), None),
        Ok(_) | Err(CL_DEVICE_NOT_FOUND) => (Vec::new(), Some("no device".to_owned())),
        Err(code) => (Vec::new(), Some(DeviceError { call: "clGetDeviceIDs", code }.to_string())),
    };
    PlatformInfo { name, vendor, version, devices, problem }
}

fn device(platform_id: Handle, platform: &str, platform_version: &str, id: Handle) -> DeviceInfo {
    let property = |what| get_device_data(id, what);
    let words = |what| text(property(what));
    let number = |what| number(property(what).called("clGetDeviceInfo")).unwrap_or(0);
    let svm = number(CL_DEVICE_SVM_CAPABILITIES);
    let mut info = DeviceInfo {
        platform: platform.to_owned(),
        platform_version: platform_version.to_owned(),
        name: words(CL_DEVICE_NAME),
        vendor: words(CL_DEVICE_VENDOR),
        driver: words(CL_DRIVER_VERSION),
        version: words(CL_DEVICE_VERSION),
        c_version: words(CL_DEVICE_OPENCL_C_VERSION),
        kind: kind(number(CL_DEVICE_TYPE)),
        compute_units: clamped(number(CL_DEVICE_MAX_COMPUTE_UNITS)),
        max_work_group: number(CL_DEVICE_MAX_WORK_GROUP_SIZE) as usize,
        max_work_item_sizes: sizes(property(CL_DEVICE_MAX_WORK_ITEM_SIZES).unwrap_or_default()),
        global_bytes: number(CL_DEVICE_GLOBAL_MEM_SIZE),
        max_alloc_bytes: number(CL_DEVICE_MAX_MEM_ALLOC_SIZE),
        local_bytes: number(CL_DEVICE_LOCAL_MEM_SIZE),
        local_is_dedicated: number(CL_DEVICE_LOCAL_MEM_TYPE) == u64::from(CL_LOCAL),
        unified_memory: number(CL_DEVICE_HOST_UNIFIED_MEMORY) != 0,
        svm_coarse: svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER != 0,
        svm_fine: svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0,
        base_align_bytes: clamped(number(CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8),
        cacheline: clamped(number(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE)),
        unusable: None,
        platform_id: platform_id as usize,
        device_id: id as usize,
    };
    let yes = |what| number(what) != 0;
    info.unusable = unusable(&info, yes(CL_DEVICE_AVAILABLE), yes(CL_DEVICE_COMPILER_AVAILABLE), yes(CL_DEVICE_ENDIAN_LITTLE));
    info
}

/// What `bits` say. Who claims to be several things at once (Oclgrind, the simulator, says CPU, GPU and accelerator) is none of them: it must
/// not be taken for a GPU.
fn kind(bits: u64) -> DeviceKind {
    match bits & (CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR) {
        CL_DEVICE_TYPE_CPU => DeviceKind::Cpu,
        CL_DEVICE_TYPE_GPU => DeviceKind::Gpu,
        CL_DEVICE_TYPE_ACCELERATOR => DeviceKind::Accelerator,
        _ => DeviceKind::Other,
    }
}

/// Why kernels can't run on it.
fn unusable(info: &DeviceInfo, available: bool, compiler: bool, little_endian: bool) -> Option<String> {
    if !available {
        return Some("the driver says that it is not available".into());
    }
    if !compiler {
        return Some("its driver has no compiler, and the kernels come as source".into());
    }
    if !little_endian {
        return Some("it is big-endian, the graph is little-endian".into());
    }
    for (what, text) in [("OpenCL", &info.version), ("OpenCL C", &info.c_version)] {
        // Versions are as "OpenCL 1.2 ..." by the standard; a driver that writes otherwise is given the benefit of the doubt.
        if version(text).is_some_and(|version| version < (1, 2)) {
            return Some(format!("it has {text}, the kernels need {what} 1.2"));
        }
    }
    if info.max_alloc_bytes < LEAST_ALLOC {
        return Some(format!("its largest buffer holds {} bytes; {LEAST_ALLOC} are the least that make sense", info.max_alloc_bytes));
    }
    if info.max_work_group == 0 || info.compute_units == 0 {
        return Some("its driver shows no compute units".into());
    }
    None
}

/// (1, 2) of "OpenCL C 1.2 pocl".
fn version(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace().find_map(|word| {
        let (major, minor) = word.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    })
}

/// A zero-terminated string; empty where there is none.
fn text(bytes: Result<Vec<u8>, i32>) -> String {
    let bytes = bytes.unwrap_or_default();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

/// A whole number of 4 or 8 bytes.
pub(super) fn number(bytes: Result<Vec<u8>, DeviceError>) -> Result<u64, DeviceError> {
    let bytes = bytes?;
    Ok(match *bytes.as_slice() {
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    })
}

/// Numbers of the width of a pointer.
fn sizes(bytes: Vec<u8>) -> Vec<usize> {
    bytes.chunks_exact(size_of::<usize>()).filter_map(|word| Some(usize::from_ne_bytes(word.try_into().ok()?))).collect()
}

fn clamped(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A device that exists nowhere.
    pub(in crate::opencl) fn invented(platform: &str, name: &str, kind: DeviceKind, compute_units: u32) -> DeviceInfo {
        DeviceInfo {
            platform: platform.into(),
            platform_version: "OpenCL 1.2".into(),
            name: name.into(),
            vendor: "nobody".into(),
            driver: "1".into(),
            version: "OpenCL 1.2 x".into(),
            c_version: "OpenCL C 1.2".into(),
            kind,
            compute_units,
            max_work_group: 256,
            max_work_item_sizes: vec![256; 3],
            global_bytes: 1 << 30,
            max_alloc_bytes: 1 << 28,
            local_bytes: 32 << 10,
            local_is_dedicated: true,
            unified_memory: true,
            svm_coarse: false,
            svm_fine: false,
            base_align_bytes: 128,
            cacheline: 64,
            unusable: None,
            platform_id: 0,
            device_id: 0,
        }
    }

    #[test]
    fn what_makes_a_device_unusable_is_said_in_words() {
        let good = invented("p", "d", DeviceKind::Gpu, 4);
        assert_eq!(unusable(&good, true, true, true), None);
        let why = |info: &DeviceInfo, flags: [bool; 3]| unusable(info, flags[0], flags[1], flags[2]).unwrap();
        assert!(why(&good, [false, true, true]).contains("not available"));
        assert!(why(&good, [true, false, true]).contains("no compiler"));
        assert!(why(&good, [true, true, false]).contains("big-endian"));
        let old = DeviceInfo { version: "OpenCL 1.1 Mali".into(), ..good.clone() };
        assert!(why(&old, [true; 3]).contains("1.2"));
        let old = DeviceInfo { c_version: "OpenCL C 1.1 ".into(), ..good.clone() };
        assert!(why(&old, [true; 3]).contains("OpenCL C 1.2"));
        let small = DeviceInfo { max_alloc_bytes: 65_535, ..good.clone() };
        assert!(why(&small, [true; 3]).contains("65535"));
        let empty = DeviceInfo { compute_units: 0, ..good };
        assert!(why(&empty, [true; 3]).contains("compute units"));
    }

    #[test]
    fn a_device_that_claims_to_be_everything_is_no_gpu() {
        assert_eq!(kind(CL_DEVICE_TYPE_GPU | 1), DeviceKind::Gpu);
        assert_eq!(kind(CL_DEVICE_TYPE_CPU), DeviceKind::Cpu);
        assert_eq!(kind(CL_DEVICE_TYPE_ACCELERATOR), DeviceKind::Accelerator);
        assert_eq!(kind(CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR), DeviceKind::Other);
        assert_eq!(kind(0), DeviceKind::Other);
    }

    #[test]
    fn properties_of_any_width_are_read() {
        assert_eq!(version("OpenCL C 3.0 "), Some((3, 0)));
        assert_eq!(version("OpenCL 1.2 v1.r26p0"), Some((1, 2)));
        assert_eq!(version("nothing"), None);
        assert_eq!(text(Ok(b"Mali-G52\0junk".to_vec())), "Mali-G52");
        assert_eq!(text(Ok(b" pocl ".to_vec())), "pocl");
        assert_eq!(text(Err(-30)), "");
        assert_eq!(number(Ok(7u32.to_ne_bytes().to_vec())), Ok(7));
        assert_eq!(number(Ok(7u64.to_ne_bytes().to_vec())), Ok(7));
        assert_eq!(number(Ok(vec![1])), Ok(0));
        assert_eq!(sizes([5usize, 6].iter().flat_map(|size| size.to_ne_bytes()).collect()), [5, 6]);
    }
}
