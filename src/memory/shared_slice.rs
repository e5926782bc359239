//! One array that host and device use in turn.
//!
//! At any time the host owns it, or the device does, or both read. A side that does not own it can't reach it: while the device owns it,
//! the slice is empty on the host; while the host owns it, launches with it are refused. The [`SharingMode`] determines where the array is,
//! and what a handover does. Which mode is fastest differs from driver to driver, so it is measured ([`calibrate`](mod@crate::measure)).
//!
//! A handover transfers only the values of the range it is given. All other values are undefined after it, but they are still values of
//! their type, so reading them is not undefined behaviour.

use std::{
    fmt,
    ops::{Deref, DerefMut, Range},
    ptr::NonNull,
    str::FromStr,
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{OutOfMemory, Pod, Slab};
use crate::opencl::{
    Access, Argument, Device, DeviceError, DeviceInfo, HOST_OWNS_ARGUMENT, Hold, Mapped, Memory, MemoryKind, OUT_OF_RANGE, OpenClError,
    Pages, is_forked, page,
};

/// How an array is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharingMode {
    /// In memory that the driver chooses so that both can access it; the host maps it.
    AllocHostPtr,
    /// In the host's pages; the host maps it.
    UseHostPtr,
    /// In shared virtual memory that the host maps.
    SvmCoarse,
    /// In shared virtual memory that needs no mapping.
    SvmFine,
    /// In two copies; a handover copies values from one to the other.
    Copy,
}

impl SharingMode {
    /// All modes, those without a copy first.
    pub const ALL: [Self; 5] = [Self::AllocHostPtr, Self::UseHostPtr, Self::SvmCoarse, Self::SvmFine, Self::Copy];

    /// Whether `device` offers this mode.
    pub fn offered(self, device: &DeviceInfo) -> bool {
        match self {
            Self::AllocHostPtr | Self::UseHostPtr | Self::Copy => true,
            Self::SvmCoarse => device.svm_coarse,
            Self::SvmFine => device.svm_fine,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::AllocHostPtr => "alloc-host-ptr",
            Self::UseHostPtr => "use-host-ptr",
            Self::SvmCoarse => "svm-coarse",
            Self::SvmFine => "svm-fine",
            Self::Copy => "copy",
        }
    }
}

impl fmt::Display for SharingMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is not a sharing mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a sharing mode; known: alloc-host-ptr, use-host-ptr, svm-coarse, svm-fine, copy")]
pub struct UnknownWay(String);

impl FromStr for SharingMode {
    type Err = UnknownWay;

    fn from_str(text: &str) -> Result<Self, UnknownWay> {
        Self::ALL.into_iter().find(|way| way.name() == text).ok_or_else(|| UnknownWay(text.to_owned()))
    }
}

/// The owner of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// The host reads and writes.
    Host,
    /// The device reads and writes; on the host the slice is empty.
    Device,
    /// Both read.
    HostReading,
}

/// A reason why memory can't be shared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// The host has not enough memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The device has no memory, or its driver fails.
    #[error(transparent)]
    OpenCl(#[from] OpenClError),
    /// The device does not offer this sharing mode.
    #[error("{device} does not offer {way}")]
    NotOffered {
        /// The mode requested.
        way: SharingMode,
        /// Name of the device.
        device: String,
    },
}

enum Backing<T: Pod> {
    /// Memory of the host alone.
    Host(Slab<T>),
    /// Memory that is mapped while the host owns it. `mapped` is its address then.
    Mapped { memory: Arc<Memory>, mapped: Option<Mapped> },
    /// Fine-grained shared virtual memory: always at the same address.
    Fine { memory: Arc<Memory>, start: NonNull<T> },
    /// Two copies. `in_flight` is set while a transfer may be under way that has not been waited for.
    Copy { memory: Arc<Memory>, slab: Slab<T>, in_flight: bool },
}

/// An array that host and device own in turn. On the host it is a slice, which is empty while the device owns the array.
pub struct SharedSlice<T: Pod> {
    start: NonNull<T>,
    /// Number of values that the host sees: all of them, or none.
    len: usize,
    owner: Owner,
    whole: usize,
    /// Values that [`call_range`](Self::call_range) has requested.
    called: Range<usize>,
    way: Option<SharingMode>,
    backing: Backing<T>,
}

// SAFETY: it owns its memory, as a slab does, and its handles of the device may be used by any thread.
unsafe impl<T: Pod> Send for SharedSlice<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Pod> Sync for SharedSlice<T> {}

impl<T: Pod> SharedSlice<T> {
    /// `len` zeroed values of the host alone. Handovers do nothing: the host always owns them.
    ///
    /// # Errors
    /// [`OutOfMemory`], naming `what`.
    pub fn host(len: usize, what: &'static str) -> Result<Self, OutOfMemory> {
        Ok(Self::over(Slab::zeroed(len, what)?))
    }

    fn over(mut slab: Slab<T>) -> Self {
        let (start, len) = (of_slab(&mut slab), slab.len());
        Self { start, len, owner: Owner::Host, whole: len, called: 0..0, way: None, backing: Backing::Host(slab) }
    }

    /// `len` zeroed values that the host and `device` share. The host owns them first.
    ///
    /// # Errors
    /// [`ShareError`], naming `what`.
    pub fn on(device: &Arc<Device>, way: SharingMode, len: usize, what: &'static str) -> Result<Self, ShareError> {
        if !way.offered(device.info()) {
            return Err(ShareError::NotOffered { way, device: device.info().name.clone() });
        }
        let bytes = len.saturating_mul(size_of::<T>());
        // SAFETY: none of the kinds used here lies over the host's memory.
        let made = |kind| unsafe { Memory::new(device, kind, bytes, what) };
        let backing = match way {
            SharingMode::AllocHostPtr => Backing::Mapped { memory: made(MemoryKind::HostAccessible)?, mapped: None },
            SharingMode::SvmCoarse => Backing::Mapped { memory: made(MemoryKind::SvmCoarse)?, mapped: None },
            SharingMode::UseHostPtr => {
                // Rounded up twice, since a page need not hold a whole number of values.
                let padded = bytes.max(1).checked_next_multiple_of(page()).map_or(usize::MAX, |pages| pages.div_ceil(size_of::<T>()));
                let pages = WholePages { slab: Slab::<T>::zeroed(padded, what)?, bytes };
                Backing::Mapped { memory: Memory::over(device, pages, what)?, mapped: None }
            }
            SharingMode::SvmFine => {
                let memory = made(MemoryKind::SvmFine)?;
                let start = memory.svm_start().unwrap_or(NonNull::dangling()).cast();
                Backing::Fine { memory, start }
            }
            SharingMode::Copy => Backing::Copy { memory: made(MemoryKind::Device)?, slab: Slab::zeroed(len, what)?, in_flight: false },
        };
        let mut slice =
            Self { start: NonNull::dangling(), len: 0, owner: Owner::Device, whole: len, called: 0..0, way: Some(way), backing };
        slice.begin().map_err(|error| error.on(&device.info().name))?;
        if way != SharingMode::UseHostPtr {
            // SAFETY: the host owns the memory, and zero bytes are a value of `Pod` types.
            unsafe { slice.start.as_ptr().write_bytes(0, len) };
        }
        Ok(slice)
    }

    /// `len` zeroed values of the host in memory that the driver can transfer from and to directly. They stay the host's.
    ///
    /// (NVIDIA's driver 580 on an H100: an empty launch and a read of 1 KiB take 18 us to such memory, and 35 to 60 us to other memory.)
    ///
    /// # Errors
    /// As [`on`](Self::on).
    pub(crate) fn for_transfers(device: &Arc<Device>, len: usize, what: &'static str) -> Result<Self, ShareError> {
        let mut slice = Self::on(device, SharingMode::AllocHostPtr, len, what)?;
        // Memory that was mapped to be overwritten may be slow to read.
        let all = 0..len;
        slice.to_device(all.clone()).and_then(|()| slice.to_host(all)).map_err(|error| error.on(&device.info().name))?;
        Ok(slice)
    }

    /// Makes the host the owner without transferring any value.
    fn begin(&mut self) -> Result<(), DeviceError> {
        match &mut self.backing {
            Backing::Mapped { memory, mapped } => {
                // Pages of the host are zero already and must stay so. Any other memory is zeroed after this, or its values are undefined.
                let access = if self.way == Some(SharingMode::UseHostPtr) { Access::Write } else { Access::Overwrite };
                map::<T>(memory, mapped, 0..memory.bytes(), access, true)?;
            }
            Backing::Copy { memory, in_flight: true, .. } => memory.device().finish()?,
            _ => {}
        }
        self.arrive();
        Ok(())
    }

    /// The owner of the array.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// The sharing mode; `None` for memory of the host alone.
    pub fn way(&self) -> Option<SharingMode> {
        self.way
    }

    /// Number of values, whichever side owns them.
    pub fn device_len(&self) -> usize {
        self.whole
    }

    /// Bytes of the values, whichever side owns them.
    pub fn bytes(&self) -> u64 {
        (self.whole * size_of::<T>()) as u64
    }

    /// Makes the device the owner: kernels launched from now on may read and write. Transfers the values of `valid`.
    ///
    /// # Errors
    /// [`OUT_OF_RANGE`]; errors of the driver. If unmapping or copying fails, neither side owns the array: the slice is empty, and launches
    /// with it are refused.
    pub fn to_device(&mut self, valid: Range<usize>) -> Result<(), DeviceError> {
        self.check(&valid)?;
        if self.owner == Owner::Device {
            return Ok(());
        }
        match &mut self.backing {
            Backing::Host(_) => return Ok(()),
            Backing::Mapped { memory, mapped } => {
                // After a failure the host can't use the memory either: it is unknown whether the driver has ended the mapping.
                (self.start, self.len, self.owner) = (NonNull::dangling(), 0, Owner::Device);
                unmap(memory, mapped)?;
            }
            Backing::Fine { .. } => {}
            Backing::Copy { memory, slab, in_flight } => {
                if self.owner == Owner::Host {
                    // The slab is hidden until the device has finished. A transfer that fails may still be under way.
                    *in_flight = true;
                    (self.start, self.len, self.owner) = (NonNull::dangling(), 0, Owner::Device);
                    upload(memory, slab, valid)?;
                }
            }
        }
        self.hide();
        Ok(())
    }

    /// Makes the host the owner, after everything launched before. Transfers the values of `valid`.
    ///
    /// # Errors
    /// [`OUT_OF_RANGE`]; errors of the driver, including the loss of the device. The device then owns the array, and the slice is empty.
    pub fn to_host(&mut self, valid: Range<usize>) -> Result<(), DeviceError> {
        self.fetch(valid, true)?;
        self.arrive();
        Ok(())
    }

    /// Starts to transfer the values of `valid` to the host, without waiting. One [`Device::finish`] waits for several arrays, after which
    /// [`arrive`](Self::arrive) makes the host the owner. Until then the slice is empty.
    ///
    /// # Errors
    /// As [`to_host`](Self::to_host).
    pub(crate) fn call_to_host(&mut self, valid: Range<usize>) -> Result<(), DeviceError> {
        self.fetch(valid, false)
    }

    /// Makes the host the owner, after [`call_to_host`](Self::call_to_host) and a wait for the device.
    pub(crate) fn arrive(&mut self) {
        if let Some(start) = self.arrived() {
            self.show(start, Owner::Host);
        }
    }

    /// After a wait for the device: where the values start on the host, or those that are mapped. `None` if no mapping was requested.
    fn arrived(&mut self) -> Option<NonNull<T>> {
        match &mut self.backing {
            Backing::Host(slab) => Some(of_slab(slab)),
            Backing::Mapped { mapped, .. } => mapped.map(NonNull::cast),
            Backing::Fine { start, .. } => Some(*start),
            Backing::Copy { slab, in_flight, .. } => {
                *in_flight = false;
                Some(of_slab(slab))
            }
        }
    }

    /// Starts the handover to the host, and waits for its end if `waits`.
    fn fetch(&mut self, valid: Range<usize>, waits: bool) -> Result<(), DeviceError> {
        self.check(&valid)?;
        let before = self.owner;
        if before == Owner::Host {
            return Ok(());
        }
        match &mut self.backing {
            Backing::Host(_) => {}
            Backing::Mapped { memory, mapped } => {
                // Memory that was mapped for reading only is mapped again.
                (self.start, self.len, self.owner) = (NonNull::dangling(), 0, Owner::Device);
                unmap(memory, mapped)?;
                let access = if valid.is_empty() { Access::Overwrite } else { Access::Write };
                map::<T>(memory, mapped, 0..memory.bytes(), access, waits)?;
            }
            Backing::Fine { memory, .. } => {
                if waits {
                    memory.device().finish()?;
                }
            }
            Backing::Copy { memory, slab, in_flight } => {
                if before == Owner::Device && !valid.is_empty() {
                    *in_flight = true;
                    download(memory, slab, valid, waits)?;
                } else if waits && *in_flight {
                    memory.device().finish()?;
                }
            }
        }
        Ok(())
    }

    /// Lets both sides read: the host at once, kernels from now on. Transfers the values of `valid`.
    ///
    /// # Errors
    /// As [`to_device`](Self::to_device) if the host owns the array, else as [`to_host`](Self::to_host).
    pub fn read_both(&mut self, valid: Range<usize>) -> Result<(), DeviceError> {
        if let Backing::Host(_) = self.backing {
            return self.check(&valid);
        }
        let all = 0..self.whole;
        let start = self.read(valid, all, true)?;
        self.show(start, Owner::HostReading);
        Ok(())
    }

    /// Starts to transfer the values of `valid` alone to the host, for reading, without waiting. After one [`Device::finish`] for several
    /// arrays, [`range`](Self::range) returns them. No other values are transferred or mapped: apart from these, the slice is empty
    /// on the host until the next handover.
    ///
    /// # Errors
    /// As [`to_host`](Self::to_host).
    pub(crate) fn call_range(&mut self, valid: Range<usize>) -> Result<(), DeviceError> {
        self.called = 0..0;
        self.read(valid.clone(), valid.clone(), false)?;
        self.called = valid;
        Ok(())
    }

    /// The values of the last [`call_range`](Self::call_range), after a wait for the device. Both sides may then read them.
    pub(crate) fn range(&mut self) -> &[T] {
        let called = self.called.clone();
        let Some(start) = self.arrived() else { return &[] };
        let before = if matches!(self.backing, Backing::Mapped { .. }) { 0 } else { called.start };
        // SAFETY: `call_range` has checked that the range lies inside the allocation; where it is mapped, the mapping is the range alone.
        let start = unsafe { start.add(before) };
        self.show(start, Owner::HostReading);
        self.len = 0;
        // SAFETY: `called.len()` values from `start` were mapped for reading, or are the slab's, or need no mapping. The device only reads
        // them until the array, which is borrowed as long as the result, is handed over.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), called.len()) }
    }

    /// Lets the host read the values of `valid`. Maps those of `shown`, and returns where these start. Unless it `waits`, they are valid
    /// only after a wait for the device.
    fn read(&mut self, valid: Range<usize>, shown: Range<usize>, waits: bool) -> Result<NonNull<T>, DeviceError> {
        self.check(&valid)?;
        self.check(&shown)?;
        let before = self.owner;
        // SAFETY: `shown` was checked to lie inside the allocation.
        let at = |start: NonNull<T>| unsafe { start.add(shown.start) };
        Ok(match &mut self.backing {
            Backing::Host(slab) => at(of_slab(slab)),
            Backing::Mapped { memory, mapped } => {
                (self.start, self.len, self.owner) = (NonNull::dangling(), 0, Owner::Device);
                unmap(memory, mapped)?;
                if shown.is_empty() {
                    return Ok(NonNull::dangling());
                }
                map(memory, mapped, shown.start * size_of::<T>()..shown.end * size_of::<T>(), Access::Read, waits)?
            }
            Backing::Fine { memory, start } => {
                if waits && before == Owner::Device {
                    memory.device().finish()?;
                }
                at(*start)
            }
            Backing::Copy { memory, slab, in_flight } => {
                *in_flight = true;
                match before {
                    Owner::Device => download(memory, slab, valid, waits)?,
                    Owner::Host => {
                        // As in `to_device`.
                        (self.start, self.len, self.owner) = (NonNull::dangling(), 0, Owner::Device);
                        upload(memory, slab, valid)?;
                    }
                    Owner::HostReading => {}
                }
                *in_flight = !waits || before != Owner::Device;
                at(of_slab(slab))
            }
        })
    }

    /// Makes the host the owner, whichever side was and whatever handover failed, after a wait for the device. The values are undefined.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(crate) fn reclaim(&mut self) -> Result<(), DeviceError> {
        if self.owner == Owner::Host {
            return Ok(());
        }
        if let Backing::Mapped { memory, mapped: mapped @ Some(_) } = &mut self.backing {
            // A mapping for reading, or one that could not be ended and may no longer exist. If it does not exist, the driver's error does
            // no harm.
            let _ = unmap(memory, mapped);
            *mapped = None;
        }
        self.begin()
    }

    /// Lets the device write `value` to all entries, after everything launched before. Does not wait.
    ///
    /// # Errors
    /// [`HOST_OWNS_ARGUMENT`] unless the device owns the array; errors of the driver.
    pub fn fill_on_device(&self, value: T) -> Result<(), DeviceError> {
        match self.memory() {
            Some(memory) if self.owner == Owner::Device => memory.fill(value, 0, self.whole * size_of::<T>()),
            _ => Err(DeviceError { call: "clEnqueueFillBuffer", code: HOST_OWNS_ARGUMENT }),
        }
    }

    fn check(&self, valid: &Range<usize>) -> Result<(), DeviceError> {
        let inside = valid.start <= valid.end && valid.end <= self.whole;
        if inside { Ok(()) } else { Err(DeviceError { call: "handover", code: OUT_OF_RANGE }) }
    }

    fn memory(&self) -> Option<&Arc<Memory>> {
        match &self.backing {
            Backing::Host(_) => None,
            Backing::Mapped { memory, .. } | Backing::Fine { memory, .. } | Backing::Copy { memory, .. } => Some(memory),
        }
    }

    fn show(&mut self, start: NonNull<T>, owner: Owner) {
        (self.start, self.len, self.owner) = (start, self.whole, owner);
        if let Some(memory) = self.memory() {
            memory.set_hold(if owner == Owner::HostReading { Hold::Reading } else { Hold::Host });
        }
    }

    fn hide(&mut self) {
        (self.start, self.len, self.owner) = (NonNull::dangling(), 0, Owner::Device);
        if let Some(memory) = self.memory() {
            memory.set_hold(Hold::Device);
        }
    }
}

/// A slab of whole pages, since a device can't share a part of a page.
struct WholePages<T: Pod> {
    slab: Slab<T>,
    /// Bytes of it that are used.
    bytes: usize,
}

// SAFETY: a slab starts at a page, owns its memory, and does not move it; `SharedSlice::on` makes it whole pages that hold `bytes`.
unsafe impl<T: Pod> Pages for WholePages<T> {
    fn pages(&mut self) -> (NonNull<std::ffi::c_void>, usize) {
        (of_slab(&mut self.slab).cast(), self.bytes)
    }
}

/// The start of a slab that nothing else uses.
fn of_slab<T: Pod>(slab: &mut Slab<T>) -> NonNull<T> {
    NonNull::from(&mut **slab).cast()
}

fn map<T>(
    memory: &Memory,
    mapped: &mut Option<Mapped>,
    bytes: Range<usize>,
    access: Access,
    waits: bool,
) -> Result<NonNull<T>, DeviceError> {
    let place = memory.map(bytes, access)?;
    *mapped = Some(place);
    if waits {
        memory.device().finish()?;
    }
    Ok(place.cast())
}

fn unmap(memory: &Memory, mapped: &mut Option<Mapped>) -> Result<(), DeviceError> {
    if let Some(place) = *mapped {
        // SAFETY: mapped and not yet unmapped; the slice that showed it is borrowed exclusively by the caller.
        unsafe { memory.unmap(place) }?;
        *mapped = None;
    }
    Ok(())
}

/// Copies the values of `valid` to the device. Does not wait: the caller records that the transfer is in flight.
fn upload<T: Pod>(memory: &Memory, slab: &Slab<T>, valid: Range<usize>) -> Result<(), DeviceError> {
    let offset = valid.start * size_of::<T>();
    let values = &slab[valid];
    // SAFETY: the pointer and the size are of one slice, which is not written, freed or given away before the device has finished.
    unsafe { memory.write(offset, values.as_ptr().cast(), size_of_val(values)) }
}

/// Copies the values of `valid` to the host. Unless it `waits`, the caller records that the transfer is in flight.
fn download<T: Pod>(memory: &Memory, slab: &mut Slab<T>, valid: Range<usize>, waits: bool) -> Result<(), DeviceError> {
    let offset = valid.start * size_of::<T>();
    let values = &mut slab[valid];
    // SAFETY: the pointer and the size are of one slice, which is not accessed before the device has finished; any bytes are values of
    // `Pod` types.
    unsafe { memory.read(offset, values.as_mut_ptr().cast(), size_of_val(values)) }?;
    if waits { memory.device().finish() } else { Ok(()) }
}

impl<T: Pod> Deref for SharedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `start` and `len` are what the host owns or may read: all values, or none.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Pod> DerefMut for SharedSlice<T> {
    /// # Panics
    /// While both sides read: writing would then race with the device.
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        assert!(self.owner != Owner::HostReading, "host and device read this memory; it must be handed to the host before it is written");
        // SAFETY: as in `deref`, and no kernel is started with this memory while the host owns it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Pod> Argument for SharedSlice<T> {
    fn memory(&self) -> Option<&Arc<Memory>> {
        Self::memory(self)
    }
}

impl<T: Pod> Default for SharedSlice<T> {
    fn default() -> Self {
        Self::over(Slab::default())
    }
}

impl<T: Pod> Drop for SharedSlice<T> {
    fn drop(&mut self) {
        if let Backing::Mapped { memory, mapped } = &mut self.backing {
            // Kernels may keep the memory alive, but it must not stay mapped. At this point no caller could handle an error. The child of a
            // fork leaves the mapping to its parent.
            if !is_forked() {
                let _ = unmap(memory, mapped);
            }
        }
        if let Backing::Copy { memory, slab, in_flight: true } = &mut self.backing {
            let _ = memory.end_transfers(of_slab(slab).as_ptr() as usize, size_of_val(&slab[..]));
        }
        if let Some(memory) = self.memory() {
            // No slice is left to hand the memory over, so no kernel may use it.
            memory.set_hold(Hold::Host);
        }
    }
}

impl<T: Pod> fmt::Debug for SharedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedSlice<{}>[{}] of {:?}", std::any::type_name::<T>(), self.whole, self.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_slice_without_a_device_is_host_memory() {
        let mut slice = SharedSlice::<u32>::host(1000, "a test").unwrap();
        assert_eq!((slice.len(), slice.owner(), slice.way()), (1000, Owner::Host, None));
        slice[7] = 5;
        slice.to_device(0..1000).unwrap();
        slice.read_both(0..1000).unwrap();
        slice[8] = 6;
        slice.to_host(0..1000).unwrap();
        assert_eq!((slice[7], slice[8], slice.iter().sum::<u32>()), (5, 6, 11));
        assert!(Argument::memory(&slice).is_none());
        assert_eq!(slice.to_device(0..1001).unwrap_err().code, OUT_OF_RANGE);
        assert!(SharedSlice::<u32>::default().is_empty());
    }

    #[test]
    fn sharing_modes_are_printed_as_they_are_parsed() {
        for way in SharingMode::ALL {
            assert_eq!(way.to_string().parse(), Ok(way));
            assert_eq!(serde_json::to_string(&way).unwrap(), format!("\"{way}\""));
        }
        assert!("dma".parse::<SharingMode>().unwrap_err().to_string().contains("svm-fine"));
    }
}
