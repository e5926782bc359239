//! Setting a search up with the OpenCL devices that were asked for.

use std::{fmt, sync::Arc};

use super::{Found, Origin, Runtime, RuntimeError, error::with_causes};
use crate::{
    bench::DeviceRecord,
    bfs::GpuKernel,
    board::OpenClDevice,
    calibrate::{Measured, measure_quickly, thresholds},
    engine::{GpuOptions, GpuSetup},
    graph::{Layout, Vertex},
    memory::Way,
    opencl::{self, Device, DeviceChoice, DeviceInfo, Limits, OpenClError},
    policy::{Adaptive, Band, Bands, Policy, Runs, Selective},
    search::{Outcome, Search, SearchOptions},
};

/// Bytes of the arrays that change hands, for the choice of the way: parents of a graph of a million vertices.
const TYPICAL_BYTES: u64 = 4 << 20;

/// What takes long enough to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The driver compiles kernels.
    Kernels,
    /// Thresholds between CPU and GPU are measured.
    Thresholds,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernels => "Building kernels",
            Self::Thresholds => "Measuring thresholds",
        })
    }
}

/// Is told the step that begins, and `None` when it ends.
pub type Progress<'a> = &'a dyn Fn(Option<Step>);

fn during<T>(step: Step, progress: Progress<'_>, work: impl FnOnce() -> T) -> T {
    progress(Some(step));
    let result = work();
    progress(None);
    result
}

/// A search ready to run, and what was found out on the way.
#[derive(Debug)]
pub struct Prepared<'g> {
    /// The search.
    pub search: Search<'g>,
    /// The devices it uses beside the CPU.
    pub devices: Vec<DeviceRecord>,
    /// What was measured to find thresholds, if that was necessary.
    pub measured: Option<Measured>,
    /// As the search was set up, devices included.
    pub options: SearchOptions,
    /// The calibration of this machine, these settings and these devices, where the policy can use one.
    pub calibration: Option<Found>,
}

impl Prepared<'_> {
    /// Searches from `root` (an original number); the tree is that of [`Prepared::search`].
    ///
    /// # Errors
    /// As [`Search::run`].
    pub fn run(&mut self, root: Vertex) -> Result<Outcome, RuntimeError> {
        Ok(self.search.run(root)?)
    }
}

/// What strategies are measured with.
#[derive(Debug)]
pub struct Machine {
    /// Ready for every policy.
    pub options: SearchOptions,
    /// The device beside the CPU and how its memory is shared.
    pub device: Option<(Arc<Device>, Way)>,
}

impl Runtime {
    /// A search of `layout`, ready to run: opens devices, measures hand-overs and (for a policy that needs them) thresholds, and
    /// allocates everything.
    ///
    /// # Errors
    /// [`RuntimeError`]: a device, a calibration or memory that was asked for is not there.
    pub fn search<'g>(&self, layout: &'g Layout) -> Result<Prepared<'g>, RuntimeError> {
        self.search_telling(layout, &|_| ())
    }

    /// As [`Runtime::search`]; `progress` is told what takes long.
    ///
    /// # Errors
    /// As [`Runtime::search`].
    pub fn search_telling<'g>(&self, layout: &'g Layout, progress: Progress<'_>) -> Result<Prepared<'g>, RuntimeError> {
        self.prepare(layout, false, progress)
    }

    /// The same, ready to go on with any policy, and with thresholds measured where there is a device.
    ///
    /// # Errors
    /// As [`Runtime::search`].
    pub fn search_for_all<'g>(&self, layout: &'g Layout, progress: Progress<'_>) -> Result<Prepared<'g>, RuntimeError> {
        self.prepare(layout, true, progress)
    }

    /// Opens the device for measurements of every strategy: no calibration has a say in it.
    ///
    /// # Errors
    /// [`RuntimeError`] where the device can't be had.
    pub fn machine(&self) -> Result<Machine, RuntimeError> {
        let mut options = SearchOptions { every_policy: true, ..self.options() };
        let found = self.chosen().or_else(|error| self.without(error))?;
        let Some(info) = found.first() else { return Ok(Machine { options, device: None }) };
        let opened = self.open_one(info, None)?;
        options.runs = opened.runs;
        let device = Some((Arc::clone(&opened.setup.device), opened.setup.way));
        options.devices = vec![opened.setup];
        Ok(Machine { options, device })
    }

    fn prepare<'g>(&self, layout: &'g Layout, every_policy: bool, progress: Progress<'_>) -> Result<Prepared<'g>, RuntimeError> {
        if let Some(recorded) = &self.recorded {
            recorded.check_graph(layout)?;
        }
        let found = self.chosen().or_else(|error| self.without(error))?;
        let calibration = match found.first() {
            Some(info) if every_policy || self.wants_calibration() => self.calibration(Some((info, self.way_asked(info))))?,
            _ => None,
        };
        let opened = self.open(&found, calibration.as_ref()).or_else(|error| self.without(error))?;
        if opened.is_empty() {
            return self.prepare_cpu(layout, every_policy);
        }
        let mut options = SearchOptions { every_policy, ..self.options() };
        options.runs = opened[0].runs;
        options.fall_back = self.device.value == DeviceChoice::Auto;
        options.policy = self.calibrated(self.policy_with_device(), calibration.as_ref(), true)?;
        options.devices = opened.iter().map(|opened| opened.setup.clone()).collect();
        if options.policy.runs_on_both() {
            log::info!("{} beside the CPU", opened[0].setup.device.info().name);
        } else {
            log::info!("searching on {}", opened[0].setup.device.info().name);
        }
        let made = during(Step::Kernels, progress, || Search::new(layout, &options));
        let mut search = match made {
            Ok(search) => search,
            Err(error) if self.may_do_without() => {
                log::warn!("{}; going on with the CPU alone", with_causes("", &error));
                return self.prepare_cpu(layout, every_policy);
            }
            Err(error) => return Err(error.into()),
        };
        let mut measured = None;
        let unknown = matches!(options.policy, Policy::Adaptive(_) | Policy::Selective(_))
            && options.policy.adaptive().is_some_and(|adaptive| !adaptive.bands.is_complete());
        if every_policy || unknown {
            let found = during(Step::Thresholds, progress, || thresholds(&mut search, options.runs))?;
            if let Some(adaptive) = options.policy.adaptive_mut().filter(|_| unknown) {
                let measured = found.adaptive();
                *adaptive = Adaptive { bands: adaptive.bands.or(measured.bands), ..measured };
                log::info!("thresholds measured: {}", options.policy);
            }
            search.set_policy(options.policy.clone(), options.runs)?;
            measured = Some(found);
        }
        let used = search.devices().to_vec();
        let devices = opened
            .into_iter()
            .zip(used)
            .map(|(opened, used)| DeviceRecord { used, memory_way: opened.setup.way, handover: opened.handover })
            .collect();
        Ok(Prepared { search, devices, measured, options, calibration })
    }

    /// The search on the CPU alone.
    fn prepare_cpu<'g>(&self, layout: &'g Layout, every_policy: bool) -> Result<Prepared<'g>, RuntimeError> {
        let mut options = SearchOptions { every_policy, ..self.options() };
        let calibration = if every_policy || self.wants_calibration() { self.calibration(None)? } else { None };
        options.policy = self.calibrated(options.policy, calibration.as_ref(), false)?;
        Ok(Prepared { search: Search::new(layout, &options)?, devices: Vec::new(), measured: None, options, calibration })
    }

    /// No device, where it is a gain and no must, else the error.
    fn without<T>(&self, error: RuntimeError) -> Result<Vec<T>, RuntimeError> {
        if !self.may_do_without() {
            return Err(error);
        }
        log::warn!("{}; going on with the CPU alone", with_causes("", &error));
        Ok(Vec::new())
    }

    /// Whether a device is a gain and no must.
    fn may_do_without(&self) -> bool {
        self.device.value == DeviceChoice::Auto && !self.policy.value.needs_device()
    }

    /// The devices that the settings mean: none where the CPU searches alone.
    ///
    /// # Errors
    /// [`RuntimeError::NoDevice`] and [`RuntimeError::Device`] where one is needed.
    pub fn chosen(&self) -> Result<Vec<DeviceInfo>, RuntimeError> {
        let choice = &self.device.value;
        let wanted = match choice {
            DeviceChoice::Cpu => false,
            DeviceChoice::Auto => self.policy.value.needs_device() || self.wants_costs(),
            _ => true,
        };
        if !wanted {
            return Ok(Vec::new());
        }
        let found = match opencl::devices() {
            Ok(found) => found,
            Err(OpenClError::NoLibrary | OpenClError::NoPlatform) if self.may_do_without() => return Ok(Vec::new()),
            Err(error) => return Err(RuntimeError::NoDevice(error)),
        };
        let mut chosen = opencl::choose(&found, choice).map_err(RuntimeError::Device)?;
        if chosen.is_empty() && self.policy.value.needs_device() {
            // Who asks for a policy of the GPU wants it even where OpenCL has the CPU only.
            chosen = opencl::choose(&found, &DeviceChoice::Gpu).map_err(RuntimeError::Device)?;
        }
        Ok(chosen)
    }

    /// Opens them; `calibration` is that of the first.
    fn open(&self, found: &[DeviceInfo], calibration: Option<&Found>) -> Result<Vec<Opened>, RuntimeError> {
        found.iter().enumerate().map(|(place, info)| self.open_one(info, calibration.filter(|_| place == 0))).collect()
    }

    /// How memory is shared with this device, where anybody says it: the flag, or the board.
    pub fn way_asked(&self, info: &DeviceInfo) -> Option<Way> {
        let of_board = || self.device_profile(info)?.memory_way.filter(|way| way.offered(info));
        self.memory_way.value.or_else(of_board)
    }

    fn device_profile(&self, info: &DeviceInfo) -> Option<&OpenClDevice> {
        self.profile.board.opencl.devices.iter().find(|device| device.name.matches(&info.name))
    }

    fn open_one(&self, info: &DeviceInfo, calibration: Option<&Found>) -> Result<Opened, RuntimeError> {
        let profile = self.device_profile(info);
        let limits = profile.map_or_else(Limits::default, |profile| Limits {
            max_alloc_bytes: profile.max_alloc_bytes,
            max_work_group: profile.max_work_group.map(|group| group as usize),
            local_bytes: profile.local_bytes,
            global_bytes: profile.global_bytes,
        });
        let device = Device::open(info, limits).map_err(RuntimeError::Open)?;
        let handover = measure_quickly(&device);
        let of_calibration = || calibration?.calibration.identity.device.as_ref().map(|device| device.memory_way);
        let way = match self.way_asked(info) {
            Some(way) if !way.offered(info) => {
                return Err(RuntimeError::Way { device: info.name.clone(), way, offered: offered(info) });
            }
            Some(way) => way,
            None => of_calibration().unwrap_or_else(|| handover.best(TYPICAL_BYTES)),
        };
        let bottom_up =
            if profile.and_then(|profile| profile.bgc).unwrap_or(info.local_is_dedicated) { GpuKernel::Bgc } else { GpuKernel::Bg };
        let options = GpuOptions { group: self.work_group.value, parts: self.parts.value, ..GpuOptions::default() };
        Ok(Opened { setup: GpuSetup { device: Arc::clone(&device), way, options }, runs: Runs::Gpu(bottom_up), handover })
    }

    /// The policy, with what the profile and the presence of a device add to it.
    pub fn policy_with_device(&self) -> Policy {
        match &self.policy.value {
            // With a GPU that nobody asked for by name, the better device of each level; with one asked for, that one.
            Policy::Auto if self.device.value == DeviceChoice::Auto => {
                Policy::Selective(Box::new(Selective::new(Adaptive::of(self.profile_bands()))))
            }
            other => {
                let mut policy = other.clone();
                if let Some(adaptive) = policy.adaptive_mut() {
                    adaptive.bands = adaptive.bands.or(self.profile_bands());
                }
                policy
            }
        }
    }

    /// What the board says of bands. Estimates are worth less than a measurement of a few searches.
    fn profile_bands(&self) -> Bands {
        let board = &self.profile.board;
        let told = |key: &str| !board.estimates.iter().any(|path| key == path || key.split('.').next() == Some(path));
        let permille = |share: f64| ((share * 1000.0) as u16).clamp(1, 999);
        let (selective, concurrent) = (&board.selective, &board.concurrent);
        Bands {
            top_down: Band {
                gpu_from: selective.top_down_gpu_from_edges.filter(|_| told("selective.top_down_gpu_from_edges")),
                split_from: concurrent.top_down_split_from_edges,
                up_to: selective.top_down_gpu_up_to_edges.filter(|_| told("selective.top_down_gpu_up_to_edges")),
                gpu_permille: concurrent.top_down_gpu_share.map(permille),
            },
            bottom_up: Band {
                gpu_from: selective.bottom_up_gpu_from_vertices.filter(|_| told("selective.bottom_up_gpu_from_vertices")),
                split_from: concurrent.bottom_up_split_from_vertices,
                up_to: selective.bottom_up_gpu_up_to_vertices.filter(|_| told("selective.bottom_up_gpu_up_to_vertices")),
                gpu_permille: concurrent.bottom_up_gpu_share.map(permille),
            },
        }
    }

    /// What concerns devices and the cost model, for the list of settings.
    pub fn device_settings(&self, found: Option<&Found>) -> [(&'static str, Origin, String); 3] {
        let calibrated = found.and_then(|found| found.calibration.identity.device.as_ref()).map(|device| device.memory_way);
        let (way, origin) = match (self.memory_way.value, calibrated) {
            (Some(way), _) => (way.to_string(), self.memory_way.origin),
            (None, Some(way)) => (way.to_string(), Origin::Calibration),
            (None, None) => ("measured".to_owned(), self.memory_way.origin),
        };
        [
            ("device", self.device.origin, self.device.value.to_string()),
            ("memory-way", origin, way),
            ("objective", self.objective.origin, self.objective.value.to_string()),
        ]
    }
}

struct Opened {
    setup: GpuSetup,
    runs: Runs,
    handover: crate::calibrate::HandoverTable,
}

/// The ways that the device offers.
fn offered(info: &DeviceInfo) -> Vec<Way> {
    Way::ALL.into_iter().filter(|way| way.offered(info)).collect()
}
