//! Writes the best points of a sweep into a profile.

use serde::de::IgnoredAny;
use toml_edit::{InlineTable, Value};

use super::{Change, edit, tune::one_line};
use crate::record::{BestPoint, SweepRecord};
use socbfs::board::{Board, DocumentError, Goal};

/// The profile `text` with the points `best` of `record` in its table `[operating_points]`; `file` names it in errors.
///
/// # Errors
/// [`DocumentError`] if the text is not a profile.
pub fn operating_points(text: &str, file: &str, record: &SweepRecord, best: &[BestPoint]) -> Result<String, DocumentError> {
    let day = record.environment.time.split('T').next().unwrap_or_default();
    let graph = record.graph.as_ref().map_or("a graph", |graph| graph.source.as_str());
    let scope = record.scope.as_deref().map_or_else(|| "no sensor".to_owned(), |scope| format!("{scope}: {}", record.sensors.join(" + ")));
    let comment = one_line(&format!("measured {day} by socbfs sweep on {graph}, {scope}"));
    let mut goals: Vec<Goal> = Board::<IgnoredAny>::parse(text, file)?.operating_points.iter().map(|point| point.goal).collect();
    let mut changes = Vec::new();
    for best in best {
        let Some(record) = record.points.get(best.place) else { continue };
        let (point, measured) = (&record.point, record.measured.as_ref());
        let place = goals.iter().position(|&goal| goal == best.goal).unwrap_or_else(|| {
            goals.push(best.goal);
            goals.len() - 1
        });
        let mut set = |key: &str, value: Option<Value>| {
            let path = format!("operating_points[{place}].{key}");
            changes.push(Change { path, value, comment: comment.clone() });
        };
        set("goal", Some(best.goal.name().into()));
        set("cpus", Some(point.cpus.to_string().into()));
        set("device", Some(point.device.clone().into()));
        let clocks: InlineTable =
            point.clocks_khz.iter().filter_map(|(name, &khz)| Some((name.as_str(), Value::from(i64::try_from(khz).ok()?)))).collect();
        set("clocks_khz", (!clocks.is_empty()).then(|| Value::InlineTable(clocks)));
        let round = |value: f64| Value::from((value * 1e3).round() / 1e3);
        set("mteps", measured.map(|measured| round(measured.teps / 1e6)));
        set("watts", measured.and_then(|measured| measured.energy.as_ref()).map(|energy| round(energy.watts.mean)));
    }
    edit(text, file, &changes)
}
