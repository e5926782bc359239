//! The way to a GPU, step by step: its device file and the permission to open it, the loader, the registered drivers, and their devices.

use std::{
    ffi::OsStr,
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{Finding, NOT_TRIED, Subject};
use socbfs_machine::{list, list_numbered, name, numbered, text};

/// The result of querying the OpenCL library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenClProbe {
    /// There is no library.
    NoLibrary,
    /// The library has no device, for this reason.
    Nothing(String),
    /// The program that queried it crashed or hung.
    Crashed(String),
    /// The devices of the library.
    Devices(Vec<DeviceProbe>),
}

/// An OpenCL device that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceProbe {
    /// Its name for `--device`, with a number if other devices have the same name.
    pub name: String,
    /// Its platform.
    pub platform: String,
    /// Whether it is a GPU.
    pub gpu: bool,
    /// The fault of the device; `None`: a search on it passed validation.
    pub problem: Option<String>,
}

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let nodes = nodes(subject.root);
    let mut findings = vec![access(subject, &nodes).of("gpu-access"), library(subject, &nodes).of("opencl-library")];
    findings.extend(drivers(subject).into_iter().map(|finding| finding.of("opencl-driver")));
    findings.push(devices(subject, &nodes).of("opencl-device"));
    findings
}

/// The device files that drivers use to reach a GPU.
fn nodes(root: &Path) -> Vec<PathBuf> {
    let dev = root.join("dev");
    let own = |name: &str| {
        numbered(name, "mali")
            || numbered(name, "kgsl-3d")
            || numbered(name, "nvidia")
            || matches!(name, "nvhost-gpu" | "nvgpu" | "kfd" | "pvrsrvkm")
    };
    let mut found = list(&dev, own);
    found.extend(list_numbered(&dev.join("dri"), "renderD"));
    found
}

/// Opens a device file as a driver does. Access control lists and control groups of devices decide as well as owner, group and mode.
pub fn open_device(path: &Path) -> io::Result<()> {
    // Opening must not wait, and a terminal must not become the controlling terminal of this process.
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map(drop)
}

fn access(subject: &Subject<'_>, nodes: &[PathBuf]) -> Finding {
    if nodes.is_empty() && !subject.has("dev") {
        return Finding::unknown(NOT_TRIED);
    }
    if nodes.is_empty() {
        const NONE: &str = "no device file of a GPU (/dev/mali0, /dev/dri/renderD*, ...)";
        let works = matches!(&subject.probe.opencl, Some(OpenClProbe::Devices(devices)) if devices.iter().any(|device| device.gpu));
        return match &subject.gpus[..] {
            [gpu, ..] if !works => Finding::warning(
                format!("the GPU that the profile names ({gpu}) is not there: the kernel shows {NONE}"),
                "sudo dmesg | grep -i -e gpu -e mali -e drm    # shows why; a kernel with the GPU's driver is needed (in a container: --device /dev/dri)",
            ),
            _ => Finding::ok(format!("there is {NONE}: nothing to open")),
        };
    }
    let names = nodes.iter().map(|node| subject.place(node)).collect::<Vec<_>>().join(", ");
    for node in nodes {
        let device = subject.place(node);
        match (subject.open)(node) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(nix::libc::EACCES) => {
                let group = fs::metadata(node).ok().map(|meta| (meta.mode() & 0o060 == 0o060, group_name(subject.root, meta.gid())));
                return match group {
                    // If a group may open it, the user can join the group, unless it is root's.
                    Some((true, Some(group))) if group != "root" => Finding::warning(
                        format!("{device} is for the group {group}, and this user is not a member"),
                        format!("sudo usermod -a -G {group} $USER    # then log in again"),
                    ),
                    _ => {
                        let rule = if device.starts_with("/dev/dri/") {
                            "SUBSYSTEM==\"drm\"".to_owned()
                        } else {
                            format!("KERNEL==\"{}\"", name(node))
                        };
                        Finding::warning(
                            format!("{device} may not be opened by this user"),
                            format!(
                                "echo '{rule}, MODE=\"0660\", GROUP=\"video\"' | sudo tee /etc/udev/rules.d/98-gpu.rules && sudo udevadm control --reload && \
                                 sudo udevadm trigger && sudo usermod -a -G video $USER    # then log in again"
                            ),
                        )
                    }
                };
            }
            Err(error) if error.raw_os_error() == Some(nix::libc::EPERM) => {
                return Finding::warning(
                    format!("{device} can't be used in this container ({error})"),
                    format!("start the container with --device {device}"),
                );
            }
            Err(error) => return Finding::unknown(format!("{device}: {error}")),
        }
    }
    Finding::ok(format!("{names} may be opened"))
}

/// The name of the group `gid` in etc/group.
fn group_name(root: &Path, gid: u32) -> Option<String> {
    let groups = text(root.join("etc/group"))?;
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(gid)).then(|| name.to_owned())
    })
}

/// Folders that the dynamic linker searches.
fn library_folders(root: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        ["lib", "usr/lib", "usr/local/lib", "lib64", "usr/lib64", "vendor/lib", "vendor/lib64", "system/vendor/lib64"]
            .map(|folder| root.join(folder))
            .into();
    // Debian's folders by architecture, such as aarch64-linux-gnu.
    for parent in ["lib", "usr/lib", "usr/local/lib"] {
        folders.extend(list(&root.join(parent), |name| name.contains("-linux-")));
    }
    for file in list(&root.join("etc/ld.so.conf.d"), |name| name.ends_with(".conf")) {
        let text = text(&file).unwrap_or_default();
        folders
            .extend(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(|line| root.join(line.trim_start_matches('/'))));
    }
    folders
}

/// The path of the library `wanted` (a path or a name), if it exists.
fn find_library(root: &Path, wanted: &str) -> Option<PathBuf> {
    if wanted.starts_with('/') {
        let path = root.join(wanted.trim_start_matches('/'));
        return path.exists().then_some(path);
    }
    library_folders(root).into_iter().map(|folder| folder.join(wanted)).find(|path| path.exists())
}

/// File names of the loader, or of a driver that is its own loader.
const LOADERS: [&str; 3] = ["libOpenCL.so.1", "libOpenCL.so", "libOpenCL_adreno.so"];

/// Drivers that are their own loader, so they need no file that registers them.
const LONE_DRIVERS: [&str; 3] = ["libmali.so", "libMali.so", "libGLES_mali.so"];

fn library(subject: &Subject<'_>, nodes: &[PathBuf]) -> Finding {
    match &subject.probe.opencl {
        Some(OpenClProbe::Nothing(problem)) if problem.starts_with("OPENCL_DYLIB_PATH names") => {
            return Finding::warning(problem, "unset OPENCL_DYLIB_PATH    # or name a library that can be opened");
        }
        _ => {}
    }
    if let Some(opened) = &subject.probe.library {
        return Finding::ok(opened.display().to_string());
    }
    let wanted = subject.opencl_library.as_ref().map(|wanted| wanted.to_string_lossy());
    let found = match &wanted {
        Some(wanted) => find_library(subject.root, wanted),
        None => LOADERS.iter().find_map(|name| find_library(subject.root, name)),
    };
    if let Some(path) = found {
        let path = subject.place(&path);
        // A library that exists but can't be opened is for another architecture, or one of its own libraries is missing.
        if subject.probe.opencl == Some(OpenClProbe::NoLibrary) {
            return Finding::warning(
                format!("{path} exists, but can't be used"),
                format!("ldd {path}    # shows what it lacks (a static socbfs opens none)"),
            );
        }
        return Finding::ok(path);
    }
    if let Some(wanted) = wanted {
        return Finding::warning(format!("OPENCL_DYLIB_PATH names {wanted}, which does not exist"), "unset OPENCL_DYLIB_PATH");
    }
    if let Some(path) = LONE_DRIVERS.iter().find_map(|name| find_library(subject.root, name)) {
        let path = subject.place(&path);
        return Finding::warning(
            format!("no libOpenCL.so.1, but {path}, which may be a driver without a loader"),
            format!("export OPENCL_DYLIB_PATH={path}"),
        );
    }
    // The linker's cache may contain folders that were not searched here.
    if matches!(subject.probe.opencl, Some(OpenClProbe::Devices(_) | OpenClProbe::Nothing(_) | OpenClProbe::Crashed(_))) {
        return Finding::ok("found by the linker");
    }
    match nodes.first() {
        None if !subject.has("usr") && !subject.has("lib") => Finding::unknown(NOT_TRIED),
        None => Finding::ok("none, and no GPU that would need one: searches run on the CPU"),
        Some(node) => Finding::warning(
            format!("no libOpenCL.so.1, but a GPU at {}: searches run on the CPU alone", subject.place(node)),
            "sudo apt-get install ocl-icd-libopencl1    # and the driver of the chip's vendor",
        ),
    }
}

/// Checks every file that registers a driver for the loader.
fn drivers(subject: &Subject<'_>) -> Vec<Finding> {
    let set = subject.icd_vendors.as_deref();
    let vendors = set.map_or_else(|| subject.root.join("etc/OpenCL/vendors"), |set| relative(subject.root, set));
    let files = if vendors.is_file() { vec![vendors.clone()] } else { list(&vendors, |name| name.ends_with(".icd")) };
    if files.is_empty() && !subject.has("etc") {
        return vec![Finding::unknown(NOT_TRIED)];
    }
    if files.is_empty() {
        let from = if set.is_some() { " (OCL_ICD_VENDORS)" } else { "" };
        // Without a GPU, this is not a fault. With one, the check of the devices gives the cure.
        return vec![Finding::ok(format!("none is registered in {}{from}", subject.place(&vendors)))];
    }
    let mut findings: Vec<Finding> = files
        .iter()
        .filter_map(|file| {
            let shown = subject.place(file);
            let content = text(file).unwrap_or_default();
            let wanted = content.trim_matches(is_stray);
            if wanted.is_empty() {
                return Some(Finding::warning(
                    format!("{shown} names no library"),
                    format!("cat {shown}    # it must hold one line: the driver's library"),
                ));
            }
            if let Some(character) = stray(&content, wanted) {
                return Some(Finding::warning(
                    format!(
                        "{shown} has {character} the library's name; OpenCL's loaders take it for a part of the name, and find nothing"
                    ),
                    format!(
                        "sudo sed -i 's/^\\xef\\xbb\\xbf//; s/^[[:space:]]*//; s/[[:space:]]*$//; /^$/d' {shown}    # leaves the name alone"
                    ),
                ));
            }
            match ((subject.load)(wanted), find_library(subject.root, wanted)) {
                (Some(Ok(())), _) | (None, Some(_)) => return None,
                (Some(Err(why)), Some(path)) => {
                    let path = subject.place(&path);
                    return Some(Finding::warning(
                        format!("{shown} names {wanted}, which can't be used: {why}"),
                        format!("ldd {path}    # shows what it lacks; or export OPENCL_DYLIB_PATH={path}, if it is its own loader"),
                    ));
                }
                (_, None) => {}
            }
            Some(Finding::warning(
                format!("{shown} names {wanted}, which is not in any folder of libraries"),
                format!(
                    "find / -name '{}*' 2>/dev/null    # write its path into {shown}, or install the driver again",
                    name(Path::new(wanted))
                ),
            ))
        })
        .collect();
    if findings.is_empty() {
        let names = files.iter().map(|file| name(file)).collect::<Vec<_>>().join(", ");
        findings.push(Finding::ok(format!("{names}: every library that they name can be used")));
    }
    findings
}

/// Whether `c` is no part of a library's name at either end of it. (The last one is the byte order mark of some editors.)
fn is_stray(c: char) -> bool {
    c.is_whitespace() || c.is_control() || c == '\u{feff}'
}

/// Describes the first character in the `content` of a file that a loader takes for a part of the name `wanted`. Loaders (ocl-icd's and
/// Khronos's) take the whole content, except an end of line at its end.
fn stray(content: &str, wanted: &str) -> Option<String> {
    let named = content.strip_suffix('\n').unwrap_or(content);
    let (before, behind) = named.split_once(wanted)?;
    let inside = |c: &char| c.is_control();
    let (c, place) = (before.chars().next().map(|c| (c, "before")))
        .or_else(|| behind.chars().next().map(|c| (c, "behind")))
        .or_else(|| wanted.chars().find(inside).map(|c| (c, "in")))?;
    Some(match c {
        ' ' => format!("a blank {place}"),
        '\r' => format!("a carriage return (\\r) {place}"),
        '\n' => format!("a further end of line (\\n) {place}"),
        '\t' => format!("a tab {place}"),
        _ => format!("the character U+{:04X} {place}", u32::from(c)),
    })
}

/// `path` of the environment below `root`. A relative one begins in the current folder.
fn relative(root: &Path, path: &OsStr) -> PathBuf {
    let path = Path::new(path);
    path.strip_prefix("/").map_or_else(|_| path.to_owned(), |inside| root.join(inside))
}

fn devices(subject: &Subject<'_>, nodes: &[PathBuf]) -> Finding {
    let Some(probe) = &subject.probe.opencl else {
        return Finding::unknown(NOT_TRIED);
    };
    let driver = "install the driver of the chip's vendor; Mesa's (sudo apt-get install mesa-opencl-icd) supports some GPUs, \
                  with RUSTICL_ENABLE set";
    let why_none = |reason: &str| match nodes.first() {
        None => Finding::ok(format!("none ({reason}), and no GPU that would need one: searches run on the CPU")),
        Some(node) => Finding::warning(format!("{reason}, but there is a GPU at {}", subject.place(node)), driver),
    };
    match probe {
        OpenClProbe::NoLibrary => why_none("no OpenCL library"),
        OpenClProbe::Nothing(reason) => why_none(reason),
        OpenClProbe::Crashed(how) => Finding::problem(
            format!("a driver ends the program: {how}"),
            "export OCL_ICD_VENDORS=/nonexistent    # disables all drivers; then name a folder with one .icd file at a time",
        ),
        OpenClProbe::Devices(devices) => tried(devices, || why_none("no device")),
    }
}

/// The finding about searches on the devices. A GPU that does not work is a warning even if a CPU device works.
fn tried(devices: &[DeviceProbe], none: impl Fn() -> Finding) -> Finding {
    let shown = |device: &DeviceProbe| format!("{} ({})", device.name, device.platform);
    if let Some((device, problem)) = devices.iter().find_map(|device| Some((device, device.problem.as_ref()?))) {
        return Finding::warning(
            format!("a search on {} failed: {problem}", shown(device)),
            format!(
                "socbfs run grid:32x32 --root 0 --policy tg --device '{}' -vv    # prints more; --device cpu searches without it",
                device.name
            ),
        );
    }
    if devices.is_empty() {
        return none();
    }
    let names = devices.iter().map(shown).collect::<Vec<_>>().join(", ");
    let kind = if devices.iter().any(|device| device.gpu) { "" } else { "; none is a GPU" };
    Finding::ok(format!("a search passed validation on {names}{kind}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::doctor::{
        Verdict,
        tests::{Machine, of},
    };

    fn found(machine: &Machine) -> Vec<Finding> {
        machine.check(check, |_| ())
    }

    fn probed(machine: &Machine, probe: OpenClProbe) -> Vec<Finding> {
        machine.check(check, |subject| subject.probe.opencl = Some(probe.clone()))
    }

    fn mode(machine: &Machine, path: &str, mode: u32) {
        machine.file(path, "");
        fs::set_permissions(machine.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn machines_without_a_gpu_need_no_opencl() {
        let machine = Machine::new(&[("dev/null", ""), ("etc/group", ""), ("usr/lib/README", "")]);
        for finding in probed(&machine, OpenClProbe::NoLibrary) {
            assert_eq!(finding.verdict, Verdict::Ok, "{finding:?}");
        }
        // A copy without these folders does not show what is in them.
        for finding in found(&Machine::new(&[])) {
            assert_eq!((finding.verdict, &*finding.reason), (Verdict::Unknown, NOT_TRIED), "{finding:?}");
        }
    }

    #[test]
    fn a_gpu_that_the_profile_names_and_the_kernel_does_not_show_is_a_warning() {
        let machine = Machine::new(&[("dev/null", "")]);
        let access = |probe: Option<OpenClProbe>| {
            let findings = machine.check(check, |subject| {
                subject.gpus = vec!["Mali-G52*".into()];
                subject.probe.opencl.clone_from(&probe);
            });
            of(&findings, "gpu-access").clone()
        };
        let missing = access(None);
        assert!(missing.verdict == Verdict::Warning && missing.reason.contains("(Mali-G52*) is not there"), "{missing:?}");
        let device = |gpu| OpenClProbe::Devices(vec![DeviceProbe { name: "d".into(), platform: "P".into(), gpu, problem: None }]);
        assert_eq!(access(Some(device(false))).verdict, Verdict::Warning);
        // A driver reaches it by a file of another name.
        assert_eq!(access(Some(device(true))).verdict, Verdict::Ok);
        machine.file("dev/mali0", "");
        assert!(access(None).reason.contains("/dev/mali0"));
    }

    #[test]
    fn device_files_without_permission_are_reported_with_their_group() {
        let machine = Machine::new(&[]);
        mode(&machine, "dev/dri/renderD128", 0o660);
        let own = fs::metadata(machine.path("dev/dri/renderD128")).unwrap();
        machine.file("etc/group", &format!("video:x:44:\nrender:x:{}:\n", own.gid()));
        let findings = found(&machine);
        let finding = of(&findings, "gpu-access");
        assert!(
            finding.verdict == Verdict::Warning && finding.reason.contains("/dev/dri/renderD128 is for the group render"),
            "{finding:?}"
        );
        assert_eq!(finding.cure.as_deref(), Some("sudo usermod -a -G render $USER    # then log in again"));
        let findings = machine.check(check, |subject| subject.open = |_| Ok(()));
        assert_eq!(of(&findings, "gpu-access").verdict, Verdict::Ok);
        // A device that only root may open needs a rule.
        mode(&machine, "dev/mali0", 0o600);
        let findings = found(&machine);
        let finding = of(&findings, "gpu-access");
        assert!(finding.reason.contains("/dev/mali0") && finding.cure.as_ref().unwrap().contains("KERNEL==\"mali0\""), "{finding:?}");
    }

    #[test]
    fn device_files_of_this_machine_are_opened() {
        let machine = Machine::new(&[]);
        mode(&machine, "dev/mali0", 0o600);
        let findings = machine.check(check, |subject| subject.open = open_device);
        assert_eq!(of(&findings, "gpu-access").verdict, Verdict::Ok);
        mode(&machine, "dev/mali0", 0o000);
        let findings = machine.check(check, |subject| subject.open = open_device);
        let expected = if nix::unistd::geteuid().is_root() { Verdict::Ok } else { Verdict::Warning };
        assert_eq!(of(&findings, "gpu-access").verdict, expected);
    }

    #[test]
    fn a_gpu_without_a_library_is_a_warning() {
        let machine = Machine::new(&[("dev/mali0", "")]);
        let findings = found(&machine);
        let finding = of(&findings, "opencl-library");
        assert!(finding.verdict == Verdict::Warning && finding.cure.as_ref().unwrap().contains("ocl-icd-libopencl1"), "{finding:?}");
        machine.file("usr/lib/arm-linux-gnueabihf/libmali.so", "");
        let findings = found(&machine);
        let cure = of(&findings, "opencl-library").cure.clone().unwrap();
        assert_eq!(cure, "export OPENCL_DYLIB_PATH=/usr/lib/arm-linux-gnueabihf/libmali.so");
        machine.file("opt/vendor/libOpenCL.so.1", "");
        machine.file("etc/ld.so.conf.d/vendor.conf", "# ours\n/opt/vendor\n");
        let findings = found(&machine);
        assert_eq!(of(&findings, "opencl-library").reason, "/opt/vendor/libOpenCL.so.1");
        let findings = probed(&machine, OpenClProbe::NoLibrary);
        assert!(of(&findings, "opencl-library").cure.as_ref().unwrap().starts_with("ldd /opt/vendor/"), "{findings:?}");
    }

    #[test]
    fn the_library_named_in_the_environment_must_exist() {
        let machine = Machine::new(&[("opt/libmali.so", "")]);
        let with = |path: &str| machine.check(check, |subject| subject.opencl_library = Some(path.into()));
        assert_eq!(of(&with("/opt/libmali.so"), "opencl-library").verdict, Verdict::Ok);
        assert_eq!(of(&with("/opt/none.so"), "opencl-library").cure.as_deref(), Some("unset OPENCL_DYLIB_PATH"));
        let unusable = machine.check(check, |subject| {
            subject.opencl_library = Some("/opt/libmali.so".into());
            subject.probe.opencl = Some(OpenClProbe::NoLibrary);
        });
        assert_eq!(of(&unusable, "opencl-library").verdict, Verdict::Warning);
    }

    #[test]
    fn registered_drivers_must_exist() {
        let machine = Machine::new(&[("etc/OpenCL/vendors/mali.icd", "libmali.so.1\n"), ("etc/OpenCL/vendors/README", "x")]);
        let findings = found(&machine);
        let finding = of(&findings, "opencl-driver");
        assert!(finding.verdict == Verdict::Warning && finding.reason.contains("mali.icd names libmali.so.1"), "{finding:?}");
        machine.file("usr/lib/libmali.so.1", "");
        assert_eq!(of(&found(&machine), "opencl-driver").verdict, Verdict::Ok);
        machine.file("etc/OpenCL/vendors/pocl.icd", "/opt/pocl/libpocl.so\n");
        machine.file("etc/OpenCL/vendors/void.icd", "\n");
        assert_eq!(found(&machine).iter().filter(|finding| finding.check == "opencl-driver").count(), 2);
        let elsewhere = machine.check(check, |subject| subject.icd_vendors = Some("/nowhere".into()));
        assert!(of(&elsewhere, "opencl-driver").reason.contains("/nowhere (OCL_ICD_VENDORS)"), "{elsewhere:?}");
        // One file instead of a folder.
        let one = machine.check(check, |subject| subject.icd_vendors = Some("/etc/OpenCL/vendors/mali.icd".into()));
        assert!(of(&one, "opencl-driver").reason.starts_with("mali.icd"), "{one:?}");
    }

    #[test]
    fn characters_around_the_name_of_a_library_are_reported() {
        let machine = Machine::new(&[("usr/lib/libpocl.so.2.10.0", ""), ("usr/lib/my driver.so", "")]);
        for (content, character) in [
            ("libpocl.so.2.10.0\n", None),
            ("libpocl.so.2.10.0", None),
            ("/usr/lib/my driver.so\n", None),
            ("libpocl.so.2.10.0\r\n", Some("a carriage return (\\r) behind")),
            ("libpocl.so.2.10.0 \n", Some("a blank behind")),
            ("libpocl.so.2.10.0\t", Some("a tab behind")),
            (" libpocl.so.2.10.0\n", Some("a blank before")),
            ("\nlibpocl.so.2.10.0\n", Some("a further end of line (\\n) before")),
            ("libpocl.so.2.10.0\n\n", Some("a further end of line (\\n) behind")),
            ("\u{feff}libpocl.so.2.10.0\n", Some("the character U+FEFF before")),
            ("libpocl.so.2.10.0\0", Some("the character U+0000 behind")),
            ("libpocl.so.2.10.0\nlibmali.so\n", Some("a further end of line (\\n) in")),
        ] {
            machine.file("etc/OpenCL/vendors/pocl.icd", content);
            let findings = found(&machine);
            let finding = of(&findings, "opencl-driver");
            match character {
                None => assert_eq!(finding.verdict, Verdict::Ok, "{content:?}: {finding:?}"),
                Some(character) => assert!(
                    finding.verdict == Verdict::Warning
                        && finding.reason.starts_with(&format!("/etc/OpenCL/vendors/pocl.icd has {character} the library's name")),
                    "{content:?}: {finding:?}"
                ),
            }
        }
        // The cure leaves a file that loaders read.
        machine.file("etc/OpenCL/vendors/pocl.icd", "\u{feff} libpocl.so.2.10.0 \r\n\n");
        let cure = of(&found(&machine), "opencl-driver").cure.clone().unwrap();
        let path = machine.path("etc/OpenCL/vendors/pocl.icd");
        let command = cure.replace("sudo ", "").replace("/etc/OpenCL/vendors/pocl.icd", path.to_str().unwrap());
        assert!(std::process::Command::new("sh").args(["-c", &command]).status().unwrap().success(), "{command}");
        assert_eq!(fs::read_to_string(path).unwrap(), "libpocl.so.2.10.0\n");
    }

    #[test]
    fn devices_are_judged_by_a_search() {
        let device = |name: &str, gpu, problem: Option<&str>| DeviceProbe {
            name: name.into(),
            platform: "P".into(),
            gpu,
            problem: problem.map(str::to_owned),
        };
        let machine = Machine::new(&[("dev/mali0", "")]);
        let findings = probed(&machine, OpenClProbe::Devices(vec![device("Mali", true, None), device("cpu", false, None)]));
        assert_eq!(of(&findings, "opencl-device").reason, "a search passed validation on Mali (P), cpu (P)");
        let findings = probed(&machine, OpenClProbe::Devices(vec![device("cpu", false, None)]));
        assert!(of(&findings, "opencl-device").reason.ends_with("none is a GPU"));
        let findings = probed(&machine, OpenClProbe::Devices(vec![device("cpu", false, None), device("Mali", true, Some("no compiler"))]));
        let finding = of(&findings, "opencl-device");
        assert!(finding.verdict == Verdict::Warning && finding.reason.contains("Mali (P) failed: no compiler"), "{finding:?}");
        let findings = probed(&machine, OpenClProbe::Nothing("no driver".into()));
        assert!(of(&findings, "opencl-device").reason.contains("no driver, but there is a GPU at /dev/mali0"));
        assert_eq!(of(&findings, "opencl-device").verdict, Verdict::Warning);
        // Every search that looks for a device would crash.
        let findings = probed(&machine, OpenClProbe::Crashed("killed by signal 11".into()));
        assert_eq!(of(&findings, "opencl-device").verdict, Verdict::Problem);
    }
}
