//! The record of a benchmark run: raw values, so that every derived number can be checked.

use std::{borrow::Cow, fmt, time::Duration};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use super::{ClusterRecord, EnergyRecord, Environment, Summary};
use socbfs::{
    bfs::LevelRecord,
    cpu::Simd,
    graph::{Layout, LayoutStats, Order, StepRecord, Vertex},
    measure::ParallelKey,
    measure::{Decider, Measured},
    policy::{Form, Objective},
    runtime::{Bound, Choice, FoundCalibration, Origin, Runtime, SearchDevice, Setting},
    search::Outcome,
};

/// Name of the record format, in every record.
pub const SCHEMA: &str = "socbfs-bench";

/// Version of the record format: raised by every change that matters to a reader of older records. A new field has a default, so that
/// records without it are still read.
pub const SCHEMA_VERSION: u32 = 1;

/// Reads the JSON text of a record. A key that stands twice in an object is refused: readers would differ in which value they take.
///
/// # Errors
/// If the text is not JSON, or has such a key.
pub fn read_record(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).map(|Unambiguous(value)| value)
}

/// A value in which no object has a key twice.
struct Unambiguous(Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unambiguous(value)) = sequence.next_element()? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} stands twice in an object")));
            }
            let Unambiguous(value) = entries.next_value()?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

/// A whole benchmark run, in the form of its JSON. Times are in seconds except where a name says otherwise.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: Cow<'static, str>,
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Machine, system, build, command, time.
    pub environment: Environment,
    /// The graph that was searched.
    pub graph: GraphRecord,
    /// The layout of the graph.
    pub layout: LayoutRecord,
    /// The settings of the search.
    pub search: SearchRecord,
    /// The distribution over ranks, and their traffic (`None`: one process).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterRecord>,
    /// Number of roots that were requested.
    pub roots_asked: usize,
    /// Every root passed the five checks.
    pub valid: bool,
    /// One entry for every root searched, in the order searched.
    pub roots: Vec<RootRecord>,
    /// Statistics (`None` where a root failed validation or a search traversed no edge: then there is no speed).
    pub summary: Option<Summary>,
    /// Energy, or why it was not measured.
    pub energy: EnergyRecord,
    /// Possible disturbances of the figures.
    pub warnings: Vec<String>,
}

/// The graph as its source gives it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GraphRecord {
    /// File name, or the generator with every parameter.
    pub source: String,
    /// True for a generated graph.
    pub generated: bool,
    /// log2 of the vertices, rounded up (Graph500's SCALE; exact for a Kronecker graph).
    pub scale: u32,
    /// Edges per vertex, rounded (Graph500's edgefactor; exact for a Kronecker graph).
    pub edge_factor: u64,
    /// Whether arcs keep their direction.
    pub directed: bool,
    /// Time to read or generate the graph.
    pub acquisition_seconds: f64,
    /// Counts of vertices and edges.
    #[serde(flatten)]
    pub counts: LayoutStats,
}

/// The searched structure and how it was built.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LayoutRecord {
    /// Order that was requested.
    pub order_asked: Order,
    /// Order that was chosen.
    pub order: Order,
    /// Time of the whole construction, from edge list in memory to searchable structure.
    pub construction_seconds: f64,
    /// Bytes of the structure.
    pub bytes: u64,
    /// The steps of construction.
    pub steps: Vec<StepRecord>,
}

impl LayoutRecord {
    /// The record of `layout`, for which `order_asked` was requested.
    pub fn new(layout: &Layout, order_asked: Order) -> Self {
        Self {
            order_asked,
            order: layout.order(),
            construction_seconds: layout.construction_time().as_secs_f64(),
            bytes: layout.bytes(),
            steps: layout.steps().to_vec(),
        }
    }
}

/// The settings of the search.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SearchRecord {
    /// The requested policy, as on the command line.
    pub policy: String,
    /// The policy that planned the levels, and why it was chosen.
    pub chosen: ChosenPolicy,
    /// Threads that searched.
    pub threads: usize,
    /// Vector instructions of the search.
    pub simd: Simd,
    /// CPUs to which the threads were bound, in order (empty: not bound).
    pub cpus: Vec<usize>,
    /// Name of the board profile.
    pub board: String,
    /// OpenCL devices (none: the CPU alone).
    pub devices: Vec<SearchDevice>,
    /// Thresholds between CPU and GPU, where they were measured before the search.
    pub thresholds: Option<Measured>,
    /// Thresholds from which threads share a level (empty over ranks, which use a different rule).
    pub parallel: Vec<ParallelRecord>,
    /// Why the search continued without its devices, if it did.
    pub fallen_back: Option<String>,
    /// The calibration from which the policy and the thresholds of threads may come (`None`: none was used).
    pub calibration: Option<CalibrationRecord>,
    /// The objective of the cost model.
    pub objective: Objective,
}

impl SearchRecord {
    /// The record of searches on the CPU with these settings, without a calibration.
    pub fn new(config: &Runtime, chosen: ChosenPolicy, threads: usize, simd: Simd) -> Self {
        Self {
            policy: config.policy_text(),
            chosen,
            threads,
            simd,
            cpus: config.cpus.value.numbers().to_vec(),
            board: config.profile.name().to_owned(),
            devices: Vec::new(),
            thresholds: None,
            parallel: Vec::new(),
            fallen_back: None,
            calibration: None,
            objective: config.objective.value,
        }
    }
}

/// A threshold for levels that threads share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParallelRecord {
    /// Key of the threshold in the table `cpu` of a board profile.
    pub key: Cow<'static, str>,
    /// Value of the threshold.
    pub value: u64,
    /// Where the value came from.
    pub origin: Origin,
}

impl ParallelRecord {
    /// The thresholds of searches by `runtime` with this calibration.
    pub fn all(runtime: &Runtime, calibration: Option<&FoundCalibration>) -> Vec<Self> {
        let record = |(key, Setting { value, origin }): (ParallelKey, _)| Self { key: key.name().into(), value, origin };
        runtime.parallel_settings(calibration).map(record).to_vec()
    }
}

/// The policy that planned the levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenPolicy {
    /// The policy, as on the command line.
    pub policy: String,
    /// Where the policy came from: a flag, the environment, a board, a calibration, or built in.
    pub origin: Origin,
    /// Why this policy was chosen.
    pub reason: String,
    /// The bounds with which the policy places levels (empty: it has none).
    pub bands: Vec<Bound>,
}

impl From<&Choice> for ChosenPolicy {
    fn from(choice: &Choice) -> Self {
        let policy = choice.policy.to_string();
        Self { policy, origin: choice.origin, reason: choice.reason.clone(), bands: choice.bands.clone() }
    }
}

/// The calibration that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrationRecord {
    /// File of the calibration.
    pub file: String,
    /// Date of the calibration, RFC 3339 in UTC.
    pub date: String,
    /// Commit of socbfs that made it.
    pub commit: String,
    /// Terms of its model.
    pub form: Form,
    /// What plans the levels where `auto` minimises time on the CPU, or on a device that was named.
    pub auto: Decider,
}

impl From<&FoundCalibration> for CalibrationRecord {
    fn from(FoundCalibration { calibration, file }: &FoundCalibration) -> Self {
        Self {
            file: file.display().to_string(),
            date: calibration.made.date.clone(),
            commit: calibration.made.commit.clone(),
            form: calibration.model.form,
            auto: calibration.decider(),
        }
    }
}

/// The search from one root.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RootRecord {
    /// The root, as an original number.
    pub root: Vertex,
    /// Vertices reached, the root included.
    pub reached: u64,
    /// Levels of the tree, the root's included.
    pub levels: u32,
    /// Edges for TEPS: both ends reached; repeats counted, self-loops not.
    pub edges: u64,
    /// Time from the call to the parents in original numbers (`None` where validation failed).
    pub seconds: Option<f64>,
    /// Part of `seconds` that mapped parents back to original numbers (0 where the layout has these numbers, `None` where validation
    /// failed).
    pub mapping_seconds: Option<f64>,
    /// Result of the five checks.
    pub validation: ValidationRecord,
    /// The records of the levels (empty where validation failed).
    pub level_records: Vec<LevelRecord>,
}

impl RootRecord {
    /// The record of a search of a structure in this order whose tree was checked. `violation` is the check that failed; if there is one,
    /// times and levels are left out.
    pub(super) fn new(
        order: Order,
        outcome: &Outcome,
        violation: Option<String>,
        validation_seconds: f64,
        level_records: Vec<LevelRecord>,
    ) -> Self {
        let passed = violation.is_none();
        // Vertices that keep their numbers need no mapping. The time from the last level to the end is then that of ending the search.
        let mapping = if order == Order::Original { Duration::ZERO } else { outcome.mapping };
        Self {
            root: outcome.root,
            reached: outcome.reached,
            levels: outcome.levels,
            edges: outcome.edges,
            seconds: passed.then_some(outcome.elapsed.as_secs_f64()),
            mapping_seconds: passed.then_some(mapping.as_secs_f64()),
            validation: ValidationRecord { passed, violation, seconds: validation_seconds },
            level_records: if passed { level_records } else { Vec::new() },
        }
    }
}

/// The result of the five checks for one root.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ValidationRecord {
    /// Whether all five checks passed.
    pub passed: bool,
    /// The first check that failed, with its vertices.
    pub violation: Option<String>,
    /// Time of the checks.
    pub seconds: f64,
}

/// Graph500's SCALE and edgefactor of a graph that was not generated from them: the smallest SCALE whose 2^SCALE holds all vertices, and
/// edges per vertex rounded to the nearest whole number (at least 1 where there are edges).
pub fn scale_and_edge_factor(vertices: u64, edges: u64) -> (u32, u64) {
    let scale = if vertices <= 1 { 0 } else { u64::BITS - (vertices - 1).leading_zeros() };
    let factor = match (edges + vertices / 2).checked_div(vertices) {
        Some(0) if edges > 0 => 1,
        Some(factor) => factor,
        None => 0,
    };
    (scale, factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_are_written_and_without_repeated_keys() {
        for text in ["null", "[true,-1,18446744073709551615,0.1,\"\\u00e9\"]", "{\"a\":{\"b\":[{}]},\"b\":1e-7}"] {
            assert_eq!(read_record(text).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
        for text in ["{\"a\":1,\n\"a\":1}", "[{\"b\":{\"a\":1,\n\"c\":2,\"a\":null}}]"] {
            let error = read_record(text).unwrap_err();
            assert!(error.to_string().contains("the key \"a\" stands twice") && error.line() == 2, "{error}");
        }
        assert!(read_record("{\"a\":1} x").is_err() && read_record("1e999").is_err() && read_record("").is_err());
    }

    #[test]
    fn scale_and_edge_factor_fit_the_graph() {
        assert_eq!(scale_and_edge_factor(1 << 20, 16 << 20), (20, 16));
        assert_eq!(scale_and_edge_factor((1 << 20) + 1, 16 << 20), (21, 16));
        assert_eq!(scale_and_edge_factor(1_524_453, 1_934_010), (21, 1));
        assert_eq!(scale_and_edge_factor(10, 3), (4, 1));
        assert_eq!(scale_and_edge_factor(10, 0), (4, 0));
        assert_eq!(scale_and_edge_factor(1, 0), (0, 0));
        assert_eq!(scale_and_edge_factor(0, 0), (0, 0));
    }
}
