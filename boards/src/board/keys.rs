//! The use of each key of a profile.

/// A key of a profile, or all keys of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its path, without indices of arrays (`opencl.devices[].name`). The path of a table ends with a dot.
    pub path: &'static str,
    /// Whether the key only informs: its value affects no plan, setting or measurement.
    pub informs: bool,
    /// The use of the key.
    pub purpose: &'static str,
}

const fn acts(path: &'static str, purpose: &'static str) -> Key {
    Key { path, informs: false, purpose }
}

const fn informs(path: &'static str, purpose: &'static str) -> Key {
    Key { path, informs: true, purpose }
}

/// All keys. Tests compare the list with the schema, and try two values of each key that has an effect.
pub const KEYS: &[Key] = &[
    acts("board.name", "names the board in records; a calibration holds for one name"),
    informs("board.vendor", "informs"),
    informs("board.soc", "informs; is printed in reports"),
    informs("board.memory_bytes", "informs"),
    informs("board.memory_bandwidth_mega_bytes_per_s", "informs"),
    informs("board.url", "informs"),
    informs("board.notes", "informs"),
    acts("detect.", "recognises the board"),
    acts("cpu.threads", "threads"),
    acts("cpu.cpus", "CPUs that threads are bound to"),
    acts("cpu.batch", "vertices in a batch, in searches over several processes"),
    informs("cpu.clusters[].", "informs; cpu.cpus must be in a cluster"),
    acts("opencl.devices[].name", "which device the table describes"),
    acts("opencl.devices[].via", "which device the table describes: of this platform only"),
    acts("opencl.devices[].compute_units", "number of work-groups"),
    acts("opencl.devices[].max_alloc_bytes", "limit of a buffer"),
    acts("opencl.devices[].max_work_group", "limit of a work-group"),
    acts("opencl.devices[].work_group", "size of a work-group"),
    acts("opencl.devices[].bottom_up_permille", "cost of bottom-up levels on the device, for sampled"),
    acts("opencl.devices[].local_bytes", "limit of local memory"),
    acts("opencl.devices[].global_bytes", "limit of all buffers"),
    acts("opencl.devices[].timeout_s", "limit of a wait for the device"),
    acts("opencl.devices[].memory_way", "how memory is shared"),
    acts("opencl.devices[].bgc", "bottom-up kernel: BGC or BG"),
    acts("opencl.devices[].quirks", "exclude sharing modes and BGC; the others inform"),
    acts("policy.", "policy"),
    acts("adaptive.top_down.", "where top-down levels run"),
    acts("adaptive.bottom_up.", "where bottom-up levels run"),
    acts("adaptive.handover.", "when a change of device pays"),
    acts("speeds.", "costs of cost-model:zhang"),
    acts("operating_points[].goal", "which --at means the point"),
    acts("operating_points[].cpus", "CPUs that threads are bound to with --at"),
    acts("operating_points[].device", "device with --at"),
    informs("operating_points[].clocks_khz.", "informs: clocks are set with --set-clocks"),
    informs("operating_points[].mteps", "informs"),
    informs("operating_points[].watts", "informs"),
    acts("power.scope", "what measured energy covers"),
    acts("power.watts.", "power of each strategy, for --objective"),
    acts("power.rails[].family", "which sensor is meant"),
    acts("power.rails[].id", "which sensor is meant"),
    acts("power.rails[].label", "which sensor is meant"),
    acts("power.rails[].domain", "which part of the energy the sensor is"),
    acts("power.rails[].counted", "whether the sensor is part of the sum"),
    acts("power.rails[].sign", "sign of the sensor's values"),
    acts("power.rails[].scale", "factor for the sensor's values"),
];

/// The entry for the key at `path` (`opencl.devices[0].name`).
pub fn key(path: &str) -> Option<&'static Key> {
    let mut plain = String::with_capacity(path.len());
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            _ if inside => continue,
            _ => {}
        }
        plain.push(c);
    }
    KEYS.iter().find(|key| if key.path.ends_with('.') { plain.starts_with(key.path) } else { plain == key.path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_indices_are_ignored_when_a_key_is_looked_up() {
        assert_eq!(key("opencl.devices[12].via").unwrap().path, "opencl.devices[].via");
        assert_eq!(key("cpu.clusters[0].cores").unwrap().path, "cpu.clusters[].");
        assert_eq!(key("detect.dmi_board").unwrap().path, "detect.");
        assert_eq!(key("board.colour"), None);
    }
}
