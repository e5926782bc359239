//! An open device: one context, and one queue, which is in order.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Duration,
};

use opencl3::{
    command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue},
    context::{Context, context::CL_CONTEXT_PLATFORM},
    error_codes::{CL_INVALID_WORK_GROUP_SIZE, CL_INVALID_WORK_ITEM_SIZE, CL_OUT_OF_RESOURCES, ClError},
    event::{CL_COMPLETE, CommandExecutionStatus, Event, retain_event},
    types::cl_device_id,
};
use serde::{Deserialize, Serialize};

use super::{
    cache::{Cache, Key},
    error::{Called, DEVICE_TIMEOUT, DeviceError, OpenClError},
    forked::is_forked,
    info::{DeviceInfo, DeviceKind, KnownDriver},
    kernel::LAUNCH,
    leaked,
    locked::locked,
    owned::Owned,
    probe,
    program::Program,
    wait::{self, Waiter},
};

/// Seconds that a wait for a device may take, if no other limit is set.
const TIMEOUT_S: u64 = 10;
/// A wait may take this many times longer than its work is expected to.
const PATIENCE: u64 = 10;
/// Bytes that every device transfers in a nanosecond, in thousandths.
const MILLI_BYTES_PER_NS: u64 = 100;

/// Limits of a device from a board's profile (or a test). The smaller of this limit and the device's own applies (but for
/// [`compute_units`](Self::compute_units)). It is enforced here, since not every driver refuses what is too large for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Largest buffer in bytes.
    pub max_alloc_bytes: Option<u64>,
    /// Largest work-group.
    pub max_work_group: Option<usize>,
    /// Local memory of a work-group in bytes.
    pub local_bytes: Option<u64>,
    /// All buffers together in bytes. The device's own limit is not enforced: integrated GPUs report less than they have.
    pub global_bytes: Option<u64>,
    /// Seconds that a wait for the device may take, besides ten times what its work should take (0: for ever). `None`: 10. The environment
    /// variable `SOCBFS_DEVICE_TIMEOUT` comes first.
    pub timeout_s: Option<u64>,
    /// Compute units, which decide how many work-groups a launch has, whatever the device reports.
    pub compute_units: Option<u32>,
    /// Whether each file of kernels has to be a program of its own.
    pub program_per_file: bool,
}

/// Compute units of a GPU whose driver reports one, as Mesa's do for every VideoCore and for every GPU behind Vulkan (zink). Kernels loop:
/// too many work-groups cost a small GPU little, and too few would cost a larger one most of its speed.
const UNITS_OF_ONE: u32 = 8;

impl Limits {
    /// The compute units by which the device's launches are sized.
    pub fn units(self, info: &DeviceInfo) -> u32 {
        let is_doubtful = info.kind == DeviceKind::Gpu && info.compute_units == 1;
        self.compute_units.unwrap_or(if is_doubtful { UNITS_OF_ONE } else { info.compute_units.max(1) })
    }

    /// These limits combined with those that the device reports; every number is set.
    fn within(self, info: &DeviceInfo) -> Self {
        let dimension = info.max_work_item_sizes.first().copied().filter(|&size| size > 0).unwrap_or(usize::MAX);
        let group = info.max_work_group.min(dimension);
        Self {
            max_alloc_bytes: Some(self.max_alloc_bytes.map_or(info.max_alloc_bytes, |limit| limit.min(info.max_alloc_bytes))),
            max_work_group: Some(self.max_work_group.map_or(group, |limit| limit.min(group))),
            local_bytes: Some(self.local_bytes.map_or(info.local_bytes, |limit| limit.min(info.local_bytes))),
            global_bytes: Some(self.global_bytes.map_or(info.global_bytes, |limit| limit.min(info.global_bytes))),
            timeout_s: Some(probe::timeout_s().or(self.timeout_s).unwrap_or(TIMEOUT_S)),
            compute_units: Some(self.units(info)),
            program_per_file: self.program_per_file,
        }
    }
}

/// An open device.
pub struct Device {
    info: DeviceInfo,
    limits: Limits,
    driver: KnownDriver,
    /// The largest work-group, as far as launches have shown it.
    most_items: AtomicUsize,
    /// The limit on all buffers together, if one was set.
    budget: Option<u64>,
    used: AtomicU64,
    /// Number of calls that failed, and that number at the last successful wait for everything launched.
    failures: AtomicU64,
    settled: AtomicU64,
    /// Programs built so far, by source and options.
    built: Mutex<Vec<Built>>,
    /// Locked by the thread that waits for the queue.
    waiter: Mutex<Waiter>,
    queued: Mutex<Queued>,
    ran: Mutex<Ran>,
    /// The error of a wait that did not end. No call is made on the queue afterwards.
    lost: OnceLock<DeviceError>,
    queue: Owned<CommandQueue>,
    context: Owned<Context>,
    /// Launches whose times have not been queried yet, never more than its capacity; `None` if no times are kept.
    launches: Option<Mutex<Vec<Owned<Event>>>>,
}

/// What was put into the queue since the last wait. It is locked while a command is put there.
#[derive(Default)]
struct Queued {
    /// The event of the last command.
    last: Option<Owned<Event>>,
    /// Nanoseconds that the work should take at most.
    expected_ns: u64,
    /// Whether a kernel runs for the first time.
    has_first: bool,
}

/// Work of kernels, and how long it took.
struct Ran {
    arcs: u64,
    ns: u64,
}

/// The least work that is measured.
const LEAST_ARCS: u64 = 1 << 12;
/// What every device does before anything is measured: 20 million arcs in a second.
const SLOWEST: Ran = Ran { arcs: 20, ns: 1000 };

/// What a command does.
pub(super) enum Work {
    /// It transfers or fills this many bytes.
    Bytes(usize),
    /// It is a kernel, which may run for the first time. Its event is kept if the device keeps times.
    Kernel(bool),
}

/// When the device ran a kernel, by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchTime {
    /// When it began, in nanoseconds of the device's clock.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// Launches whose times are kept until they are queried, at most: enough for a search of many levels without a query.
const LAUNCHES_TIMED: usize = 1024;

/// The cache's key of the largest work-group with which launches succeed.
fn most_items_key(info: &DeviceInfo) -> Key {
    Key::new(info, "", "largest work-group")
}

struct Built {
    source: String,
    options: String,
    program: Arc<Owned<opencl3::program::Program>>,
}

impl Device {
    /// Opens the device.
    ///
    /// # Errors
    /// [`OpenClError::Unusable`] if `info` says so, [`OpenClError::Call`] if the driver refuses, [`OpenClError::Forked`].
    pub fn open(info: &DeviceInfo, limits: Limits) -> Result<Arc<Self>, OpenClError> {
        Self::open_with(info, limits, false)
    }

    /// Opens the device with a queue that keeps the times of kernels ([`times`](Self::times)), which costs some drivers a little at each
    /// launch.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_timed(info: &DeviceInfo, limits: Limits) -> Result<Arc<Self>, OpenClError> {
        Self::open_with(info, limits, true)
    }

    fn open_with(info: &DeviceInfo, limits: Limits, timed: bool) -> Result<Arc<Self>, OpenClError> {
        if let Some(reason) = &info.unusable {
            return Err(OpenClError::Unusable { device: info.name.clone(), reason: reason.clone() });
        }
        if is_forked() {
            return Err(OpenClError::Forked);
        }
        let say = |error: DeviceError| error.on(&info.name);
        let id = info.device_id as cl_device_id;
        let properties = [CL_CONTEXT_PLATFORM, info.platform_id as isize, 0];
        let (context, queue) = probe::calling(|| {
            let context =
                Context::from_devices(&[id], &properties, None, std::ptr::null_mut()).called("clCreateContext").map(Owned::new)?;
            // The queue is in order unless a property says otherwise.
            let properties = if timed { CL_QUEUE_PROFILING_ENABLE } else { 0 };
            // SAFETY: context and device are valid and belong together.
            let queue = unsafe { CommandQueue::create(&context, id, properties) }.called("clCreateCommandQueue").map(Owned::new)?;
            Ok((context, queue))
        })
        .map_err(say)?;
        let limits_in_force = limits.within(info);
        let most_items = limits_in_force.max_work_group.unwrap_or(usize::MAX);
        let shown = Cache::of_user().and_then(|cache| cache.load(&most_items_key(info)));
        let shown = shown.and_then(|text| String::from_utf8(text).ok()?.parse().ok());
        Ok(Arc::new(Self {
            driver: info.known_driver(),
            info: info.clone(),
            limits: limits_in_force,
            most_items: AtomicUsize::new(shown.map_or(most_items, |shown: usize| shown.clamp(1, most_items))),
            budget: limits.global_bytes,
            used: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            waiter: Mutex::new(Waiter::new(info.kind == DeviceKind::Gpu)),
            queued: Mutex::default(),
            ran: Mutex::new(SLOWEST),
            lost: OnceLock::new(),
            queue,
            context,
            built: Mutex::default(),
            launches: timed.then(|| Mutex::new(Vec::with_capacity(LAUNCHES_TIMED))),
        }))
    }

    /// The known faults of its driver.
    pub(crate) fn driver(&self) -> KnownDriver {
        self.driver
    }

    /// The properties that the device reports.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The limits in force; every number is set.
    pub fn limits(&self) -> Limits {
        Limits { max_work_group: Some(self.max_work_group()), ..self.limits }
    }

    /// The largest buffer in bytes.
    pub fn max_alloc_bytes(&self) -> u64 {
        self.limits.max_alloc_bytes.unwrap_or(self.info.max_alloc_bytes)
    }

    /// The largest work-group of any kernel; one kernel's own may be smaller ([`Kernel::max_group`](super::Kernel::max_group)).
    pub fn max_work_group(&self) -> usize {
        self.most_items.load(Relaxed) // Relaxed: it orders no other memory.
    }

    /// After the launch of a kernel with work-groups of `group` items failed with `error`: whether smaller ones are worth a try, since some
    /// drivers find out only then that a group of that size has no room. If so, half of it is the limit from now on.
    pub(crate) fn halves_groups(&self, error: DeviceError, group: usize) -> bool {
        let is_of_size = [CL_OUT_OF_RESOURCES, CL_INVALID_WORK_GROUP_SIZE, CL_INVALID_WORK_ITEM_SIZE].contains(&error.code);
        // A lost device gives the same error, but can't be waited for.
        let halves = is_of_size && error.call == LAUNCH && group > 1 && self.finish().is_ok();
        if halves {
            log::warn!("{}: a launch with {group} items in a work-group failed ({error}); trying half as many", self.info.name);
            self.most_items.store(group / 2, Relaxed);
        }
        halves
    }

    /// Remembers in the cache that launches succeed with work-groups of the present limit, if they did not with larger ones.
    pub(crate) fn remember_groups(&self) {
        let most = self.max_work_group();
        if self.limits.max_work_group.is_some_and(|limit| most < limit) {
            if let Some(cache) = Cache::of_user() {
                cache.store(&most_items_key(&self.info), most.to_string().as_bytes());
            }
        }
    }

    /// The compute units by which launches are sized.
    pub fn compute_units(&self) -> u32 {
        self.limits.units(&self.info)
    }

    /// The local memory of a work-group in bytes.
    pub fn local_bytes(&self) -> u64 {
        self.limits.local_bytes.unwrap_or(self.info.local_bytes)
    }

    /// Bytes of all buffers that exist on the device.
    pub fn used_bytes(&self) -> u64 {
        self.used.load(Relaxed) // Relaxed: it is a count, and orders no other memory.
    }

    /// Waits until everything launched has ended. If that takes longer than the [limit](Limits::timeout_s), the device counts as lost: this
    /// and every later call fails.
    ///
    /// # Errors
    /// Errors of the driver, such as the loss of the device; [`DEVICE_TIMEOUT`]; [`FORKED`](super::FORKED).
    pub fn finish(&self) -> Result<(), DeviceError> {
        if is_forked() {
            return Err(DeviceError::FORKED);
        }
        // One thread waits at a time. Another may find that nothing is left to wait for.
        let mut waiter = locked(&self.waiter);
        self.check_lost()?;
        // Sequentially consistent, as every access to these two counters: a failure on another thread counts either before this wait or
        // after it. Failures are rare, so this costs nothing.
        let failures = self.failures.load(SeqCst);
        if failures != self.settled.load(SeqCst) {
            // Commands before one that failed may still run. A marker ends after them, or is refused.
            self.enqueue("clEnqueueMarkerWithWaitList", Work::Bytes(0), |queue| {
                // SAFETY: the queue is valid, and there is no list.
                unsafe { queue.enqueue_marker_with_wait_list(&[]) }
            })?;
        }
        let Queued { last, expected_ns, has_first } = std::mem::take(&mut *locked(&self.queued));
        if let Some(last) = last {
            let limit = match self.limits.timeout_s.unwrap_or(TIMEOUT_S) {
                0 => Duration::ZERO,
                seconds => {
                    // Some drivers compile a kernel when it runs for the first time.
                    let seconds = Duration::from_secs(seconds) * if has_first { 5 } else { 2 } / 2;
                    seconds.saturating_add(Duration::from_nanos(expected_ns.saturating_mul(PATIENCE)))
                }
            };
            if !self.noted(self.queue.flush().called("clFlush").and_then(|()| waiter.wait(&last, limit)))? {
                std::mem::forget(last);
                return self.noted(Err(self.lose(limit)));
            }
        }
        // The queue is in order: everything enqueued before one of these failures has ended too.
        self.settled.fetch_max(failures, SeqCst);
        Ok(())
    }

    /// Notes that a wait has not ended within `limit`.
    fn lose(&self, limit: Duration) -> DeviceError {
        wait::end_in_time();
        // An error owns nothing, and there is at most one of these for each device.
        let call = || Box::leak(format!("a wait of {:.0} s", limit.as_secs_f64()).into_boxed_str());
        *self.lost.get_or_init(|| DeviceError { call: call(), code: DEVICE_TIMEOUT })
    }

    /// Whether a wait did not end within its limit. Every later call fails.
    pub fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// The error of a wait that did not end.
    #[inline]
    fn check_lost(&self) -> Result<(), DeviceError> {
        self.lost.get().map_or(Ok(()), |&error| Err(error))
    }

    /// Nanoseconds that kernels should take at most for `arcs` arcs, by what was measured, else by what every device does.
    pub(crate) fn ns_of(&self, arcs: u64) -> u64 {
        let Ran { arcs: measured, ns } = *locked(&self.ran);
        (u128::from(arcs) * u128::from(ns) / u128::from(measured)) as u64
    }

    /// Lets the next wait take longer: kernels launched now go through at most `arcs` arcs.
    pub(crate) fn expect(&self, arcs: u64) {
        let ns = self.ns_of(arcs);
        let mut queued = locked(&self.queued);
        queued.expected_ns = queued.expected_ns.saturating_add(ns);
    }

    /// Notes that kernels have gone through `arcs` arcs in `ns` nanoseconds. A measurement of many arcs is kept, rather than one of few,
    /// which is that of the launches and waits.
    pub(crate) fn ran(&self, arcs: u64, ns: u64) {
        let mut ran = locked(&self.ran);
        if arcs >= LEAST_ARCS && arcs >= ran.arcs / 2 {
            *ran = Ran { arcs, ns };
        }
    }

    /// Records a failed call: from then on it is unknown what still runs, until [`finish`](Self::finish) succeeds.
    #[inline]
    pub(super) fn noted<T>(&self, result: Result<T, DeviceError>) -> Result<T, DeviceError> {
        if result.is_err() {
            self.failures.fetch_add(1, SeqCst);
        }
        result
    }

    /// Whether a call has failed since the last successful wait for everything launched.
    pub fn has_failed(&self) -> bool {
        self.failures.load(SeqCst) != self.settled.load(SeqCst)
    }

    /// Whether objects can be released as OpenCL intends: no call has failed since the last successful wait, or another wait succeeds now.
    /// If `false`, the device may still access everything that it was given, or the process was forked.
    pub(super) fn is_sound(&self) -> bool {
        !is_forked() && (!self.has_failed() || self.finish().is_ok())
    }

    /// Makes the device begin with what was launched, without waiting.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn flush(&self) -> Result<(), DeviceError> {
        self.check_lost()?;
        self.noted(self.queue.flush().called("clFlush"))
    }

    /// Builds `source` with `options`, unless this device has done so before, or loads it from the user's cache: `$SOCBFS_CACHE_DIR`, else
    /// `$XDG_CACHE_HOME/socbfs`, else `~/.cache/socbfs`, and in it `programs`. There is no cache if that folder can't be written or
    /// `SOCBFS_CACHE_DIR` is empty. For PoCL, which has its own cache, it only keeps that the program was built before.
    ///
    /// # Errors
    /// [`OpenClError::Build`] with the compiler's log.
    pub fn program(self: &Arc<Self>, source: &str, options: &str) -> Result<Program, OpenClError> {
        // The lock is held while a program is built, since some drivers do not handle two builds at a time well.
        let mut built = locked(&self.built);
        if let Some(old) = built.iter().find(|old| old.source == source && old.options == options) {
            return Ok(Program::again(self, &old.program));
        }
        let program = Program::new(self, Cache::of_user(), self.driver.keeps_kernels, source, options)?;
        built.push(Built { source: source.to_owned(), options: options.to_owned(), program: program.shared() });
        Ok(program)
    }

    /// Builds `files`, the first of which is common to all others, as one program from which `kernels` makes its kernels. If the driver
    /// fails at one of the two, each file becomes a program of its own: some compilers of Adreno GPUs crash or run out of memory at many
    /// kernels in one. If that helps, the cache remembers it, so that the next start does not make the driver fail again.
    ///
    /// # Errors
    /// As [`program`](Self::program), and those of `kernels`.
    pub fn kernels<T>(
        self: &Arc<Self>,
        files: &[&str],
        options: &str,
        kernels: impl Fn(&Program) -> Result<T, OpenClError>,
    ) -> Result<T, OpenClError> {
        let (whole, cache) = (files.concat(), Cache::of_user());
        let entry = cache.map(|cache| (cache, Key::new(&self.info, &whole, "a program per file")));
        let is_known = || entry.as_ref().is_some_and(|(cache, key)| cache.load(key).is_some());
        let failure = if self.limits.program_per_file || is_known() {
            None
        } else {
            match self.program(&whole, options).and_then(|program| kernels(&program)) {
                Err(error) if error.is_of_build() => Some(error),
                made => return made,
            }
        };
        let (common, others) = files.split_first().unwrap_or((&"", &[]));
        let programs: Result<Vec<_>, _> = others.iter().map(|file| self.program(&[common, *file].concat(), options)).collect();
        let made = programs.and_then(|programs| kernels(&Program::of(self, &programs)));
        match (made, failure) {
            (Err(error), Some(failure)) if error.is_of_build() => Err(failure),
            (made, Some(failure)) => {
                log::warn!("{}: its driver fails at one program with all kernels, but not at a program per file", self.info.name);
                log::debug!("{failure}");
                if let Some((cache, key)) = entry {
                    cache.store(&key, b"needed");
                }
                made
            }
            (made, None) => made,
        }
    }

    /// As [`program`](Self::program), with the cache in `folder`, and without reuse of what this device has built before.
    ///
    /// # Errors
    /// As [`program`](Self::program).
    pub fn program_in(self: &Arc<Self>, folder: &Path, source: &str, options: &str) -> Result<Program, OpenClError> {
        Program::new(self, Cache::in_folder(folder), false, source, options)
    }

    pub(super) fn id(&self) -> cl_device_id {
        self.info.device_id as cl_device_id
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// Puts a command into the queue by `enqueue`, unless the device is lost. Records a failure.
    #[inline]
    pub(super) fn enqueue<E: Into<ClError>>(
        &self,
        call: &'static str,
        work: Work,
        enqueue: impl FnOnce(&CommandQueue) -> Result<Event, E>,
    ) -> Result<(), DeviceError> {
        // Locked meanwhile, so that the last event is that of the last command, whichever threads enqueue.
        let mut queued = locked(&self.queued);
        self.check_lost()?;
        let event = Owned::new(self.noted(enqueue(&self.queue).called(call))?);
        match work {
            Work::Bytes(bytes) => queued.expected_ns = queued.expected_ns.saturating_add(bytes as u64 * 1000 / MILLI_BYTES_PER_NS),
            Work::Kernel(is_first) => {
                queued.has_first |= is_first;
                if let Some(launches) = &self.launches {
                    let mut launches = locked(launches);
                    // SAFETY: the event is valid.
                    if launches.len() < launches.capacity() && unsafe { retain_event(event.get()) }.is_ok() {
                        launches.push(Owned::new(Event::new(event.get())));
                    }
                }
            }
        }
        // The event before is released when the lock no longer is held.
        let before = queued.last.replace(event);
        drop(queued);
        drop(before);
        Ok(())
    }

    /// Whether [`times`](Self::times) are kept.
    pub fn is_timed(&self) -> bool {
        self.launches.is_some()
    }

    /// Calls `each` with the time of every kernel launched since the last call, in the order of the launches, and forgets them. To be
    /// called after a wait, when the kernels have ended. Of more than 1024 launches, only the first 1024 are known. Allocates nothing.
    ///
    /// # Errors
    /// Errors of the driver, such as that a kernel has not ended.
    pub fn times(&self, each: impl FnMut(LaunchTime)) -> Result<(), DeviceError> {
        self.times_while(|_| true, each)
    }

    /// As [`times`](Self::times), for the launches before the first that has not ended; the others stay. For use during a long piece of
    /// work, in which another thread may have launched kernels that still run.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn times_of_ended(&self, each: impl FnMut(LaunchTime)) -> Result<(), DeviceError> {
        self.times_while(|event| matches!(event.command_execution_status(), Ok(CommandExecutionStatus(CL_COMPLETE))), each)
    }

    /// Forgets the launches whose times were not read: those after the last level of a search, or those of a search that failed, whose
    /// events may have no times.
    pub fn forget_times(&self) {
        if let Some(launches) = &self.launches {
            locked(launches).clear();
        }
    }

    fn times_while(&self, counts: impl Fn(&Event) -> bool, mut each: impl FnMut(LaunchTime)) -> Result<(), DeviceError> {
        const CALL: &str = "clGetEventProfilingInfo";
        let Some(launches) = &self.launches else { return Ok(()) };
        let mut launches = locked(launches);
        let ended = launches.iter().take_while(|event| counts(event)).count();
        for event in launches.drain(..ended) {
            let start_ns = event.profiling_command_start().called(CALL)?;
            let end_ns = event.profiling_command_end().called(CALL)?;
            each(LaunchTime { start_ns, end_ns });
        }
        Ok(())
    }

    /// Reserves `bytes` of the device's memory for a buffer, or refuses them.
    pub(super) fn take(&self, bytes: u64, what: &'static str) -> Result<(), OpenClError> {
        let limit = self.max_alloc_bytes();
        if bytes > limit {
            return Err(OpenClError::TooLarge { what, bytes, limit, device: self.info.name.clone() });
        }
        // Relaxed is enough: `fetch_add` gives each caller its own share of the budget, and no other memory depends on it.
        let before = self.used.fetch_add(bytes, Relaxed);
        match self.budget {
            Some(budget) if before.saturating_add(bytes) > budget => {
                self.used.fetch_sub(bytes, Relaxed);
                let why = format!("{before} of the {budget} bytes that it may use are taken");
                Err(OpenClError::OutOfMemory { what, bytes, device: self.info.name.clone(), why })
            }
            _ => Ok(()),
        }
    }

    /// Returns `bytes` that were reserved.
    pub(super) fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.finish().is_err() {
            leaked::count(0, &self.info.name);
            self.queue.keep();
            self.context.keep();
            std::mem::forget((self.launches.take(), self.queued.get_mut().unwrap_or_else(PoisonError::into_inner).last.take()));
            std::mem::forget(std::mem::take(self.built.get_mut().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({} of {})", self.info.name, self.info.platform)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opencl::info::tests::invented;

    #[test]
    fn the_smaller_limit_applies() {
        let info = invented("p", "d", DeviceKind::Gpu, 4);
        let own = Limits::default().within(&info);
        assert_eq!(
            own,
            Limits {
                max_alloc_bytes: Some(1 << 28),
                max_work_group: Some(256),
                local_bytes: Some(32 << 10),
                global_bytes: Some(1 << 30),
                timeout_s: Some(10),
                compute_units: Some(4),
                program_per_file: false,
            }
        );
        let tight = Limits {
            max_alloc_bytes: Some(5),
            max_work_group: Some(6),
            local_bytes: Some(7),
            global_bytes: Some(8),
            timeout_s: Some(10),
            compute_units: Some(9),
            program_per_file: true,
        };
        assert_eq!(tight.within(&info), tight);
        let wide = Limits {
            max_alloc_bytes: Some(1 << 40),
            max_work_group: Some(9999),
            local_bytes: Some(1 << 40),
            global_bytes: Some(1 << 40),
            ..own
        };
        assert_eq!(wide.within(&info), own);
        let narrow = DeviceInfo { max_work_item_sizes: vec![64, 1, 1], ..info };
        assert_eq!(Limits::default().within(&narrow).max_work_group, Some(64));
        // One unit is not believed of a GPU, unless the board says so.
        let one = |kind, board| Limits { compute_units: board, ..Limits::default() }.units(&invented("p", "d", kind, 1));
        assert_eq!((one(DeviceKind::Gpu, None), one(DeviceKind::Gpu, Some(1)), one(DeviceKind::Gpu, Some(3))), (8, 1, 3));
        assert_eq!((one(DeviceKind::Cpu, None), one(DeviceKind::Other, None)), (1, 1));
    }

    #[test]
    fn unusable_devices_are_not_opened() {
        let info = DeviceInfo { unusable: Some("no compiler".into()), ..invented("p", "d", DeviceKind::Gpu, 4) };
        let error = Device::open(&info, Limits::default()).unwrap_err();
        assert!(matches!(error, OpenClError::Unusable { .. }), "{error}");
    }
}
