//! What is known while drivers are asked which devices there are: that they are, for one that hangs or ends the process then.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

/// How long drivers may take before a warning.
const PATIENCE: Duration = Duration::from_secs(10);

static ASKING: AtomicBool = AtomicBool::new(false);

/// Whether drivers are being asked right now.
pub fn is_asking() -> bool {
    ASKING.load(SeqCst)
}

/// Lets `ask` ask them, and says so where they don't answer.
pub fn asking<T>(ask: impl FnOnce() -> T) -> T {
    asking_for(PATIENCE, ask, || {
        log::warn!("the OpenCL drivers have not said for {} s which devices there are; --device cpu does without them", PATIENCE.as_secs());
    })
}

fn asking_for<T>(patience: Duration, ask: impl FnOnce() -> T, late: impl FnOnce() + Send + 'static) -> T {
    let (answered, wait) = mpsc::channel::<()>();
    let watch = move || {
        if wait.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            late();
        }
    };
    // Without a thread nobody is told, and no harm is done.
    let _ = thread::Builder::new().name("socbfs-asking".into()).spawn(watch);
    ASKING.store(true, SeqCst);
    let answer = ask();
    ASKING.store(false, SeqCst);
    drop(answered);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_drivers_that_are_late_are_told_of() {
        let (told, late) = mpsc::channel();
        let (soon, in_time) = (told.clone(), Duration::from_secs(60));
        assert_eq!(asking_for(in_time, || 7, move || soon.send(()).unwrap()), 7);
        let wait = || late.recv_timeout(Duration::from_secs(20)).is_ok();
        assert!(asking_for(Duration::from_millis(10), wait, move || told.send(()).unwrap()));
    }
}
