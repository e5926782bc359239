//! The devices that `--device` names.

use std::{convert::Infallible, fmt, str::FromStr};

use super::{
    error::OpenClError,
    info::{DeviceInfo, DeviceKind},
};

/// A choice of devices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The GPU with the most compute units, if there is one. Never an OpenCL device that is the CPU itself: the CPU's own engine is faster.
    #[default]
    Auto,
    /// No OpenCL at all.
    Cpu,
    /// The GPU with the most compute units. Never another device: its figures would pass for those of a GPU.
    Gpu,
    /// One device for each name. A name matches a device by its full name, else by a part of it, else by a part of its platform's name
    /// or version, all without regard to case. Of several matches, the device with the most compute units is chosen. A name that is given
    /// twice means two devices. `NAME#2` is the second match of NAME in the order of [`devices`](super::devices), among the best kind of
    /// match; `#2` is the second device of all.
    Named(Vec<String>),
}

impl FromStr for DeviceChoice {
    type Err = Infallible;

    /// `auto`, `cpu`, `gpu`, a name, or names separated by commas.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.trim().to_ascii_lowercase().as_str() {
            "auto" | "" => Self::Auto,
            "cpu" => Self::Cpu,
            "gpu" => Self::Gpu,
            _ => Self::Named(pieces(text).map(str::to_owned).collect()),
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

/// The devices among `devices` that `choice` selects: none if the CPU's own engine is to search alone.
///
/// # Errors
/// [`OpenClError::NoMatch`] if a name matches no (further) device; [`OpenClError::NoGpu`] if there is none for `gpu`;
/// [`OpenClError::Unusable`] if the only devices that match can't be used.
pub fn choose(devices: &[DeviceInfo], choice: &DeviceChoice) -> Result<Vec<DeviceInfo>, OpenClError> {
    let gpu = || largest(devices.iter().enumerate().filter(|(_, device)| device.kind == DeviceKind::Gpu && device.unusable.is_none()));
    let chosen = match choice {
        DeviceChoice::Cpu => Vec::new(),
        DeviceChoice::Auto => gpu().into_iter().collect(),
        DeviceChoice::Gpu => vec![gpu().ok_or_else(|| OpenClError::NoGpu { have: shown(devices) })?],
        DeviceChoice::Named(names) if names.is_empty() => return Err(nothing_fits(devices, ",")),
        DeviceChoice::Named(names) => {
            let mut chosen = Vec::with_capacity(names.len());
            let mut rest = &names[..];
            while !rest.is_empty() {
                // A device's own name may contain commas, as Mesa's do: "llvmpipe (LLVM 15.0.6, 256 bits)".
                let pieces = (2..=rest.len()).rev().find(|&pieces| is_whole_name(devices, &rest[..pieces].join(","))).unwrap_or(1);
                let (name, others) = rest.split_at(pieces);
                chosen.push(named(devices, &name.join(","), &chosen)?);
                rest = others;
            }
            chosen
        }
    };
    Ok(chosen.into_iter().map(|index| devices[index].clone()).collect())
}

/// The device with the most compute units; of equal ones the first.
fn largest<'a>(devices: impl Iterator<Item = (usize, &'a DeviceInfo)>) -> Option<usize> {
    devices.max_by_key(|&(index, device)| (device.compute_units, usize::MAX - index)).map(|(index, _)| index)
}

/// Whether a device matches a name (in the form that [`normal`] gives it).
type Fits = fn(&DeviceInfo, &str) -> bool;

fn in_full(device: &DeviceInfo, name: &str) -> bool {
    normal(&device.name) == name
}

fn by_device(device: &DeviceInfo, part: &str) -> bool {
    normal(&device.name).contains(part)
}

/// Tried last: "pocl" may be in the device's name, "Portable Computing Language" in the platform's.
fn by_platform(device: &DeviceInfo, part: &str) -> bool {
    [&device.platform, &device.platform_version].into_iter().any(|text| normal(text).contains(part))
}

/// The form in which names are compared: lower case, without spaces around commas.
fn normal(name: &str) -> String {
    pieces(name).collect::<Vec<_>>().join(",").to_lowercase()
}

/// The pieces of a text between commas, trimmed, without empty ones.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|piece| !piece.is_empty())
}

/// NAME and N - 1 of `NAME#N`.
fn numbered(text: &str) -> Option<(&str, usize)> {
    let (name, number) = text.rsplit_once('#')?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((name.trim_end(), number.parse::<usize>().ok()?.checked_sub(1)?))
}

fn is_whole_name(devices: &[DeviceInfo], text: &str) -> bool {
    let text = normal(text);
    let names = [Some(&*text), numbered(&text).map(|(name, _)| name)];
    names.into_iter().flatten().any(|name| devices.iter().any(|device| in_full(device, name)))
}

/// For each of the devices of these `names` (all devices, in the order of [`devices`](super::devices)), a text that [`DeviceChoice`] reads
/// as this device and no other: its name, if necessary with its number among the devices of that name.
pub fn exact_choices(names: &[&str]) -> Vec<String> {
    let normal: Vec<String> = names.iter().map(|name| normal(name)).collect();
    let exact = |(index, name): (usize, &&str)| {
        let same = |among: &[String]| among.iter().filter(|other| **other == normal[index]).count();
        // A name that is a keyword, or that ends like a number, is read as a name if a number follows it.
        let Ok(read) = name.parse::<DeviceChoice>();
        let plain = matches!(read, DeviceChoice::Named(pieces) if !pieces.is_empty()) && numbered(&normal[index]).is_none();
        if plain && same(&normal) == 1 { (*name).to_owned() } else { format!("{name}#{}", same(&normal[..=index])) }
    };
    names.iter().enumerate().map(exact).collect()
}

fn named(devices: &[DeviceInfo], text: &str, taken: &[usize]) -> Result<usize, OpenClError> {
    let wanted = normal(text);
    let all = |fits: Fits, name: &str| -> Vec<usize> {
        devices.iter().enumerate().filter(|(_, device)| fits(device, name)).map(|(index, _)| index).collect()
    };
    let unusable = |index: usize| {
        let DeviceInfo { name, unusable, .. } = &devices[index];
        OpenClError::Unusable { device: name.clone(), reason: unusable.clone().unwrap_or_default() }
    };
    let by_number = numbered(&wanted).and_then(|(name, number)| {
        let fitting = [in_full, by_device, by_platform].map(|fits: Fits| all(fits, name)).into_iter().find(|found| !found.is_empty());
        fitting?.get(number).copied()
    });
    match by_number {
        Some(index) if taken.contains(&index) => return Err(nothing_fits(devices, text)),
        Some(index) if devices[index].unusable.is_some() => return Err(unusable(index)),
        Some(index) => return Ok(index),
        // The number may be a part of a name.
        None => {}
    }
    let free = |fits: Fits| -> Vec<usize> { all(fits, &wanted).into_iter().filter(|index| !taken.contains(index)).collect() };
    let whole = free(in_full);
    let fitting = if whole.is_empty() { vec![free(by_device), free(by_platform)] } else { vec![whole] };
    let good =
        |found: &Vec<usize>| largest(found.iter().map(|&index| (index, &devices[index])).filter(|(_, device)| device.unusable.is_none()));
    fitting.iter().find_map(good).ok_or_else(|| match fitting.iter().flatten().next() {
        Some(&index) => unusable(index),
        None => nothing_fits(devices, text),
    })
}

fn nothing_fits(devices: &[DeviceInfo], wanted: &str) -> OpenClError {
    OpenClError::NoMatch { wanted: wanted.to_owned(), have: shown(devices) }
}

/// The devices for a message.
fn shown(devices: &[DeviceInfo]) -> Vec<String> {
    let shown = |device: &DeviceInfo| {
        let unusable = device.unusable.as_ref().map_or_else(String::new, |why| format!(", can't be used: {why}"));
        format!("{} ({}, {}{unusable})", device.name, device.kind, device.platform)
    };
    devices.iter().map(shown).collect()
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
    fn automatic_choices_take_the_largest_gpu() {
        assert_eq!(units(&board(), "auto"), [4]);
        assert_eq!(units(&board(), "cpu"), [0; 0]);
        assert_eq!(units(&board(), "GPU"), [4]);
        // Without a GPU that can be used, `auto` takes no device, and `gpu` is an error that names the others.
        for (devices, named) in [(&board()[..1], "pthread-cortex-a15 (CPU, Portable Computing Language)"), (&board()[3..], "no compiler")] {
            assert_eq!(units(devices, "auto"), [0; 0]);
            let error = choose(devices, &DeviceChoice::Gpu).unwrap_err();
            assert!(matches!(error, OpenClError::NoGpu { .. }) && error.to_string().contains(named), "{error}");
        }
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
    fn a_number_chooses_among_devices_of_one_name_or_platform() {
        assert_eq!(units(&board(), "Mali-T628"), [4]);
        assert_eq!(units(&board(), "Mali-T628#1"), [2]);
        assert_eq!(units(&board(), "mali#2"), [4]);
        assert_eq!(units(&board(), "mali#2, mali#1"), [4, 2]);
        assert_eq!(units(&board(), "arm platform#1"), [2]);
        assert_eq!(units(&board(), "mali#1,mali"), [2, 4]);
        assert_eq!(units(&board(), "#1,#3"), [8, 4]);
        for nobody in ["mali#3", "mali#0", "mali#", "mali#+1", "mali#2,mali#2", "#9", "adreno#1"] {
            let error = choose(&board(), &nobody.parse().unwrap()).unwrap_err();
            assert!(matches!(error, OpenClError::NoMatch { .. }), "{nobody}: {error}");
        }
        let error = choose(&board(), &"#4".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("no compiler"), "{error}");
    }

    #[test]
    fn a_full_name_takes_precedence_over_a_part_of_a_longer_one() {
        let gpu = |name: &str, units| invented("Platform", name, DeviceKind::Gpu, units);
        let devices = [gpu("Mali-G52 r1", 6), gpu("Mali-G52", 2), gpu("Mali-G52 MC2", 4)];
        assert_eq!(units(&devices, "mali-g52"), [2]);
        assert_eq!(units(&devices, "mali-g52,mali-g52"), [2, 6]);
        assert_eq!(units(&devices, "mali"), [6]);
        assert_eq!(units(&devices, "mali#3"), [4]);
        // The full match is chosen, even if it can't be used.
        let broken = [gpu("Mali-G52 r1", 6), DeviceInfo { unusable: Some("no compiler".into()), ..gpu("Mali-G52", 2) }];
        assert!(matches!(choose(&broken, &"Mali-G52".parse().unwrap()), Err(OpenClError::Unusable { .. })));
    }

    #[test]
    fn every_device_has_a_choice_that_matches_it_alone() {
        let names = [
            "Mali-T628",
            "Mali-T628",
            "MALI-T628",
            "Mali-T628 MP6",
            "Mali",
            "llvmpipe (LLVM 15.0.6, 256 bits)",
            "llvmpipe (LLVM 15.0.6",
            "256 bits)",
            "GPU",
            "cpu",
            "card#1",
            "card",
            "card",
            "",
            ",",
        ];
        let devices: Vec<DeviceInfo> = (1..).zip(names).map(|(units, name)| invented("Platform", name, DeviceKind::Gpu, units)).collect();
        let choices = exact_choices(&names);
        for (index, choice) in choices.iter().enumerate() {
            assert_eq!(units(&devices, choice), [index as u32 + 1], "{choice:?} of {choices:?}");
        }
        assert_eq!(
            choices[..6],
            ["Mali-T628#1", "Mali-T628#2", "MALI-T628#3", "Mali-T628 MP6", "Mali", "llvmpipe (LLVM 15.0.6, 256 bits)"]
        );
        assert_eq!(units(&devices, "card,llvmpipe (llvm 15.0.6,256 bits),mali"), [13, 6, 5]);
    }

    #[test]
    fn choices_are_printed_as_they_are_parsed() {
        for text in ["auto", "cpu", "gpu", "mali", "Mali,pthread", "mali#2,mali#1"] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
    }
}
