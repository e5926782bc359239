//! `socbfs grid`: a search over a map.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Instant,
};

use clap::{ArgMatches, Args, ValueEnum};

use crate::{
    bench::{grid_edges, measure_repeated_energy},
    maps::{self, Frame},
    record::{Environment, GridRecord, MapRecord},
    report,
    shell::{Failure, HostArgs, Output, Outputs, WindowArgs, read, worse_of},
};
use socbfs::{NONE, files};
use socbfs_algo::grid::{Cell, Connectivity, Grid, GridError, GridOptions, GridSearch, GridUntil};

const EXAMPLES: &str = "\
Examples:
  socbfs grid office.yaml --sources 120,45 --picture distances.png
  socbfs grid arena.map --sources 3,4 --target 40,41 --connectivity 8
  socbfs grid map.npy --sources '0,0;99,99' --distances d.npy --nearest n.npy
  socbfs grid office.yaml --metres --sources 1.5,-0.2 --target 7,3.1 --inflate 0.3
  socbfs grid office.yaml --sources docks.txt --json r.json

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

    /// Cells to start from, all at once: with semicolons between them, or a file with a cell on each line (with --metres points X,Y)
    #[arg(long, value_name = "ROW,COLUMN;...|FILE", allow_hyphen_values = true)]
    sources: String,

    /// Cells that a step can lead to: 4, or 8 with diagonals
    #[arg(long, value_name = "4|8", default_value = "4", hide_possible_values = true, value_parser = ["4", "8"])]
    connectivity: String,

    /// Cut no corners: diagonal steps only if both cells beside them are free
    #[arg(long)]
    around_corners: bool,

    /// End when this cell is reached, and show the path from it to the nearest source
    #[arg(long, value_name = "ROW,COLUMN", allow_hyphen_values = true)]
    target: Option<String>,

    /// End at this distance, in steps
    #[arg(long, value_name = "N")]
    depth: Option<u32>,

    /// Sources, target, path and distances are in metres: points X,Y of the frame of a ROS map
    #[arg(long)]
    metres: bool,

    /// Block the cells, too, that are within this radius of a blocked one: a number of cells, or with --metres the radius of a robot
    #[arg(long, value_name = "RADIUS", allow_hyphen_values = true)]
    inflate: Option<f64>,

    /// What cells are of which the map says neither that they are free nor that they are blocked
    #[arg(long, value_name = "blocked|free", default_value = "blocked", hide_possible_values = true)]
    unknown: Unknown,

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
const POINTS: &str = "a point is X,Y in metres, as in 1.5,-0.2; semicolons stand between several";

fn pair<T: FromStr>(text: &str) -> Option<(T, T)> {
    let number = |text: &str| text.trim().parse().ok().filter(|_| !text.contains('+'));
    text.split_once(',').and_then(|(row, column)| Some((number(row)?, number(column)?)))
}

/// The cell that `text` names: by row and column, or by a point of `frame` in a map with these rows and columns.
fn parse_cell(text: &str, frame: Option<Frame>, [rows, columns]: [usize; 2]) -> Result<Cell, String> {
    let Some(frame) = frame else {
        return pair(text).map(|(row, column)| Cell::new(row, column)).ok_or_else(|| format!("{text:?} is not a cell"));
    };
    let (x, y) = pair(text).ok_or_else(|| format!("{text:?} is not a point"))?;
    let lies = || {
        let ([left, bottom], [right, top]) = (frame.point(Cell::new(rows - 1, 0), rows), frame.point(Cell::new(0, columns - 1), rows));
        format!(
            "{text} lies outside of the map, whose lower left cell is at {left:.2},{bottom:.2} and its upper right one at {right:.2},{top:.2}"
        )
    };
    frame.cell([x, y], rows, columns).ok_or_else(lies)
}

impl GridArgs {
    /// The sources and the target. In metres they are cells of the map, otherwise that is not known yet.
    fn cells(&self, frame: Option<Frame>, shape: [usize; 2]) -> Result<(Vec<Cell>, Option<Cell>), Failure> {
        let cure = if frame.is_some() { POINTS } else { CELLS };
        let cell = |at: &str, text: &str| parse_cell(text, frame, shape).map_err(|error| Failure::new(format!("{at}: {error}")).cure(cure));
        let target = self.target.as_deref().map(|text| cell("--target", text)).transpose()?;
        Ok((self.sources(cell)?, target))
    }

    /// The map as it is searched, and with `--metres` its frame.
    fn map(&self, options: &GridOptions) -> Result<(Grid, Option<Frame>, MapRecord), Failure> {
        let (begin, unknown_is_free) = (Instant::now(), self.unknown == Unknown::Free);
        let maps::Map { mut grid, format, unknown, frame } = maps::read(&self.map, unknown_is_free)?;
        let frame = self.metres.then(|| frame.ok_or_else(|| Failure::new(NO_FRAME).cure(FRAME_CURE))).transpose()?;
        let mut inflated_cells = None;
        if let Some(radius) = self.inflate {
            if !(radius >= 0.0 && radius.is_finite()) {
                return Err(Failure::new(format!("--inflate {radius} is no radius")).cure("give a number from 0"));
            }
            // A quotient that is a whole number but for its rounding is that number. No map has as many cells as u32 counts.
            let cells = (radius / frame.map_or(1.0, |frame| frame.resolution) - 1e-6).ceil().max(0.0) as u32;
            grid = grid.inflated(cells, options).map_err(|error| Failure::because("", &error))?;
            inflated_cells = Some(cells);
        }
        let map = MapRecord {
            file: self.map.clone(),
            format: format.into(),
            rows: grid.rows(),
            columns: grid.columns(),
            free: grid.free_cells(),
            inflated_cells,
            unknown,
            unknown_is_free,
            seconds: begin.elapsed().as_secs_f64(),
        };
        Ok((grid, frame, map))
    }

    fn sources(&self, cell: impl Fn(&str, &str) -> Result<Cell, Failure>) -> Result<Vec<Cell>, Failure> {
        let text = &*self.sources;
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

const NO_FRAME: &str = "the map does not say where it lies in metres";
const FRAME_CURE: &str = "name the .yaml file of a ROS map, with resolution and origin, or omit --metres";

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
        GridError::Blocked(_) if map.inflated_cells.is_some() => {
            failure.cure("if the map has it free, choose a smaller radius of --inflate")
        }
        GridError::Blocked(_) if map.unknown > 0 && !map.unknown_is_free => {
            failure.cure("if the map does not know the cell, --unknown free takes such cells as free")
        }
        _ => failure,
    }
}

pub(super) fn run(arguments: &GridArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let config = arguments.host.resolve(matches)?;
    let connectivity = arguments.connectivity()?;
    let json = arguments.json.as_deref().map(Output::open).transpose()?;
    let picture = open(arguments.picture.as_deref(), &["png", "pgm"])?;
    let [distances, steps, nearest] =
        [&arguments.distances, &arguments.steps, &arguments.nearest].map(|path| open(path.as_deref(), &["npy"]));
    let (distances, steps, nearest) = (distances?, steps?, nearest?);
    let environment = Environment::read(Path::new("/"));

    if arguments.metres && distances.is_some() && connectivity != Connectivity::Four {
        return Err(Failure::new("--distances can't be in metres: diagonal steps count 1, and are longer")
            .cure("omit --metres, or --connectivity 8"));
    }
    let (cpus, threads) = (config.cpus.value.numbers().to_vec(), config.team().value);
    let options = GridOptions { connectivity, threads, cpus: cpus.clone(), simd: config.simd.value, ..GridOptions::default() };
    let (grid, frame, map) = arguments.map(&options)?;
    let shape = [map.rows, map.columns];
    let (sources, target) = arguments.cells(frame, shape)?;
    let until = GridUntil { depth: arguments.depth, target };
    let refused = |error: GridError| refused(&error, &map);
    let mut search = GridSearch::new(grid, &options).map_err(refused)?;
    // The first search touches its memory for the first time.
    let first = search.run_until(&sources, until).map_err(refused)?;
    let outcome = search.run_until(&sources, until).map_err(refused)?;
    let levels = maps::levels(&search);
    let path: Option<Vec<Cell>> = target.and_then(|target| Some(search.path(target)?.collect()));
    let path_metres = frame.zip(path.as_ref()).map(|(frame, path)| path.iter().map(|&cell| frame.point(cell, shape[0])).collect());
    let line = search.line();
    let drawn = picture.map_or(Ok(()), |(kind, output)| {
        output.finish(|out| maps::write_picture(out, kind, &search, &levels, path.as_deref().unwrap_or_default()))
    });
    let distances = distances.map_or(Ok(()), |(_, output)| {
        output.finish(|out| match frame {
            None => maps::write_distances(out, &search),
            Some(Frame { resolution, .. }) => {
                let metres = |level: u32| if level == NONE { f64::INFINITY } else { f64::from(level) * resolution };
                let metres: Vec<f32> = levels.iter().map(|&level| metres(level) as f32).collect();
                maps::write_array(out, "<f4", shape, &metres, shape[1], f32::to_le_bytes)
            }
        })
    });
    let steps = steps.map_or(Ok(()), |(_, output)| {
        let steps = search.steps().map_err(refused)?;
        output.finish(|out| maps::write_array(out, "|u1", shape, steps, line, |step: u8| [step]))
    });
    let nearest = nearest.map_or(Ok(()), |(_, output)| {
        let sources = search.sources().map_err(refused)?;
        output.finish(|out| maps::write_array(out, "<u4", shape, sources, line, u32::to_le_bytes))
    });

    let edges = grid_edges(&search, &levels);
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
        target,
        depth: arguments.depth,
        seconds: outcome.elapsed.as_secs_f64(),
        first_seconds: first.elapsed.as_secs_f64(),
        outcome,
        edges,
        path,
        path_metres,
        energy,
        map,
    };
    worse_of(
        worse_of(worse_of(drawn, distances), worse_of(steps, nearest)),
        Outputs { json, html: None }.publish(&record, || report::grid(&record)),
    )
}
