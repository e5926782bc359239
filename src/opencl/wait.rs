//! Waits for a device that end, whatever its driver does.
//!
//! No call of OpenCL that waits has a time limit, and some drivers never return from one after a kernel has hung. So no such call is made
//! before the last command has ended. The caller asks for the state of its event, which does not wait: of a GPU at first without sleeping
//! ([`SPIN`]). Then it sleeps, with a limit, until the event calls back ([`Waiter`]), and asks now and then in case that the driver calls
//! back late or never.
//!
//! (Medians. NVIDIA's driver 580 on an H100: an empty launch takes 12 us with clFinish, 14 us when its state is asked for, and 50 to 110 us
//! with a callback, which after transfers of 1 MiB comes a millisecond late. PoCL on two cores: 29.2 us with clFinish, 29.5 us with a
//! callback; its kernels need the cores themselves. A thread that makes the waiting call and is abandoned takes 33.8 us.)

use std::{
    ffi::c_void,
    sync::{Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use opencl3::{
    event::{CL_COMPLETE, Event},
    types::{cl_event, cl_int},
};

use super::{
    error::{Called, DeviceError},
    locked::locked,
};

/// How long the caller asks a GPU for the state without sleeping: longer than a small level and its transfers take.
const SPIN: Duration = Duration::from_micros(200);

/// The shortest and the longest time for which the caller sleeps before it asks for the state. In between it is a quarter of the time that
/// it has slept.
const PAUSES: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(50));

/// What a driver's thread and the caller share.
#[derive(Default)]
struct Shared {
    has_ended: Mutex<bool>,
    changed: Condvar,
}

/// Waits for events, one at a time.
pub(super) struct Waiter {
    /// Whether the device is a GPU, which leaves the cores to the caller.
    is_gpu: bool,
    /// Never freed, since a driver may call back late, or twice.
    shared: &'static Shared,
}

impl Waiter {
    pub(super) fn new(is_gpu: bool) -> Self {
        Self { is_gpu, shared: Box::leak(Box::default()) }
    }

    /// Waits until the command of `event` has ended, which was flushed. Returns false if that takes longer than `limit` (zero: no limit).
    /// Time in which the process itself is stopped counts little.
    ///
    /// # Errors
    /// Errors of the driver; that of the command.
    pub(super) fn wait(&mut self, event: &Event, limit: Duration) -> Result<bool, DeviceError> {
        let begin = Instant::now();
        while self.is_gpu && begin.elapsed() < SPIN {
            if has_ended(event)? {
                return Ok(true);
            }
            // The driver, or the CPU's part of the level, may need this core.
            std::thread::yield_now();
        }
        *locked(&self.shared.has_ended) = false;
        let shared = std::ptr::from_ref(self.shared).cast_mut().cast();
        event.set_callback(CL_COMPLETE, ended, shared).called("clSetEventCallback")?;
        let (mut pause, mut waited) = (PAUSES.0, Duration::ZERO);
        loop {
            // The lock is not held during a call of the driver, which may call back from within.
            let (mut is_called, timeout) = self
                .shared
                .changed
                .wait_timeout_while(locked(&self.shared.has_ended), pause, |has_ended| !*has_ended)
                .unwrap_or_else(PoisonError::into_inner);
            *is_called = false;
            drop(is_called);
            if has_ended(event)? {
                return Ok(true);
            }
            if timeout.timed_out() {
                waited += pause;
                pause = (waited / 4).clamp(PAUSES.0, PAUSES.1);
                if !limit.is_zero() && waited >= limit {
                    return Ok(false);
                }
            }
        }
    }
}

/// Whether the command of `event` has ended. Its memory is then synchronised.
///
/// # Errors
/// Errors of the driver; that of the command.
fn has_ended(event: &Event) -> Result<bool, DeviceError> {
    const CALL: &str = "clGetEventInfo";
    match event.command_execution_status().called(CALL)?.0 {
        // The state of an event is no synchronisation; this call is, and returns at once.
        CL_COMPLETE => event.wait().called("clWaitForEvents").map(|()| true),
        code @ ..0 => Err(DeviceError { call: CALL, code }),
        _ => Ok(false),
    }
}

/// Called by the driver when the command has ended.
extern "C" fn ended(_: cl_event, _: cl_int, shared: *mut c_void) {
    // SAFETY: `wait` gave a pointer to a value that is never freed.
    let shared = unsafe { &*shared.cast::<Shared>() };
    *locked(&shared.has_ended) = true;
    shared.changed.notify_one();
}

/// Lets the process end although a driver may wait for its lost device when it is unloaded: what programs and libraries do at the end of
/// the process gets some seconds, and then the process ends with its exit code. (Only where the C library reports that code.)
pub(super) fn end_in_time() {
    #[cfg(target_env = "gnu")]
    {
        use std::{ffi::c_int, mem::MaybeUninit, ptr, sync::Once, thread};

        use nix::libc;

        /// What is done at the end of a process takes no longer, unless it hangs.
        const LIMIT: Duration = Duration::from_secs(3);
        unsafe extern "C" {
            fn on_exit(call: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
        }
        extern "C" fn exits(code: c_int, _: *mut c_void) {
            let ends = move || {
                thread::sleep(LIMIT);
                // SAFETY: ends the process.
                unsafe { libc::_exit(code) };
            };
            // Without the thread the process ends as it would have.
            drop(thread::Builder::new().spawn(ends));
        }
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let mut here = MaybeUninit::<libc::Dl_info>::uninit();
            // This library must stay loaded: a driver may call back late, and the function is called at the end.
            // SAFETY: `here` is filled if the call succeeds; the name that it then has is a string of the dynamic linker.
            unsafe {
                if libc::dladdr(ended as *const c_void, here.as_mut_ptr()) != 0 {
                    libc::dlopen(here.assume_init().dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
                }
            }
            // The functions are called in the reverse order of their registration, so this one is called before those of the drivers.
            // SAFETY: the function stays in memory.
            unsafe { on_exit(exits, ptr::null_mut()) };
        });
    }
}
