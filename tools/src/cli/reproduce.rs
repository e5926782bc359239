//! `socbfs reproduce`: a paper's experiments on this machine.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use clap::{ArgMatches, Args, FromArgMatches};
use serde::Deserialize;

use super::{
    analyze::{self, AnalyzeArgs},
    bench::ROOT,
};
use crate::{
    bench::{available_memory, kronecker_bytes},
    record::{Analysis, Paper, PaperComparison},
    shell::{EnergyArgs, Failure, Output, Outputs, by_name, say, with_variables},
};
use socbfs::words::general;
use socbfs_boards::board::{Goal, OperatingPoint};

const EXAMPLES: &str = "\
Examples:
  socbfs reproduce zhang --quick               seconds, on small graphs
  socbfs reproduce remis --data ~/graphs --html remis.html
  socbfs reproduce surf --device gpu --json surf.json

Graphs that are files are looked for in --data (or SOCBFS_DATA). The page lists
missing ones, and where to get them. For zhang and remis, energy is measured too;
for surf and sunway, where --energy is given.";

/// Repeat a paper's experiments and set its figures beside ours
///
/// Runs the analyses that the paper draws, on those of its graphs that can be generated or are present, and writes one page: the paper's
/// figures, ours, the ratio, and which figures can't be compared and why.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReproduceArgs {
    /// The paper
    #[arg(value_name = "PAPER", value_parser = by_name::<Paper>(&PAPERS))]
    paper: Paper,

    /// Small graphs and few turns
    #[arg(long)]
    quick: bool,

    /// Folder with the paper's graphs
    #[arg(long, value_name = "DIR", env = "SOCBFS_DATA", hide_env_values = true)]
    data: Option<PathBuf>,

    /// OpenCL device, as for `bench` [default: auto]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,

    /// Threads, as for `bench`
    #[arg(long, value_name = "N")]
    threads: Option<String>,

    /// Leave out generated graphs of more than 2^SCALE vertices
    #[arg(long, value_name = "SCALE", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    largest: u32,

    /// Begin no further round of searches from a root after this many seconds
    #[arg(long, value_name = "S", default_value_t = 120)]
    patience: u32,

    #[command(flatten)]
    energy: EnergyArgs,

    /// All columns of tables, not only those that fit 80 characters
    #[arg(long, help_heading = "Output")]
    wide: bool,

    /// Write the page here [default: PAPER.html]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,

    /// Write the record, from which `socbfs report` makes the page
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
}

const PAPERS: [(&str, &str); 4] = [
    ("zhang", "Zhang et al. 2018: tables 5 and 6, figures 4 and 5"),
    ("remis", "Remis 2016: figures 2.1 to 2.4, 4.2, 4.3, 5.1 to 5.13"),
    ("surf", "SURF 2022: tables 2 to 5"),
    ("sunway", "Zhou et al. 2021: its graphs; its figures are of a supercomputer"),
];

/// What is run for a paper.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiments {
    paper: Paper,
    /// The file of the page, unless --html names another.
    page: PathBuf,
    /// The analyses that the paper draws.
    only: String,
    /// Whether energy is measured without being asked for.
    energy: bool,
    /// The policies to compare.
    policies: Vec<String>,
    /// Generated graphs of the same kinds, used if none of the paper's graphs is available, each with its scale.
    stand_ins: Vec<(String, u32)>,
    /// Small generated graphs, for --quick, each with its scale.
    small: Vec<(String, u32)>,
    graphs: Vec<Wanted>,
}

/// A graph of a paper, by its name there.
#[derive(Deserialize)]
#[serde(untagged)]
enum Wanted {
    /// A generated graph, with log2 of the number of vertices (rounded up) and the edges per vertex.
    Generated {
        name: String,
        generator: String,
        scale: u32,
        #[serde(default = "graph500_factor")]
        edge_factor: u64,
    },
    /// A file: the beginnings of its name, and where to get it.
    File { name: String, files: Vec<String>, source: String },
    /// A graph that is not available.
    Nowhere { name: String, why: String },
}

fn graph500_factor() -> u64 {
    16
}

impl Experiments {
    fn of(paper: Paper) -> Result<Self, Failure> {
        let all: Result<HashMap<String, Vec<Self>>, _> = toml::from_str(include_str!("reproduce.toml"));
        let all = all.map_err(|error| Failure::because("reproduce.toml", &error))?;
        let own = all.into_values().flatten().find(|own| own.paper == paper);
        own.ok_or_else(|| Failure::new(format!("reproduce.toml lacks {paper:?}")))
    }
}

pub(super) fn run(arguments: &ReproduceArgs, given: &ArgMatches) -> Result<(), Failure> {
    let experiments = Experiments::of(arguments.paper)?;
    let mut graphs = arguments.graphs(&experiments)?;
    let page = arguments.html.as_ref().unwrap_or(&experiments.page);
    let written = format!("the page is {}", page.display());
    let page = Output::open(page)?;
    let is_file = page.regular_file().is_some();
    let json = arguments.json.as_deref().map(Output::open).transpose()?;
    let (turns, roots) = if arguments.quick { ("2", "2") } else { ("9", "8") };
    let mut words: Vec<String> = ["analyze", "--only", &experiments.only, "--turns", turns, "--roots", roots].map(str::to_owned).into();
    words.extend(["--patience".to_owned(), arguments.patience.to_string()]);
    if arguments.energy.is_asked(given) || experiments.energy {
        words.extend(["--energy".to_owned(), "auto".to_owned()]);
    }
    for (flag, value) in [("--device", &arguments.device), ("--threads", &arguments.threads)] {
        words.extend(value.iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    words.extend(graphs.searched.iter().map(|(_, graph)| graph.clone()));
    let matches = parsed(&words)?;
    let mut analyze = AnalyzeArgs::from_arg_matches(&matches).map_err(|error| Failure::new(error.to_string()))?;
    (analyze.policies, analyze.energy, analyze.wide) = (experiments.policies, arguments.energy.clone(), arguments.wide);
    graphs.efficient = efficient(&analyze.graphs.search.resolve(&matches)?.profile.board.operating_points);
    let (paper, quick) = (arguments.paper, arguments.quick);
    let so_far = analyze::so_far(Outputs { json, html: Some(page) }, arguments.wide, move |analysis, why| {
        graphs.compare(paper, quick, analysis, why);
        analyze::closed(analysis, why)
    });
    let ended = so_far.run(|| analyze::analysis(&analyze, &matches, &so_far));
    if ended.is_ok() && is_file {
        say(&written);
    }
    ended
}

/// Parses `words` as a command line of `analyze`, with the environment as the whole command takes it.
fn parsed(words: &[String]) -> Result<ArgMatches, Failure> {
    let command = with_variables(AnalyzeArgs::augment_args(clap::Command::new("analyze")), words);
    command.try_get_matches_from(words).map_err(|error| {
        let text = error.to_string();
        // What follows the first paragraph is about the usage of `analyze`.
        Failure::new(text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").trim_end())
    })
}

/// The graphs that are searched, and those that are left out.
struct Graphs {
    /// The paper's name of a graph (`None`: the graph replaces the paper's), and the graph as an argument of `analyze`.
    searched: Vec<(Option<String>, String)>,
    /// Graphs of the paper that are not searched, each with the reason.
    missing: Vec<(String, String)>,
    /// The most efficient operating point of the board, in words.
    efficient: Option<String>,
}

/// The MTEPS/W of the most efficient of `points`, in words.
fn efficient(points: &[OperatingPoint]) -> Option<String> {
    let point = points.iter().find(|point| point.goal == Goal::Efficient)?;
    let (mteps, watts) = (point.mteps?, point.watts.filter(|watts| *watts > 0.0)?);
    Some(format!(
        "the board's most efficient operating point has {} MTEPS/W: {} in `socbfs sweep`, CPU {}",
        general(mteps / watts, 4),
        socbfs::words::mteps(mteps * 1e6),
        point.cpus
    ))
}

impl Graphs {
    /// Sets the figures of `paper` beside those of `analysis`. `ended` is the reason why graphs are missing at its end, if they may be.
    fn compare(&self, paper: Paper, quick: bool, analysis: &mut Analysis, ended: Option<&str>) {
        let (searched, mut missing) = (&self.searched, self.missing.clone());
        if let Some(reason) = ended {
            let rest = searched.iter().skip(analysis.graphs.len()).filter_map(|(name, _)| name.clone());
            missing.extend(rest.map(|name| (name, reason.to_owned())));
        }
        let named = searched.iter().zip(&analysis.graphs).filter_map(|((name, _), graph)| Some((name.clone()?, graph.name.clone())));
        let named: Vec<(String, String)> = named.collect();
        let mut compared = PaperComparison::new(paper, quick, analysis, named, missing);
        if let Some(point) = &self.efficient {
            for claim in compared.claims.iter_mut().filter(|claim| claim.what.contains("MTEPS/W")) {
                claim.note = [&*claim.note, point].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
            }
        }
        analysis.paper = Some(compared);
    }
}

impl ReproduceArgs {
    fn graphs(&self, experiments: &Experiments) -> Result<Graphs, Failure> {
        let files = self.data.as_deref().map(files_of).transpose()?.unwrap_or_default();
        let mut graphs = Graphs { searched: Vec::new(), missing: Vec::new(), efficient: None };
        let available = available_memory(Path::new(ROOT)).unwrap_or(u64::MAX);
        for wanted in &experiments.graphs {
            let (name, found) = match wanted {
                Wanted::Generated { name, generator, scale, edge_factor } => (
                    name,
                    if self.quick {
                        Err(format!("--quick leaves it out: {generator} makes it"))
                    } else if *scale > self.largest {
                        Err(format!("--largest leaves it out: {generator} makes it"))
                    } else if kronecker_bytes(*scale, *edge_factor) > available / 2 {
                        // Twice the memory of one search, since policies and devices have states of their own.
                        Err(format!("{generator} does not fit the memory of this machine"))
                    } else {
                        Ok(generator.clone())
                    },
                ),
                Wanted::File { name, .. } if self.quick => (name, Err("--quick leaves out files".to_owned())),
                Wanted::File { name, files: starts, source } => {
                    (name, named(&files, starts).map(str::to_owned).ok_or(format!("from {source}, into the folder of --data")))
                }
                Wanted::Nowhere { name, why } => (name, Err(why.clone())),
            };
            match found {
                Ok(graph) => graphs.searched.push((Some(name.clone()), graph)),
                Err(why) => graphs.missing.push((name.clone(), why)),
            }
        }
        if graphs.searched.is_empty() {
            let others = if self.quick { &experiments.small } else { &experiments.stand_ins };
            let small_enough = others.iter().filter(|(_, scale)| *scale <= self.largest);
            graphs.searched.extend(small_enough.map(|(graph, _)| (None, graph.clone())));
            if let (true, Some(least)) = (graphs.searched.is_empty(), others.iter().map(|(_, scale)| scale).min()) {
                return Err(Failure::new(format!("--largest {} leaves out every graph", self.largest))
                    .cure(format!("give --largest {least} or more{}", if self.quick { "" } else { ", or --quick with small graphs" })));
            }
        }
        Ok(graphs)
    }
}

/// The files in `folder`, sorted.
fn files_of(folder: &Path) -> Result<Vec<String>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|error| {
        Failure::because(&format!("can't read the folder {} of --data or SOCBFS_DATA", folder.display()), &error)
            .cure("name the folder that holds the paper's graphs, or omit it: generated graphs then replace them")
    })?;
    // An archive of SuiteSparse may lie beside the folder that was unpacked from it.
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()).filter(|path| path.is_file()));
    let mut files: Vec<String> = files.filter_map(|path| Some(path.to_str()?.to_owned())).collect();
    files.sort();
    Ok(files)
}

/// Parts of the names of files that belong to a graph and hold none: coordinates (DIMACS) and communities (SNAP).
const COMPANIONS: [&str; 2] = [".co.", ".cmty."];

/// The first of `files` that is a graph whose name begins with one of `names`.
fn named<'f>(files: &'f [String], names: &[impl AsRef<str>]) -> Option<&'f str> {
    files.iter().map(String::as_str).find(|file| {
        let name = Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_companion = COMPANIONS.iter().any(|part| format!("{name}.").contains(part));
        !is_companion && names.iter().any(|wanted| name.starts_with(wanted.as_ref()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Claim;

    #[test]
    fn the_table_of_the_thesis_has_a_row_for_each_of_its_graphs() {
        let analysis = Analysis::new(crate::record::Environment::default(), Vec::new());
        let cells = PaperComparison::new(Paper::Remis, false, &analysis, Vec::new(), Vec::new()).cells;
        for wanted in Experiments::of(Paper::Remis).unwrap().graphs {
            let (Wanted::Generated { name, .. } | Wanted::File { name, .. } | Wanted::Nowhere { name, .. }) = wanted;
            let start = format!("{name}, million ");
            let own: Vec<&Claim> = cells.iter().filter(|cell| cell.what.starts_with(&start)).collect();
            assert_eq!(own.len(), 2, "{name}: {own:?}");
        }
    }

    #[test]
    fn every_paper_has_experiments_with_policies_that_exist() {
        for paper in [Paper::Zhang, Paper::Remis, Paper::Surf, Paper::Sunway] {
            for policy in Experiments::of(paper).unwrap().policies {
                assert!(policy.parse::<socbfs_policy::Policy>().is_ok(), "{paper:?}: {policy}");
            }
        }
    }

    #[test]
    fn the_operating_point_stands_beside_the_figures_of_energy() {
        let text = "schema = 1\n[board]\nname = 'b'\n[[operating_points]]\ngoal = 'efficient'\ncpus = '0-3'\nmteps = 210.0\nwatts = 5.0\n";
        let points = socbfs_boards::board::Board::<toml::Table>::parse(text, "b.toml").unwrap().operating_points;
        for (paper, count) in [(Paper::Zhang, 4), (Paper::Remis, 2)] {
            let graphs = Graphs { searched: Vec::new(), missing: Vec::new(), efficient: efficient(&points) };
            let mut analysis = Analysis::new(crate::record::Environment::default(), Vec::new());
            graphs.compare(paper, false, &mut analysis, None);
            let claims = analysis.paper.unwrap().claims;
            let told: Vec<&Claim> = claims.iter().filter(|claim| claim.note.contains("has 42 MTEPS/W: 210")).collect();
            assert!(told.len() == count && told.iter().all(|claim| claim.what.contains("MTEPS/W")), "{claims:?}");
        }
        assert_eq!(efficient(&[]), None);
    }

    #[test]
    fn what_lies_beside_a_graph_is_not_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("cage15")).unwrap();
        let beside = ["USA-road-d.NY.co", "USA-road-d.NY.co.gz", "com-youtube.all.cmty.txt.gz"];
        for name in beside.into_iter().chain(["USA-road-d.NY.gr.gz", "com-youtube.ungraph.txt.gz", "cage15.tar.gz"]) {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let files = files_of(folder.path()).unwrap();
        for (wanted, found) in [("USA-road-d.NY", ".NY.gr.gz"), ("com-youtube", ".ungraph.txt.gz"), ("cage15", "cage15.tar.gz")] {
            assert!(named(&files, &[wanted]).unwrap().ends_with(found), "{wanted} in {files:?}");
        }
    }
}
