//! Setting an engine up: its kernels, the graph on the device, and room for what a search needs.

use std::sync::Arc;

use super::{
    GpuEngine, GpuEngineError, GpuOptions, RUN_LEVELS,
    arguments::{Memory, Number, set},
    graph::{GraphArrays, Places},
    kernels::Kernels,
    levels::{MOST_STEPS, RunAhead},
    sampling::{HUB_PLACES, MOST_PROBES, PLACES},
    side::DeviceSide,
};
use crate::{
    bfs::Ahead,
    graph::{Layout, Vertex},
    memory::Slab,
    opencl::{Buffer, Device, DeviceError},
};

/// Steps launched together by default.
const STEPS: usize = 8;
/// Frontiers of fewer arcs than this per work-item of one group are run by that group, level after level, in one launch.
const RUN_ARCS_PER_ITEM: u64 = 16;

impl<'g> GpuEngine<'g> {
    /// Builds the kernels and puts the graph on `device`. `excluded` are the bits of vertices that take no part.
    pub(crate) fn new(layout: &'g Layout, device: &Arc<Device>, excluded: &[u64], options: GpuOptions) -> Result<Self, GpuEngineError> {
        let padded = layout.padded();
        // `map_back` loops over the original vertices, which may be more than those searched.
        let side = DeviceSide::new(device, GraphArrays::of(layout), &options, padded / 32, padded.max(layout.vertices()))?;
        let with_arcs = (0..layout.csr().vertices()).filter(|&v| layout.csr().degree(v as Vertex) > 0).count();
        let run_arcs = options.run_arcs.map_or(RUN_ARCS_PER_ITEM * side.group as u64, u64::from);
        // Roads and grids have two to four arcs per vertex.
        let roads = layout.csr().arcs() <= 5 * with_arcs && side.longest <= 64;
        let most_steps = options.steps.unwrap_or(STEPS).clamp(1, MOST_STEPS);
        let engine = Self {
            seen: Slab::zeroed(padded / 64, "bitmaps")?,
            host_closed: Slab::copy_of(excluded, "bitmaps")?,
            seeded: false,
            device_state: 0,
            ahead: Ahead::default(),
            guarded: None,
            run_ahead: RunAhead::default(),
            has_part: false,
            counted_ns: 0,
            sampled: None,
            masks: [Buffer::new(device, padded, "frontier mask")?, Buffer::new(device, padded, "frontier mask")?],
            excluded: Buffer::from_host(device, excluded, "bitmaps")?,
            level_of: None,
            run_arcs,
            roads,
            long_runs: roads,
            most_steps,
            steps: most_steps,
            places: options.places.map_or(PLACES, |places| places as usize).max(1),
            probes: options.probes.unwrap_or(MOST_PROBES).max(1),
            layout,
            side,
        };
        engine.clear_masks()?;
        engine.bind()?;
        device.finish()?;
        Ok(engine)
    }

    /// Sets the arguments that never change.
    fn bind(&self) -> Result<(), DeviceError> {
        let padded = self.layout.padded() as u32;
        self.side.set(&[
            ("excluded", Memory(&self.excluded)),
            ("mask_a", Memory(&self.masks[0])),
            ("mask_b", Memory(&self.masks[1])),
            ("padded", Number(padded)),
            ("words", Number(self.words())),
            ("vertices", Number(self.layout.csr().vertices() as u32)),
            ("most", Number(self.run_arcs.min(u64::from(u32::MAX)) as u32)),
            ("most_levels", Number(RUN_LEVELS)),
            ("places", Number(self.places as u32)),
            ("most_probes", Number(self.probes)),
            ("most_places", Number(HUB_PLACES as u32)),
        ])?;
        let Kernels { mask_to_queue, map_back, .. } = &self.side.kernels;
        // Words of four bytes.
        set(mask_to_queue, &[("words", Number(padded / 4))])?;
        let Some(Places { of, hosts, names }) = &self.side.graph.places else { return Ok(()) };
        set(map_back, &[("place", Memory(of)), ("vertices", Number(of.len() as u32)), ("hosts", Memory(hosts)), ("names", Memory(names))])?;
        set(map_back, &[("first_leaf", Number(self.layout.first_leaf() as u32))])
    }
}
