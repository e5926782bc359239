//! Progress on standard error: a bar on a terminal before a second of silence has passed, else a line every ten seconds.

use std::{
    cell::RefCell,
    io::{IsTerminal, stderr},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{say, shown};
use socbfs::words::seconds;
use socbfs_boards::runtime::Step;
use socbfs_io as input;

/// Time without a bar before one appears, over all pieces of work: shorter work shows none.
const PATIENCE: Duration = Duration::from_millis(700);

/// Time between two drawings of a bar.
const TICK: Duration = Duration::from_millis(100);

/// Time between two lines where there is no terminal, and between two drawings of a bar during timed work.
const LINE: Duration = Duration::from_secs(10);

static ENABLED: AtomicBool = AtomicBool::new(true);

/// Which of how many graphs is worked on, and when the last line was written, or a bar drawn.
static PLACE: Mutex<(String, Option<Instant>)> = Mutex::new((String::new(), None));

/// The bars on the terminal: work shows one beside that of the work that it is a part of.
static ON_TERMINAL: Mutex<Vec<ProgressBar>> = Mutex::new(Vec::new());

/// Removes all bars from the terminal for good. Returns false if there is none.
pub(crate) fn clear() -> bool {
    disable();
    let on_terminal = ON_TERMINAL.lock().unwrap_or_else(PoisonError::into_inner);
    for bar in &*on_terminal {
        bar.finish_and_clear();
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    !on_terminal.is_empty()
}

/// Switches progress off (`--quiet`).
pub(crate) fn disable() {
    ENABLED.store(false, Ordering::Relaxed);
}

/// Says before the words of every bar that follows that this is graph `number` of `count`.
pub(crate) fn at_graph(number: usize, count: usize) {
    let place = if count > 1 { format!("graph {number} of {count}: ") } else { String::new() };
    PLACE.lock().unwrap_or_else(PoisonError::into_inner).0 = place;
}

/// Says that a graph is done, unless a bar has shown that.
pub(crate) fn graph_done(name: &str, took: Duration) {
    let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
    if !place.is_empty() && ENABLED.load(Ordering::Relaxed) && !stderr().is_terminal() {
        say(&format!("{place}{name}, {}", seconds(took.as_secs_f64())));
    }
}

/// Shows the progress of one piece of work. A bar disappears when it is dropped.
pub(crate) struct Bar {
    bar: ProgressBar,
    timer: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// Shows the progress of work that is not timed. `total` is 0 if it is not known.
    pub(crate) fn start(what: &str, total: u64) -> Self {
        Self::shown(what, total, TICK)
    }

    /// Shows the progress of timed work: between two pieces of it ([`Bar::between`]), and once in ten seconds, so that a thread hardly ever
    /// wakes during it.
    pub(crate) fn still(what: &str, total: u64) -> Self {
        Self::shown(what, total, LINE)
    }

    fn shown(what: &str, total: u64, tick: Duration) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        style(&bar, total);
        let mut progress = Self { bar, timer: None };
        progress.message(what);
        if ENABLED.load(Ordering::Relaxed) {
            let (stop, stopped) = mpsc::channel();
            let (bar, on_terminal) = (progress.bar.clone(), stderr().is_terminal());
            PLACE.lock().unwrap_or_else(PoisonError::into_inner).1.get_or_insert_with(Instant::now);
            let draw = move || {
                if on_terminal && stopped.recv_timeout(left_of(PATIENCE)) == Err(RecvTimeoutError::Timeout) {
                    let mut on_terminal = ON_TERMINAL.lock().unwrap_or_else(PoisonError::into_inner);
                    if ENABLED.load(Ordering::Relaxed) {
                        bar.set_draw_target(ProgressDrawTarget::stderr());
                        on_terminal.push(bar.clone());
                    }
                    drop(on_terminal);
                    bar.tick();
                    // indicatif could tick by itself, but panics if it can't start its thread.
                    while stopped.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                        bar.tick();
                        shown_now();
                    }
                    shown_now();
                }
                while !on_terminal && stopped.recv_timeout(left_of(LINE)) == Err(RecvTimeoutError::Timeout) {
                    line(&bar);
                }
            };
            // If no thread can be started, there is no bar.
            progress.timer = thread::Builder::new().name("progress".into()).spawn(draw).ok().map(|thread| (stop, thread));
        }
        progress
    }

    fn message(&self, words: &str) {
        let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        self.bar.set_message(shown::line(&format!("{place}{words}")));
    }

    /// Moves the bar to `done`; for use between two pieces of timed work.
    pub(crate) fn between(&self, done: usize) {
        self.bar.set_position(done as u64);
    }

    /// As [`Bar::between`]; `words` become the message of the bar.
    pub(crate) fn between_saying(&self, done: u64, words: &str) {
        self.message(words);
        self.between(done as usize);
    }

    /// Prints a line above the bar: a part of the work has this result.
    pub(crate) fn result(&self, line: &str) {
        if ENABLED.load(Ordering::Relaxed) {
            self.bar.suspend(|| say(line));
        }
    }

    /// Adds work done.
    pub(crate) fn add(&self, done: u64) {
        self.bar.inc(done);
    }
}

/// How a bar looks. It keeps to one line of 80 columns: the terminal cuts what is longer.
fn style(bar: &ProgressBar, total: u64) {
    let template = if total == 0 { "{spinner} {elapsed} {wide_msg}" } else { "[{bar:10}] {percent} % {eta} left: {wide_msg}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
}

/// What is left of `time` since something was shown.
fn left_of(time: Duration) -> Duration {
    let last = PLACE.lock().unwrap_or_else(PoisonError::into_inner).1;
    last.map_or(time, |last| time.saturating_sub(last.elapsed()))
}

fn shown_now() {
    PLACE.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(Instant::now());
}

/// Writes what a bar would show.
fn line(bar: &ProgressBar) {
    let mut words = format!("{}: {} s", bar.message(), bar.elapsed().as_secs());
    if let Some(total) = bar.length().filter(|&total| total > 0) {
        words += &format!(", {} %", 100 * bar.position() / total);
        if bar.position() > 0 {
            words += &format!(", about {} s left", bar.eta().as_secs());
        }
    }
    say(&words);
    shown_now();
}

/// Returns a function that shows each step of preparing a search.
pub(crate) fn steps() -> impl Fn(Option<Step>) {
    let shown = RefCell::new(None);
    move |step| {
        // The bar of the previous step must disappear before the next one starts.
        drop(shown.take());
        shown.replace(step.map(|step| Bar::start(&step.to_string(), 0)));
    }
}

impl input::Progress for Bar {
    fn update(&self, done: u64, total: u64) {
        if total > 0 && self.bar.length() != Some(total) {
            self.bar.set_length(total);
            style(&self.bar, total);
        }
        self.bar.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.timer.take() {
            drop(stop);
            // A panic of the drawing thread does not matter here.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
        ON_TERMINAL.lock().unwrap_or_else(PoisonError::into_inner).retain(|bar| !bar.is_finished());
    }
}
