//! NVIDIA GPUs with a supply of their own, through the management library of their driver: an energy counter in millijoules if the GPU has
//! one (since Volta), else its power.

use std::{sync::Arc, time::Duration};

use nvml_wrapper::{Nvml, error::NvmlError};

use super::powercap::KEEP_ALIVE;
use crate::{Channel, Component, Domain, Family, Lost, Pace, Reading, Scope, Signal, Source, Unusable, Watts};

/// Approximate interval at which power and energy change.
const REFRESH: Duration = Duration::from_millis(100);

/// One GPU.
#[derive(Debug)]
struct Gpu {
    library: Arc<Nvml>,
    index: u32,
    counts: bool,
}

impl Gpu {
    fn read(&self) -> Result<Reading, NvmlError> {
        let device = self.library.device_by_index(self.index)?;
        if self.counts {
            device.total_energy_consumption().map(Reading::Counter)
        } else {
            device.power_usage().map(|milliwatts| Reading::Power(Watts(f64::from(milliwatts) * 1e-3)))
        }
    }
}

/// The GPUs of this machine; none if it has no NVIDIA driver.
pub fn discover() -> Vec<Source> {
    let library = match Nvml::init() {
        Ok(library) => Arc::new(library),
        Err(error) => {
            log::debug!("no NVIDIA GPU: {error}");
            return Vec::new();
        }
    };
    let count = library.device_count().unwrap_or(0);
    (0..count).map(|index| source(&library, index)).collect()
}

fn source(library: &Arc<Nvml>, index: u32) -> Source {
    let device = library.device_by_index(index);
    let counts = device.as_ref().is_ok_and(|device| device.total_energy_consumption().is_ok());
    let channel = Channel {
        family: Family::Nvml,
        id: index.to_string(),
        label: device.as_ref().ok().and_then(|device| device.name().ok()),
        domain: Domain::Gpu,
        scope: Scope::Card,
        part: Component::card(&index.to_string()),
        signal: if counts { Signal::Counter { joules_per_count: 1e-3, range: u64::MAX } } else { Signal::Power },
        refresh: REFRESH,
        place: format!("GPU {index}"),
    };
    let gpu = Gpu { library: library.clone(), index, counts };
    let read = match gpu.read() {
        Ok(_) => Ok(move || gpu.read().map_err(|error| if matches!(error, NvmlError::GpuLost) { Lost::Gone } else { Lost::NoData })),
        Err(error) => Err(Unusable::Protocol { place: channel.place.clone(), reason: error.to_string() }),
    };
    // A call may take milliseconds.
    Source::single(channel, Pace::Waits(if counts { KEEP_ALIVE } else { REFRESH }), read)
}
