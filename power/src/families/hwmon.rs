//! What the drivers under `/sys/class/hwmon` have in common. The number in `hwmonN` changes from boot to boot, so a chip is identified by
//! its device.

use std::path::{Path, PathBuf};

use crate::tree::{SystemFiles, line, name_of, name_of_target};

/// A chip with a folder under `/sys/class/hwmon`.
pub(super) struct Chip {
    /// Its folder.
    pub(super) path: PathBuf,
    /// The name of its driver: `ina226`.
    pub(super) name: String,
    /// The device: `0-0040` for address 0x40 on I2C bus 0.
    pub(super) device: String,
    /// The label in its folder, or that of the device tree.
    pub(super) label: Option<String>,
}

/// The chips whose driver name `wanted` accepts.
pub(super) fn chips(tree: &SystemFiles, wanted: impl Fn(&str) -> bool) -> Vec<Chip> {
    let folders = tree.list("sys/class/hwmon", |name| name.starts_with("hwmon"));
    folders.into_iter().filter_map(|path| chip(path, &wanted)).collect()
}

fn chip(path: PathBuf, wanted: &impl Fn(&str) -> bool) -> Option<Chip> {
    let name = line(path.join("name"))?;
    wanted(&name).then(|| Chip {
        device: device_of(&path),
        label: line(path.join("label")).or_else(|| line(path.join("device/of_node/label"))),
        name,
        path,
    })
}

/// The name of the device that the class device `path` belongs to, or the last part of `path` if it has no link to one.
pub(super) fn device_of(path: &Path) -> String {
    name_of_target(&path.join("device")).unwrap_or_else(|| name_of(path))
}
