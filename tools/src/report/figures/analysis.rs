//! Figures of `socbfs analyze`.

use serde::Deserialize;
use serde_json::Value;

use super::{Cell, Chart, Document, Figure, Plot, Section, Series, Table, policies, read};
use crate::analysis::{
    Analysis, Claim, DeviceHandover, ExactLevel, GraphAnalysis, MappedLevel, MappedLevels, Paper, PaperComparison, PolicyComparison,
    Profile, RankScaling, Redundant, Remapped, Repeated, SplitDirection, SplitShare, SplitSweep,
};
use socbfs::{
    bfs::GpuKernel,
    measure::{HandoverTimes, WayTimes},
    words::{bytes, counted, general, grouped, seconds},
};

const MS: f64 = 1e6;

pub(super) fn document(record: &Value) -> Result<Document, serde_json::Error> {
    let analysis = Analysis::deserialize(record)?;
    let mut document = read::begin("Analyses of breadth-first searches", record);
    let wants = |id: &str| analysis.only.is_empty() || analysis.only.iter().any(|only| only == id);
    if let Some(found) = &analysis.paper {
        let (short, _) = names(found.paper);
        document.title = format!("{short}, repeated on this machine");
        document.sections.push(paper(found));
    }
    for graph in &analysis.graphs {
        graph.policies.as_ref().map_or(Ok(()), |compared| policies::check(&graph.name, compared))?;
        document.sections.push(section(graph, &wants)?);
    }
    let arrays = analysis.graphs.iter().find_map(|graph| graph.mapped.as_ref()).map_or(&[][..], |mapped| &mapped.arrays);
    document.sections.extend(analysis.handover.iter().map(|found| device(found, arrays)));
    if wants("surf") {
        let compared: Vec<(&str, &PolicyComparison)> =
            analysis.graphs.iter().filter_map(|graph| Some((graph.name.as_str(), graph.policies.as_ref()?))).collect();
        document.sections.extend(policies::over_graphs(&compared, analysis.dropped.as_ref()));
    }
    Ok(document)
}

fn section(graph: &GraphAnalysis, wants: &dyn Fn(&str) -> bool) -> Result<Section, serde_json::Error> {
    let mut section = Section { title: graph.name.clone(), ..Section::default() };
    if let Some(&root) = graph.roots.first() {
        section.facts.push(("root".into(), Cell::count(u64::from(root))));
    }
    if let Some(found) = &graph.profile {
        section.facts.extend(facts(found));
        section.figures.push(profile(found));
    }
    if let Some(found) = &graph.redundant {
        section.figures.extend([top_down(found), bottom_up(found)]);
    }
    section.figures.extend(graph.repeated.as_ref().map(repeated));
    section.figures.extend(graph.split.iter().flat_map(split));
    if let Some(compared) = &graph.policies {
        let figures = [policies::histogram(compared), policies::heat(compared), policies::performance(compared)];
        section.figures.extend(figures.into_iter().flatten().filter(|figure| wants(figure.id)));
        section.figures.extend(policies::energy(compared)?);
    }
    section.figures.extend(graph.ranks.as_ref().map(ranks));
    section.figures.extend(graph.mapped.as_ref().map(mapped));
    section.figures.extend(graph.remapped.as_ref().map(remapped));
    Ok(section)
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
fn most<T: Copy>(levels: &[T], of: impl Fn(&T) -> u64) -> Option<T> {
    levels.iter().rev().copied().max_by_key(|level| of(level))
}

fn part(of: u64, all: u64) -> String {
    format!("{:.1} %", 100.0 * of as f64 / all.max(1) as f64)
}

fn series(name: &str, levels: &[ExactLevel], of: impl Fn(&ExactLevel) -> u64) -> Series {
    Series::new(name, levels.iter().map(|level| (f64::from(level.level), of(level) as f64)))
}

fn over_levels(y: &str, log_y: bool, series: Vec<Series>) -> Option<Chart> {
    Some(Chart::Lines(Plot { x: "level (the root is 0)".into(), y: y.into(), log_y, series, ..Plot::default() }))
}

fn columns(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn count_rows(levels: &[ExactLevel], cells: impl Fn(&ExactLevel) -> Vec<Cell>) -> Vec<Vec<Cell>> {
    let numbered = |level: &ExactLevel| [Cell::count(u64::from(level.level)), Cell::count(u64::from(level.level) + 1)];
    levels.iter().map(|level| numbered(level).into_iter().chain(cells(level)).collect()).collect()
}

fn profile(profile: &Profile) -> Figure {
    let levels = &profile.levels;
    let (reached, arcs) = (levels.iter().map(|l| l.vertices).sum(), levels.iter().map(|l| l.arcs).sum());
    let sentence = match (most(levels, |l| l.vertices), most(levels, |l| l.arcs)) {
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
    Figure {
        id: "profile",
        title: "Frontier and its arcs, level by level".into(),
        source: "Remis 2016, figures 2.1, 2.2, 2.4; SURF 2022, table 2",
        sentence,
        chart: over_levels(
            "vertices, arcs",
            true,
            vec![series("vertices of the frontier |F|", levels, |l| l.vertices), series("arcs that leave it E", levels, |l| l.arcs)],
        ),
        table: Table {
            columns: columns(&["level", "iteration", "vertices |F|", "arcs E", "unvisited vertices", "arcs into them"]),
            rows: count_rows(levels, |l| [l.vertices, l.arcs, l.unvisited_vertices, l.unvisited_arcs].map(Cell::count).into()),
        },
    }
}

fn top_down(redundant: &Redundant) -> Figure {
    let levels: Vec<ExactLevel> = redundant.levels.iter().map(|level| level.counts).collect();
    let (arcs, found): (u64, u64) = (levels.iter().map(|l| l.arcs).sum(), levels.iter().map(|l| l.discovering).sum());
    let sentence = match most(&levels, |l| l.arcs - l.discovering) {
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
    let excess = |level: u32| redundant.levels.get(level as usize).and_then(|found| found.excess);
    Figure {
        id: "redundant",
        title: "Redundant work of top-down levels".into(),
        source: "Remis 2016, figure 2.3",
        sentence,
        chart: over_levels(
            "arcs",
            true,
            vec![series("explored", &levels, |l| l.arcs), series("discovering a vertex", &levels, |l| l.discovering)],
        ),
        table: Table {
            columns: columns(&["level", "iteration", "explored E", "discovering", "repeat", "backward", "excess"]),
            rows: count_rows(&levels, |l| {
                let counts = [l.arcs, l.discovering, l.repeat, l.backward].map(Cell::count);
                counts.into_iter().chain([Cell::of(excess(l.level), Cell::share)]).collect()
            }),
        },
    }
}

fn bottom_up(redundant: &Redundant) -> Figure {
    let levels: Vec<ExactLevel> = redundant.levels.iter().map(|level| level.counts).collect();
    let fewer: Vec<String> = levels.iter().filter(|l| l.probes < l.arcs).map(|l| l.level.to_string()).collect();
    let best: u64 = levels.iter().map(|l| l.probes.min(l.arcs)).sum();
    let arcs: u64 = levels.iter().map(|l| l.arcs).sum();
    let sentence = if fewer.is_empty() {
        "No level looks at fewer neighbours bottom-up than it explores arcs top-down.".to_owned()
    } else {
        let many = match fewer.len() {
            1 => format!("level {}", fewer[0]),
            2..=12 => format!("levels {}", fewer.join(", ")),
            many => format!("{many} levels"),
        };
        format!(
            "Bottom-up looks at fewer neighbours than top-down explores at {many}. The better direction of each level looks at {} of the arcs that top-down alone explores.",
            part(best, arcs)
        )
    };
    Figure {
        id: "redundant-bottom-up",
        title: "Neighbours looked at, top-down and bottom-up".into(),
        source: "Remis 2016, figure 2.3, extended to bottom-up",
        sentence,
        chart: over_levels(
            "neighbours looked at",
            true,
            vec![series("top-down (arcs E)", &levels, |l| l.arcs), series("bottom-up (probes)", &levels, |l| l.probes)],
        ),
        table: Table {
            columns: columns(&["level", "iteration", "top-down E", "bottom-up probes", "unvisited vertices", "arcs into them"]),
            rows: count_rows(&levels, |l| [l.arcs, l.probes, l.unvisited_vertices, l.unvisited_arcs].map(Cell::count).into()),
        },
    }
}

fn repeated(repeated: &Repeated) -> Figure {
    let splits = &repeated.splits;
    let least = splits.iter().min_by(|a, b| a.repeated_ours.total_cmp(&b.repeated_ours));
    let most = splits.iter().max_by(|a, b| a.repeated_ours.total_cmp(&b.repeated_ours));
    let sentence = match (least, most) {
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
    let line = |name: &str, of: fn(&crate::analysis::SplitLevel) -> f64| {
        Series::new(name, splits.iter().map(|split| (f64::from(split.level), 100.0 * of(split))))
    };
    Figure {
        id: "repeated",
        title: format!("Repeated work of an asynchronous search, split at {} % of the arcs", f64::from(repeated.share_permille) / 10.0),
        source: "Remis 2016, figures 5.5 to 5.7",
        sentence,
        chart: Some(Chart::Lines(Plot {
            x: "level at which the search is split".into(),
            y: "% of reached vertices".into(),
            series: vec![
                line("repeated, the thesis' rule", |split| split.repeated_thesis),
                line("repeated, as socbfs splits", |split| split.repeated_ours),
                line("traversed before", |split| split.traversed),
            ],
            ..Plot::default()
        })),
        table: Table {
            columns: columns(&[
                "level",
                "iteration",
                "traversed",
                "repeated, thesis",
                "repeated, ours",
                "depth A",
                "depth B",
                "D - k",
                "extra levels",
            ]),
            rows: splits
                .iter()
                .map(|s| {
                    let mut row = vec![Cell::count(u64::from(s.level)), Cell::count(u64::from(s.level) + 1)];
                    row.extend([s.traversed, s.repeated_thesis, s.repeated_ours].map(Cell::share));
                    row.extend([s.depth_a, s.depth_b, s.left].map(|depth| Cell::count(u64::from(depth))));
                    row.push(Cell { text: s.extra_levels.to_string(), value: Some(s.extra_levels as f64) });
                    row
                })
                .collect(),
        },
    }
}

fn split(sweep: &SplitSweep) -> Vec<Figure> {
    sweep.directions.iter().map(|found| split_direction(sweep, found)).collect()
}

/// Remis 2016, figure 5.13.
fn split_direction(sweep: &SplitSweep, found: &SplitDirection) -> Figure {
    let (id, name) = match found.kernel {
        GpuKernel::Tg => ("split", "top-down by TG"),
        GpuKernel::Tgm => ("split-tgm", "top-down by TGM"),
        GpuKernel::Bg => ("split-bottom-up", "bottom-up by BG"),
        GpuKernel::Bgc => ("split-bgc", "bottom-up by BGC"),
    };
    let line = |name: &str, of: fn(&SplitShare) -> f64| {
        Series::new(name, found.shares.iter().enumerate().map(|(at, share)| (at as f64, of(share) / MS)))
    };
    let percent = |permille: f64| format!("{} %", general(permille / 10.0, 3));
    let crossing = found.crossing_permille.map_or_else(
        || "one device alone is faster at every share".to_owned(),
        |permille| format!("CPU and GPU alone take equally long at {}", percent(permille)),
    );
    let worst = found.shares.iter().map(|share| share.contention).fold(0.0, f64::max);
    let pays = if found.gain > 1.0 { "Splitting pays" } else { "Splitting does not pay" };
    Figure {
        id,
        title: format!("Level {} split between CPU and GPU, {name}", sweep.level),
        source: "Remis 2016, figure 5.13",
        sentence: format!(
            "{pays}: with the best share of the GPU, {}, the level is {} times as fast as on the better device alone; {crossing}. Running both at once takes up to {} times as long as the longer part alone.",
            percent(f64::from(found.best_permille)),
            general(found.gain, 3),
            general(worst, 3),
        ),
        chart: Some(Chart::bars(
            format!("share of the GPU in the {} arcs, %", grouped(sweep.arcs)),
            "median time, ms",
            found.shares.iter().map(|share| general(f64::from(share.gpu_permille) / 10.0, 4)),
            vec![line("CPU's part alone", |s| s.cpu_ns), line("GPU's part alone", |s| s.gpu_ns), line("both at once", |s| s.both_ns)],
        )),
        table: Table {
            columns: columns(&["share of the GPU", "CPU alone", "GPU alone", "both at once", "whole level", "contention"]),
            rows: found
                .shares
                .iter()
                .map(|share| {
                    let mut row = vec![Cell::share(f64::from(share.gpu_permille) / 1000.0)];
                    row.extend([share.cpu_ns, share.gpu_ns, share.both_ns, share.level_ns].map(Cell::ns));
                    row.push(Cell::number(share.contention));
                    row
                })
                .collect(),
        },
    }
}

/// Remis 2016, figure 4.2.
fn mapped(mapped: &MappedLevels) -> Figure {
    let levels = &mapped.levels;
    let sum = |of: fn(&MappedLevel) -> f64| levels.iter().map(of).sum::<f64>();
    let (plain, shared) = (sum(|l| l.plain_ns), sum(|l| l.mapped_ns));
    let line = |name: &str, of: fn(&MappedLevel) -> f64| Series::new(name, levels.iter().map(|l| (f64::from(l.level), of(l) / MS)));
    Figure {
        id: "mapped",
        title: "Levels on the CPU, in its own memory and with a handover round each".into(),
        source: "Remis 2016, figure 4.2",
        sentence: format!(
            "All levels take {} in the host's own memory and {} with a handover there and back before each: {} times as long.",
            seconds(plain / 1e9),
            seconds(shared / 1e9),
            general(shared / plain.max(1.0), 3),
        ),
        chart: over_levels(
            "ms",
            true,
            vec![
                line("own memory", |l| l.plain_ns),
                line("shared, handed over", |l| l.mapped_ns),
                line("handover alone", |l| l.handover_ns),
            ],
        ),
        table: Table {
            columns: columns(&["level", "iteration", "own memory", "shared, handed over", "handover alone"]),
            rows: levels
                .iter()
                .map(|l| {
                    let level = u64::from(l.level);
                    [Cell::count(level), Cell::count(level + 1)]
                        .into_iter()
                        .chain([l.plain_ns, l.mapped_ns, l.handover_ns].map(Cell::ns))
                        .collect()
                })
                .collect(),
        },
    }
}

/// Remis 2016, figure 4.3: the section of one device. `arrays` are marked by name and size.
fn device(device: &DeviceHandover, arrays: &[(String, u64)]) -> Section {
    let figure = |id: &'static str, title: &str, of: [fn(&HandoverTimes) -> u64; 2]| {
        let line = |way: &WayTimes, name: &str, of: fn(&HandoverTimes) -> u64| {
            let point = |size: &HandoverTimes| (size.bytes as f64, of(size) as f64 / 1e3);
            Series::new(format!("{} {name}", way.way), way.sizes.iter().map(point))
        };
        // A mode may have failed at large sizes, so all are compared at the largest size that every one of them reached.
        let common = device.table.common_bytes(0).unwrap_or(0);
        let least = device
            .table
            .ways
            .iter()
            .filter_map(|way| way.sizes.iter().rfind(|size| size.bytes <= common).map(|size| (way, size)))
            .min_by_key(|(_, size)| of[0](size) + of[1](size));
        Figure {
            id,
            title: title.to_owned(),
            source: "Remis 2016, figure 4.3",
            sentence: least.map_or_else(
                || "No sharing mode could be measured.".to_owned(),
                |(way, size)| format!("{} is the fastest there and back for {}. Searches use {}.", way.way, bytes(size.bytes), device.way),
            ),
            chart: Some(Chart::Lines(Plot {
                x: "bytes".into(),
                y: "us".into(),
                log_x: true,
                log_y: true,
                series: device
                    .table
                    .ways
                    .iter()
                    .flat_map(|way| [line(way, "to the device", of[0]), line(way, "to the host", of[1])])
                    .collect(),
                marks: arrays.iter().map(|(name, bytes)| (*bytes as f64, name.clone())).collect(),
                ..Plot::default()
            })),
            table: Table {
                columns: columns(&["way", "bytes", "to the device", "to the host"]),
                rows: device
                    .table
                    .ways
                    .iter()
                    .flat_map(|way| way.sizes.iter().map(move |size| (way, size)))
                    .map(|(way, size)| {
                        vec![
                            Cell::word(way.way.to_string()),
                            Cell { text: bytes(size.bytes), value: Some(size.bytes as f64) },
                            Cell::ns(of[0](size) as f64),
                            Cell::ns(of[1](size) as f64),
                        ]
                    })
                    .collect(),
            },
        }
    };
    Section {
        title: device.device.clone(),
        figures: vec![
            figure("handover", "Handover by size, later ones (median)", [|size| size.to_device_ns, |size| size.to_host_ns]),
            figure("handover-first", "Handover by size, the first one", [|size| size.first_to_device_ns, |size| size.first_to_host_ns]),
        ],
        ..Section::default()
    }
}

/// Zhang 2018, table 6.
fn remapped(found: &Remapped) -> Figure {
    let row = |whose: &str, before: u64, after: u64, saved: f64, share: f64| {
        vec![Cell::word(whose), Cell::count(before), Cell::count(after), Cell::share(saved), Cell::share(share)]
    };
    let ours = row("this graph", found.before, found.after, found.saved, found.share);
    Figure {
        id: "remapping",
        title: "Dropping the vertices without edges".into(),
        source: "Zhang 2018, table 6",
        sentence: format!(
            "{} of {} vertices have an edge: {:.2} % are saved. Ordering the vertices takes {}, {:.1} % of the construction{}.",
            grouped(found.after),
            grouped(found.before),
            100.0 * found.saved,
            seconds(found.seconds),
            100.0 * found.share,
            if found.renumbered { "" } else { " (this graph is searched in its own order)" },
        ),
        chart: None,
        table: Table {
            columns: columns(&["graph", "vertices before", "after", "saved", "share of preprocessing"]),
            rows: vec![ours, row("Zhang 2018, Kronecker 22", 4_194_304, 2_400_000, 0.4287, 0.415)],
        },
    }
}

/// Zhou et al. 2021, figure 6.
fn ranks(found: &RankScaling) -> Figure {
    let of = |exchange: &str| {
        let times = found.times.iter().filter(|times| times.exchange == exchange);
        times.map(|times| (times.ranks as f64, times.speedup)).collect::<Vec<_>>()
    };
    let most = found.times.iter().map(|times| times.ranks).max().unwrap_or(1);
    let last = |exchange: &str| found.times.iter().find(|times| times.exchange == exchange && times.ranks == most);
    let said = |exchange: &str, words: &str| {
        last(exchange).map_or_else(String::new, |times| {
            format!(
                "{words} {} ({} times one rank), with {} received",
                seconds(times.seconds),
                general(times.speedup, 3),
                bytes(times.received)
            )
        })
    };
    Figure {
        id: "ranks",
        title: "One search over several ranks".into(),
        source: "Zhou et al. 2021, figure 6 (which has no numbers); ranks are threads of one process here",
        sentence: format!(
            "On {most} ranks {}; {}.",
            said("pairs", "the paper's exchange of queues takes"),
            said("found", "our exchange of what was found takes")
        ),
        chart: Some(Chart::Lines(Plot {
            x: "ranks".into(),
            y: "one rank's time / time".into(),
            series: vec![Series::new("queues for each owner (the paper)", of("pairs")), Series::new("what was found (ours)", of("found"))],
            ..Plot::default()
        })),
        table: Table {
            columns: columns(&[
                "exchange",
                "ranks",
                "time",
                "one rank's time / time",
                "received by all ranks",
                "levels",
                "vertices reached",
            ]),
            rows: found
                .times
                .iter()
                .map(|times| {
                    vec![
                        Cell::word(&times.exchange),
                        Cell::count(times.ranks as u64),
                        Cell::seconds(times.seconds),
                        Cell::number(times.speedup),
                        Cell { text: bytes(times.received), value: Some(times.received as f64) },
                        Cell::count(times.levels.into()),
                        Cell::count(times.reached),
                    ]
                })
                .collect(),
        },
    }
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
    let mut sentence = if beside == all {
        format!("All {all} figures of the paper are beside ours.")
    } else {
        format!("{beside} of {all} figures of the paper can be set beside ours; the last column says why the others can't.")
    };
    if found.paper == Paper::Sunway {
        sentence =
            "The paper gives its speeds in a picture without numbers, of processes on a supercomputer: none can be compared. Its graphs \
                    can be searched, and its exchange of queues can be set beside ours, over ranks of this machine."
                .to_owned();
    }
    if found.quick {
        sentence.push_str(" These are small graphs (--quick): they show that the method runs, but are not a result.");
    } else if found.searched.is_empty() {
        sentence.push_str(" None of the paper's graphs is here: generated graphs of the same kinds replace them.");
    }
    let rows = |claims: &[Claim]| {
        let row = |claim: &Claim| {
            vec![
                Cell::word(&claim.what),
                Cell::word(&claim.place),
                Cell::number(claim.paper),
                Cell::of(claim.ours, Cell::number),
                Cell::of(claim.ours.filter(|_| claim.paper != 0.0), |ours| Cell::number(ours / claim.paper)),
                Cell::word(&claim.note),
            ]
        };
        claims.iter().map(row).collect()
    };
    let figure = |id, title: &str, sentence, table| Figure { id, title: title.to_owned(), source, sentence, chart: None, table };
    let heads = || columns(&["what", "in the paper", "paper", "ours", "ours / paper", "whether they compare"]);
    let pairs = |pairs: &[(String, String)]| pairs.iter().map(|(name, other)| vec![Cell::word(name), Cell::word(other)]).collect();
    let mut figures =
        vec![figure("paper", "The paper's figures and ours", sentence, Table { columns: heads(), rows: rows(&found.claims) })];
    if !found.cells.is_empty() {
        let sentence = format!("{} of {} cells of its tables have a counterpart here.", compared(&found.cells), found.cells.len());
        figures.push(figure(
            "paper-cells",
            "The paper's tables, cell by cell",
            sentence,
            Table { columns: heads(), rows: rows(&found.cells) },
        ));
    }
    if !found.searched.is_empty() {
        let sentence = format!("{} of its graphs were searched.", found.searched.len());
        let table = Table { columns: columns(&["in the paper", "here"]), rows: pairs(&found.searched) };
        figures.push(figure("searched", "Graphs of the paper that were searched", sentence, table));
    }
    let sentence = format!("{} of its graphs are left out.", found.missing.len());
    let table = Table { columns: columns(&["graph", "why, or where to get it"]), rows: pairs(&found.missing) };
    figures.push(figure("missing", "Graphs of the paper that were not searched", sentence, table));
    Section { title: format!("{title} and this machine"), figures, ..Section::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::RedundantLevel;
    use socbfs::{measure::HandoverTable, memory::SharingMode};

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
