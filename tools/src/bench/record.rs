//! The record of a benchmark run: raw values, so that every derived number can be checked.

use crate::record::{CalibrationRecord, ChosenPolicy, LayoutRecord, RootRecord, SearchRecord, ValidationRecord};
use std::{fmt, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use socbfs::{Layout, LevelRecord, Order, Outcome, Simd};
use socbfs_boards::runtime::{Choice, FoundCalibration, Runtime};

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

/// Why a record can't be used, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RecordError {
    message: String,
    cure: Option<&'static str>,
}

impl RecordError {
    /// An error without a cure.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), cure: None }
    }

    /// The same error with what to do about it.
    pub(crate) fn cured(self, cure: &'static str) -> Self {
        Self { cure: Some(cure), ..self }
    }

    /// What to do about it.
    pub fn cure(&self) -> Option<&'static str> {
        self.cure
    }
}

/// What to do about a file that is no record of a run.
pub(crate) const WRITE_ONE: &str = "write a record with `socbfs bench GRAPH --json FILE`";

/// Reads the record of a run, or a part of it, from the JSON text of `socbfs bench --json`; errors call it `name`. Also returns the JSON.
///
/// # Errors
/// [`RecordError`] where the text is not a record of a run of the version that is supported.
pub(crate) fn read_run<T: DeserializeOwned>(text: &str, name: &str) -> Result<(T, Value), RecordError> {
    let no_record = |error: serde_json::Error| {
        let line = error.line().max(1);
        RecordError::new(format!("{name} is not a record of `socbfs bench --json` (line {line}: {error})")).cured(WRITE_ONE)
    };
    let value = read_record(text).map_err(no_record)?;
    // The version is checked first, since a record of another version may lack any other field.
    let version = value.get("schema_version").and_then(Value::as_u64);
    match (value.get("schema").and_then(Value::as_str), version) {
        (Some(SCHEMA), Some(version)) if version != u64::from(SCHEMA_VERSION) => {
            let known = format!("this build of socbfs reads {SCHEMA} version {SCHEMA_VERSION}");
            Err(RecordError::new(format!("{name} has schema {SCHEMA} version {version}; {known}"))
                .cured("record the run again with this build"))
        }
        // Parsed from the text again, since only these errors have line numbers.
        (Some(SCHEMA) | None, _) => Ok((serde_json::from_str(text).map_err(no_record)?, value)),
        (Some(other), _) => {
            let kind = match other {
                "socbfs-analysis" => "`socbfs analyze` or `socbfs reproduce`".to_owned(),
                "socbfs-board" => "`socbfs bench --report board`".to_owned(),
                "socbfs-policies" => "`socbfs policies`".to_owned(),
                other => format!("another kind ({other})"),
            };
            let message = format!("{name} is a record of {kind}; only records of `socbfs bench --json` can be compared or replayed");
            Err(RecordError::new(message).cured("write a record with `socbfs bench --json FILE`; `socbfs report` shows the other ones"))
        }
    }
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
            fallen_back: None,
            calibration: None,
            objective: config.objective.value,
        }
    }
}

impl From<&Choice> for ChosenPolicy {
    fn from(choice: &Choice) -> Self {
        let policy = choice.policy.to_string();
        Self { policy, origin: choice.origin, reason: choice.reason.clone(), bands: choice.bands.clone() }
    }
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

impl RootRecord {
    /// The record of a search of a structure in this order whose tree was checked. `violation` is the check that failed; if there is one,
    /// times and levels are left out.
    pub(crate) fn new(
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
            sources: outcome.sources,
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
