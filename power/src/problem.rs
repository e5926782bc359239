//! Why a sensor can't be used, and what the user can do about it.

use std::{
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{Lost, Watts};

/// Why a sensor that was found can't be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// The process lacks the permission to read the file.
    #[error("{place} may not be read by this user")]
    Permission {
        /// The file.
        place: String,
        /// Commands that give the permission.
        cure: String,
    },
    /// A file can't be opened or read.
    #[error("{place}: {reason}")]
    Unreadable {
        /// The file, device or address.
        place: String,
        /// Why the read failed.
        reason: Lost,
    },
    /// The channel is switched off or not connected. Other channels of its chip may still be usable.
    #[error("{place} is a dead channel: {reason}")]
    Dead {
        /// The file.
        place: String,
        /// Why the read failed.
        reason: Lost,
    },
    /// The sensor is switched off in the vendor's kernel.
    #[error("{place} is switched off (it would read 0 W)")]
    Disabled {
        /// The file that switches it.
        place: String,
        /// The command that switches it on.
        cure: String,
    },
    /// The counter stands still.
    #[error("its value did not change in {milliseconds} ms: there is no sensor behind it")]
    Still {
        /// Length of the wait.
        milliseconds: u64,
    },
    /// The sensor never gave a valid reading.
    #[error("no valid reading in {milliseconds} ms{}", .last.map_or_else(String::new, |last| format!(" ({last})")))]
    Silent {
        /// Length of the wait.
        milliseconds: u64,
        /// Why the last read gave no value.
        last: Option<Lost>,
    },
    /// The machine runs, and a sensor of all of it, or a sum of sensors, reads no power.
    #[error("reads {watts}, and a power must be above 0")]
    NoPower {
        /// What it reads.
        watts: Watts,
    },
    /// The battery does not feed the machine.
    #[error("status is {status:?}, not Discharging: the battery does not feed the machine")]
    NotDischarging {
        /// Its status.
        status: String,
    },
    /// It is the same measurement as another sensor.
    #[error("the same as {of} under another name")]
    Mirror {
        /// The sensor to use instead.
        of: String,
    },
    /// A device or command gives an unexpected answer.
    #[error("{place}: {reason}")]
    Protocol {
        /// The device, address or command.
        place: String,
        /// What is wrong.
        reason: String,
    },
}

impl Unusable {
    /// The problem for an `error` at the file `path`.
    pub fn io(path: &Path, error: &io::Error) -> Self {
        let place = path.display().to_string();
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let cure = permission_cure(path);
                Self::Permission { place, cure }
            }
            _ => Self::Unreadable { place, reason: error.into() },
        }
    }

    /// The problem of `watts` that are read while the machine runs (`None`: there is none). Every result is judged here.
    pub fn of_power(watts: Watts) -> Option<Self> {
        if watts.0 > 0.0 { None } else { Some(Self::NoPower { watts }) }
    }

    /// What the user can do about it.
    pub fn cure(&self) -> Option<String> {
        match self {
            Self::Permission { cure, .. } | Self::Disabled { cure, .. } => Some(cure.clone()),
            Self::NotDischarging { .. } => Some("unplug the charger".to_owned()),
            Self::NoPower { watts } if watts.0 < 0.0 => {
                Some("if its shunt is the wrong way round, correct that in a board profile: `sign = -1` of its rail".to_owned())
            }
            _ => None,
        }
    }
}

/// The udev rule of this crate.
const UDEV_RULE: &str = include_str!("../70-socbfs-power.rules");

/// File name of the rule. It comes before 73-seat-late.rules, where systemd gives users access to what is tagged `uaccess` by then.
const UDEV_NAME: &str = "70-socbfs-power.rules";

/// The group that may read the processor's counters. The rule names it, and the Debian package creates it.
const GROUP: &str = "socbfs-power";

/// Folders of udev rules, relative to the root; the first is for the administrator's rules.
const UDEV_FOLDERS: [&str; 3] = ["etc/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d"];

/// The commands that let users other than root read `path`.
fn permission_cure(path: &Path) -> String {
    let text = path.to_string_lossy();
    // Serial ports already belong to a group.
    if text.starts_with("/dev/tty") {
        return "sudo usermod -a -G dialout $USER, then log in again".to_owned();
    }
    if text.ends_with("/energy_value") {
        return "run it as root (`su`): Android's SELinux keeps this file for the system".to_owned();
    }
    let found = root_and_subsystem(path);
    if let Some((root, subsystem @ "powercap")) = &found {
        // Only a group gets access, since these counters reveal what programs of other users do.
        let join = format!("sudo usermod -a -G {GROUP} $USER");
        let before = if zones_are_open(root, path) { String::new() } else { format!("{} && ", lasting_cure(root, subsystem)) };
        return format!("`{before}{join}`, then log in again");
    }
    let at_once = if text.starts_with("/dev/") {
        format!("`sudo chmod a+rw {text}` until it is plugged in again")
    } else {
        format!("`sudo chmod a+r {text}` until the next boot")
    };
    match found {
        Some((root, subsystem)) => format!("{at_once}; `{}` lasts", lasting_cure(&root, subsystem)),
        None => at_once,
    }
}

/// Whether the rule has been applied to the counter `path` and to those of all other zones below `root`. A zone that stays closed would
/// give the next error.
fn zones_are_open(root: &Path, path: &Path) -> bool {
    let mode = |counter: &Path| std::fs::metadata(counter).ok().map(|metadata| metadata.mode() & 0o7777);
    let zones = std::fs::read_dir(root.join("sys/class/powercap")).into_iter().flatten().flatten();
    mode(path) == Some(0o440) && zones.filter_map(|zone| mode(&zone.path().join("energy_uj"))).all(|mode| mode == 0o440)
}

/// The root of the tree that holds `path`, and its udev subsystem (`None` if the rule does not cover `path`).
fn root_and_subsystem(path: &Path) -> Option<(PathBuf, &'static str)> {
    let names: Vec<_> = path.components().collect();
    let last = |wanted: &str| names.iter().rposition(|name| name.as_os_str() == wanted);
    let usbtmc = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("usbtmc"));
    let (end, subsystem) = match (last("sys"), last("dev")) {
        (Some(sys), _) if last("powercap").is_some_and(|powercap| powercap > sys) => (sys, "powercap"),
        (_, Some(dev)) if usbtmc => (dev, "usbmisc"),
        _ => return None,
    };
    Some((names[..end].iter().collect(), subsystem))
}

/// The commands after which udev opens the files of `subsystem` at every boot. If the rule is already installed (a package does that), it
/// only has to be applied.
fn lasting_cure(root: &Path, subsystem: &str) -> String {
    let trigger = format!("sudo udevadm trigger --action=add --subsystem-match={subsystem}");
    if UDEV_FOLDERS.iter().any(|folder| root.join(folder).join(UDEV_NAME).exists()) {
        return trigger;
    }
    // The program may be installed alone, so the command contains the rule instead of copying a file.
    let lines = UDEV_RULE.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let lines = lines.map(|line| format!(" '{line}'")).collect::<String>();
    let group = if subsystem == "powercap" { format!("sudo groupadd -f --system {GROUP} && ") } else { String::new() };
    format!("{group}printf '%s\\n'{lines} | sudo tee /{}/{UDEV_NAME} && sudo udevadm control --reload && {trigger}", UDEV_FOLDERS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_error_carries_its_cure() {
        let path = Path::new("/sys/class/powercap/intel-rapl:0/energy_uj");
        let denied = io::Error::from_raw_os_error(nix::libc::EACCES);
        let error = Unusable::io(path, &denied);
        let cure = error.cure().unwrap();
        assert!(cure.ends_with("sudo usermod -a -G socbfs-power $USER`, then log in again"), "{cure}");
        assert!(!cure.contains("a+r"), "the counters tell of other users' programs: {cure}");
        assert!(error.to_string().contains("may not be read"), "{error}");
        assert!(Unusable::io(Path::new("/dev/ttyUSB0"), &io::ErrorKind::PermissionDenied.into()).cure().unwrap().contains("dialout"));
        assert!(Unusable::io(Path::new("/sys/bus/iio/devices/iio:device0/energy_value"), &denied).cure().unwrap().contains("SELinux"));
        assert!(Unusable::io(Path::new("/dev/usbtmc0"), &io::ErrorKind::PermissionDenied.into()).cure().unwrap().contains("a+rw"));
    }

    #[test]
    fn the_lasting_cure_names_only_existing_files() {
        let root = tempfile::tempdir().unwrap();
        let denied = io::Error::from_raw_os_error(nix::libc::EACCES);
        let cure = |path: &str| Unusable::io(&root.path().join(path), &denied).cure().unwrap();
        let written = cure("sys/class/powercap/intel-rapl:0/energy_uj");
        // The command contains the whole rule, quoted for a shell.
        assert!(
            written.starts_with(
                r#"`sudo groupadd -f --system socbfs-power && printf '%s\n' 'SUBSYSTEM=="powercap", ACTION=="add", RUN+="/bin/chgrp -f socbfs-power /sys%p/energy_uj", RUN+="/bin/chmod -f 0440 /sys%p/energy_uj"' 'SUBSYSTEM=="usbmisc", "#
            ),
            "{written}"
        );
        assert!(written.contains("' | sudo tee /etc/udev/rules.d/70-socbfs-power.rules && sudo udevadm control --reload && "), "{written}");
        let end =
            "sudo udevadm trigger --action=add --subsystem-match=powercap && sudo usermod -a -G socbfs-power $USER`, then log in again";
        assert!(written.ends_with(end), "{written}");
        assert!(!written.contains("sudo cp") && !written.contains(['#', '\n']) && written.matches('\'').count() == 6, "{written}");
        assert!(cure("dev/usbtmc0").ends_with("--subsystem-match=usbmisc` lasts"));
        assert!(UDEV_NAME < "73-seat-late.rules", "its tag would come too late");
        // The rule does not cover hwmon.
        assert!(!cure("sys/class/hwmon/hwmon0/power1_input").contains("udevadm"));
        for folder in ["usr/lib/udev/rules.d", "lib/udev/rules.d", "etc/udev/rules.d"] {
            let rule = root.path().join(folder).join("70-socbfs-power.rules");
            std::fs::create_dir_all(rule.parent().unwrap()).unwrap();
            std::fs::write(&rule, "").unwrap();
            let triggered = cure("sys/class/powercap/intel-rapl:0/energy_uj");
            assert_eq!(triggered, format!("`{end}"));
            std::fs::remove_file(&rule).unwrap();
        }
        assert_eq!(cure("sys/class/powercap/intel-rapl:0/energy_uj"), written);
        // The rule has been applied, and only the user is missing in the group.
        let counter = root.path().join("sys/class/powercap/intel-rapl:0/energy_uj");
        std::fs::create_dir_all(counter.parent().unwrap()).unwrap();
        std::fs::write(&counter, "1").unwrap();
        std::fs::set_permissions(&counter, std::os::unix::fs::PermissionsExt::from_mode(0o440)).unwrap();
        let join = "`sudo usermod -a -G socbfs-power $USER`, then log in again";
        assert_eq!(cure("sys/class/powercap/intel-rapl:0/energy_uj"), join);
        // The rule has been applied to one zone of two, so the cure opens the other as well.
        let other = root.path().join("sys/class/powercap/intel-rapl:1/energy_uj");
        std::fs::create_dir_all(other.parent().unwrap()).unwrap();
        std::fs::write(&other, "1").unwrap();
        for zone in ["intel-rapl:0", "intel-rapl:1"] {
            assert_eq!(cure(&format!("sys/class/powercap/{zone}/energy_uj")), written);
        }
        std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o440)).unwrap();
        assert_eq!(cure("sys/class/powercap/intel-rapl:0/energy_uj"), join);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_command_of_the_cure_prints_the_rule_unchanged() {
        let cure = lasting_cure(Path::new("/nonexistent"), "usbmisc");
        let (print, _) = cure.split_once(" | sudo tee ").unwrap();
        let output = std::process::Command::new("sh").args(["-c", print]).output().unwrap();
        let rules: String = UDEV_RULE.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
        assert_eq!((String::from_utf8(output.stdout).unwrap(), rules.lines().count()), (rules, 2));
    }

    #[test]
    fn other_errors_contain_the_message_of_the_system() {
        let error = Unusable::io(Path::new("/x"), &io::Error::from_raw_os_error(nix::libc::ENODATA));
        assert_eq!(error.cure(), None);
        assert!(error.to_string().starts_with("/x: No data available"), "{error}");
    }
}
