//! `socbfs generate`: writes a generated graph to a file.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::convert;
use crate::shell::{Failure, Source, WRITTEN, source, with_graph_help};
use socbfs_io::{Format, generate::Generator};

const EXAMPLES: &str = "\
Examples:
  socbfs generate kronecker:20 k20.sg
  socbfs generate kronecker --scale 20 -o k20.sg
  socbfs generate rmat --scale 16 -a 0.45 -b 0.25 -c 0.15 -d 0.15 --seed 7 -o r16.el
  socbfs generate grid --width 1500 --height 1500 --deletion 0.05 -o grid.mtx

The same parameters give the same graph on every machine and with any number of threads.";

/// Generate a graph and write it to a file
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES), args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct GenerateArgs {
    /// Generator, as other commands take it: kronecker:20
    #[arg(value_name = "GRAPH", required = true)]
    graph: Option<PathBuf>,

    /// File to write; the ending .el, .mtx or .sg determines its format
    #[arg(value_name = "FILE", required_unless_present = "output")]
    file: Option<PathBuf>,

    /// The file, as the generators with flags take it
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    output: Option<PathBuf>,

    /// Format of the file, if its name does not determine it
    #[arg(long, value_name = "FORMAT", value_parser = WRITTEN)]
    to: Option<Format>,

    #[command(subcommand)]
    kind: Option<Kind>,
}

#[derive(Debug, Args)]
struct Target {
    /// File to write; the ending .el, .mtx or .sg determines its format
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Format of the file, if its name does not determine it
    #[arg(long, value_name = "FORMAT", value_parser = WRITTEN)]
    to: Option<Format>,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Graph500's Kronecker graph, exactly as the reference code 3.x makes it
    Kronecker {
        /// The graph has 2^SCALE vertices
        #[arg(long)]
        scale: u32,
        /// Edges per vertex
        #[arg(long, default_value_t = 16)]
        edgefactor: u64,
        /// The generator's seeds are S and S + 1 (Graph500: 2 and 3)
        #[arg(long, value_name = "S", default_value_t = 2)]
        seed: u64,
        #[command(flatten)]
        target: Target,
    },
    /// R-MAT with four probabilities
    Rmat {
        /// The graph has 2^SCALE vertices
        #[arg(long)]
        scale: u32,
        /// Edges per vertex
        #[arg(long, default_value_t = 16)]
        edgefactor: u64,
        /// Probability of the upper left quarter
        #[arg(short, default_value_t = 0.57)]
        a: f64,
        /// Probability of the upper right quarter
        #[arg(short, default_value_t = 0.19)]
        b: f64,
        /// Probability of the lower left quarter
        #[arg(short, default_value_t = 0.19)]
        c: f64,
        /// Probability of the lower right quarter
        #[arg(short, default_value_t = 0.05)]
        d: f64,
        /// Seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        target: Target,
    },
    /// Both ends of every edge drawn uniformly
    #[command(override_usage = "socbfs generate uniform [OPTIONS] --vertices <N> --edges <N> -o <FILE>")]
    Uniform {
        /// Vertices
        #[arg(long, value_name = "N")]
        vertices: u64,
        /// Edges
        #[arg(long, value_name = "N")]
        edges: u64,
        /// Seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        target: Target,
    },
    /// The random graph of Rodinia's bfs
    Rodinia {
        /// Vertices
        #[arg(long, value_name = "N")]
        vertices: u64,
        /// Seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        target: Target,
    },
    /// Two-dimensional grid with deleted edges: like roads
    Grid {
        /// Vertices in a row
        #[arg(long, value_name = "N")]
        width: u64,
        /// Rows
        #[arg(long, value_name = "N")]
        height: u64,
        /// Share of the edges that is deleted, 0 to 1
        #[arg(long, default_value_t = 0.05)]
        deletion: f64,
        /// Seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        target: Target,
    },
}

impl Kind {
    fn resolve(&self) -> (Generator, &Target) {
        match *self {
            Self::Kronecker { scale, edgefactor, seed, ref target } => (source::kronecker(scale, edgefactor, seed), target),
            Self::Rmat { scale, edgefactor, a, b, c, d, seed, ref target } => {
                (Generator::Rmat { scale, edge_factor: edgefactor, a, b, c, d, seed }, target)
            }
            Self::Uniform { vertices, edges, seed, ref target } => (Generator::Uniform { vertices, edges, seed }, target),
            Self::Rodinia { vertices, seed, ref target } => (Generator::Rodinia { vertices, seed }, target),
            Self::Grid { width, height, deletion, seed, ref target } => (Generator::Grid { width, height, deletion, seed }, target),
        }
    }
}

pub(super) fn run(arguments: &GenerateArgs, quiet: bool) -> Result<(), Failure> {
    let file = arguments.file.as_ref().or(arguments.output.as_ref());
    let (source, output, to): (Source, &Path, _) = match (&arguments.kind, &arguments.graph, file) {
        (Some(kind), ..) => {
            let (generator, target) = kind.resolve();
            (Source::Generated(source::checked(generator)?), &target.output, target.to)
        }
        (None, Some(graph), Some(file)) => match Source::parse(graph, None)? {
            Source::File(path, _) => {
                return Err(Failure::new(format!("{}: this is no generator", path.display()))
                    .cure("name one, such as kronecker:20; `socbfs convert` writes a file in another format"));
            }
            generated => (generated, file, arguments.to),
        },
        // clap requires both.
        (None, ..) => return Err(Failure::new("generate needs a generator and a file")),
    };
    let format = convert::target_format(output, to)?;
    let (edges, _) = source.load()?;
    Ok(convert::write(output, format, &edges, false, quiet)?)
}
