//! Graphs as the command line names them: a file, or a generator such as `kronecker:20`.

use std::{
    error::Error,
    ffi::OsStr,
    marker::PhantomData,
    path::{Path, PathBuf},
    str::FromStr,
    time::Instant,
};

use clap::{
    Arg, Command,
    builder::{PossibleValue, TypedValueParser},
};

use super::{Bar, Failure, protect};
use crate::bench::{RootSource, roots};
use socbfs::{BuildOptions, EdgeList, Layout, Vertex, words};
use socbfs_io::{
    self as input, Format, ReadOptions,
    generate::{Generator, NAMES},
};

/// The help text below the options of a command: the argument GRAPH, and `examples`.
pub(crate) fn with_graph_help(examples: &str) -> String {
    format!("{GRAPH_HELP}\n\n{examples}")
}

const GRAPH_HELP: &str = "\
GRAPH is a file or a generator:
  FILE               edge list (SNAP, .el), MatrixMarket .mtx, DIMACS .gr,
                     METIS .graph, GAP .sg, Ligra .adj, bfs input of Rodinia
                     and Parboil, Graph500 edges; also as .gz, .xz, .zst,
                     and SuiteSparse's .tar.gz
  kronecker:SCALE    Graph500's Kronecker graph  [,edgefactor=16,seed=2]
  rmat:SCALE         R-MAT  [,edgefactor=16,a=0.57,b=0.19,c=0.19,d=0.05,seed=1]
  uniform:SCALE      uniform random graph        [,edgefactor=16,seed=1]
  rodinia:VERTICES   Rodinia's random graph      [,seed=1]
  grid:WIDTHxHEIGHT  grid, some edges deleted    [,deletion=0.05,seed=1]
Write ./kronecker:20 for a file whose name looks like a generator.";

/// Parses a value, and lists values in `--help` and for shell completions, each with its help. Others may be valid too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed<T: 'static>(pub(crate) fn() -> Vec<(&'static str, String)>, pub(crate) PhantomData<fn() -> T>);

impl<T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>> + Clone + Send + Sync> TypedValueParser for Listed<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        T::from_str.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(|(name, help)| PossibleValue::new(name).help(help))))
    }
}

/// The parser for a format that is read.
pub(crate) const READ: Listed<Format> =
    Listed(|| Format::ALL.map(|format| (format.name(), format.summary().to_string())).into(), PhantomData);
/// The parser for a format that is written.
pub(crate) const WRITTEN: Listed<Format> =
    Listed(|| Format::WRITABLE.map(|format| (format.name(), format.summary().to_string())).into(), PhantomData);

/// A graph to be read or generated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    /// A file, and its format if the user names one.
    File(PathBuf, Option<Format>),
    /// A generator.
    Generated(Generator),
}

impl Source {
    /// Parses the argument GRAPH.
    pub(crate) fn parse(text: &Path, format: Option<Format>) -> Result<Self, Failure> {
        let spec = text.to_str().and_then(|text| text.split_once(':')).filter(|(kind, _)| NAMES.iter().any(|(name, _)| name == kind));
        let Some((kind, parameters)) = spec else {
            if let Some(meant) = misspelt(text).filter(|_| !text.exists()) {
                let message = format!("{}: there is no such file, and no generator of that name", text.display());
                return Err(Failure::new(message).cure(format!("did you mean {meant}?")));
            }
            protect(text)?;
            return Ok(Self::File(text.to_owned(), format));
        };
        if format.is_some() {
            return Err(Failure::new(format!("{} is generated: --format is for files", text.display())));
        }
        let generator = generator(kind, parameters)
            .map_err(|reason| Failure::new(format!("{}: {reason}", text.display())).cure(format!("for example: {}", example(kind))))?;
        checked(generator).map(Self::Generated)
    }

    /// The name of the graph in reports.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path, _) => path.display().to_string(),
            Self::Generated(generator) => generator.to_string(),
        }
    }

    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path, _) => Some(path),
            Self::Generated(_) => None,
        }
    }

    /// Reads or generates the graph. Also returns the seconds that this took.
    pub(crate) fn load(&self) -> Result<(EdgeList, f64), Failure> {
        start_pool()?;
        let start = Instant::now();
        let edges = match self {
            Self::File(path, format) => {
                let progress = Bar::start(&format!("Reading {}", path.display()), 0);
                input::read(path, &ReadOptions { format: *format, progress: Some(&progress), ..ReadOptions::default() })?
            }
            Self::Generated(generator) => {
                let progress = Bar::start("Generating", generator.work());
                generator
                    .generate(&|done| progress.add(done))
                    .map_err(|error| Failure::because(&format!("can't generate {generator}"), &error))?
            }
        };
        Ok((edges, start.elapsed().as_secs_f64()))
    }
}

/// Starts the thread pool that reads and builds graphs, unless the settings of a search have started it. (rayon itself would start it at
/// its first use, and panic on an error.)
pub(crate) fn start_pool() -> Result<(), Failure> {
    match rayon::ThreadPoolBuilder::new().build_global() {
        Err(error) if error.source().is_some() => Err(Failure::because("can't start a thread for every CPU", &error)
            .cure("allow more processes (ulimit -u) or more memory (ulimit -v)")),
        _ => Ok(()),
    }
}

/// Builds the searchable structure.
pub(crate) fn build(name: &str, edges: &EdgeList, options: &BuildOptions) -> Result<Layout, Failure> {
    let _progress = Bar::start("Building", 0);
    Layout::build(edges, options).map_err(|error| Failure::because(name, &error))
}

/// Draws `count` roots (fewer if the graph has fewer vertices with an edge) of the graph `name`, by the rule of Graph500.
///
/// # Errors
/// If no vertex has an edge.
pub(crate) fn draw_roots(name: &str, layout: &Layout, count: usize, seeds: RootSource) -> Result<Vec<Vertex>, Failure> {
    let drawn = roots(layout.vertices(), |vertex| layout.input_degree(vertex), count, seeds);
    if drawn.is_empty() {
        return Err(Failure::new(format!("{name} has no edge between two vertices: there is nothing to search")));
    }
    Ok(drawn)
}

/// Checks the parameters of a generator.
pub(crate) fn checked(generator: Generator) -> Result<Generator, Failure> {
    generator.validate().map_err(|error| Failure::because(&format!("can't generate {generator}"), &error))?;
    Ok(generator)
}

/// Graph500's Kronecker graph with the seeds `seed` and `seed` + 1 (Graph500: 2 and 3).
pub(crate) fn kronecker(scale: u32, edge_factor: u64, seed: u64) -> Generator {
    Generator::Kronecker { scale, edge_factor, seed1: seed, seed2: seed.wrapping_add(1) }
}

/// If the word before a colon looks like a misspelt generator: that generator, with the parameters of `text`.
fn misspelt(text: &Path) -> Option<String> {
    // A path, such as ./kronecker:20, means a file.
    let (kind, parameters) = text.to_str()?.split_once(':').filter(|(kind, _)| kind.bytes().all(|byte| byte.is_ascii_alphabetic()))?;
    let meant = words::nearest(kind, NAMES.into_iter().map(|(known, _)| known))?;
    Some(format!("{meant}:{parameters}"))
}

fn example(kind: &str) -> &'static str {
    match kind {
        "rmat" => "rmat:16,a=0.45,b=0.25,c=0.15,d=0.15,seed=7",
        "uniform" => "uniform:18,edgefactor=8",
        "rodinia" => "rodinia:65536,seed=7",
        "grid" => "grid:1500x1500,deletion=0.1",
        _ => "kronecker:20,edgefactor=16",
    }
}

/// Parses the parameters of a generator, `SIZE[,key=value]...`.
fn generator(kind: &str, parameters: &str) -> Result<Generator, String> {
    let mut parts = parameters.split(',');
    let size = parts.next().unwrap_or_default();
    let mut keys = Vec::new();
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is not key=value"))?;
        if keys.iter().any(|(given, _)| *given == key) {
            return Err(format!("{key} is given twice"));
        }
        keys.push((key, value));
    }
    let generator = match kind {
        "kronecker" => kronecker(number("scale", size)?, take(&mut keys, "edgefactor", 16)?, take(&mut keys, "seed", 2)?),
        "rmat" => Generator::Rmat {
            scale: number("scale", size)?,
            edge_factor: take(&mut keys, "edgefactor", 16)?,
            a: take(&mut keys, "a", 0.57)?,
            b: take(&mut keys, "b", 0.19)?,
            c: take(&mut keys, "c", 0.19)?,
            d: take(&mut keys, "d", 0.05)?,
            seed: take(&mut keys, "seed", 1)?,
        },
        "uniform" => {
            let scale: u32 = number("scale", size)?;
            let vertices = 1_u64.checked_shl(scale).ok_or_else(|| format!("scale {scale} is too large"))?;
            let factor: u64 = take(&mut keys, "edgefactor", 16)?;
            let edges = vertices.checked_mul(factor).ok_or_else(|| format!("edgefactor {factor} is too large"))?;
            Generator::Uniform { vertices, edges, seed: take(&mut keys, "seed", 1)? }
        }
        "rodinia" => Generator::Rodinia { vertices: number("vertices", size)?, seed: take(&mut keys, "seed", 1)? },
        _ => {
            let (width, height) = size.split_once('x').ok_or_else(|| format!("{size:?} is not WIDTHxHEIGHT"))?;
            Generator::Grid {
                width: number("width", width)?,
                height: number("height", height)?,
                deletion: take(&mut keys, "deletion", 0.05)?,
                seed: take(&mut keys, "seed", 1)?,
            }
        }
    };
    keys.first().map_or(Ok(generator), |(key, _)| Err(format!("{kind} has no parameter {key}")))
}

/// Takes a key out of those that were given.
fn take<T: FromStr>(keys: &mut Vec<(&str, &str)>, key: &str, default: T) -> Result<T, String> {
    match keys.iter().position(|(given, _)| *given == key) {
        Some(index) => number(key, keys.remove(index).1),
        None => Ok(default),
    }
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} can't be {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Source {
        Source::parse(Path::new(text), None).unwrap()
    }

    #[test]
    fn specs_are_read_as_generators_and_other_names_as_files() {
        let kronecker = Generator::Kronecker { scale: 20, edge_factor: 16, seed1: 2, seed2: 3 };
        assert_eq!(parse("kronecker:20"), Source::Generated(kronecker));
        let kronecker = Generator::Kronecker { scale: 5, edge_factor: 8, seed1: 9, seed2: 10 };
        assert_eq!(parse("kronecker:5,seed=9,edgefactor=8"), Source::Generated(kronecker));
        assert_eq!(parse("uniform:4"), Source::Generated(Generator::Uniform { vertices: 16, edges: 256, seed: 1 }));
        assert_eq!(parse("rodinia:100,seed=3"), Source::Generated(Generator::Rodinia { vertices: 100, seed: 3 }));
        let grid = Generator::Grid { width: 3, height: 4, deletion: 0.05, seed: 1 };
        assert_eq!(parse("grid:3x4"), Source::Generated(grid));
        assert!(matches!(parse("rmat:4,a=0.25,b=0.25,c=0.25,d=0.25"), Source::Generated(Generator::Rmat { a: 0.25, d: 0.25, .. })));
        for file in ["./kronecker:20", "kronecker", "a.el", "c:/graph.el"] {
            assert_eq!(parse(file), Source::File(file.into(), None));
        }
    }

    #[test]
    fn misspelt_generators_get_a_suggestion() {
        for (text, meant) in [("kroneckr:10", "kronecker:10"), ("Grid:3x4", "grid:3x4"), ("unifor:8,seed=2", "uniform:8,seed=2")] {
            let error = Source::parse(Path::new(text), None).unwrap_err();
            assert!(format!("{error:?}").contains(&format!("did you mean {meant}?")), "{error:?}");
        }
    }

    #[test]
    fn bad_specs_are_refused() {
        for (kind, parameters, reason) in [
            ("kronecker", "", "scale can't be \"\""),
            ("kronecker", "x", "scale can't be \"x\""),
            ("kronecker", "4,8", "\"8\" is not key=value"),
            ("kronecker", "4,width=8", "kronecker has no parameter width"),
            ("kronecker", "4,seed=1,seed=2", "seed is given twice"),
            ("uniform", "64", "scale 64 is too large"),
            ("uniform", "40,edgefactor=99999999999", "edgefactor 99999999999 is too large"),
            ("grid", "7", "\"7\" is not WIDTHxHEIGHT"),
            ("grid", "3x-4", "height can't be \"-4\""),
        ] {
            assert_eq!(generator(kind, parameters).unwrap_err(), reason);
        }
        assert!(Source::parse(Path::new("grid:3x4"), Some(Format::GapSg)).is_err());
        for (kind, _) in NAMES {
            assert!(matches!(parse(example(kind)), Source::Generated(_)), "{kind}");
        }
    }
}
