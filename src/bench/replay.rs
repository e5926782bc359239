//! Reads the plans of a recorded run, to be replayed.

use serde::Deserialize;
use serde_json::Value;

use super::{SCHEMA, SCHEMA_VERSION, read_record};
use crate::{
    bfs::LevelRecord,
    graph::{Layout, Vertex},
    policy::Replay,
};

/// Why a record can't be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file is not a record of `socbfs bench`.
    #[error("{name} is not a record of `socbfs bench --json` (line {line}: {reason})")]
    NotARecord {
        /// File name.
        name: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong with the file.
        reason: String,
    },
    /// The record has another version.
    #[error("{name} has schema {schema} version {version}; this build of socbfs replays {SCHEMA} version {SCHEMA_VERSION}")]
    Version {
        /// File name.
        name: String,
        /// Schema found.
        schema: String,
        /// Version found.
        version: u32,
    },
    /// No search of the record passed validation. The plans of failed searches are not recorded.
    #[error("{0} has no search that passed validation: there is nothing to replay")]
    Empty(String),
    /// The record is of another graph.
    #[error("{name} is a record of {source_name}, with {recorded} {field} where this graph has {here}")]
    OtherGraph {
        /// File name.
        name: String,
        /// The graph that was searched, as the record names it.
        source_name: String,
        /// The count that differs.
        field: &'static str,
        /// Value in the record.
        recorded: u64,
        /// Value in the graph.
        here: u64,
    },
    /// The record has no search from this root.
    #[error("{name} has no search from root {root}; it has {}", roots(.known))]
    UnknownRoot {
        /// File name.
        name: String,
        /// The root.
        root: Vertex,
        /// The roots of the record.
        known: Vec<Vertex>,
    },
}

/// Lists the first few roots.
fn roots(known: &[Vertex]) -> String {
    const SHOWN: usize = 8;
    let mut text = known.iter().take(SHOWN).map(Vertex::to_string).collect::<Vec<_>>().join(", ");
    if known.len() > SHOWN {
        text += &format!(" and {} more", known.len() - SHOWN);
    }
    text
}

/// Maximum number of levels of all searches in a record that is replayed: 64 searches of a path of a million vertices. Each level is a plan
/// in memory, and a record may claim any number.
const MOST_LEVELS: u64 = 1 << 26;

/// The plans of a run by root, and the recorded counts of its graph.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedPlans {
    name: String,
    graph: RecordedGraph,
    roots: Vec<Vertex>,
    replay: Replay,
}

/// The fields that identify the graph. Counts of the searched structure are not among them, since the layout may differ.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct RecordedGraph {
    source: String,
    directed: bool,
    vertices: u64,
    edges: u64,
    unique_edges: u64,
}

#[derive(Debug, Deserialize)]
struct Recorded {
    graph: RecordedGraph,
    roots: Vec<RecordedRoot>,
}

#[derive(Debug, Deserialize)]
struct RecordedRoot {
    root: Vertex,
    validation: RecordedValidation,
    level_records: Vec<LevelRecord>,
}

#[derive(Debug, Deserialize)]
struct RecordedValidation {
    passed: bool,
}

impl RecordedPlans {
    /// Reads the JSON text of `socbfs bench --json`; errors name it by `name`.
    ///
    /// # Errors
    /// [`ReplayError`] where the text is not a record of the supported version, or has nothing to replay.
    pub fn parse(text: &str, name: &str) -> Result<Self, ReplayError> {
        let no_record = |line: usize, reason: String| ReplayError::NotARecord { name: name.to_owned(), line: line.max(1), reason };
        let value = read_record(text).map_err(|error| no_record(error.line(), error.to_string()))?;
        // The version is checked first, since a record of another version may lack any other field.
        let schema = value.get("schema").and_then(Value::as_str);
        let version = value.get("schema_version").and_then(Value::as_u64).and_then(|version| u32::try_from(version).ok());
        match (schema, version) {
            (Some(SCHEMA), Some(SCHEMA_VERSION)) => {}
            (Some(schema), Some(version)) => {
                return Err(ReplayError::Version { name: name.to_owned(), schema: schema.to_owned(), version });
            }
            _ => return Err(no_record(1, "no schema and schema_version".to_owned())),
        }
        // Parsed from the text again, since only these errors have line numbers.
        let recorded: Recorded = serde_json::from_str(text).map_err(|error| no_record(error.line(), error.to_string()))?;
        let searches: Vec<_> = recorded.roots.iter().filter(|root| root.validation.passed).collect();
        if searches.is_empty() {
            return Err(ReplayError::Empty(name.to_owned()));
        }
        let levels = |search: &&RecordedRoot| search.level_records.iter().map(|record| u64::from(record.levels)).sum::<u64>();
        let too_many = |search: &&&RecordedRoot| levels(search) > recorded.graph.vertices;
        if let Some(search) = searches.iter().find(too_many) {
            let reason = format!("the search from root {} has {} levels, more than the graph has vertices", search.root, levels(search));
            return Err(no_record(1, reason));
        }
        if searches.iter().map(levels).sum::<u64>() > MOST_LEVELS {
            return Err(no_record(1, format!("its searches have more than {MOST_LEVELS} levels, the most that can be replayed")));
        }
        let replay = Replay::of_roots(searches.iter().map(|search| (search.root, &search.level_records[..]))).running_ahead();
        let roots = searches.iter().map(|search| search.root).collect();
        Ok(Self { name: name.to_owned(), graph: recorded.graph, roots, replay })
    }

    /// The name that errors use for the record.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The plans to replay.
    pub fn replay(&self) -> &Replay {
        &self.replay
    }

    /// Checks that `layout` is of the graph that was searched.
    ///
    /// # Errors
    /// [`ReplayError::OtherGraph`] with the first count that differs.
    pub fn check_graph(&self, layout: &Layout) -> Result<(), ReplayError> {
        let (graph, stats) = (&self.graph, layout.stats());
        let arcs = |directed: bool, edges: u64| if directed { edges } else { 2 * edges };
        for (field, recorded, here) in [
            ("vertices", graph.vertices, stats.vertices),
            ("edges", graph.edges, stats.edges),
            ("distinct arcs", arcs(graph.directed, graph.unique_edges), arcs(layout.directed(), stats.unique_edges)),
        ] {
            if recorded != here {
                return Err(ReplayError::OtherGraph { name: self.name.clone(), source_name: graph.source.clone(), field, recorded, here });
            }
        }
        Ok(())
    }

    /// Checks that a search from `root` was recorded.
    ///
    /// # Errors
    /// [`ReplayError::UnknownRoot`].
    pub fn check_root(&self, root: Vertex) -> Result<(), ReplayError> {
        if self.replay.has_root(root) {
            return Ok(());
        }
        Err(ReplayError::UnknownRoot { name: self.name.clone(), root, known: self.roots.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bfs::Strategy,
        graph::{BuildOptions, EdgeList, Listing},
    };

    /// A record of the path 0 - 1 - 2. The search from 0 has three levels, the last one bottom-up; the search from 2 failed.
    fn text() -> String {
        let level = |strategy: Strategy, levels| LevelRecord { plan: strategy.plan(), levels, ..LevelRecord::default() };
        let records = [level(Strategy::Tc, 2), level(Strategy::Bc, 1)];
        serde_json::json!({
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "graph": { "source": "path.el", "directed": false, "vertices": 3, "edges": 2, "unique_edges": 2 },
            "roots": [
                { "root": 0, "validation": { "passed": true }, "level_records": records },
                { "root": 2, "validation": { "passed": false }, "level_records": [] },
            ],
        })
        .to_string()
    }

    fn layout(edges: &[[Vertex; 2]], vertices: usize, directed: bool) -> Layout {
        let list = EdgeList::new(vertices, edges.to_vec(), Listing::Once).unwrap();
        Layout::build(&list, &BuildOptions { directed, ..BuildOptions::default() }).unwrap()
    }

    #[test]
    fn plans_are_read_for_each_root() {
        let plans = RecordedPlans::parse(&text(), "r.json").unwrap();
        assert_eq!(plans.replay().plans(), [Strategy::Tc, Strategy::Tc, Strategy::Bc].map(Strategy::plan));
        assert_eq!(plans.check_root(0), Ok(()));
        let error = plans.check_root(2).unwrap_err();
        assert_eq!(error.to_string(), "r.json has no search from root 2; it has 0");
    }

    #[test]
    fn records_of_another_graph_are_refused() {
        let plans = RecordedPlans::parse(&text(), "r.json").unwrap();
        assert_eq!(plans.check_graph(&layout(&[[0, 1], [2, 1]], 3, false)), Ok(()));
        for (edges, vertices, directed, field) in [
            (&[[0, 1], [1, 2]][..], 4, false, "3 vertices where this graph has 4"),
            (&[[0, 1]], 3, false, "2 edges where this graph has 1"),
            (&[[0, 1], [1, 2]], 3, true, "4 distinct arcs where this graph has 2"),
            (&[[0, 1], [0, 1]], 3, false, "4 distinct arcs where this graph has 2"),
        ] {
            let error = plans.check_graph(&layout(edges, vertices, directed)).unwrap_err().to_string();
            assert!(error.starts_with("r.json is a record of path.el, with ") && error.ends_with(field), "{error}");
        }
    }

    #[test]
    fn files_that_are_not_records_are_refused() {
        let refused = |text: &str| RecordedPlans::parse(text, "r.json").unwrap_err();
        assert!(matches!(refused("{"), ReplayError::NotARecord { line: 1, .. }));
        assert!(matches!(refused("{}"), ReplayError::NotARecord { .. }));
        let half = format!("{{\"schema\": \"{SCHEMA}\",\n\"schema_version\": {SCHEMA_VERSION},\n\"graph\": 3}}");
        assert!(matches!(refused(&half), ReplayError::NotARecord { line: 3, .. }), "{}", refused(&half));
        let newer = text().replace(&format!("\"schema_version\":{SCHEMA_VERSION}"), "\"schema_version\":99");
        assert_eq!(refused(&newer), ReplayError::Version { name: "r.json".into(), schema: SCHEMA.into(), version: 99 });
        assert_eq!(refused(&text().replace("true", "false")), ReplayError::Empty("r.json".into()));
    }

    #[test]
    fn impossible_numbers_of_levels_are_refused_before_allocation() {
        let claiming = |vertices: &str, levels: &str| text().replace("\"vertices\":3", vertices).replacen("\"levels\":2", levels, 1);
        for (vertices, levels, words) in [
            ("\"vertices\":3", "\"levels\":4294967295", "from root 0 has 4294967296 levels, more than the graph has vertices"),
            ("\"vertices\":18446744073709551615", "\"levels\":4294967295", "more than 67108864 levels"),
        ] {
            let error = RecordedPlans::parse(&claiming(vertices, levels), "r.json").unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn long_lists_of_roots_are_shortened() {
        assert_eq!(roots(&[1, 2]), "1, 2");
        assert_eq!(roots(&(0..10).collect::<Vec<_>>()), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}
