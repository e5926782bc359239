//! The calibration in force: the file that was named, or the calibration of this machine and these settings.

use std::{
    env, io,
    path::{Path, PathBuf},
    sync::Once,
};

use super::{Costs, Origin, Runtime, RuntimeError};
use crate::{
    board::DocumentError,
    measure::{Calibration, Identity, OpenClIdentity},
};
use socbfs::{Simd, memory::SharingMode, opencl::DeviceInfo};
use socbfs_machine as machine;
use socbfs_policy::{Objective, Policy};

/// The calibration to use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CalibrationChoice {
    /// The calibration of this machine and these settings, if there is one.
    #[default]
    Auto,
    /// No calibration.
    Off,
    /// This file.
    File(PathBuf),
}

impl From<&str> for CalibrationChoice {
    fn from(text: &str) -> Self {
        match text {
            "auto" => Self::Auto,
            "off" => Self::Off,
            file => Self::File(file.into()),
        }
    }
}

/// A calibration that is valid for this machine and these settings.
#[derive(Debug, Clone)]
pub struct FoundCalibration {
    /// The calibration.
    pub calibration: Calibration,
    /// Its file.
    pub file: PathBuf,
}

/// The folder of the user's calibrations: `$XDG_CONFIG_HOME/socbfs/calibration`, else `~/.config/socbfs/calibration`. `None` if
/// neither variable is set.
pub fn folder() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = match variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute()) {
        Some(base) => base,
        None => variable("HOME")?.join(".config"),
    };
    Some(base.join("socbfs/calibration"))
}

/// The text of a calibration for `file`. A text that could not be read again is refused, since later searches would fail on it.
///
/// # Errors
/// [`RuntimeError::Unwritable`], and [`RuntimeError::Calibration`] if the text could not be read again.
pub fn text(calibration: &Calibration, file: &Path) -> Result<String, RuntimeError> {
    let text = calibration.to_toml().map_err(RuntimeError::Unwritable)?;
    Calibration::parse(&text, &file.display().to_string()).map_err(RuntimeError::Calibration)?;
    Ok(text)
}

impl Runtime {
    /// The identity that a calibration must have to be valid here, for searches that also use this device in this sharing mode.
    pub fn identity(&self, device: Option<(&DeviceInfo, SharingMode)>) -> Identity {
        let root = Path::new("/");
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        Identity {
            board: self.profile.name().to_owned(),
            cpu_model: machine::cpu_model(root),
            kernel: machine::kernel(root),
            threads: Some(self.team().value).filter(|&threads| threads > 0).unwrap_or(available),
            cpus: self.cpus.value.numbers().to_vec(),
            simd: self.simd.value.unwrap_or_else(Simd::detect),
            device: device.map(|(info, memory_way)| OpenClIdentity {
                name: info.name.clone(),
                platform: info.platform.clone(),
                driver: info.driver.clone(),
                compute_units: self.limits(info).units(info),
                memory_way,
                work_group: self.group_asked(info),
            }),
        }
    }

    /// The calibration for searches that also use `device`, in this sharing mode if one is given (else in that of the calibration).
    ///
    /// # Errors
    /// [`RuntimeError`]: a calibration or a policy that can't be used here.
    pub fn calibration(&self, device: Option<(&DeviceInfo, Option<SharingMode>)>) -> Result<Option<FoundCalibration>, RuntimeError> {
        let mut here = self.identity(device.map(|(info, way)| (info, way.unwrap_or(SharingMode::Copy))));
        let file = match &self.calibration.value {
            CalibrationChoice::Off => None,
            CalibrationChoice::File(file) => Some(file.clone()),
            CalibrationChoice::Auto => folder().map(|folder| folder.join(here.file_name())),
        };
        let Some(file) = file else { return Ok(None) };
        let calibration = match Calibration::load(&file) {
            Ok(calibration) => calibration,
            Err(DocumentError::Read { source, .. })
                if source.kind() == io::ErrorKind::NotFound && self.calibration.value == CalibrationChoice::Auto =>
            {
                return Ok(None);
            }
            Err(error) => return Err(RuntimeError::Calibration(error)),
        };
        // Without a setting for the sharing mode, or for the size of a work-group, the calibration decides.
        if let (Some((info, way)), Some(here), Some(calibrated)) = (device, &mut here.device, &calibration.identity.device) {
            if way.is_none() && self.permits(info, calibrated.memory_way) {
                here.memory_way = calibrated.memory_way;
            }
            here.work_group = here.work_group.or(calibrated.work_group);
        }
        if let Some(difference) = calibration.identity.difference(&here) {
            static TOLD: Once = Once::new();
            TOLD.call_once(|| {
                log::warn!("calibration {} is not used: {difference}; `socbfs calibrate` makes a new one", file.display());
            });
            return Ok(None);
        }
        Ok(Some(FoundCalibration { calibration, file }))
    }

    /// Whether the policy takes costs, bounds or weights from a calibration.
    pub fn wants_calibration(&self) -> bool {
        self.wants_costs() || self.plain_network().is_some()
    }

    /// Whether the policy can minimise the objective.
    pub fn wants_objective(&self) -> bool {
        matches!(self.policy.value, Policy::Auto(_) | Policy::CostModel(_))
    }

    /// Whether the policy may place levels on a device by calibrated costs.
    pub fn wants_costs(&self) -> bool {
        self.wants_objective() || self.policy.value.adaptive().is_some()
    }

    /// The calibration that a search would use. It opens no device.
    ///
    /// # Errors
    /// [`RuntimeError`]: a calibration or a policy that can't be used here.
    pub fn calibration_in_force(&self) -> Result<Option<FoundCalibration>, RuntimeError> {
        // The search reports a device that is not available.
        let found = self.chosen().unwrap_or_default();
        if found.is_empty() && !self.wants_calibration() {
            return Ok(None);
        }
        self.calibration(found.first().map(|info| (info, self.way_asked(info))))
    }

    /// Checks, before the work begins, what would make a search fail: a calibration that can't be read, or unknown powers.
    ///
    /// # Errors
    /// [`RuntimeError`]: a calibration or a policy that can't be used here.
    pub fn check_calibration(&self) -> Result<(), RuntimeError> {
        if let CalibrationChoice::File(file) = &self.calibration.value {
            Calibration::load(file).map_err(RuntimeError::Calibration)?;
        }
        if self.objective.value == Objective::Time {
            return Ok(());
        }
        let found = self.calibration_in_force()?;
        let with_device = found.as_ref().is_some_and(|found| found.calibration.identity.device.is_some());
        self.choose(found.as_ref(), with_device, Costs::default()).map(|_| ())
    }

    /// The calibration in words, with its origin.
    pub fn calibration_shown(&self, found: Option<&FoundCalibration>) -> (String, Origin) {
        match (&self.calibration.value, found) {
            (CalibrationChoice::Off, _) => ("off".to_owned(), self.calibration.origin),
            (CalibrationChoice::File(_), Some(found)) => (found.file.display().to_string(), self.calibration.origin),
            (CalibrationChoice::Auto, Some(found)) => (found.file.display().to_string(), Origin::Calibration),
            (CalibrationChoice::File(file), None) => (format!("{} (not used)", file.display()), self.calibration.origin),
            (CalibrationChoice::Auto, None) => ("none".to_owned(), self.calibration.origin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::example;
    use crate::runtime::testing::invented;
    use crate::{
        board::Board,
        runtime::{Profile, Setting},
    };
    use socbfs::opencl::DeviceKind;

    #[test]
    fn a_choice_is_auto_off_or_a_file() {
        assert_eq!(CalibrationChoice::from("auto"), CalibrationChoice::Auto);
        assert_eq!(CalibrationChoice::from("off"), CalibrationChoice::Off);
        assert_eq!(CalibrationChoice::from("./off"), CalibrationChoice::File("./off".into()));
    }

    #[test]
    fn a_calibration_applies_to_its_device_and_permitted_sharing_modes() {
        let device = |compute_units| {
            let mut info = invented("p", "Mali-G610", DeviceKind::Gpu, compute_units);
            (info.svm_coarse, info.svm_fine) = (true, true);
            info
        };
        let (info, other) = (device(4), device(2));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        let runtime = |text: &str| {
            let board = Board::parse(text, "b.toml").unwrap();
            let profile = Profile { board, text: text.to_owned().into(), place: "b.toml".into(), origin: Origin::Board, reason: "".into() };
            Runtime { calibration: Setting::flag(CalibrationChoice::File(file.clone())), ..Runtime::new(profile) }
        };
        let plain = runtime("schema = 1\n[board]\nname = 'b'\n");
        let quirk = runtime("schema = 1\n[board]\nname = 'b'\n[[opencl.devices]]\nname = 'Mali*'\nquirks = ['not-coherent']\n");
        let write = |memory_way| {
            let calibration = Calibration { identity: plain.identity(Some((&info, memory_way))), ..example() };
            std::fs::write(&file, text(&calibration, &file).unwrap()).unwrap();
        };
        let holds = |runtime: &Runtime, info: &DeviceInfo| runtime.calibration(Some((info, None))).unwrap().is_some();
        write(SharingMode::SvmFine);
        assert!(holds(&plain, &info));
        assert!(!holds(&quirk, &info), "its speeds are those of a way that this board rules out");
        assert!(!holds(&plain, &other), "the other device of this name");
        write(SharingMode::SvmCoarse);
        assert!(holds(&plain, &info) && holds(&quirk, &info));
    }
}
