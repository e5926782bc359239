//! The devices of the machine, and the properties that they report.
//!
//! A property that a driver does not report (or reports with the wrong size) counts as zero or empty, and never panics.

use std::sync::Mutex;

use opencl3::{
    device::{
        CL_DEVICE_SVM_COARSE_GRAIN_BUFFER, CL_DEVICE_SVM_FINE_GRAIN_BUFFER, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL,
        CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, CL_LOCAL, Device,
    },
    error_codes::{CL_DEVICE_NOT_FOUND, CL_PLATFORM_NOT_FOUND_KHR, ClError, DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED},
    platform::{Platform, get_platforms},
};
use serde::Serialize;

use super::{
    error::{DeviceError, OpenClError},
    forked::{is_forked, note_call},
    library::load_named,
    locked::locked,
    probe,
};

/// Least size in bytes of a device's largest buffer: smaller buffers hold no graph that is worth a device.
const LEAST_ALLOC: u64 = 64 << 10;
/// The least size of a work-group, of which larger ones are multiples: the kernels handle words of 32 bits.
pub(crate) const LEAST_GROUP: usize = 32;
/// Why a device that runs no such work-group can't be used.
pub(crate) const NO_GROUPS: &str = "it can't run work-groups of 32 work-items, which the kernels need: search on the CPU (--device cpu)";

/// The kind of a device, as it reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// The host's processor.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// An accelerator.
    Accelerator,
    /// Anything else.
    #[default]
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

/// An OpenCL device and the properties that it reports.
#[derive(Debug, Clone, Default, Serialize)]
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
    /// The kind of the device.
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
    /// Whether local memory is separate memory, not a part of global memory.
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
    /// Why the device can't be used; `None` if it can.
    pub unusable: Option<String>,
    /// A line by which another process finds this device: its platform, its name, and the number of earlier devices of both.
    #[serde(skip)]
    pub(super) identity: String,
    /// The platform's handle. Handles of platforms and devices live as long as the process.
    #[serde(skip)]
    pub(super) platform_id: usize,
    /// The device's handle.
    #[serde(skip)]
    pub(super) device_id: usize,
}

/// Known faults of a driver that no check finds every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownDriver {
    /// Maps, reads and writes that do not wait may fail, transfer wrong values, or crash, so all of them wait.
    pub(crate) unwaited_transfers: bool,
    /// The driver has its own cache of launched kernels. It compiles a stored binary once more for work-groups of any size, and still
    /// compiles each launched kernel. So a second cache takes twice as long and gains nothing.
    pub(crate) keeps_kernels: bool,
}

/// Known faults, by a part of the platform's name and the beginning of the driver's version.
const KNOWN_DRIVERS: &[(&str, &str, KnownDriver)] = &[
    // Mesa 22.3 forgets pointers of transfers that are under way.
    ("rusticl", "22.3", KnownDriver { unwaited_transfers: true, keeps_kernels: false }),
    ("portable computing language", "", KnownDriver { unwaited_transfers: false, keeps_kernels: true }),
];

impl DeviceInfo {
    pub(crate) fn known_driver(&self) -> KnownDriver {
        let platform = self.platform.to_lowercase();
        let found = KNOWN_DRIVERS.iter().find(|(word, version, _)| platform.contains(word) && self.driver.starts_with(version));
        found.map_or_else(KnownDriver::default, |&(_, _, known)| known)
    }
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
    /// Why it has no devices; `None` if it has some.
    pub problem: Option<String>,
}

/// The platforms in the order in which the library lists them, which may change. A platform that fails has its reason in
/// [`PlatformInfo::problem`] and does not hide the others.
///
/// # Errors
/// [`OpenClError::NoLibrary`], [`OpenClError::NamedLibrary`] and [`OpenClError::NoPlatform`]; [`OpenClError::Driver`] if a driver crashes
/// or hangs; [`OpenClError::Forked`] in a process that was forked after such a call.
pub fn platforms() -> Result<Vec<PlatformInfo>, OpenClError> {
    if is_forked() {
        return Err(OpenClError::Forked);
    }
    // Loaders find their drivers at the first call. A second thread that calls meanwhile finds no platform, or part of one and crashes
    // (ocl-icd 2.3.1, seen on slow processors).
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = locked(&ONE_AT_A_TIME);
    probe::listing(|| {
        load_named()?;
        match get_platforms().map_err(|ClError(code)| code) {
            Ok(found) if !found.is_empty() => {
                note_call();
                let mut platforms: Vec<PlatformInfo> = found.iter().map(platform).collect();
                identify(&mut platforms);
                Ok(platforms)
            }
            Ok(_) | Err(CL_PLATFORM_NOT_FOUND_KHR) => Err(OpenClError::NoPlatform),
            Err(DLOPEN_RUNTIME_LOAD_FAILED | DLOPEN_FUNCTION_NOT_AVAILABLE) => Err(OpenClError::NoLibrary),
            Err(code) => Err(DeviceError { call: "clGetPlatformIDs", code }.on("the OpenCL library")),
        }
    })
}

/// Numbers the devices of one name, since the order of platforms may change.
fn identify(platforms: &mut [PlatformInfo]) {
    let mut seen: Vec<String> = Vec::new();
    for device in platforms.iter_mut().flat_map(|platform| &mut platform.devices) {
        let name = format!("{:?} {:?}", device.platform, device.name);
        device.identity = format!("{name} #{}", 1 + seen.iter().filter(|other| **other == name).count());
        seen.push(name);
    }
}

/// The devices of all platforms. A platform that fails is logged and does not hide the others.
///
/// # Errors
/// [`OpenClError::NoLibrary`], [`OpenClError::NoPlatform`], [`OpenClError::NoDevice`]: there is no OpenCL here. The others as
/// [`platforms`].
///
/// ```
/// match socbfs::devices() {
///     Ok(devices) => devices.iter().for_each(|device| println!("{}: {:?}", device.name, device.kind)),
///     Err(none) => println!("no OpenCL: {none}"),
/// }
/// ```
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

fn platform(platform: &Platform) -> PlatformInfo {
    let (name, vendor, version) = (text(platform.name()), text(platform.vendor()), text(platform.version()));
    let (devices, problem) = match platform.get_devices(CL_DEVICE_TYPE_ALL).map_err(|ClError(code)| code) {
        Ok(ids) if !ids.is_empty() => (ids.into_iter().map(|id| device(platform, &name, &version, &Device::new(id))).collect(), None),
        Ok(_) | Err(CL_DEVICE_NOT_FOUND) => (Vec::new(), Some("no device".to_owned())),
        Err(code) => (Vec::new(), Some(DeviceError { call: "clGetDeviceIDs", code }.to_string())),
    };
    PlatformInfo { name, vendor, version, devices, problem }
}

fn device(platform: &Platform, platform_name: &str, platform_version: &str, device: &Device) -> DeviceInfo {
    let svm = device.svm_capabilities().unwrap_or(0);
    let yes = |answer: Result<bool, ClError>| answer.unwrap_or(false);
    let mut info = DeviceInfo {
        platform: platform_name.to_owned(),
        platform_version: platform_version.to_owned(),
        name: named(text(device.name()), device.vendor_id().unwrap_or(0)),
        vendor: text(device.vendor()),
        driver: text(device.driver_version()),
        version: text(device.version()),
        c_version: text(device.opencl_c_version()),
        kind: kind(device.dev_type().unwrap_or(0)),
        compute_units: device.max_compute_units().unwrap_or(0),
        max_work_group: device.max_work_group_size().unwrap_or(0),
        max_work_item_sizes: device.max_work_item_sizes().unwrap_or_default(),
        global_bytes: device.global_mem_size().unwrap_or(0),
        max_alloc_bytes: device.max_mem_alloc_size().unwrap_or(0),
        local_bytes: device.local_mem_size().unwrap_or(0),
        local_is_dedicated: device.local_mem_type().is_ok_and(|kind| kind == CL_LOCAL),
        unified_memory: yes(device.host_unified_memory()),
        svm_coarse: svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER != 0,
        svm_fine: svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0,
        base_align_bytes: device.mem_base_addr_align().unwrap_or(0) / 8,
        cacheline: device.global_mem_cacheline_size().unwrap_or(0),
        unusable: None,
        identity: String::new(),
        platform_id: platform.id() as usize,
        device_id: device.id() as usize,
    };
    info.unusable = unusable(&info, yes(device.available()), yes(device.compiler_available()), yes(device.endian_little()));
    info
}

/// The number of Qualcomm in `CL_DEVICE_VENDOR_ID`.
const QUALCOMM: u32 = 0x5143;

/// The device's name. Some drivers of Adreno GPUs give the vendor's alone, by which no board and no user would know the device.
fn named(name: String, vendor: u32) -> String {
    if vendor == QUALCOMM && ["", "QUALCOMM"].contains(&&*name) { "QUALCOMM Adreno(TM)".to_owned() } else { name }
}

/// The kind by `bits`. A device that claims to be several kinds at once (Oclgrind, the simulator, reports CPU, GPU and accelerator) counts
/// as none of them, so that it is not mistaken for a GPU.
fn kind(bits: u64) -> DeviceKind {
    match bits & (CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR) {
        CL_DEVICE_TYPE_CPU => DeviceKind::Cpu,
        CL_DEVICE_TYPE_GPU => DeviceKind::Gpu,
        CL_DEVICE_TYPE_ACCELERATOR => DeviceKind::Accelerator,
        _ => DeviceKind::Other,
    }
}

/// The reason why kernels can't run on the device.
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
        // By the standard, versions look like "OpenCL 1.2 ...". Another form is accepted.
        if version(text).is_some_and(|version| version < (1, 2)) {
            return Some(format!("it has {text}, the kernels need {what} 1.2"));
        }
    }
    if info.max_alloc_bytes < LEAST_ALLOC {
        return Some(format!("its largest buffer holds {} bytes; at least {LEAST_ALLOC} are needed", info.max_alloc_bytes));
    }
    if info.max_work_group == 0 || info.compute_units == 0 {
        return Some("its driver shows no compute units".into());
    }
    (info.max_work_group < LEAST_GROUP).then(|| NO_GROUPS.into())
}

/// The version in a text: (1, 2) for "OpenCL C 1.2 pocl".
fn version(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace().find_map(|word| {
        let (major, minor) = word.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    })
}

/// A string up to its first zero byte, trimmed, and its first 1024 characters at most; empty if the driver gave none.
fn text(answer: Result<String, ClError>) -> String {
    answer.unwrap_or_default().split('\0').next().unwrap_or_default().trim().chars().take(1024).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A device that exists nowhere.
    pub(crate) fn invented(platform: &str, name: &str, kind: DeviceKind, compute_units: u32) -> DeviceInfo {
        DeviceInfo {
            platform: platform.into(),
            platform_version: "OpenCL 1.2".into(),
            name: name.into(),
            vendor: "none".into(),
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
            identity: String::new(),
            platform_id: 0,
            device_id: 0,
        }
    }

    #[test]
    fn the_reason_why_a_device_is_unusable_is_given() {
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
        let empty = DeviceInfo { compute_units: 0, ..good.clone() };
        assert!(why(&empty, [true; 3]).contains("compute units"));
        let narrow = DeviceInfo { max_work_group: 31, ..good.clone() };
        assert!(why(&narrow, [true; 3]).contains("work-groups of 32 work-items"));
        assert_eq!(unusable(&DeviceInfo { max_work_group: 32, ..good }, true, true, true), None);
    }

    #[test]
    fn a_device_that_claims_several_kinds_is_not_a_gpu() {
        assert_eq!(kind(CL_DEVICE_TYPE_GPU | 1), DeviceKind::Gpu);
        assert_eq!(kind(CL_DEVICE_TYPE_CPU), DeviceKind::Cpu);
        assert_eq!(kind(CL_DEVICE_TYPE_ACCELERATOR), DeviceKind::Accelerator);
        assert_eq!(kind(CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR), DeviceKind::Other);
        assert_eq!(kind(0), DeviceKind::Other);
    }

    #[test]
    fn an_adreno_without_a_name_is_known_by_its_vendor() {
        assert_eq!(named("QUALCOMM".into(), QUALCOMM), "QUALCOMM Adreno(TM)");
        assert_eq!(named("FD630".into(), QUALCOMM), "FD630");
        assert_eq!(named("QUALCOMM".into(), 0), "QUALCOMM");
    }

    #[test]
    fn versions_and_texts_are_parsed() {
        assert_eq!(version("OpenCL C 3.0 "), Some((3, 0)));
        assert_eq!(version("OpenCL 1.2 v1.r26p0"), Some((1, 2)));
        assert_eq!(version("nothing"), None);
        assert_eq!(text(Ok("Mali-G52\0junk".to_owned())), "Mali-G52");
        assert_eq!(text(Ok(" pocl ".to_owned())), "pocl");
        assert_eq!(text(Err(ClError(-30))), "");
        assert_eq!(text(Ok("\u{e9}".repeat(16 << 20))), "\u{e9}".repeat(1024));
    }
}
