//! Measures the bands of a board on this machine, for its profile.

use super::rewritten;
use crate::{
    calibrate::{ComparisonError, best_work_group, measure_work_groups},
    record::Environment,
};
use socbfs::{Layout, OpenClError, SharingMode};
use socbfs_boards::{
    board::{self, Board, Handover, OpenClDevice},
    runtime::{OnStep, Origin, Prepared, Profile, Runtime, RuntimeError, Setting, Step, during},
};
use socbfs_policy::{Band, NEVER, Policy};

/// Why a profile can't be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// Sizes of work-groups can't be compared.
    #[error("searches with different settings can't be compared")]
    Comparison(#[from] ComparisonError),
    /// There is no device, a search fails, or the profile can't be changed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// Measures on `layout` the amounts of work from which the GPU, and both devices together, are faster, the share of the GPU, and the cost
/// of a handover. Returns the text of the profile of `runtime` with these values; its comments call the layout `graph`.
///
/// # Errors
/// [`TuneError`].
pub fn tune(runtime: &Runtime, layout: &Layout, graph: &str, progress: OnStep<'_>) -> Result<String, TuneError> {
    let mut measuring = runtime.clone();
    measuring.set_policy(Setting::flag(Policy::Adaptive(Box::default())));
    // The old bands must not affect the measurement.
    measuring.profile.board.adaptive = board::Adaptive::default();
    let machine = measuring.machine()?;
    let group = match &machine.device {
        Some((device, _)) if measuring.group_asked(device.info()).is_none() => {
            during(Step::WorkGroups, progress, || measure_work_groups(&machine.options)).map(|measured| best_work_group(&measured))?
        }
        _ => None,
    };
    drop(machine);
    if group.is_some() {
        measuring.work_group = Setting::flag(group);
    }
    let prepared = measuring.search_for_all(layout, progress)?;
    let (Some(device), Some(measured)) = (prepared.devices.first(), &prepared.costs.measured) else {
        return Err(RuntimeError::NoDevice(OpenClError::NoPlatform).into());
    };
    let used = &device.used;
    let day = Environment::read(std::path::Path::new("/")).time;
    let day = day.split('T').next().unwrap_or_default();
    let comment =
        format!("measured {day} by socbfs board tune on {graph}, {} with driver {}", one_line(&used.name), one_line(&used.driver));
    let given = format!("given to socbfs board tune {day}");
    let Profile { text, place: file, .. } = &runtime.profile;
    let mut board = Board::<toml::Table>::parse(text, file).map_err(RuntimeError::Profile)?;
    // An older upper bound may exclude all levels from the measured bands. What is above `NEVER` is never reached either.
    let bound = |from: Option<u64>| from.map(|work| work.min(NEVER));
    let band = |band: &Band| Band { gpu_from: bound(band.gpu_from), split_from: bound(band.split_from), up_to: None, ..*band };
    board.adaptive = board::Adaptive {
        top_down: band(&measured.bands.top_down),
        bottom_up: band(&measured.bands.bottom_up),
        handover: handover(&prepared, device.memory_way),
    };
    let mut changes = vec![("adaptive".to_owned(), comment.clone())];
    let devices = &mut board.opencl.devices;
    let described = devices.iter().position(|device| device.describes(&used.name, &used.platform));
    let place = described.unwrap_or(devices.len());
    // What was given was not compared with anything else.
    let mut set = |key: &str, is_given: bool| {
        changes.push((format!("opencl.devices[{place}].{key}"), if is_given { &given } else { &comment }.clone()));
    };
    if described.is_none() {
        // A name that is no pattern is refused with the profile.
        devices.push(OpenClDevice { name: used.name.parse().unwrap_or_default(), ..OpenClDevice::default() });
        set("name", false);
    }
    // Of the device, settings that the profile lacks, since the next start would measure them again, and those that were given, since the
    // bands were measured with them.
    let described = &mut devices[place];
    let way_given = runtime.memory_way.value.is_some();
    if way_given || described.memory_way.is_none() {
        described.memory_way = Some(device.memory_way);
        set("memory_way", way_given);
    }
    // Sizes were compared only if neither board nor flag gives one.
    let group_given = runtime.work_group.value;
    if let Some(items) = group_given.or(group).and_then(|items| u32::try_from(items).ok()) {
        described.work_group = Some(items);
        set("work_group", group_given.is_some());
    }
    if let Some((permille, Origin::Measured)) = prepared.costs.bottom_up {
        described.bottom_up_permille = Some(permille);
        set("bottom_up_permille", false);
    }
    Ok(rewritten(board, text, file, &changes).map_err(RuntimeError::Profile)?)
}

/// Microseconds of a handover, each the mean of both directions.
fn handover(prepared: &Prepared<'_>, way: SharingMode) -> Handover {
    let mean_us = |vertices: u64| {
        let (there, back) = prepared.devices.first()?.handover.of_state(way, vertices)?;
        Some((there.fixed_ns + back.fixed_ns) / 2e3)
    };
    let (Some(fixed), Some(million)) = (mean_us(0), mean_us(1_000_000)) else { return Handover::default() };
    let round = |us: f64| (us * 1e3).round() / 1e3;
    Handover { fixed_us: Some(round(fixed)), mega_vertex_us: Some(round((million - fixed).max(0.0))) }
}

/// `text` without line breaks and other control characters, which would end a comment or disturb a terminal.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
