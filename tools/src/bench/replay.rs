//! Reads the plans of a recorded run, to be replayed.

use serde::Deserialize;
use serde_json::Value;

use super::{SCHEMA, SCHEMA_VERSION, read_record};
use socbfs::{bfs::LevelRecord, graph::Vertex};
use socbfs_boards::runtime::{RecordedGraph, RecordedPlans};

/// Why a record can't be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
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
}

/// Maximum number of levels of all searches in a record that is replayed: 64 searches of a path of a million vertices. Each level is a plan
/// in memory, and a record may claim any number.
const MOST_LEVELS: u64 = 1 << 26;

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

/// Reads the JSON text of `socbfs bench --json`; errors name it by `name`.
///
/// # Errors
/// [`RecordError`] where the text is not a record of the supported version, or has nothing to replay.
pub fn read_plans(text: &str, name: &str) -> Result<RecordedPlans, RecordError> {
    let no_record = |line: usize, reason: String| RecordError::NotARecord { name: name.to_owned(), line: line.max(1), reason };
    let value = read_record(text).map_err(|error| no_record(error.line(), error.to_string()))?;
    // The version is checked first, since a record of another version may lack any other field.
    let schema = value.get("schema").and_then(Value::as_str);
    let version = value.get("schema_version").and_then(Value::as_u64).and_then(|version| u32::try_from(version).ok());
    match (schema, version) {
        (Some(SCHEMA), Some(SCHEMA_VERSION)) => {}
        (Some(schema), Some(version)) => {
            return Err(RecordError::Version { name: name.to_owned(), schema: schema.to_owned(), version });
        }
        _ => return Err(no_record(1, "no schema and schema_version".to_owned())),
    }
    // Parsed from the text again, since only these errors have line numbers.
    let recorded: Recorded = serde_json::from_str(text).map_err(|error| no_record(error.line(), error.to_string()))?;
    let passed: Vec<_> = recorded.roots.iter().filter(|root| root.validation.passed).collect();
    if passed.is_empty() {
        return Err(RecordError::Empty(name.to_owned()));
    }
    let levels = |search: &&RecordedRoot| search.level_records.iter().map(|record| u64::from(record.levels)).sum::<u64>();
    let too_many = |search: &&&RecordedRoot| levels(search) > recorded.graph.vertices;
    if let Some(search) = passed.iter().find(too_many) {
        let reason = format!("the search from root {} has {} levels, more than the graph has vertices", search.root, levels(search));
        return Err(no_record(1, reason));
    }
    if passed.iter().map(levels).sum::<u64>() > MOST_LEVELS {
        return Err(no_record(1, format!("its searches have more than {MOST_LEVELS} levels, the most that can be replayed")));
    }
    let searches: Vec<_> = passed.iter().map(|search| (search.root, &search.level_records[..])).collect();
    Ok(RecordedPlans::new(name, recorded.graph, &searches))
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::bfs::Strategy;

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

    #[test]
    fn plans_are_read_for_each_root() {
        let plans = read_plans(&text(), "r.json").unwrap();
        assert_eq!(plans.replay().plans(), [Strategy::Tc, Strategy::Tc, Strategy::Bc].map(Strategy::plan));
        assert!(plans.check_root(0).is_ok() && plans.check_root(2).is_err());
    }

    #[test]
    fn files_that_are_not_records_are_refused() {
        let refused = |text: &str| read_plans(text, "r.json").unwrap_err();
        assert!(matches!(refused("{"), RecordError::NotARecord { line: 1, .. }));
        assert!(matches!(refused("{}"), RecordError::NotARecord { .. }));
        let half = format!("{{\"schema\": \"{SCHEMA}\",\n\"schema_version\": {SCHEMA_VERSION},\n\"graph\": 3}}");
        assert!(matches!(refused(&half), RecordError::NotARecord { line: 3, .. }), "{}", refused(&half));
        let newer = text().replace(&format!("\"schema_version\":{SCHEMA_VERSION}"), "\"schema_version\":99");
        assert_eq!(refused(&newer), RecordError::Version { name: "r.json".into(), schema: SCHEMA.into(), version: 99 });
        assert_eq!(refused(&text().replace("true", "false")), RecordError::Empty("r.json".into()));
    }

    #[test]
    fn impossible_numbers_of_levels_are_refused_before_allocation() {
        let claiming = |vertices: &str, levels: &str| text().replace("\"vertices\":3", vertices).replacen("\"levels\":2", levels, 1);
        for (vertices, levels, words) in [
            ("\"vertices\":3", "\"levels\":4294967295", "from root 0 has 4294967296 levels, more than the graph has vertices"),
            ("\"vertices\":18446744073709551615", "\"levels\":4294967295", "more than 67108864 levels"),
        ] {
            let error = read_plans(&claiming(vertices, levels), "r.json").unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
