//! The kernels built for a device and a graph, with the sizes of their launches.

use std::sync::Arc;

use super::{GpuEngineError, graph::DeviceGraph, slots};
use crate::opencl::{Buffer, Device, DeviceKind, Kernel, LEAST_GROUP, NO_GROUPS, OpenClError, Program};

/// The kernels' source, in the order in which it is compiled.
pub(super) const SOURCES: [&str; 7] = [
    include_str!("../../kernels/common.cl"),
    include_str!("../../kernels/reset.cl"),
    include_str!("../../kernels/convert.cl"),
    include_str!("../../kernels/top_down.cl"),
    include_str!("../../kernels/bottom_up.cl"),
    include_str!("../../kernels/samples.cl"),
    include_str!("../../kernels/split.cl"),
];

/// Work-items in a work-group by default, as far as the device allows.
const GROUP: usize = 256;
/// The same on a device that is a CPU, which runs the items of a group one after the other. (Measured on PoCL with two cores, Kronecker 16:
/// TG takes 12 ms with 32 and 24 with 256, BG 3.8 and 9.)
const GROUP_OF_CPU: usize = LEAST_GROUP;
/// Work-groups per compute unit of a GPU. Groups loop over the vertices; there is not one group per vertex (Remis 2016, section 4.3).
const GROUPS_PER_UNIT: usize = 8;
/// Vertices that a group collects before it appends them to the queue, at most.
const COLLECTED: usize = 1024;
/// Groups whose local memory should fit into that of a unit at the same time. With fewer, TG leaves a unit of a GPU half empty: of 16 or 10
/// waves that Adreno's and AMD's units run, 4 or 5 remain with 2048 vertices, and 8 with 1024.
const GROUPS_AT_ONCE: usize = 4;
/// Room for pieces of long lists, per work-group. A level has at most half as many (`piece_bits` in `kernels/top_down.cl`); the rest is a
/// reserve for levels whose arcs were estimated.
const PIECES_PER_GROUP: usize = 16;
/// Words of the visited bitmap that BGC copies to local memory by default: the bits of the first 32,768 vertices, those of highest degree
/// in a layout ordered by degree.
const CACHED_WORDS: usize = 1024;

/// All kernels of the engine.
#[derive(Debug)]
pub(super) struct Kernels {
    pub(super) reset: Kernel,
    pub(super) seed: Kernel,
    pub(super) map_back: Kernel,
    pub(super) stamp_queue: Kernel,
    pub(super) stamp_bitmap: Kernel,
    pub(super) bitmap_to_queue: Kernel,
    pub(super) mask_to_queue: Kernel,
    pub(super) to_mask: Kernel,
    pub(super) tg: Kernel,
    pub(super) tgm: Kernel,
    /// The second launch of a TG level: pieces of long lists.
    pub(super) tg_pieces: Kernel,
    /// The second launch of a TGM level.
    pub(super) tgm_pieces: Kernel,
    pub(super) tg_run: Kernel,
    pub(super) bg: Kernel,
    pub(super) bgc: Kernel,
    pub(super) sample: Kernel,
    pub(super) sample_hubs: Kernel,
    pub(super) apply_words: Kernel,
    pub(super) gather_parents: Kernel,
}

impl Kernels {
    fn new(program: &Program) -> Result<Self, OpenClError> {
        let kernel = |name| program.kernel(name);
        Ok(Self {
            reset: kernel("reset")?,
            seed: kernel("seed")?,
            map_back: kernel("map_back")?,
            stamp_queue: kernel("stamp_queue")?,
            stamp_bitmap: kernel("stamp_bitmap")?,
            bitmap_to_queue: kernel("bitmap_to_queue")?,
            mask_to_queue: kernel("mask_to_queue")?,
            to_mask: kernel("to_mask")?,
            tg: kernel("tg")?,
            tgm: kernel("tgm")?,
            tg_pieces: kernel("tg_pieces")?,
            tgm_pieces: kernel("tgm_pieces")?,
            tg_run: kernel("tg_run")?,
            bg: kernel("bg")?,
            bgc: kernel("bgc")?,
            sample: kernel("sample")?,
            sample_hubs: kernel("sample_hubs")?,
            apply_words: kernel("apply_words")?,
            gather_parents: kernel("gather_parents")?,
        })
    }

    /// All kernels.
    pub(super) fn all(&self) -> impl Iterator<Item = &Kernel> {
        let Self { reset, seed, map_back, stamp_queue, stamp_bitmap, bitmap_to_queue, mask_to_queue, to_mask, .. } = self;
        let Self { tg, tgm, tg_pieces, tgm_pieces, tg_run, bg, bgc, sample, sample_hubs, apply_words, gather_parents, .. } = self;
        let of_levels = [tg, tgm, tg_pieces, tgm_pieces, tg_run, bg, bgc, sample, sample_hubs, apply_words, gather_parents];
        [reset, seed, map_back, stamp_queue, stamp_bitmap, bitmap_to_queue, mask_to_queue, to_mask].into_iter().chain(of_levels)
    }

    /// The largest work-group that all kernels accept.
    fn max_group(&self) -> usize {
        self.all().map(Kernel::max_group).min().unwrap_or(1)
    }
}

/// Kernels built for a device and a graph, with the sizes of their launches.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) kernels: Kernels,
    /// Work-items in a work-group.
    pub(super) group: usize,
    /// Work-groups of a launch, at most.
    pub(super) groups: usize,
}

impl Built {
    /// Builds the kernels for `graph` with work-groups of size `wanted` (`None`: by the kind of device), or as near to it as the device
    /// accepts. `vertices` is the number of vertices that kernels count, padding included.
    pub(super) fn new(
        device: &Arc<Device>,
        graph: &DeviceGraph<'_>,
        wanted: Option<usize>,
        vertices: usize,
    ) -> Result<Self, GpuEngineError> {
        let is_cpu = device.info().kind == DeviceKind::Cpu;
        let usual = if is_cpu { GROUP_OF_CPU } else { GROUP };
        let mut group = fitting(device, wanted.unwrap_or(usual).max(LEAST_GROUP).min(device.max_work_group()))?;
        // Words of local memory that one kernel may declare.
        let words = device.local_bytes() as usize / 4;
        let mut room = words;
        // Not left to the driver alone, for PoCL 5.0 and 6.0 report 0 bytes for every kernel.
        while fixed_words(group) + least_collected(group) > words {
            group = fitting(device, group / 2)?;
        }
        let kernels = loop {
            let ProgramOptions { options, collected, least } = ProgramOptions::new(group, room, &graph.options());
            let built = device.kernels(&SOURCES, &options, Kernels::new);
            match built {
                // A kernel may accept smaller work-groups than the device reports.
                Ok(kernels) if kernels.max_group() < group => group = fitting(device, kernels.max_group())?,
                Ok(kernels) => break kernels,
                // A driver may add up the local memory that all kernels declare.
                Err(OpenClError::LocalMemory { .. }) if collected > least => room /= 2,
                // A driver may refuse work-groups of a size, or have too few registers or too little local memory for them.
                Err(error) if group > LEAST_GROUP && error.is_of_build() || matches!(error, OpenClError::LocalMemory { .. }) => {
                    (group, room) = (fitting(device, group / 2)?, words);
                }
                Err(error) => return Err(error.into()),
            }
        };
        let units = device.compute_units() as usize;
        let groups = units * GROUPS_PER_UNIT;
        let most = most_vertices(groups, group);
        if vertices > most {
            return Err(GpuEngineError::TooManyVertices { vertices, most });
        }
        Ok(Self { kernels, group, groups })
    }

    /// Allocates the pieces of long lists. The kernels get their number as an argument.
    pub(super) fn pieces(&self, device: &Arc<Device>) -> Result<Buffer<u32>, OpenClError> {
        Buffer::new(device, 2 * PIECES_PER_GROUP * self.groups, "pieces of long lists")
    }

    /// Number of words of the visited bitmap, of `words`, that BGC keeps in local memory.
    pub(super) fn cached_words(&self, device: &Device, wanted: Option<usize>, words: usize) -> usize {
        let declared = self.kernels.bgc.local_bytes().max(4 * scratch_words(self.group) as u64);
        let free_local = (device.local_bytes().saturating_sub(declared) / 4) as usize;
        wanted.unwrap_or(CACHED_WORDS).min(words).min(free_local).max(1)
    }
}

/// Words of local memory that a kernel for groups of `group` work-items declares besides the vertices that it collects: a batch has
/// three per work-item, and the rest is a reserve (`Batch` and `Found` in `kernels/top_down.cl`).
const fn fixed_words(group: usize) -> usize {
    3 * group + 64
}

/// The least number of vertices that a group of `group` work-items collects.
const fn least_collected(group: usize) -> usize {
    2 * group
}

/// Words of local memory that the bottom-up kernels declare (`Scratch` in `kernels/bottom_up.cl`).
pub(super) const fn scratch_words(group: usize) -> usize {
    group + group / 32 + 4
}

/// The largest size of a work-group up to `most` that the kernels support.
fn fitting(device: &Device, most: usize) -> Result<usize, OpenClError> {
    match most / LEAST_GROUP * LEAST_GROUP {
        0 => Err(OpenClError::Unusable { device: device.info().name.clone(), reason: NO_GROUPS.into() }),
        group => Ok(group),
    }
}

/// The compiler options for work-groups of one size, on a device with some local memory, for a kind of graph.
struct ProgramOptions {
    options: String,
    /// Vertices that a group collects, and the least number for which the kernels are right.
    collected: usize,
    least: usize,
}

impl ProgramOptions {
    /// The options for work-groups of `group` items if a kernel may declare `room` words of local memory. `of_graph` are
    /// [`DeviceGraph::options`].
    fn new(group: usize, room: usize, of_graph: &str) -> Self {
        let (left, least) = ((room / GROUPS_AT_ONCE).saturating_sub(fixed_words(group)), least_collected(group));
        let collected = (left.min(COLLECTED) / group * group).max(least);
        let options = format!("-DGROUP={group} -DNEXT={collected} {of_graph}{}", slots::defines());
        Self { options, collected, least }
    }
}

/// The most vertices that kernels can count. The 32-bit counter of a loop over vertices or queue entries can end up to one round of all
/// work-items past the last of them.
const fn most_vertices(groups: usize, group: usize) -> usize {
    (u32::MAX as usize).saturating_sub(groups.saturating_mul(group))
}

#[cfg(test)]
mod tests {
    use std::{env, fmt::Write, fs, path::Path};

    use super::*;
    use crate::{
        gpu::graph::{EdgeParts, MOST_PARTS},
        graph::{BuildOptions, EdgeList, Layout, Listing, Order},
    };

    /// The options fit the local memory. `tests/gpu_compilers` compiles the kernels with them: it names in SOCBFS_PROGRAMS the folder to
    /// which the source (`all.cl`) and the options (`options.tsv`) are written.
    #[test]
    fn every_set_of_options_fits_the_local_memory() {
        let edges = EdgeList::new(4, vec![[0, 1], [1, 2], [2, 3]], Listing::Once).unwrap();
        // Renumbered with two and with four columns of first neighbours, columns without renumbering, and neither (the CPU has rows
        // instead).
        let layouts = [(Order::Degree, false), (Order::Bfs, false), (Order::Original, true), (Order::Original, false)]
            .map(|(order, directed)| Layout::build(&edges, &BuildOptions { order, directed, ..BuildOptions::default() }).unwrap());
        let mut table = String::from("local_bytes\tgroup\tparts\tcolumns\trenumbered\toptions\n");
        let mut kinds = Vec::new();
        for layout in &layouts {
            let (columns, renumbered) = (layout.columns().len(), !layout.original_numbers().is_empty());
            kinds.push((columns, renumbered));
            for parts in [1, 4, MOST_PARTS] {
                // The size of a part is no power of two: a division by one of those is a shift.
                let of_graph = EdgeParts { parts, edges_per_part: 25 << 20 }.options(columns, renumbered);
                for local in [16 << 10, 32 << 10, 48 << 10, 64 << 10, 128 << 10] {
                    for group in [32, 64, 128, 256, 512] {
                        let ProgramOptions { options, collected, least } = ProgramOptions::new(group, local / 4, &of_graph);
                        let words = fixed_words(group) + collected;
                        assert!(collected >= least && collected % group == 0 && 4 * words <= local, "{local} bytes: {options}");
                        writeln!(table, "{local}\t{group}\t{parts}\t{columns}\t{}\t{options}", u8::from(renumbered)).unwrap();
                    }
                }
            }
        }
        kinds.dedup();
        assert_eq!(kinds.len(), layouts.len(), "{kinds:?}");
        if let Some(folder) = env::var_os("SOCBFS_PROGRAMS") {
            let folder = Path::new(&folder);
            fs::write(folder.join("all.cl"), SOURCES.concat()).unwrap();
            fs::write(folder.join("options.tsv"), table).unwrap();
        }
    }

    /// The kernels' loops: `for (uint v = id; v < vertices; v += round)`.
    #[test]
    fn loops_over_vertices_do_not_overflow_32_bits() {
        // An H200 has 132 compute units, PoCL on a large server 256 threads; the largest number is not a real device's.
        for (groups, group) in [(132 * GROUPS_PER_UNIT, 256), (1, 32), (256 * GROUPS_PER_UNIT, 32), (1 << 21, 1024)] {
            let most = most_vertices(groups, group);
            let round = groups * group;
            assert!(round <= u32::MAX as usize, "{groups} {group}");
            for vertices in [most, most.saturating_sub(1), most / 2] {
                // The work-item that gets farthest was just before the last vertex.
                let last = vertices.saturating_sub(1) as u64 + round as u64;
                assert!(vertices == 0 || u32::try_from(last).is_ok(), "{groups} x {group}, {vertices} vertices: {last}");
            }
        }
        assert!(most_vertices(132 * GROUPS_PER_UNIT, 256) > 4_294_000_000);
        assert_eq!(most_vertices(usize::MAX, 256), 0);
    }
}
