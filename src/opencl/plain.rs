//! Values whose bytes mean the same on host and device.

/// Types for which every pattern of bytes (all zeros too) is a value, and which own nothing.
pub trait Plain: Copy + Send + Sync + 'static {}
impl Plain for u8 {}
impl Plain for u16 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for i32 {}
impl Plain for [u32; 2] {}
impl Plain for [u32; 3] {}
impl Plain for [u32; 4] {}

/// Types that can be passed to a kernel by value.
pub trait Scalar: Copy {}
impl Scalar for u32 {}
impl Scalar for i32 {}
impl Scalar for u64 {}
