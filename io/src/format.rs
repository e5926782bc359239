//! Formats and compressions of graph files, and their names.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A graph file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// One edge `u v` per line, 0-based; `#` and `%` comments; further columns ignored (SNAP, KONECT, GAP `.el` and `.wel`).
    EdgeListText,
    /// MatrixMarket coordinate files (NIST, SuiteSparse), 1-based.
    MatrixMarket,
    /// DIMACS `.gr`: `p sp n m` with `a u v w` lines (shortest-path challenge), or `p tw n m` with `u v` lines (PACE); 1-based.
    Dimacs,
    /// METIS and DIMACS-10 `.graph`: line i lists the neighbours of vertex i, 1-based.
    Metis,
    /// The GAP Benchmark Suite's serialised graph.
    GapSg,
    /// Ligra's `AdjacencyGraph` and `WeightedAdjacencyGraph` (the text format of PBBS).
    Ligra,
    /// Rodinia's bfs input: n; `start degree` per vertex; source; m; `target weight` per edge.
    Rodinia,
    /// Parboil's bfs input: laid out as Rodinia's.
    Parboil,
    /// Edges of the Graph500 reference 3.x: 12 bytes each (two low halves of 32 bits, two high parts of 16 bits).
    Graph500Packed,
    /// Edges of the Graph500 reference 2.1: two 64-bit integers each.
    Graph500Int64,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 10] = [
        Self::EdgeListText,
        Self::MatrixMarket,
        Self::Dimacs,
        Self::Metis,
        Self::GapSg,
        Self::Ligra,
        Self::Rodinia,
        Self::Parboil,
        Self::Graph500Packed,
        Self::Graph500Int64,
    ];

    /// Formats that [`write`](super::write()) can produce.
    pub const WRITABLE: [Self; 3] = [Self::EdgeListText, Self::MatrixMarket, Self::GapSg];

    /// What is known of the format: its name, a description, the endings of file names that stand for it, and its other names.
    fn known(self) -> (&'static str, &'static str, &'static [&'static str], &'static [&'static str]) {
        let edge_list = "text, one edge `u v` per line (SNAP, KONECT, GAP .el)";
        match self {
            Self::EdgeListText => ("el", edge_list, &["el", "wel", "snap"], &["wel", "snap", "edge-list", "edgelist"]),
            Self::MatrixMarket => ("mtx", "MatrixMarket coordinate (SuiteSparse)", &["mtx"], &["matrix-market", "matrixmarket"]),
            Self::Dimacs => ("dimacs", "DIMACS .gr: `p sp` with arcs, or `p tw` with edges (PACE)", &["gr"], &["gr", "pace"]),
            Self::Metis => ("metis", "METIS and DIMACS-10 .graph", &["graph", "metis"], &["graph"]),
            Self::GapSg => ("sg", "GAP's serialised graph", &["sg"], &["gap"]),
            Self::Ligra => ("ligra", "Ligra's AdjacencyGraph text", &["adj"], &["adj", "pbbs"]),
            Self::Rodinia => ("rodinia", "Rodinia's bfs input", &[], &[]),
            Self::Parboil => ("parboil", "Parboil's bfs input", &[], &[]),
            Self::Graph500Packed => ("graph500-packed", "Graph500 3.x edges, 12 bytes each", &[], &[]),
            Self::Graph500Int64 => ("graph500-int64", "Graph500 2.1 edges, two 64-bit integers each", &[], &[]),
        }
    }

    /// The name that `--format` takes.
    pub fn name(self) -> &'static str {
        self.known().0
    }

    /// A line that describes the format, for `--help`.
    pub fn summary(self) -> &'static str {
        self.known().1
    }

    /// All names, for messages: `el, mtx, ...`.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The format (if any) and the compression that the name of a file stands for. The suffix of a compression follows that of the format.
    pub fn of_path(path: &Path) -> (Option<Self>, Compression) {
        let compression = Compression::of_path(path);
        let inner = if compression == Compression::None { path } else { Path::new(path.file_stem().unwrap_or_default()) };
        if inner.file_name() == Some(OsStr::new("graph_input.dat")) {
            return (Some(Self::Parboil), compression); // all of Parboil's data sets have this name
        }
        let extension = extension(inner);
        let stands_for = |format: &Self| extension.as_deref().is_some_and(|extension| format.known().2.contains(&extension));
        (Self::ALL.into_iter().find(stands_for), compression)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl serde::Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The given name is not that of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format '{name}'; the formats are {}", Format::names())]
pub struct UnknownFormat {
    /// The name as given.
    pub name: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let lower = name.to_ascii_lowercase();
        let is_called = |format: &Self| format.name() == lower || format.known().3.contains(&&*lower);
        Self::ALL.into_iter().find(is_called).ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Compression {
    /// Not compressed.
    None,
    /// gzip, one member or several.
    Gzip,
    /// xz, one block or several.
    Xz,
    /// Zstandard, one frame or several.
    Zstd,
}

impl Compression {
    /// The compression that the suffix of a file name stands for.
    pub fn of_path(path: &Path) -> Self {
        match extension(path).as_deref() {
            Some("gz") => Self::Gzip,
            Some("xz") => Self::Xz,
            Some("zst" | "zstd") => Self::Zstd,
            _ => Self::None,
        }
    }

    /// The compression that the first bytes of a file announce.
    pub fn of_content(head: &[u8]) -> Self {
        match head {
            // Deflate (8) is the only method of gzip, and the three highest flags are reserved.
            [0x1f, 0x8b, 8, flags, ..] if flags & 0xe0 == 0 => Self::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    /// The command of this compression; with `-d` it decompresses.
    pub(super) fn command(self) -> &'static str {
        match self {
            Self::None => "cat",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        })
    }
}

/// The extension in lower case.
pub(super) fn extension(path: &Path) -> Option<String> {
    path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_parsed_from_its_name() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
            assert_eq!(format.name().to_uppercase().parse(), Ok(format));
            assert!(Format::names().contains(format.name()));
        }
        let error = "xml".parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("'xml'") && error.contains("graph500-packed"), "{error}");
    }

    #[test]
    fn format_and_compression_are_recognised_from_the_path() {
        let of = |path: &str| Format::of_path(Path::new(path));
        assert_eq!(of("a/b.el"), (Some(Format::EdgeListText), Compression::None));
        assert_eq!(of("USA-road-d.NE.gr.gz"), (Some(Format::Dimacs), Compression::Gzip));
        assert_eq!(of("x.MTX.XZ"), (Some(Format::MatrixMarket), Compression::Xz));
        assert_eq!(of("m.graph.zst"), (Some(Format::Metis), Compression::Zstd));
        assert_eq!(of("bfs/1M/graph_input.dat"), (Some(Format::Parboil), Compression::None));
        assert_eq!(of("graph4096.txt"), (None, Compression::None));
        assert_eq!(of("gz"), (None, Compression::None));
        assert_eq!(of(".gz"), (None, Compression::None));
    }
}
