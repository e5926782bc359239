//! Generated graphs. Every generator works on the current rayon pool, and its output depends on its parameters alone:
//! not on the number of threads, not on the machine.

mod grid;
pub mod hash;
mod kronecker;
pub mod mrg;
mod rmat;
mod rodinia;
mod source;
mod uniform;

use std::fmt;

use kronecker::Kronecker;
use socbfs::graph::{EdgeList, GraphError, Listing, MAX_VERTICES};
pub use source::GeneratedEdges;
use source::Source;

/// Largest `scale`: 2^31 vertices still have 32-bit numbers.
pub const MAX_SCALE: u32 = 31;

/// The generators as the command line names them, and what follows the colon.
pub const NAMES: [(&str, &str); 5] =
    [("kronecker", "SCALE"), ("rmat", "SCALE"), ("uniform", "SCALE"), ("rodinia", "VERTICES"), ("grid", "WIDTHxHEIGHT")];

/// Allowed difference between 1 and the sum of R-MAT's probabilities, for the rounding of decimal fractions to binary ones.
const PROBABILITY_TOLERANCE: f64 = 1e-9;

/// A graph to be generated.
///
/// ```
/// use socbfs_io::generate::Generator;
///
/// let roads = Generator::Grid { width: 30, height: 20, deletion: 0.1, seed: 7 };
/// let edges = roads.generate(&|_| ())?;
/// assert_eq!(edges.vertices(), 600);
/// assert_eq!(Generator::graph500(10).generate(&|_| ())?.len(), 16 << 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Generator {
    /// The Kronecker graph of Graph500, bit for bit as its reference code 3.x generates it.
    Kronecker {
        /// log2 of the number of vertices, 1 to [`MAX_SCALE`].
        scale: u32,
        /// Edges per vertex (Graph500: 16).
        edge_factor: u64,
        /// First seed (Graph500: 2).
        seed1: u64,
        /// Second seed (Graph500: 3).
        seed2: u64,
    },
    /// Recursive matrix (Chakrabarti, Zhan, Faloutsos, "R-MAT: A Recursive Model for Graph Mining", 2004), as drawn:
    /// vertices are not renumbered, so with a large `a` low numbers have high degrees.
    Rmat {
        /// log2 of the number of vertices, 1 to [`MAX_SCALE`].
        scale: u32,
        /// Edges per vertex.
        edge_factor: u64,
        /// Probability of the quadrant where both ends are in the lower half of the numbers.
        a: f64,
        /// Probability of the quadrant with the source in the lower half, the target in the upper half.
        b: f64,
        /// Probability of the quadrant with the source in the upper half, the target in the lower half.
        c: f64,
        /// Probability of the quadrant where both ends are in the upper half.
        d: f64,
        /// Seed.
        seed: u64,
    },
    /// Both ends of every edge drawn uniformly from all vertices.
    Uniform {
        /// Number of vertices.
        vertices: u64,
        /// Number of edges.
        edges: u64,
        /// Seed.
        seed: u64,
    },
    /// Rodinia's random graph: every vertex draws 2, 3 or 4 edges to uniformly drawn vertices, so that the average
    /// degree is 6.
    Rodinia {
        /// Number of vertices.
        vertices: u64,
        /// Seed.
        seed: u64,
    },
    /// A grid of `width` times `height` vertices, row by row, each joined to its neighbours to the right and below,
    /// from which every edge is deleted with probability `deletion`: few edges, a high diameter, like roads.
    Grid {
        /// Vertices in a row.
        width: u64,
        /// Number of rows.
        height: u64,
        /// Share of the edges that is deleted, 0 to 1.
        deletion: f64,
        /// Seed.
        seed: u64,
    },
}

/// Why a graph can't be generated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The scale is out of range.
    #[error("scale {0} is out of range: 2^scale vertices, scale from 1 to {MAX_SCALE}")]
    Scale(u32),
    /// A probability is not a number from 0 to 1.
    #[error("{name} = {value} is not a probability (0 to 1)")]
    Probability {
        /// Parameter.
        name: &'static str,
        /// Value given.
        value: f64,
    },
    /// The probabilities of the four quadrants don't sum to 1.
    #[error("a + b + c + d = {}, but the probabilities of the four quadrants must sum to 1", rounded(*.0))]
    ProbabilitySum(f64),
    /// Edges are requested, but there is no vertex to join.
    #[error("a graph of 0 vertices can't have {0} edges")]
    NoVertices(u64),
    /// More edges than a 64-bit number can count or this machine can address.
    #[error("{0} edges are more than a program of {bits} bits can address", bits = usize::BITS)]
    TooManyEdges(u128),
    /// The graph has too many vertices, or does not fit in memory.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// A sum of probabilities without the digits that only rounding gives it, but with all that the tolerance tells apart.
fn rounded(sum: f64) -> f64 {
    (sum * 1e12).round() / 1e12
}

impl Generator {
    /// The Kronecker graph of the Graph500 benchmark at `scale`: 16 edges per vertex, seeds 2 and 3.
    pub fn graph500(scale: u32) -> Self {
        Self::Kronecker { scale, edge_factor: 16, seed1: 2, seed2: 3 }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// A [`GenerateError`] that names the first wrong parameter.
    pub fn validate(&self) -> Result<(), GenerateError> {
        match *self {
            Self::Kronecker { scale, edge_factor, .. } => {
                check_scale(scale)?;
                check_edges(u128::from(edge_factor) << scale)
            }
            Self::Rmat { scale, edge_factor, a, b, c, d, .. } => {
                check_scale(scale)?;
                check_edges(u128::from(edge_factor) << scale)?;
                for (name, value) in [("a", a), ("b", b), ("c", c), ("d", d)] {
                    check_probability(name, value)?;
                }
                let sum = a + b + c + d;
                if (sum - 1.0).abs() > PROBABILITY_TOLERANCE {
                    return Err(GenerateError::ProbabilitySum(sum));
                }
                Ok(())
            }
            Self::Uniform { vertices, edges, .. } => {
                check_vertices(u128::from(vertices))?;
                check_edges(u128::from(edges))?;
                if vertices == 0 && edges > 0 { Err(GenerateError::NoVertices(edges)) } else { Ok(()) }
            }
            Self::Rodinia { vertices, .. } => check_vertices(u128::from(vertices)),
            Self::Grid { width, height, deletion, .. } => {
                check_probability("deletion", deletion)?;
                check_vertices(u128::from(width) * u128::from(height))
            }
        }
    }

    /// The total that the calls of `progress` in [`generate`](Self::generate) add up to: edges, or vertices for the generators that go
    /// through the vertices. 0 if the parameters are out of range.
    pub fn work(&self) -> u64 {
        self.source().map_or(0, |source| source.units)
    }

    /// Generates the graph on the current rayon pool. `progress` is called from the pool's threads with the work done since its last call
    /// (see [`work`](Self::work)); it should return quickly.
    ///
    /// The list is [`Listing::Once`]; self-loops and repeats are left in.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate), and [`GraphError::OutOfMemory`] if there is not enough memory.
    pub fn generate(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<EdgeList, GenerateError> {
        let source = self.source()?;
        let edges = source::collect(&source, progress)?;
        // `validate` has checked that the number of vertices fits 32 bits.
        Ok(EdgeList::new(source.vertices as usize, edges, Listing::Once)?)
    }

    /// The edges as a stream, generated part by part each time they are read. They are those that [`generate`](Self::generate) lists.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate).
    pub fn stream(&self) -> Result<GeneratedEdges, GenerateError> {
        Ok(GeneratedEdges(self.source()?))
    }

    fn source(&self) -> Result<Source, GenerateError> {
        self.validate()?;
        Ok(match *self {
            Self::Kronecker { scale, edge_factor, seed1, seed2 } => Kronecker::new(scale, edge_factor << scale, seed1, seed2).source(),
            Self::Rmat { scale, edge_factor, a, b, c, seed, .. } => rmat::rmat(scale, edge_factor << scale, [a, b, c], seed),
            Self::Uniform { vertices, edges, seed } => uniform::uniform(vertices, edges, seed),
            Self::Rodinia { vertices, seed } => rodinia::rodinia(vertices, seed),
            Self::Grid { width, height, deletion, seed } => grid::grid(width, height, deletion, seed),
        })
    }
}

impl fmt::Display for Generator {
    /// Everything that is needed to generate the same graph again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kronecker { scale, edge_factor, seed1, seed2 } => {
                write!(f, "kronecker scale={scale} edgefactor={edge_factor} seeds={seed1},{seed2}")
            }
            Self::Rmat { scale, edge_factor, a, b, c, d, seed } => {
                write!(f, "rmat scale={scale} edgefactor={edge_factor} a={a} b={b} c={c} d={d} seed={seed}")
            }
            Self::Uniform { vertices, edges, seed } => write!(f, "uniform vertices={vertices} edges={edges} seed={seed}"),
            Self::Rodinia { vertices, seed } => write!(f, "rodinia vertices={vertices} seed={seed}"),
            Self::Grid { width, height, deletion, seed } => {
                write!(f, "grid width={width} height={height} deletion={deletion} seed={seed}")
            }
        }
    }
}

fn check_scale(scale: u32) -> Result<(), GenerateError> {
    if (1..=MAX_SCALE).contains(&scale) { Ok(()) } else { Err(GenerateError::Scale(scale)) }
}

fn check_vertices(vertices: u128) -> Result<(), GenerateError> {
    if vertices <= MAX_VERTICES as u128 {
        Ok(())
    } else {
        // The error counts in 64 bits; the parameters of a grid can multiply to more.
        Err(GraphError::TooManyVertices(u64::try_from(vertices).unwrap_or(u64::MAX)).into())
    }
}

fn check_edges(edges: u128) -> Result<(), GenerateError> {
    if edges <= source::MAX_EDGES as u128 { Ok(()) } else { Err(GenerateError::TooManyEdges(edges)) }
}

fn check_probability(name: &'static str, value: f64) -> Result<(), GenerateError> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(GenerateError::Probability { name, value }) }
}

#[cfg(test)]
mod tests;
