//! What nothing in the program can go on after: a panic, and memory that is refused where no error can be given. Either ends it with exit
//! code 2 and a line that says why, as every error does, and leaves no temporary.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::Write,
    panic::PanicHookInfo,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use nix::libc;
use signal_hook::{consts::SIGABRT, low_level};

use crate::{files, input, opencl};

/// The exit code of an error.
const CODE: i32 = 2;

/// Bytes of the last request that was refused.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// The allocator of the system, which remembers what it refused: the standard library aborts then, and says nothing of a cure.
#[derive(Debug)]
pub struct Allocator;

impl Allocator {
    #[inline]
    fn noted(start: *mut u8, bytes: usize) -> *mut u8 {
        if start.is_null() {
            REFUSED.store(bytes, Relaxed);
        }
        start
    }
}

// SAFETY: all calls are the system allocator's, with the same arguments and results.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract, which is the same.
        Self::noted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        Self::noted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        Self::noted(unsafe { System.realloc(start, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Watches for both.
pub(super) fn watch() {
    std::panic::set_hook(Box::new(panicked));
    let aborted = || {
        let (bytes, asking) = (REFUSED.load(Relaxed), opencl::is_asking());
        if bytes > 0 || asking {
            // Nothing here allocates or locks.
            let mut line = [0; 160];
            let mut rest = &mut line[..];
            let room = rest.len();
            let _ = if asking {
                writeln!(
                    rest,
                    "error: an OpenCL driver ended the program when asked for its devices\n  help: --device cpu does without them"
                )
            } else {
                writeln!(rest, "error: no memory for {bytes} bytes more; use a smaller graph or a machine with more memory")
            };
            let written = room - rest.len();
            // SAFETY: `written` bytes of `line` are initialised; ends the process.
            unsafe {
                libc::write(2, line.as_ptr().cast(), written);
                libc::_exit(CODE);
            }
        }
    };
    // SAFETY: the handler calls nothing but what may be called in one.
    if let Err(error) = unsafe { low_level::register(SIGABRT, aborted) } {
        log::debug!("aborts are not explained: {error}");
    }
}

fn panicked(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let reason = payload.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| payload.downcast_ref::<String>().cloned());
    let reason = reason.unwrap_or_default();
    let place = info.location().map_or_else(String::new, ToString::to_string);
    if std::thread::current().name() == Some(input::READING) {
        super::say(&format!("error: the data are damaged: their decompressor gave up ({reason})"));
    } else {
        super::say(&format!("error: a mistake in socbfs, at {place}: {reason}"));
        super::say("  help: please report it, with the command; SECURITY.md says how if the input came from somebody else");
    }
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
        super::say(&std::backtrace::Backtrace::force_capture().to_string());
    }
    files::try_remove_temporaries();
    // SAFETY: ends the process; not by `exit`, for the other threads go on.
    unsafe { libc::_exit(CODE) };
}
