//! Kernel arguments that change seldom or never.

use super::{GpuEngine, RUN_LEVELS, arguments as args, graph::Places, sampling::HUB_PLACES};
use crate::{
    engine::SearchState,
    opencl::{Buffer, DeviceError},
};

impl GpuEngine<'_> {
    /// Sets the arguments that never change. `pieces` has room for pieces of long lists.
    pub(super) fn bind(&self, pieces: &Buffer<u32>) -> Result<(), DeviceError> {
        let Self { kernels, graph, counters, guards, .. } = self;
        let (out, incoming) = (graph.out(), graph.incoming());
        let (padded, words, vertices) = (self.layout.padded() as u32, self.words(), self.layout.csr().vertices() as u32);
        let most_pieces = u32::try_from(pieces.len() / 2).unwrap_or(u32::MAX);
        kernels.reset.set_buffer(args::reset::excluded, &self.excluded)?;
        kernels.reset.set_buffer(args::reset::all_counters, counters)?;
        kernels.reset.set(args::reset::padded, padded)?;
        kernels.seed.set_buffer(args::seed::all_counters, counters)?;
        if let Some(Places { of, hosts, names }) = &graph.places {
            use args::map_back as arg;
            kernels.map_back.set_buffer(arg::place, of)?;
            kernels.map_back.set(arg::vertices, of.len() as u32)?;
            kernels.map_back.set_buffer(arg::hosts, hosts)?;
            kernels.map_back.set_buffer(arg::names, names)?;
            kernels.map_back.set(arg::first_leaf, self.layout.first_leaf() as u32)?;
        }
        kernels.stamp_bitmap.set(args::stamp_bitmap::words, words)?;
        {
            use args::bitmap_to_queue as arg;
            kernels.bitmap_to_queue.set(arg::words, words)?;
            kernels.bitmap_to_queue.set_buffer(arg::all_counters, counters)?;
            kernels.bitmap_to_queue.set_buffer(arg::guards, guards)?;
        }
        {
            use args::mask_to_queue as arg;
            kernels.mask_to_queue.set_buffer(arg::mask_a, &self.masks[0])?;
            kernels.mask_to_queue.set_buffer(arg::mask_b, &self.masks[1])?;
            kernels.mask_to_queue.set(arg::words, padded / 4)?;
            kernels.mask_to_queue.set_buffer(arg::all_counters, counters)?;
            kernels.mask_to_queue.set_buffer(arg::guards, guards)?;
            kernels.mask_to_queue.set(arg::guard, 0)?;
        }
        {
            use args::to_mask as arg;
            kernels.to_mask.set(arg::words, words)?;
            kernels.to_mask.set_buffer(arg::mask_a, &self.masks[0])?;
            kernels.to_mask.set_buffer(arg::mask_b, &self.masks[1])?;
            kernels.to_mask.set_buffer(arg::all_counters, counters)?;
            kernels.to_mask.set_buffer(arg::guards, guards)?;
            kernels.to_mask.set(arg::guard, 0)?;
        }
        {
            use args::tg as arg;
            kernels.tg.set_buffer(arg::offsets, &out.offsets)?;
            kernels.tg.set_buffer(arg::to_original, &graph.to_original)?;
            kernels.tg.set_buffer(arg::pieces, pieces)?;
            kernels.tg.set(arg::most_pieces, most_pieces)?;
            kernels.tg.set_buffer(arg::all_counters, counters)?;
            kernels.tg.set_buffer(arg::guards, guards)?;
            out.bind(&kernels.tg, arg::REST)?;
        }
        {
            use args::tgm as arg;
            kernels.tgm.set_buffer(arg::mask_a, &self.masks[0])?;
            kernels.tgm.set_buffer(arg::mask_b, &self.masks[1])?;
            kernels.tgm.set(arg::padded, padded)?;
            kernels.tgm.set_buffer(arg::offsets, &out.offsets)?;
            kernels.tgm.set_buffer(arg::to_original, &graph.to_original)?;
            kernels.tgm.set_buffer(arg::pieces, pieces)?;
            kernels.tgm.set(arg::most_pieces, most_pieces)?;
            kernels.tgm.set_buffer(arg::all_counters, counters)?;
            kernels.tgm.set_buffer(arg::guards, guards)?;
            out.bind(&kernels.tgm, arg::REST)?;
        }
        kernels.tgm_pieces.set_buffer(args::tgm_pieces::mask_a, &self.masks[0])?;
        kernels.tgm_pieces.set_buffer(args::tgm_pieces::mask_b, &self.masks[1])?;
        // All other parameters have the same indices in both kernels.
        for kernel in [&kernels.tg_pieces, &kernels.tgm_pieces] {
            use args::tg_pieces as arg;
            kernel.set_buffer(arg::offsets, &out.offsets)?;
            kernel.set_buffer(arg::to_original, &graph.to_original)?;
            kernel.set_buffer(arg::pieces, pieces)?;
            kernel.set(arg::most_pieces, most_pieces)?;
            kernel.set_buffer(arg::all_counters, counters)?;
            out.bind(kernel, arg::REST)?;
        }
        {
            use args::tg_run as arg;
            kernels.tg_run.set_buffer(arg::offsets, &out.offsets)?;
            kernels.tg_run.set_buffer(arg::to_original, &graph.to_original)?;
            kernels.tg_run.set(arg::most, self.run_arcs.min(u64::from(u32::MAX)) as u32)?;
            kernels.tg_run.set(arg::most_levels, RUN_LEVELS)?;
            kernels.tg_run.set_buffer(arg::all_counters, counters)?;
            kernels.tg_run.set_buffer(arg::guards, guards)?;
            out.bind(&kernels.tg_run, arg::REST)?;
        }
        for (kernel, columns) in [(&kernels.bg, args::bg::REST), (&kernels.bgc, args::bgc::REST)] {
            use args::bg as arg;
            kernel.set_buffer(arg::offsets, &incoming.offsets)?;
            kernel.set_buffer(arg::offsets_out, &out.offsets)?;
            kernel.set_buffer(arg::to_original, &graph.to_original)?;
            kernel.set_buffer(arg::all_counters, counters)?;
            kernel.set_buffer(arg::guards, guards)?;
            let parts = graph.bind_columns(kernel, columns)?;
            incoming.bind(kernel, parts)?;
        }
        kernels.bgc.set_local(args::bgc::cache, 4 * self.cached_words)?;
        kernels.bgc.set(args::bgc::cached, self.cached_words as u32)?;
        {
            use args::sample as arg;
            kernels.sample.set_buffer(arg::offsets, &incoming.offsets)?;
            kernels.sample.set(arg::vertices, vertices)?;
            kernels.sample.set(arg::places, self.places as u32)?;
            kernels.sample.set(arg::most_probes, self.probes)?;
            kernels.sample.set_buffer(arg::all_counters, counters)?;
            incoming.bind(&kernels.sample, arg::REST)?;
        }
        {
            use args::sample_hubs as arg;
            kernels.sample_hubs.set_buffer(arg::mask_a, &self.masks[0])?;
            kernels.sample_hubs.set_buffer(arg::mask_b, &self.masks[1])?;
            kernels.sample_hubs.set_buffer(arg::offsets, &out.offsets)?;
            kernels.sample_hubs.set(arg::vertices, vertices)?;
            kernels.sample_hubs.set(arg::most_places, HUB_PLACES as u32)?;
            kernels.sample_hubs.set_buffer(arg::all_counters, counters)?;
        }
        kernels.stamp_queue.set_buffer(args::stamp_queue::all_counters, counters)?;
        kernels.stamp_bitmap.set_buffer(args::stamp_bitmap::all_counters, counters)?;
        kernels.apply_words.set_buffer(args::apply_words::all_counters, counters)?;
        kernels.gather_parents.set_buffer(args::gather_parents::all_counters, counters)?;
        self.undivide()
    }

    /// Tells the top-down kernels that a level is one launch, also after a failure between several launches.
    pub(super) fn undivide(&self) -> Result<(), DeviceError> {
        let Self { kernels, .. } = self;
        kernels.tg.set(args::tg::launch, 0)?;
        kernels.tg.set(args::tg::launches, 1)?;
        kernels.tgm.set(args::tgm::launch, 0)?;
        kernels.tgm.set(args::tgm::launches, 1)
    }

    /// Gives the kernels the arrays of `state`, for a device state in which nothing is swapped. `other` is the index of the visited bitmap
    /// that is not current, or of the current one if the device was given no other.
    pub(super) fn bind_state(&self, state: &SearchState, other: usize) -> Result<(), DeviceError> {
        let Self { kernels, .. } = self;
        let [visited_a, visited_b] = [&state.visited[state.current], &state.visited[other]];
        let (queue_a, queue_b) = (&state.queue, &state.next);
        {
            use args::bitmap_to_queue as arg;
            kernels.bitmap_to_queue.set_buffer(arg::visited_a, visited_a)?;
            kernels.bitmap_to_queue.set_buffer(arg::visited_b, visited_b)?;
            kernels.bitmap_to_queue.set_buffer(arg::queue_a, queue_a)?;
            kernels.bitmap_to_queue.set_buffer(arg::queue_b, queue_b)?;
        }
        kernels.mask_to_queue.set_buffer(args::mask_to_queue::queue_a, queue_a)?;
        kernels.mask_to_queue.set_buffer(args::mask_to_queue::queue_b, queue_b)?;
        {
            use args::to_mask as arg;
            kernels.to_mask.set_buffer(arg::queue_a, queue_a)?;
            kernels.to_mask.set_buffer(arg::queue_b, queue_b)?;
            kernels.to_mask.set_buffer(arg::visited_a, visited_a)?;
            kernels.to_mask.set_buffer(arg::visited_b, visited_b)?;
        }
        // These kernels begin with the same parameters.
        for kernel in [&kernels.tg, &kernels.tg_run, &kernels.tg_pieces] {
            use args::tg as arg;
            kernel.set_buffer(arg::queue_a, queue_a)?;
            kernel.set_buffer(arg::queue_b, queue_b)?;
            kernel.set_buffer(arg::visited_a, visited_a)?;
            kernel.set_buffer(arg::visited_b, visited_b)?;
            kernel.set_buffer(arg::parent, &state.parent)?;
        }
        {
            use args::tgm as arg;
            kernels.tgm.set_buffer(arg::visited_a, visited_a)?;
            kernels.tgm.set_buffer(arg::visited_b, visited_b)?;
            kernels.tgm.set_buffer(arg::parent, &state.parent)?;
        }
        {
            use args::tgm_pieces as arg;
            kernels.tgm_pieces.set_buffer(arg::visited_a, visited_a)?;
            kernels.tgm_pieces.set_buffer(arg::visited_b, visited_b)?;
            kernels.tgm_pieces.set_buffer(arg::parent, &state.parent)?;
        }
        kernels.sample.set_buffer(args::sample::visited_a, visited_a)?;
        kernels.sample.set_buffer(args::sample::visited_b, visited_b)?;
        {
            use args::sample_hubs as arg;
            kernels.sample_hubs.set_buffer(arg::queue_a, queue_a)?;
            kernels.sample_hubs.set_buffer(arg::queue_b, queue_b)?;
            kernels.sample_hubs.set_buffer(arg::visited_a, visited_a)?;
            kernels.sample_hubs.set_buffer(arg::visited_b, visited_b)?;
        }
        Ok(())
    }
}
