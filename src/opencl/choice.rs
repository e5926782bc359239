//! Which device is meant.

use std::{convert::Infallible, fmt, str::FromStr};

use super::{
    error::OpenClError,
    info::{DeviceInfo, DeviceKind},
};

/// A wish for a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The GPU with the most compute units, else none. Never an OpenCL device that is the CPU itself: the CPU's own engine is faster.
    #[default]
    Auto,
    /// No OpenCL at all.
    Cpu,
    /// The GPU with the most compute units, else any OpenCL device.
    Gpu,
    /// For each name one device: a part of its name, else of its platform's, in any case. A name that stands twice means two devices.
    Named(Vec<String>),
}

impl FromStr for DeviceChoice {
    type Err = Infallible;

    /// `auto`, `cpu`, `gpu`, a name, or names between commas.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.trim().to_ascii_lowercase().as_str() {
            "auto" | "" => Self::Auto,
            "cpu" => Self::Cpu,
            "gpu" => Self::Gpu,
            _ => Self::Named(text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()),
        })
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Cpu => f.pad("cpu"),
            Self::Gpu => f.pad("gpu"),
            Self::Named(names) => f.pad(&names.join(",")),
        }
    }
}

/// The devices of `devices` that `choice` means: none where the CPU's own engine shall search alone.
///
/// # Errors
/// [`OpenClError::NoMatch`] where a name fits no (further) device, or no device can be had for `gpu`;
/// [`OpenClError::Unusable`] where the only ones that fit can't be used.
pub fn choose(devices: &[DeviceInfo], choice: &DeviceChoice) -> Result<Vec<DeviceInfo>, OpenClError> {
    let gpu = || largest(devices.iter().enumerate().filter(|(_, device)| device.kind == DeviceKind::Gpu && device.unusable.is_none()));
    let chosen = match choice {
        DeviceChoice::Cpu => Vec::new(),
        DeviceChoice::Auto => gpu().into_iter().collect(),
        DeviceChoice::Gpu => {
            let any = || largest(devices.iter().enumerate().filter(|(_, device)| device.unusable.is_none()));
            vec![gpu().or_else(any).ok_or_else(|| nothing_fits(devices, "gpu"))?]
        }
        DeviceChoice::Named(names) if names.is_empty() => return Err(nothing_fits(devices, ",")),
        DeviceChoice::Named(names) => {
            let mut chosen = Vec::with_capacity(names.len());
            for name in names {
                chosen.push(named(devices, name, &chosen)?);
            }
            chosen
        }
    };
    Ok(chosen.into_iter().map(|index| devices[index].clone()).collect())
}

/// The device of most compute units; of equal ones the first.
fn largest<'a>(devices: impl Iterator<Item = (usize, &'a DeviceInfo)>) -> Option<usize> {
    devices.max_by_key(|&(index, device)| (device.compute_units, usize::MAX - index)).map(|(index, _)| index)
}

fn named(devices: &[DeviceInfo], name: &str, taken: &[usize]) -> Result<usize, OpenClError> {
    let wanted = name.to_lowercase();
    let free = || devices.iter().enumerate().filter(|(index, _)| !taken.contains(index));
    // A platform's name is second choice: "pocl" may stand in the one, "Portable Computing Language" in the other.
    let by_device = |device: &DeviceInfo| device.name.to_lowercase().contains(&wanted);
    let by_platform =
        |device: &DeviceInfo| [&device.platform, &device.platform_version].into_iter().any(|text| text.to_lowercase().contains(&wanted));
    let good = |device: &DeviceInfo| device.unusable.is_none();
    let fits = largest(free().filter(|(_, device)| good(device) && by_device(device)))
        .or_else(|| largest(free().filter(|(_, device)| good(device) && by_platform(device))));
    match fits {
        Some(index) => Ok(index),
        None => match free().find(|(_, device)| by_device(device) || by_platform(device)) {
            Some((_, device)) => {
                Err(OpenClError::Unusable { device: device.name.clone(), reason: device.unusable.clone().unwrap_or_default() })
            }
            None => Err(nothing_fits(devices, name)),
        },
    }
}

fn nothing_fits(devices: &[DeviceInfo], wanted: &str) -> OpenClError {
    let have = devices.iter().map(|device| format!("{} ({}, {})", device.name, device.kind, device.platform)).collect();
    OpenClError::NoMatch { wanted: wanted.to_owned(), have }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opencl::info::tests::invented;

    fn board() -> Vec<DeviceInfo> {
        vec![
            invented("Portable Computing Language", "pthread-cortex-a15", DeviceKind::Cpu, 8),
            invented("ARM Platform", "Mali-T628", DeviceKind::Gpu, 2),
            invented("ARM Platform", "Mali-T628", DeviceKind::Gpu, 4),
            DeviceInfo { unusable: Some("no compiler".into()), ..invented("Broken", "Vivante", DeviceKind::Gpu, 64) },
        ]
    }

    fn units(devices: &[DeviceInfo], choice: &str) -> Vec<u32> {
        choose(devices, &choice.parse().unwrap()).unwrap().iter().map(|device| device.compute_units).collect()
    }

    #[test]
    fn automatic_choices() {
        assert_eq!(units(&board(), "auto"), [4]);
        assert_eq!(units(&board(), "cpu"), [0; 0]);
        assert_eq!(units(&board(), "GPU"), [4]);
        // Without a GPU: auto takes none, gpu takes what there is.
        assert_eq!(units(&board()[..1], "auto"), [0; 0]);
        assert_eq!(units(&board()[..1], "gpu"), [8]);
        assert_eq!(units(&board()[3..], "auto"), [0; 0]);
        assert!(matches!(choose(&board()[3..], &DeviceChoice::Gpu), Err(OpenClError::NoMatch { .. })));
    }

    #[test]
    fn names_choose_devices_then_platforms() {
        assert_eq!(units(&board(), "mali"), [4]);
        assert_eq!(units(&board(), "mali,mali"), [4, 2]);
        assert_eq!(units(&board(), "MALI, pthread"), [4, 8]);
        assert_eq!(units(&board(), "portable"), [8]);
        let error = choose(&board(), &"mali,mali,mali".parse().unwrap()).unwrap_err();
        assert!(matches!(error, OpenClError::NoMatch { .. }), "{error}");
        let error = choose(&board(), &"adreno".parse().unwrap()).unwrap_err().to_string();
        for word in ["adreno", "Mali-T628", "pthread", "Vivante"] {
            assert!(error.contains(word), "{error}");
        }
        assert!(matches!(choose(&board(), &" , ".parse().unwrap()), Err(OpenClError::NoMatch { .. })));
        let error = choose(&board(), &"vivante".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("no compiler"), "{error}");
    }

    #[test]
    fn choices_are_written_as_they_are_read() {
        for text in ["auto", "cpu", "gpu", "mali", "Mali,pthread"] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
    }
}
