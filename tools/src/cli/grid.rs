//! `socbfs grid`: a search over a map.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use clap::{ArgMatches, Args, ValueEnum};

use crate::{
    bench::{grid_edges, measure_repeated_energy},
    maps,
    record::{Environment, GridRecord, MapRecord},
    report,
    shell::{Failure, HostArgs, Output, Outputs, WindowArgs, read, worse_of},
};
use socbfs::files;
use socbfs_algo::grid::{Cell, Connectivity, GridError, GridOptions, GridSearch, GridUntil};

const EXAMPLES: &str = "\
Examples:
  socbfs grid office.yaml --sources 120,45 --picture distances.png
  socbfs grid arena.map --sources 3,4 --target 40,41 --connectivity 8
  socbfs grid map.npy --sources '0,0;99,99' --distances d.npy --nearest n.npy
  socbfs grid office.yaml --sources docks.txt --trace --json r.json

Formats of maps: PGM, PNG, NumPy, MovingAI's .map, ROS's .yaml with an image.
docs/grids.md describes them, the files that are written, and the method.";

/// Search a map of free and blocked cells, without a graph
///
/// Prints how many cells can be reached from the sources, and how fast they were found. A step leads to a free cell above, below, left or
/// right, and with --connectivity 8 also diagonally; each counts 1. Rows and columns are counted from 0, at the top left.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct GridArgs {
    /// Map: .pgm, .png, .npy, .map or .yaml
    #[arg(value_name = "MAP")]
    map: PathBuf,

    /// Cells to start from, all at once: with semicolons between them, or a file with a cell on each line
    #[arg(long, value_name = "ROW,COLUMN;...|FILE", allow_hyphen_values = true)]
    sources: String,

    /// Cells that a step can lead to: 4, or 8 with diagonals
    #[arg(long, value_name = "4|8", default_value = "4", hide_possible_values = true, value_parser = ["4", "8"])]
    connectivity: String,

    /// Cut no corners: diagonal steps only if both cells beside them are free
    #[arg(long)]
    around_corners: bool,

    /// End when this cell is reached, and show the path from it to the nearest source
    #[arg(long, value_name = "ROW,COLUMN", value_parser = parse_cell, allow_hyphen_values = true)]
    target: Option<Cell>,

    /// End at this distance
    #[arg(long, value_name = "N")]
    depth: Option<u32>,

    /// What cells are of which the map says neither that they are free nor that they are blocked
    #[arg(long, value_name = "blocked|free", default_value = "blocked", hide_possible_values = true)]
    unknown: Unknown,

    /// Print a table of the levels
    #[arg(long)]
    trace: bool,

    /// Draw the distances, and the path to the target (.png: in colours; .pgm: the distances as 16-bit numbers)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    picture: Option<PathBuf>,

    /// Write the distance of every cell (.npy)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    distances: Option<PathBuf>,

    /// Write the direction of the step from every cell towards the nearest source (.npy)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    steps: Option<PathBuf>,

    /// Write the source that is nearest to every cell, one of the nearest (.npy)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    nearest: Option<PathBuf>,

    /// Write the whole record as JSON ("-": standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,

    #[command(flatten)]
    energy: WindowArgs,

    #[command(flatten)]
    host: HostArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unknown {
    Blocked,
    Free,
}

const CELLS: &str = "a cell is ROW,COLUMN, both counted from 0, as in 12,7; semicolons stand between several";

fn parse_cell(text: &str) -> Result<Cell, String> {
    let number = |text: &str| text.trim().parse().ok().filter(|_| !text.contains('+'));
    let cell = text.split_once(',').and_then(|(row, column)| Some(Cell::new(number(row)?, number(column)?)));
    cell.ok_or_else(|| format!("{text:?} is not a cell"))
}

impl GridArgs {
    /// The sources; whether they are in the map is not known yet.
    fn sources(&self) -> Result<Vec<Cell>, Failure> {
        let text = &*self.sources;
        let cell = |at: &str, text: &str| parse_cell(text).map_err(|error| Failure::new(format!("{at}: {error}")).cure(CELLS));
        if text.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | ';' | ' ' | '-' | '+' | '.')) {
            return text.split(';').filter(|text| !text.trim().is_empty()).map(|text| cell("--sources", text)).collect();
        }
        let lines = read(Path::new(text), files::Kind::Stream, files::RECORD).map_err(|failure| failure.or_cure(CELLS))?;
        let lines = (1..).zip(lines.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
        lines.map(|(at, line): (u64, &str)| cell(&format!("{text}:{at}"), line)).collect()
    }

    fn connectivity(&self) -> Result<Connectivity, Failure> {
        match (&*self.connectivity, self.around_corners) {
            ("4", true) => Err(Failure::new("--around-corners is about diagonal steps, and there are none").cure("add --connectivity 8")),
            ("4", false) => Ok(Connectivity::Four),
            (_, corners) => Ok(if corners { Connectivity::EightAroundCorners } else { Connectivity::Eight }),
        }
    }
}

/// A file to write, opened before the search, and its format.
type Written = Option<(&'static str, Output)>;

fn open(path: Option<&Path>, known: &[&'static str]) -> Result<Written, Failure> {
    path.map(|path| Ok((maps::kind_of(path, known)?, Output::open(path)?))).transpose()
}

/// The failure for an error of the search.
fn refused(error: &GridError, map: &MapRecord) -> Failure {
    let failure = Failure::because("", error);
    match error {
        GridError::Outside { .. } | GridError::NoSource => failure.cure(CELLS),
        GridError::Blocked(_) if map.unknown > 0 && !map.unknown_is_free => {
            failure.cure("if the map does not know the cell, --unknown free takes such cells as free")
        }
        _ => failure,
    }
}

pub(super) fn run(arguments: &GridArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let config = arguments.host.resolve(matches)?;
    let (sources, connectivity) = (arguments.sources()?, arguments.connectivity()?);
    let json = arguments.json.as_deref().map(Output::open).transpose()?;
    let picture = open(arguments.picture.as_deref(), &["png", "pgm"])?;
    let [distances, steps, nearest] =
        [&arguments.distances, &arguments.steps, &arguments.nearest].map(|path| open(path.as_deref(), &["npy"]));
    let (distances, steps, nearest) = (distances?, steps?, nearest?);
    let environment = Environment::read(Path::new("/"));

    let begin = Instant::now();
    let unknown_is_free = arguments.unknown == Unknown::Free;
    let maps::Map { grid, format, unknown } = maps::read(&arguments.map, unknown_is_free)?;
    let map = MapRecord {
        file: arguments.map.clone(),
        format: format.into(),
        rows: grid.rows(),
        columns: grid.columns(),
        free: grid.free_cells(),
        unknown,
        unknown_is_free,
        seconds: begin.elapsed().as_secs_f64(),
    };
    let (cpus, threads) = (config.cpus.value.numbers().to_vec(), config.team().value);
    let options = GridOptions { connectivity, threads, cpus: cpus.clone(), simd: config.simd.value, ..GridOptions::default() };
    let until = GridUntil { depth: arguments.depth, target: arguments.target };
    let refused = |error: GridError| refused(&error, &map);
    let mut search = GridSearch::new(grid, &options).map_err(refused)?;
    // The first search touches its memory for the first time.
    let first = search.run_until(&sources, until).map_err(refused)?;
    let outcome = search.run_until(&sources, until).map_err(refused)?;
    let levels = maps::levels(&search);
    let path: Option<Vec<Cell>> = arguments.target.and_then(|target| Some(search.path(target)?.collect()));
    let shape = [map.rows, map.columns];
    let line = search.line();
    let drawn = picture.map_or(Ok(()), |(kind, output)| {
        output.finish(|out| maps::write_picture(out, kind, &search, &levels, path.as_deref().unwrap_or_default()))
    });
    let distances = distances.map_or(Ok(()), |(_, output)| output.finish(|out| maps::write_distances(out, &search)));
    let steps = steps.map_or(Ok(()), |(_, output)| {
        let steps = search.steps().map_err(refused)?;
        output.finish(|out| maps::write_array(out, "|u1", shape, steps, line, |step: u8| [step]))
    });
    let nearest = nearest.map_or(Ok(()), |(_, output)| {
        let sources = search.sources().map_err(refused)?;
        output.finish(|out| maps::write_array(out, "<u4", shape, sources, line, u32::to_le_bytes))
    });

    let edges = grid_edges(&search, &levels);
    let mut trace = Vec::new();
    if arguments.trace {
        search.set_traced(outcome.levels as usize);
        search.run_until(&sources, until).map_err(refused)?;
        trace = search.trace().to_vec();
        search.set_traced(0);
    }
    let (threads, simd) = (search.threads(), search.simd());
    let mut again = || search.run_until(&sources, until).map(|outcome| outcome.elapsed.as_secs_f64());
    let measure = || {
        arguments.energy.measure(&config.profile, 0.0, 1, |meter, options, finished| {
            measure_repeated_energy(edges, meter, options, finished, &mut again)
        })
    };
    let energy = arguments.energy.is_asked(matches).then(measure);
    let energy = energy.map(|measured| measured.unwrap_or_else(|none| Ok(*none))).transpose().map_err(refused)?;
    let record = GridRecord {
        schema: "socbfs-grid",
        schema_version: 1,
        environment,
        connectivity,
        threads,
        cpus,
        simd,
        sources,
        target: arguments.target,
        depth: arguments.depth,
        seconds: outcome.elapsed.as_secs_f64(),
        first_seconds: first.elapsed.as_secs_f64(),
        outcome,
        edges,
        path,
        levels: trace,
        energy,
        map,
    };
    worse_of(
        worse_of(worse_of(drawn, distances), worse_of(steps, nearest)),
        Outputs { json, html: None }.publish(&record, || report::grid(&record)),
    )
}
