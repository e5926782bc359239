//! Checks a recorded run for what no run can have: such a record was edited, or put together from several.

use serde_json::Value;

/// Checks the times and the number of roots of `run`, a record of a run as JSON. The error is what is impossible.
pub(super) fn possible(run: &Value) -> Result<(), String> {
    // A missing or wrong field is found by those that read it.
    let Some(roots) = run["roots"].as_array() else { return Ok(()) };
    let summary = &run["summary"];
    for root in roots {
        let number = &root["root"];
        let Some(seconds) = root["seconds"].as_f64() else {
            if root["seconds"].is_null() && !summary.is_null() {
                return Err(format!("root {number} has no time, but the run has a summary"));
            }
            continue;
        };
        if !(seconds.is_finite() && seconds > 0.0) {
            return Err(format!("root {number} has a time of {seconds} s, and a search takes more than 0 s"));
        }
        if let Some(mapping) = root["mapping_seconds"].as_f64().filter(|mapping| !(0.0..=seconds).contains(mapping)) {
            return Err(format!("root {number} has {mapping} s of mapping in a search of {seconds} s"));
        }
    }
    let count = roots.len() as u64;
    match summary["roots"].as_u64() {
        Some(summed) if summed != count => Err(format!("its summary is of {summed} roots, and its list has {count}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::record;

    #[test]
    fn only_records_that_a_run_can_have_are_possible() {
        let check = |edit: &dyn Fn(&mut Value)| {
            let mut run = serde_json::to_value(record(&[0.001, 0.002])).unwrap();
            edit(&mut run);
            possible(&run)
        };
        assert_eq!(check(&|_| ()), Ok(()));
        // A run that failed validation has no summary, and a root without a time.
        let failed = |run: &mut Value| (run["summary"], run["roots"][1]["seconds"]) = (Value::Null, Value::Null);
        assert_eq!(check(&failed), Ok(()));
        let refused = |edit: &dyn Fn(&mut Value), reason: &str| assert_eq!(check(edit), Err(reason.to_owned()));
        refused(&|run| run["roots"][1]["seconds"] = (-1).into(), "root 1 has a time of -1 s, and a search takes more than 0 s");
        refused(&|run| run["roots"][0]["seconds"] = 0.into(), "root 0 has a time of 0 s, and a search takes more than 0 s");
        refused(&|run| run["roots"][0]["seconds"] = Value::Null, "root 0 has no time, but the run has a summary");
        refused(&|run| run["roots"][0]["mapping_seconds"] = 1.into(), "root 0 has 1 s of mapping in a search of 0.001 s");
        refused(&|run| run["roots"] = Value::Array(Vec::new()), "its summary is of 2 roots, and its list has 0");
    }
}
