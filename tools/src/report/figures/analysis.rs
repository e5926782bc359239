//! Figures of `socbfs analyze`.

use serde_json::Value;

use super::{Cell, Chart, Document, Figure, Plot, Section, Series, Table, begin, policies};
use crate::{
    record::{
        Analysis, Claim, DeviceHandover, ExactLevel, GraphAnalysis, MappedLevel, MappedLevels, Paper, PaperComparison, PolicyComparison,
        Profile, RankScaling, Redundant, RedundantLevel, Remapped, Repeated, SplitDirection, SplitLevel, SplitShare, SplitSweep,
    },
    report::policies::remarks,
};
use socbfs::{
    GpuKernel,
    words::{bytes, counted, general, grouped, seconds},
};
use socbfs_boards::measure::{HandoverTimes, WayTimes};

const MS: f64 = 1e6;

pub(super) fn document(analysis: &Analysis, record: &Value) -> Result<Document, String> {
    let mut document = begin("Analyses of breadth-first searches", record, &[]);
    let wants = |id: &str| analysis.only.is_empty() || analysis.only.iter().any(|only| only == id);
    if let Some(found) = &analysis.paper {
        document.title = format!("{}, repeated on this machine", names(found.paper).0);
        document.sections.push(paper(found));
    }
    for graph in &analysis.graphs {
        graph.policies.as_ref().map_or(Ok(()), |compared| policies::check(&graph.name, compared))?;
        document.sections.push(section(graph, &wants));
    }
    let arrays = analysis.graphs.iter().find_map(|graph| graph.mapped.as_ref()).map_or(&[][..], |mapped| &mapped.arrays);
    document.sections.extend(analysis.handover.iter().map(|found| device(found, arrays)));
    if wants("surf") {
        let compared: Vec<&PolicyComparison> = analysis.graphs.iter().filter_map(|graph| graph.policies.as_ref()).collect();
        document.sections.extend(policies::over_graphs(&compared));
    }
    Ok(document)
}

fn section(graph: &GraphAnalysis, wants: &dyn Fn(&str) -> bool) -> Section {
    let root = graph.roots.first().map(|&root| ("root".into(), Cell::count(u64::from(root))));
    let facts = root.into_iter().chain(graph.profile.iter().flat_map(facts)).chain(graph.policies.iter().flat_map(remarks)).collect();
    let mut figures: Vec<Figure> = graph.profile.iter().map(profile).collect();
    figures.extend(graph.redundant.iter().flat_map(|found| [top_down(found), bottom_up(found)]));
    figures.extend(graph.repeated.as_ref().map(repeated));
    figures.extend(graph.split.iter().flat_map(|sweep| sweep.directions.iter().map(|found| split(sweep, found))));
    if let Some(compared) = &graph.policies {
        let of = [policies::histogram, policies::heat, policies::performance];
        figures.extend(of.into_iter().filter_map(|figure| figure(compared)).filter(|figure| wants(figure.id)));
        figures.extend(policies::energy(compared));
        figures.extend(policies::regret(compared, "").filter(|_| wants("surf")));
    }
    figures.extend(graph.ranks.as_ref().map(ranks));
    figures.extend(graph.mapped.as_ref().map(mapped));
    figures.extend(graph.remapped.as_ref().map(remapped));
    Section { title: graph.name.clone(), facts, figures }
}

fn facts(profile: &Profile) -> Vec<(String, Cell)> {
    let reached = profile.searches.first().map(|search| search.reached);
    [
        ("vertices n", Cell::count(profile.vertices)),
        ("vertices with an edge", Cell::count(profile.with_edges)),
        ("distinct edges m", Cell::count(profile.edges)),
        ("mean degree m_d", Cell::number(profile.mean_degree)),
        ("share of vertices above the mean degree p_h", Cell::share(profile.hub_share)),
        ("vertices reached", Cell::of(reached, Cell::count)),
        ("levels D + 1", Cell::count(profile.levels.len() as u64)),
        ("mean levels over the roots", Cell::number(profile.mean_levels)),
        ("roots", Cell::count(profile.searches.len() as u64)),
    ]
    .map(|(name, cell)| (name.to_owned(), cell))
    .into()
}

/// The level with the highest value of `of`; the first one if several are equal.
fn most(levels: &[RedundantLevel], of: fn(&ExactLevel) -> u64) -> Option<ExactLevel> {
    levels.iter().rev().map(|level| level.counts).max_by_key(of)
}

fn part(of: u64, all: u64) -> String {
    format!("{:.1} %", 100.0 * of as f64 / all.max(1) as f64)
}

/// The head of a column, and its cell in the row of a level.
type Named<'a, T> = (&'a str, fn(&T) -> Cell);

/// A table with these columns, and a chart with a line for each of the first `drawn`, whose values are multiplied by `scale` for `y`. Two
/// further columns number the levels from 0 and, as iterations, from 1.
fn by_level<T>(
    figure: Figure,
    (y, scale): (&str, f64),
    levels: &[T],
    number: fn(&T) -> u32,
    drawn: usize,
    columns: &[Named<'_, T>],
) -> Figure {
    let point = |level: &T, cell: fn(&T) -> Cell| Some((f64::from(number(level)), scale * cell(level).value?));
    let line = |(head, cell): &Named<'_, T>| Series::new(*head, levels.iter().filter_map(|level| point(level, *cell)));
    let mut table = Table::default();
    table.add("level", levels.iter().map(|level| Cell::count(u64::from(number(level)))));
    table.add("iteration", levels.iter().map(|level| Cell::count(u64::from(number(level)) + 1)));
    columns.iter().for_each(|(head, cell)| table.add(*head, levels.iter().map(cell)));
    figure.chart(Chart::lines("level (the root is 0)", y, columns[..drawn].iter().map(line).collect())).table(table)
}

fn profile(profile: &Profile) -> Figure {
    let levels = &profile.levels;
    let (reached, arcs) = (levels.iter().map(|l| l.vertices).sum(), levels.iter().map(|l| l.arcs).sum());
    let most = |of: fn(&ExactLevel) -> u64| levels.iter().rev().max_by_key(|level| of(level));
    let sentence = match (most(|l| l.vertices), most(|l| l.arcs)) {
        (Some(wide), Some(heavy)) if levels.len() > 1 => format!(
            "The search has {}. The frontier is widest at level {}, with {} of {} reached vertices ({}); level {} has {} of the arcs.",
            counted(levels.len() as u64, "level", "levels"),
            wide.level,
            grouped(wide.vertices),
            grouped(reached),
            part(wide.vertices, reached),
            heavy.level,
            part(heavy.arcs, arcs),
        ),
        _ => "The root reaches no other vertex: the search has one level.".to_owned(),
    };
    let source = "Remis 2016, figures 2.1, 2.2, 2.4; SURF 2022, table 2";
    by_level(
        Figure::new("profile", source, "Frontier and its arcs, level by level", sentence),
        ("vertices, arcs", 1.0),
        levels,
        |l| l.level,
        2,
        &[
            ("vertices |F|", |l| Cell::count(l.vertices)),
            ("arcs E", |l| Cell::count(l.arcs)),
            ("unvisited vertices", |l| Cell::count(l.unvisited_vertices)),
            ("arcs into them", |l| Cell::count(l.unvisited_arcs)),
        ],
    )
    .log_y()
}

fn top_down(redundant: &Redundant) -> Figure {
    let levels = &redundant.levels;
    let (arcs, found): (u64, u64) = levels.iter().fold((0, 0), |sum, l| (sum.0 + l.counts.arcs, sum.1 + l.counts.discovering));
    let sentence = match most(levels, |l| l.arcs - l.discovering) {
        Some(worst) if arcs > 0 => format!(
            "{} of {} explored arcs ({}) discover no vertex. Most of these are at level {}, where {} of the arcs lead to vertices that are known already.",
            grouped(arcs - found),
            grouped(arcs),
            part(arcs - found, arcs),
            worst.level,
            part(worst.arcs - worst.discovering, worst.arcs),
        ),
        _ => "No arc is explored: the root has no neighbour.".to_owned(),
    };
    by_level(
        Figure::new("redundant", "Remis 2016, figure 2.3", "Redundant work of top-down levels", sentence),
        ("arcs", 1.0),
        levels,
        |l| l.counts.level,
        2,
        &[
            ("explored E", |l| Cell::count(l.counts.arcs)),
            ("discovering", |l| Cell::count(l.counts.discovering)),
            ("repeat", |l| Cell::count(l.counts.repeat)),
            ("backward", |l| Cell::count(l.counts.backward)),
            ("excess", |l| Cell::of(l.excess, Cell::share)),
        ],
    )
    .log_y()
}

fn bottom_up(redundant: &Redundant) -> Figure {
    let levels = || redundant.levels.iter().map(|level| level.counts);
    let fewer: Vec<String> = levels().filter(|l| l.probes < l.arcs).map(|l| l.level.to_string()).collect();
    let best: u64 = levels().map(|l| l.probes.min(l.arcs)).sum();
    let arcs: u64 = levels().map(|l| l.arcs).sum();
    let at = match fewer.len() {
        1 => format!("level {}", fewer[0]),
        2..=12 => format!("levels {}", fewer.join(", ")),
        many => format!("{many} levels"),
    };
    let sentence = if fewer.is_empty() {
        "No level looks at fewer neighbours bottom-up than it explores arcs top-down.".to_owned()
    } else {
        format!(
            "Bottom-up looks at fewer neighbours than top-down explores at {at}. The better direction of each level looks at {} of the arcs that top-down alone explores.",
            part(best, arcs)
        )
    };
    let source = "Remis 2016, figure 2.3, extended to bottom-up";
    by_level(
        Figure::new("redundant-bottom-up", source, "Neighbours looked at, top-down and bottom-up", sentence),
        ("neighbours looked at", 1.0),
        &redundant.levels,
        |l| l.counts.level,
        2,
        &[
            ("top-down (arcs E)", |l| Cell::count(l.counts.arcs)),
            ("bottom-up (probes)", |l| Cell::count(l.counts.probes)),
            ("unvisited vertices", |l| Cell::count(l.counts.unvisited_vertices)),
            ("arcs into them", |l| Cell::count(l.counts.unvisited_arcs)),
        ],
    )
    .log_y()
}

fn repeated(repeated: &Repeated) -> Figure {
    let by = |a: &&SplitLevel, b: &&SplitLevel| a.repeated_ours.total_cmp(&b.repeated_ours);
    let sentence = match (repeated.splits.iter().min_by(by), repeated.splits.iter().max_by(by)) {
        (Some(least), Some(most)) => format!(
            "Both halves find {:.1} % of the reached vertices if the search is split at level {}, and {:.1} % if it is split at level {}, where {:.1} % have been traversed.",
            100.0 * most.repeated_ours,
            most.level,
            100.0 * least.repeated_ours,
            least.level,
            100.0 * least.traversed,
        ),
        _ => "No level before the last has two vertices: the search can't be split.".to_owned(),
    };
    let share = f64::from(repeated.share_permille) / 10.0;
    let title = format!("Repeated work of an asynchronous search, split at {share} % of the arcs");
    let mut figure = by_level(
        Figure::new("repeated", "Remis 2016, figures 5.5 to 5.7", title, sentence),
        ("% of reached vertices", 100.0),
        &repeated.splits,
        |s| s.level,
        3,
        &[
            ("traversed before", |s| Cell::share(s.traversed)),
            ("repeated, the thesis' rule", |s| Cell::share(s.repeated_thesis)),
            ("repeated, as socbfs splits", |s| Cell::share(s.repeated_ours)),
            ("depth A", |s| Cell::count(s.depth_a.into())),
            ("depth B", |s| Cell::count(s.depth_b.into())),
            ("D - k", |s| Cell::count(s.left.into())),
            ("extra levels", |s| Cell::name(s.extra_levels)),
        ],
    );
    if let Some(Chart::Lines(plot)) = &mut figure.chart {
        plot.x = "level at which the search is split".into();
    }
    figure
}

/// Remis 2016, figure 5.13.
fn split(sweep: &SplitSweep, found: &SplitDirection) -> Figure {
    let (id, name) = match found.kernel {
        GpuKernel::Tg => ("split", "top-down by TG"),
        GpuKernel::Tgm => ("split-tgm", "top-down by TGM"),
        GpuKernel::Bg => ("split-bottom-up", "bottom-up by BG"),
        GpuKernel::Bgc => ("split-bgc", "bottom-up by BGC"),
    };
    let bars = |name: &str, of: fn(&SplitShare) -> f64| Series::bars(name, found.shares.iter().map(|share| of(share) / MS));
    let percent = |permille: f64| format!("{} %", general(permille / 10.0, 3));
    let crossing = found.crossing_permille.map_or_else(
        || "one device alone is faster at every share".to_owned(),
        |permille| format!("CPU and GPU alone take equally long at {}", percent(permille)),
    );
    let worst = found.shares.iter().map(|share| share.contention).fold(0.0, f64::max);
    let predicted = found.corun.zip(found.off).map_or_else(String::new, |([cpu, gpu], off)| {
        let [alone, corun] = off.map(|off| percent(1000.0 * off));
        format!(
            " While both work, the CPU's part takes {} times as long as alone and the GPU's {} ({}). The longer part alone is off by {alone} of the time of both; with these ratios the prediction is off by {corun}.",
            general(cpu, 3),
            general(gpu, 3),
            if found.is_calibrated { "by the calibration" } else { "with the most even share of this level" },
        )
    });
    let sentence = format!(
        "Splitting {}: with the best share of the GPU, {}, the level is {} times as fast as on the better device alone; {crossing}. Running both at once takes up to {} times as long as the longer part alone.{predicted}",
        if found.gain > 1.0 { "pays" } else { "does not pay" },
        percent(f64::from(found.best_permille)),
        general(found.gain, 3),
        general(worst, 3),
    );
    let title = format!("Level {} split between CPU and GPU, {name}", sweep.level);
    let x = format!("share of the GPU in the {} arcs, %", grouped(sweep.arcs));
    let categories = found.shares.iter().map(|share| general(f64::from(share.gpu_permille) / 10.0, 4));
    let series = vec![bars("CPU's part alone", |s| s.cpu_ns), bars("GPU's part alone", |s| s.gpu_ns), bars("both at once", |s| s.both_ns)];
    Figure::new(id, "Remis 2016, figure 5.13", title, sentence).chart(Chart::bars(x, "median time, ms", categories, series)).table(
        Table::of(
            &found.shares,
            &[
                ("share of the GPU", &|share| Cell::share(f64::from(share.gpu_permille) / 1000.0)),
                ("CPU alone", &|share| Cell::ns(share.cpu_ns)),
                ("GPU alone", &|share| Cell::ns(share.gpu_ns)),
                ("predicted alone", &|share| Cell::ns(share.cpu_ns.max(share.gpu_ns))),
                ("predicted co-run", &|share| Cell::of(share.corun_ns, Cell::ns)),
                ("both at once", &|share| Cell::ns(share.both_ns)),
                ("whole level", &|share| Cell::ns(share.level_ns)),
                ("contention", &|share| Cell::number(share.contention)),
            ],
        ),
    )
}

/// Remis 2016, figure 4.2.
fn mapped(mapped: &MappedLevels) -> Figure {
    let sum = |of: fn(&MappedLevel) -> f64| mapped.levels.iter().map(of).sum::<f64>();
    let (plain, shared) = (sum(|l| l.plain_ns), sum(|l| l.mapped_ns));
    let sentence = format!(
        "All levels take {} in the host's own memory and {} with a handover there and back before each: {} times as long.",
        seconds(plain / 1e9),
        seconds(shared / 1e9),
        general(shared / plain.max(1.0), 3),
    );
    let title = "Levels on the CPU, in its own memory and with a handover round each";
    by_level(
        Figure::new("mapped", "Remis 2016, figure 4.2", title, sentence),
        ("ms", 1.0 / MS),
        &mapped.levels,
        |l| l.level,
        3,
        &[
            ("own memory", |l| Cell::ns(l.plain_ns)),
            ("shared, handed over", |l| Cell::ns(l.mapped_ns)),
            ("handover alone", |l| Cell::ns(l.handover_ns)),
        ],
    )
    .log_y()
}

/// Remis 2016, figure 4.3: the section of one device. `arrays` are marked by name and size.
fn device(device: &DeviceHandover, arrays: &[(String, u64)]) -> Section {
    let ways = &device.table.ways;
    let figure = |id: &'static str, title: &str, of: [fn(&HandoverTimes) -> u64; 2]| {
        let line = |way: &WayTimes, name: &str, of: fn(&HandoverTimes) -> u64| {
            let points = way.sizes.iter().map(|size| (size.bytes as f64, of(size) as f64 / 1e3));
            Series::new(format!("{} {name}", way.way), points)
        };
        // A mode may have failed at large sizes, so all are compared at the largest size that every one of them reached.
        let common = device.table.common_bytes(0).unwrap_or(0);
        let at_common = ways.iter().filter_map(|way| Some((way, way.sizes.iter().rfind(|size| size.bytes <= common)?)));
        let sentence = at_common.min_by_key(|(_, size)| of[0](size) + of[1](size)).map_or_else(
            || "No sharing mode could be measured.".to_owned(),
            |(way, size)| format!("{} is the fastest there and back for {}. Searches use {}.", way.way, bytes(size.bytes), device.way),
        );
        let chart = Chart::Lines(Plot {
            x: "bytes".into(),
            y: "us".into(),
            log_x: true,
            log_y: true,
            series: ways.iter().flat_map(|way| [line(way, "to the device", of[0]), line(way, "to the host", of[1])]).collect(),
            marks: arrays.iter().map(|(name, bytes)| (*bytes as f64, name.clone())).collect(),
            ..Plot::default()
        });
        Figure::new(id, "Remis 2016, figure 4.3", title, sentence).chart(chart).table(Table::of(
            ways.iter().flat_map(|way| way.sizes.iter().map(move |size| (way, size))),
            &[
                ("way", &|(way, _)| Cell::word(way.way.to_string())),
                ("bytes", &|(_, size)| Cell::bytes(size.bytes)),
                ("to the device", &|(_, size)| Cell::ns(of[0](size) as f64)),
                ("to the host", &|(_, size)| Cell::ns(of[1](size) as f64)),
            ],
        ))
    };
    let later = figure("handover", "Handover by size, later ones (median)", [|size| size.to_device_ns, |size| size.to_host_ns]);
    let first = figure("handover-first", "Handover by size, the first one", [|size| size.first_to_device_ns, |size| size.first_to_host_ns]);
    Section { title: device.device.clone(), figures: vec![later, first], ..Section::default() }
}

/// Zhang 2018, table 6.
fn remapped(found: &Remapped) -> Figure {
    let sentence = format!(
        "{} of {} vertices have an edge: {:.2} % are saved. Ordering the vertices takes {}, {:.1} % of the construction{}.",
        grouped(found.after),
        grouped(found.before),
        100.0 * found.saved,
        seconds(found.seconds),
        100.0 * found.share,
        if found.renumbered { "" } else { " (this graph is searched in its own order)" },
    );
    let theirs = Remapped { before: 4_194_304, after: 2_400_000, saved: 0.4287, share: 0.415, ..*found };
    Figure::new("remapping", "Zhang 2018, table 6", "Dropping the vertices without edges", sentence).table(Table::of(
        [("this graph", found), ("Zhang 2018, Kronecker 22", &theirs)],
        &[
            ("graph", &|(whose, _)| Cell::word(*whose)),
            ("vertices before", &|(_, of)| Cell::count(of.before)),
            ("after", &|(_, of)| Cell::count(of.after)),
            ("saved", &|(_, of)| Cell::share(of.saved)),
            ("share of preprocessing", &|(_, of)| Cell::share(of.share)),
        ],
    ))
}

/// Zhou et al. 2021, figure 6.
fn ranks(found: &RankScaling) -> Figure {
    let of = |exchange: &'static str| found.times.iter().filter(move |times| times.exchange == exchange);
    let line = |name: &str, exchange| Series::new(name, of(exchange).map(|times| (times.ranks as f64, times.speedup)));
    let most = found.times.iter().map(|times| times.ranks).max().unwrap_or(1);
    let said = |exchange| {
        of(exchange).find(|times| times.ranks == most).map_or_else(String::new, |times| {
            let speedup = general(times.speedup, 3);
            format!("takes {} ({speedup} times one rank), with {} received", seconds(times.seconds), bytes(times.received))
        })
    };
    let sentence =
        format!("On {most} ranks the paper's exchange of queues {}; our exchange of what was found {}.", said("pairs"), said("found"));
    let series = vec![line("queues for each owner (the paper)", "pairs"), line("what was found (ours)", "found")];
    let source = "Zhou et al. 2021, figure 6 (which has no numbers); ranks are threads of one process here";
    Figure::new("ranks", source, "One search over several ranks", sentence)
        .chart(Chart::lines("ranks", "one rank's time / time", series))
        .table(Table::of(
            &found.times,
            &[
                ("exchange", &|times| Cell::word(&times.exchange)),
                ("ranks", &|times| Cell::count(times.ranks as u64)),
                ("time", &|times| Cell::seconds(times.seconds)),
                ("one rank's time / time", &|times| Cell::number(times.speedup)),
                ("received by all ranks", &|times| Cell::bytes(times.received)),
                ("levels", &|times| Cell::count(times.levels.into())),
                ("vertices reached", &|times| Cell::count(times.reached)),
            ],
        ))
}

/// The name of a paper, short and long.
fn names(paper: Paper) -> (&'static str, &'static str) {
    match paper {
        Paper::Zhang => ("Zhang et al. 2018", "Zhang et al. 2018, integrated CPU-GPU architectures"),
        Paper::Remis => ("Remis 2016", "Remis 2016, heterogeneous platforms (thesis)"),
        Paper::Surf => ("SURF 2022", "Yoon and Oh 2022, SURF"),
        Paper::Sunway => ("Sunway 2021", "Zhou et al. 2021, Sunway TaihuLight"),
    }
}

/// Section with a paper's figures and ours, the graphs that were searched, and those that are missing.
fn paper(found: &PaperComparison) -> Section {
    let (title, source) = names(found.paper);
    let compared = |claims: &[Claim]| claims.iter().filter(|claim| claim.ours.is_some()).count();
    let (beside, all) = (compared(&found.claims), found.claims.len());
    let mut sentence = if found.paper == Paper::Sunway {
        "The paper gives its speeds in a picture without numbers, of processes on a supercomputer: none can be compared. Its graphs can be \
         searched, and its exchange of queues can be set beside ours, over ranks of this machine."
            .to_owned()
    } else if beside == all {
        format!("All {all} figures of the paper are beside ours.")
    } else {
        format!("{beside} of {all} figures of the paper can be set beside ours; the last column says why the others can't.")
    };
    if found.quick {
        sentence.push_str(" These are small graphs (--quick): they show that the method runs, but are not a result.");
    } else if found.searched.is_empty() {
        sentence.push_str(" None of the paper's graphs is here: generated graphs of the same kinds replace them.");
    }
    let beside_ours = |claims: &[Claim]| {
        let ratio = |claim: &Claim| claim.ours.filter(|_| claim.paper != 0.0).map(|ours| ours / claim.paper);
        Table::of(
            claims,
            &[
                ("what", &|claim| Cell::word(&claim.what)),
                ("in the paper", &|claim| Cell::word(&claim.place)),
                ("paper", &|claim| Cell::number(claim.paper)),
                ("ours", &|claim| Cell::of(claim.ours, Cell::number)),
                ("ours / paper", &|claim| Cell::of(ratio(claim), Cell::number)),
                ("whether they compare", &|claim| Cell::word(&claim.note)),
            ],
        )
    };
    let pairs = |pairs: &[(String, String)], [first, second]: [&str; 2]| {
        Table::of(pairs, &[(first, &|(name, _)| Cell::word(name)), (second, &|(_, other)| Cell::word(other))])
    };
    let mut figures = vec![Figure::new("paper", source, "The paper's figures and ours", sentence).table(beside_ours(&found.claims))];
    if !found.cells.is_empty() {
        let sentence = format!("{} of {} cells of its tables have a counterpart here.", compared(&found.cells), found.cells.len());
        let title = "The paper's tables, cell by cell";
        figures.push(Figure::new("paper-cells", source, title, sentence).table(beside_ours(&found.cells)));
    }
    if !found.searched.is_empty() {
        let sentence = format!("{} of its graphs were searched.", found.searched.len());
        let figure = Figure::new("searched", source, "Graphs of the paper that were searched", sentence);
        figures.push(figure.table(pairs(&found.searched, ["in the paper", "here"])));
    }
    let sentence = format!("{} of its graphs are left out.", found.missing.len());
    let figure = Figure::new("missing", source, "Graphs of the paper that were not searched", sentence);
    figures.push(figure.table(pairs(&found.missing, ["graph", "why, or where to get it"])));
    Section { title: format!("{title} and this machine"), figures, ..Section::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RedundantLevel;
    use socbfs::memory::SharingMode;
    use socbfs_boards::measure::HandoverTable;

    #[test]
    fn sharing_modes_are_compared_at_a_size_that_all_of_them_reached() {
        let size = |bytes, ns| HandoverTimes {
            bytes,
            first_to_device_ns: ns,
            first_to_host_ns: ns,
            to_device_ns: ns,
            to_host_ns: ns,
            ..HandoverTimes::default()
        };
        let way = |way: SharingMode, sizes: Vec<HandoverTimes>| WayTimes { way, copies: false, sizes, problem: None };
        // Larger sizes of the second mode failed.
        let (all, few) = (vec![size(1 << 10, 50), size(1 << 20, 9000)], vec![size(1 << 10, 60)]);
        let table = HandoverTable { ways: vec![way(SharingMode::Copy, all), way(SharingMode::SvmFine, few)] };
        let figures = device(&DeviceHandover { device: "d".into(), way: SharingMode::SvmFine, table }, &[]).figures;
        assert_eq!(figures.len(), 2);
        for figure in figures {
            assert_eq!(figure.sentence, "copy is the fastest there and back for 1.0 KiB. Searches use svm-fine.");
        }
    }

    #[test]
    fn levels_are_named_in_the_plural_if_there_are_several() {
        let level = |level: u32, probes: u64| RedundantLevel {
            counts: ExactLevel { level, arcs: 9, probes, ..ExactLevel::default() },
            excess: None,
        };
        let sentence = |levels: Vec<RedundantLevel>| bottom_up(&Redundant { levels }).sentence;
        assert!(sentence(vec![level(0, 9), level(1, 3)]).contains("explores at level 1."));
        assert!(sentence(vec![level(0, 9), level(1, 3), level(2, 4)]).contains("explores at levels 1, 2."));
        assert!(sentence((0..13).map(|at| level(at, 1)).collect()).contains("explores at 13 levels."));
    }
}
