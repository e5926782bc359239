//! Objects of opencl3, released without a panic.

use std::{
    mem::ManuallyDrop,
    ops::{Deref, DerefMut},
};

use opencl3::{
    command_queue::{CommandQueue, release_command_queue},
    context::{Context, context::release_context},
    event::{Event, release_event},
    kernel::{Kernel, release_kernel},
    memory::{Buffer, ClMem, release_mem_object},
    program::{Program, release_program},
};

/// An object that is released when it is dropped, unless it is [kept](Self::keep). An error of the driver is ignored.
///
/// The `drop` of every type of opencl3 ends in `.expect()`, and a driver that has lost its device refuses all calls, those that release
/// objects too. With `panic = "abort"`, as in the release profile, that would end the process, so these types are never dropped themselves.
/// What some of them own on the heap (a context's list of its one device, the names of a program's kernels) is not freed: a few hundred
/// bytes for each device that is opened.
pub(super) struct Owned<T: Object> {
    object: ManuallyDrop<T>,
    keep: bool,
}

impl<T: Object> Owned<T> {
    pub(super) fn new(object: T) -> Self {
        Self { object: ManuallyDrop::new(object), keep: false }
    }

    /// Never releases the object: a device may still use it.
    pub(super) fn keep(&mut self) {
        self.keep = true;
    }
}

impl<T: Object> Deref for Owned<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T: Object> DerefMut for Owned<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.object
    }
}

impl<T: Object> Drop for Owned<T> {
    #[inline]
    fn drop(&mut self) {
        if !self.keep {
            // SAFETY: the reference is the one that opencl3 made with the object, which is never dropped itself. A driver that fails here
            // has lost the device, which the next call reports.
            let _ = unsafe { self.object.release() };
        }
    }
}

/// An object whose references OpenCL counts.
pub(super) trait Object {
    /// Releases one reference.
    ///
    /// # Safety
    /// The reference must belong to the caller, which must not use it again.
    unsafe fn release(&self) -> Result<(), i32>;
}

macro_rules! objects {
    ($($object:ty, $release:ident;)*) => {$(
        impl Object for $object {
            #[inline]
            unsafe fn release(&self) -> Result<(), i32> {
                // SAFETY: the caller's promise.
                unsafe { $release(self.get()) }
            }
        }
    )*};
}

objects! {
    Context, release_context;
    CommandQueue, release_command_queue;
    Program, release_program;
    Kernel, release_kernel;
    Event, release_event;
    Buffer<u8>, release_mem_object;
}
