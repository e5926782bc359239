//! Kernels: arguments set once, launched without allocating.

use std::{
    cell::RefCell,
    ffi::{CString, c_void},
    fmt,
    sync::Arc,
};

use cl3::{
    command_queue::enqueue_nd_range_kernel,
    error_codes::{CL_INVALID_ARG_INDEX, CL_INVALID_GLOBAL_WORK_SIZE, CL_INVALID_WORK_GROUP_SIZE},
    kernel::{
        CL_KERNEL_LOCAL_MEM_SIZE, CL_KERNEL_NUM_ARGS, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, CL_KERNEL_WORK_GROUP_SIZE,
        create_kernel, get_kernel_data, get_kernel_work_group_data, release_kernel, set_kernel_arg, set_kernel_arg_svm_pointer,
    },
};

use super::{
    device::{Device, release},
    error::{Called, DeviceError, HOST_ONLY, LOCAL_MEMORY_LIMIT, OTHER_DEVICE, OpenClError},
    info::number,
    object::Memory,
    plain::Scalar,
    program::Program,
};

/// Memory that a kernel can be given: [`Buffer`](super::Buffer), [`HostBuffer`](super::HostBuffer) and the shared slices of
/// [`memory`](crate::memory).
pub trait Argument {
    /// The memory; `None` of memory that no device knows.
    #[doc(hidden)]
    fn memory(&self) -> Option<&Arc<Memory>>;
}

/// What an argument of a kernel is.
#[derive(Debug)]
enum Slot {
    /// Not set, or a value.
    Value,
    /// Memory, kept alive as long as the kernel could be launched with it.
    Memory(Arc<Memory>),
    /// So many bytes of local memory.
    Local(u64),
}

/// A kernel and its arguments. OpenCL lets one thread at a time set them, so a kernel may be sent to another thread but not shared.
pub struct Kernel {
    device: Arc<Device>,
    name: String,
    kernel: *mut c_void,
    slots: RefCell<Box<[Slot]>>,
    max_group: usize,
    preferred_multiple: usize,
    declared_local: u64,
}

// SAFETY: a kernel may be used by any thread, one at a time (OpenCL 1.2, appendix A.2); it is not `Sync`.
unsafe impl Send for Kernel {}

impl Kernel {
    pub(super) fn new(program: &Program, name: &str) -> Result<Self, OpenClError> {
        let device = Arc::clone(program.device());
        let c_name = CString::new(name).map_err(|_| OpenClError::ZeroByte(name.to_owned()))?;
        let kernel = create_kernel(program.handle(), &c_name)
            .called("clCreateKernel")
            .map_err(|error| OpenClError::NoKernel { name: name.to_owned(), error })?;
        // From here on, dropping it gives the kernel back.
        let mut made = Self {
            name: name.to_owned(),
            kernel,
            slots: RefCell::default(),
            max_group: 1,
            preferred_multiple: 1,
            declared_local: 0,
            device,
        };
        let id = made.device.id();
        let say = |error: DeviceError| error.on(&made.device.info().name);
        let of_group = |what| number(get_kernel_work_group_data(kernel, id, what).called("clGetKernelWorkGroupInfo")).map_err(say);
        let arguments = number(get_kernel_data(kernel, CL_KERNEL_NUM_ARGS).called("clGetKernelInfo")).map_err(say)?;
        let max_group = (of_group(CL_KERNEL_WORK_GROUP_SIZE)? as usize).min(made.device.max_work_group()).max(1);
        let preferred = (of_group(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE)? as usize).max(1);
        let bytes = of_group(CL_KERNEL_LOCAL_MEM_SIZE)?;
        let limit = made.device.local_bytes();
        if bytes > limit {
            return Err(OpenClError::LocalMemory { kernel: name.to_owned(), bytes, limit, device: made.device.info().name.clone() });
        }
        made.slots = RefCell::new((0..arguments).map(|_| Slot::Value).collect());
        (made.max_group, made.preferred_multiple, made.declared_local) = (max_group, preferred, bytes);
        Ok(made)
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device it runs on.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The largest work-group it may have: the least of what the driver says of this kernel, the device, and the limits in force.
    pub fn max_group(&self) -> usize {
        self.max_group
    }

    /// A work-group should be a multiple of this.
    pub fn preferred_multiple(&self) -> usize {
        self.preferred_multiple
    }

    /// Local memory it takes in bytes: what it declares and what it was given by [`set_local`](Self::set_local).
    pub fn local_bytes(&self) -> u64 {
        let given = |slot: &Slot| if let Slot::Local(bytes) = slot { *bytes } else { 0 };
        self.declared_local + self.slots.borrow().iter().map(given).sum::<u64>()
    }

    /// Gives it a number, by value: u32, i32 or u64 for `uint`, `int` and `ulong`.
    ///
    /// # Errors
    /// An index or a size that the kernel does not have.
    pub fn set<T: Scalar>(&self, index: u32, value: T) -> Result<(), DeviceError> {
        self.known(index)?;
        // SAFETY: the pointer is to a value of the size given, which the call copies.
        unsafe { set_kernel_arg(self.kernel, index, size_of::<T>(), std::ptr::from_ref(&value).cast()) }.called("clSetKernelArg")?;
        self.store(index, Slot::Value);
        Ok(())
    }

    /// Gives it memory, which the kernel keeps alive. Launches are refused while the host owns it.
    ///
    /// # Errors
    /// An index that the kernel does not have; memory of no device or of another one.
    pub fn set_buffer(&self, index: u32, argument: &impl Argument) -> Result<(), DeviceError> {
        const CALL: &str = "clSetKernelArg";
        self.known(index)?;
        let memory = argument.memory().ok_or(DeviceError { call: CALL, code: HOST_ONLY })?;
        if !Arc::ptr_eq(memory.device(), &self.device) {
            return Err(DeviceError { call: CALL, code: OTHER_DEVICE });
        }
        match memory.argument() {
            Ok(buffer) => {
                // SAFETY: the argument is a buffer of the kernel's context, which the slot keeps alive.
                unsafe { set_kernel_arg(self.kernel, index, size_of::<*mut c_void>(), std::ptr::from_ref(&buffer).cast()) }.called(CALL)?;
            }
            Err(start) => {
                // SAFETY: the argument is shared virtual memory of the kernel's context, which the slot keeps alive.
                unsafe { set_kernel_arg_svm_pointer(self.kernel, index, start) }.called("clSetKernelArgSVMPointer")?;
            }
        }
        self.store(index, Slot::Memory(Arc::clone(memory)));
        Ok(())
    }

    /// Gives it `bytes` of local memory.
    ///
    /// # Errors
    /// [`LOCAL_MEMORY_LIMIT`] where all its local memory together is more than the device has or is allowed.
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
        // SAFETY: a null pointer with a size is how local memory is given.
        unsafe { set_kernel_arg(self.kernel, index, bytes, std::ptr::null()) }.called(CALL)?;
        self.store(index, Slot::Local(bytes as u64));
        Ok(())
    }

    /// Starts `groups` work-groups of `local` work-items each, after everything launched before. Does not wait. No groups: nothing to do.
    ///
    /// # Errors
    /// A work-group larger than [`max_group`](Self::max_group); [`HOST_OWNS_ARGUMENT`](super::HOST_OWNS_ARGUMENT) where memory was not
    /// handed over; what the driver says.
    pub fn launch(&self, groups: usize, local: usize) -> Result<(), DeviceError> {
        const CALL: &str = "clEnqueueNDRangeKernel";
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
        // SAFETY: kernel and queue are of one context, its arguments live and are the device's to use, the arrays have one dimension.
        // What the kernel itself does is its source's business, which is a part of this program.
        let event = unsafe {
            enqueue_nd_range_kernel(
                self.device.queue(),
                self.kernel,
                1,
                std::ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                0,
                std::ptr::null(),
            )
        };
        release(self.device.noted(event.called(CALL))?);
        Ok(())
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
        if self.device.is_sound() {
            // SAFETY: made by `new`. What still runs holds its own reference.
            let _ = unsafe { release_kernel(self.kernel) };
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({} on {:?})", self.name, self.device)
    }
}
