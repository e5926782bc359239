//! The report of a run as text.

use std::fmt::{self, Write};

use super::{
    cells::{row, written},
    energy,
};
use crate::record::{Record, Summary};
use socbfs::{
    graph::Order,
    policy::Objective,
    words::{bytes, counted, general, grouped, mteps, seconds},
};

/// The run as text: machine, graph, layout, search, validation, figures, energy, warnings.
pub fn table(record: &Record) -> String {
    written(|out| write(out, record))
}

fn write(out: &mut String, record: &Record) -> fmt::Result {
    machine(out, record)?;
    graph(out, record)?;
    layout(out, record)?;
    search(out, record)?;
    validation(out, record)?;
    energy::source(out, &record.energy)?;
    if let Some(summary) = record.summary.as_ref().filter(|_| record.valid) {
        figures(out, summary)?;
        energy::figures(out, &record.energy)?;
    }
    for warning in &record.warnings {
        write!(out, "\nwarning: {warning}")?;
    }
    if !record.warnings.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

fn machine(out: &mut String, record: &Record) -> fmt::Result {
    let e = &record.environment;
    let model = e.cpu.model.as_deref().unwrap_or("unknown CPU");
    let memory = e.memory_bytes.map_or_else(|| "memory unknown".to_owned(), bytes);
    row(out, "Machine", format_args!("{model}, {}, {memory}", counted(e.cpu.usable as u64, "CPU", "CPUs")))
}

fn graph(out: &mut String, record: &Record) -> fmt::Result {
    let (g, c) = (&record.graph, &record.graph.counts);
    row(out, "Graph", &g.source)?;
    let kind = if g.directed { "directed" } else { "undirected" };
    row(out, "", format_args!("{kind}, {}, {} listed", counted(c.vertices, "vertex", "vertices"), counted(c.listed, "edge", "edges")))?;
    let repeats = c.edges.saturating_sub(c.unique_edges);
    let loops = counted(c.self_loops, "self-loop", "self-loops");
    row(out, "", format_args!("{} distinct edges, {}, {loops}", grouped(c.unique_edges), counted(repeats, "repeat", "repeats")))?;
    row(out, "", format_args!("{} in {}", if g.generated { "generated" } else { "read" }, seconds(g.acquisition_seconds)))
}

fn layout(out: &mut String, record: &Record) -> fmt::Result {
    let (l, c) = (&record.layout, &record.graph.counts);
    let order = match l.order {
        Order::Degree => "by descending degree",
        Order::Rcm => "reverse Cuthill-McKee",
        Order::Original | Order::Auto => "as given",
    };
    let why = if l.order_asked == l.order { "asked for with --order" } else { "chosen for this graph" };
    let dropped = c.vertices.saturating_sub(c.searched_vertices + c.leaves);
    let searched = counted(c.searched_vertices, "vertex", "vertices");
    let leaves = if c.leaves > 0 { format!(", {} after the search", counted(c.leaves, "leaf", "leaves")) } else { String::new() };
    row(out, "Layout", format_args!("{order} ({why}), {searched} searched{leaves}, {} dropped", grouped(dropped)))?;
    row(out, "", format_args!("{} built in {}", bytes(l.bytes), seconds(l.construction_seconds)))?;
    for step in &l.steps {
        let peak = step.peak_bytes.map_or_else(String::new, |peak| format!("  peak {}", bytes(peak)));
        row(out, "", format_args!("  {:<28}{:>10}{peak}", step.step, seconds(step.seconds)))?;
    }
    Ok(())
}

fn search(out: &mut String, record: &Record) -> fmt::Result {
    let s = &record.search;
    let bound = match &s.cpus[..] {
        [] => "not bound to CPUs".to_owned(),
        cpus => format!("bound to CPU {}", cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    row(out, "Search", format_args!("{}, {bound}, {}, policy {}", counted(s.threads as u64, "thread", "threads"), s.simd, s.policy))?;
    if let Some(calibration) = &s.calibration {
        row(out, "Calibration", format_args!("{}, of {}", calibration.file, calibration.date))?;
    }
    if s.objective != Objective::Time {
        row(out, "Objective", format_args!("{}", s.objective))?;
    }
    for device in &s.devices {
        let used = &device.used;
        let parts = if used.parts == 1 { String::new() } else { format!(", neighbours in {} parts", used.parts) };
        let copied = if used.zero_copy { "in place" } else { "copied" };
        row(out, "Device", format_args!("{} ({}, driver {})", used.name, used.platform, used.driver))?;
        let items = counted(used.group as u64, "item", "items");
        let claims = if used.bins { "; claims by bins" } else { "" };
        row(out, "", format_args!("work-groups of {items}{parts}; graph {copied}; memory by {}{claims}", device.memory_way))?;
    }
    if let Some(cluster) = &record.cluster {
        row(out, "Ranks", format_args!("{} by {}", cluster.processes, cluster.library))?;
    }
    for device in record.cluster.iter().flat_map(|cluster| &cluster.devices) {
        let levels = counted(device.levels, "level", "levels");
        row(out, "", format_args!("rank {}: {levels} on {} (driver {})", device.rank, device.name, device.driver))?;
    }
    if s.chosen.policy != s.policy {
        row(out, "Policy", format_args!("{} ({}: {})", s.chosen.policy, s.chosen.origin, s.chosen.reason))?;
    }
    for (place, band) in s.chosen.bands.iter().enumerate() {
        let value = band.value.map_or_else(|| "never".to_owned(), grouped);
        row(out, if place == 0 { "Bands" } else { "" }, format_args!("{} {value} ({})", band.key, band.origin))?;
    }
    match &s.fallen_back {
        Some(reason) => row(out, "", format_args!("WITHOUT the device for some searches: {reason}")),
        None => Ok(()),
    }
}

fn validation(out: &mut String, record: &Record) -> fmt::Result {
    match record.roots.iter().find(|root| !root.validation.passed) {
        None => {
            let roots = counted(record.roots.len() as u64, "root", "roots");
            let time: f64 = record.roots.iter().map(|root| root.validation.seconds).sum();
            row(out, "Validation", format_args!("{roots}, all five checks passed for each ({} in all, not timed)", seconds(time)))
        }
        Some(root) => {
            let violation = root.validation.violation.as_deref().unwrap_or("unknown");
            row(out, "Validation", format_args!("FAILED at root {}: {violation}", root.root))?;
            row(out, "", "no speed is reported for this run")
        }
    }
}

fn figures(out: &mut String, s: &Summary) -> fmt::Result {
    writeln!(out)?;
    let spread = s.teps.harmonic_stddev.map_or_else(String::new, |spread| format!("  +/- {}", mteps(spread)));
    writeln!(out, "  {:<26}{}{spread}", "Harmonic mean", mteps(s.teps.harmonic_mean))?;
    if s.mapping_share > 0.0 {
        writeln!(out, "  {:<26}{}", "  without mapping to ids", mteps(s.teps_without_mapping.harmonic_mean))?;
        writeln!(out, "  {:<26}{} %", "  mapping's share of time", general(100.0 * s.mapping_share, 3))?;
    }
    writeln!(out, "  {:<26}{}", "Median time", seconds(s.seconds.median))?;
    let [min, first, third, max] = [s.seconds.min, s.seconds.first_quartile, s.seconds.third_quartile, s.seconds.max].map(seconds);
    writeln!(out, "  {:<26}{first} .. {third}", "  quartiles")?;
    writeln!(out, "  {:<26}{min} .. {max}", "  range")?;
    let whole = mteps(s.whole_graph_edges_per_second).replace("MTEPS", "million/s");
    writeln!(out, "  {:<26}{whole} (whole graph / time: not TEPS)", "Whole-graph edges")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::record;

    #[test]
    fn a_valid_run_shows_its_figures() {
        let text = table(&record(&[0.001, 0.002]));
        for part in
            ["Harmonic mean             11,184 MTEPS", "Median time               1.500 ms", "2 roots, all five checks passed", "25 %"]
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
