//! Measures the bands of a board on this machine, and writes them into its profile.

use super::{Change, edit};
use crate::{
    calibrate::{ComparisonError, best_work_group, measure_work_groups},
    record::Environment,
};
use socbfs::{
    board,
    gpu::DeviceUse,
    graph::Layout,
    memory::SharingMode,
    opencl::OpenClError,
    policy::{Band, NEVER, Policy},
    runtime::{Bound, OnStep, Origin, Prepared, Profile, Runtime, RuntimeError, Setting, Step, during},
};

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

/// A profile with measured bands.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// The text of the profile.
    pub text: String,
    /// The bands that the profile now gives.
    pub bands: Vec<Bound>,
}

/// Measures on `layout` the amounts of work from which the GPU, and both devices together, are faster, the share of the GPU, and the cost
/// of a handover. Returns the profile of `runtime` with these values; its comments call the layout `graph`.
///
/// # Errors
/// [`TuneError`].
pub fn tune(runtime: &Runtime, layout: &Layout, graph: &str, progress: OnStep<'_>) -> Result<Tuned, TuneError> {
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
    let (Some(device), Some(measured)) = (prepared.devices.first(), &prepared.measured) else {
        return Err(RuntimeError::NoDevice(OpenClError::NoPlatform).into());
    };
    let used = &device.used;
    let day = Environment::read(std::path::Path::new("/")).time;
    let day = day.split('T').next().unwrap_or_default();
    let comment =
        format!("measured {day} by socbfs board tune on {graph}, {} with driver {}", one_line(&used.name), one_line(&used.driver));
    let mut changes = Vec::new();
    let mut set = |path: String, value: Option<toml_edit::Value>| changes.push(Change { path, value, comment: comment.clone() });
    for (band, table) in [(&measured.bands.top_down, "top_down"), (&measured.bands.bottom_up, "bottom_up")] {
        let Band { gpu_from, split_from, gpu_permille, .. } = *band;
        let work = |work: Option<u64>| {
            // What is above `NEVER` is never reached either.
            let work = i64::try_from(work?).ok().filter(|&work| work < NEVER as i64);
            Some(work.map_or_else(|| "never".into(), toml_edit::Value::from))
        };
        set(format!("adaptive.{table}.gpu_from"), work(gpu_from));
        set(format!("adaptive.{table}.split_from"), work(split_from));
        set(format!("adaptive.{table}.gpu_permille"), gpu_permille.map(|share| i64::from(share).into()));
        // An older upper bound may exclude all levels from the measured bands.
        set(format!("adaptive.{table}.up_to"), None);
    }
    let (fixed_us, mega_vertex_us) = handover(&prepared, device.memory_way);
    set("adaptive.handover.fixed_us".to_owned(), fixed_us.map(Into::into));
    set("adaptive.handover.mega_vertex_us".to_owned(), mega_vertex_us.map(Into::into));
    let measured_permille = prepared.bottom_up.filter(|(_, origin)| *origin == Origin::Measured).map(|(permille, _)| permille);
    for (key, value) in described(runtime, used, device.memory_way, group, measured_permille) {
        // What was given was not compared with anything else.
        let is_given = (runtime.memory_way.value.is_some() && key.ends_with("memory_way"))
            || (runtime.work_group.value.is_some() && key.ends_with("work_group"));
        let comment = if is_given { format!("given to socbfs board tune {day}") } else { comment.clone() };
        changes.push(Change { path: key, value: Some(value), comment });
    }
    let text = edit(&runtime.profile.text, &runtime.profile.place, &changes).map_err(RuntimeError::Profile)?;
    let board = board::Board::parse(&text, &runtime.profile.place).map_err(RuntimeError::Profile)?;
    let profile = Profile { board, text: text.clone().into(), ..runtime.profile.clone() };
    let bands = Runtime { profile, policy: measuring.policy, ..runtime.clone() }.bands(None);
    Ok(Tuned { text, bands })
}

/// Microseconds of a handover: the fixed part, and the part for each 10^6 vertices. Each is the mean of both directions.
fn handover(prepared: &Prepared<'_>, way: SharingMode) -> (Option<f64>, Option<f64>) {
    let mean_us = |vertices: u64| {
        let (there, back) = prepared.devices.first()?.handover.of_state(way, vertices)?;
        Some((there.fixed_ns + back.fixed_ns) / 2e3)
    };
    let (Some(fixed), Some(million)) = (mean_us(0), mean_us(1_000_000)) else { return (None, None) };
    let round = |us: f64| (us * 1e3).round() / 1e3;
    (Some(round(fixed)), Some(round((million - fixed).max(0.0))))
}

/// Settings of the device that the profile lacks, since the next start would measure them again, and those that were given: the bands were
/// measured with them.
fn described(
    runtime: &Runtime,
    used: &DeviceUse,
    way: SharingMode,
    group: Option<usize>,
    bottom_up: Option<u32>,
) -> Vec<(String, toml_edit::Value)> {
    let devices = &runtime.profile.board.opencl.devices;
    let described = devices.iter().position(|device| device.describes(&used.name, &used.platform));
    let key = |key: &str| format!("opencl.devices[{}].{key}", described.unwrap_or(devices.len()));
    let mut all = Vec::new();
    if described.is_none() {
        all.push((key("name"), used.name.clone().into()));
    }
    if runtime.memory_way.value.is_some() || described.is_none_or(|place| devices[place].memory_way.is_none()) {
        all.push((key("memory_way"), way.to_string().into()));
    }
    // Sizes were compared only if neither board nor flag gives one.
    if let Some(items) = runtime.work_group.value.or(group).and_then(|items| i64::try_from(items).ok()) {
        all.push((key("work_group"), items.into()));
    }
    if let Some(permille) = bottom_up {
        all.push((key("bottom_up_permille"), i64::from(permille).into()));
    }
    all
}

/// `text` without line breaks, since a line break would end the comment.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
