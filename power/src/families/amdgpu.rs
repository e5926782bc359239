//! GPUs of AMD through the hwmon files of their driver: `power1_average` or, in newer kernels, `power1_input`, in microwatts. A kernel may
//! have both files, of which one fails, depending on the firmware. On an APU it is the power of the whole package, so it is never added to
//! RAPL's. A chip for which the driver shows the voltage of the northbridge (`in1`) is an APU (Linux, drivers/gpu/drm/amd/pm/amdgpu_pm.c:
//! "only APUs have vddnb"); any other chip is a card.

use std::time::Duration;

use super::{
    hwmon::{Chip, chips},
    power_file,
};
use crate::{
    channel::{Channel, Domain, Family, Scope},
    part::Component,
    source::Source,
    tree::{SystemFiles, line},
};

/// The driver queries the firmware at every read; the firmware averages over a millisecond to a second, depending on the generation.
const INTERVAL: Duration = Duration::from_millis(50);

/// Every amdgpu chip of `tree` with a file of its power.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    chips(tree, |name| name == "amdgpu").iter().filter_map(source).collect()
}

fn source(chip: &Chip) -> Option<Source> {
    let paths = ["power1_average", "power1_input"].map(|name| chip.path.join(name));
    let place = paths.iter().find(|path| path.exists())?.display().to_string();
    let (domain, scope, part) = if chip.path.join("in1_label").exists() {
        (Domain::Package, Scope::CpuPackage, Component::package(0))
    } else {
        (Domain::Gpu, Scope::Card, Component::card(&chip.device))
    };
    let (id, label) = (chip.device.clone(), line(chip.path.join("power1_label")));
    let channel = Channel { domain, scope, part, ..Channel::rail(Family::Amdgpu, id, label, INTERVAL, place) };
    Some(power_file::source(channel, paths.map(|path| (vec![path], 1e-6)).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::tests::fixture::{Fixture, watts};

    #[test]
    fn either_file_name_is_read_and_an_apu_overlaps_its_package() {
        let fixture = Fixture::new();
        fixture.files(
            "sys/class/hwmon/hwmon4",
            &[("name", "amdgpu"), ("power1_input", "15012000"), ("power1_label", "PPT"), ("in1_label", "vddnb")],
        );
        fixture.link("sys/class/hwmon/hwmon4/device", "../../../0000:04:00.0");
        fixture.files("sys/class/hwmon/hwmon5", &[("name", "amdgpu"), ("power1_average", "9000000"), ("power1_input", "1")]);
        fixture.files("sys/class/hwmon/hwmon6", &[("name", "amdgpu"), ("temp1_input", "40000")]);
        let mut found = discover(&fixture.tree());
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].channels[0].name(), "amdgpu:0000:04:00.0");
        assert!((watts(&mut found[0]) - 15.012).abs() < 1e-9);
        assert!((watts(&mut found[1]) - 9.0).abs() < 1e-9);
        assert!(found[0].channels[0].part.overlaps(&Component::package(0)));
        assert_eq!((found[0].channels[0].scope, found[0].channels[0].domain), (Scope::CpuPackage, Domain::Package));
        assert!(!found[1].channels[0].part.overlaps(&Component::package(0)));
        assert_eq!((found[1].channels[0].scope, found[1].channels[0].domain), (Scope::Card, Domain::Gpu));
    }
}
