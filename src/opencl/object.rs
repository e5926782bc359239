//! Memory that a device can access: allocation, mapping, transfer, and its present owner.

use std::{
    any::Any,
    ffi::c_void,
    fmt,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering::Relaxed},
    },
};

use nix::unistd::{SysconfVar, sysconf};
use opencl3::{
    command_queue::{enqueue_fill_buffer, enqueue_svm_map, enqueue_svm_mem_fill, enqueue_svm_unmap, enqueue_write_buffer},
    error_codes::CL_MAP_FAILURE,
    event::Event,
    memory::{
        Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE,
        CL_MEM_SVM_FINE_GRAIN_BUFFER, CL_MEM_USE_HOST_PTR, ClMem, svm_alloc, svm_free,
    },
    types::{CL_FALSE, CL_TRUE, cl_bool},
};

use super::{
    device::{Device, Work},
    error::{ARGUMENT_FREED, Called, DeviceError, HOST_OWNS_ARGUMENT, OUT_OF_RANGE, OpenClError},
    leaked,
    owned::Owned,
    pod::Pod,
};

/// The size of a page of the running system. Drivers import memory of the host by pages. (A Raspberry Pi 5 has pages of 16 KiB.)
pub fn page() -> usize {
    sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|bytes| bytes.try_into().ok()).unwrap_or(4096)
}

/// Where memory lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Where the device prefers. The host accesses it by transfers.
    Device,
    /// Where both sides can access it, according to the driver (CL_MEM_ALLOC_HOST_PTR). The host maps it.
    HostAccessible,
    /// In the host's own memory (CL_MEM_USE_HOST_PTR). The host maps it.
    OverHost {
        /// Its start.
        start: NonNull<c_void>,
        /// Whether kernels only read.
        read_only: bool,
    },
    /// Shared virtual memory that the host maps.
    SvmCoarse,
    /// Shared virtual memory that host and device own in turn without mapping.
    SvmFine,
}

/// The side that may use memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Hold {
    /// Kernels may read and write.
    Device = 0,
    /// Both may read.
    Reading = 1,
    /// Kernels must not touch it.
    Host = 2,
}

/// What the host does with memory that it maps. A device with its own memory copies the data accordingly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads.
    Read,
    /// It reads and writes.
    Write,
    /// It writes all of it. Earlier contents are lost.
    Overwrite,
}

/// The host's address of memory that it has mapped.
pub type Mapped = NonNull<c_void>;

/// The OpenCL handle of memory. (opencl3's `SvmVec` borrows its context, which here belongs to the device, and can grow. So shared virtual
/// memory is allocated and freed by the functions of opencl3 on which `SvmVec` is built.)
pub(super) enum Handle {
    Buffer(Owned<Buffer<u8>>),
    Svm(NonNull<c_void>),
}

/// Whole pages of the host that stay where they are.
///
/// # Safety
/// [`pages`](Self::pages) must return memory that starts at a multiple of [`page`]. From there, the number of bytes that it returns,
/// rounded up to a page, must be readable, writable, and used by nothing else. The memory must stay in place when the value is moved, until
/// it is dropped.
pub unsafe trait Pages: Any + Send + Sync {
    /// The start of the pages, and the number of their bytes in use.
    fn pages(&mut self) -> (NonNull<c_void>, usize);
}

/// Memory that a device can access. Kernels that have it as an argument keep it alive.
pub struct Memory {
    handle: Handle,
    /// The host's memory under the OpenCL object, if it is kept here. It is freed after the object.
    under: Option<Box<dyn Any + Send + Sync>>,
    device: Arc<Device>,
    kind: MemoryKind,
    bytes: usize,
    hold: AtomicU8,
    freed: AtomicBool,
}

// SAFETY: memory objects of OpenCL may be used by any thread, and by several at a time (OpenCL 1.2, appendix A.2).
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// `bytes` of memory (at least one), with undefined contents, owned by the device.
    ///
    /// # Errors
    /// [`OpenClError::TooLarge`], [`OpenClError::OutOfMemory`].
    ///
    /// # Safety
    /// For [`MemoryKind::OverHost`], the memory must be mapped readable (and writable unless `read_only`) from `start` for `bytes` rounded
    /// up to a page, until the last kernel that has it as an argument has run: see [`retire`](Self::retire).
    pub(crate) unsafe fn new(device: &Arc<Device>, kind: MemoryKind, bytes: usize, what: &'static str) -> Result<Arc<Self>, OpenClError> {
        // SAFETY: the caller's promise.
        Ok(Arc::new(unsafe { Self::made(device, kind, bytes, what) }?))
    }

    /// Memory over `slab`, which it keeps.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn over(device: &Arc<Device>, mut slab: impl Pages, what: &'static str) -> Result<Arc<Self>, OpenClError> {
        let (start, bytes) = slab.pages();
        // SAFETY: `Pages` are whole pages, which stay where they are and live as long as `slab`, which is kept until the object is gone.
        let mut memory = unsafe { Self::made(device, MemoryKind::OverHost { start, read_only: false }, bytes, what) }?;
        memory.under = Some(Box::new(slab));
        Ok(Arc::new(memory))
    }

    /// # Safety
    /// As [`new`](Self::new).
    unsafe fn made(device: &Arc<Device>, kind: MemoryKind, bytes: usize, what: &'static str) -> Result<Self, OpenClError> {
        // Devices refuse empty buffers. Memory of the host is shared by whole pages, if the device's largest buffer allows that.
        let bytes = bytes.max(1);
        let bytes = match (kind, bytes.checked_next_multiple_of(page())) {
            (MemoryKind::OverHost { .. }, Some(whole)) if whole as u64 <= device.max_alloc_bytes() => whole,
            _ => bytes,
        };
        device.take(bytes as u64, what)?;
        let context = device.context();
        let buffer = |flags, host| {
            // SAFETY: the context is valid; `host` is null or as the caller promises.
            unsafe { Buffer::create(context, flags, bytes, host) }.called("clCreateBuffer").map(Owned::new).map(Handle::Buffer)
        };
        let shared = |flags| {
            // SAFETY: the context is valid. 0 asks for the largest alignment of any type.
            let start = unsafe { svm_alloc(context.get(), CL_MEM_READ_WRITE | flags, bytes, 0) }.called("clSVMAlloc")?;
            NonNull::new(start).map(Handle::Svm).ok_or(DeviceError { call: "clSVMAlloc", code: CL_MAP_FAILURE })
        };
        let handle = match kind {
            MemoryKind::Device => buffer(CL_MEM_READ_WRITE, std::ptr::null_mut()),
            MemoryKind::HostAccessible => buffer(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, std::ptr::null_mut()),
            MemoryKind::OverHost { start, read_only } => {
                let access = if read_only { CL_MEM_READ_ONLY } else { CL_MEM_READ_WRITE };
                buffer(access | CL_MEM_USE_HOST_PTR, start.as_ptr())
            }
            MemoryKind::SvmCoarse => shared(0),
            MemoryKind::SvmFine => shared(CL_MEM_SVM_FINE_GRAIN_BUFFER),
        };
        match handle {
            Ok(handle) => Ok(Self {
                device: Arc::clone(device),
                kind,
                handle,
                bytes,
                hold: AtomicU8::new(Hold::Device as u8),
                freed: AtomicBool::new(false),
                under: None,
            }),
            Err(error) => {
                device.give(bytes as u64);
                Err(OpenClError::OutOfMemory { what, bytes: bytes as u64, device: device.info().name.clone(), why: error.to_string() })
            }
        }
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Sets the side that may use the memory.
    #[inline]
    pub(crate) fn set_hold(&self, hold: Hold) {
        // Relaxed is enough: calls to the queue order the accesses, and this is only a check.
        self.hold.store(hold as u8, Relaxed);
    }

    /// Ends the use of memory that kernels may still keep: waits for what runs, and refuses later launches with it.
    pub(crate) fn retire(&self) {
        // Relaxed is enough: the thread that frees memory is the one that launches kernels with it.
        self.freed.store(true, Relaxed);
        if let (Err(_), MemoryKind::OverHost { start, .. }) = (self.device.finish(), self.kind) {
            leaked::leak_range(start.as_ptr() as usize, self.bytes);
        }
    }

    /// Why a kernel with this memory as an argument must not start.
    #[inline]
    pub(super) fn refuses_launch(&self) -> Option<i32> {
        if self.freed.load(Relaxed) {
            return Some(ARGUMENT_FREED);
        }
        (self.hold.load(Relaxed) == Hold::Host as u8).then_some(HOST_OWNS_ARGUMENT)
    }

    /// Starts to map the bytes of `range` (at least one) for the host, after everything launched before. They are valid after the next wait
    /// for the device. The address may differ from the last one.
    ///
    /// # Errors
    /// [`OUT_OF_RANGE`]; errors of the driver.
    #[inline]
    pub(crate) fn map(&self, range: Range<usize>, access: Access) -> Result<Mapped, DeviceError> {
        let (offset, bytes) = (range.start, range.len());
        let flags = match access {
            Access::Read => CL_MAP_READ,
            Access::Write => CL_MAP_READ | CL_MAP_WRITE,
            Access::Overwrite => CL_MAP_WRITE_INVALIDATE_REGION,
        };
        match &self.handle {
            Handle::Buffer(buffer) => {
                const CALL: &str = "clEnqueueMapBuffer";
                let blocking = self.blocking()?;
                let mut start = std::ptr::null_mut();
                self.device.enqueue(CALL, Work::Bytes(bytes), |queue| {
                    // SAFETY: queue and buffer are valid and of one context; the driver refuses a range that does not lie inside.
                    unsafe { queue.enqueue_map_buffer(buffer, blocking, flags, offset, bytes, &mut start, &[]) }
                })?;
                NonNull::new(start).ok_or(DeviceError { call: CALL, code: CL_MAP_FAILURE })
            }
            &Handle::Svm(start) => {
                const CALL: &str = "clEnqueueSVMMap";
                if bytes == 0 || !self.holds(offset, bytes) {
                    return Err(DeviceError { call: CALL, code: OUT_OF_RANGE });
                }
                let blocking = self.blocking()?;
                // SAFETY: the range lies inside the allocation.
                let place = unsafe { start.byte_add(offset) };
                self.device.enqueue(CALL, Work::Bytes(bytes), |queue| {
                    // SAFETY: as above, and queue and memory are of one context. (opencl3's own method needs a slice of the memory, which
                    // must not exist while the device owns it.)
                    unsafe { enqueue_svm_map(queue.get(), blocking, flags, place.as_ptr(), bytes, 0, std::ptr::null()) }.map(Event::new)
                })?;
                Ok(place)
            }
        }
    }

    /// Whether transfers must wait, because of the driver. A call that waits has no limit, so everything launched is waited for before it.
    fn blocking(&self) -> Result<cl_bool, DeviceError> {
        if !self.device.driver().unwaited_transfers {
            return Ok(CL_FALSE);
        }
        self.device.finish()?;
        Ok(CL_TRUE)
    }

    /// Hands mapped memory back to the device.
    ///
    /// # Safety
    /// `mapped` must be the result of the last [`map`](Self::map), not yet unmapped, and nothing may refer to the memory.
    #[inline]
    pub(crate) unsafe fn unmap(&self, mapped: Mapped) -> Result<(), DeviceError> {
        match &self.handle {
            Handle::Buffer(buffer) => self.device.enqueue("clEnqueueUnmapMemObject", Work::Bytes(self.bytes), |queue| {
                // SAFETY: the caller's promise.
                unsafe { queue.enqueue_unmap_mem_object(buffer.get(), mapped.as_ptr(), &[]) }
            }),
            Handle::Svm(_) => self.device.enqueue("clEnqueueSVMUnmap", Work::Bytes(self.bytes), |queue| {
                // SAFETY: the caller's promise.
                unsafe { enqueue_svm_unmap(queue.get(), mapped.as_ptr(), 0, std::ptr::null()) }.map(Event::new)
            }),
        }
    }

    /// The start of shared virtual memory; `None` for a buffer.
    pub(crate) fn svm_start(&self) -> Option<NonNull<c_void>> {
        match self.handle {
            Handle::Svm(start) => Some(start),
            Handle::Buffer(_) => None,
        }
    }

    /// Starts to copy bytes from `offset` to `into`, after everything launched before.
    ///
    /// # Safety
    /// `into` must be writable for `bytes` bytes that nothing else accesses before the copy has ended.
    pub(crate) unsafe fn read(&self, offset: usize, into: *mut c_void, bytes: usize) -> Result<(), DeviceError> {
        const CALL: &str = "clEnqueueReadBuffer";
        let Some(buffer) = self.range(offset, bytes, CALL)? else { return Ok(()) };
        let blocking = self.blocking()?;
        // SAFETY: the caller's promise.
        let target = unsafe { std::slice::from_raw_parts_mut(into.cast::<u8>(), bytes) };
        let result = self.device.enqueue(CALL, Work::Bytes(bytes), |queue| {
            // SAFETY: the range lies inside the buffer, and the caller does not access `into` until it is written.
            unsafe { queue.enqueue_read_buffer(buffer, blocking, offset, target, &[]) }
        });
        kept_unless_ok(result, into as usize, bytes)
    }

    /// Starts to copy `bytes` bytes at `from` to `offset`, after everything launched before.
    ///
    /// # Safety
    /// `from` must be readable for `bytes` bytes, which nothing changes before the copy has ended.
    pub(crate) unsafe fn write(&self, offset: usize, from: *const c_void, bytes: usize) -> Result<(), DeviceError> {
        const CALL: &str = "clEnqueueWriteBuffer";
        let Some(buffer) = self.range(offset, bytes, CALL)? else { return Ok(()) };
        let blocking = self.blocking()?;
        let result = self.device.enqueue(CALL, Work::Bytes(bytes), |queue| {
            // SAFETY: the range lies inside the buffer, and the caller does not change `from` until it is read. (opencl3's own method
            // needs exclusive access to the buffer, which others may hold too.)
            unsafe { enqueue_write_buffer(queue.get(), buffer.get(), blocking, offset, bytes, from, 0, std::ptr::null()) }.map(Event::new)
        });
        kept_unless_ok(result, from as usize, bytes)
    }

    /// Waits for transfers of `bytes` at `host`. If that fails, transfers may still be under way, so the host's memory is kept.
    ///
    /// # Errors
    /// As [`Device::finish`].
    pub(crate) fn end_transfers(&self, host: usize, bytes: usize) -> Result<(), DeviceError> {
        kept_unless_ok(self.device.finish(), host, bytes)
    }

    /// Lets the device write `pattern` over and over into `bytes` bytes from `offset`. Does not wait.
    pub(crate) fn fill<T: Pod>(&self, pattern: T, offset: usize, bytes: usize) -> Result<(), DeviceError> {
        let (start, size) = (std::ptr::from_ref(&pattern).cast::<c_void>(), size_of::<T>());
        let call = if self.svm_start().is_some() { "clEnqueueSVMMemFill" } else { "clEnqueueFillBuffer" };
        if !self.holds(offset, bytes) {
            return Err(DeviceError { call, code: OUT_OF_RANGE });
        }
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range lies inside the memory and is made of whole patterns; the pattern is copied by the call.
        self.device.enqueue(call, Work::Bytes(bytes), |queue| unsafe {
            match &self.handle {
                Handle::Buffer(buffer) => enqueue_fill_buffer(queue.get(), buffer.get(), start, size, offset, bytes, 0, std::ptr::null()),
                Handle::Svm(memory) => {
                    enqueue_svm_mem_fill(queue.get(), memory.as_ptr().byte_add(offset), start, size, bytes, 0, std::ptr::null())
                }
            }
            .map(Event::new)
        })
    }

    fn holds(&self, offset: usize, bytes: usize) -> bool {
        offset.checked_add(bytes).is_some_and(|end| end <= self.bytes)
    }

    /// The buffer, if the range lies inside it; `None` for an empty range, which OpenCL refuses.
    fn range(&self, offset: usize, bytes: usize, call: &'static str) -> Result<Option<&Buffer<u8>>, DeviceError> {
        match &self.handle {
            Handle::Buffer(buffer) if self.holds(offset, bytes) => Ok((bytes > 0).then_some(buffer)),
            _ => Err(DeviceError { call, code: OUT_OF_RANGE }),
        }
    }
}

/// Keeps `bytes` of the host at `host` if `result` is an error: a transfer that failed may still be under way.
fn kept_unless_ok(result: Result<(), DeviceError>, host: usize, bytes: usize) -> Result<(), DeviceError> {
    if result.is_err() {
        leaked::leak_range(host, bytes);
    }
    result
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Releasing a buffer does not wait, and need not: running kernels hold their own references. But these references do not keep the
        // host's pages under the buffer, which may be freed here, and freeing shared virtual memory does not wait either.
        let waits = self.under.is_some() || matches!(self.handle, Handle::Svm(_));
        let ended = if waits { self.device.finish().is_ok() } else { self.device.is_sound() };
        if !ended {
            leaked::count(self.bytes as u64, &self.device.info().name);
            if let Handle::Buffer(buffer) = &mut self.handle {
                buffer.keep();
            }
            // This keeps the context and the queue too.
            std::mem::forget((self.under.take(), Arc::clone(&self.device)));
            return;
        }
        if let Handle::Svm(start) = self.handle {
            // SAFETY: allocated by `new`, and nothing runs any more.
            let _ = unsafe { svm_free(self.device.context().get(), start.as_ptr()) };
        }
        self.device.give(self.bytes as u64);
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes of {:?})", self.bytes, self.device)
    }
}
