//! Pointers from C, checked as far as possible.

use std::{
    ffi::{CStr, c_char},
    sync::{Mutex, MutexGuard, TryLockError},
};

use crate::{message::Failure, socbfs_code};

/// # Safety
/// `handle` is null or points to a valid `T` for as long as the caller uses the reference.
pub(crate) unsafe fn pointer<'a, T>(handle: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: passed on.
    unsafe { handle.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// The place for a new handle. It is set to null, until [`give`] puts the handle there.
///
/// # Safety
/// `place` is null or points to a pointer.
pub(crate) unsafe fn out<'a, T>(place: *mut *mut T, what: &str) -> Result<&'a mut *mut T, Failure> {
    // SAFETY: passed on.
    let place = unsafe { place.as_mut() }.ok_or_else(|| Failure::null(what))?;
    *place = std::ptr::null_mut();
    Ok(place)
}

/// Puts a new handle at `place`.
pub(crate) fn give<T>(place: &mut *mut T, handle: T) {
    *place = Box::into_raw(Box::new(handle));
}

/// Frees a handle and sets its pointer to null.
///
/// # Safety
/// `place` is null, or points to null or to a handle of [`give`].
pub(crate) unsafe fn free<T>(place: *mut *mut T) {
    // SAFETY: passed on.
    let Some(place) = (unsafe { place.as_mut() }) else { return };
    let handle = std::mem::replace(place, std::ptr::null_mut());
    if !handle.is_null() {
        // SAFETY: `give` made it, and the only pointer to it that is known here has been set to null.
        let handle = unsafe { Box::from_raw(handle) };
        // A panic while it is dropped must not unwind into the caller either.
        let _ = crate::message::entry(|| {
            drop(handle);
            Ok(())
        });
    }
}

/// An array from C. Its pointer may be null only if it has no entries.
///
/// # Safety
/// `start` is null or points to `length` entries, for as long as the caller uses them.
pub(crate) unsafe fn array<'a, T>(start: *const T, length: usize, what: &str) -> Result<&'a [T], Failure> {
    check(start, length, what)?;
    // SAFETY: checked, and the caller's promise.
    Ok(if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(start, length) } })
}

/// # Safety
/// As for [`array`], and nothing else uses the entries.
pub(crate) unsafe fn array_mut<'a, T>(start: *mut T, length: usize, what: &str) -> Result<&'a mut [T], Failure> {
    check(start, length, what)?;
    // SAFETY: checked, and the caller's promise.
    Ok(if length == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(start, length) } })
}

fn check<T>(start: *const T, length: usize, what: &str) -> Result<(), Failure> {
    if length == 0 {
        return Ok(());
    }
    if start.is_null() {
        return Err(Failure::null(what));
    }
    if !start.is_aligned() {
        return Err(Failure::argument(format!("{what} is not aligned to {} bytes", align_of::<T>())));
    }
    if length > isize::MAX as usize / size_of::<T>() {
        return Err(Failure::argument(format!("{what} can't have {length} entries: more than the address space")));
    }
    Ok(())
}

/// A string from C; `None` if the pointer is null.
///
/// # Safety
/// `start` is null or points to a string that ends in 0, for as long as the caller uses it.
pub(crate) unsafe fn text<'a>(start: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if start.is_null() {
        return Ok(None);
    }
    // SAFETY: passed on.
    let text = unsafe { CStr::from_ptr(start) }.to_str();
    text.map(Some).map_err(|_| Failure::argument(format!("{what} is not UTF-8")))
}

/// Locks the content of a handle, which one thread may use at a time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Failure> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        // An earlier call panicked and returned SOCBFS_PANIC; the next search resets the state.
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(Failure {
            code: socbfs_code::SOCBFS_BUSY,
            message: "another thread uses this handle, or did when this process was forked: each needs one of its own".to_owned(),
        }),
    }
}
