//! Memory of the device, and read-only memory of the host that the device reads in place.

use std::{
    ffi::c_void,
    fmt,
    marker::PhantomData,
    ops::{Deref, Range},
    ptr::NonNull,
    sync::Arc,
};

use opencl3::error_codes::CL_MEM_OBJECT_ALLOCATION_FAILURE;

use super::{
    device::Device,
    error::{DeviceError, OUT_OF_RANGE, OpenClError},
    kernel::Argument,
    object::{Memory, MemoryKind, page},
    pod::Pod,
};

/// An array in the device's memory. The host accesses it by [`read`](Self::read) and [`write`](Self::write).
pub struct Buffer<T: Pod> {
    memory: Arc<Memory>,
    len: usize,
    values: PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// Room for `len` values, which are undefined until written.
    ///
    /// # Errors
    /// [`OpenClError::TooLarge`], [`OpenClError::OutOfMemory`], naming `what`.
    pub fn new(device: &Arc<Device>, len: usize, what: &'static str) -> Result<Self, OpenClError> {
        let bytes = len.saturating_mul(size_of::<T>());
        // SAFETY: this kind does not lie over the host's memory.
        let memory = unsafe { Memory::new(device, MemoryKind::Device, bytes, what) }?;
        Ok(Self { memory, len, values: PhantomData })
    }

    /// A copy of `values`.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`OpenClError::Call`] if the transfer fails.
    pub fn from_host(device: &Arc<Device>, values: &[T], what: &'static str) -> Result<Self, OpenClError> {
        let buffer = Self::new(device, values.len(), what)?;
        buffer.write(0..values.len(), values).map_err(|error| match error.code {
            // Some drivers allocate a buffer only when it is first used.
            CL_MEM_OBJECT_ALLOCATION_FAILURE => OpenClError::OutOfMemory {
                what,
                bytes: size_of_val(values) as u64,
                device: device.info().name.clone(),
                why: error.to_string(),
            },
            _ => error.on(&device.info().name),
        })?;
        Ok(buffer)
    }

    /// A buffer over `values` in place, without a copy. Kernels read it, and the host may only read `values` meanwhile.
    ///
    /// Only memory that starts at a page can be shared. Other memory is copied, and [`HostBuffer::is_zero_copy`] is `false`.
    ///
    /// # Errors
    /// As [`from_host`](Self::from_host).
    ///
    /// # Safety
    /// The buffer must be dropped before `values`, and not forgotten: its drop keeps kernels from reading freed memory.
    pub unsafe fn over_host<'a>(device: &Arc<Device>, values: &'a [T], what: &'static str) -> Result<HostBuffer<'a, T>, OpenClError> {
        let start = NonNull::from(values).cast::<c_void>();
        let zero_copy = !values.is_empty() && start.as_ptr() as usize % align(device) == 0;
        let buffer = if zero_copy {
            // SAFETY: pages are mapped as a whole, so that memory which starts at a page can be read to the end of its last page. Kernels
            // only read it, and `HostBuffer`, which the caller drops, ends its use before the borrow of `values` ends.
            let memory = unsafe { Memory::new(device, MemoryKind::OverHost { start, read_only: true }, size_of_val(values), what) }?;
            Self { memory, len: values.len(), values: PhantomData }
        } else {
            Self::from_host(device, values, what)?
        };
        Ok(HostBuffer { buffer, zero_copy, host: values })
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the values.
    pub fn bytes(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    /// Lets the device write `value` to all entries, after everything launched before. Does not wait.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn fill(&self, value: T) -> Result<(), DeviceError> {
        self.memory.fill(value, 0, self.len * size_of::<T>())
    }

    /// Lets the device write `value` to entry `place`, after everything launched before. Does not wait.
    ///
    /// # Errors
    /// [`OUT_OF_RANGE`]; errors of the driver.
    pub(crate) fn put(&self, place: usize, value: T) -> Result<(), DeviceError> {
        self.memory.fill(value, place.saturating_mul(size_of::<T>()), size_of::<T>())
    }

    /// Waits for everything launched before, then copies the values of `range` to `into`, which has as many.
    ///
    /// # Errors
    /// [`OUT_OF_RANGE`]; errors of the driver.
    pub fn read(&self, range: Range<usize>, into: &mut [T]) -> Result<(), DeviceError> {
        // SAFETY: the wait ends within this borrow; else the memory is kept.
        unsafe { self.read_later(range, into) }?;
        self.end_transfers(into)
    }

    /// Starts to copy the values of `range` to `into`, which has as many, after everything launched before. Does not wait.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Safety
    /// Nothing may access `into` before the device has finished its work ([`Device::finish`]), and `into` must live until then. If the
    /// device fails to finish, [`end_transfers`](Self::end_transfers) keeps the memory.
    pub(crate) unsafe fn read_later(&self, range: Range<usize>, into: &mut [T]) -> Result<(), DeviceError> {
        let offset = self.offset(&range, into.len(), "clEnqueueReadBuffer")?;
        // SAFETY: start and length are those of the slice, any bytes are values of its type, and the caller does not access it.
        unsafe { self.memory.read(offset, into.as_mut_ptr().cast(), size_of_val(into)) }
    }

    /// Waits for transfers from or to `host`. If that fails, its memory is kept.
    ///
    /// # Errors
    /// As [`Device::finish`].
    fn end_transfers(&self, host: &[T]) -> Result<(), DeviceError> {
        self.memory.end_transfers(host.as_ptr() as usize, size_of_val(host))
    }

    /// Copies `from` to the values of `range`, which are as many, after everything launched before, and waits for it.
    ///
    /// # Errors
    /// [`OUT_OF_RANGE`]; errors of the driver.
    pub fn write(&self, range: Range<usize>, from: &[T]) -> Result<(), DeviceError> {
        // SAFETY: the wait ends within this borrow; else the memory is kept.
        unsafe { self.write_later(range, from) }?;
        self.end_transfers(from)
    }

    /// Starts to copy `from` to the values of `range`, which are as many, after everything launched before. Does not wait.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Safety
    /// As [`read_later`](Self::read_later); others may read `from`.
    pub(crate) unsafe fn write_later(&self, range: Range<usize>, from: &[T]) -> Result<(), DeviceError> {
        let offset = self.offset(&range, from.len(), "clEnqueueWriteBuffer")?;
        // SAFETY: start and length are those of the slice, and the caller does not change it.
        unsafe { self.memory.write(offset, from.as_ptr().cast(), size_of_val(from)) }
    }

    fn offset(&self, range: &Range<usize>, len: usize, call: &'static str) -> Result<usize, DeviceError> {
        let fits = range.end <= self.len && range.end.checked_sub(range.start) == Some(len);
        if fits { Ok(range.start * size_of::<T>()) } else { Err(DeviceError { call, code: OUT_OF_RANGE }) }
    }
}

/// The alignment that host memory needs to be shared: a page, or more if the device requires it.
pub(crate) fn align(device: &Device) -> usize {
    (device.info().base_align_bytes as usize).max(page())
}

impl<T: Pod> Argument for Buffer<T> {
    fn memory(&self) -> Option<&Arc<Memory>> {
        Some(&self.memory)
    }
}

impl<T: Pod> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer<{}>[{}]", std::any::type_name::<T>(), self.len)
    }
}

/// Values of the host that kernels read, in place if that is possible. On the host it is a slice.
pub struct HostBuffer<'a, T: Pod> {
    buffer: Buffer<T>,
    zero_copy: bool,
    host: &'a [T],
}

impl<'a, T: Pod> HostBuffer<'a, T> {
    /// A copy of `values` in the device's memory.
    ///
    /// # Errors
    /// As [`Buffer::from_host`].
    pub fn copied(device: &Arc<Device>, values: &'a [T], what: &'static str) -> Result<Self, OpenClError> {
        Ok(Self { buffer: Buffer::from_host(device, values, what)?, zero_copy: false, host: values })
    }

    /// Whether the buffer lies over the host's own memory. A driver without access to that makes a copy nevertheless, and does not report
    /// it.
    pub fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }
}

impl<T: Pod> Deref for HostBuffer<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.host
    }
}

impl<T: Pod> Argument for HostBuffer<'_, T> {
    fn memory(&self) -> Option<&Arc<Memory>> {
        Some(&self.buffer.memory)
    }
}

impl<T: Pod> Drop for HostBuffer<'_, T> {
    fn drop(&mut self) {
        // Kernels may keep the buffer alive, but the owner of the memory under it may free that memory from now on.
        self.buffer.memory.retire();
    }
}

impl<T: Pod> fmt::Debug for HostBuffer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBuffer<{}>[{}]", std::any::type_name::<T>(), self.host.len())
    }
}
