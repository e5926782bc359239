//! What has been measured so far, graph by graph, so that an interruption loses one graph at most: JSON lines, a header and one for each
//! graph, appended as soon as it is measured.

use std::{io, path::Path};

use serde::{Deserialize, Serialize};

use super::{Identity, JsonLines, LevelTable, complete_lines};

/// Name of the format, in every header.
const FORMAT: &str = "socbfs-calibration-partial-1";

/// What has to be the same for measurements to be gone on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialHeader {
    format: String,
    /// Version and commit of socbfs: another one may be faster.
    pub build: String,
    /// Where it is measured.
    pub identity: Identity,
    /// Seed of the training set.
    pub seed: u64,
    /// Whether with less care.
    pub quick: bool,
}

impl PartialHeader {
    /// The header of measurements of this kind.
    pub fn new(build: String, identity: Identity, seed: u64, quick: bool) -> Self {
        Self { format: FORMAT.to_owned(), build, identity, seed, quick }
    }
}

/// One graph, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredGraph {
    /// Its place in the training set.
    pub place: usize,
    /// The generator with every parameter.
    pub graph: String,
    /// Vertices, those without edges included.
    pub vertices: u64,
    /// Edges, repeats and self-loops included.
    pub edges: u64,
    /// Seconds to generate it, build it and search it.
    pub seconds: f64,
    /// What every level costs, for every root.
    pub tables: Vec<LevelTable>,
}

/// A file of measurements, open to be appended to.
#[derive(Debug)]
pub struct Partial(JsonLines);

/// Why measurements can't be kept.
#[derive(Debug, thiserror::Error)]
#[error("measurements can't be kept in {file}")]
pub struct PartialError {
    /// The file.
    pub file: String,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// What a file of measurements holds that can be gone on with.
enum Found {
    Nothing,
    /// Of another kind, and why.
    Other(&'static str),
    /// So many bytes are good.
    Graphs(Vec<MeasuredGraph>, u64),
}

impl Partial {
    /// Opens `path`: with the graphs that are there, if they were measured under the same header, else anew. The text says why what is
    /// there is of no use.
    ///
    /// # Errors
    /// [`PartialError`] where the file can't be read or written.
    pub fn open(path: &Path, header: &PartialHeader) -> Result<(Self, Vec<MeasuredGraph>, Option<&'static str>), PartialError> {
        let failed = |source| PartialError { file: path.display().to_string(), source };
        let (graphs, good, reason) = match read(path, header).map_err(failed)? {
            Found::Graphs(graphs, good) => (graphs, good, None),
            Found::Other(reason) => (Vec::new(), 0, Some(reason)),
            Found::Nothing => (Vec::new(), 0, None),
        };
        let mut lines = JsonLines::open(path, good).map_err(failed)?;
        if good == 0 {
            lines.add(header).map_err(failed)?;
        }
        Ok((Self(lines), graphs, reason))
    }

    /// Keeps a graph.
    ///
    /// # Errors
    /// [`PartialError`].
    pub fn add(&mut self, graph: &MeasuredGraph) -> Result<(), PartialError> {
        self.0.add(graph).map_err(|source| PartialError { file: self.0.path().display().to_string(), source })
    }

    /// Removes the file: the calibration has been written.
    pub fn remove(self) {
        // Where it can't be removed, the next calibration finds it complete and is done at once.
        if let Err(error) = std::fs::remove_file(self.0.path()) {
            log::warn!("{} can't be removed: {error}", self.0.path().display());
        }
    }
}

fn read(path: &Path, header: &PartialHeader) -> io::Result<Found> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let mut lines = complete_lines(&text);
    let Some(first) = lines.next() else { return Ok(Found::Nothing) };
    let Ok(found) = serde_json::from_slice::<PartialHeader>(first) else { return Ok(Found::Other("they are of another format")) };
    if found != *header {
        return Ok(Found::Other(if found.build != header.build {
            "another build of socbfs made them"
        } else if found.identity != header.identity {
            "they are of other settings, another device, or another machine"
        } else {
            "they are of another training set"
        }));
    }
    let mut good = first.len() as u64;
    let mut graphs: Vec<MeasuredGraph> = Vec::new();
    for line in lines {
        let Ok(graph) = serde_json::from_slice::<MeasuredGraph>(line) else { break };
        good += line.len() as u64;
        graphs.push(graph);
    }
    Ok(Found::Graphs(graphs, good))
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, io::Write};

    use super::*;
    use crate::engine::Simd;

    fn header(seed: u64) -> PartialHeader {
        let identity =
            Identity { board: "b".into(), cpu_model: None, kernel: None, threads: 2, cpus: Vec::new(), simd: Simd::Scalar, device: None };
        PartialHeader::new("1 abc".into(), identity, seed, true)
    }

    fn graph(place: usize) -> MeasuredGraph {
        MeasuredGraph { place, graph: format!("graph {place}"), vertices: 8, edges: 9, seconds: 0.25, tables: Vec::new() }
    }

    #[test]
    fn what_was_measured_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml.partial");
        let (mut partial, graphs, reason) = Partial::open(&path, &header(1)).unwrap();
        assert_eq!((graphs.len(), reason), (0, None));
        partial.add(&graph(0)).unwrap();
        partial.add(&graph(3)).unwrap();
        drop(partial);
        // An interruption in the middle of a line.
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"place\":4,\"gra").unwrap();
        let (mut partial, graphs, reason) = Partial::open(&path, &header(1)).unwrap();
        assert_eq!((&graphs[..], reason), (&[graph(0), graph(3)][..], None));
        partial.add(&graph(4)).unwrap();
        drop(partial);
        let (partial, graphs, _) = Partial::open(&path, &header(1)).unwrap();
        assert_eq!(graphs, [graph(0), graph(3), graph(4)]);
        partial.remove();
        assert!(!path.exists());
    }

    #[test]
    fn measurements_of_another_kind_are_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let other_build = PartialHeader { build: "2".into(), ..header(1) };
        let other_threads = PartialHeader { identity: Identity { threads: 3, ..header(1).identity }, ..header(1) };
        for (other, word) in [(header(2), "training set"), (other_build, "build"), (other_threads, "settings")] {
            let (mut partial, ..) = Partial::open(&path, &header(1)).unwrap();
            partial.add(&graph(0)).unwrap();
            let (_, graphs, reason) = Partial::open(&path, &other).unwrap();
            assert!(graphs.is_empty() && reason.unwrap().contains(word), "{reason:?}");
            let (partial, graphs, reason) = Partial::open(&path, &other).unwrap();
            assert_eq!((graphs.len(), reason), (0, None), "the old ones are gone");
            partial.remove();
        }
        std::fs::write(&path, "something else\n").unwrap();
        assert!(Partial::open(&path, &header(1)).unwrap().2.unwrap().contains("format"));
    }
}
