//! Building the kernels for a device and a graph.

use std::sync::Arc;

use super::{
    GpuEngine, GpuEngineError, GpuOptions, SLOT, SLOTS,
    graph::{DeviceGraph, MOST_PARTS},
};
use crate::{
    graph::{Layout, Vertex},
    memory::Slab,
    opencl::{Buffer, Device, DeviceKind, Kernel, OpenClError, Program},
};

/// The kernels' source, in the order in which it is compiled.
const SOURCES: [&str; 7] = [
    include_str!("../../../kernels/common.cl"),
    include_str!("../../../kernels/reset.cl"),
    include_str!("../../../kernels/convert.cl"),
    include_str!("../../../kernels/top_down.cl"),
    include_str!("../../../kernels/bottom_up.cl"),
    include_str!("../../../kernels/hubs.cl"),
    include_str!("../../../kernels/split.cl"),
];

/// Items in a work-group of a GPU, where the device allows that many.
const GROUP: usize = 256;
/// Work-groups per compute unit of a GPU: they loop, there is none per vertex (Remis 2016, section 4.3).
const GROUPS_PER_UNIT: usize = 8;
/// Vertices that a group collects before it appends them to the queue.
const COLLECTED: usize = 2048;
/// Vertices that an item of its own collects.
const COLLECTED_ALONE: usize = 512;
/// Rounds of work-groups a heavy vertex is worth: arcs from which all groups expand it together.
const HEAVY_ROUNDS: usize = 32;
/// Words of the visited bitmap that BGC copies to local memory, at most: the 32,768 vertices of highest degree.
const CACHED_WORDS: usize = 1024;
/// Frontiers with up to this many arcs per item of one group are run by that group, level after level, in one launch.
const RUN_ARCS_PER_ITEM: u64 = 16;
/// The same where an item works by itself.
const RUN_ARCS_ALONE: u64 = 8 << 10;

/// The kernels, with the arguments set that never change.
#[derive(Debug)]
pub(super) struct Kernels {
    pub(super) reset: Kernel,
    pub(super) map_back: Kernel,
    pub(super) stamp_queue: Kernel,
    pub(super) stamp_bitmap: Kernel,
    pub(super) bitmap_to_queue: Kernel,
    pub(super) mask_to_queue: Kernel,
    pub(super) queue_to_mask: Kernel,
    pub(super) bitmap_to_mask: Kernel,
    pub(super) tg: Kernel,
    pub(super) tgm: Kernel,
    /// Of a group of several items only.
    pub(super) heavy: Option<[Kernel; 2]>,
    pub(super) tg_run: Kernel,
    pub(super) bg: Kernel,
    pub(super) bgc: Kernel,
    pub(super) sample: Kernel,
    pub(super) hubs_in_queue: Kernel,
    pub(super) hubs_in_bitmap: Kernel,
    pub(super) hubs_in_mask: Kernel,
    pub(super) apply_words: Kernel,
    pub(super) gather_parents: Kernel,
}

impl Kernels {
    fn new(program: &Program, several: bool) -> Result<Self, OpenClError> {
        let kernel = |name| program.kernel(name);
        Ok(Self {
            reset: kernel("reset")?,
            map_back: kernel("map_back")?,
            stamp_queue: kernel("stamp_queue")?,
            stamp_bitmap: kernel("stamp_bitmap")?,
            bitmap_to_queue: kernel("bitmap_to_queue")?,
            mask_to_queue: kernel("mask_to_queue")?,
            queue_to_mask: kernel("queue_to_mask")?,
            bitmap_to_mask: kernel("bitmap_to_mask")?,
            tg: kernel("tg")?,
            tgm: kernel("tgm")?,
            heavy: if several { Some([kernel("tg_heavy")?, kernel("tgm_heavy")?]) } else { None },
            tg_run: kernel("tg_run")?,
            bg: kernel("bg")?,
            bgc: kernel("bgc")?,
            sample: kernel("sample")?,
            hubs_in_queue: kernel("hubs_in_queue")?,
            hubs_in_bitmap: kernel("hubs_in_bitmap")?,
            hubs_in_mask: kernel("hubs_in_mask")?,
            apply_words: kernel("apply_words")?,
            gather_parents: kernel("gather_parents")?,
        })
    }

    /// The largest work-group that all of them take.
    fn max_group(&self) -> usize {
        let Self { reset, map_back, stamp_queue, stamp_bitmap, bitmap_to_queue, mask_to_queue, .. } = self;
        let Self { queue_to_mask, bitmap_to_mask, tg, tgm, heavy, tg_run, bg, bgc, sample, .. } = self;
        let Self { hubs_in_queue, hubs_in_bitmap, hubs_in_mask, apply_words, gather_parents, .. } = self;
        [reset, map_back, stamp_queue, stamp_bitmap, bitmap_to_queue, mask_to_queue, queue_to_mask, bitmap_to_mask]
            .into_iter()
            .chain([tg, tgm, tg_run, bg, bgc, sample, hubs_in_queue, hubs_in_bitmap, hubs_in_mask, apply_words, gather_parents])
            .chain(heavy.iter().flatten())
            .map(Kernel::max_group)
            .min()
            .unwrap_or(1)
    }
}

impl<'g> GpuEngine<'g> {
    /// Builds the kernels and puts the graph on `device`. `closed` are the bits of vertices that take no part.
    pub(crate) fn new(layout: &'g Layout, device: &Arc<Device>, closed: &[u64], options: GpuOptions) -> Result<Self, GpuEngineError> {
        let graph = DeviceGraph::new(device, layout, options.parts.min(MOST_PARTS))?;
        let is_cpu = device.info().kind == DeviceKind::Cpu;
        let mut group = Self::fitting(options.group.unwrap_or(if is_cpu { 1 } else { GROUP }), device.max_work_group());
        let source = SOURCES.concat();
        // Words of local memory that one kernel may declare.
        let words = device.local_bytes() as usize / 4;
        let mut room = words;
        let (kernels, heavy_arcs) = loop {
            // Three numbers an item for a batch, and what is left (but for some room to spare) for what was found.
            let (left, most, least) =
                if group == 1 { (room, COLLECTED_ALONE, 16) } else { (room.saturating_sub(3 * group + 64), COLLECTED, 2 * group) };
            let collected = (left.min(most) / group * group).max(least);
            let heavy = if group == 1 { 0 } else { HEAVY_ROUNDS * group };
            let flags = format!("-DGROUP={group} -DNEXT={collected} -DHEAVY={heavy} {}", graph.options(layout));
            let built = device.program(&source, &flags).and_then(|program| Kernels::new(&program, group > 1));
            match built {
                // A kernel may take less than the device promises, and what its local memory allows.
                Ok(kernels) if kernels.max_group() < group => group = Self::fitting(kernels.max_group(), device.max_work_group()),
                Ok(kernels) => break (kernels, heavy),
                // A driver may count what all kernels declare together.
                Err(OpenClError::LocalMemory { .. }) if collected > least => room /= 2,
                // It may refuse work-groups of a size, or have too few registers for them.
                Err(OpenClError::Build { .. } | OpenClError::NoKernel { .. }) if group > 32 => {
                    (group, room) = (Self::fitting(group / 2, device.max_work_group()), words);
                }
                Err(OpenClError::LocalMemory { .. }) if group > 1 => {
                    (group, room) = (Self::fitting(group / 2, device.max_work_group()), words);
                }
                Err(error) => return Err(error.into()),
            }
        };
        let units = device.info().compute_units.max(1) as usize;
        let heavies =
            (0..layout.csr().vertices()).filter(|&v| heavy_arcs > 0 && layout.csr().degree(v as Vertex) as usize >= heavy_arcs).count();
        let padded = layout.padded();
        let free_local = (device.local_bytes().saturating_sub(kernels.bgc.local_bytes()) / 4) as usize;
        let engine = Self {
            counters: Buffer::new(device, SLOT * SLOTS as usize, "counters")?,
            seen: Slab::zeroed(padded / 64, "bitmaps")?,
            host_closed: Slab::copy_of(closed, "bitmaps")?,
            arrived: Slab::zeroed(SLOT, "counters")?,
            slot: 0,
            masks: [Buffer::new(device, padded, "frontier mask")?, Buffer::new(device, padded, "frontier mask")?],
            closed: Buffer::from_host(device, closed, "bitmaps")?,
            level_of: None,
            group,
            groups: if group == 1 { units } else { units * GROUPS_PER_UNIT },
            run_arcs: options.run_arcs.map_or(if group == 1 { RUN_ARCS_ALONE } else { RUN_ARCS_PER_ITEM * group as u64 }, u64::from),
            heavy: (heavies > 0).then_some(heavy_arcs as u64),
            cached_words: options.cached_words.unwrap_or(CACHED_WORDS).min(padded / 32).min(free_local).max(1),
            layout,
            device: Arc::clone(device),
            graph,
            kernels,
        };
        engine.counters.fill(0)?;
        engine.clear_masks()?;
        engine.bind(&Buffer::new(device, heavies.max(1), "heavy vertices")?)?;
        device.finish()?;
        Ok(engine)
    }

    /// The largest work-group of our kernels that is not above either number: 1 or a multiple of 32.
    fn fitting(wanted: usize, most: usize) -> usize {
        let group = wanted.min(most) / 32 * 32;
        if group == 0 { 1 } else { group }
    }
}
