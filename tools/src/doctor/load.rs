//! Other programs that use the processor.

use std::{
    collections::HashMap,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::{Finding, Subject};
use crate::bench::TICKS_PER_SECOND;
use socbfs_machine::{line, list, text};

/// A load above this share of the CPUs means that other programs are running.
const BUSY_SHARE: f64 = 0.5;

/// A program that used at least this share of one CPU is named.
const NAMED: f64 = 0.2;

/// A program and the share of one CPU that it used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Busy {
    /// Its name.
    pub name: String,
    /// The number of its process.
    pub pid: u32,
    /// Share of one CPU: 2.0 means two CPUs all the time.
    pub cpus: f64,
}

/// The processes below `root`, other than this one, that used the processor within `interval`, the busiest first.
pub fn busiest(root: &Path, interval: Duration) -> Vec<Busy> {
    let begin = Instant::now();
    let before: HashMap<u32, u64> = times(root).into_iter().map(|(pid, _, ticks)| (pid, ticks)).collect();
    sleep(interval);
    let after = times(root);
    let ticks = begin.elapsed().as_secs_f64() * TICKS_PER_SECOND;
    let mut busy: Vec<Busy> = after
        .into_iter()
        .filter(|(pid, ..)| *pid != std::process::id())
        .filter_map(|(pid, name, now)| {
            // A process that started within the interval has used all its time in it.
            let taken = now.saturating_sub(before.get(&pid).copied().unwrap_or(0));
            (taken > 0).then(|| Busy { name, pid, cpus: taken as f64 / ticks })
        })
        .collect();
    busy.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then(a.pid.cmp(&b.pid)));
    busy
}

/// Number, name and ticks of every process (user and system time).
fn times(root: &Path) -> Vec<(u32, String, u64)> {
    list(&root.join("proc"), |name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .iter()
        .filter_map(|folder| stat(&text(folder.join("stat"))?))
        .collect()
}

/// Number, name and ticks in a line of /proc/PID/stat. The name is in parentheses and may itself contain parentheses.
fn stat(line: &str) -> Option<(u32, String, u64)> {
    let (pid, rest) = line.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some((pid.parse().ok()?, name.to_owned(), ticks))
}

pub(super) fn check(subject: &Subject<'_>) -> Finding {
    let loud: Vec<&Busy> = subject.probe.busy.iter().flatten().filter(|busy| busy.cpus >= NAMED).take(3).collect();
    if !loud.is_empty() {
        let names: Vec<String> = loud.iter().map(|busy| format!("{} (process {}, {:.1} CPUs)", busy.name, busy.pid, busy.cpus)).collect();
        return Finding::warning(
            format!("other programs are running: {}", names.join(", ")),
            "top    # then end them, or wait until they are done",
        );
    }
    let load = line(subject.root.join("proc/loadavg")).and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    match load {
        None => Finding::unknown("the system does not report it (no proc/loadavg)"),
        // The average decides only if processes were not observed. It includes programs that have ended and, in a container, those of the
        // host.
        Some(load) if load > BUSY_SHARE * subject.usable_cpus as f64 && subject.probe.busy.is_none() => Finding::warning(
            format!("load {load:.2} on {} CPUs", subject.usable_cpus),
            "top    # then end other programs, or wait until they are done",
        ),
        Some(load) => {
            let now =
                if subject.probe.busy.is_some() { "no other program is busy now" } else { "programs can't be observed one by one here" };
            Finding::ok(format!("load {load:.2} in the last minute, {now}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Verdict, tests::Machine};

    #[test]
    fn names_of_processes_may_contain_parentheses() {
        let line = "4711 (a (b) c) S 1 1 1 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 100 0 0";
        assert_eq!(stat(line), Some((4711, "a (b) c".to_owned(), 300)));
        assert_eq!(stat("4711 nonsense"), None);
    }

    #[test]
    fn busy_programs_are_found_by_their_processor_time() {
        let machine = Machine::new(&[("proc/7/stat", "7 (old) S 1 1 1 0 -1 0 0 0 0 0 10 0 0 0"), ("proc/self/stat", "9 (x) R")]);
        let busy = std::thread::scope(|scope| {
            let found = scope.spawn(|| busiest(machine.path("").as_path(), Duration::from_millis(300)));
            sleep(Duration::from_millis(100));
            machine.file("proc/7/stat", "7 (old) S 1 1 1 0 -1 0 0 0 0 0 25 15 0 0");
            found.join().unwrap()
        });
        assert_eq!((busy.len(), busy[0].pid, &*busy[0].name), (1, 7, "old"));
        // 30 ticks in 0.3 s, or in a little more.
        assert!(busy[0].cpus > 0.1 && busy[0].cpus <= 1.01, "{busy:?}");
    }

    #[test]
    fn busy_programs_are_named() {
        let machine = Machine::new(&[("proc/loadavg", "0.10 0.5 0.5 1/1 1\n")]);
        let busy = |cpus: f64| Some(vec![Busy { name: "make".into(), pid: 12, cpus }]);
        let warning = machine.check(check, |subject| subject.probe.busy = busy(1.5));
        assert!(warning.verdict == Verdict::Warning && warning.reason.contains("make (process 12, 1.5 CPUs)"), "{warning:?}");
        assert_eq!(machine.check(check, |subject| subject.probe.busy = busy(0.1)).verdict, Verdict::Ok);
    }

    #[test]
    fn the_load_average_is_judged_where_processes_are_not_observed() {
        let machine = Machine::new(&[("proc/loadavg", "3.10 0.5 0.5 1/1 1\n")]);
        assert_eq!(machine.check(check, |_| ()).verdict, Verdict::Warning);
        assert_eq!(machine.check(check, |subject| subject.usable_cpus = 8).verdict, Verdict::Ok);
        // The processes were observed and none is busy: the load is past.
        assert_eq!(machine.check(check, |subject| subject.probe.busy = Some(Vec::new())).verdict, Verdict::Ok);
        assert_eq!(Machine::new(&[]).check(check, |_| ()).verdict, Verdict::Unknown);
    }
}
