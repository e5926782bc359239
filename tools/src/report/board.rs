//! The benchmark of a board over several scales: its document, and its markdown, for example for an issue.

use serde_json::Value;
use socbfs_power::Watts;

use super::{
    cells::{Cell, Facts, Table, fact, number},
    figures::{Chart, Document, Figure, Section, Series, begin, efficiency, markdown, of_run},
    graph500::INVALID,
    table::search,
};
use crate::record::{BoardRecord, DriverRecord, Environment, Record, Temperature};
use socbfs::{
    stats,
    words::{bytes, counted, grouped, mteps},
};

/// The benchmark as markdown, or the line that replaces it if a root failed validation.
pub fn board(record: &BoardRecord) -> String {
    if !record.valid {
        return INVALID.to_owned();
    }
    markdown(&Document { warnings: warnings(record), sections: vec![all_scales(record)], ..Document::default() })
}

/// The document of a board over several scales.
pub(super) fn document(board: &BoardRecord, record: &Value) -> Document {
    let sections = [all_scales(board)].into_iter().chain(board.runs.iter().map(of_run)).collect();
    Document { warnings: warnings(board), sections, ..begin("A board over several scales", record, &["board", "opencl"]) }
}

fn warnings(record: &BoardRecord) -> Vec<String> {
    let failed = record.runs.iter().filter(|run| !run.valid).map(|run| format!("{}: a tree failed validation", run.graph.source));
    let warnings = by_scale(record.runs.iter().map(|run| (run.graph.scale, &run.warnings[..])));
    let warnings = warnings.into_iter().map(|(scales, warning)| format!("{warning}{scales}"));
    let left_out = record.left_out.iter().map(|scale| format!("scale {} is left out: {}", scale.scale, scale.reason));
    failed.chain(warnings).chain(left_out).collect()
}

fn machine(record: &BoardRecord) -> &str {
    record.board.machine.as_deref().or(record.environment.cpu.model.as_deref()).unwrap_or("an unknown machine")
}

fn all_scales(record: &BoardRecord) -> Section {
    Section { title: format!("socbfs on {}", machine(record)), facts: facts(record), figures: vec![scales(record)] }
}

/// The document that compares several boards: of each the run with the highest speed.
pub(super) fn side_by_side<'b>(boards: &'b [BoardRecord]) -> Document {
    let fastest = |board: &'b BoardRecord| board.runs.iter().max_by(|a, b| speed(a).unwrap_or(0.0).total_cmp(&speed(b).unwrap_or(0.0)));
    let sentence =
        "Of each board the scale with the highest speed: Kronecker graphs, harmonic means; every tree was validated, or there is no speed.";
    let table = Table::of(
        boards.iter().filter_map(|board| Some((board, fastest(board)?))),
        &[
            ("board", &|(board, _)| Cell::word(machine(board))),
            ("CPU and clocks", &|(board, _)| Cell::word(cpu(&board.environment))),
            ("device and driver", &|(_, run)| Cell::word(devices(run))),
            ("scale", &|(_, run)| Cell::name(run.graph.scale)),
            ("MTEPS", &|(_, run)| rate(run)),
            ("watts", &|(_, run)| watts(run)),
            ("MTEPS/W", &|(_, run)| per_watt(run)),
            ("validated", &|(_, run)| Cell::count(run.roots.iter().filter(|root| root.validation.passed).count() as u64)),
            ("socbfs", &|(board, _)| Cell::word(&*board.environment.build.commit)),
            ("date", &|(board, _)| Cell::word(board.environment.time.split('T').next().unwrap_or_default())),
        ],
    );
    let figure = Figure::new("boards", "Graph500, Green Graph500", "Boards", sentence.to_owned()).table(table);
    let section = Section { title: "Boards side by side".to_owned(), figures: vec![figure], ..Section::default() };
    Document { title: section.title.clone(), sections: vec![section], ..Document::default() }
}

fn devices(run: &Record) -> String {
    let used = run.search.devices.iter().map(|device| format!("{}, driver {}", device.used.name, device.used.driver));
    ["CPU".to_owned()].into_iter().chain(used).collect::<Vec<_>>().join("; ")
}

/// The speed of a valid run in MTEPS.
fn speed(run: &Record) -> Option<f64> {
    run.summary.as_ref().filter(|_| run.valid).map(|summary| summary.teps.harmonic_mean / 1e6)
}

fn rate(run: &Record) -> Cell {
    let spread = run.summary.as_ref().and_then(|summary| summary.teps.harmonic_stddev);
    let spread = spread.map_or_else(String::new, |by| format!(" ± {}", number(by / 1e6)));
    Cell::of(speed(run), |mteps| Cell { text: number(mteps) + &spread, value: Some(mteps) })
}

/// The power in the windows of a run, and the speed there.
fn watts(run: &Record) -> Cell {
    Cell::of(efficiency(run).ok(), |of| {
        let teps = run.energy.measured.iter().flat_map(|measured| &measured.windows).map(|window| window.teps);
        let there = stats::Summary::of(&teps.collect::<Vec<_>>()).map_or_else(String::new, |of| format!(" at {}", mteps(of.mean)));
        Cell { text: number(of.watts.mean) + &there, value: Some(of.watts.mean) }
    })
}

fn per_watt(run: &Record) -> Cell {
    Cell::of(efficiency(run).ok(), |of| Cell::number(of.mteps_per_watt.mean))
}

fn scales(record: &BoardRecord) -> Figure {
    let runs = &record.runs;
    let line = |name: &str, of: &dyn Fn(&Record) -> Option<f64>| {
        Series::new(name, runs.iter().filter_map(|run| Some((f64::from(run.graph.scale), of(run)?))))
    };
    let best = runs.iter().filter_map(|run| Some((run, speed(run)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let best = best.map_or_else(
        || "No scale has a speed.".to_owned(),
        |(run, mteps)| format!("The board is fastest at scale {}, with {} MTEPS.", run.graph.scale, number(mteps)),
    );
    let mut series = vec![line("MTEPS", &speed), line("MTEPS/W", &|run| efficiency(run).ok().map(|of| of.mteps_per_watt.mean))];
    series.retain(|series| series.name == "MTEPS" || !series.points.is_empty());
    let sentence = [vec![best], notes(record)].concat().join(" ");
    Figure::new("scales", "Graph500, Green Graph500", "Speed and efficiency by scale", sentence)
        .chart(Chart::lines("scale (log2 of the vertices)", "million edges/s, per watt", series).log_y())
        .table(Table::of(
            runs,
            &[
                ("scale", &|run| Cell::count(u64::from(run.graph.scale))),
                ("MTEPS", &|run| rate(run)),
                ("watts", &|run| watts(run)),
                ("MTEPS/W", &|run| per_watt(run)),
            ],
        ))
}

/// The facts about the machine and the runs.
fn facts(record: &BoardRecord) -> Facts {
    let e = &record.environment;
    let unknown = || "unknown".to_owned();
    let mut facts = vec![
        ("Board", format!("profile {}: {}", record.board.profile, record.board.reason)),
        ("SoC", record.board.soc.clone().unwrap_or_else(|| "not in the profile".to_owned())),
        ("CPU", cpu(e)),
        ("Memory", e.memory_bytes.map_or_else(unknown, bytes)),
        ("System", e.system.name.clone().unwrap_or_else(unknown)),
        ("Kernel", e.system.kernel.clone().unwrap_or_else(unknown)),
        ("OpenCL", opencl(record)),
        ("Governor", if e.cpu.governors.is_empty() { "n/a: no cpufreq".to_owned() } else { e.cpu.governors.join(", ") }),
        ("Idle power", idle(record)),
        ("Hottest zone", temperatures(record)),
    ];
    facts.push(("socbfs", format!("{}, commit {}, {}, {}", e.build.version, e.build.commit, e.build.target, e.time)));
    // The path of the program may be private, so it is left out.
    let arguments = e.command.iter().skip(1).map(|argument| format!(" {argument}"));
    facts.push(("Command", format!("`socbfs{}`", arguments.collect::<String>())));
    let facts = facts.into_iter().map(|(name, text)| fact(name, text));
    facts.chain(record.runs.last().iter().flat_map(|run| search(&run.search))).collect()
}

fn cpu(e: &Environment) -> String {
    let model = e.cpu.model.as_deref().unwrap_or("unknown");
    // CPUs are grouped by their highest clock, since big.LITTLE systems have several.
    let mut clocks: Vec<(u64, usize)> = Vec::new();
    for &khz in &e.cpu.max_khz {
        match clocks.iter_mut().find(|(known, _)| *known == khz) {
            Some((_, count)) => *count += 1,
            None => clocks.push((khz, 1)),
        }
    }
    let clocks: String = clocks.iter().map(|(khz, count)| format!(", {count} of up to {} MHz", khz / 1000)).collect();
    format!("{model}, {}{clocks}", counted(e.cpu.usable as u64, "CPU", "CPUs"))
}

fn opencl(record: &BoardRecord) -> String {
    if let Some(problem) = &record.opencl.problem {
        return format!("none: {problem}");
    }
    let device = |device: &DriverRecord| {
        let unusable = device.unusable.as_ref().map_or_else(String::new, |why| format!(" (unusable: {why})"));
        format!("{} ({}), {}, driver {}{unusable}", device.name, device.platform, device.version, device.driver)
    };
    record.opencl.devices.iter().map(device).collect::<Vec<_>>().join("; ")
}

/// Idle power: the median of the values measured in each run, with the sensors.
fn idle(record: &BoardRecord) -> String {
    let measured: Vec<f64> = record.runs.iter().filter_map(|run| Some(run.energy.summary()?.idle_watts.0)).collect();
    let of = record.runs.iter().find_map(|run| run.energy.measured.as_ref());
    match (stats::Summary::of(&measured), of) {
        (Some(idle), Some(of)) => format!("{} ({}: {})", Watts(idle.median), of.scope, of.sensors.join(" + ")),
        _ => format!("n/a: {}", record.runs.first().map_or("nothing was measured", |run| run.energy.why())),
    }
}

fn temperatures(record: &BoardRecord) -> String {
    fn hottest<'t>(zones: impl Iterator<Item = &'t Temperature>) -> Option<&'t Temperature> {
        zones.max_by(|a, b| a.celsius.total_cmp(&b.celsius))
    }
    let shown = |of: Option<&Temperature>| of.map_or_else(|| "n/a".to_owned(), |of| format!("{:.0} °C ({})", of.celsius, of.zone));
    let before = hottest(record.environment.temperatures.iter());
    match (before, hottest(record.runs.iter().flat_map(|run| &run.environment.temperatures_after))) {
        (None, None) => "n/a: the system shows none".to_owned(),
        (before, after) => format!("{} before, {} after a run", shown(before), shown(after)),
    }
}

/// What the figures mean, and why some are missing.
fn notes(record: &BoardRecord) -> Vec<String> {
    let mut notes = Vec::new();
    let roots = || record.runs.iter().map(|run| run.roots.len() as u64);
    if let (Some(run), Some(fewest), Some(most)) = (record.runs.first(), roots().min(), roots().max()) {
        let trees: u64 = roots().sum();
        notes.push(format!(
            "MTEPS: harmonic mean over {} and its standard error; Kronecker graphs, edgefactor {}. {} passed the five checks of Graph500.",
            if fewest == most { counted(most, "root", "roots") } else { format!("{} to {} roots", grouped(fewest), grouped(most)) },
            run.graph.edge_factor,
            match trees {
                1 => "The tree".to_owned(),
                trees => format!("All {trees} trees"),
            }
        ));
    }
    if record.runs.iter().any(|run| efficiency(run).is_ok()) {
        notes.push(
            "Watts: mean power of windows in which nothing but searches ran, idle power included, at the speed there, of which MTEPS/W is."
                .to_owned(),
        );
    }
    let without: Vec<Option<String>> = record.runs.iter().map(|run| efficiency(run).err().map(str::to_owned)).collect();
    let reasons = by_scale(record.runs.iter().zip(&without).map(|(run, reason)| (run.graph.scale, reason.as_slice())));
    notes.extend(reasons.into_iter().map(|(scales, reason)| format!("No watts{scales}: {reason}.")));
    notes
}

/// Every warning (or reason) of several runs once, with the scales of the runs that have it, as in " (scale 20)"; empty: all
/// have it.
fn by_scale<'w>(runs: impl ExactSizeIterator<Item = (u32, &'w [String])>) -> Vec<(String, &'w str)> {
    let all = runs.len();
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for (scale, warnings) in runs {
        for warning in warnings {
            match found.iter_mut().find(|(known, _)| *known == warning.as_str()) {
                Some((_, scales)) => scales.push(scale.to_string()),
                None => found.push((warning, vec![scale.to_string()])),
            }
        }
    }
    let place = |scales: &[String]| match scales.len() {
        count if count == all => String::new(),
        1 => format!(" (scale {})", scales[0]),
        _ => format!(" (scales {})", scales.join(", ")),
    };
    found.into_iter().map(|(warning, scales)| (place(&scales), warning)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::{BoardIdentity, Drivers, EnergyRecord, LeftOut},
        report::tests::{measured_energy, record},
    };

    fn report(runs: Vec<Record>) -> BoardRecord {
        let mut environment = record(&[0.001]).environment;
        environment.cpu.model = Some("Cortex | A15".into());
        environment.cpu.max_khz = vec![1_400_000, 1_400_000, 2_000_000];
        environment.cpu.usable = 3;
        environment.cpu.governors = vec!["ondemand".into()];
        environment.memory_bytes = Some(2 << 30);
        environment.command = vec!["/home/me/socbfs".into(), "bench".into()];
        let board = BoardIdentity {
            profile: "odroid-xu4".into(),
            reason: "the device tree says hardkernel,odroid-xu4".into(),
            machine: Some("Hardkernel Odroid XU4".into()),
            soc: Some("Samsung Exynos 5422".into()),
        };
        let device = DriverRecord {
            name: "Mali-T628".into(),
            platform: "ARM Platform".into(),
            version: "OpenCL 1.2".into(),
            driver: "r12p0".into(),
            unusable: None,
        };
        let mut report = BoardRecord::new(environment, board, Drivers { problem: None, devices: vec![device] });
        runs.into_iter().for_each(|run| report.add(run));
        report
    }

    #[test]
    fn every_fact_and_every_scale_has_a_row() {
        let (mut small, mut large) = (record(&[0.001, 0.002]), record(&[0.004]));
        small.energy = measured_energy();
        small.graph.scale = 16;
        small.warnings = vec!["hot".into()];
        large.warnings = vec!["hot".into(), "busy".into()];
        let mut report = report(vec![small, large]);
        report.left_out = vec![LeftOut { scale: 22, reason: "too large".into() }];
        let text = board(&report);
        for part in [
            "### socbfs on Hardkernel Odroid XU4\n",
            "| Board | profile odroid-xu4: the device tree says hardkernel,odroid-xu4 |\n",
            "| SoC | Samsung Exynos 5422 |\n",
            "| CPU | Cortex \\| A15, 3 CPUs, 2 of up to 1400 MHz, 1 of up to 2000 MHz |\n",
            "| Memory | 2.0 GiB |\n",
            "| OpenCL | Mali-T628 (ARM Platform), OpenCL 1.2, driver r12p0 |\n",
            "| Governor | ondemand |\n",
            "| Idle power | 5.000 W (cpu-package: powercap:intel-rapl:0) |\n",
            "| Command | `socbfs bench` |\n",
            "\n| scale | MTEPS | watts | MTEPS/W |\n|---:|---:|---:|---:|\n| 16 | 11,184 ± 5,272 | 25 at 5,000 MTEPS | 208.3 |\n| 20 | 4,194 | n/a | n/a |\n",
            "All 3 trees passed",
            "- Warning: hot\n- Warning: busy (scale 20)\n- Warning: scale 22 is left out: too large\n",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        assert!(text.lines().filter(|line| line.starts_with('|')).all(|line| [3, 5].contains(&columns(line))), "{text}");
    }

    #[test]
    fn runs_of_different_numbers_of_roots_are_counted_from_the_fewest_to_the_most() {
        let text = board(&report(vec![record(&[0.001]), record(&[0.001; 3]), record(&[0.001; 2])]));
        assert!(text.contains("harmonic mean over 1 to 3 roots and its"), "{text}");
        assert!(board(&report(vec![record(&[0.001; 3])])).contains("harmonic mean over 3 roots and its"));
    }

    #[test]
    fn a_warning_that_some_runs_have_names_their_scales() {
        let runs = [(10, "busy"), (11, "busy"), (12, "hot")].map(|(scale, warning)| {
            let mut run = record(&[0.001]);
            (run.graph.scale, run.warnings) = (scale, vec![warning.to_owned()]);
            run
        });
        let text = board(&report(runs.into()));
        assert!(text.contains("- Warning: busy (scales 10, 11)\n- Warning: hot (scale 12)\n"), "{text}");
    }

    #[test]
    fn each_scale_without_watts_has_its_reason() {
        let run = |scale: u32, reason: Option<&str>| {
            let mut run = record(&[0.001]);
            run.graph.scale = scale;
            run.energy = reason.map_or_else(measured_energy, |reason| EnergyRecord::unavailable(reason, None));
            run
        };
        let text = board(&report(vec![run(10, None), run(11, Some("silent")), run(12, Some("silent")), run(13, Some("gated"))]));
        let watts =
            "Watts: mean power of windows in which nothing but searches ran, idle power included, at the speed there, of which MTEPS/W is.";
        assert!(text.contains(&format!("{watts} No watts (scales 11, 12): silent. No watts (scale 13): gated.\n")), "{text}");
        let text = board(&report(vec![run(10, Some("silent")), run(11, None)]));
        assert!(text.contains(&format!("{watts} No watts (scale 10): silent.\n")), "{text}");
        assert!(!board(&report(vec![run(10, None), run(11, None)])).contains("No watts"));
    }

    #[test]
    fn without_a_sensor_the_reason_is_given() {
        let text = board(&report(vec![record(&[0.001])]));
        assert!(text.contains("| Idle power | n/a: no power sensor was found on this machine |\n"), "{text}");
        assert!(text.contains(" No watts: no power sensor was found on this machine.\n"), "{text}");
        assert!(text.contains("The tree passed"), "{text}");
    }

    #[test]
    fn a_failed_validation_hides_all_speeds() {
        let mut bad = record(&[0.001]);
        bad.valid = false;
        let report = report(vec![record(&[0.001]), bad]);
        assert!(!report.valid);
        assert_eq!(board(&report), INVALID);
    }

    #[test]
    fn the_page_of_a_board_names_the_scales_that_are_left_out() {
        let mut all = BoardRecord::new(record(&[0.001]).environment, BoardIdentity::default(), Drivers::default());
        assert!(document(&all, &Value::Null).warnings.is_empty());
        all.left_out = vec![LeftOut { scale: 22, reason: "interrupted".into() }];
        assert_eq!(document(&all, &Value::Null).warnings, ["scale 22 is left out: interrupted"]);
    }
}
