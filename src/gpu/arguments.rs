//! The arguments of every kernel, in the order of its parameters in `kernels/`, and how they are set by name. A test compares the names
//! with those that the driver reports.

use crate::opencl::{Argument, DeviceError, Kernel};

macro_rules! arguments {
    ($($kernel:ident: $($argument:ident)+;)+) => {
        /// All kernels, with the names of their parameters. After these come the parameters that depend on compiler options: columns, then
        /// parts of the adjacency.
        const ALL: &[(&str, &[&str])] = &[$((stringify!($kernel), &[$(stringify!($argument)),+])),+];
    };
}

arguments! {
    reset: parent visited excluded queue all_counters slot padded root root_original degree;
    seed: all_counters slot len edges visited_before expanded state;
    map_back: place parent mapped vertices hosts names first_leaf leaf_root;
    stamp_queue: queue level_of len level all_counters;
    stamp_bitmap: now before level_of words level all_counters;
    bitmap_to_queue: visited_a visited_b words queue_a queue_b all_counters slot guards guard;
    mask_to_queue: mask_a mask_b words queue_a queue_b all_counters slot guards guard;
    to_mask: queue_a queue_b visited_a visited_b words mask_a mask_b all_counters slot guards guard;
    tg: queue_a queue_b offsets to_original visited_a visited_b parent pieces most_pieces least launch launches all_counters slot guards guard;
    tg_pieces: queue_a queue_b offsets to_original visited_a visited_b parent pieces most_pieces all_counters slot;
    tgm: mask_a mask_b padded offsets to_original visited_a visited_b parent pieces most_pieces launch launches all_counters slot guards guard;
    tgm_pieces: mask_a mask_b offsets to_original visited_a visited_b parent pieces most_pieces all_counters slot;
    tg_run: queue_a queue_b offsets to_original visited_a visited_b parent most most_levels all_counters slot guards guard;
    bg: visited own next parent offsets offsets_out to_original first end all_counters slot guards guard;
    bgc: visited own next parent offsets offsets_out to_original first end all_counters slot guards guard cache cached;
    sample: visited_a visited_b offsets vertices places most_probes all_counters slot;
    apply_words: changes first count visited all_counters;
    gather_parents: found parent gathered all_counters slot;
    sample_hubs: queue_a queue_b visited_a visited_b mask_a mask_b offsets vertices mean most_places all_counters slot;
}

/// The names of a kernel's parameters.
pub(super) fn names(kernel: &str) -> &'static [&'static str] {
    ALL.iter().find(|(name, _)| *name == kernel).map_or(&[], |(_, names)| names)
}

pub(super) use Value::{Local, Memory, Number};

/// The value of an argument.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Number(u32),
    Memory(&'a dyn Argument),
    /// Bytes of local memory.
    Local(usize),
}

/// Sets those arguments of `kernel` that `values` name.
pub(super) fn set(kernel: &Kernel, values: &[(&str, Value<'_>)]) -> Result<(), DeviceError> {
    debug_assert!(values.iter().all(|(name, _)| ALL.iter().any(|(_, names)| names.contains(name))), "no kernel has one of the arguments");
    for (index, name) in (0..).zip(names(kernel.name())) {
        match values.iter().find(|(other, _)| other == name) {
            Some(&(_, Number(number))) => kernel.set(index, number)?,
            Some(&(_, Memory(memory))) => kernel.set_buffer(index, memory)?,
            Some(&(_, Local(bytes))) => kernel.set_local(index, bytes)?,
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        gpu::{
            kernels::{SOURCES, scratch_words},
            slots,
        },
        opencl::{Device, Limits, devices},
    };

    /// Names of the parameters after the named ones, for kernels compiled with `columns` columns and `parts` parts.
    fn rest(kernel: &str, columns: usize, parts: usize) -> Vec<String> {
        let numbered = |name: &str, count| (0..count).map(|i| format!("{name}{i}")).collect::<Vec<_>>();
        let part = numbered("part", parts);
        match kernel {
            "bg" | "bgc" if columns == 0 => [numbered("column", 1), part].concat(),
            "bg" | "bgc" => [numbered("column", columns), numbered("name", columns), part].concat(),
            "tg" | "tg_pieces" | "tgm" | "tgm_pieces" | "tg_run" | "sample" => part,
            _ => Vec::new(),
        }
    }

    #[test]
    fn named_arguments_match_the_parameters_of_the_kernels() {
        let found = devices().unwrap_or_default();
        let mut compared = 0;
        for info in &found {
            // Other drivers may not report names, or take a minute to compile.
            if !info.platform.contains("Portable Computing Language") {
                continue;
            }
            let device = Device::open(info, Limits::default()).unwrap();
            for (group, columns, parts) in [(32, 4, 1), (64, 0, 4)] {
                let flags = format!(
                    "-cl-opt-disable -cl-kernel-arg-info -DGROUP={group} -DNEXT=128 -DPARTS={parts} -DEDGES_PER_PART=1024u \
                     -DCOLUMNS={columns} -DRENUMBERED=1 {}",
                    slots::defines()
                );
                let program = device.program(&SOURCES.concat(), &flags).unwrap();
                for &(name, named) in ALL {
                    let kernel = program.kernel(name).unwrap();
                    let names: Vec<_> = (0..kernel.arguments()).map(|index| kernel.argument_name(index).unwrap()).collect();
                    let wanted: Vec<_> = named.iter().map(|&name| name.to_owned()).chain(rest(name, columns, parts)).collect();
                    assert_eq!(names, wanted, "{name} with groups of {group}");
                    // PoCL 5.0 and 6.0 report 0.
                    let reported = kernel.local_bytes();
                    assert!(
                        !name.starts_with("bg") || reported <= 4 * scratch_words(group) as u64,
                        "{name} with groups of {group}: {reported}"
                    );
                    compared += 1;
                }
            }
        }
        assert!(compared > 0 || found.iter().all(|info| !info.platform.contains("Portable Computing Language")));
        if compared == 0 {
            // Not a print macro, whose output the test harness would capture.
            let why = b"SKIPPED named_arguments_match_the_parameters_of_the_kernels: no PoCL, or not without tests/opencl_env\n";
            std::io::Write::write_all(&mut std::io::stderr(), why).unwrap();
        }
    }

    #[test]
    fn every_kernel_of_the_sources_is_listed() {
        let sources = SOURCES.concat();
        let mut written: Vec<_> = sources.split("__kernel void ").skip(1).filter_map(|rest| rest.split('(').next()).collect();
        let mut named: Vec<_> = ALL.iter().map(|&(name, _)| name).collect();
        written.sort_unstable();
        written.dedup();
        named.sort_unstable();
        assert_eq!(written, named);
    }
}
