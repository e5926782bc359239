//! `socbfs reproduce`: a paper's experiments on this machine.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};

use super::{
    analyze::{self, AnalyzeArgs},
    bench::ROOT,
    error::Failure,
    output::Output,
};
use crate::{
    analysis::{Paper, PaperComparison},
    bench::{available_memory, kronecker_bytes},
};

const EXAMPLES: &str = "\
Examples:
  socbfs reproduce zhang --quick               seconds, on small graphs
  socbfs reproduce remis --data ~/graphs --html remis.html
  socbfs reproduce surf --device gpu --json surf.json

Graphs that are files are looked for in --data (or SOCBFS_DATA); those that are
not there are listed with where to get them.";

/// Repeat a paper's experiments and set its figures beside ours
///
/// Runs the analyses that the paper draws, on its graphs as far as they are there, and writes one page: the paper's figure, ours, the ratio, and
/// what can't be compared and why.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReproduceArgs {
    /// The paper
    #[arg(value_name = "PAPER", value_enum)]
    paper: PaperArg,

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

    /// Write the page here [default: PAPER.html]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,

    /// Write the record, of which `socbfs report` makes the page
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
}

/// [`Paper`] as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PaperArg {
    /// Zhang et al. 2018: tables 5 and 6, figures 4 and 5
    Zhang,
    /// Remis 2016: figures 2.1 to 2.4, 4.2, 4.3, 5.1 to 5.13
    Remis,
    /// SURF 2022: tables 2 to 4
    Surf,
    /// Zhou et al. 2021: its graphs; its figures are of a supercomputer
    Sunway,
}

/// A graph of a paper.
struct Wanted {
    /// As the paper calls it.
    name: &'static str,
    /// A generator, or the beginnings of file names.
    from: From,
}

enum From {
    Generator(&'static str),
    File(&'static [&'static str], &'static str),
}

const SNAP: &str = "https://snap.stanford.edu/data/";
const DIMACS: &str = "https://www.diag.uniroma1.it/challenge9/download.shtml";
const REPOSITORY: &str = "https://networkrepository.com/";
const SUITE_SPARSE: &str = "https://sparse.tamu.edu/";

const fn file(name: &'static str, files: &'static [&'static str], source: &'static str) -> Wanted {
    Wanted { name, from: From::File(files, source) }
}

const fn generated(name: &'static str, generator: &'static str) -> Wanted {
    Wanted { name, from: From::Generator(generator) }
}

const ZHANG: [Wanted; 5] = [
    generated("scale 22", "kronecker:22"),
    generated("scale 23", "kronecker:23"),
    generated("scale 24", "kronecker:24"),
    generated("scale 25", "kronecker:25"),
    generated("scale 26", "kronecker:26"),
];
const REMIS: [Wanted; 11] = [
    generated("graph1M", "rodinia:1048576"),
    generated("graph2M", "rodinia:2097152"),
    generated("graph4M", "rodinia:4194304"),
    generated("graph8M", "rodinia:8388608"),
    generated("kron", "kronecker:21"),
    file("google", &["web-Google"], SNAP),
    file("youtube", &["com-youtube", "com-Youtube"], SNAP),
    file("amazon", &["com-amazon", "com-Amazon"], SNAP),
    file("roadCA", &["roadNet-CA"], SNAP),
    file("NY", &["dimacs-NY", "USA-road-d.NY"], DIMACS),
    file("SF", &["USA-road-d.BAY", "SF"], DIMACS),
];
const SURF: [Wanted; 8] = [
    file("soc-livejournal (LJ)", &["soc-LiveJournal1", "soc-livejournal"], REPOSITORY),
    file("soc-orkut (OR)", &["soc-orkut", "com-orkut"], REPOSITORY),
    file("soc-pokec (PK)", &["soc-pokec"], REPOSITORY),
    file("cit-patent (PT)", &["cit-Patents", "cit-patent"], REPOSITORY),
    file("bio-mouse-gene (MG)", &["bio-mouse-gene"], REPOSITORY),
    file("bio-human-gene1 (HG)", &["bio-human-gene1"], REPOSITORY),
    file("socfb-uci-uni (UU)", &["socfb-uci-uni"], REPOSITORY),
    file("indochina-2004 (IC)", &["indochina-2004"], REPOSITORY),
];
const SUNWAY: [Wanted; 4] = [
    file("freescale1", &["Freescale1", "freescale1"], SUITE_SPARSE),
    file("cage15", &["cage15"], SUITE_SPARSE),
    file("road_usa", &["road_usa"], SUITE_SPARSE),
    file("europe_osm", &["europe_osm"], SUITE_SPARSE),
];

impl PaperArg {
    fn paper(self) -> Paper {
        match self {
            Self::Zhang => Paper::Zhang,
            Self::Remis => Paper::Remis,
            Self::Surf => Paper::Surf,
            Self::Sunway => Paper::Sunway,
        }
    }

    fn graphs(self) -> &'static [Wanted] {
        match self {
            Self::Zhang => &ZHANG,
            Self::Remis => &REMIS,
            Self::Surf => &SURF,
            Self::Sunway => &SUNWAY,
        }
    }

    /// Graphs of the same kind, small, for --quick and where none of the paper's is there.
    fn small(self) -> &'static [&'static str] {
        match self {
            Self::Zhang => &["kronecker:10", "kronecker:11"],
            Self::Remis => &["rodinia:4096", "kronecker:10"],
            Self::Surf => &["kronecker:10", "rmat:10", "uniform:10"],
            Self::Sunway => &["grid:40x40", "uniform:10,edgefactor=4"],
        }
    }

    fn only(self) -> &'static str {
        match self {
            Self::Zhang => "profile,levels,heat,performance,remapping",
            Self::Remis => "profile,redundant,repeated,split,levels,handover,performance",
            Self::Surf => "profile,surf,performance",
            Self::Sunway => "profile,performance",
        }
    }
}

pub(super) fn run(arguments: &ReproduceArgs) -> Result<(), Failure> {
    let name = arguments.paper.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    let page = Output::open(&arguments.html.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.html"))))?;
    let json = arguments.json.as_deref().map(Output::open).transpose()?;
    let (graphs, missing) = arguments.graphs();
    let (turns, roots) = if arguments.quick { ("2", "2") } else { ("9", "8") };
    let mut words: Vec<String> =
        ["analyze", "--only", arguments.paper.only(), "--turns", turns, "--roots", roots].map(str::to_owned).into();
    for (flag, value) in [("--device", &arguments.device), ("--threads", &arguments.threads)] {
        words.extend(value.iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    words.extend(graphs);
    let matches = parsed(&words)?;
    let analyze = AnalyzeArgs::from_arg_matches(&matches).map_err(|error| Failure::new(error.to_string()))?;
    let mut analysis = analyze::analysis(&analyze, &matches)?;
    analysis.paper = Some(PaperComparison::new(arguments.paper.paper(), arguments.quick, &analysis, missing));
    analyze::publish(&analysis, json, Some(page))
}

/// The arguments of `analyze` as if they stood on the command line.
fn parsed(words: &[String]) -> Result<ArgMatches, Failure> {
    let command = AnalyzeArgs::augment_args(clap::Command::new("analyze"));
    command.try_get_matches_from(words).map_err(|error| Failure::new(error.to_string()))
}

impl ReproduceArgs {
    /// The graphs to be searched as `analyze` names them, and those of the paper that are not, with the reason.
    fn graphs(&self) -> (Vec<String>, Vec<(String, String)>) {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        let available = available_memory(Path::new(ROOT)).unwrap_or(u64::MAX);
        for wanted in self.paper.graphs() {
            let absent = |why: String| (wanted.name.to_owned(), why);
            match wanted.from {
                From::Generator(generator) if self.quick => missing.push(absent(format!("--quick leaves it out: {generator} makes it"))),
                From::Generator(generator) => {
                    // Twice what the search takes: policies and devices have states of their own.
                    let scale = generator.strip_prefix("kronecker:").and_then(|scale| scale.parse().ok());
                    if scale.is_some_and(|scale| kronecker_bytes(scale, 16) > available / 2) {
                        missing.push(absent(format!("{generator} does not fit the memory of this machine")));
                    } else {
                        found.push(generator.to_owned());
                    }
                }
                From::File(names, source) => match self.data.as_deref().and_then(|folder| in_folder(folder, names)) {
                    Some(file) => found.push(file),
                    None => missing.push(absent(format!("from {source}, into the folder of --data"))),
                },
            }
        }
        if found.is_empty() || self.quick {
            found.extend(self.paper.small().iter().map(|&graph| graph.to_owned()));
        }
        (found, missing)
    }
}

/// A file of `folder` whose name begins as one of `names`.
fn in_folder(folder: &Path, names: &[&str]) -> Option<String> {
    let mut files: Vec<String> =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path().to_str()?.to_owned())).collect();
    files.sort();
    files.into_iter().find(|file| {
        let name = Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        names.iter().any(|wanted| name.starts_with(wanted))
    })
}
