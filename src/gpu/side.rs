//! What a search has on its device, and the launches of its levels there.

use std::{ops::Range, sync::Arc};

use super::{
    DeviceUse, GpuEngineError, GpuOptions, LAUNCH_NS, MOST_LAUNCHES,
    arguments::{Local, Memory, Number, Value, names, set},
    arrivals::Completions,
    graph::{DeviceGraph, GraphArrays, MOST_PARTS},
    kernels::{Built, Kernels},
    slots::{self, COUNTERS, PIECES, SLOT, SLOTS, Slot},
};
use crate::{
    bfs::GpuKernel,
    graph::Vertex,
    memory::SharedSlice,
    opencl::{Buffer, Device, DeviceError, Kernel},
};

/// The graph, the kernels, and the counters that each step leaves.
#[derive(Debug)]
pub(super) struct DeviceSide<'g> {
    pub(super) device: Arc<Device>,
    pub(super) graph: DeviceGraph<'g>,
    pub(super) kernels: Kernels,
    /// Work-items in a work-group.
    pub(super) group: usize,
    /// Work-groups of a launch, at most.
    pub(super) groups: usize,
    /// Length of the longest list that a top-down level reads.
    pub(super) longest: usize,
    launch_arcs: Option<u64>,
    /// Slots of counters: see [`slots`].
    pub(super) counters: Buffer<u32>,
    /// Destination of reads of `counters`. It is not on the stack, since a read that failed may still write to it later.
    pub(super) arrived: SharedSlice<u32>,
    /// Whether a transfer to `arrived` or from `guard_words` may not have ended.
    pub(super) in_flight: bool,
    /// Launches of kernels that complete the work of another one; see [`slots::COMPLETIONS`].
    pub(super) completions: Completions,
    /// Conditions under which steps apply that are launched before they are planned.
    pub(super) guards: Buffer<u32>,
    /// Source of writes to `guards`; not on the stack for the same reason.
    pub(super) guard_words: SharedSlice<u32>,
    /// The slot of the last step.
    pub(super) slot: u32,
}

impl<'g> DeviceSide<'g> {
    /// Builds the kernels and puts the graph on `device`. The bitmap of visited vertices has `words` words of 32 bits, and the kernels
    /// count up to `counted` vertices.
    pub(super) fn new(
        device: &Arc<Device>,
        arrays: GraphArrays<'g>,
        options: &GpuOptions,
        words: usize,
        counted: usize,
    ) -> Result<Self, GpuEngineError> {
        let graph = DeviceGraph::new(device, arrays, options.parts.min(MOST_PARTS), options.graph)?;
        let built = Built::new(device, &graph, options.group, counted)?;
        let (pieces, cached) = (built.pieces(device)?, built.cached_words(device, options.cached_words, words));
        let Built { kernels, group, groups } = built;
        let side = Self {
            longest: (0..arrays.out.vertices()).map(|v| arrays.out.degree(v as Vertex) as usize).max().unwrap_or(0),
            launch_arcs: options.launch_arcs,
            counters: Buffer::new(device, COUNTERS, "counters")?,
            arrived: SharedSlice::for_transfers(device, COUNTERS, "counters")?,
            in_flight: false,
            completions: Completions::default(),
            guards: Buffer::new(device, slots::GUARDS, "conditions")?,
            guard_words: SharedSlice::for_transfers(device, slots::GUARDS, "conditions")?,
            slot: 0,
            device: Arc::clone(device),
            graph,
            kernels,
            group,
            groups,
        };
        side.counters.fill(0)?;
        side.guards.fill(0)?;
        let Self { graph, kernels, counters, guards, .. } = &side;
        let (out, incoming) = (graph.out(), graph.incoming());
        side.set(&[
            ("all_counters", Memory(counters)),
            ("guards", Memory(guards)),
            ("guard", Number(0)),
            ("to_original", Memory(&graph.to_original)),
            ("offsets", Memory(&out.offsets)),
            ("offsets_out", Memory(&out.offsets)),
            ("pieces", Memory(&pieces)),
            ("most_pieces", Number(u32::try_from(pieces.len() / 2).unwrap_or(u32::MAX))),
            ("cache", Local(4 * cached)),
            ("cached", Number(cached as u32)),
        ])?;
        for kernel in [&kernels.bg, &kernels.bgc, &kernels.sample] {
            set(kernel, &[("offsets", Memory(&incoming.offsets))])?;
        }
        // After the named arguments come those that depend on compiler options.
        let rest = |kernel: &Kernel| names(kernel.name()).len() as u32;
        for kernel in [&kernels.tg, &kernels.tgm, &kernels.tg_pieces, &kernels.tgm_pieces, &kernels.tg_run] {
            out.bind(kernel, rest(kernel))?;
        }
        for kernel in [&kernels.bg, &kernels.bgc] {
            incoming.bind(kernel, graph.bind_columns(kernel, rest(kernel))?)?;
        }
        incoming.bind(&kernels.sample, rest(&kernels.sample))?;
        side.undivide()?;
        Ok(side)
    }

    /// Sets these arguments of all kernels that have them.
    pub(super) fn set(&self, values: &[(&str, Value<'_>)]) -> Result<(), DeviceError> {
        self.kernels.all().try_for_each(|kernel| set(kernel, values))
    }

    /// Tells the top-down kernels that a level is one launch, also after a failure between several launches.
    pub(super) fn undivide(&self) -> Result<(), DeviceError> {
        self.set(&[("launch", Number(0)), ("launches", Number(1))])
    }

    /// Describes the device for a record.
    pub(super) fn used(&self) -> DeviceUse {
        let info = self.device.info();
        DeviceUse {
            name: info.name.clone(),
            platform: info.platform.clone(),
            driver: info.driver.clone(),
            group: self.group,
            groups: self.groups,
            parts: self.graph.split().parts,
            zero_copy: self.graph.is_zero_copy(),
        }
    }

    /// The kernel of a bottom-up level.
    pub(super) fn bottom_up(&self, kernel: GpuKernel) -> &Kernel {
        if kernel == GpuKernel::Bgc { &self.kernels.bgc } else { &self.kernels.bg }
    }

    pub(super) fn next_slot(&mut self) -> u32 {
        self.slot = (self.slot + 1) % SLOTS;
        self.slot
    }

    /// Waits for the slots of all steps, and reads them.
    pub(super) fn read_slots(&mut self) -> Result<(), DeviceError> {
        self.counters.read(0..self.arrived.len(), &mut self.arrived)?;
        self.in_flight = false;
        self.completions.check(&self.arrived)
    }

    /// Slot `slot` as it was last read.
    pub(super) fn read_slot(&self, slot: u32) -> Slot {
        Slot::of(&self.arrived, slot)
    }

    /// Starts `groups` work-groups of a kernel.
    pub(super) fn start(&self, kernel: &Kernel, groups: usize) -> Result<(), DeviceError> {
        // SAFETY: these are the kernels of kernels/*.cl, which stay inside the arrays that they are given here and by their engine: every
        // index is compared with the number of vertices, arcs or words (tests/gpu_races.rs has Oclgrind check that). In a part of a graph,
        // sources index `by_source` and `visited`, which cover all vertices; rows index lists, columns, parents, `own` and `next`, which
        // cover all rows. A row's number is not above its vertex's, so that it may index `by_source` too (TG adds up the arcs of what it
        // found, which are not read). Memory that kernels were given goes back to the host only after a wait: in `handover` and `part`, or
        // in a level that both run (`hybrid::concurrent`).
        unsafe { kernel.run(groups, self.group) }
    }

    /// Number of work-groups for `items` pieces of work, one per work-item; at most `self.groups`.
    pub(super) fn groups_for(&self, items: usize) -> usize {
        items.div_ceil(self.group).clamp(1, self.groups)
    }

    /// Number of launches for a level that goes through at most `arcs` arcs.
    fn launches(&self, arcs: u64) -> u32 {
        let launches = match self.launch_arcs {
            Some(most) => arcs.div_ceil(most.max(1)),
            None => self.device.ns_of(arcs).div_ceil(LAUNCH_NS),
        };
        launches.clamp(1, MOST_LAUNCHES) as u32
    }

    /// Gives the device the state of a search: the frontier of `len` vertices and `edges` arcs in the form `state`, the vertices visited
    /// before it, and the arcs of earlier frontiers.
    pub(super) fn seed(&mut self, state: u32, len: u64, edges: u64, visited_before: u64, expanded: u64) -> Result<(), DeviceError> {
        let capped = |number: u64| Number(number.min(u64::from(u32::MAX)) as u32);
        let slot = self.next_slot();
        let kernel = &self.kernels.seed;
        set(kernel, &[("slot", Number(slot)), ("state", Number(state)), ("len", capped(len)), ("edges", capped(edges))])?;
        set(kernel, &[("visited_before", capped(visited_before)), ("expanded", capped(expanded))])?;
        self.start(kernel, 1)
    }

    /// Launches a level of TG or TGM for frontiers of `most` arcs at most; TG applies to those of `least` or more.
    pub(super) fn launch_top_down(&mut self, kernel: GpuKernel, guard: u32, least: u32, most: u64) -> Result<(), DeviceError> {
        let slot = self.next_slot();
        let Kernels { tg, tg_pieces, tgm, tgm_pieces, .. } = &self.kernels;
        let (first, second) = if kernel == GpuKernel::Tgm { (tgm, tgm_pieces) } else { (tg, tg_pieces) };
        set(first, &[("slot", Number(slot)), ("guard", Number(guard)), ("least", Number(least))])?;
        set(second, &[("slot", Number(slot))])?;
        // The second launch is needed where lists may have been cut. It has as many groups as the first launch, since the size of a piece
        // depends on that number.
        let second = (self.longest > self.group).then_some(second);
        let launches = self.launches(most);
        let tell = |launch: u32, launches: u32| set(first, &[("launch", Number(launch)), ("launches", Number(launches))]);
        for launch in 0..launches {
            if launches > 1 {
                tell(launch, launches)?;
            }
            if launch > 0 {
                self.counters.put((slot * SLOT + PIECES) as usize, 0)?;
            }
            self.start(first, self.groups)?;
            second.map_or(Ok(()), |second| self.start(second, self.groups))?;
        }
        // After a failure `undivide` does it.
        if launches > 1 {
            tell(0, 1)?;
        }
        self.completions.add(if second.is_some() { launches } else { 0 });
        Ok(())
    }

    /// Launches a level of BG or BGC over a range of 32-bit words, which goes through `arcs` arcs.
    pub(super) fn launch_bottom_up(&mut self, kernel: GpuKernel, guard: u32, words: Range<u32>, arcs: u64) -> Result<(), DeviceError> {
        let slot = self.next_slot();
        let kernel = self.bottom_up(kernel);
        set(kernel, &[("slot", Number(slot)), ("guard", Number(guard))])?;
        let share = words.len().div_ceil(self.launches(arcs) as usize).next_multiple_of(self.group / 32);
        // There is a launch even if there is no word, since it opens the slot.
        for launch in 0..words.len().div_ceil(share.max(1)).max(1) as u32 {
            let first = words.start + launch * share as u32;
            let own = first..words.end.min(first.saturating_add(share as u32));
            set(kernel, &[("first", Number(own.start)), ("end", Number(own.end))])?;
            self.start(kernel, self.groups_for(own.len() * 32))?;
        }
        Ok(())
    }
}

impl Drop for DeviceSide<'_> {
    fn drop(&mut self) {
        if self.in_flight {
            // If this fails, the memory of both sides is kept.
            let _ = self.device.finish();
        }
    }
}
