//! Writes the best points of a sweep into a profile.

use super::{rewritten, tune::one_line};
use crate::record::{BestPoint, PointRecord, SweepRecord};
use socbfs_boards::board::{Board, DocumentError, OperatingPoint};

/// The profile `text` with the points `best` of `record` in its tables `[[operating_points]]`; `file` names it in errors.
///
/// # Errors
/// [`DocumentError`] if the text is not a profile.
pub fn operating_points(text: &str, file: &str, record: &SweepRecord, best: &[BestPoint]) -> Result<String, DocumentError> {
    let day = record.environment.time.split('T').next().unwrap_or_default();
    let graph = record.graph.as_ref().map_or("a graph", |graph| graph.source.as_str());
    let scope = record.scope.as_deref().map_or_else(|| "no sensor".to_owned(), |scope| format!("{scope}: {}", record.sensors.join(" + ")));
    let comment = one_line(&format!("measured {day} by socbfs sweep on {graph}, {scope}"));
    let mut board = Board::<toml::Table>::parse(text, file)?;
    let points = &mut board.operating_points;
    let mut changes = Vec::new();
    for best in best {
        let Some(PointRecord { point, measured, .. }) = record.points.get(best.place) else { continue };
        let round = |value: f64| (value * 1e3).round() / 1e3;
        let energy = measured.as_ref().and_then(|measured| measured.energy.as_ref());
        let best = OperatingPoint {
            goal: best.goal,
            cpus: point.cpus.clone(),
            device: Some(point.device.clone()),
            clocks_khz: point.clocks_khz.clone(),
            mteps: measured.as_ref().map(|measured| round(measured.teps / 1e6)),
            watts: energy.map(|energy| round(energy.watts.mean)),
        };
        let place = points.iter().position(|point| point.goal == best.goal).unwrap_or(points.len());
        points.splice(place..points.len().min(place + 1), [best]);
        changes.push((format!("operating_points[{place}]"), comment.clone()));
    }
    rewritten(board, text, file, &changes)
}
