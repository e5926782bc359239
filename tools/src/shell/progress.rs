//! Progress bars on standard error, if it is a terminal, for work that takes longer than a second.

use std::{
    cell::RefCell,
    io::{IsTerminal, stderr},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::shown;
use socbfs::{input, runtime::Step};

/// Time before a bar appears: shorter work shows none.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two drawings of a bar.
const TICK: Duration = Duration::from_millis(100);

static ENABLED: AtomicBool = AtomicBool::new(true);

/// Switches progress off (`--quiet`).
pub(crate) fn disable() {
    ENABLED.store(false, Ordering::Relaxed);
}

/// The progress bar of one piece of work. It disappears when it is dropped.
pub(crate) struct Bar {
    bar: ProgressBar,
    started: Instant,
    visible: bool,
    timer: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Bar {
    /// Starts a bar that a thread of its own draws. `total` is 0 if it is not known.
    pub(crate) fn start(what: &str, total: u64) -> Self {
        let mut progress = Self::still(what, total);
        if progress.visible {
            let (stop, stopped) = mpsc::channel();
            let bar = progress.bar.clone();
            let draw = move || {
                if stopped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    // indicatif could tick by itself, but panics if it can't start its thread.
                    while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                        bar.tick();
                    }
                }
            };
            // If no thread can be started, there is no bar.
            progress.timer = thread::Builder::new().name("progress".into()).spawn(draw).ok().map(|thread| (stop, thread));
        }
        progress
    }

    /// A bar that only [`Bar::between`] draws, so that no thread wakes during timed work.
    pub(crate) fn still(what: &str, total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template = if total == 0 { "{msg} {spinner} {elapsed}" } else { "{msg} [{bar:30}] {percent} % {elapsed}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(shown::line(what));
        let visible = ENABLED.load(Ordering::Relaxed) && stderr().is_terminal();
        Self { bar, started: Instant::now(), visible, timer: None }
    }

    /// Moves the bar to `done`; for use between two pieces of timed work.
    pub(crate) fn between(&self, done: usize) {
        if self.visible && self.started.elapsed() > PATIENCE {
            if self.bar.is_hidden() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            self.bar.set_position(done as u64);
        }
    }

    /// As [`Bar::between`]; `words` become the message of the bar.
    pub(crate) fn between_saying(&self, done: u64, words: String) {
        self.bar.set_message(words);
        self.between(done as usize);
    }

    /// Adds work done.
    pub(crate) fn add(&self, done: u64) {
        if self.visible {
            self.bar.inc(done);
        }
    }
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
        if self.visible {
            if total > 0 && self.bar.length() != Some(total) {
                self.bar.set_length(total);
                if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {percent} % {elapsed}") {
                    self.bar.set_style(style.progress_chars("=> "));
                }
            }
            self.bar.set_position(done);
        }
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
    }
}
