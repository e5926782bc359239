//! One search as text, level by level.

use super::cells::{COLUMNS, Cell, Table, aligned_by, joules, wrapped, written};
use crate::{
    bench::{LevelEnergies, LevelEnergy},
    record::{ChosenPolicy, ExactLevel},
};
use socbfs::{
    Direction, GpuKernel, LevelPlan, LevelRecord, Placement,
    words::{counted, general, grouped, seconds},
};
use socbfs_boards::runtime::Bound;

/// A line for each level: the counts that the policy saw, its decision, the vertices found, and the time. Levels that ran together share
/// a line, `4-120`, with the counts of the first. `~` marks a count that is an estimate. The counts of `exact`, which is indexed by level,
/// replace those that the policy saw.
pub(super) fn level_table(records: &[LevelRecord], exact: &[ExactLevel]) -> Table {
    let count = |record: &LevelRecord, of: fn(&ExactLevel) -> u64, estimate: u64, is_estimated: bool| {
        let exact = exact.get(record.stats.level as usize);
        Cell::word(exact.map_or_else(|| about(estimate, is_estimated), |level| grouped(of(level))))
    };
    Table::of(
        records.iter().map(|record| (record, &record.stats)),
        &[
            ("level", &|(record, _)| Cell::word(levels_of(record))),
            ("direction", &|(record, _)| Cell::word(direction(record.plan.direction))),
            ("on", &|(record, _)| Cell::word(place(record.plan))),
            ("frontier", &|(record, of)| count(record, |l| l.vertices, of.frontier_vertices, false)),
            ("its edges", &|(record, of)| count(record, |l| l.arcs, of.frontier_edges, of.frontier_is_estimated)),
            ("unvisited", &|(record, of)| count(record, |l| l.unvisited_vertices, of.unvisited_vertices, false)),
            ("their edges", &|(record, of)| count(record, |l| l.unvisited_arcs, of.unvisited_edges, of.unvisited_is_estimated)),
            ("found", &|(record, _)| Cell::count(record.found)),
            ("time", &|(record, _)| Cell::ns(record.elapsed_ns as f64)),
            ("conversion", &|(record, _)| Cell::ns(record.conversion_ns as f64)),
            ("handover", &|(record, _)| Cell::ns(record.handover_ns as f64)),
            ("deciding", &|(record, _)| Cell::ns(record.decision_ns as f64)),
            ("probes", &|(_, of)| Cell::word(of.sampled_probes.map_or_else(|| "-".to_owned(), |probes| general(f64::from(probes), 3)))),
        ],
    )
}

/// The levels as text. `energies`, where they were measured, stand beside the time. Unless it is `wide`, the table has the columns that
/// fit 80 characters.
pub fn trace(records: &[LevelRecord], exact: &[ExactLevel], energies: Option<&LevelEnergies>, wide: bool) -> String {
    let mut table = level_table(records, exact);
    if let Some(energies) = energies {
        let place = table.columns.iter().position(|head| head == "time").map_or(0, |time| time + 1);
        table.columns.insert(place, "energy".to_owned());
        for (row, level) in table.rows.iter_mut().zip(&energies.levels) {
            let cell = level.map_or_else(|| "-".to_owned(), |level| energy_of(&level));
            row.insert(place, Cell::word(cell));
        }
    }
    if !wide {
        let more = if energies.is_some() { "energy" } else { "its edges" };
        table.keep(&["level", "direction", "on", "frontier", more, "found", "time"]);
    }
    written(|out| aligned_by(out, "", &table, &|_| false))
}

/// The energy of a level, with the half-width of its interval.
fn energy_of(level: &LevelEnergy) -> String {
    let share = general(f64::min(100.0 * level.within.0 / level.joules.0, 1000.0), 2);
    format!("{} +/- {share} %", joules(level.joules.0))
}

/// What the energies of the levels are, in a sentence or two.
pub fn level_energies(energies: &LevelEnergies) -> String {
    let [known, levels] = energies.known;
    let missing = match levels - known {
        0 => String::new(),
        missing => format!(
            "\n{missing} of {} not known to 5 %: too short for this sensor, or for the time that was spent",
            counted(levels as u64, "level is", "levels are")
        ),
    };
    format!(
        "energy: {}, {}, idle power included; least squares over {} in {}, +/- is the 95 % interval{missing}\n",
        energies.scope,
        energies.sensors.join(" + "),
        counted(energies.searches, "search", "searches"),
        seconds(energies.seconds)
    )
}

/// The number of the level, or the range of levels, of a record.
pub(super) fn levels_of(record: &LevelRecord) -> String {
    let level = record.stats.level;
    match record.levels {
        0 | 1 => level.to_string(),
        levels => format!("{level}-{}", level + levels - 1),
    }
}

/// The bounds with which a policy places levels, a line each: the key in a board profile, the value, and where it came from.
pub fn bands(bands: &[Bound]) -> String {
    let line = |band: &Bound| {
        let value = band.value.map_or_else(|| "never".to_owned(), grouped);
        format!("{:<32}{value:<16}{}\n", format!("adaptive.{}", band.key), band.origin)
    };
    bands.iter().map(line).collect()
}

/// The policy that decided, the reason for it, and its bounds.
pub fn chosen(chosen: &ChosenPolicy) -> String {
    let said = format!("policy {} ({}: {})", chosen.policy, chosen.origin, chosen.reason);
    format!("{}\n{}", wrapped(&said, COLUMNS).join("\n"), bands(&chosen.bands))
}

/// The name of a direction.
pub(super) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::TopDown => "top-down",
        Direction::BottomUp => "bottom-up",
    }
}

/// Where a level ran: `cpu`, the kernel's name, or the share of the GPU, with the kernel if it is neither TG nor BG.
pub(super) fn place(plan: LevelPlan) -> String {
    let other = || match plan.kernel() {
        Some(kernel @ (GpuKernel::Tgm | GpuKernel::Bgc)) => format!(" {}", kernel.name()),
        _ => String::new(),
    };
    match plan.placement {
        Placement::Cpu => "cpu".to_owned(),
        Placement::Gpu(kernel) => kernel.name().to_owned(),
        Placement::Split { gpu_permille, .. } => format!("cpu+gpu {:.1} %{}", f64::from(gpu_permille) / 10.0, other()),
        Placement::Apart { gpu_permille } => format!("cpu|gpu {:.1} %", f64::from(gpu_permille) / 10.0),
    }
}

/// A count, marked if it is an estimate.
pub(super) fn about(value: u64, estimated: bool) -> String {
    format!("{}{}", if estimated { "~" } else { "" }, grouped(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::level;

    #[test]
    fn columns_line_up() {
        let text = trace(&[level(0), level(1)], &[], None, true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        assert!(
            lines[1].contains("top-down") && lines[2].contains("bottom-up") && lines[2].ends_with("2.5") && lines[2].contains(" 1-10 "),
            "{text}"
        );
        assert_eq!(trace(&[], &[], None, false).lines().count(), 1);
        let narrow = trace(&[level(0), level(1)], &[], None, false);
        assert!(narrow.lines().all(|line| line.len() <= 80) && narrow.contains("found") && !narrow.contains("probes"), "{narrow}");
    }

    #[test]
    fn estimates_are_marked_and_replaced_by_exact_counts() {
        let mut records = [level(0), level(1)];
        records[1].stats.frontier_is_estimated = true;
        records[1].stats.unvisited_is_estimated = true;
        let text = trace(&records, &[], None, true);
        let lines: Vec<&str> = text.lines().collect();
        assert!(!lines[1].contains('~'), "{text}");
        for count in ["501", "~40", "900", "~12,345"] {
            assert!(lines[2].contains(&format!(" {count} ")), "{count} in\n{text}");
        }
        let exact =
            |level: u32| ExactLevel { level, vertices: 500, arcs: 41, unvisited_vertices: 7, unvisited_arcs: 8, ..ExactLevel::default() };
        let text = trace(&records, &[exact(0), exact(1)], None, true);
        assert!(!text.contains('~') && text.lines().nth(2).unwrap().contains("  500         41          7            8 "), "{text}");
    }
}
