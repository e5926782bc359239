//! Samples the sensors of a selection in the background and reports the energy of windows of time.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{
    Change, Domain, Energy, Joules, Pace, Pick, RailEnergy, Reading, SelectError, Selection, Sensor, Signal, SignalKind, Sink, Skipped,
    TooSlow, Unusable,
    curve::{Curve, Totals},
    monotonic,
    watch::Watcher,
};

/// A counter that has not changed after this time counts as standing still: counters are refreshed every few milliseconds, and a running
/// machine uses power.
const WARM_UP: Duration = Duration::from_millis(1000);

/// Interval between two checks of the readings, during warm-up and after a window.
const LOOK: Duration = Duration::from_millis(5);

/// A window is complete if readings of a power cover at least this share of it, and one comes after its end. Across a gap, the power is
/// taken as linear.
const LEAST_COVERAGE: f64 = 0.95;

/// The same share for a counter, save for rounding: its energy in a gap, during which it was reset or may have wrapped unseen, is unknown.
const LEAST_COVERAGE_OF_COUNTER: f64 = 1.0 - 1e-9;

/// How long a window waits for a reading after its end, in addition to four refreshes of the sensor.
const PATIENCE: Duration = Duration::from_millis(1500);

/// A sensor, and the indices of its channels' curves.
#[derive(Debug)]
struct Slot {
    sensor: Box<dyn Sensor>,
    /// Index of the curve of every channel of the sensor (`None` if the channel is not measured).
    curves: Vec<Option<usize>>,
    due: u64,
}

/// The curves of the sensors that one thread reads, and the signal to that thread.
#[derive(Debug)]
struct Lane {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug)]
struct State {
    curves: Vec<Curve>,
    stop: bool,
    /// Number of requests to read all sensors at once.
    calls: u64,
    /// Counters whose changes are noted.
    watcher: Option<Watcher>,
}

impl Lane {
    fn state(&self) -> MutexGuard<'_, State> {
        // A curve is still valid after a thread has panicked while it pushed a reading.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pushes the readings of a sensor to its curves.
struct ToCurves<'l> {
    lane: &'l Lane,
    curves: &'l [Option<usize>],
}

impl Sink for ToCurves<'_> {
    fn put(&mut self, channel: usize, at: u64, reading: Reading) {
        if let Some(&Some(place)) = self.curves.get(channel) {
            let State { curves, watcher, .. } = &mut *self.lane.state();
            let before = curves[place].totals();
            curves[place].push(at, reading);
            if let Some(watcher) = watcher {
                let now = curves[place].totals();
                watcher.look(place, at, now.joules, now.joules != before.joules, now.rejected != before.rejected);
            }
        }
    }
}

/// Reads the sensors of a lane until `stop` is set: each at its own interval, and all of them after [`Meter::call`].
fn read_lane(lane: &Lane, mut slots: Vec<Slot>) {
    // By default the kernel may end each wait 50 us late, which is much where the changes of a counter are looked for.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut calls = 0;
    loop {
        let called = {
            let state = lane.state();
            if state.stop {
                return;
            }
            state.calls
        };
        let all = std::mem::replace(&mut calls, called) != called;
        let mut next = u64::MAX;
        for slot in &mut slots {
            let now = monotonic();
            let (interval, waits) = match slot.sensor.pace() {
                Pace::Every(interval) => (interval, false),
                Pace::Waits(pause) => (pause, true),
            };
            if all || slot.due <= now {
                slot.sensor.sample(&mut ToCurves { lane, curves: &slot.curves });
            }
            if slot.due <= now {
                let step = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
                // The next read is one interval after the planned time of this one, unless a whole interval was missed.
                let planned = slot.due.saturating_add(step);
                slot.due = if waits || planned <= now { monotonic().saturating_add(step) } else { planned };
            }
            if let Some(next) = lane.state().watcher.as_ref().and_then(|watcher| watcher.next(&slot.curves, monotonic())) {
                slot.due = next;
            }
            next = next.min(slot.due);
        }
        let state = lane.state();
        if state.stop {
            return;
        }
        let pause = Duration::from_nanos(next.saturating_sub(monotonic()));
        if state.calls == calls && !pause.is_zero() {
            // It does not matter why the wait ended: the loop checks everything again.
            drop(lane.wake.wait_timeout(state, pause));
        }
    }
}

/// A channel that is measured, and the place of its curve.
#[derive(Debug)]
struct Rail {
    pick: Pick,
    lane: usize,
    curve: usize,
}

/// A window that is open.
#[derive(Debug)]
#[must_use = "a window that is never ended measures nothing"]
pub struct Window {
    id: u64,
    begin: u64,
}

/// Measures the energy of windows. Threads of its own read the sensors until the meter is dropped; the thread that opens and ends windows
/// reads none.
#[derive(Debug)]
pub struct Meter {
    lanes: Vec<Arc<Lane>>,
    threads: Vec<JoinHandle<()>>,
    rails: Vec<Rail>,
    scope: String,
    skipped: Vec<Skipped>,
    missing: Vec<Domain>,
    marks: std::cell::Cell<u64>,
    /// The process that started the threads: a forked child has none of them.
    process: u32,
}

impl Meter {
    /// What the names of its threads begin with.
    pub const THREADS: &str = "power-";

    /// Starts to read the sensors of `selection`, and leaves out counters that stand still and sensors without a valid reading.
    ///
    /// # Errors
    /// [`SelectError`] if a sensor that the sum needs is one of those, or a thread can't be started.
    pub fn start(selection: Selection) -> Result<Self, SelectError> {
        let Selection { sources, picks, scope, skipped, missing } = selection;
        // The first lane has all sensors whose reads return at once.
        let mut lanes = vec![(Vec::<Slot>::new(), Vec::<Curve>::new())];
        let mut rails = Vec::new();
        for (source, picks) in sources.into_iter().zip(picks) {
            let Ok(sensor) = source.sensor else { continue };
            if picks.iter().all(Option::is_none) {
                continue;
            }
            // A sensor whose reads take long gets a lane of its own, since it would delay the others.
            let lane = match sensor.pace() {
                Pace::Every(_) => 0,
                Pace::Waits(_) => {
                    lanes.push((Vec::new(), Vec::new()));
                    lanes.len() - 1
                }
            };
            let (slots, curves) = &mut lanes[lane];
            let mut places = Vec::with_capacity(picks.len());
            for pick in picks {
                places.push(pick.map(|pick| {
                    curves.push(Curve::new(pick.channel.signal, pick.channel.refresh, pick.factor));
                    rails.push(Rail { pick, lane, curve: curves.len() - 1 });
                    curves.len() - 1
                }));
            }
            slots.push(Slot { sensor, curves: places, due: 0 });
        }
        let (marks, process) = (std::cell::Cell::new(0), std::process::id());
        let mut meter = Self { lanes: Vec::new(), threads: Vec::new(), rails, scope, skipped, missing, marks, process };
        for (index, (slots, curves)) in lanes.into_iter().enumerate() {
            let lane = Arc::new(Lane { state: Mutex::new(State { curves, stop: false, calls: 0, watcher: None }), wake: Condvar::new() });
            meter.lanes.push(lane.clone());
            if slots.is_empty() {
                continue;
            }
            let thread = thread::Builder::new().name(format!("{}{index}", Self::THREADS)).spawn(move || read_lane(&lane, slots));
            meter.threads.push(thread.map_err(|error| SelectError::NoSensor {
                reason: format!("no thread can be started to read the sensors: {error}"),
                cure: None,
            })?);
        }
        meter.warm_up()?;
        Ok(meter)
    }

    /// Waits until every rail is alive or its time is over, and leaves out those that are not alive.
    fn warm_up(&mut self) -> Result<(), SelectError> {
        let begin = Instant::now();
        let patience = |rail: &Rail| WARM_UP.max(3 * rail.pick.channel.refresh);
        let longest = self.rails.iter().map(patience).max().unwrap_or(WARM_UP);
        while begin.elapsed() < longest && !self.rails.iter().all(|rail| self.is_alive(rail) || begin.elapsed() >= patience(rail)) {
            thread::sleep(LOOK);
            self.call();
        }
        let milliseconds = begin.elapsed().as_millis() as u64;
        let dead: Vec<(usize, Unusable)> = self
            .rails
            .iter()
            .enumerate()
            .filter(|(_, rail)| !self.is_alive(rail))
            .map(|(index, rail)| {
                let state = self.lanes[rail.lane].state();
                let curve = &state.curves[rail.curve];
                let stands_still = matches!(rail.pick.channel.signal, Signal::Counter { .. }) && curve.totals().samples > 1;
                let problem =
                    if stands_still { Unusable::Still { milliseconds } } else { Unusable::Silent { milliseconds, last: curve.lost() } };
                (index, problem)
            })
            .collect();
        for (index, problem) in dead.into_iter().rev() {
            let rail = self.rails.remove(index);
            let skipped = Skipped::new(&rail.pick.channel, &problem);
            if rail.pick.counted && !rail.pick.dispensable {
                return Err(SelectError::Unusable(skipped));
            }
            self.skipped.push(skipped);
        }
        Ok(())
    }

    fn is_alive(&self, rail: &Rail) -> bool {
        let totals = self.lanes[rail.lane].state().curves[rail.curve].totals();
        match rail.pick.channel.signal {
            Signal::Counter { .. } => totals.joules > 0.0,
            Signal::Power => totals.samples > 0,
        }
    }

    /// Requests a read of every sensor, as soon as its thread runs.
    fn call(&self) {
        for lane in &self.lanes {
            lane.state().calls += 1;
            lane.wake.notify_all();
        }
    }

    /// What the counted rails cover together.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// The channels that are measured.
    pub fn picks(&self) -> impl Iterator<Item = &Pick> {
        self.rails.iter().map(|rail| &rail.pick)
    }

    /// Sensors that were found and are not measured, with the reasons.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The parts of the machine that the board profile counts and that no counted sensor measures: the sum is without them.
    pub fn missing(&self) -> &[Domain] {
        &self.missing
    }

    /// Names of the counted sensors.
    pub fn sensors(&self) -> Vec<String> {
        self.picks().filter(|pick| pick.counted).map(|pick| pick.channel.name()).collect()
    }

    /// The refresh interval of the slowest counted sensor.
    pub fn slowest(&self) -> Duration {
        self.picks().filter(|pick| pick.counted).map(|pick| pick.channel.refresh).max().unwrap_or_default()
    }

    /// Whether this is the child of a fork: it has none of the threads, and one may have held a lock that nothing releases here.
    fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    fn mark(&self) -> (u64, u64) {
        let id = self.marks.get();
        if self.is_forked() {
            return (id, monotonic());
        }
        self.marks.set(id + 1);
        // No reading is added between the time and the marks, however busy the machine is. The curves know only their last piece, so the
        // energy up to an earlier time would be that up to a later one.
        let mut states: Vec<_> = self.lanes.iter().map(|lane| lane.state()).collect();
        let at = monotonic();
        for state in &mut states {
            for curve in &mut state.curves {
                curve.mark(id, at);
            }
            state.calls += 1;
        }
        drop(states);
        for lane in &self.lanes {
            lane.wake.notify_all();
        }
        (id, at)
    }

    /// Opens a window now.
    pub fn begin(&self) -> Window {
        let (id, begin) = self.mark();
        Window { id, begin }
    }

    /// Refreshes that the slowest counted sensor has had since `window` was opened.
    pub fn refreshes(&self, window: &Window) -> u64 {
        if self.is_forked() {
            return 0;
        }
        let passed = monotonic().saturating_sub(window.begin);
        let of = |rail: &Rail| match rail.pick.channel.signal {
            // The hardware refreshes the counter whether it is read or not.
            Signal::Counter { .. } => passed / u64::try_from(rail.pick.channel.refresh.as_nanos()).unwrap_or(u64::MAX).max(1),
            Signal::Power => {
                let state = self.lanes[rail.lane].state();
                let curve = &state.curves[rail.curve];
                curve.marked(window.id).map_or(0, |begin| curve.totals().samples - begin.samples)
            }
        };
        self.rails.iter().filter(|rail| rail.pick.counted).map(of).min().unwrap_or(0)
    }

    /// Closes `window` now, waits for a reading of every sensor after its end, and reports its energy. The window is incomplete if such a
    /// reading does not come in time, and in the child of a fork, where nothing reads the sensors.
    pub fn end(&self, window: Window) -> Energy {
        let (id, end) = self.mark();
        let seconds = end.saturating_sub(window.begin) as f64 / 1e9;
        if self.is_forked() {
            let (none, why) = (Totals::default(), "the process was forked after the meter was started: start one in the child");
            let rails = self.rails.iter().map(|rail| rail_energy(&rail.pick, seconds, &none, None, &none, Some(why.to_owned())));
            return Energy::sum(&self.scope, window.begin as f64 / 1e9, seconds, rails.collect());
        }
        let begin = Instant::now();
        let totals = |rail: &Rail, id: u64| self.lanes[rail.lane].state().curves[rail.curve].marked(id);
        let patience = |rail: &Rail| PATIENCE + 4 * rail.pick.channel.refresh;
        while !self.rails.iter().all(|rail| totals(rail, id).is_some() || begin.elapsed() >= patience(rail)) {
            thread::sleep(LOOK);
        }
        let rails = self.rails.iter().map(|rail| {
            let state = self.lanes[rail.lane].state();
            let curve = &state.curves[rail.curve];
            let last = curve.totals();
            // A mark without a reading after it gets the totals up to the last reading.
            let at_begin = curve.marked(window.id).unwrap_or(last);
            let at_end = curve.marked(id);
            rail_energy(&rail.pick, seconds, &at_begin, at_end.as_ref(), &last, curve.lost().map(|lost| lost.to_string()))
        });
        let energy = Energy::sum(&self.scope, window.begin as f64 / 1e9, seconds, rails.collect());
        for lane in &self.lanes {
            for curve in &mut lane.state().curves {
                curve.unmark(window.id);
                curve.unmark(id);
            }
        }
        energy
    }

    /// Watches the counted sensors, which must be fast counters of energy: they are read several times for each of their changes.
    ///
    /// # Errors
    /// [`TooSlow`] with the first counted sensor that is none.
    pub fn watch(&self) -> Result<Watch<'_>, TooSlow> {
        if let Some(slow) = self.picks().filter(|pick| pick.counted).find_map(TooSlow::of) {
            return Err(slow);
        }
        for (place, lane) in self.lanes.iter().enumerate() {
            let mut state = lane.state();
            let rail = |curve: usize| {
                let is_watched = |rail: &&Rail| (rail.lane, rail.curve) == (place, curve) && rail.pick.counted;
                let (rail, of) = self.rails.iter().enumerate().find(|(_, rail)| is_watched(rail))?;
                Some((rail, of.pick.channel.refresh))
            };
            state.watcher = Some(Watcher::new((0..state.curves.len()).map(rail)));
        }
        self.call();
        Ok(Watch(self))
    }

    /// Measures for `duration` while this thread sleeps, to get the power of an idle machine.
    pub fn idle(&self, duration: Duration) -> Energy {
        let window = self.begin();
        thread::sleep(duration);
        self.end(window)
    }
}

/// Counters that are watched until this is dropped.
#[derive(Debug)]
#[must_use = "dropped, it watches nothing"]
pub struct Watch<'m>(&'m Meter);

impl Watch<'_> {
    /// Moves the changes that were seen since the last call to the end of `changes`, those of a counter in their order.
    pub fn take(&mut self, changes: &mut Vec<Change>) {
        for lane in &self.0.lanes {
            if let Some(watcher) = &mut lane.state().watcher {
                changes.append(&mut watcher.changes);
            }
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        for lane in &self.0.lanes {
            lane.state().watcher = None;
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.is_forked() {
            self.threads.drain(..).for_each(std::mem::forget);
            return;
        }
        for lane in &self.lanes {
            lane.state().stop = true;
            lane.wake.notify_all();
        }
        for thread in self.threads.drain(..) {
            // A panic of the thread has already been printed.
            let _ = thread.join();
        }
    }
}

fn rail_energy(pick: &Pick, seconds: f64, begin: &Totals, end: Option<&Totals>, last: &Totals, lost: Option<String>) -> RailEnergy {
    let until = end.unwrap_or(last);
    let covered = until.covered.saturating_sub(begin.covered) as f64 / 1e9;
    let coverage = if seconds > 0.0 { (covered / seconds).min(1.0) } else { 0.0 };
    let (least, gap) = match pick.channel.signal {
        Signal::Counter { .. } => (LEAST_COVERAGE_OF_COUNTER, "the counter was reset, or was not read for too long"),
        Signal::Power => (LEAST_COVERAGE, "readings are missing"),
    };
    let reason = || lost.clone().unwrap_or_else(|| gap.to_owned());
    let problem = if end.is_none() {
        Some(format!("no reading after the end of the window ({}); {:.1} % of it is covered", reason(), 100.0 * coverage))
    } else if coverage < least {
        Some(format!("only {:.1} % of the window is covered ({})", 100.0 * coverage, reason()))
    } else {
        None
    };
    let joules = problem.is_none().then_some(Joules(until.joules - begin.joules));
    let samples = until.samples.saturating_sub(begin.samples);
    RailEnergy {
        sensor: pick.channel.name(),
        family: pick.channel.family,
        label: pick.channel.label.clone(),
        domain: pick.domain,
        counted: pick.counted,
        watts: joules.and_then(|joules| joules.over(seconds)),
        joules,
        signal: match pick.channel.signal {
            Signal::Counter { .. } => SignalKind::Counter,
            Signal::Power => SignalKind::Power,
        },
        samples,
        rate_hertz: if seconds > 0.0 { samples as f64 / seconds } else { 0.0 },
        refresh_ms: pick.channel.refresh.as_secs_f64() * 1e3,
        wraps: until.wraps.saturating_sub(begin.wraps),
        // If the sensor has gone, no reading comes after the missed ones, so they are counted up to now.
        missed: (if end.is_some() { until } else { last }).missed.saturating_sub(begin.missed),
        rejected: until.rejected.saturating_sub(begin.rejected),
        coverage,
        problem,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{
        channel::{Channel, Domain, Family, Lost, Scope},
        part::Component,
        source::Source,
        units::Watts,
    };

    /// A sensor of a constant power, or of its energy, that can vanish.
    #[derive(Debug)]
    struct Steps {
        signal: Signal,
        /// Time at which it vanishes, in nanoseconds of CLOCK_MONOTONIC.
        gone: Arc<AtomicU64>,
        born: u64,
        watts: f64,
    }

    impl Sensor for Steps {
        fn pace(&self) -> Pace {
            Pace::Every(Duration::from_millis(5))
        }

        fn sample(&mut self, sink: &mut dyn Sink) {
            let now = monotonic();
            let reading = match self.signal {
                _ if now >= self.gone.load(Ordering::Relaxed) => Reading::Unavailable(Lost::System(nix::libc::ENODEV)),
                Signal::Power => Reading::Power(Watts(self.watts)),
                Signal::Counter { range, .. } => {
                    let microjoules = (now - self.born) as f64 / 1e3 * self.watts;
                    Reading::Counter((range - 100_000 + microjoules as u64) % range)
                }
            };
            sink.put(0, now, reading);
        }
    }

    const COUNTER: Signal = Signal::Counter { joules_per_count: 1e-6, range: 262_143_328_850 };

    fn source(id: &str, signal: Signal, watts: f64, gone: &Arc<AtomicU64>) -> Source {
        let channel = Channel {
            family: if signal == Signal::Power { Family::Ina2xx } else { Family::Powercap },
            id: id.to_owned(),
            label: None,
            domain: Domain::Package,
            scope: Scope::CpuPackage,
            part: Component::rail(id),
            signal,
            refresh: Duration::from_millis(5),
            place: String::new(),
        };
        Source::new(vec![channel], Ok(Box::new(Steps { signal, gone: gone.clone(), born: monotonic(), watts })))
    }

    fn never() -> Arc<AtomicU64> {
        Arc::new(AtomicU64::new(u64::MAX))
    }

    fn meter(sources: Vec<Source>) -> Result<Meter, SelectError> {
        let names: Vec<String> = sources.iter().map(|source| source.channels[0].name()).collect();
        Meter::start(Selection::named(sources, &names, None)?)
    }

    /// A thread that waits while readings are added opens its window after them.
    #[test]
    fn a_window_begins_after_every_reading_that_the_curves_have() {
        let meter = meter(vec![source("a", Signal::Power, 3.0, &never())]).unwrap();
        let (locked, lane) = (Arc::new(std::sync::Barrier::new(2)), meter.lanes[0].clone());
        let at_lock = locked.clone();
        let reader = thread::spawn(move || {
            let mut state = lane.state();
            at_lock.wait();
            for _ in 0..10 {
                thread::sleep(Duration::from_millis(5));
                state.curves[0].push(monotonic(), Reading::Power(Watts(3.0)));
            }
            monotonic()
        });
        locked.wait();
        let window = meter.begin();
        assert!(window.begin >= reader.join().unwrap());
        thread::sleep(Duration::from_millis(30));
        let energy = meter.end(window);
        assert!((energy.watts.unwrap().0 - 3.0).abs() < 1e-9, "{energy:?}");
    }

    #[test]
    fn powers_and_counters_give_the_energy_of_the_window() {
        let gone = never();
        let meter = meter(vec![source("a", Signal::Power, 8.0, &gone), source("b", COUNTER, 20.0, &gone)]).unwrap();
        let window = meter.begin();
        thread::sleep(Duration::from_millis(300));
        let refreshes = meter.refreshes(&window);
        let energy = meter.end(window);
        assert!(energy.complete && energy.problem.is_none(), "{energy:?}");
        let watts = energy.watts.unwrap().0;
        assert!((watts - 28.0).abs() < 0.3, "{energy:?}");
        assert!(energy.seconds >= 0.3 && refreshes > 5);
        assert!(energy.rails.iter().all(|rail| rail.coverage > 0.99 && rail.samples > 5), "{energy:?}");
        // The counter begins just below its range, so it wrapped during warm-up or in the window; no reading was rejected for that.
        assert!(energy.rails.iter().all(|rail| rail.rejected == 0));
    }

    #[test]
    fn consecutive_windows_lose_no_energy() {
        let meter = meter(vec![source("b", COUNTER, 20.0, &never())]).unwrap();
        for _ in 0..5 {
            let energy = meter.idle(Duration::from_millis(40));
            assert!((energy.watts.unwrap().0 - 20.0).abs() < 1.0, "{energy:?}");
        }
    }

    #[test]
    fn a_sensor_that_vanishes_leaves_the_window_incomplete() {
        for signal in [Signal::Power, COUNTER] {
            let gone = never();
            let meter = meter(vec![source("a", signal, 8.0, &gone), source("z", Signal::Power, 1.0, &never())]).unwrap();
            let window = meter.begin();
            thread::sleep(Duration::from_millis(100));
            gone.store(monotonic(), Ordering::Relaxed);
            thread::sleep(Duration::from_millis(100));
            let energy = meter.end(window);
            assert_eq!((energy.complete, energy.joules, energy.watts), (false, None, None));
            let problem = energy.problem.unwrap();
            assert!(problem.contains("No such device") && problem.contains("% of it is covered"), "{problem}");
            assert!(energy.rails[0].missed > 0 && energy.rails[0].coverage < 0.9, "{:?}", energy.rails[0]);
            assert!(energy.rails[1].joules.is_some());
        }
    }

    #[test]
    fn a_forked_process_has_no_energy_of_a_meter_whose_threads_it_does_not_have() {
        let meter = meter(vec![source("a", Signal::Power, 3.0, &never())]).unwrap();
        let window = meter.begin();
        let lane = meter.lanes[0].clone();
        // As by a thread that adds a reading at that moment.
        let held = lane.state();
        // SAFETY: the child only frees and allocates memory, and ends.
        let child = unsafe { nix::libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let energy = meter.end(window);
            drop(meter.begin());
            let is_told = energy.joules.is_none() && energy.problem.is_some_and(|problem| problem.contains("start one in the child"));
            drop(meter);
            // SAFETY: ends the child without the parent's handlers.
            unsafe { nix::libc::_exit(if is_told { 7 } else { 8 }) };
        }
        drop(held);
        let begin = Instant::now();
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        while unsafe { nix::libc::waitpid(child, &raw mut status, nix::libc::WNOHANG) } == 0 {
            if begin.elapsed() > Duration::from_secs(20) {
                // SAFETY: ends the child, which has not been waited for.
                unsafe { nix::libc::kill(child, nix::libc::SIGKILL) };
            }
            thread::sleep(LOOK);
        }
        assert!(nix::libc::WIFEXITED(status) && nix::libc::WEXITSTATUS(status) == 7, "{status}");
    }

    #[test]
    fn a_counter_that_does_not_change_is_refused() {
        let error = meter(vec![source("psys", COUNTER, 0.0, &never())]).unwrap_err();
        assert!(error.to_string().contains("did not change"), "{error}");
    }

    #[test]
    fn a_counter_that_was_reset_in_a_window_leaves_it_incomplete() {
        let channel = source("a", COUNTER, 10.0, &never()).channels.remove(0);
        let pick = Pick { domain: channel.domain, channel, counted: true, factor: 1.0, dispensable: false };
        // 10 W, read once a second for 20 s. The energy of the tenth second is lost if the counter starts again in it.
        for (reset, joules) in [(u64::MAX, Some(200.0)), (10, None)] {
            let mut curve = Curve::new(COUNTER, Duration::from_millis(5), 1.0);
            for second in 0..=20 {
                let before = if second < reset { 100_000_000_000 } else { 0 };
                curve.push(second * 1_000_000_000, Reading::Counter(before + second * 10_000_000));
                if second == 0 {
                    curve.mark(0, 0);
                }
            }
            curve.mark(1, 20_000_000_000);
            let (begin, end) = (curve.marked(0).unwrap(), curve.marked(1).unwrap());
            let rail = rail_energy(&pick, 20.0, &begin, Some(&end), &curve.totals(), None);
            assert_eq!(rail.joules.map(|joules| joules.0.round()), joules, "{rail:?}");
            assert_eq!(rail.problem.is_some_and(|problem| problem.contains("the counter was reset")), joules.is_none());
        }
    }

    #[test]
    fn a_sensor_without_valid_readings_is_refused() {
        let gone = Arc::new(AtomicU64::new(0));
        let error = meter(vec![source("a", Signal::Power, 5.0, &gone)]).unwrap_err();
        assert!(error.to_string().contains("no valid reading") && error.to_string().contains("No such device"), "{error}");
    }

    #[test]
    fn optional_sensors_that_fail_are_skipped_and_named() {
        let mut sources = vec![source("intel-rapl:0", COUNTER, 5.0, &never()), source("intel-rapl:0:2", COUNTER, 0.0, &never())];
        sources[0].channels[0].part = Component::package(0);
        sources[1].channels[0].part = Component::memory(0);
        sources[1].channels[0].domain = Domain::Memory;
        let meter = Meter::start(Selection::automatic(sources, None).unwrap()).unwrap();
        assert_eq!(meter.sensors(), ["powercap:intel-rapl:0"]);
        assert!(meter.skipped()[0].to_string().contains("intel-rapl:0:2: its value did not change"), "{:?}", meter.skipped());
        assert_eq!(meter.picks().count(), 1);
    }
}
