//! The graph as a device sees it: adjacency in parts, columns of first neighbours, original numbers.

use std::sync::Arc;

use super::GraphMemory;
use crate::{
    graph::{Csr, Layout, Vertex},
    memory::Slab,
    opencl::{Buffer, Device, DeviceError, HostBuffer, Kernel, OpenClError, align},
};

/// The most buffers over which the neighbours can be spread (`PARTS` of `kernels/common.cl`).
pub const MOST_PARTS: usize = 16;

/// How the neighbours are spread over several buffers if the device's largest buffer is too small for them (Zhang et al. 2018, section
/// 4.3): an arc's part is its number divided by `edges_per_part`, and its index there is the remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeParts {
    /// Number of buffers.
    pub(crate) parts: usize,
    /// Neighbours in each but the last.
    pub(crate) edges_per_part: usize,
}

impl EdgeParts {
    /// As few parts as buffers of `max_alloc_bytes` allow, but at least `at_least` (for tests). They begin at multiples of `align` bytes
    /// where that costs no part more.
    fn new(arcs: usize, max_alloc_bytes: u64, at_least: usize, align: usize, device: &str) -> Result<Self, OpenClError> {
        let most = usize::try_from(max_alloc_bytes / 4).unwrap_or(usize::MAX).max(1);
        let parts = arcs.div_ceil(most).max(at_least).max(1);
        if parts > MOST_PARTS {
            let bytes = arcs as u64 * 4;
            return Err(OpenClError::TooLarge {
                what: "the graph's adjacency, even in 16 parts",
                bytes,
                limit: max_alloc_bytes * MOST_PARTS as u64,
                device: device.to_owned(),
            });
        }
        // The kernels are compiled for one size of a part. The largest size that the device takes is the same for all graphs, so kernels
        // compiled for it are reused. Parts that begin at a page can be read in place.
        let page = align / size_of::<Vertex>();
        let largest = most / page * page;
        if parts > 1 && at_least <= 1 && largest > 0 && arcs.div_ceil(largest) <= MOST_PARTS {
            return Ok(Self { parts: arcs.div_ceil(largest), edges_per_part: largest });
        }
        let edges = arcs.div_ceil(parts).max(1);
        let paged = edges.next_multiple_of(page);
        let edges_per_part = if paged <= most && arcs.div_ceil(paged) == parts { paged } else { edges };
        Ok(Self { parts, edges_per_part })
    }

    /// Number of parts that the kernels are compiled for: 1, 4 or 16.
    fn slots(self) -> usize {
        match self.parts {
            1 => 1,
            2..=4 => 4,
            _ => MOST_PARTS,
        }
    }

    /// The compiler options for a graph whose neighbours are spread like this, with columns of first neighbours, and vertices in another
    /// order (`renumbered`) or in their own.
    pub(crate) fn options(self, columns: usize, renumbered: bool) -> String {
        let per_part = if self.parts == 1 { 1 } else { self.edges_per_part };
        format!("-DPARTS={} -DEDGES_PER_PART={per_part}u -DCOLUMNS={columns} -DRENUMBERED={}", self.slots(), u8::from(renumbered))
    }
}

/// A device, and where it reads the arrays of a graph.
#[derive(Clone, Copy)]
struct Target<'a> {
    device: &'a Arc<Device>,
    memory: GraphMemory,
}

impl Target<'_> {
    /// Lets the device read an array of the host.
    fn put<'g>(self, values: &'g [u32], what: &'static str) -> Result<HostBuffer<'g, u32>, OpenClError> {
        match self.memory {
            GraphMemory::Device => HostBuffer::copied(self.device, values, what),
            // SAFETY: only a `DeviceGraph` holds such buffers. Its engine drops it, and nothing forgets it.
            GraphMemory::InPlace => unsafe { Buffer::over_host(self.device, values, what) },
        }
    }
}

/// Adjacency in one direction.
#[derive(Debug)]
pub struct Lists<'g> {
    pub(crate) offsets: HostBuffer<'g, u32>,
    parts: Vec<HostBuffer<'g, Vertex>>,
    slots: usize,
}

impl<'g> Lists<'g> {
    fn new(target: Target<'_>, csr: &'g Csr, split: EdgeParts) -> Result<Self, OpenClError> {
        let mut parts = Vec::new();
        for part in 0..split.parts {
            let begin = (part * split.edges_per_part).min(csr.arcs());
            let end = (begin + split.edges_per_part).min(csr.arcs());
            parts.push(target.put(&csr.targets[begin..end], "a part of the adjacency")?);
        }
        Ok(Self { offsets: target.put(&csr.offsets, "offsets")?, parts, slots: split.slots() })
    }

    /// Sets the parts as arguments of `kernel`, from index `first` on.
    pub(crate) fn bind(&self, kernel: &Kernel, first: u32) -> Result<(), DeviceError> {
        for slot in 0..self.slots {
            kernel.set_buffer(first + slot as u32, &self.parts[slot.min(self.parts.len() - 1)])?;
        }
        Ok(())
    }
}

/// Where `map_back` finds the parents of original vertices.
#[derive(Debug)]
pub struct Places<'g> {
    /// The internal number of each original vertex, or a place behind these numbers for a leaf that was left out.
    pub(crate) of: HostBuffer<'g, Vertex>,
    /// The neighbours of the leaves at these places, as internal numbers; a dummy if no leaves were left out.
    pub(crate) hosts: HostBuffer<'g, Vertex>,
    /// The same neighbours, as original numbers.
    pub(crate) names: HostBuffer<'g, Vertex>,
}

/// The parts of a graph that a device needs.
#[derive(Debug, Clone, Copy)]
pub struct GraphArrays<'g> {
    /// The lists that a top-down level reads.
    pub(crate) out: &'g Csr,
    /// The lists that a bottom-up level reads; `None` if they are the same.
    pub(crate) incoming: Option<&'g Csr>,
    /// Columns of first neighbours, by internal (`columns`) and by original number (`names`).
    pub(crate) columns: &'g [Slab<Vertex>],
    pub(crate) names: &'g [Slab<Vertex>],
    /// Internal to original numbers; empty where they are the same.
    pub(crate) to_original: &'g [Vertex],
    /// The arrays of [`Places`]; the first is empty where vertices have their original numbers.
    pub(crate) places: [&'g [Vertex]; 3],
}

impl<'g> GraphArrays<'g> {
    pub(crate) fn of(layout: &'g Layout) -> Self {
        Self {
            out: layout.csr(),
            incoming: layout.directed().then(|| layout.incoming()),
            columns: layout.columns(),
            names: layout.column_originals(),
            to_original: layout.original_numbers(),
            places: [layout.internal_places(), layout.leaves().host_of(), layout.leaves().name_of()],
        }
    }
}

/// A graph on a device: in its memory, or the host's own arrays.
#[derive(Debug)]
pub struct DeviceGraph<'g> {
    out: Lists<'g>,
    incoming: Option<Lists<'g>>,
    columns: Vec<HostBuffer<'g, Vertex>>,
    names: Vec<HostBuffer<'g, Vertex>>,
    /// Internal to original numbers; a dummy where they are the same.
    pub(crate) to_original: HostBuffer<'g, Vertex>,
    /// `None` where vertices have their original numbers.
    pub(crate) places: Option<Places<'g>>,
    split: EdgeParts,
}

impl<'g> DeviceGraph<'g> {
    /// Puts `arrays` on `device`, the neighbours in `at_least` parts or more. If `memory` is `None`, a device with its own memory gets a
    /// copy if there is room; otherwise the device reads the host's arrays.
    pub(crate) fn new(
        device: &Arc<Device>,
        arrays: GraphArrays<'g>,
        at_least: usize,
        memory: Option<GraphMemory>,
    ) -> Result<Self, OpenClError> {
        let first = memory.unwrap_or(if device.info().unified_memory { GraphMemory::InPlace } else { GraphMemory::Device });
        match Self::on(Target { device, memory: first }, arrays, at_least) {
            Err(error @ OpenClError::OutOfMemory { .. }) if memory.is_none() && first == GraphMemory::Device => {
                log::warn!("{error}: the graph stays in the host's memory, where kernels read it more slowly");
                Self::on(Target { device, memory: GraphMemory::InPlace }, arrays, at_least)
            }
            result => result,
        }
    }

    fn on(target: Target<'_>, arrays: GraphArrays<'g>, at_least: usize) -> Result<Self, OpenClError> {
        let device = target.device;
        let arcs = arrays.out.arcs().max(arrays.incoming.map_or(0, Csr::arcs));
        let split = EdgeParts::new(arcs, device.max_alloc_bytes(), at_least, align(device), &device.info().name)?;
        let (mut columns, mut names) = (Vec::new(), Vec::new());
        for (column, name) in arrays.columns.iter().zip(arrays.names) {
            columns.push(target.put(column, "columns of first neighbours")?);
            names.push(target.put(name, "columns of first neighbours")?);
        }
        let [place, hosts, names_of_hosts] = arrays.places;
        let places = || -> Result<_, OpenClError> {
            let of = target.put(place, "internal numbers")?;
            let [hosts, names] = [target.put(hosts, "leaves")?, target.put(names_of_hosts, "leaves")?];
            Ok(Places { of, hosts, names })
        };
        Ok(Self {
            out: Lists::new(target, arrays.out, split)?,
            incoming: arrays.incoming.map(|lists| Lists::new(target, lists, split)).transpose()?,
            columns,
            names,
            to_original: target.put(arrays.to_original, "original numbers")?,
            places: if place.is_empty() { None } else { Some(places()?) },
            split,
        })
    }

    /// The lists that a top-down level reads.
    pub(crate) fn out(&self) -> &Lists<'g> {
        &self.out
    }

    /// The lists that a bottom-up level reads.
    pub(crate) fn incoming(&self) -> &Lists<'g> {
        self.incoming.as_ref().unwrap_or(&self.out)
    }

    /// How the neighbours are spread over buffers.
    pub(crate) fn split(&self) -> EdgeParts {
        self.split
    }

    /// Whether the device was given the host's own arrays of neighbours.
    pub(crate) fn is_zero_copy(&self) -> bool {
        self.out.parts.iter().all(HostBuffer::is_zero_copy)
    }

    /// Sets the columns as arguments of `kernel`, from index `first` on. Returns the index after them.
    pub(crate) fn bind_columns(&self, kernel: &Kernel, first: u32) -> Result<u32, DeviceError> {
        if self.columns.is_empty() {
            kernel.set_buffer(first, &self.to_original)?;
            return Ok(first + 1);
        }
        let mut at = first;
        for buffer in self.columns.iter().chain(&self.names) {
            kernel.set_buffer(at, buffer)?;
            at += 1;
        }
        Ok(at)
    }

    /// The compiler options that depend on the graph.
    pub(crate) fn options(&self) -> String {
        self.split.options(self.columns.len(), !self.to_original.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_split_by_the_size_of_the_largest_buffer() {
        let split = |arcs, bytes, at_least| EdgeParts::new(arcs, bytes, at_least, 4096, "a device").unwrap();
        assert_eq!(split(1000, 1 << 20, 1), EdgeParts { parts: 1, edges_per_part: 1024 });
        assert_eq!(split(1 << 20, 1 << 20, 1), EdgeParts { parts: 4, edges_per_part: 1 << 18 });
        assert_eq!(split((1 << 20) + 1, 1 << 20, 1).parts, 5);
        assert_eq!(split(1000, 1 << 20, 7), EdgeParts { parts: 7, edges_per_part: 143 });
        assert_eq!(split(0, 1 << 20, 1), EdgeParts { parts: 1, edges_per_part: 1 });
        for (arcs, bytes, at_least) in [(100_003, 40_000, 1), (100_003, 1 << 30, 7), (65_536, 4096 * 4, 1), (5, 4, 2)] {
            let split = split(arcs, bytes, at_least);
            assert!(split.parts * split.edges_per_part >= arcs && split.edges_per_part as u64 * 4 <= bytes.max(4), "{split:?}");
        }
        assert!(EdgeParts::new(1 << 20, 4096, 1, 4096, "a device").is_err());
        // The size of a part does not depend on the graph, so that compiled kernels are reused.
        for arcs in [300_000, 500_001, 1 << 20, 3_900_000] {
            assert_eq!(split(arcs, 1_000_000, 1).edges_per_part, 249_856, "{arcs} arcs");
            // With pages of 16 KiB or 64 KiB.
            for align in [16 << 10, 64 << 10] {
                let part = EdgeParts::new(arcs, 1_000_000, 1, align, "a device").unwrap().edges_per_part;
                assert!(part * 4 % align == 0 && 1_000_000 - part * 4 < align, "{arcs} arcs: {part}");
            }
        }
        assert_eq!(EdgeParts::new(9_000, 1 << 20, 2, 16 << 10, "a device").unwrap().edges_per_part, 8_192);
    }
}
