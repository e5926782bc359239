//! Searches measured for training, in a file of JSON lines. The first line says where they were measured. Each search is appended as soon
//! as it is measured, so an interruption loses at most the search that was running.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, Serializer};

use crate::{
    calibrate::{JsonLines, complete_lines, read_line},
    record::{LevelTable, LevelTimes},
};
use socbfs::{
    bfs::{Direction, LevelStats},
    files,
    graph::{BuildOptions, Order, Vertex},
};
use socbfs_boards::board::CpuList;

/// The schema of the file that this version reads and writes.
const SCHEMA: u32 = 1;

/// The first bytes of the file.
const HEAD: &[u8] = b"{\"socbfs_training\"";

/// The settings that must agree for the times of searches to be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Processor, as the system names it.
    pub cpu: String,
    /// Threads of a search.
    pub threads: usize,
    /// CPUs that the threads were bound to (empty, as in older files: not bound).
    #[serde(default, skip_serializing_if = "is_not_bound")]
    pub cpus: CpuList,
    /// Vector instructions.
    pub simd: String,
    /// The OpenCL device whose levels were measured, with the kernels and its compute units (`None`: levels of the CPU).
    pub device: Option<String>,
    /// How the searched structures were built (older files do not say it: as by default).
    #[serde(default, skip_serializing_if = "Structure::is_default")]
    pub structure: Structure,
}

fn is_not_bound(cpus: &CpuList) -> bool {
    cpus.numbers().is_empty()
}

/// How searched structures are built: the same root has other levels in other ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Structure {
    /// Whether arcs keep their direction.
    pub directed: bool,
    /// Order that was requested.
    pub order: Order,
    /// Whether vertices with a single edge are searched like any other.
    pub keep_leaves: bool,
}

impl Structure {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&BuildOptions> for Structure {
    fn from(options: &BuildOptions) -> Self {
        let BuildOptions { directed, order, keep_leaves, .. } = *options;
        Self { directed, order, keep_leaves }
    }
}

/// The first line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    socbfs_training: u32,
    #[serde(flatten)]
    machine: Machine,
}

/// One level: what a policy may know of it, and its time in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct LevelSample {
    /// Vertices in the frontier.
    pub frontier_vertices: u64,
    /// Arcs that leave it, by the engine's estimate.
    pub frontier_edges: u64,
    /// Vertices not yet visited.
    pub unvisited_vertices: u64,
    /// Arcs of these vertices, by the same estimate.
    pub unvisited_edges: u64,
    /// Sampled: neighbours an unvisited vertex would look at.
    pub sampled_probes: Option<f32>,
    /// Sampled: share of all hubs that are in the frontier.
    pub sampled_hubs: Option<f32>,
    /// First quartile of the level's times top-down, in nanoseconds.
    pub top_down_ns: u64,
    /// First quartile of the level's times bottom-up, in nanoseconds.
    pub bottom_up_ns: u64,
}

impl Serialize for LevelSample {
    /// As a list, to save space. The derived `Deserialize` reads lists too.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { frontier_vertices, frontier_edges, unvisited_vertices, unvisited_edges, .. } = self;
        let times = (self.sampled_probes, self.sampled_hubs, self.top_down_ns, self.bottom_up_ns);
        (frontier_vertices, frontier_edges, unvisited_vertices, unvisited_edges, times.0, times.1, times.2, times.3).serialize(serializer)
    }
}

impl LevelSample {
    /// SURF's label: the faster direction.
    pub fn faster(&self) -> Direction {
        if self.bottom_up_ns < self.top_down_ns { Direction::BottomUp } else { Direction::TopDown }
    }

    /// Nanoseconds between the two directions.
    pub fn stake_ns(&self) -> u64 {
        self.bottom_up_ns.abs_diff(self.top_down_ns)
    }
}

/// One search: every level in both directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchSample {
    /// The graph, by its name on the command line.
    pub graph: String,
    /// Root, as an original number.
    pub root: Vertex,
    /// Vertices of the searched structure.
    pub vertices: u64,
    /// Its arcs.
    pub arcs: u64,
    /// Share of its vertices that have more arcs than the mean.
    pub hub_share: f32,
    /// Level 0, and the later ones that are [timed](LevelTable::is_timed).
    pub levels: Vec<LevelSample>,
}

impl SearchSample {
    /// The search from a root of `graph`, whose levels take top-down and bottom-up the nanoseconds that `directions` returns (`None`: a
    /// level could not be measured in one of them).
    pub fn new(graph: &str, table: &LevelTable, directions: impl Fn(&LevelTimes) -> Option<[f64; 2]>) -> Option<Self> {
        let level = |times: &LevelTimes| {
            let [top_down, bottom_up] = directions(times)?;
            Some(LevelSample {
                frontier_vertices: times.stats.frontier_vertices,
                frontier_edges: times.stats.frontier_edges,
                unvisited_vertices: times.stats.unvisited_vertices,
                unvisited_edges: times.stats.unvisited_edges,
                sampled_probes: times.stats.sampled_probes,
                sampled_hubs: times.stats.sampled_hubs,
                top_down_ns: top_down as u64,
                bottom_up_ns: bottom_up as u64,
            })
        };
        let levels = table.levels.iter().filter(|one| one.stats.level == 0 || table.is_timed(one)).map(level).collect::<Option<_>>()?;
        let LevelStats { vertices, arcs, hub_share, .. } = table.levels.first()?.stats;
        Some(Self { graph: graph.to_owned(), root: table.root, vertices, arcs, hub_share, levels })
    }

    /// What a policy sees before `level` (which must exist), with all samples, if the level before was run in the direction `previous`.
    pub fn stats(&self, level: usize, previous: Option<Direction>) -> LevelStats {
        let sample = self.levels[level];
        LevelStats {
            level: level as u32,
            vertices: self.vertices,
            arcs: self.arcs,
            frontier_vertices: sample.frontier_vertices,
            frontier_edges: sample.frontier_edges,
            unvisited_vertices: sample.unvisited_vertices,
            unvisited_edges: sample.unvisited_edges,
            previous_frontier_vertices: if level == 0 { 0 } else { self.levels[level - 1].frontier_vertices },
            previous_direction: previous,
            hub_share: self.hub_share,
            sampled_probes: sample.sampled_probes,
            sampled_hubs: sample.sampled_hubs,
            ..LevelStats::default()
        }
    }
}

/// Why records can't be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// The file can't be read or written.
    #[error("{path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// A line is not of this format.
    #[error("{path}, line {line}: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The file was measured elsewhere.
    #[error(
        "{path} was measured on another machine or with other settings ({found}; here: {here}): times of both can't be mixed; name another file with --records"
    )]
    OtherMachine {
        /// The file.
        path: PathBuf,
        /// Its machine.
        found: String,
        /// This machine.
        here: String,
    },
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bound = if is_not_bound(&self.cpus) { String::new() } else { format!(" on CPUs {}", self.cpus) };
        let device = self.device.as_deref().unwrap_or("levels of the CPU");
        write!(f, "{}, {} threads{bound}, {}, {device}", self.cpu, self.threads, self.simd)?;
        let Structure { directed, order, keep_leaves } = self.structure;
        let order = match order {
            Order::Auto => "",
            Order::Original => ", original order",
            Order::Degree => ", order by degree",
            Order::Bfs => ", breadth-first order",
        };
        write!(f, "{}{order}{}", if directed { ", directed" } else { "" }, if keep_leaves { ", leaves kept" } else { "" })
    }
}

/// The content of a file of records, which may be open for appending.
#[derive(Debug)]
pub struct RecordsFile {
    /// Where searches are appended (`None`: the file was opened for reading only).
    lines: Option<JsonLines>,
    machine: Machine,
    searches: Vec<SearchSample>,
}

impl RecordsFile {
    /// Opens the file, or creates it, to append searches of `machine`, and reads the searches in it. An incomplete last line, which an
    /// interruption may leave, is cut off.
    ///
    /// # Errors
    /// [`RecordsError`] if the file can't be read or written, holds something else, or was measured on another machine.
    pub fn open(path: &Path, machine: Machine) -> Result<Self, RecordsError> {
        let failed = |source| RecordsError::Io { path: path.to_owned(), source };
        let (mut lines, text) = JsonLines::open(path).map_err(failed)?;
        let (found, searches, complete) = parse(path, &text)?;
        if let Some(found) = found.as_ref().filter(|found| **found != machine) {
            let (found, here) = (found.to_string(), machine.to_string());
            return Err(RecordsError::OtherMachine { path: path.to_owned(), found, here });
        }
        lines.keep(complete as u64).map_err(failed)?;
        if found.is_none() {
            lines.add(&Header { socbfs_training: SCHEMA, machine: machine.clone() }).map_err(failed)?;
        }
        Ok(Self { lines: Some(lines), machine, searches })
    }

    /// Reads a file that was measured on any machine.
    ///
    /// # Errors
    /// [`RecordsError`] if the file can't be read or holds something else.
    pub fn read(path: &Path) -> Result<Self, RecordsError> {
        let text =
            files::read(path, files::Kind::Stream, files::RECORD).map_err(|source| RecordsError::Io { path: path.to_owned(), source })?;
        let (machine, searches, _) = parse(path, &text)?;
        let empty = || RecordsError::Line { path: path.to_owned(), line: 1, reason: "the file is empty".to_owned() };
        Ok(Self { lines: None, machine: machine.ok_or_else(empty)?, searches })
    }

    /// Where the searches were measured.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The searches, in the order of the file.
    pub fn searches(&self) -> &[SearchSample] {
        &self.searches
    }

    /// Number of searches of `graph`.
    pub fn count(&self, graph: &str) -> usize {
        self.searches.iter().filter(|search| search.graph == graph).count()
    }

    /// Number of levels of the searches of `graph`.
    pub fn levels(&self, graph: &str) -> usize {
        self.searches.iter().filter(|search| search.graph == graph).map(|search| search.levels.len()).sum()
    }

    /// Adds a search and appends it to the file at once.
    ///
    /// # Errors
    /// [`RecordsError::Io`].
    pub fn push(&mut self, search: SearchSample) -> Result<(), RecordsError> {
        if let Some(lines) = &mut self.lines {
            lines.add(&search).map_err(|source| RecordsError::Io { path: lines.path().to_owned(), source })?;
        }
        self.searches.push(search);
        Ok(())
    }
}

/// The machine (`None`: the file is empty), the searches, and the number of bytes in complete lines.
fn parse(path: &Path, text: &[u8]) -> Result<(Option<Machine>, Vec<SearchSample>, usize), RecordsError> {
    let (mut machine, mut searches, mut complete) = (None, Vec::new(), 0);
    for (index, line) in complete_lines(text).enumerate() {
        let wrong = |reason: String| RecordsError::Line { path: path.to_owned(), line: index + 1, reason };
        complete += line.len();
        if index == 0 {
            let header: Header = read_line(line, true).map_err(|error| wrong(format!("this is not a file of `socbfs train`: {error}")))?;
            if header.socbfs_training != SCHEMA {
                return Err(wrong(format!("schema {}, but this version knows only {SCHEMA}", header.socbfs_training)));
            }
            machine = Some(header.machine);
        } else {
            searches.push(read_line(line, true).map_err(|error| wrong(error.to_string()))?);
        }
    }
    // A header that was interrupted has no line end, and begins as a header does.
    let begins = HEAD.starts_with(&text[..text.len().min(HEAD.len())]);
    if machine.is_none() && !begins {
        return Err(RecordsError::Line { path: path.to_owned(), line: 1, reason: "this is not a file of `socbfs train`".to_owned() });
    }
    Ok((machine, searches, complete))
}

/// The names of the graphs of these searches, sorted, each once.
pub fn names<'s>(searches: &[&'s SearchSample]) -> Vec<&'s str> {
    let mut names: Vec<&str> = searches.iter().map(|search| search.graph.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn machine(threads: usize) -> Machine {
        let (cpus, structure) = (CpuList::default(), Structure::default());
        Machine { cpu: "Z80".into(), threads, cpus, simd: "scalar".into(), device: None, structure }
    }

    fn search(root: Vertex) -> SearchSample {
        let level = LevelSample {
            frontier_vertices: 1,
            frontier_edges: 2,
            unvisited_vertices: 3,
            unvisited_edges: 4,
            sampled_probes: Some(1.5),
            sampled_hubs: None,
            top_down_ns: 5,
            bottom_up_ns: 6,
        };
        let levels = vec![level, LevelSample { frontier_vertices: 3, ..level }];
        SearchSample { graph: "grid:2x2".into(), root, vertices: 4, arcs: 8, hub_share: 0.25, levels }
    }

    #[test]
    fn records_are_read_back_and_an_incomplete_line_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let mut records = RecordsFile::open(&path, machine(2)).unwrap();
        records.push(search(7)).unwrap();
        drop(records);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole[..], b"{\"graph\":\"gr"].concat()).unwrap();
        let mut records = RecordsFile::open(&path, machine(2)).unwrap();
        assert_eq!(records.searches(), [search(7)]);
        records.push(search(8)).unwrap();
        let read = RecordsFile::read(&path).unwrap();
        assert_eq!((read.searches(), read.machine(), read.count("grid:2x2")), (&[search(7), search(8)][..], &machine(2), 2));
    }

    #[test]
    fn other_files_and_other_machines_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        drop(RecordsFile::open(&path, machine(2)).unwrap());
        let error = RecordsFile::open(&path, machine(3)).unwrap_err().to_string();
        assert!(error.contains("2 threads") && error.contains("3 threads"), "{error}");
        let header = fs::read_to_string(&path).unwrap();
        RecordsFile::open(&path, machine(2)).unwrap().push(search(7)).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        for (text, reason) in [
            ("hello\n".to_owned(), "line 1"),
            ("no line".to_owned(), "line 1"),
            (header.replace(":1,", ":2,"), "checksum"),
            (header.rsplit_once(",\"xxh3\"").unwrap().0.replace(":1,", ":2,") + "}\n", "schema 2"),
            (whole.replace("\"root\":7", "\"root\":9"), "line 2: the line is damaged"),
            (format!("{header}{{\"graph\":3}}\n"), "line 2"),
        ] {
            fs::write(&path, &text).unwrap();
            let error = RecordsFile::open(&path, machine(2)).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "left as it was");
        }
        // A header that was cut by an interruption.
        for text in ["{", "{\"socbfs_training\":1,\"cpu\":\"Z"] {
            fs::write(&path, text).unwrap();
            drop(RecordsFile::open(&path, machine(2)).unwrap());
            assert_eq!(fs::read_to_string(&path).unwrap(), header);
        }
    }

    #[test]
    fn searches_on_other_cpus_are_not_mixed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        // Four big cores, and four little ones.
        let on = |cpus: &str| Machine { cpus: cpus.parse().unwrap(), ..machine(4) };
        drop(RecordsFile::open(&path, on("4-7")).unwrap());
        assert_eq!(RecordsFile::open(&path, on("4-7")).unwrap().machine(), &on("4-7"));
        for other in [on("0-3"), machine(4)] {
            let error = RecordsFile::open(&path, other).unwrap_err().to_string();
            assert!(error.contains("(Z80, 4 threads on CPUs 4-7, scalar, levels of the CPU; here: Z80, 4 threads"), "{error}");
        }
    }

    #[test]
    fn other_structures_are_refused_and_older_files_have_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let with = |structure| Machine { structure, ..machine(2) };
        // A file of a version that did not write the structure.
        let old = "{\"socbfs_training\":1,\"cpu\":\"Z80\",\"threads\":2,\"simd\":\"scalar\",\"device\":null}\n";
        fs::write(&path, old).unwrap();
        drop(RecordsFile::open(&path, machine(2)).unwrap());
        let options = BuildOptions { directed: true, order: Order::Original, keep_leaves: true, ..BuildOptions::default() };
        let error = RecordsFile::open(&path, with((&options).into())).unwrap_err().to_string();
        assert!(error.contains("here: Z80, 2 threads, scalar, levels of the CPU, directed, original order, leaves kept"), "{error}");
        fs::remove_file(&path).unwrap();
        drop(RecordsFile::open(&path, machine(2)).unwrap());
        let new = fs::read_to_string(&path).unwrap();
        assert_eq!(new.rsplit_once(",\"xxh3\"").unwrap().0, old.trim_end_matches("}\n"));
        for options in [
            BuildOptions { directed: true, ..BuildOptions::default() },
            BuildOptions { order: Order::Degree, ..BuildOptions::default() },
            BuildOptions { keep_leaves: true, ..BuildOptions::default() },
        ] {
            fs::remove_file(&path).unwrap();
            let machine = with((&options).into());
            drop(RecordsFile::open(&path, machine.clone()).unwrap());
            drop(RecordsFile::open(&path, machine.clone()).unwrap());
            assert_eq!(RecordsFile::read(&path).unwrap().machine(), &machine);
            assert!(matches!(RecordsFile::open(&path, with(Structure::default())), Err(RecordsError::OtherMachine { .. })), "{options:?}");
        }
    }

    #[test]
    fn a_level_is_labelled_by_the_faster_direction() {
        let level = search(0).levels[0];
        assert_eq!((level.faster(), level.stake_ns()), (Direction::TopDown, 1));
        assert_eq!(LevelSample { bottom_up_ns: 4, ..level }.faster(), Direction::BottomUp);
        assert_eq!(search(0).stats(1, None).previous_frontier_vertices, 1);
    }
}
