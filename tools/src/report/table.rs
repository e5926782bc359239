//! The facts of a run: what a reader of its speeds has to know, and the speeds.

use super::{
    cells::{Cell, Facts, fact},
    energy,
    figures::{Document, Section, text},
};
use crate::record::{Environment, Record, SearchRecord, Summary};
use socbfs::{
    Order,
    words::{bytes, counted, grouped, mteps, seconds},
};
use socbfs_policy::Objective;

/// The run as text: its facts and warnings.
pub fn table(record: &Record) -> String {
    let section = Section { title: record.graph.source.clone(), facts: facts(record), ..Section::default() };
    text(&Document { warnings: record.warnings.clone(), sections: vec![section], ..Document::default() }, false, false)
}

/// Machine, graph, layout, search, validation, speeds, energy.
pub(super) fn facts(record: &Record) -> Facts {
    let mut facts = vec![fact("Machine", machine(&record.environment)), fact("Graph", graph(record)), fact("Layout", layout(record))];
    facts.extend(record.layout.steps.iter().map(|step| {
        let peak = step.peak_bytes.map_or_else(String::new, |peak| format!(", peak {}", bytes(peak)));
        (step.step.to_string(), Cell { text: format!("{}{peak}", seconds(step.seconds)), value: Some(step.seconds) })
    }));
    facts.extend(search(&record.search));
    if let Some(cluster) = &record.cluster {
        facts.push(fact("Ranks", format!("{} by {}", cluster.processes, cluster.library)));
        facts.extend(cluster.devices.iter().map(|device| {
            let levels = counted(device.levels, "level", "levels");
            (format!("Rank {}", device.rank), Cell::word(format!("{levels} on {} (driver {})", device.name, device.driver)))
        }));
    }
    facts.push(fact("Validation", validation(record)));
    facts.extend(energy::source(&record.energy));
    if let Some(summary) = record.summary.as_ref().filter(|_| record.valid) {
        facts.extend(speeds(summary));
        facts.extend(energy::figures(&record.energy));
    }
    facts
}

fn machine(e: &Environment) -> String {
    let model = e.cpu.model.as_deref().unwrap_or("unknown CPU");
    let memory = e.memory_bytes.map_or_else(|| "memory unknown".to_owned(), bytes);
    format!("{model}, {}, {memory}", counted(e.cpu.usable as u64, "CPU", "CPUs"))
}

fn graph(record: &Record) -> String {
    let (g, c) = (&record.graph, &record.graph.counts);
    format!(
        "{}, {}, {} listed, {} distinct, {}, {}; {} in {}",
        if g.directed { "directed" } else { "undirected" },
        counted(c.vertices, "vertex", "vertices"),
        counted(c.listed, "edge", "edges"),
        grouped(c.unique_edges),
        counted(c.edges.saturating_sub(c.unique_edges), "repeat", "repeats"),
        counted(c.self_loops, "self-loop", "self-loops"),
        if g.generated { "generated" } else { "read" },
        seconds(g.acquisition_seconds)
    )
}

fn layout(record: &Record) -> String {
    let (l, c) = (&record.layout, &record.graph.counts);
    let order = match l.order {
        Order::Degree => "by descending degree",
        Order::Bfs => "breadth-first",
        Order::Original | Order::Auto => "as given",
    };
    let why = if l.order_asked == l.order { "asked for with --order" } else { "chosen for this graph" };
    let dropped = grouped(c.vertices.saturating_sub(c.searched_vertices + c.leaves));
    let searched = counted(c.searched_vertices, "vertex", "vertices");
    let leaves = if c.leaves > 0 { format!(", {} after the search", counted(c.leaves, "leaf", "leaves")) } else { String::new() };
    let built = format!("{} built in {}", bytes(l.bytes), seconds(l.construction_seconds));
    format!("{order} ({why}), {searched} searched{leaves}, {dropped} dropped; {built}")
}

/// The settings of the searches, and what chose them.
pub(super) fn search(s: &SearchRecord) -> Facts {
    let bound = match &s.cpus[..] {
        [] => "not bound to CPUs".to_owned(),
        cpus => format!("bound to CPU {}", cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let threads = counted(s.threads as u64, "thread", "threads");
    let mut facts = vec![fact("Search", format!("{threads}, {bound}, {}, policy {}", s.simd, s.policy))];
    facts.extend(s.calibration.as_ref().map(|of| fact("Calibration", format!("{}, of {}", of.file, of.date))));
    facts.extend((s.objective != Objective::Time).then(|| fact("Objective", s.objective.to_string())));
    facts.extend(s.devices.iter().map(|device| {
        let used = &device.used;
        let parts = if used.parts == 1 { String::new() } else { format!(", neighbours in {} parts", used.parts) };
        let copied = if used.zero_copy { "in place" } else { "copied" };
        let items = counted(used.group as u64, "item", "items");
        let driver = format!("{} ({}, driver {})", used.name, used.platform, used.driver);
        fact("Device", format!("{driver}; work-groups of {items}{parts}; graph {copied}; memory by {}", device.memory_way))
    }));
    if s.chosen.policy != s.policy {
        facts.push(fact("Policy", format!("{} ({}: {})", s.chosen.policy, s.chosen.origin, s.chosen.reason)));
    }
    facts.extend(s.chosen.bands.iter().map(|band| {
        let value = band.value.map_or_else(|| "never".to_owned(), grouped);
        (band.key.to_string(), Cell::word(format!("{value} ({})", band.origin)))
    }));
    facts.extend(s.fallen_back.as_ref().map(|reason| fact("Fallen back", format!("WITHOUT the device for some searches: {reason}"))));
    facts
}

fn validation(record: &Record) -> String {
    match record.roots.iter().find(|root| !root.validation.passed) {
        None => {
            let roots = counted(record.roots.len() as u64, "root", "roots");
            let time: f64 = record.roots.iter().map(|root| root.validation.seconds).sum();
            format!("{roots}, all five checks passed for each ({} in all, not timed)", seconds(time))
        }
        Some(root) => {
            let violation = root.validation.violation.as_deref().unwrap_or("unknown");
            format!("FAILED at root {}: {violation}; no speed is reported for this run", root.root)
        }
    }
}

fn speeds(s: &Summary) -> Facts {
    let million = |teps: f64, text: String| Cell { text, value: Some(teps / 1e6) };
    let spread = s.teps.harmonic_stddev.map_or_else(String::new, |spread| format!(" +/- {}", mteps(spread)));
    let mean = s.teps.harmonic_mean;
    let mut facts = vec![("Harmonic mean".to_owned(), million(mean, mteps(mean) + &spread))];
    // 0 means that the layout does not renumber vertices.
    if s.mapping_share > 0.0 {
        let without = s.teps_without_mapping.harmonic_mean;
        facts.push(("without mapping to ids".to_owned(), million(without, mteps(without))));
        facts.push(("mapping's share of time".to_owned(), Cell::share(s.mapping_share)));
    }
    let [min, first, third, max] = [s.seconds.min, s.seconds.first_quartile, s.seconds.third_quartile, s.seconds.max].map(seconds);
    let whole = s.whole_graph_edges_per_second;
    let said = format!("{} (whole graph / time: not TEPS)", mteps(whole).replace("MTEPS", "million/s"));
    facts.push(("Median time".to_owned(), Cell::seconds(s.seconds.median)));
    facts.extend([fact("quartiles", format!("{first} .. {third}")), fact("range", format!("{min} .. {max}"))]);
    facts.push(("Whole-graph edges".to_owned(), million(whole, said)));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::record;

    #[test]
    fn a_valid_run_shows_its_figures() {
        let text = table(&record(&[0.001, 0.002]));
        for part in
            ["  Harmonic mean            11,184 MTEPS", "  Median time              1.500 ms", "2 roots, all five checks passed", "25.0 %"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("warning"), "{text}");
        assert!(text.lines().all(|line| line == line.trim_end()), "{text:?}");
    }

    #[test]
    fn a_run_without_mapping_has_no_figures_of_it() {
        let mut record = record(&[0.001]);
        assert!(table(&record).contains("mapping"));
        record.roots[0].mapping_seconds = Some(0.0);
        record.summary = Summary::new(&record.roots, record.graph.counts.edges);
        let text = table(&record);
        assert!(text.contains("Harmonic mean") && !text.contains("mapping"), "{text}");
    }

    #[test]
    fn a_failed_run_names_the_check_and_shows_no_speed() {
        let mut record = record(&[0.001, 0.002]);
        record.valid = false;
        record.roots[1].validation.passed = false;
        record.roots[1].validation.violation = Some("check 3: edge 7 - 9".into());
        record.warnings = vec!["careful".into()];
        let text = table(&record);
        assert!(text.contains("FAILED at root 1: check 3: edge 7 - 9"), "{text}");
        assert!(!text.contains("TEPS") && !text.contains("Median"), "{text}");
        assert!(text.ends_with("\nwarning: careful\n"), "{text}");
    }
}
