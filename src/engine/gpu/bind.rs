//! The arguments of kernels that never change.

use super::{
    GpuEngine,
    levels::RUN_LEVELS,
    sampling::{PLACES_SAMPLED, PROBES},
};
use crate::opencl::{Buffer, DeviceError};

impl GpuEngine<'_> {
    /// Sets the arguments that never change.
    pub(super) fn bind(&self, heavy: &Buffer<u32>) -> Result<(), DeviceError> {
        let Self { kernels, graph, counters, .. } = self;
        let (out, incoming) = (graph.out(), graph.incoming());
        let (padded, words) = (self.layout.padded() as u32, (self.layout.padded() / 32) as u32);
        kernels.reset.set_buffer(2, &self.closed)?;
        kernels.reset.set_buffer(4, counters)?;
        kernels.reset.set(6, padded)?;
        if let Some(place) = &graph.place {
            kernels.map_back.set_buffer(0, place)?;
            kernels.map_back.set(3, place.len() as u32)?;
        }
        kernels.stamp_bitmap.set(3, words)?;
        kernels.bitmap_to_queue.set(2, words)?;
        kernels.bitmap_to_queue.set_buffer(4, counters)?;
        kernels.mask_to_queue.set(1, padded / 4)?;
        kernels.mask_to_queue.set_buffer(3, counters)?;
        kernels.queue_to_mask.set_buffer(3, counters)?;
        kernels.bitmap_to_mask.set(2, words)?;
        kernels.bitmap_to_mask.set_buffer(4, counters)?;
        for kernel in [&kernels.tg, &kernels.tgm] {
            kernel.set_buffer(2, &out.offsets)?;
            kernel.set_buffer(3, &graph.to_original)?;
            kernel.set_buffer(7, heavy)?;
            kernel.set_buffer(8, counters)?;
            out.bind(kernel, 10)?;
        }
        kernels.tgm.set(1, padded)?;
        for kernel in kernels.heavy.iter().flatten() {
            kernel.set_buffer(0, heavy)?;
            kernel.set_buffer(1, &out.offsets)?;
            kernel.set_buffer(2, &graph.to_original)?;
            kernel.set_buffer(6, counters)?;
            out.bind(kernel, 8)?;
        }
        kernels.tg_run.set_buffer(2, &out.offsets)?;
        kernels.tg_run.set_buffer(3, &graph.to_original)?;
        kernels.tg_run.set(7, self.run_arcs as u32)?;
        kernels.tg_run.set(8, RUN_LEVELS)?;
        kernels.tg_run.set_buffer(9, counters)?;
        out.bind(&kernels.tg_run, 11)?;
        for (kernel, columns) in [(&kernels.bg, 10), (&kernels.bgc, 12)] {
            kernel.set_buffer(3, &incoming.offsets)?;
            kernel.set_buffer(4, &out.offsets)?;
            kernel.set_buffer(5, &graph.to_original)?;
            kernel.set_buffer(8, counters)?;
            let parts = graph.bind_columns(kernel, columns)?;
            incoming.bind(kernel, parts)?;
        }
        kernels.bgc.set_local(10, 4 * self.cached_words)?;
        kernels.bgc.set(11, self.cached_words as u32)?;
        kernels.sample.set_buffer(1, &incoming.offsets)?;
        kernels.sample.set(2, self.layout.csr().vertices() as u32)?;
        kernels.sample.set(3, PLACES_SAMPLED as u32)?;
        kernels.sample.set(4, PROBES)?;
        kernels.sample.set_buffer(5, counters)?;
        incoming.bind(&kernels.sample, 7)?;
        let (vertices, places) = (self.layout.csr().vertices() as u32, self.hub_places() as u32);
        kernels.hubs_in_queue.set_buffer(2, &out.offsets)?;
        kernels.hubs_in_queue.set_buffer(5, counters)?;
        for (kernel, offsets) in [(&kernels.hubs_in_bitmap, 2), (&kernels.hubs_in_mask, 1)] {
            kernel.set_buffer(offsets, &out.offsets)?;
            kernel.set(offsets + 1, vertices)?;
            kernel.set(offsets + 3, places)?;
            kernel.set_buffer(offsets + 4, counters)?;
        }
        kernels.gather_parents.set_buffer(3, counters)?;
        Ok(())
    }
}
