//! The measurements so far, in a file of JSON lines: a header, and one line for each graph, appended as soon as the graph is measured. An
//! interruption, a kill or a power cut loses at most one graph.

use socbfs_boards::measure::{GroupTimes, Identity};
use std::{io, path::Path};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{JsonLines, complete_lines, read_line};
use crate::record::LevelTable;
use socbfs::memory::SharingMode;

/// Name of the format, in every header.
const FORMAT: &str = "socbfs-calibration-partial-1";

/// The first line of a file of measurements: the settings that must be the same for them to be continued.
pub trait Header: Serialize + DeserializeOwned {
    /// What the key `format` of every version of this header begins with.
    const KIND: &'static str;

    /// Why measurements under the header `found` can't be continued under this one (`None`: they can be).
    fn difference(&self, found: &Self) -> Option<&'static str>;
}

/// The header of a calibration's measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartialHeader {
    format: String,
    /// Version and commit of socbfs: another one may be faster.
    pub build: String,
    /// The machine, device and settings that are measured.
    pub identity: Identity,
    /// Seed of the training set.
    pub seed: u64,
    /// Whether less care is taken, to save time.
    pub quick: bool,
    /// Times of the work-group sizes, if they were compared to choose that of the identity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_groups: Vec<GroupTimes>,
}

impl Header for PartialHeader {
    const KIND: &'static str = "socbfs-calibration-partial-";

    fn difference(&self, found: &Self) -> Option<&'static str> {
        let found = Self { work_groups: self.work_groups.clone(), ..found.clone() };
        if found == *self {
            None
        } else if found.build != self.build {
            Some(OTHER_BUILD)
        } else if found.identity != self.identity {
            Some("they were made with other settings, or on another device or machine")
        } else {
            Some("they belong to another training set")
        }
    }
}

/// The difference of two headers whose builds differ.
pub const OTHER_BUILD: &str = "another build of socbfs made them";

impl PartialHeader {
    /// A header for new measurements, before anything was chosen for them.
    pub fn new(build: String, identity: Identity, seed: u64, quick: bool) -> Self {
        Self { format: FORMAT.to_owned(), build, identity, seed, quick, work_groups: Vec::new() }
    }

    /// Takes over what was chosen by times for the measurements in `path`, if nothing else differs from them: the sharing mode, if
    /// `permits` accepts it; the work-group size, if none is given here. (A new comparison might choose others. The measurements would
    /// then be lost, or not fit together.) Returns whether it did.
    pub fn take_choices_of(&mut self, path: &Path, permits: impl Fn(SharingMode) -> bool) -> bool {
        let text = std::fs::read(path).unwrap_or_default();
        let before = complete_lines(&text).next().and_then(|first| read_line::<Self>(first, false).ok());
        let Some(before) = before else { return false };
        let mut alike = Self { work_groups: before.work_groups.clone(), ..self.clone() };
        match (&mut alike.identity.device, &before.identity.device) {
            (Some(here), Some(before)) => {
                if permits(before.memory_way) {
                    here.memory_way = before.memory_way;
                }
                here.work_group = here.work_group.or(before.work_group);
            }
            (None, None) => {}
            _ => return false,
        }
        let is_alike = alike == before;
        if is_alike {
            *self = alike;
        }
        is_alike
    }
}

/// The measurements of one graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredGraph {
    /// Its index in the training set.
    pub place: usize,
    /// The generator with every parameter.
    pub graph: String,
    /// Number of vertices, including those without edges.
    pub vertices: u64,
    /// Number of edges, including repeats and self-loops.
    pub edges: u64,
    /// Seconds to generate, build and search it.
    pub seconds: f64,
    /// The cost of every level, for each root.
    pub tables: Vec<LevelTable>,
}

/// A file of measurements, open for appending.
#[derive(Debug)]
pub struct Partial(JsonLines);

/// Why measurements can't be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartialError {
    /// The file can't be read or written.
    #[error("measurements can't be kept in {file}")]
    Io {
        /// The file.
        file: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file holds something else, which must not be overwritten.
    #[error("measurements can't be kept in {file}: it holds something else; remove it, or name another output file")]
    NotOurs {
        /// The file.
        file: String,
    },
}

/// The graphs measured so far, the number of valid bytes, and why measurements can't be continued.
type Readable<T> = (Vec<T>, u64, Option<&'static str>);

impl Partial {
    /// Opens `path` and returns the graphs measured so far under the same header. Measurements under another header are dropped, and the
    /// returned text says why.
    ///
    /// # Errors
    /// [`PartialError`] if the file can't be read or written, or is not such a file.
    pub fn open<H: Header, T: DeserializeOwned>(path: &Path, header: &H) -> Result<(Self, Vec<T>, Option<&'static str>), PartialError> {
        let file = || path.display().to_string();
        let failed = |source| PartialError::Io { file: file(), source };
        let (mut lines, text) = JsonLines::open(path).map_err(failed)?;
        let (graphs, good, reason) = find(&text, header).ok_or_else(|| PartialError::NotOurs { file: file() })?;
        lines.keep(good).map_err(failed)?;
        if good == 0 {
            lines.add(header).map_err(failed)?;
        }
        Ok((Self(lines), graphs, reason))
    }

    /// Appends a graph.
    ///
    /// # Errors
    /// [`PartialError`].
    pub fn add(&mut self, graph: &impl Serialize) -> Result<(), PartialError> {
        self.0.add(graph).map_err(|source| PartialError::Io { file: self.0.path().display().to_string(), source })
    }

    /// Removes the file, after the result has been written beside it.
    pub fn remove(self) {
        // The result may still be in memory alone, and a power cut must not take both. If this fails, nothing more can be done.
        let _ = self.0.sync_file_system();
        // If it can't be removed, the next call finds it complete and ends at once.
        if let Err(error) = std::fs::remove_file(self.0.path()) {
            log::warn!("{} can't be removed: {error}", self.0.path().display());
        }
    }
}

/// `None` if the file holds something other than measurements.
fn find<H: Header, T: DeserializeOwned>(text: &[u8], header: &H) -> Option<Readable<T>> {
    let mut lines = complete_lines(text);
    // A header that was interrupted has no line end. It must begin as a header does.
    let Some(first) = lines.next() else {
        return b"{\"format\"".starts_with(&text[..text.len().min(9)]).then(|| (Vec::new(), 0, None));
    };
    /// The key that every version of the format has.
    #[derive(Deserialize)]
    struct AnyFormat {
        format: String,
    }
    read_line::<AnyFormat>(first, true).ok().filter(|any| any.format.starts_with(H::KIND))?;
    let difference = read_line::<H>(first, false).map_or(Some("they have another format"), |found| header.difference(&found));
    if difference.is_some() {
        return Some((Vec::new(), 0, difference));
    }
    let mut good = first.len() as u64;
    let mut graphs = Vec::new();
    for line in lines {
        let Ok(graph) = read_line(line, false) else { break };
        good += line.len() as u64;
        graphs.push(graph);
    }
    Some((graphs, good, None))
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, io::Write};

    use super::*;
    use socbfs::Simd;
    use socbfs_boards::measure::OpenClIdentity;

    type Opened = (Partial, Vec<MeasuredGraph>, Option<&'static str>);

    fn open(path: &Path, header: &PartialHeader) -> Result<Opened, PartialError> {
        Partial::open(path, header)
    }

    fn identity() -> Identity {
        Identity { board: "b".into(), cpu_model: None, kernel: None, threads: 2, cpus: Vec::new(), simd: Simd::Scalar, device: None }
    }

    fn header(seed: u64) -> PartialHeader {
        PartialHeader::new("1 abc".into(), identity(), seed, true)
    }

    #[test]
    fn an_interrupted_calibration_keeps_what_it_chose() {
        let with = |work_group, memory_way| {
            let device = crate::calibrate::example().identity.device.map(|device| OpenClIdentity { work_group, memory_way, ..device });
            PartialHeader::new("1 abc".into(), Identity { device, ..identity() }, 1, true)
        };
        let (before, now) = (SharingMode::SvmFine, SharingMode::UseHostPtr);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml.partial");
        let mut chosen = with(Some(64), before);
        chosen.work_groups = vec![GroupTimes { items: 64, relative: 1.0 }];
        let (mut partial, ..) = open(&path, &chosen).unwrap();
        partial.add(&graph(0)).unwrap();
        drop(partial);
        // This time another sharing mode was the fastest. A size of work-groups may be given now.
        for group in [None, Some(64)] {
            let mut again = with(group, now);
            assert!(again.take_choices_of(&path, |way| way == before));
            assert_eq!(again, chosen);
            let (_, graphs, reason) = open(&path, &again).unwrap();
            assert_eq!((graphs.len(), reason), (1, None));
        }
        // What is given, or ruled out by the board, is not replaced.
        for mut other in [with(Some(128), before), with(None, now), PartialHeader { seed: 2, ..with(None, before) }] {
            let asked = other.clone();
            assert!(!other.take_choices_of(&path, |_| false) && other == asked);
        }
        // Absent files, and those of another device, change nothing.
        assert!(!with(None, before).take_choices_of(&folder.path().join("absent"), |_| true));
        assert!(!header(1).take_choices_of(&path, |_| true));
        // Without a device.
        let path = folder.path().join("cpu.toml.partial");
        let chosen = header(1);
        drop(open(&path, &chosen).unwrap());
        let mut again = header(1);
        assert!(again.take_choices_of(&path, |_| false) && again == chosen);
    }

    fn graph(place: usize) -> MeasuredGraph {
        MeasuredGraph { place, graph: format!("graph {place}"), vertices: 8, edges: 9, seconds: 0.25, tables: Vec::new() }
    }

    #[test]
    fn measured_graphs_are_read_again_after_an_interruption() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml.partial");
        let (mut partial, graphs, reason) = open(&path, &header(1)).unwrap();
        assert_eq!((graphs.len(), reason), (0, None));
        partial.add(&graph(0)).unwrap();
        partial.add(&graph(3)).unwrap();
        drop(partial);
        // An interruption in the middle of a line.
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"place\":4,\"gra").unwrap();
        let (mut partial, graphs, reason) = open(&path, &header(1)).unwrap();
        assert_eq!((&graphs[..], reason), (&[graph(0), graph(3)][..], None));
        partial.add(&graph(4)).unwrap();
        drop(partial);
        let (partial, graphs, _) = open(&path, &header(1)).unwrap();
        assert_eq!(graphs, [graph(0), graph(3), graph(4)]);
        partial.remove();
        assert!(!path.exists());
    }

    #[test]
    fn no_damaged_measurement_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let (mut partial, ..) = open(&path, &header(1)).unwrap();
        let measured: Vec<MeasuredGraph> = (0..3).map(graph).collect();
        measured.iter().for_each(|graph| partial.add(graph).unwrap());
        drop(partial);
        let whole = std::fs::read(&path).unwrap();
        let ends: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] == b'\n').collect();
        for at in 0..whole.len() {
            // Another digit, letter or sign in place of one; the file cut off there.
            let line = ends.iter().position(|&end| at <= end).unwrap();
            let flipped = [&whole[..at], &[whole[at] ^ 1], &whole[at + 1..]].concat();
            for (damaged, kept) in [(flipped, line.saturating_sub(1)), (whole[..at].to_vec(), line.saturating_sub(1))] {
                std::fs::write(&path, damaged).unwrap();
                // Where the header is damaged, nothing is continued, and another program's file is not overwritten.
                if let Ok((_, graphs, _)) = open(&path, &header(1)) {
                    assert_eq!(graphs, measured[..kept], "byte {at}");
                }
            }
        }
        // Lines without a checksum: an older version, or another program.
        let stripped = |line: &str| line.rsplit_once(",\"xxh3\"").unwrap().0.to_owned() + "}\n";
        let text = String::from_utf8(whole).unwrap();
        std::fs::write(&path, text.lines().map(stripped).collect::<String>()).unwrap();
        assert!(open(&path, &header(1)).unwrap().2.unwrap().contains("format"));
    }

    #[test]
    fn measurements_with_another_header_start_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        let other_build = PartialHeader { build: "2".into(), ..header(1) };
        let other_threads = PartialHeader { identity: Identity { threads: 3, ..header(1).identity }, ..header(1) };
        for (other, word) in [(header(2), "training set"), (other_build, "build"), (other_threads, "settings")] {
            let (mut partial, ..) = open(&path, &header(1)).unwrap();
            partial.add(&graph(0)).unwrap();
            drop(partial);
            let (again, graphs, reason) = open(&path, &other).unwrap();
            drop(again);
            assert!(graphs.is_empty() && reason.unwrap().contains(word), "{reason:?}");
            let (partial, graphs, reason) = open(&path, &other).unwrap();
            assert_eq!((graphs.len(), reason), (0, None), "the old ones are gone");
            partial.remove();
        }
        std::fs::write(&path, "{\"format\":\"socbfs-calibration-partial-0\",\"speed\":1}\n").unwrap();
        assert!(open(&path, &header(1)).unwrap().2.unwrap().contains("format"));
    }

    #[test]
    fn files_of_other_programs_are_left_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        for text in ["something else\n", "something else", "{\"format\":\"mine\"}\n", "{}\n"] {
            std::fs::write(&path, text).unwrap();
            let error = open(&path, &header(1)).unwrap_err();
            assert!(error.to_string().contains("something else; remove it"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        // A symbolic link in place of the file.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("p", &link).unwrap();
        assert!(matches!(open(&link, &header(1)), Err(PartialError::Io { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}\n");
        // A header that was cut by an interruption is accepted.
        std::fs::write(&path, "{\"format\":\"socbfs-cal").unwrap();
        assert_eq!(open(&path, &header(1)).unwrap().1.len(), 0);
    }
}
