//! Values whose bytes mean the same on host and device.

/// Types for which every pattern of bytes (all zeros too) is a value, and which own nothing.
pub trait Pod: Copy + Send + Sync + 'static {}
impl Pod for u8 {}
impl Pod for u16 {}
impl Pod for u32 {}
impl Pod for u64 {}
impl Pod for i32 {}
impl Pod for [u32; 2] {}
impl Pod for [u32; 3] {}
impl Pod for [u32; 4] {}

/// Types that can be passed to a kernel by value.
pub trait Scalar: Copy {}
impl Scalar for u32 {}
impl Scalar for i32 {}
impl Scalar for u64 {}
