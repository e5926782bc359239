//! Reads the plans of a recorded run, to be replayed.

use serde::Deserialize;
use socbfs::{LevelRecord, Vertex};
use socbfs_boards::runtime::{RecordedGraph, RecordedPlans};

use super::{RecordError, WRITE_ONE, read_run};

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
    let refused = |reason: String| RecordError::new(format!("{name}: {reason}")).cured(WRITE_ONE);
    let (recorded, _): (Recorded, _) = read_run(text, name)?;
    let passed: Vec<_> = recorded.roots.iter().filter(|root| root.validation.passed).collect();
    if passed.is_empty() {
        return Err(refused("it has no search that passed validation: there is nothing to replay".to_owned()));
    }
    let levels = |search: &&RecordedRoot| search.level_records.iter().map(|record| u64::from(record.levels)).sum::<u64>();
    let too_many = |search: &&&RecordedRoot| levels(search) > recorded.graph.vertices;
    if let Some(search) = passed.iter().find(too_many) {
        let reason = format!("the search from root {} has {} levels, more than the graph has vertices", search.root, levels(search));
        return Err(refused(reason));
    }
    if passed.iter().map(levels).sum::<u64>() > MOST_LEVELS {
        return Err(refused(format!("its searches have more than {MOST_LEVELS} levels, the most that can be replayed")));
    }
    let searches: Vec<_> = passed.iter().map(|search| (search.root, &search.level_records[..])).collect();
    Ok(RecordedPlans::new(name, recorded.graph, &searches))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{SCHEMA, SCHEMA_VERSION};
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
        let refused = |text: &str| read_plans(text, "r.json").unwrap_err().to_string();
        for (text, words) in [("{", "line 1"), ("{}", "line 1")] {
            assert!(refused(text).contains(&format!("r.json is not a record of `socbfs bench --json` ({words}: ")), "{}", refused(text));
        }
        let half = format!("{{\"schema\": \"{SCHEMA}\",\n\"schema_version\": {SCHEMA_VERSION},\n\"graph\": 3}}");
        assert!(refused(&half).contains("not a record of `socbfs bench --json` (line 3: "), "{}", refused(&half));
        let newer = text().replace(&format!("\"schema_version\":{SCHEMA_VERSION}"), "\"schema_version\":99");
        assert!(refused(&newer).starts_with("r.json has schema socbfs-bench version 99; "), "{}", refused(&newer));
        assert!(refused(&text().replace("true", "false")).contains("r.json: it has no search that passed validation"));
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
