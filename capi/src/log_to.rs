//! Passes messages of the library to a callback.

use std::{
    ffi::c_void,
    sync::{PoisonError, RwLock},
};

use log::{LevelFilter, Log, Metadata, Record};

use crate::{
    message::{Failure, without_zeros},
    socbfs_log,
};

/// The callback and its argument `user`.
struct Target(socbfs_log, *mut c_void);

// SAFETY: the pointer is only passed to the callback, which may be called from any thread (`socbfs_log_to`).
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

pub(crate) struct Logger(RwLock<Target>);

static LOGGER: Logger = Logger(RwLock::new(Target(None, std::ptr::null_mut())));

impl Logger {
    pub(crate) fn install(level: u32, callback: socbfs_log, user: *mut c_void) -> Result<(), Failure> {
        let filter = match (callback, level) {
            (None, _) | (_, 0) => LevelFilter::Off,
            (_, 1) => LevelFilter::Error,
            (_, 2) => LevelFilter::Warn,
            (_, 3) => LevelFilter::Info,
            _ => LevelFilter::Debug,
        };
        // The first call installs the logger; a later call finds it installed.
        let is_ours = log::set_logger(&LOGGER).is_ok() || std::ptr::addr_eq(log::logger(), &raw const LOGGER);
        if !is_ours {
            return Err(Failure::argument("the program has its own logger, which gets all messages".to_owned()));
        }
        // The write lock waits for running callbacks.
        *LOGGER.0.write().unwrap_or_else(PoisonError::into_inner) = Target(callback, user);
        log::set_max_level(filter);
        Ok(())
    }
}

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true // the crate `log` compares the level
    }

    fn log(&self, record: &Record<'_>) {
        let target = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Target(Some(callback), user) = *target {
            let message = without_zeros(&record.args().to_string());
            // SAFETY: the promise of `socbfs_log_to`.
            unsafe { callback(user, record.level() as u32, message.as_ptr()) };
        }
    }

    fn flush(&self) {}
}
