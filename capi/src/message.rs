//! The result of an entry point: its code, and the message of each thread.

use std::{
    cell::RefCell,
    ffi::{CString, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::socbfs_code;

/// Why a call failed.
pub(crate) struct Failure {
    pub(crate) code: socbfs_code,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn null(what: &str) -> Self {
        Self { code: socbfs_code::SOCBFS_NULL, message: format!("{what} is null") }
    }

    pub(crate) fn argument(message: String) -> Self {
        Self { code: socbfs_code::SOCBFS_ARGUMENT, message }
    }

    pub(crate) fn input(message: String) -> Self {
        Self { code: socbfs_code::SOCBFS_INPUT, message }
    }

    pub(crate) fn memory(message: String) -> Self {
        Self { code: socbfs_code::SOCBFS_MEMORY, message }
    }

    pub(crate) fn stopped(message: String) -> Self {
        Self { code: socbfs_code::SOCBFS_STOPPED, message }
    }

    pub(crate) fn device(message: String) -> Self {
        Self { code: socbfs_code::SOCBFS_DEVICE, message }
    }

    pub(crate) fn no_sensor(message: String) -> Self {
        Self { code: socbfs_code::SOCBFS_NO_SENSOR, message }
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// The text without its zero bytes.
pub(crate) fn without_zeros(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// The message of this thread.
pub(crate) fn last() -> *const c_char {
    // A thread that is ending has no message any more.
    MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Does the work of an entry point. No panic unwinds out of it. If the work succeeds, this allocates nothing.
pub(crate) fn entry(work: impl FnOnce() -> Result<(), Failure>) -> socbfs_code {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return socbfs_code::SOCBFS_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
            let message = format!("a bug in socbfs: {}; please report it, and free the handle", said.unwrap_or("unknown panic"));
            Failure { code: socbfs_code::SOCBFS_PANIC, message }
        }
    };
    let _ = MESSAGE.try_with(|message| *message.borrow_mut() = without_zeros(&failure.message));
    failure.code
}
