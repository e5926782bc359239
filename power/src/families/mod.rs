//! The families of sensors. One file has all whose driver is under hwmon; each other family has one.

pub mod external;
pub mod hwmon;
pub mod iio_ina2xx;
pub mod jetson_iio;
#[cfg(feature = "nvml")]
pub mod nvml;
pub mod odpm;
pub mod odroid_ina231;
pub mod perf;
mod power_file;
pub mod power_supply;
pub mod powercap;
pub mod smartpower2;
pub mod smartpower3;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
pub mod vcgencmd;
pub mod wt310;

use crate::{Family, Source, SystemFiles};

/// Every sensor that can be found in `tree`, usable or not, family by family. Meters on a serial line, USB or the network are not
/// searched for: the user names them, and [`open`] opens them.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    [
        powercap::discover(tree),
        perf::discover(tree),
        hwmon::discover(tree),
        odroid_ina231::discover(tree),
        jetson_iio::discover(tree),
        iio_ina2xx::discover(tree),
        odpm::discover(tree),
        power_supply::discover(tree),
        vcgencmd::discover(tree),
        #[cfg(feature = "nvml")]
        if tree.is_live() { nvml::discover() } else { Vec::new() },
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Opens the meter of `family` at `place` (`None` if sensors of this family are discovered and not named by a place).
pub fn open(family: Family, place: &str) -> Option<Source> {
    match family {
        Family::Smartpower2 => Some(smartpower2::open(place)),
        Family::Smartpower3 => Some(smartpower3::open(place)),
        Family::Wt310 => Some(wt310::open(place)),
        Family::External => Some(external::open(place)),
        _ => None,
    }
}
