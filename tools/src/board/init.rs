//! Writes a first profile of a machine: values that Linux reports, and the others from the profile that fits the machine.

use std::{
    fmt::{Display, Write as _},
    path::Path,
};

use serde::de::IgnoredAny;

use socbfs_boards::board::{Board, Cluster, Detection, Document, DocumentError, GENERIC, SCHEMA, shipped_text};
use socbfs_machine as machine;

use super::{topology, tune::one_line};

/// Tables that can't be filled from Linux. They are copied from the profile that fits.
const NOT_FROM_LINUX: [&str; 5] = ["opencl", "policy", "adaptive", "speeds", "power"];

/// The text in place of these tables if no profile fits.
const EMPTY: &str = include_str!("rest.toml");

/// Writes a commented profile for the machine whose files are below `root`. It passes validation.
///
/// # Errors
/// If the profile that fits can't be read, which a test rules out.
pub fn init(root: &Path, detection: &Detection) -> Result<String, DocumentError> {
    let mut text = String::new();
    let rest = match shipped_text(detection.name) {
        Some(shipped) if detection.name != GENERIC => Some(Rest::of(detection.name, shipped)?),
        _ => None,
    };
    // Writing to a String can't fail.
    let _ = writeln!(text, "# Board profile written by `socbfs board init`: {}.", one_line(&detection.reason).trim());
    text.push_str(
        "# boards/README.md of socbfs describes every key. `socbfs board validate FILE` checks this file, --board FILE uses it.\n",
    );
    let _ = writeln!(text, "schema = {SCHEMA}");
    if let Some(rest) = rest.as_ref().filter(|rest| !rest.estimates.is_empty()) {
        text.push_str("# What was not measured on this board: delete a name when you have measured it.\n");
        let names: Vec<_> = rest.estimates.iter().map(|name| format!("    {},\n", quoted(name))).collect();
        let _ = write!(text, "estimates = [\n{}]\n", names.concat());
    }
    text.push('\n');
    board(&mut text, root, detection, rest.as_ref());
    detect(&mut text, detection);
    clusters(&mut text, &topology::clusters(root));
    match rest {
        Some(rest) => {
            let _ = write!(text, "\n# The rest is copied from the profile {} of socbfs.\n\n{}", detection.name, rest.text);
        }
        None => {
            text.push('\n');
            text.push_str(EMPTY);
        }
    }
    Ok(text)
}

/// The part of a profile that can't be filled from Linux.
struct Rest {
    vendor: Option<String>,
    soc: Option<String>,
    text: String,
    estimates: Vec<String>,
}

impl Rest {
    fn of(name: &str, shipped: &str) -> Result<Self, DocumentError> {
        let board = Board::<IgnoredAny>::parse(shipped, name)?;
        let document = Document::parse(shipped, name)?;
        let estimates = board.estimates.iter().filter(|path| NOT_FROM_LINUX.contains(&path.split(['.', '[']).next().unwrap_or_default()));
        let estimates = estimates.cloned().collect();
        Ok(Self { vendor: board.board.vendor, soc: board.board.soc, text: document.tables(&NOT_FROM_LINUX), estimates })
    }
}

fn board(text: &mut String, root: &Path, detection: &Detection, rest: Option<&Rest>) {
    let evidence = &detection.evidence;
    let model = evidence.model.as_ref().or(evidence.dmi_product.as_ref()).or(evidence.cpu_model.as_ref());
    let name = if detection.name == GENERIC { slug(model.map_or("my-board", String::as_str)) } else { detection.name.to_owned() };
    text.push_str("[board]\n");
    set(text, "name", quoted(&name), "any name of a-z, 0-9 and -");
    let profile = format!("profile {} of socbfs", detection.name);
    // The first source that gives a value, and the name of that source.
    let vendors = [(rest.and_then(|rest| rest.vendor.as_ref()), &*profile), (evidence.dmi_vendor.as_ref(), "/sys/class/dmi/id/sys_vendor")];
    let chips = [
        (rest.and_then(|rest| rest.soc.as_ref()), &*profile),
        (evidence.device_tree.last(), "/proc/device-tree/compatible"),
        (evidence.cpu_model.as_ref(), "/proc/cpuinfo"),
    ];
    for (key, places) in [("vendor", &vendors[..]), ("soc", &chips)] {
        if let Some((value, source)) = places.iter().find_map(|&(value, source)| Some((value?, source))) {
            set(text, key, quoted(value), source);
        }
    }
    if let Some(bytes) = machine::memory(root).bytes("MemTotal").filter(|&bytes| bytes > 0) {
        set(text, "memory_bytes", bytes, "MemTotal of /proc/meminfo, somewhat less than the installed memory");
    }
}

fn detect(text: &mut String, detection: &Detection) {
    let evidence = &detection.evidence;
    let list = |name: &str| format!("[{}]", quoted(name));
    let mut keys = String::new();
    // A name with a star would be a pattern that matches other machines, too.
    let name = |name: &Option<String>| name.clone().filter(|name| !name.contains('*'));
    if let Some(board) = evidence.device_tree.first().filter(|name| !name.contains(|c: char| c.is_whitespace() || c == '*')) {
        set(&mut keys, "device_tree", list(board), "/proc/device-tree/compatible");
    } else if let Some(model) = name(&evidence.model) {
        set(&mut keys, "device_tree_model", list(&model), "/proc/device-tree/model");
    } else if let Some(product) = name(&evidence.dmi_product) {
        if let Some(vendor) = name(&evidence.dmi_vendor) {
            set(&mut keys, "dmi_vendor", list(&vendor), "/sys/class/dmi/id/sys_vendor");
        }
        set(&mut keys, "dmi_product", list(&product), "/sys/class/dmi/id/product_name");
    } else if let Some(model) = name(&evidence.cpu_model) {
        set(&mut keys, "cpu_model", list(&model), "/proc/cpuinfo");
    }
    if !keys.is_empty() {
        let _ = write!(text, "\n[detect]\n{keys}");
    }
}

fn clusters(text: &mut String, clusters: &[Cluster]) {
    text.push_str("\n[cpu]\n# threads = 4                                # 0 or absent: one for every CPU the process may run on\n");
    if let Some(cpus) = clusters.last().and_then(|cluster| cluster.cpus.as_ref()) {
        let _ =
            writeln!(text, "# {:<42} # bind the threads to these CPUs, one each in turn", format!("cpus = {}", quoted(&cpus.to_string())));
    }
    for cluster in clusters {
        text.push_str("\n[[cpu.clusters]]\n");
        set(text, "name", quoted(&cluster.name), "any name");
        set(text, "cores", cluster.cores, "/sys/devices/system/cpu/cpu*/topology");
        if let Some(core_type) = &cluster.core_type {
            set(text, "core_type", quoted(core_type), "CPU part of /proc/cpuinfo");
        }
        if let Some(mhz) = cluster.max_mhz {
            set(text, "max_mhz", mhz, "cpufreq/cpuinfo_max_freq");
        }
        if let Some(cpus) = &cluster.cpus {
            set(text, "cpus", quoted(&cpus.to_string()), "/sys/devices/system/cpu/online");
        }
        if let Some(capacity) = cluster.capacity {
            set(text, "capacity", capacity, "cpu_capacity");
        }
    }
}

fn set(text: &mut String, key: &str, value: impl Display, source: &str) {
    let _ = writeln!(text, "{:<44} # {source}", format!("{key} = {value}"));
}

/// A quoted TOML string of any text, since firmware may contain any character.
fn quoted(text: &str) -> String {
    toml::Value::String(one_line(text).trim().to_owned()).to_string()
}

/// A valid name of a profile, made from `model`.
fn slug(model: &str) -> String {
    let words: Vec<String> =
        model.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
    if words.is_empty() { "my-board".to_owned() } else { words.join("-") }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fixtures::machine;
    use socbfs_boards::board::detect;

    type Plain = Board<toml::Table>;

    fn fixture(name: &str) -> (String, Plain) {
        let root = machine(&format!("board/{name}"));
        let text = init(root.path(), &detect(root.path()).unwrap()).unwrap();
        let board = Plain::parse(&text, "new.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        (text, board)
    }

    #[test]
    fn every_machine_gets_a_valid_profile_with_detection_and_sources() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/board");
        let mut machines = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let machine = path.file_stem().unwrap().to_str().unwrap();
            let (text, board) = fixture(machine);
            assert_ne!(board.detect, socbfs_boards::board::Detect::default(), "{text}");
            // Every value has a comment with its source.
            for entry in Plain::entries(&text, "new.toml").unwrap() {
                assert!(entry.source.is_some(), "{machine}: {}", entry.key);
            }
            machines += 1;
        }
        assert!(machines > 14, "{machines}");
    }

    #[test]
    fn known_boards_keep_shipped_values_that_linux_does_not_report() {
        let shipped = Plain::parse(shipped_text("odroid-xu3").unwrap(), "odroid-xu3").unwrap();
        let (text, board) = fixture("odroid-xu3");
        assert_eq!(
            (&board.board.name, &board.board.vendor, &board.board.soc),
            (&"odroid-xu3".into(), &shipped.board.vendor, &shipped.board.soc)
        );
        assert_eq!(
            (&board.opencl, &board.policy, &board.adaptive, &board.speeds, &board.power),
            (&shipped.opencl, &shipped.policy, &shipped.adaptive, &shipped.speeds, &shipped.power)
        );
        assert!(board.estimates.iter().all(|path| shipped.estimates.contains(path)));
        assert!(
            board.estimates.len() == shipped.estimates.iter().filter(|path| !path.starts_with("cpu") && !path.starts_with("board")).count()
        );
        assert!(text.contains("the device tree says hardkernel,odroid-xu3"));
        assert_eq!(board.board.memory_bytes, Some(2_045_596 * 1024));
    }

    #[test]
    fn unknown_machines_get_values_from_linux_alone() {
        let (_, board) = fixture("raspberry-pi-4");
        assert_eq!(board.board.name, "raspberry-pi-4-model-b-rev-1-4");
        assert_eq!(board.board.soc.as_deref(), Some("brcm,bcm2711"));
        assert_eq!(board.cpu.clusters.len(), 1);
        assert_eq!(board.opencl.devices, []);
        let nothing = init(Path::new("/nonexistent"), &detect(Path::new("/nonexistent")).unwrap()).unwrap();
        assert_eq!(Plain::parse(&nothing, "new.toml").unwrap().board.name, "my-board");
    }

    #[test]
    fn a_board_that_only_the_model_names_is_detected_by_it() {
        let evidence = socbfs_boards::board::Evidence {
            device_tree: vec!["amlogic, g12b".into()],
            model: Some("Khadas VIM3".into()),
            cpu_model: Some("ARMv8 Processor rev 3".into()),
            ..Default::default()
        };
        let detection = Detection { name: GENERIC, reason: "none".into(), others: Vec::new(), evidence };
        let text = init(Path::new("/nonexistent"), &detection).unwrap();
        let detect = Plain::parse(&text, "new.toml").unwrap_or_else(|error| panic!("{error}\n{text}")).detect;
        assert_eq!(detect.device_tree_model[0].as_str(), "Khadas VIM3");
        assert!(detect.device_tree.is_empty() && detect.cpu_model.is_empty(), "{text}");
    }

    #[test]
    fn commented_out_tables_are_valid_when_uncommented() {
        let on: String =
            EMPTY.lines().skip_while(|line| *line != "#").map(|line| format!("{}\n", line.trim_start_matches('#').trim_start())).collect();
        let board = Plain::parse(&format!("schema = 1\n[board]\nname = 'a'\n{on}"), "on.toml").unwrap();
        assert_eq!((board.opencl.devices.len(), board.power.rails.len()), (1, 1));
        assert!(board.policy.is_some() && board.adaptive.top_down.gpu_from.is_some());
    }

    #[test]
    fn firmware_strings_may_contain_any_character() {
        let evidence = socbfs_boards::board::Evidence {
            dmi_product: Some("To be \"filled\"\nby \\ O.E.M. é\u{7f}".into()),
            dmi_vendor: Some("# *".into()),
            ..Default::default()
        };
        let detection = Detection { name: GENERIC, reason: "no\nreason".into(), others: Vec::new(), evidence };
        let text = init(Path::new("/nonexistent"), &detection).unwrap();
        let board = Plain::parse(&text, "new.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(board.board.name, "to-be-filled-by-o-e-m");
        assert!(board.detect.dmi_vendor.is_empty());
    }
}
