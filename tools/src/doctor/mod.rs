//! Faults of this machine that prevent a search, slow it, or spoil its figures, each with the command that cures it.
//!
//! Most checks read files below a root directory (`/` on a running system, any folder in a test). What only a running machine can show is
//! in a [`Probe`], which the caller makes, since it may start programs. What can't be read is [`Verdict::Unknown`], never a guess: a
//! container hides much.

mod cpu;
mod load;
mod memory;
mod opencl;
mod sensors;
mod thermal;

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use serde::Serialize;

pub use cpu::online_cpus;
pub use load::{Busy, busiest};
pub use opencl::{DeviceProbe, OpenClProbe, open_device};
pub use sensors::SensorProbe;

use socbfs_boards::board::Detection;
use socbfs_machine::is_live;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No fault.
    Ok,
    /// The check can't be made here.
    Unknown,
    /// A search works, but not as fast or as evenly as it could.
    Warning,
    /// A search does not work.
    Problem,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub check: &'static str,
    /// Its result.
    pub verdict: Verdict,
    /// The reason, in one line.
    pub reason: String,
    /// The commands that cure the fault.
    pub cure: Option<String>,
}

impl Finding {
    /// A finding of a check that is yet to be [`named`](Self::of).
    fn new(verdict: Verdict, reason: impl Into<String>, cure: Option<String>) -> Self {
        Self { check: "", verdict, reason: reason.into(), cure }
    }

    fn ok(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, reason, None)
    }

    fn unknown(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Unknown, reason, None)
    }

    fn warning(reason: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(Verdict::Warning, reason, Some(cure.into()))
    }

    fn problem(reason: impl Into<String>, cure: impl Into<String>) -> Self {
        Self::new(Verdict::Problem, reason, Some(cure.into()))
    }

    fn of(self, check: &'static str) -> Self {
        Self { check, ..self }
    }
}

/// A check, and its name.
type Check = (&'static str, fn(&Subject<'_>) -> Finding);

/// Runs checks, each of which makes one finding.
fn run(checks: &[Check], subject: &Subject<'_>) -> Vec<Finding> {
    checks.iter().map(|(name, check)| check(subject).of(name)).collect()
}

/// What only a running machine can show. `None`: not tried.
#[derive(Debug, Clone, Default)]
pub struct Probe {
    /// The result of a search on the CPU.
    pub search: Option<Result<(), String>>,
    /// The result of trying the OpenCL devices.
    pub opencl: Option<OpenClProbe>,
    /// The file of the OpenCL library that was opened for that.
    pub library: Option<PathBuf>,
    /// The result of trying the power sensors.
    pub sensors: Option<SensorProbe>,
    /// The programs that took most of the processor's time, the busiest first.
    pub busy: Option<Vec<Busy>>,
}

/// A machine to examine.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// The root directory of its files.
    pub root: &'a Path,
    /// Whether this user is root.
    pub is_root: bool,
    /// Opens a device file.
    pub open: fn(&Path) -> io::Result<()>,
    /// Number of CPUs that a search may run on.
    pub usable_cpus: usize,
    /// The detected board.
    pub board: &'a Detection,
    /// The profile that is used instead of that of the detected board, if the user has named one.
    pub profile: Option<&'a str>,
    /// Names of the GPUs that the profile in force describes.
    pub gpus: Vec<String>,
    /// Loads a driver, by the path or name of its library, in another process. `None`: not tried.
    pub load: fn(&str) -> Option<Result<(), String>>,
    /// The value of `OPENCL_DYLIB_PATH`, if the user has set it.
    pub opencl_library: Option<OsString>,
    /// The value of `OCL_ICD_VENDORS`.
    pub icd_vendors: Option<OsString>,
    /// The results of what was tried on it.
    pub probe: Probe,
}

/// The results of all checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Name of the format.
    pub schema: &'static str,
    /// Version of the format.
    pub schema_version: u32,
    /// Whether a search works: `false` if a check found a problem that prevents it, and `None` if none did but no search was tried.
    pub works: Option<bool>,
    /// The findings, in the order of the checks.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    fn of(findings: Vec<Finding>) -> Self {
        let any = |is: &dyn Fn(&Finding) -> bool| findings.iter().any(is);
        let works = match any(&|finding| finding.verdict == Verdict::Problem) {
            true => Some(false),
            false => (!any(&|finding| finding.check == SEARCH && finding.verdict == Verdict::Unknown)).then_some(true),
        };
        Self { schema: "socbfs-doctor", schema_version: 1, works, findings }
    }
}

impl Subject<'_> {
    /// Whether files in the top folder `name` can be looked for. A copy of another machine's files may be without the folder.
    fn has(&self, name: &str) -> bool {
        is_live(self.root) || self.root.join(name).exists()
    }

    /// A path below the root as it is on the machine.
    fn place(&self, path: &Path) -> String {
        path.strip_prefix(self.root).map_or_else(|_| path.display().to_string(), |inside| format!("/{}", inside.display()))
    }
}

/// Runs every check.
pub fn examine(subject: &Subject<'_>) -> Diagnosis {
    let mut findings = run(&[(SEARCH, search), ("board", |subject| board(subject.board, subject.profile))], subject);
    findings.extend(opencl::check(subject));
    for checks in [sensors::CHECKS, cpu::CHECKS, thermal::CHECKS, memory::CHECKS, &[("load", load::check)]] {
        findings.extend(run(checks, subject));
    }
    Diagnosis::of(findings)
}

/// The check that tries a search.
const SEARCH: &str = "search";

/// Why a check that needs a running machine was not made.
const NOT_TRIED: &str = "not tried: these are another machine's files";

fn search(subject: &Subject<'_>) -> Finding {
    match &subject.probe.search {
        None => Finding::unknown(NOT_TRIED),
        Some(Ok(())) => Finding::ok("a search on the CPU passed validation"),
        Some(Err(reason)) => Finding::problem(
            format!("a search on the CPU failed: {reason}"),
            "socbfs run grid:32x32 --root 0 --device cpu --simd scalar -vv    # if that works, --simd scalar avoids the problem",
        ),
    }
}

fn board(detection: &Detection, named: Option<&str>) -> Finding {
    let detected = format!("{}: {}", detection.name, detection.reason);
    let reason =
        named.map_or_else(|| format!("profile {detected}"), |named| format!("profile {named}, as asked for (detected is {detected})"));
    // An unknown board is not a fault: most machines are not known boards, and the generic profile suits them.
    Finding::ok(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs_boards::board::detect;

    /// A folder with the files of a test's machine.
    pub(super) struct Machine(tempfile::TempDir);

    impl Machine {
        pub(super) fn new(files: &[(&str, &str)]) -> Self {
            // Whatever its name holds, it is no part of the names below it.
            let machine = Self(tempfile::Builder::new().prefix("trip_point_0_type").tempdir().unwrap());
            for (path, text) in files {
                machine.file(path, text);
            }
            machine
        }

        pub(super) fn file(&self, path: &str, text: &str) {
            let path = self.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        pub(super) fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        /// What `checks` find, after `change` was applied to the subject.
        pub(super) fn run(&self, checks: &[Check], change: impl Fn(&mut Subject<'_>)) -> Vec<Finding> {
            self.check(|subject| run(checks, subject), change)
        }

        /// What `check` finds, after `change` was applied to the subject.
        pub(super) fn check<T>(&self, check: impl Fn(&Subject<'_>) -> T, change: impl Fn(&mut Subject<'_>)) -> T {
            let board = detect(self.0.path()).unwrap();
            let mut subject = Subject {
                root: self.0.path(),
                is_root: false,
                open: |_| Err(io::Error::from_raw_os_error(nix::libc::EACCES)),
                usable_cpus: 4,
                board: &board,
                profile: None,
                gpus: Vec::new(),
                load: |_| None,
                opencl_library: None,
                icd_vendors: None,
                probe: Probe::default(),
            };
            change(&mut subject);
            check(&subject)
        }
    }

    #[test]
    fn a_named_profile_is_shown_beside_the_detected_one() {
        let reason = |profile| Machine::new(&[]).check(|subject| board(subject.board, profile).reason, |_| ());
        let detected = reason(None);
        assert!(detected.starts_with("profile generic: "), "{detected}");
        let named = reason(Some("own.toml"));
        assert_eq!(named, format!("profile own.toml, as asked for (detected is {})", detected.trim_start_matches("profile ")));
    }

    /// The finding of one check.
    pub(super) fn of<'f>(findings: &'f [Finding], check: &str) -> &'f Finding {
        findings.iter().find(|finding| finding.check == check).unwrap_or_else(|| panic!("no {check} in {findings:#?}"))
    }

    #[test]
    fn machines_without_files_give_no_warnings() {
        let diagnosis = Machine::new(&[]).check(examine, |_| ());
        // A search that was not tried does not work for certain.
        assert_eq!(diagnosis.works, None);
        assert_eq!(Machine::new(&[]).check(examine, |subject| subject.probe.search = Some(Ok(()))).works, Some(true));
        for finding in &diagnosis.findings {
            assert!(matches!(finding.verdict, Verdict::Ok | Verdict::Unknown), "{finding:?}");
            assert!(!finding.reason.is_empty() && !finding.reason.contains('\n'), "{finding:?}");
        }
    }

    #[test]
    fn every_warning_has_a_cure() {
        let machine = Machine::new(&[
            ("proc/loadavg", "9.00 5.00 1.00 1/100 7\n"),
            ("proc/meminfo", "MemTotal: 2000000 kB\nMemAvailable: 100000 kB\nSwapTotal: 1000000 kB\nSwapFree: 0 kB\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
            ("sys/devices/system/cpu/present", "0-3\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
            ("dev/mali0", ""),
        ]);
        let diagnosis = machine.check(examine, |_| ());
        let warnings: Vec<&Finding> = diagnosis.findings.iter().filter(|finding| finding.verdict == Verdict::Warning).collect();
        assert!(warnings.len() >= 7, "{warnings:#?}");
        assert!(warnings.iter().all(|finding| finding.cure.as_ref().is_some_and(|cure| !cure.is_empty())), "{warnings:#?}");
    }

    #[test]
    fn a_search_that_fails_is_a_problem() {
        let diagnosis = Machine::new(&[]).check(examine, |subject| subject.probe.search = Some(Err("killed by signal 4".into())));
        let finding = of(&diagnosis.findings, "search");
        assert_eq!((finding.verdict, diagnosis.works), (Verdict::Problem, Some(false)));
        assert!(finding.reason.contains("signal 4") && finding.cure.is_some());
    }
}
