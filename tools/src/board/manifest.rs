//! One file with all that Linux reports of a machine, so that tests on other machines, and other people, see the same.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::symlink,
    path::{Component, Path},
};

use serde::{Deserialize, Serialize};

use socbfs::words::line_at;
use socbfs_boards::board::DocumentError;
use socbfs_machine as machine;

/// The files of a manifest, one a line, with at most one `*` in a name. They identify the machine, or show its sensors, clocks,
/// temperatures and load.
const FILES: &str = include_str!("manifest.txt");

/// Sensors that are named by the device to which a link of theirs leads.
const OF_DEVICES: &[&str] = &["sys/bus/iio/devices/iio*", "sys/class/hwmon/hwmon*"];

/// What a manifest has at a path.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    /// A file with this text.
    Text(String),
    /// A symbolic link.
    Link {
        /// The path to which it leads, from the folder of the link.
        link: String,
    },
}

/// The files below `root` that detection, new profiles, sensors and the doctor read, as TOML: each file's content by its path. None of them
/// contains a serial number or an address.
///
/// # Errors
/// If a text can't be written as TOML.
pub fn manifest(root: &Path) -> Result<String, toml::ser::Error> {
    const HEAD: &str = "# What Linux shows on this machine: each file by its path, and what is in it.\n\n";
    let mut entries = BTreeMap::new();
    // Most systems have the device tree at both paths.
    let is_twin = |path: &str| path.starts_with("sys/firmware/") && root.join("proc/device-tree/compatible").exists();
    for path in FILES.lines().flat_map(|file| matching(root, file)).filter(|path| !is_twin(path)) {
        if let Some(text) = machine::text(root.join(&path)) {
            entries.insert(path, Entry::Text(text));
        }
    }
    for path in OF_DEVICES.iter().flat_map(|folder| matching(root, folder)) {
        let folder = root.join(&path);
        // The device of hwmon is the target of its link. That of IIO is the folder in which the sensor lies: 2-0044.
        let above = || Some(machine::name(fs::canonicalize(&folder).ok()?.parent()?)).filter(|name| name.contains('-'));
        let device = fs::read_link(folder.join("device")).ok().map(|target| machine::name(&target)).or_else(above);
        if let Some(device) = device.filter(|name| !name.is_empty()) {
            entries.insert(format!("{path}/device"), Entry::Link { link: format!("../{device}") });
        }
        // The device itself is not in the manifest.
        let label = ["device/of_node/label", "of_node/label"].iter().find_map(|label| machine::text(folder.join(label)));
        if let Some(label) = label {
            entries.entry(format!("{path}/label")).or_insert(Entry::Text(label));
        }
    }
    Ok(format!("{HEAD}{}", toml::to_string_pretty(&entries)?))
}

/// The paths below `root` that fit `pattern`.
fn matching(root: &Path, pattern: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for part in pattern.split('/') {
        let inside = |base: String| {
            let names = match part.split_once('*') {
                None => vec![part.to_owned()],
                Some((start, end)) => {
                    let fits = |name: &str| name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end));
                    machine::list(&root.join(&base), fits).iter().map(|path| machine::name(path)).collect()
                }
            };
            names.into_iter().map(move |name| if base.is_empty() { name } else { format!("{base}/{name}") })
        };
        found = found.into_iter().flat_map(inside).collect();
    }
    found
}

/// Why a manifest can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It is not a manifest, or has a path that leads out of the folder.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A file of it can't be written.
    #[error("{path} can't be written")]
    Write {
        /// The file.
        path: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

/// Writes the files of the manifest `text` below `folder`, which is empty. `file` names the manifest in errors. No file is written outside
/// of `folder`, and no link leads out of it.
///
/// # Errors
/// [`ManifestError`] with the line of what is wrong.
pub fn unpack(text: &str, file: &str, folder: &Path) -> Result<(), ManifestError> {
    let entries: BTreeMap<toml::Spanned<String>, Entry> = toml::from_str(text).map_err(|error| DocumentError::parse(text, file, &error))?;
    let refuse = |key: &toml::Spanned<String>, message: &str| {
        let line = line_at(text, key.span().start);
        DocumentError::Parse { file: file.to_owned(), line, message: format!("{:?} {message}", key.get_ref()) }
    };
    if entries.is_empty() {
        let message = "it lists no file; `socbfs board manifest` writes a manifest".to_owned();
        return Err(DocumentError::Parse { file: file.to_owned(), line: 1, message }.into());
    }
    // Nothing lies behind a link, so a path means what it says.
    let links: Vec<&str> =
        entries.iter().filter(|(_, entry)| matches!(entry, Entry::Link { .. })).map(|(key, _)| &**key.get_ref()).collect();
    for (key, entry) in &entries {
        let path = Path::new(key.get_ref());
        if key.get_ref().is_empty() || !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(refuse(key, "is not the path of a file below /, such as \"proc/cpuinfo\"").into());
        }
        if path.ancestors().skip(1).any(|above| links.iter().any(|link| Path::new(link) == above)) {
            return Err(refuse(key, "lies behind a link").into());
        }
        if let Entry::Link { link } = entry {
            let target = Path::new(link);
            let up = target.components().take_while(|part| *part == Component::ParentDir).count();
            let rest = target.components().skip(up).all(|part| matches!(part, Component::Normal(_)));
            if up >= path.components().count() || !rest || link.is_empty() {
                return Err(refuse(key, "is a link that leads out of the machine's files").into());
            }
        }
    }
    for (key, entry) in &entries {
        let path = folder.join(key.get_ref());
        let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = parent.and_then(|()| match entry {
            Entry::Text(text) => fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)
                .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes())),
            Entry::Link { link } => symlink(link, &path),
        });
        written.map_err(|source| ManifestError::Write { path: key.get_ref().clone(), source })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use socbfs_power::{Channel, SystemFiles, discover};

    use super::*;

    fn unpacked(text: &str) -> Result<tempfile::TempDir, String> {
        let folder = tempfile::tempdir().unwrap();
        unpack(text, "m.toml", folder.path()).map(|()| folder).map_err(|error| error.to_string())
    }

    /// `manifest` finds every file of the test machines, and no other.
    #[test]
    fn the_manifest_lists_every_file_of_a_test_machine() {
        let mut machines = 0;
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/board")).unwrap() {
            let path = entry.unwrap().path();
            let kept = fs::read_to_string(&path).unwrap();
            let machine = unpacked(&kept).unwrap();
            let written = manifest(machine.path()).unwrap();
            assert_eq!(written.parse::<toml::Table>().unwrap(), kept.parse().unwrap(), "{}", path.display());
            machines += 1;
        }
        assert!(machines > 10);
        assert!(manifest(Path::new("/nonexistent")).unwrap().parse::<toml::Table>().unwrap().is_empty());
    }

    #[test]
    fn the_sensors_of_a_manifest_are_those_of_the_machine() {
        let machine = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = machine.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let link = |path: &str, target: &str| {
            let path = machine.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        };
        // As on a running system: folders of classes are links to devices.
        for (path, text) in [
            ("sys/devices/i2c-0/0-0040/hwmon/hwmon3/name", "ina231\n"),
            ("sys/devices/i2c-0/0-0040/hwmon/hwmon3/power1_input", "18000000\n"),
            ("sys/devices/i2c-0/0-0040/of_node/label", "VDD_ARM\0"),
            ("sys/devices/i2c-2/2-0044/iio:device0/name", "ina226\n"),
            ("sys/devices/i2c-2/2-0044/iio:device0/in_power2_raw", "2880\n"),
            ("sys/devices/i2c-2/2-0044/iio:device0/in_power2_scale", "6.25\n"),
            ("sys/devices/BAT0/type", "Battery\n"),
            ("sys/devices/BAT0/status", "Discharging\n"),
            ("sys/devices/BAT0/power_now", "8200000\n"),
            ("sys/devices/BAT0/serial_number", "4711\n"),
            ("sys/class/powercap/intel-rapl:0/name", "package-0\n"),
            ("sys/class/powercap/intel-rapl:0/energy_uj", "5\n"),
        ] {
            file(path, text);
        }
        link("sys/class/hwmon/hwmon3", "../../devices/i2c-0/0-0040/hwmon/hwmon3");
        link("sys/devices/i2c-0/0-0040/hwmon/hwmon3/device", "../../../0-0040");
        link("sys/bus/iio/devices/iio:device0", "../../../devices/i2c-2/2-0044/iio:device0");
        link("sys/class/power_supply/BAT0", "../../devices/BAT0");
        let sensors = |root: &Path| -> Vec<(String, Option<String>, bool)> {
            let seen = |channel: &Channel, works: bool| (channel.name(), channel.label.clone(), works);
            discover(&SystemFiles::new(root)).iter().map(|source| seen(&source.channels[0], source.sensor.is_ok())).collect()
        };
        let text = manifest(machine.path()).unwrap();
        let there = sensors(machine.path());
        assert_eq!(
            there.iter().map(|sensor| &*sensor.0).collect::<Vec<_>>(),
            ["powercap:intel-rapl:0", "ina2xx:0-0040", "iio-ina2xx:2-0044", "power-supply:BAT0"]
        );
        assert_eq!(sensors(unpacked(&text).unwrap().path()), there, "{text}");
        assert!(!text.contains("4711"), "{text}");
        // A manifest of a manifest is the same.
        assert_eq!(manifest(unpacked(&text).unwrap().path()).unwrap(), text);
    }

    #[test]
    fn no_manifest_writes_outside_its_folder() {
        for (text, line, words) in [
            ("", 1, "lists no file"),
            ("'proc/cpuinfo' = ", 1, ""),
            ("'proc/cpuinfo' = 3", 1, ""),
            ("'a' = 'x'\n'../b' = 'y'", 2, "not the path of a file below /"),
            ("'/etc/passwd' = 'x'", 1, "not the path"),
            ("'a/./../../b' = 'x'", 1, "not the path"),
            ("'' = 'x'", 1, "not the path"),
            ("'l' = { link = '/etc' }", 1, "leads out"),
            ("'a/l' = { link = '../../etc' }", 1, "leads out"),
            ("'a/l' = { link = 'b/../../..' }", 1, "leads out"),
            ("'l' = { link = '' }", 1, "leads out"),
            ("'a/l' = { link = '..' }\n'a/l/x' = 'y'", 2, "lies behind a link"),
            ("'a/l' = { link = '..' }\n'a/l/m' = { link = '..' }", 2, "lies behind a link"),
        ] {
            let error = unpacked(text).unwrap_err();
            assert!(error.starts_with(&format!("m.toml:{line}: ")) && error.contains(words), "{text}: {error}");
        }
        assert!(unpacked("'a' = 'x'\n'a/b' = 'y'").unwrap_err().starts_with("a/b can't be written"));
        let good = unpacked("'a/b' = 'x'\n'a/l' = { link = '../c/d' }").unwrap();
        assert_eq!(fs::read_to_string(good.path().join("a/b")).unwrap(), "x");
        assert_eq!(fs::read_link(good.path().join("a/l")).unwrap(), Path::new("../c/d"));
    }
}
