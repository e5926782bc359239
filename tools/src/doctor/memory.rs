//! Free memory, swap, and huge pages.

use super::{Check, Finding, Subject};
use crate::bench::kronecker_bytes;
use socbfs::{memory::available_of, words::bytes};
use socbfs_machine::{self as machine, chosen};

/// Least share of the memory that should be free.
const FREE_SHARE: f64 = 0.25;

/// Share of the memory that may be swapped out: every machine that has run for a long time swaps out unused pages.
const SWAP_SHARE: f64 = 0.05;

/// Least free memory in bytes: with less, not even small graphs fit in memory together with the program.
const LEAST: u64 = 24 << 20;

/// Edges per vertex of Graph500.
const EDGE_FACTOR: u64 = 16;

pub(super) const CHECKS: &[Check] = &[("memory", free), ("swap", swap), ("huge-pages", huge_pages)];

const WHO: &str = "top -b -n 1 | head -20    # shows the programs to end";

fn free(subject: &Subject<'_>) -> Finding {
    let memory = machine::memory(subject.root);
    let (Some(free), Some(total)) = (available_of(&memory, subject.root), memory.bytes("MemTotal")) else {
        return Finding::unknown(
            "the system does not report how much is free (no MemTotal, or neither MemAvailable nor MemFree, in proc/meminfo)",
        );
    };
    let shown = format!("{} of {} are free", bytes(free), bytes(total));
    if free < LEAST {
        return Finding::problem(format!("only {shown}: searches may be killed"), WHO);
    }
    let largest = (1..=32).rev().find(|&scale| kronecker_bytes(scale, EDGE_FACTOR) <= free);
    let shown = largest.map_or_else(|| shown.clone(), |scale| format!("{shown}: Kronecker graphs up to scale {scale} fit"));
    if (free as f64) < FREE_SHARE * total as f64 {
        return Finding::warning(shown, WHO);
    }
    Finding::ok(shown)
}

fn swap(subject: &Subject<'_>) -> Finding {
    let fields = machine::memory(subject.root);
    let field = |name: &str| fields.bytes(name);
    let (Some(total), Some(free), Some(memory)) = (field("SwapTotal"), field("SwapFree"), field("MemTotal")) else {
        return Finding::unknown("the system does not report it (no SwapTotal in proc/meminfo)");
    };
    let used = total.saturating_sub(free);
    match (total, used) {
        (0, _) => Finding::ok("none is set up"),
        (_, used) if used as f64 > SWAP_SHARE * memory as f64 => Finding::warning(
            format!("{} of {} are used: memory ran short, and reading pages back disturbs a search", bytes(used), bytes(total)),
            "sudo swapoff -a && sudo swapon -a    # once enough memory is free to hold it",
        ),
        _ => Finding::ok(format!("{} of {} are used", bytes(used), bytes(total))),
    }
}

fn huge_pages(subject: &Subject<'_>) -> Finding {
    match chosen(&subject.root.join("sys/kernel/mm/transparent_hugepage/enabled")).as_deref() {
        None => Finding::unknown("the kernel has none, or does not report them (no sys/kernel/mm/transparent_hugepage)"),
        Some("never") => Finding::warning(
            "never: random accesses to memory also miss the TLB",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(setting) => Finding::ok(setting),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        Verdict,
        tests::{Machine, of},
    };

    fn found(available: u64, swap_free: u64) -> Vec<Finding> {
        let text = format!("MemTotal: 2000000 kB\nMemAvailable: {available} kB\nSwapTotal: 1000000 kB\nSwapFree: {swap_free} kB\n");
        Machine::new(&[("proc/meminfo", &text)]).run(CHECKS, |_| ())
    }

    #[test]
    fn free_memory_is_reported_with_the_scale_that_fits() {
        let findings = found(1_500_000, 1_000_000);
        assert_eq!(of(&findings, "memory").verdict, Verdict::Ok);
        assert_eq!(of(&findings, "memory").reason, "1.4 GiB of 1.9 GiB are free: Kronecker graphs up to scale 21 fit");
        assert_eq!(of(&found(300_000, 1_000_000), "memory").verdict, Verdict::Warning);
        let findings = found(20_000, 1_000_000);
        assert_eq!(of(&findings, "memory").verdict, Verdict::Problem);
        assert!(of(&findings, "memory").cure.is_some());
    }

    #[test]
    fn free_memory_is_added_up_on_kernels_without_mem_available() {
        let text = "MemTotal: 2000000 kB\nMemFree: 500000 kB\nBuffers: 100000 kB\nCached: 900000 kB\n";
        let findings = Machine::new(&[("proc/meminfo", text)]).run(CHECKS, |_| ());
        assert_eq!(of(&findings, "memory").reason, "1.4 GiB of 1.9 GiB are free: Kronecker graphs up to scale 21 fit");
        let findings = Machine::new(&[("proc/meminfo", "MemTotal: 2000000 kB\n")]).run(CHECKS, |_| ());
        let finding = of(&findings, "memory");
        assert!(finding.verdict == Verdict::Unknown && finding.reason.contains("MemFree"), "{finding:?}");
    }

    #[test]
    fn the_memory_limit_of_a_control_group_counts() {
        let machine = Machine::new(&[
            ("proc/meminfo", "MemTotal: 2000000 kB\nMemAvailable: 1900000 kB\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "67108864\n"),
            ("sys/fs/cgroup/memory.current", "0\n"),
        ]);
        let findings = machine.run(CHECKS, |_| ());
        assert!(of(&findings, "memory").reason.starts_with("64.0 MiB of 1.9 GiB"), "{findings:?}");
    }

    #[test]
    fn swap_is_a_warning_where_more_than_a_little_is_used() {
        assert_eq!(of(&found(1_500_000, 1_000_000), "swap").verdict, Verdict::Ok);
        assert_eq!(of(&found(1_500_000, 950_000), "swap").verdict, Verdict::Ok);
        assert_eq!(of(&found(1_500_000, 400_000), "swap").verdict, Verdict::Warning);
        let none = Machine::new(&[("proc/meminfo", "MemTotal: 2000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n")]);
        assert_eq!(of(&none.run(CHECKS, |_| ()), "swap").reason, "none is set up");
    }

    #[test]
    fn huge_pages_must_not_be_off() {
        let found = |text: &str| {
            let machine = Machine::new(&[("sys/kernel/mm/transparent_hugepage/enabled", text)]);
            of(&machine.run(CHECKS, |_| ()), "huge-pages").clone()
        };
        assert_eq!(found("always [madvise] never\n").verdict, Verdict::Ok);
        assert_eq!(found("[always] madvise never\n").reason, "always");
        let off = found("always madvise [never]\n");
        assert!(off.verdict == Verdict::Warning && off.cure.unwrap().contains("echo madvise"));
    }
}
