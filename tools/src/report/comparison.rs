//! Two recorded runs side by side.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::Value;

use super::{
    cells::{Cell, NONE, Table, fact, hanging},
    effect::{Effect, Of, verdict},
    figures::{Chart, Document, Figure, Section, flatten, text},
    possible::possible,
};
use crate::{
    bench::{RecordError, WRITE_ONE, read_run},
    record::{EnergyRecord, Record, Summary},
};
use socbfs::{
    Vertex, stats,
    words::{counted, general, mteps, seconds},
};

/// A recorded run.
#[derive(Debug)]
pub struct Run {
    /// The record.
    pub record: Record,
    /// The record as it was read: fields are compared by name.
    pub value: Value,
}

/// Fields of a graph's record that are equal if two graphs are the same.
const SAME_GRAPH: [&str; 5] = ["vertices", "listed", "edges", "unique_edges", "directed"];

/// What a run measures or chooses: it differs between any two.
const MEASURED: [&str; 13] = [
    "environment.time",
    "environment.command",
    "environment.load",
    "environment.temperatures",
    "environment.temperatures_after",
    "graph.acquisition_seconds",
    "layout.steps",
    "layout.construction_seconds",
    "search.thresholds",
    "search.chosen",
    "cluster.graph",
    "cluster.arcs_max_over_mean",
    "cluster.roots",
];

/// What a verdict on two records can't know.
const NOT_IN_TURN: &str = "The runs were not taken in turn, so a drift of the machine between them counts as a difference.";

/// 95 % of a normal distribution lie within this many standard deviations of the mean.
pub(super) const TWO_SIDED_95: f64 = 1.96;

/// The 95 % interval around the ratio of the harmonic means of B and A, each with its standard error: half of its width.
fn interval([a, b]: [(f64, Option<f64>); 2]) -> Option<f64> {
    // The errors of the two means are independent, so their relative squares add up.
    Some(TWO_SIDED_95 * b.0 / a.0 * (a.1? / a.0).hypot(b.1? / b.0))
}

/// B's speed over A's, by the medians and by the means: root by root if the runs searched from the same roots, else by the harmonic means,
/// each with its standard error.
fn effects(means: [(f64, Option<f64>); 2], roots: &[f64]) -> [Option<Effect>; 2] {
    if !roots.is_empty() {
        let logs = vec![roots.iter().map(|ratio| vec![ratio.ln()]).collect()];
        return [Of::Medians, Of::Means].map(|of| Effect::new(&logs, of));
    }
    let ratio = means[1].0 / means[0].0;
    [interval(means).map(|half| Effect { ratio, low: ratio - half, high: ratio + half }); 2]
}

/// Two runs side by side. "B over A" above 1 is in favour of B.
#[derive(Debug)]
pub struct Comparison {
    /// Harmonic mean TEPS of A and B, each with its standard error.
    rates: [(f64, Option<f64>); 2],
    /// Harmonic mean TEPS of A and B, without the time for mapping back to original numbers.
    without_mapping: [f64; 2],
    /// Median time of a search of A and B, in seconds.
    median_seconds: [f64; 2],
    /// MTEPS/W of A and B, if both measured energy and their scope is the same.
    mteps_per_watt: Option<[f64; 2]>,
    /// The times of A and B from the roots that both searched.
    roots: Vec<(Vertex, [f64; 2])>,
    /// B's speed over A's by the median over the roots (`None`: one search shows no spread).
    pub medians: Option<Effect>,
    /// Which run is faster, if that is certain.
    verdict: String,
    /// Every field that differs: its name, and its values in A and B. For `roots`, numbers of roots.
    pub differences: Vec<(String, [String; 2])>,
}

impl Run {
    /// Reads a run from the JSON text of `socbfs bench --json`; `name` names it in errors.
    ///
    /// # Errors
    /// [`RecordError`] if the text is not a record of a run, has another version, or can't have been measured.
    pub fn parse(text: &str, name: &str) -> Result<Self, RecordError> {
        let (record, value) = read_run(text, name)?;
        let impossible = |reason| RecordError::new(format!("{name} is not the record of a run as it was measured: {reason}"));
        possible(&record).map_err(|reason| impossible(reason).cured(WRITE_ONE))?;
        Ok(Self { record, value })
    }
}

impl Comparison {
    /// Compares run `a` with run `b`. Runs over different graphs are compared only with `force`.
    ///
    /// # Errors
    /// [`RecordError`] if one of them failed validation, or their graphs differ.
    pub fn new(a: (&str, &Run), b: (&str, &Run), force: bool) -> Result<Self, RecordError> {
        fn figures<'r>((name, run): (&str, &'r Run)) -> Result<&'r Summary, RecordError> {
            let message = || format!("{name} is the record of a run that failed validation: it has no speed");
            let summary = run.record.summary.as_ref().filter(|_| run.record.valid);
            summary.ok_or_else(|| RecordError::new(message()))
        }
        let of = [figures(a)?, figures(b)?];
        let (a, b) = (a.1, b.1);
        if !force {
            same_graph(a, b)?;
        }
        let mut differences = Vec::new();
        for name in ["environment", "graph", "layout", "search"] {
            differing(name, &a.value[name], &b.value[name], &mut differences);
        }
        match (&a.record.cluster, &b.record.cluster) {
            (Some(_), Some(_)) => differing("cluster", &a.value["cluster"], &b.value["cluster"], &mut differences),
            (None, None) => {}
            // One process has none of the other settings of ranks.
            (a, b) => {
                let processes = [a, b].map(|ranks| ranks.as_ref().map_or(1, |ranks| ranks.processes).to_string());
                differences.push(("cluster.processes".to_owned(), processes));
            }
        }
        differences.extend(different_roots(&a.record, &b.record));
        let mteps_per_watt = efficiency(&a.record.energy, &b.record.energy);
        if mteps_per_watt.is_some() {
            // The same scope may have been measured by different sensors.
            let [left, right] = [a, b].map(|run| &run.value["energy"]["measured"]["sensors"]);
            differing("energy.sensors", left, right, &mut differences);
        }
        let rates = of.map(|of| (of.teps.harmonic_mean, of.teps.harmonic_stddev));
        let roots = root_ratios(&a.record, &b.record);
        let [medians, means] = effects(rates, &ratios(&roots));
        Ok(Self {
            rates,
            without_mapping: of.map(|of| of.teps_without_mapping.harmonic_mean),
            median_seconds: of.map(|of| of.seconds.median),
            mteps_per_watt,
            roots,
            verdict: verdict(medians, means),
            medians,
            differences,
        })
    }

    /// The comparison as text, without the differences (the command prints those as warnings).
    pub fn table(&self, names: [&str; 2]) -> String {
        let section = self.section(names).brief(|figure| figure.id == "compared");
        text(&Document { sections: vec![section], ..Document::default() }, false, true)
    }

    /// The ratio of the two runs, B over A: of their figures, and root by root.
    pub fn section(&self, names: [&str; 2]) -> Section {
        let speed = |what, [a, b]: [f64; 2]| (what, [a, b].map(|teps| Cell { text: mteps(teps), value: Some(teps / 1e6) }), Some(b / a));
        let means = self.rates.map(|(mean, _)| mean);
        let median = stats::Summary::of(&ratios(&self.roots)).map(|of| of.median);
        let mut rows = vec![speed("harmonic mean", means)];
        // The two are equal if no layout renumbers vertices.
        rows.extend((self.without_mapping != means).then(|| speed("without mapping", self.without_mapping)));
        let [a, b] = self.median_seconds;
        rows.push(("median time", [a, b].map(Cell::seconds), Some(a / b)));
        rows.push(("per root, median", [Cell::word(counted(self.roots.len() as u64, "root", "roots")), Cell::default()], median));
        rows.extend(self.mteps_per_watt.map(|[a, b]| ("MTEPS/W", [a, b].map(Cell::number), Some(b / a))));
        let half = interval(self.rates).map_or_else(String::new, |half| format!(" (95 % interval +/- {})", general(half, 3)));
        let ratio = general(means[1] / means[0], 4);
        let sentence = format!("{} {NOT_IN_TURN} B has {ratio} times the harmonic mean of A{half}.", self.verdict);
        let compared = Figure::new("compared", SOURCE, "B over A (above 1: B did better)", sentence).table(Table::of(
            rows,
            &[
                ("", &|(what, ..)| Cell::word(*what)),
                ("A", &|(_, [a, _], _)| a.clone()),
                ("B", &|(_, [_, b], _)| b.clone()),
                ("B over A", &|(.., ratio)| Cell::of(*ratio, |ratio| Cell { text: format!("{ratio:.3}"), value: Some(ratio) })),
            ],
        ));
        let (x, y) = ("time of A over time of B (above 1: B is faster)", "% of roots with at most this ratio");
        let sentence = format!("The median is {}.", median.map_or_else(|| NONE.to_owned(), |median| general(median, 4)));
        let by_root = Figure::new("ratio", SOURCE, "B over A, root by root", sentence)
            .chart(Chart::distribution(x, y, "roots", ratios(&self.roots)))
            .table(Table::of(
                &self.roots,
                &[
                    ("root", &|(root, _)| Cell::name(*root)),
                    ("A", &|(_, [a, _])| Cell::seconds(*a)),
                    ("B", &|(_, [_, b])| Cell::seconds(*b)),
                    ("B over A", &|(_, [a, b])| Cell::number(a / b)),
                ],
            ));
        Section { title: "B over A".into(), facts: vec![fact("A", names[0]), fact("B", names[1])], figures: vec![compared, by_root] }
    }
}

const SOURCE: &str = "socbfs compare";

/// A's time over B's, for each root.
fn ratios(roots: &[(Vertex, [f64; 2])]) -> Vec<f64> {
    roots.iter().map(|(_, [a, b])| a / b).collect()
}

/// Runs of A and B over one graph that took turns: a pair of each round.
#[derive(Debug, Default)]
pub struct InTurn {
    rounds: Vec<[Run; 2]>,
}

impl InTurn {
    /// Adds the runs of a round. `names` are those of A and B in errors.
    ///
    /// # Errors
    /// [`RecordError`] if a run failed validation, or did not search the graph of the first run from the same roots.
    pub fn add(&mut self, names: [&str; 2], pair: [Run; 2]) -> Result<(), RecordError> {
        for (name, run) in names.iter().zip(&pair) {
            if !run.record.valid || run.record.summary.is_none() {
                return Err(RecordError::new(format!("a tree of {name} failed validation: it has no speed")));
            }
            let first = self.rounds.first().map_or(&pair[0], |[first, _]| first);
            same_graph(first, run)?;
            if let Some((_, [first, other])) = different_roots(&first.record, &run.record) {
                let cure = "let the flags of A and B leave --roots and --seed alone";
                return Err(RecordError::new(format!("{name} searched from other roots ({other}) than A ({first})")).cured(cure));
            }
        }
        self.rounds.push(pair);
        Ok(())
    }

    /// For each root, the logarithms of A's time over B's in every round.
    pub fn logs(&self) -> Vec<Vec<f64>> {
        let rounds: Vec<Vec<f64>> = self
            .rounds
            .iter()
            .map(|[a, b]| {
                let mut ratios = root_ratios(&a.record, &b.record);
                ratios.sort_by_key(|&(root, _)| root);
                ratios.iter().map(|(_, [a, b])| (a / b).ln()).collect()
            })
            .collect();
        let roots = rounds.iter().map(Vec::len).min().unwrap_or(0);
        (0..roots).map(|root| rounds.iter().map(|round| round[root]).collect()).collect()
    }

    /// Medians and means of the times of A and B, with the ratio of their speeds and its interval, and the verdict.
    pub fn table(&self, name: &str) -> String {
        let times = [0, 1].map(|side| {
            let searches = self.rounds.iter().flat_map(|pair| &pair[side].record.roots);
            stats::Summary::of(&searches.filter_map(|root| root.seconds).collect::<Vec<f64>>())
        });
        let logs = vec![self.logs()];
        let [medians, means] = [Of::Medians, Of::Means].map(|of| Effect::new(&logs, of));
        let (roots, rounds) = (counted(logs[0].len() as u64, "root", "roots"), counted(self.rounds.len() as u64, "round", "rounds"));
        let mut text = format!("{name}, {roots}, {rounds} in turn\n\n{:<8}{:>12}{:>12}{:>10}   95 %\n", "", "A", "B", "B over A");
        for (word, of, effect) in [("median", (|of| of.median) as fn(&stats::Summary) -> f64, medians), ("mean", |of| of.mean, means)] {
            let [a, b] = times.map(|times| times.map_or_else(|| "n/a".to_owned(), |times| seconds(of(&times))));
            let (ratio, range) = effect.map_or_else(Default::default, |Effect { ratio, low, high }| {
                (format!("{ratio:.3}"), format!("{} to {}", general(low, 4), general(high, 4)))
            });
            // Writing to a String can't fail.
            let _ = writeln!(text, "{word:<8}{a:>12}{b:>12}{ratio:>10}   {range}");
        }
        format!("{text}\n{}", hanging("", &verdict(medians, means)))
    }
}

/// The effect over all graphs, and the sentence about it.
pub fn over_graphs(graphs: &[InTurn]) -> (Option<Effect>, String) {
    let logs = graphs.iter().map(InTurn::logs).collect();
    let [medians, means] = [Of::Medians, Of::Means].map(|of| Effect::new(&logs, of));
    (medians, verdict(medians, means))
}

/// MTEPS/W of both runs, as means over their windows; `None` if their scopes differ.
fn efficiency(a: &EnergyRecord, b: &EnergyRecord) -> Option<[f64; 2]> {
    let of = |energy: &EnergyRecord| energy.summary().map(|summary| summary.mteps_per_watt.mean);
    let is_same = a.measured.as_ref()?.scope == b.measured.as_ref()?.scope;
    is_same.then_some([of(a)?, of(b)?])
}

fn same_graph(a: &Run, b: &Run) -> Result<(), RecordError> {
    let different = |what: String| {
        let message = format!("the runs searched different graphs ({what}); --force compares them all the same");
        Err(RecordError::new(message))
    };
    for field in SAME_GRAPH {
        let [left, right] = [a, b].map(|run| &run.value["graph"][field]);
        if left != right {
            return different(format!("{field}: {left} and {right}"));
        }
    }
    // The sizes are equal. If the graphs are too, the same root traverses the same number of edges.
    for root in &a.record.roots {
        if let Some(other) = b.record.roots.iter().find(|other| other.root == root.root && other.edges != root.edges) {
            return different(format!("root {} traverses {} edges and {}", root.root, root.edges, other.edges));
        }
    }
    Ok(())
}

/// The numbers of roots, if the runs searched from different ones: their means are then over different searches.
fn different_roots(a: &Record, b: &Record) -> Option<(String, [String; 2])> {
    let roots = |run: &Record| run.roots.iter().map(|root| root.root).collect::<BTreeSet<_>>();
    let (left, right) = (roots(a), roots(b));
    let common = left.intersection(&right).count();
    (left != right).then(|| ("roots".to_owned(), [left.len().to_string(), format!("{}, {common} of them in common", right.len())]))
}

/// The times of A and B from every root that both searched, in the order of B.
fn root_ratios(a: &Record, b: &Record) -> Vec<(Vertex, [f64; 2])> {
    let time_in_a = |root: Vertex| a.roots.iter().find(|other| other.root == root)?.seconds;
    b.roots.iter().filter_map(|root| Some((root.root, [time_in_a(root.root)?, root.seconds?]))).collect()
}

/// Collects the leaves at which two values differ. Skips fields that a run measures, since they are not settings. A record of an older
/// build may lack a key that is null or empty in a newer one.
fn differing(name: &str, a: &Value, b: &Value, found: &mut Vec<(String, [String; 2])>) {
    let is_within = |path: &str, name: &str| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let is_measured = |path: &str| {
        MEASURED.iter().any(|name| is_within(path, name))
            || path.contains(".handover.")
            || path.starts_with("cluster.devices.") && (path.contains(".bands.") || path.ends_with(".levels"))
    };
    let [left, right] = [a, b].map(|value| {
        let mut leaves = Vec::new();
        flatten(name, value, &mut leaves);
        leaves
    });
    let value = |leaves: &[(String, String)], path: &str| leaves.iter().find(|(other, _)| other == path).map(|(_, value)| value.clone());
    let paths = left.iter().chain(right.iter().filter(|(path, _)| value(&left, path).is_none())).map(|(path, _)| path);
    for path in paths.filter(|path| !is_measured(path)) {
        let values = [value(&left, path), value(&right, path)];
        if values[0] != values[1] {
            found.push((path.clone(), values.map(|value| value.unwrap_or_else(|| "unknown".to_owned()))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::{ClusterRecord, ClusterRoot, RankDeviceRecord},
        report::tests::{measured_energy, record},
    };
    use socbfs::memory::SharingMode;
    use socbfs_cluster::{Exchange, PartCounts};
    use socbfs_policy::{Band, Bands};

    fn run(record: &Record) -> Run {
        Run::parse(&serde_json::to_string(record).unwrap(), "x.json").unwrap()
    }

    fn compare(a: &Record, b: &Record, force: bool) -> Result<Comparison, RecordError> {
        Comparison::new(("a.json", &run(a)), ("b.json", &run(b)), force)
    }

    #[test]
    fn ratios_say_how_much_faster_b_is() {
        let c = compare(&record(&[0.002, 0.004, 0.008]), &record(&[0.001, 0.001, 0.004]), false).unwrap();
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        // All roots have the same number of edges, so the harmonic means are in inverse proportion to the sums of the times.
        near(c.rates[1].0 / c.rates[0].0, 14.0 / 6.0);
        let roots = stats::Summary::of(&ratios(&c.roots)).unwrap();
        near(roots.median, 2.0);
        assert_eq!(roots.count, 3);
        assert!(c.differences.is_empty(), "{:?}", c.differences);
        let table = c.table(["a.json", "b.json"]);
        assert!(table.contains("2.333") && table.contains("B over A"), "{table}");
    }

    #[test]
    fn a_side_is_called_faster_by_the_median_over_the_roots() {
        let verdict = |a: &Record, b: &Record| compare(a, b, true).unwrap().verdict;
        let steady = record(&[0.001; 16]);
        // Three searches were disturbed: the means differ by a factor of 2.1, the medians by none.
        let mut disturbed = [0.001; 16];
        (disturbed[2], disturbed[5], disturbed[9]) = (0.004, 0.007, 0.009);
        let same = "No difference that this noise lets see: B's speed over A's is between ";
        assert!(verdict(&steady, &record(&disturbed)).starts_with(same));
        assert!(verdict(&record(&disturbed), &steady).starts_with(same));
        // Most roots are a little faster, and a few much slower.
        let mixed = disturbed.map(|seconds| if seconds == 0.001 { 0.0009 } else { seconds });
        let expected = "No difference is certain: by the median B is 11 % faster, by the mean its speed over A's is ";
        assert!(verdict(&steady, &record(&mixed)).starts_with(expected), "{}", verdict(&steady, &record(&mixed)));
        // The times of the roots differ by more than those of the runs, and each root is faster.
        let times: Vec<f64> = (1..=16).map(|root| 0.001 * f64::from(root)).collect();
        let slower: Vec<f64> = times.iter().map(|seconds| 1.05 * seconds).collect();
        assert_eq!(verdict(&record(&slower), &record(&times)), "B is 5 % faster, 95 % between 5 and 5 %.");
        assert_eq!(verdict(&record(&times), &record(&slower)), "B is 5 % slower, 95 % between 5 and 5 %.");
        assert_eq!(verdict(&record(&[0.002]), &record(&[0.001])), "No difference is certain: one search shows no spread.");
        // From other roots.
        let elsewhere = |run: &Record| {
            let mut run = run.clone();
            run.roots.iter_mut().for_each(|root| root.root += 100);
            run
        };
        assert!(verdict(&record(&slower), &elsewhere(&record(&times))).starts_with(same));
        assert!(verdict(&record(&[0.002, 0.0021, 0.0022]), &elsewhere(&steady)).starts_with("B is 110 % faster, 95 % between "));
    }

    #[test]
    fn runs_in_turn_are_of_the_same_graph_and_roots() {
        let mut turns = InTurn::default();
        let (a, b) = (record(&[0.002, 0.004, 0.008]), record(&[0.001, 0.002, 0.004]));
        for _ in 0..3 {
            turns.add(["A", "B"], [run(&a), run(&b)]).unwrap();
        }
        assert_eq!(turns.logs().len(), 3);
        let text = turns.table("g.el");
        for part in ["g.el, 3 roots, 3 rounds in turn", "median", "4.000 ms", "2.000 ms", "B is 100 % faster, 95 % between 100 and 100 %."]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        let (effect, sentence) = over_graphs(&[turns]);
        assert!(sentence.starts_with("B is 100 % faster") && !effect.unwrap().is_slower_by(0.0), "{sentence}");
        let mut turns = InTurn::default();
        turns.add(["A", "B"], [run(&b), run(&a)]).unwrap();
        assert!(over_graphs(&[turns]).0.unwrap().is_slower_by(99.0));
        let refused = |pair: [Run; 2]| InTurn::default().add(["A", "B"], pair).unwrap_err().to_string();
        assert!(refused([run(&a), run(&record(&[0.001]))]).contains("B searched from other roots (1, 1 of them in common) than A (3)"));
        let failed = Record { valid: false, ..record(&[0.002]) };
        assert_eq!(refused([run(&failed), run(&a)]), "a tree of A failed validation: it has no speed");
    }

    #[test]
    fn every_differing_field_is_named() {
        let mut other = record(&[0.001]);
        other.search.threads = 4;
        other.environment.cpu.model = Some("Cortex-A72".into());
        other.environment.time = "another".into();
        other.layout.construction_seconds = 9.0;
        let c = compare(&record(&[0.001]), &other, false).unwrap();
        let expected = [
            ("environment.cpu.model".to_owned(), ["unknown".to_owned(), "Cortex-A72".to_owned()]),
            ("search.threads".to_owned(), ["2".to_owned(), "4".to_owned()]),
        ];
        assert_eq!(c.differences, expected);
    }

    #[test]
    fn different_sensors_are_listed_as_a_difference() {
        let (mut a, mut b) = (record(&[0.001]), record(&[0.001]));
        (a.energy, b.energy) = (measured_energy(), measured_energy());
        assert!(compare(&a, &b, false).unwrap().differences.is_empty());
        b.energy.measured.as_mut().unwrap().sensors = vec!["powercap:intel-rapl:1".into()];
        let c = compare(&a, &b, false).unwrap();
        assert!(c.mteps_per_watt.is_some());
        assert_eq!(c.differences[0].0, "energy.sensors");
    }

    /// A run over ranks.
    fn over(processes: usize, sorted: bool) -> Record {
        let cluster = ClusterRecord {
            processes,
            library: "Open MPI".into(),
            exchange: Exchange::Found,
            batch: 4096,
            sorted,
            devices: Vec::new(),
            graph: PartCounts::default(),
            arcs_max_over_mean: processes as f64,
            roots: vec![ClusterRoot { received_most: 8, sent: 8 * processes as u64, wait_ns: 9, levels: Vec::new() }],
        };
        Record { cluster: Some(cluster), ..record(&[0.001]) }
    }

    #[test]
    fn runs_over_different_ranks_are_told_apart() {
        let differences = |a: &Record, b: &Record| compare(a, b, false).unwrap().differences;
        let expected = |name: &str, a: &str, b: &str| (name.to_owned(), [a.to_owned(), b.to_owned()]);
        assert_eq!(differences(&over(2, true), &over(2, true)), []);
        let found = differences(&over(2, true), &over(4, false));
        assert_eq!(found, [expected("cluster.processes", "2", "4"), expected("cluster.sorted", "true", "false")]);
        assert_eq!(differences(&record(&[0.001]), &over(2, true)), [expected("cluster.processes", "1", "2")]);
    }

    #[test]
    fn devices_of_ranks_are_compared_without_what_was_measured() {
        let with = |rank, levels, bands| {
            let mut all = over(2, true);
            all.cluster.as_mut().unwrap().devices.push(RankDeviceRecord {
                rank,
                name: "GPU".into(),
                driver: "1".into(),
                memory_way: SharingMode::Copy,
                bands: Some(Bands { top_down: Band { gpu_from: Some(bands), ..Band::CPU }, ..Bands::CPU }),
                levels,
                fallen_back: None,
            });
            run(&all)
        };
        let differences = |a: &Run, b: &Run| Comparison::new(("a", a), ("b", b), false).unwrap().differences;
        assert_eq!(differences(&with(0, 5, 1000), &with(0, 6, 2000)), []);
        assert_eq!(differences(&with(0, 5, 1000), &with(1, 5, 1000))[0].0, "cluster.devices.0.rank");
    }

    #[test]
    fn a_device_that_one_run_lacks_is_named_without_what_was_measured() {
        // Of the record of a device, what is compared: its name, and a table that is measured.
        let mut with = run(&record(&[0.001]));
        with.value["search"]["devices"] = serde_json::json!([{ "name": "GPU", "handover": { "ways": [{ "way": "copy" }] } }]);
        let differences = Comparison::new(("a", &run(&record(&[0.001]))), ("b", &with), false).unwrap().differences;
        assert_eq!(differences, [("search.devices.0.name".to_owned(), ["unknown".to_owned(), "GPU".to_owned()])]);
    }

    #[test]
    fn runs_from_different_roots_are_told_apart() {
        let differences = |a: &Record, b: &Record| compare(a, b, false).unwrap().differences;
        let (three, mut other) = (record(&[0.001, 0.002, 0.004]), record(&[0.001, 0.002, 0.004]));
        let expected = |a: &str, b: &str| [("roots".to_owned(), [a.to_owned(), b.to_owned()])];
        assert_eq!(differences(&three, &record(&[0.001])), expected("3", "1, 1 of them in common"));
        other.roots[0].root = 9;
        assert_eq!(differences(&three, &other), expected("3", "3, 2 of them in common"));
        // The order of the roots changes no mean.
        other.roots[0].root = 0;
        other.roots.swap(0, 2);
        assert_eq!(differences(&three, &other), []);
    }

    #[test]
    fn different_graphs_are_compared_only_by_force() {
        let mut other = record(&[0.001]);
        other.graph.counts.edges += 1;
        let refused = compare(&record(&[0.001]), &other, false).unwrap_err().to_string();
        assert!(refused.contains("edges: 16775900 and 16775901"), "{refused}");
        let forced = compare(&record(&[0.001]), &other, true).unwrap();
        assert_eq!(forced.differences[0].0, "graph.edges");
        let mut other = record(&[0.001]);
        other.roots[0].edges = 5;
        assert!(compare(&record(&[0.001]), &other, false).unwrap_err().to_string().contains("root 0"));
    }

    #[test]
    fn failed_runs_and_foreign_files_are_refused() {
        let mut failed = record(&[0.001]);
        failed.valid = false;
        let error = compare(&failed, &record(&[0.001]), true).unwrap_err().to_string();
        assert_eq!(error, "a.json is the record of a run that failed validation: it has no speed");
        let refused = |text: &str| Run::parse(text, "f").unwrap_err().to_string();
        assert!(refused("{}").starts_with("f is not a record of `socbfs bench --json` (line 1: missing field"));
        assert!(refused("not json").starts_with("f is not a record of `socbfs bench --json` (line 1: "));
        let newer = serde_json::to_string(&record(&[0.001])).unwrap().replace("\"schema_version\":1", "\"schema_version\":2");
        assert_eq!(refused(&newer), "f has schema socbfs-bench version 2; this build of socbfs reads socbfs-bench version 1");
    }

    #[test]
    fn records_of_another_kind_are_named() {
        for (schema, kind) in [
            ("socbfs-analysis", "`socbfs analyze` or `socbfs reproduce`"),
            ("socbfs-board", "`socbfs bench --report board`"),
            ("socbfs-policies", "`socbfs policies`"),
            ("x", "another kind (x)"),
        ] {
            let error = Run::parse(&format!("{{\"schema\": \"{schema}\", \"schema_version\": 2}}"), "f").unwrap_err().to_string();
            assert!(error.starts_with(&format!("f is a record of {kind}; only records of `socbfs bench --json`")), "{error}");
        }
    }

    #[test]
    fn runs_that_cannot_have_been_measured_are_refused() {
        let mut impossible = record(&[0.001, 0.002]);
        impossible.roots[1].seconds = Some(-1.0);
        let refused = |record: &Record| Run::parse(&serde_json::to_string(record).unwrap(), "f.json").unwrap_err().to_string();
        assert!(refused(&impossible).contains("f.json is not the record of a run as it was measured: root 1 has a time of -1 s"));
        impossible.roots.clear();
        assert!(refused(&impossible).contains("its summary is of 2 roots, and its list has 0"));
    }

    #[test]
    fn speeds_without_mapping_are_compared_if_anything_is_mapped() {
        let mut plain = record(&[0.001]);
        let table = |a: &Record, b: &Record| compare(a, b, false).unwrap().table(["a", "b"]);
        assert!(table(&plain, &plain).contains("without mapping"));
        let mapped = plain.clone();
        plain.roots[0].mapping_seconds = Some(0.0);
        plain.summary = Summary::new(&plain.roots, plain.graph.counts.edges);
        assert!(!table(&plain, &plain).contains("without mapping") && table(&plain, &mapped).contains("without mapping"));
    }
}
