//! Stands in for the standard library in the sources that are checked: what threads share is loom's, the rest is the real one.

pub use real::{arch, fmt, marker, mem, ops, panic, process, slice};

pub mod cell {
    use real::ops::{Deref, DerefMut};

    pub use real::cell::Cell;

    /// A cell whose accesses loom sees.
    #[derive(Debug, Default)]
    pub struct UnsafeCell<T>(loom::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub fn new(value: T) -> Self {
            Self(loom::cell::UnsafeCell::new(value))
        }

        pub fn get(&self) -> Pointer<'_, T> {
            Pointer(&self.0)
        }
    }

    /// What `*` reads and writes, as through the pointer of a real cell.
    pub struct Pointer<'a, T>(&'a loom::cell::UnsafeCell<T>);

    impl<T> Deref for Pointer<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            // SAFETY: loom ends the model if a write of another thread is not ordered before.
            self.0.with(|value| unsafe { &*value })
        }
    }

    impl<T> DerefMut for Pointer<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: loom ends the model if an access of another thread is not ordered before.
            self.0.with_mut(|value| unsafe { &mut *value })
        }
    }
}

pub mod hint {
    pub use loom::hint::spin_loop;
}

pub mod ptr {
    use crate::memory::Places;

    /// Copies into places whose accesses loom sees.
    ///
    /// # Safety
    /// `from` has `count` entries.
    pub unsafe fn copy_nonoverlapping<T: Copy>(from: *const T, to: Places<T>, count: usize) {
        // SAFETY: `from` has so many entries (caller).
        (0..count).for_each(|i| to.at(i).set(unsafe { *from.add(i) }));
    }
}

pub mod sync {
    pub use loom::sync::Arc;

    /// Set once; loom has none.
    #[derive(Default)]
    pub struct OnceLock<T>(atomic::AtomicBool, super::cell::UnsafeCell<Option<T>>);

    impl<T> OnceLock<T> {
        pub fn new() -> Self {
            Self(atomic::AtomicBool::new(false), super::cell::UnsafeCell::new(None))
        }

        pub fn get(&self) -> Option<&T> {
            // SAFETY: the value is not written after the flag.
            self.0.load(atomic::Ordering::Acquire).then(|| unsafe { (*real::ptr::from_ref(&*self.1.get())).as_ref() }).flatten()
        }

        /// Unlike the real one: for one thread that calls it once.
        pub fn get_or_init(&self, make: impl FnOnce() -> T) -> Option<&T> {
            *self.1.get() = Some(make());
            self.0.store(true, atomic::Ordering::Release);
            self.get()
        }
    }

    pub mod mpsc {
        /// loom's has no bound, which makes no difference to a channel of one message.
        pub fn sync_channel<T>(_: usize) -> (loom::sync::mpsc::Sender<T>, loom::sync::mpsc::Receiver<T>) {
            loom::sync::mpsc::channel()
        }
    }

    pub mod atomic {
        pub use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

        use loom::sync::atomic::fence;
        use real::cell::Cell;

        loom::thread_local! {
            /// The thread has stored something since its last sequentially consistent access.
            static STORED: Cell<bool> = Cell::new(false);
        }

        /// loom takes a sequentially consistent access for one that acquires and releases; it knows the total order only of fences. So a
        /// fence stands before such a load if the thread's last store was such an access too, or if it has loaded so since. A weaker store
        /// has no place in the total order, and the fence would give it one.
        fn stored(order: Ordering) {
            STORED.with(|stored| stored.set(order != Ordering::SeqCst));
        }

        fn loading(order: Ordering) {
            if order == Ordering::SeqCst && !STORED.with(|stored| stored.replace(false)) {
                fence(Ordering::SeqCst);
            }
        }

        macro_rules! sequential {
            ($name:ident, $int:ty) => {
                #[derive(Debug)]
                pub struct $name(loom::sync::atomic::$name);

                impl $name {
                    pub fn new(value: $int) -> Self {
                        Self(loom::sync::atomic::$name::new(value))
                    }

                    pub fn into_inner(self) -> $int {
                        self.0.into_inner()
                    }

                    pub fn load(&self, order: Ordering) -> $int {
                        loading(order);
                        self.0.load(order)
                    }

                    pub fn store(&self, value: $int, order: Ordering) {
                        stored(order);
                        self.0.store(value, order);
                    }

                    pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                        stored(order);
                        self.0.fetch_add(value, order)
                    }

                    pub fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                        stored(order);
                        self.0.fetch_sub(value, order)
                    }

                    pub fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                        stored(order);
                        self.0.fetch_and(value, order)
                    }

                    pub fn fetch_update(
                        &self,
                        set: Ordering,
                        fetch: Ordering,
                        change: impl FnMut($int) -> Option<$int>,
                    ) -> Result<$int, $int> {
                        stored(set);
                        self.0.fetch_update(set, fetch, change)
                    }
                }
            };
        }

        sequential!(AtomicU32, u32);
        sequential!(AtomicUsize, usize);
    }
}

pub mod thread {
    pub use loom::thread::{Builder, JoinHandle, Thread, park, yield_now};

    pub fn sleep(_: super::time::Duration) {
        yield_now();
    }

    /// So many that threads do not yield their processor.
    pub fn available_parallelism() -> real::io::Result<real::num::NonZero<usize>> {
        Ok(real::num::NonZero::<usize>::MAX)
    }
}

pub mod time {
    pub use real::time::Duration;

    /// A clock on which all waiting has lasted too long.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
    pub struct Instant;

    impl Instant {
        pub fn now() -> Self {
            Self
        }

        pub fn elapsed(&self) -> Duration {
            Duration::MAX
        }
    }
}
