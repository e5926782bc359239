//! Sets up a search with the OpenCL devices of the settings.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Choice, Costs, FoundCalibration, Origin, Runtime, RuntimeError, Setting};
use crate::{
    board::{OpenClDevice, Quirk},
    measure::{HandoverTable, copies_in_place, measure_bottom_up, measure_bottom_up_on_cpu, measure_permitted, thresholds},
};
use socbfs::{
    DeviceUse, GpuOptions, GpuSetup, GraphMemory, SampledCosts,
    bfs::GpuKernel,
    graph::{Layout, Vertex},
    memory::SharingMode,
    opencl::{self, Device, DeviceChoice, DeviceInfo, DeviceKind, Limits, OpenClError},
    search::{Outcome, Search, SearchOptions},
    words::with_causes,
};
use socbfs_policy::{Bands, LevelDevice, Policy};

/// Bytes of the handover whose cost decides the sharing mode: parents of a graph of 2^20 vertices.
const TYPICAL_BYTES: u64 = 4 << 20;

/// Names of the settings of [`Runtime::device_settings`] that depend on the device.
pub(super) const MEMORY_WAY: &str = "memory-way";
pub(super) const WORK_GROUP: &str = "work-group";

/// A step that takes long enough to be announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The driver compiles kernels.
    Kernels,
    /// Sizes of work-groups are compared.
    WorkGroups,
    /// Thresholds between CPU and GPU are measured.
    Thresholds,
    /// Costs of both directions are measured.
    Directions,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernels => "Building kernels",
            Self::WorkGroups => "Comparing work-groups",
            Self::Thresholds => "Measuring thresholds",
            Self::Directions => "Measuring directions",
        })
    }
}

/// A callback that gets each step when it begins, and `None` when the step ends.
pub type OnStep<'a> = &'a dyn Fn(Option<Step>);

/// Calls `work`, and `progress` with its step before and after.
pub fn during<T>(step: Step, progress: OnStep<'_>, work: impl FnOnce() -> T) -> T {
    progress(Some(step));
    let result = work();
    progress(None);
    result
}

/// An OpenCL device of a search.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SearchDevice {
    /// Name, driver, and how its kernels were built.
    #[serde(flatten)]
    pub used: DeviceUse,
    /// The sharing mode of its memory.
    pub memory_way: SharingMode,
    /// Cost of handovers, measured at the start.
    pub handover: HandoverTable,
}

/// A search that is ready to run, with its devices, settings and measurements.
#[derive(Debug)]
pub struct Prepared<'g> {
    /// The search.
    pub search: Search<'g>,
    /// The devices that it uses in addition to the CPU.
    pub devices: Vec<SearchDevice>,
    /// What was measured of the first device, or known of it.
    pub costs: Costs,
    /// The policy, with the reason why it was chosen.
    pub choice: Choice,
    /// Where its levels run if it decides only directions.
    pub runs: LevelDevice,
    /// The options that the search was set up with, devices included.
    pub options: SearchOptions,
    /// The calibration of this machine, these settings and these devices, if there is one that the policy or the device can use.
    pub calibration: Option<FoundCalibration>,
}

impl Prepared<'_> {
    /// Resolves the policy of `runtime` with the costs and the calibration of this search.
    ///
    /// # Errors
    /// As [`Runtime::choose`].
    pub fn choose(&self, runtime: &Runtime, with_device: bool) -> Result<Choice, RuntimeError> {
        runtime.choose(self.calibration.as_ref(), with_device, self.costs)
    }

    /// Searches from `root` (an original number). [`Prepared::search`] then holds the tree.
    ///
    /// # Errors
    /// As [`Search::run`].
    pub fn run(&mut self, root: Vertex) -> Result<Outcome, RuntimeError> {
        Ok(self.search.run(root)?)
    }
}

/// The device of a search that splits no level.
#[derive(Debug)]
pub struct UndividedDevice {
    /// The device, and how it shares memory.
    pub setup: GpuSetup,
    /// The kernel with which it runs bottom-up levels if the policy names none.
    pub bottom_up: GpuKernel,
    /// Bounds of the levels that it runs (`None`: all levels).
    pub bands: Option<Bands>,
    /// Whether a bound has to be measured, since policy and board do not give all of them.
    pub wants_bounds: bool,
    /// Whether the device was found and not named, so that the search may continue without it.
    pub was_found: bool,
}

/// The options and the device for measurements of strategies.
#[derive(Debug)]
pub struct Machine {
    /// Search options that allow every planner.
    pub options: SearchOptions,
    /// The device and its sharing mode (`None`: the CPU alone is measured).
    pub device: Option<(Arc<Device>, SharingMode)>,
}

impl Runtime {
    /// Prepares a search of `layout`: opens devices, measures handovers and (for a policy that needs them) thresholds, and allocates
    /// everything.
    ///
    /// # Errors
    /// [`RuntimeError`] if a requested device, calibration or memory is not available.
    pub fn search<'g>(&self, layout: &'g Layout) -> Result<Prepared<'g>, RuntimeError> {
        self.search_telling(layout, &|_| ())
    }

    /// As [`Runtime::search`]. It calls `progress` with each step that takes long.
    ///
    /// # Errors
    /// As [`Runtime::search`].
    pub fn search_telling<'g>(&self, layout: &'g Layout, progress: OnStep<'_>) -> Result<Prepared<'g>, RuntimeError> {
        self.prepare(layout, false, progress)
    }

    /// As [`Runtime::search_telling`], but for any policy, and with measured thresholds if there is a device.
    ///
    /// # Errors
    /// As [`Runtime::search`].
    pub fn search_for_all<'g>(&self, layout: &'g Layout, progress: OnStep<'_>) -> Result<Prepared<'g>, RuntimeError> {
        self.prepare(layout, true, progress)
    }

    /// Opens the device for measurements of every strategy. Calibrations are ignored.
    ///
    /// # Errors
    /// [`RuntimeError`] if the device is not available.
    pub fn machine(&self) -> Result<Machine, RuntimeError> {
        let mut options = SearchOptions { every_planner: true, parallel: Some(self.parallel()), ..self.options() };
        let found = self.chosen().or_else(|error| self.without(error))?;
        let Some(info) = found.first() else { return Ok(Machine { options, device: None }) };
        let opened = self.open_one(info, None)?;
        let device = Some((Arc::clone(&opened.setup.device), opened.setup.way));
        options.devices = vec![opened.setup];
        Ok(Machine { options, device })
    }

    fn prepare<'g>(&self, layout: &'g Layout, every_policy: bool, progress: OnStep<'_>) -> Result<Prepared<'g>, RuntimeError> {
        if let Some(recorded) = &self.recorded {
            recorded.check_graph(layout)?;
        }
        let found = self.chosen_for(every_policy).or_else(|error| self.without(error))?;
        if let Some(info) = found.first() {
            // Every policy needs the calibration here, since it also holds settings of the device.
            let calibration = self.calibration(Some((info, self.way_asked(info))))?;
            let opened = self.open(&found, calibration.as_ref()).or_else(|error| self.without(error))?;
            if !opened.is_empty() {
                match self.prepare_on(layout, opened, calibration, every_policy, progress) {
                    Err(error @ RuntimeError::Search(_)) => drop(self.without::<()>(error)?),
                    other => return other,
                }
            }
        }
        let calibration = if every_policy || self.wants_calibration() { self.calibration(None)? } else { None };
        self.prepare_on(layout, Vec::new(), calibration, every_policy, progress)
    }

    /// Prepares a search with these devices (none: on the CPU alone). The calibration is that of the first one.
    fn prepare_on<'g>(
        &self,
        layout: &'g Layout,
        opened: Vec<Opened>,
        calibration: Option<FoundCalibration>,
        every_policy: bool,
        progress: OnStep<'_>,
    ) -> Result<Prepared<'g>, RuntimeError> {
        let first = opened.first();
        let runs = first.map_or(LevelDevice::Cpu, |first| first.runs);
        let mut costs = first.map_or_else(Costs::default, |Opened { setup, handover, .. }| {
            let info = setup.device.info();
            Costs {
                measured: None,
                handover: handover.of_state(setup.way, layout.csr().vertices() as u64),
                bottom_up: self.bottom_up(info, calibration.as_ref()),
                local_memory: self.local_memory(&info.name, &info.platform),
            }
        });
        let choose = |costs| self.choose(calibration.as_ref(), first.is_some(), costs);
        let mut choice = choose(costs)?;
        let wants_thresholds = first.is_some() && (every_policy || !choice.is_complete());
        // Split levels must be possible if they are to be measured.
        let splits = every_policy || (wants_thresholds && choice.policy.uses(runs).together);
        let mut options = SearchOptions {
            every_planner: splits,
            // A measurement must not silently continue on the CPU.
            fall_back: false,
            planner: choice.policy.clone().on(runs),
            devices: opened.iter().map(|opened| opened.setup.clone()).collect(),
            parallel: Some(self.parallel()),
            ..self.options()
        };
        let build = || Search::new(layout, &options);
        let mut search = if first.is_some() { during(Step::Kernels, progress, build) } else { build() }?;
        self.tell_devices(&opened, &search, &choice.policy);
        if wants_thresholds {
            costs.measured = Some(during(Step::Thresholds, progress, || thresholds(&mut search, runs, splits))?);
            choice = choose(costs)?;
        }
        let is_usual = choice.policy.has_usual_costs();
        let found = match first {
            Some(_) if costs.bottom_up.is_none() && (every_policy || is_usual) => {
                during(Step::Directions, progress, || measure_bottom_up(&mut search, runs))?
            }
            // A calibration has measured its choice, on other graphs.
            None if self.tries_costs && calibration.is_none() && is_usual => {
                during(Step::Directions, progress, || measure_bottom_up_on_cpu(&mut search))?
            }
            _ => None,
        };
        if let Some(permille) = found {
            costs.bottom_up = Some((permille, Origin::Measured));
            choice = choose(costs)?;
        }
        options.planner = choice.policy.clone().on(runs);
        search.set_planner(options.planner.clone())?;
        // A comparison of policies must not continue without the device.
        options.fall_back = first.is_some() && self.device.value == DeviceChoice::Auto && !every_policy;
        search.set_fall_back(options.fall_back);
        choice.tell();
        let used = search.devices().to_vec();
        let device = |(Opened { setup, handover, .. }, used)| SearchDevice { used, memory_way: setup.way, handover };
        let devices = opened.into_iter().zip(used).map(device).collect();
        Ok(Prepared { search, devices, costs, choice, runs, options, calibration })
    }

    /// Writes to the log which of the opened devices a search uses.
    fn tell_devices(&self, opened: &[Opened], search: &Search<'_>, policy: &Policy) {
        let Some(first) = opened.first() else { return };
        let name = &first.setup.device.info().name;
        if search.devices().is_empty() {
            // A device that was only found may be superfluous.
            if self.device.value != DeviceChoice::Auto {
                log::warn!("{name} is not used: policy {policy} runs every level on the CPU");
            }
        } else if policy.runs_on_both() {
            log::info!("searching on {name} and the CPU");
        } else {
            log::info!("searching on {name}");
        }
        for unused in opened.iter().skip(search.devices().len().max(1)) {
            log::warn!("{} is not used: policy {policy} splits no level between devices", unused.setup.device.info().name);
        }
    }

    /// Returns an empty list if a device is optional, with a warning that gives the reason; else the error.
    fn without<T>(&self, error: RuntimeError) -> Result<Vec<T>, RuntimeError> {
        // A search that was stopped says nothing about the device.
        if !self.may_do_without() || self.stopper.is_stopped() {
            return Err(error);
        }
        log::warn!("{}; continuing on the CPU alone", with_causes("", &error));
        Ok(Vec::new())
    }

    /// Whether a device is optional.
    fn may_do_without(&self) -> bool {
        self.device.value == DeviceChoice::Auto && !self.policy.value.needs_device()
    }

    /// The devices of the settings (empty: the CPU searches alone).
    ///
    /// # Errors
    /// [`RuntimeError::NoDevice`] and [`RuntimeError::Device`] if a device is needed and not available.
    pub fn chosen(&self) -> Result<Vec<DeviceInfo>, RuntimeError> {
        self.chosen_for(false)
    }

    /// As [`chosen`](Self::chosen). With `every_policy`, the search may use any policy, not only that of the settings.
    fn chosen_for(&self, every_policy: bool) -> Result<Vec<DeviceInfo>, RuntimeError> {
        let choice = &self.device.value;
        let wanted = match choice {
            DeviceChoice::Cpu => false,
            DeviceChoice::Auto => every_policy || self.policy.value.needs_device() || self.wants_costs(),
            _ => true,
        };
        if !wanted {
            return Ok(Vec::new());
        }
        let mut found = match opencl::devices() {
            Ok(found) => found,
            Err(OpenClError::NoLibrary | OpenClError::NoPlatform) if self.may_do_without() => return Ok(Vec::new()),
            Err(error) => return Err(RuntimeError::NoDevice(error)),
        };
        if matches!(choice, DeviceChoice::Auto | DeviceChoice::Gpu) {
            self.keep_preferred(&mut found);
        }
        let mut chosen = opencl::choose(&found, choice).map_err(RuntimeError::Device)?;
        if chosen.is_empty() && self.policy.value.needs_device() {
            // The error names the devices that could be named.
            chosen = opencl::choose(&found, &DeviceChoice::Gpu).map_err(RuntimeError::Device)?;
        }
        Ok(chosen)
    }

    /// Of the GPUs that can be used, leaves only those that the board prefers: those of its first table that describes one.
    pub(super) fn keep_preferred(&self, found: &mut Vec<DeviceInfo>) {
        let tables = &self.profile.board.opencl.devices;
        let place = |info: &DeviceInfo| tables.iter().position(|table| table.describes(&info.name, &info.platform));
        let is_gpu = |info: &DeviceInfo| info.kind == DeviceKind::Gpu && info.unusable.is_none();
        if let Some(best) = found.iter().filter(|info| is_gpu(info)).filter_map(place).min() {
            found.retain(|info| !is_gpu(info) || place(info) == Some(best));
        }
    }

    /// The device of a search that splits no level. A device that was named runs all levels; one that was found runs those inside the
    /// bounds of the board. `None`: the search runs on the CPU.
    ///
    /// # Errors
    /// [`RuntimeError`] if a requested device or calibration is not available.
    pub fn undivided_device(&self) -> Result<Option<UndividedDevice>, RuntimeError> {
        let found = self.chosen().or_else(|error| self.without(error))?;
        if found.len() > 1 {
            return Err(RuntimeError::SeveralDevices(found.len()));
        }
        let Some(info) = found.first() else { return Ok(None) };
        // It also holds settings of the device, which every policy needs.
        let calibration = self.calibration(Some((info, self.way_asked(info))))?;
        let opened = match self.open_one(info, calibration.as_ref()) {
            Ok(opened) => opened,
            Err(error) => return self.without::<()>(error).map(|_| None),
        };
        let was_found = self.device.value == DeviceChoice::Auto;
        let (bands, wants_bounds) = if was_found && !self.policy.value.needs_device() {
            let (bands, is_open) = self.undivided_bands();
            (Some(bands), is_open)
        } else {
            (None, false)
        };
        let bottom_up = if let LevelDevice::Gpu(kernel) = opened.runs { kernel } else { GpuKernel::Bg };
        Ok(Some(UndividedDevice { setup: opened.setup, bottom_up, bands, wants_bounds, was_found }))
    }

    /// Opens the devices `found`. `calibration` is that of the first one.
    fn open(&self, found: &[DeviceInfo], calibration: Option<&FoundCalibration>) -> Result<Vec<Opened>, RuntimeError> {
        found.iter().enumerate().map(|(place, info)| self.open_one(info, calibration.filter(|_| place == 0))).collect()
    }

    /// The sharing mode of this device, if the flag or the board gives it.
    pub fn way_asked(&self, info: &DeviceInfo) -> Option<SharingMode> {
        self.way_given(Some(info), None).map(|way| way.value)
    }

    /// The sharing mode, if the flag, the board or the calibration gives it.
    fn way_given(&self, device: Option<&DeviceInfo>, calibration: Option<&FoundCalibration>) -> Option<Setting<SharingMode>> {
        let of_board = device.and_then(|info| self.device_profile(info)?.memory_way.filter(|way| way.offered(info)));
        let of_calibration = calibration.and_then(|found| Some(found.calibration.identity.device.as_ref()?.memory_way));
        Setting::first([
            (self.memory_way.value, self.memory_way.origin),
            (of_board, self.profile.origin),
            (of_calibration, Origin::Calibration),
        ])
    }

    /// The sharing mode that is given for this device and that it may use (`None`: it has to be measured).
    pub(super) fn way(&self, info: &DeviceInfo, calibration: Option<&FoundCalibration>) -> Option<SharingMode> {
        self.way_given(Some(info), calibration).map(|way| way.value).filter(|&way| self.permits(info, way))
    }

    /// Whether this device may use this sharing mode: the device offers it, and no quirk of the board rules it out.
    pub fn permits(&self, info: &DeviceInfo, way: SharingMode) -> bool {
        way.offered(info) && self.device_profile(info).is_none_or(|device| device.permits(way))
    }

    /// Number of work-items in a work-group of this device, if the flag or the board gives it.
    pub fn group_asked(&self, info: &DeviceInfo) -> Option<usize> {
        self.group(Some(info), None).map(|group| group.value)
    }

    /// As [`group_asked`](Self::group_asked), else the size of the calibration (`None`: by the kind of device).
    pub(super) fn group(&self, device: Option<&DeviceInfo>, calibration: Option<&FoundCalibration>) -> Option<Setting<usize>> {
        let of_board = device.and_then(|info| self.device_profile(info)?.work_group).map(|items| items as usize);
        let of_calibration = calibration.and_then(|found| found.calibration.identity.device.as_ref()?.work_group);
        Setting::first([
            (self.work_group.value, self.work_group.origin),
            (of_board, self.profile.origin),
            (of_calibration, Origin::Calibration),
        ])
    }

    /// The cost of a bottom-up level relative to a top-down one on this device, in thousandths of the ratio that `sampled` assumes, and its
    /// origin. `None` if neither the board nor the calibration gives it.
    pub fn bottom_up(&self, info: &DeviceInfo, calibration: Option<&FoundCalibration>) -> Option<(u32, Origin)> {
        let of_board = self.device_profile(info).and_then(|device| device.bottom_up_permille);
        let of_calibration = calibration.and_then(|found| found.calibration.device.as_ref()?.bottom_up_permille);
        let given = Setting::first([(of_board, self.profile.origin), (of_calibration, Origin::Calibration)]);
        given.map(|Setting { value, origin }| (value, origin))
    }

    fn device_profile(&self, info: &DeviceInfo) -> Option<&OpenClDevice> {
        self.device_table(&info.name, &info.platform)
    }

    /// The first table of the board that describes the device of this name and platform.
    pub(super) fn device_table(&self, name: &str, platform: &str) -> Option<&OpenClDevice> {
        self.profile.board.opencl.devices.iter().find(|device| device.describes(name, platform))
    }

    /// Whether the device of this name and platform has local memory on its chip, if the board says so.
    pub fn local_memory(&self, name: &str, platform: &str) -> Option<bool> {
        self.device_table(name, platform).and_then(OpenClDevice::has_local_memory)
    }

    /// The limits that the board's profile sets for the device.
    pub(super) fn limits(&self, info: &DeviceInfo) -> Limits {
        self.device_profile(info).map_or_else(Limits::default, |profile| Limits {
            max_alloc_bytes: profile.max_alloc_bytes,
            max_work_group: profile.max_work_group.map(|group| group as usize),
            local_bytes: profile.local_bytes,
            global_bytes: profile.global_bytes,
            timeout_s: profile.timeout_s,
            compute_units: profile.compute_units,
            program_per_file: profile.quirks.contains(&Quirk::ProgramPerFile),
        })
    }

    /// The kernels with which the device runs levels if a policy decides directions only.
    pub(super) fn runs(&self, info: &DeviceInfo) -> LevelDevice {
        let is_real = self.local_memory(&info.name, &info.platform).unwrap_or(info.local_is_dedicated);
        LevelDevice::Gpu(if is_real { GpuKernel::Bgc } else { GpuKernel::Bg })
    }

    fn open_one(&self, info: &DeviceInfo, calibration: Option<&FoundCalibration>) -> Result<Opened, RuntimeError> {
        let refused = |way: SharingMode| RuntimeError::SharingMode {
            device: info.name.clone(),
            way,
            quirk: self.device_profile(info).and_then(|device| device.against(way)),
            offered: SharingMode::ALL.into_iter().filter(|&way| self.permits(info, way)).collect(),
        };
        if let Some(way) = self.way_asked(info).filter(|&way| !self.permits(info, way)) {
            return Err(refused(way));
        }
        let open = if self.device_times { Device::open_timed } else { Device::open };
        let device = open(info, self.limits(info)).map_err(RuntimeError::Open)?;
        let way = self.way(info, calibration);
        // If the sharing mode and the board's handover costs are known, nothing has to be measured.
        let is_known = way.is_some() && self.board_handover().is_some();
        let handover = if is_known { HandoverTable::default() } else { measure_permitted(&device, |way| self.permits(info, way)) };
        let taken = way.unwrap_or_else(|| handover.best(TYPICAL_BYTES));
        for (name, origin, value) in self.device_settings(Some(info), calibration) {
            match name {
                MEMORY_WAY if way.is_none() => log::info!("{name} = {:?} ({})", taken.to_string(), Origin::Measured),
                MEMORY_WAY | WORK_GROUP => log::info!("{name} = {value:?} ({origin})"),
                _ => {}
            }
        }
        // If host memory can't be used in place, the graph is copied once to memory of the device. A driver may copy it without a word.
        let copies = || info.unified_memory && copies_in_place(&device, &handover);
        let graph = (!self.permits(info, SharingMode::UseHostPtr) || copies()).then_some(GraphMemory::Device);
        let costs = self.bottom_up(info, calibration).map(|(permille, _)| SampledCosts::default().times(permille));
        let group = self.group(Some(info), calibration).map(|group| group.value);
        let options = GpuOptions { group, parts: self.parts.value, graph, costs, ..GpuOptions::default() };
        Ok(Opened { setup: GpuSetup { device, way: taken, options }, runs: self.runs(info), handover })
    }

    /// Name, origin and value of the settings of devices and of the cost model, for `device` if one is chosen.
    pub fn device_settings(&self, device: Option<&DeviceInfo>, found: Option<&FoundCalibration>) -> [(&'static str, Origin, String); 5] {
        // What is given for a device must suit it. A flag counts even if no device is chosen.
        let suits =
            |way: &Setting<SharingMode>| self.memory_way.value.is_some() || device.is_some_and(|info| self.permits(info, way.value));
        let way = self.way_given(device, found).filter(suits);
        let (way, origin) = way.map_or(("measured".to_owned(), self.memory_way.origin), |way| (way.value.to_string(), way.origin));
        let group = self.group(device, found);
        let (group, of_group) =
            group.map_or(("by the device".to_owned(), self.work_group.origin), |group| (group.value.to_string(), group.origin));
        [
            ("device", self.device.origin, self.device.value.to_string()),
            (MEMORY_WAY, origin, way),
            (WORK_GROUP, of_group, group),
            ("parts", self.parts.origin, self.parts.value.to_string()),
            ("objective", self.objective.origin, self.objective.value.to_string()),
        ]
    }
}

struct Opened {
    setup: GpuSetup,
    runs: LevelDevice,
    handover: HandoverTable,
}
