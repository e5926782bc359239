//! Why a sensor can't be used, with what cures it.

use std::{io, path::Path};

use crate::channel::Lost;

/// Why a sensor that is there can't be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// The process may not read it.
    #[error("{place} may not be read by this user")]
    Permission {
        /// The file.
        place: String,
        /// Commands that allow it.
        cure: String,
    },
    /// A file can't be opened or read.
    #[error("{place}: {reason}")]
    Unreadable {
        /// The file, device or address.
        place: String,
        /// What the system says.
        reason: Lost,
    },
    /// A channel that is switched off or not connected; the others of its chip are not touched by that.
    #[error("{place} is a dead channel: {reason}")]
    Dead {
        /// The file.
        place: String,
        /// What the system says.
        reason: Lost,
    },
    /// The vendor's kernel has switched the sensor off.
    #[error("{place} is switched off (it would read 0 W)")]
    Disabled {
        /// The file that switches it.
        place: String,
        /// The command that switches it on.
        cure: String,
    },
    /// A counter that stands still.
    #[error("it did not move in {milliseconds} ms: there is no sensor behind it")]
    Still {
        /// How long was waited.
        milliseconds: u64,
    },
    /// It never gave a valid reading.
    #[error("no valid reading in {milliseconds} ms{}", .last.map_or_else(String::new, |last| format!(" ({last})")))]
    Silent {
        /// How long was waited.
        milliseconds: u64,
        /// What the last read gave.
        last: Option<Lost>,
    },
    /// The battery does not feed the machine.
    #[error("status is {status:?}, not Discharging: the battery does not feed the machine")]
    NotDischarging {
        /// The status.
        status: String,
    },
    /// The same measurement under another name.
    #[error("the same as {of} under another name")]
    Mirror {
        /// The one to use.
        of: String,
    },
    /// A device or command answers otherwise than it should.
    #[error("{place}: {reason}")]
    Protocol {
        /// The device, address or command.
        place: String,
        /// What is wrong.
        reason: String,
    },
}

impl Unusable {
    /// What `error` means for the file `path`.
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

    /// What the user can do about it.
    pub fn cure(&self) -> Option<String> {
        match self {
            Self::Permission { cure, .. } | Self::Disabled { cure, .. } => Some(cure.clone()),
            Self::NotDischarging { .. } => Some("unplug the charger".to_owned()),
            _ => None,
        }
    }
}

/// Where the udev rule of this crate goes.
pub(crate) const UDEV_RULE: &str = "/etc/udev/rules.d/99-socbfs-power.rules";

/// The commands that let others than root read `path`.
fn permission_cure(path: &Path) -> String {
    let text = path.to_string_lossy();
    // Devices belong to a group already.
    if text.starts_with("/dev/tty") {
        return "sudo usermod -a -G dialout $USER, then log in again".to_owned();
    }
    let lasting = format!(
        "`sudo cp power/99-socbfs-power.rules {UDEV_RULE} && sudo udevadm control --reload && sudo udevadm trigger --action=add` lasts"
    );
    if text.starts_with("/dev/") {
        return format!("`sudo chmod a+rw {text}` until it is plugged in again; {lasting}");
    }
    format!("`sudo chmod a+r {text}` until the next boot; {lasting}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_error_carries_its_cure() {
        let path = Path::new("/sys/class/powercap/intel-rapl:0/energy_uj");
        let error = Unusable::io(path, &io::Error::from_raw_os_error(nix::libc::EACCES));
        let cure = error.cure().unwrap();
        assert!(cure.contains("sudo chmod a+r /sys/class/powercap/intel-rapl:0/energy_uj") && cure.contains("udevadm"), "{cure}");
        assert!(error.to_string().contains("may not be read"), "{error}");
        assert!(Unusable::io(Path::new("/dev/ttyUSB0"), &io::ErrorKind::PermissionDenied.into()).cure().unwrap().contains("dialout"));
        assert!(Unusable::io(Path::new("/dev/usbtmc0"), &io::ErrorKind::PermissionDenied.into()).cure().unwrap().contains("a+rw"));
    }

    #[test]
    fn other_errors_say_what_the_system_says() {
        let error = Unusable::io(Path::new("/x"), &io::Error::from_raw_os_error(nix::libc::ENODATA));
        assert_eq!(error.cure(), None);
        assert!(error.to_string().starts_with("/x: No data available"), "{error}");
    }
}
