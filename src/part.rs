//! The part of a graph that a rank of a cluster keeps, searched on an OpenCL device. `socbfs-cluster` is built on it.

pub use crate::{
    engine::{Allocate, OnHost},
    gpu::{PartArrays, PartFrontier, PartGpu, PartState, check_parents},
};
