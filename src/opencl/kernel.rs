//! Kernels: arguments set once, launched without allocating.

use std::{
    cell::{Cell, RefCell},
    fmt,
    sync::Arc,
};

use opencl3::{
    error_codes::{CL_INVALID_ARG_INDEX, CL_INVALID_GLOBAL_WORK_SIZE, CL_INVALID_WORK_GROUP_SIZE},
    kernel::Kernel as Object,
    memory::ClMem,
};

use super::{
    device::{Device, Work},
    error::{Called, DeviceError, HOST_ONLY, LOCAL_MEMORY_LIMIT, OTHER_DEVICE, OpenClError},
    object::{Handle, Memory},
    owned::Owned,
    pod::Scalar,
    program::Program,
};

/// The call that starts a kernel.
pub(super) const LAUNCH: &str = "clEnqueueNDRangeKernel";

/// Memory that can be an argument of a kernel: [`Buffer`](super::Buffer), [`HostBuffer`](super::HostBuffer) and the shared slices of
/// [`memory`](crate::memory).
pub trait Argument {
    /// The memory; `None` if it was made without a device.
    #[doc(hidden)]
    fn memory(&self) -> Option<&Arc<Memory>>;
}

/// The kind of a kernel's argument.
#[derive(Debug)]
enum Slot {
    /// Not set, or a value.
    Value,
    /// Memory, kept alive as long as the kernel can be launched with it.
    Memory(Arc<Memory>),
    /// This many bytes of local memory.
    Local(u64),
}

/// A kernel and its arguments. In OpenCL only one thread at a time may set them, so a kernel may be sent to another thread but not shared.
pub struct Kernel {
    name: String,
    object: Owned<Object>,
    slots: RefCell<Box<[Slot]>>,
    device: Arc<Device>,
    max_group: usize,
    declared_local: u64,
    was_launched: Cell<bool>,
}

impl Kernel {
    pub(super) fn new(program: &Program, name: &str) -> Result<Self, OpenClError> {
        let device = Arc::clone(program.device());
        if name.contains('\0') {
            return Err(OpenClError::ZeroByte(name.to_owned()));
        }
        let object = Object::create(program.object(name), name)
            .called("clCreateKernel")
            .map_err(|error| OpenClError::NoKernel { name: name.to_owned(), error })
            .map(Owned::new)?;
        let (id, says) = (device.id(), &device.info().name);
        let say = |error: DeviceError| error.on(says);
        const OF_GROUP: &str = "clGetKernelWorkGroupInfo";
        let arguments = object.num_args().called("clGetKernelInfo").map_err(say)?;
        let max_group = object.get_work_group_size(id).called(OF_GROUP).map_err(say)?.min(device.max_work_group()).max(1);
        let bytes = object.get_local_mem_size(id).called(OF_GROUP).map_err(say)?;
        let limit = device.local_bytes();
        if bytes > limit {
            return Err(OpenClError::LocalMemory { kernel: name.to_owned(), bytes, limit, device: says.clone() });
        }
        let slots = RefCell::new((0..arguments).map(|_| Slot::Value).collect());
        Ok(Self { name: name.to_owned(), object, slots, max_group, declared_local: bytes, was_launched: Cell::new(false), device })
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device it runs on.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The largest work-group it may have: the least of the driver's limit for this kernel, the device's limit, and the limits in force.
    pub fn max_group(&self) -> usize {
        self.max_group
    }

    /// Number of arguments.
    pub fn arguments(&self) -> u32 {
        self.slots.borrow().len() as u32
    }

    /// The name of an argument in the source; `None` if the driver does not report it (OpenCL 1.2 needs `-cl-kernel-arg-info`).
    pub fn argument_name(&self, index: u32) -> Option<String> {
        self.object.get_arg_name(index).ok().filter(|name| !name.is_empty())
    }

    /// Bytes of local memory that it takes: what it declares (0 under PoCL 5.0 and 6.0, which do not report it) and what
    /// [`set_local`](Self::set_local) gave it.
    pub fn local_bytes(&self) -> u64 {
        let given = |slot: &Slot| if let Slot::Local(bytes) = slot { *bytes } else { 0 };
        self.declared_local + self.slots.borrow().iter().map(given).sum::<u64>()
    }

    /// Sets an argument to a number, by value: u32, i32 or u64 for `uint`, `int` and `ulong`.
    ///
    /// # Errors
    /// An index or a size that the kernel does not have.
    pub fn set<T: Scalar>(&self, index: u32, value: T) -> Result<(), DeviceError> {
        self.known(index)?;
        // SAFETY: the argument is a number, which the call copies. The driver refuses a number of another size.
        unsafe { self.object.set_arg(index, &value) }.called("clSetKernelArg")?;
        self.store(index, Slot::Value);
        Ok(())
    }

    /// Sets an argument to memory, which the kernel keeps alive. Launches are refused while the host owns it.
    ///
    /// # Errors
    /// An index that the kernel does not have; memory of no device or of another device.
    pub fn set_buffer(&self, index: u32, argument: &(impl Argument + ?Sized)) -> Result<(), DeviceError> {
        const CALL: &str = "clSetKernelArg";
        self.known(index)?;
        let memory = argument.memory().ok_or(DeviceError { call: CALL, code: HOST_ONLY })?;
        if !Arc::ptr_eq(memory.device(), &self.device) {
            return Err(DeviceError { call: CALL, code: OTHER_DEVICE });
        }
        match memory.handle() {
            // SAFETY: the argument is a buffer of the kernel's context, which the slot keeps alive.
            Handle::Buffer(buffer) => unsafe { self.object.set_arg(index, &buffer.get()) }.called(CALL)?,
            // SAFETY: the argument is shared virtual memory of the kernel's context, which the slot keeps alive.
            Handle::Svm(start) => unsafe { self.object.set_arg_svm_pointer(index, start.as_ptr()) }.called("clSetKernelArgSVMPointer")?,
        }
        self.store(index, Slot::Memory(Arc::clone(memory)));
        Ok(())
    }

    /// Sets an argument to `bytes` of local memory.
    ///
    /// # Errors
    /// [`LOCAL_MEMORY_LIMIT`] if all its local memory together is more than the device has or the limits allow.
    pub fn set_local(&self, index: u32, bytes: usize) -> Result<(), DeviceError> {
        const CALL: &str = "clSetKernelArg";
        self.known(index)?;
        let before = match self.slots.borrow()[index as usize] {
            Slot::Local(before) => before,
            _ => 0,
        };
        if (self.local_bytes() - before).saturating_add(bytes as u64) > self.device.local_bytes() {
            return Err(DeviceError { call: CALL, code: LOCAL_MEMORY_LIMIT });
        }
        // SAFETY: local memory is of the size given, and the device's own.
        unsafe { self.object.set_arg_local_buffer(index, bytes) }.called(CALL)?;
        self.store(index, Slot::Local(bytes as u64));
        Ok(())
    }

    /// Starts `groups` work-groups of `local` work-items each, after everything launched before. Does not wait. Without groups it does
    /// nothing.
    ///
    /// # Errors
    /// A work-group larger than [`max_group`](Self::max_group); [`HOST_OWNS_ARGUMENT`](super::HOST_OWNS_ARGUMENT) if memory was not handed
    /// over; errors of the driver.
    ///
    /// # Safety
    /// The kernel must stay inside its arguments, for every work-item: OpenCL checks no access. It must not write what the host may read
    /// while it runs, nor memory that it was given for reading only. Until it has ended, no thread may take over memory that it was given:
    /// the owner is checked before it is started, not while it runs.
    pub unsafe fn run(&self, groups: usize, local: usize) -> Result<(), DeviceError> {
        const CALL: &str = LAUNCH;
        if groups == 0 {
            return Ok(());
        }
        if local == 0 || local > self.max_group {
            return Err(DeviceError { call: CALL, code: CL_INVALID_WORK_GROUP_SIZE });
        }
        let global = groups.checked_mul(local).ok_or(DeviceError { call: CALL, code: CL_INVALID_GLOBAL_WORK_SIZE })?;
        for slot in &**self.slots.borrow() {
            if let Slot::Memory(memory) = slot {
                if let Some(code) = memory.refuses_launch() {
                    return Err(DeviceError { call: CALL, code });
                }
            }
        }
        let (global, local) = ([global], [local]);
        // SAFETY: kernel and queue are of one context, the arguments live and are the device's to use, and the arrays have one dimension.
        // What the kernel itself accesses is the caller's promise.
        self.device.enqueue(CALL, Work::Kernel(!self.was_launched.replace(true)), |queue| unsafe {
            queue.enqueue_nd_range_kernel(self.object.get(), 1, std::ptr::null(), global.as_ptr(), local.as_ptr(), &[])
        })
    }

    fn known(&self, index: u32) -> Result<(), DeviceError> {
        let known = (index as usize) < self.slots.borrow().len();
        if known { Ok(()) } else { Err(DeviceError { call: "clSetKernelArg", code: CL_INVALID_ARG_INDEX }) }
    }

    fn store(&self, index: u32, slot: Slot) {
        self.slots.borrow_mut()[index as usize] = slot;
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if !self.device.is_sound() {
            self.object.keep();
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({} on {:?})", self.name, self.device)
    }
}
