//! Runs the levels of one rank, and the exchange after each level.
//!
//! The visited bitmap and the frontier are the same on every rank; parents are stored only by the owner of a vertex. In both directions, a
//! rank looks for parents of its own vertices only: top-down it visits the arcs from the frontier to its own rows, bottom-up the lists of
//! its unvisited rows. So nothing has to be sent to an owner. After a level, each rank sends the others which of its vertices it found
//! ([`message`]): one exchange, no counters, no parents. Every rank then has the same counts and plans the same level.
//!
//! Each rank decides where it expands a level: on its CPU, or on its device ([`PartGpu`]), which writes the same parents and bits. A rank
//! whose device fails reports that to all ranks instead of what it found. They begin the search again, and that rank runs it on its CPU.

use std::{
    mem,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Instant,
};

use super::{
    ClusterError, ClusterOptions, LevelTraffic, RankDevice,
    deal::Deal,
    message::{self, Bits, HEADER, Malformed, Message, MessageKind, rows_of},
    part::Part,
    ranks::{Ranks, sum},
    runner::{Found, Halt, Runner, advance},
};
use socbfs::{
    DeviceUse, GpuEngineError, GpuSetup,
    bfs::{Direction, Engine, GpuKernel, LevelPlan, LevelStats, LevelWork, Placement},
    graph::{Lists, NONE, Vertex},
    kernels::{BottomUp, SimdKernels},
    memory::{self, OutOfMemory, Owner, Shared, Slab, as_wide_atomics},
    opencl::DeviceError,
    part::{OnHost, PartFrontier, PartGpu, PartState, check_parents},
    threads::{SharedBuffers, Team, share, share_and_sum},
    words::with_causes,
};

/// Own words that a thread processes at a time bottom-up: 4096 vertices.
const WORDS: usize = 64;
/// One thread runs a level that has fewer arcs, unvisited vertices or words on this rank than these.
const SHARED_ARCS: u64 = 16 << 10;
const SHARED_UNVISITED: u64 = 8 << 10;
const SHARED_WORDS: usize = 256;
/// One thread reads the messages if the bitmap of all vertices has fewer words than this.
const SHARED_READ: usize = 2048;
/// Rows that a thread processes at a time at the end of a search.
const RESET: usize = 256 << 10;
/// Rows that a thread collects before it appends them to the rows found.
const COLLECTED: usize = 256;
/// Least and most bytes of each message that the first exchange carries, in steps of `BLOCK_STEP`. A second exchange carries the rest, if
/// any rank has more. If few vertices are unvisited, the first exchange carries fewer bytes than the least.
const BLOCK: [usize; 2] = [64, 1024];
const BLOCK_STEP: usize = 16;

/// Runs levels on one rank.
#[derive(Debug)]
pub(super) struct RankEngine<'p, R: Ranks> {
    part: &'p Part,
    ranks: &'p R,
    team: Team,
    kernels: SimdKernels,
    batch: usize,
    sorted: bool,
    /// Parents, bits and the frontier, which CPU and device use in turn. Between levels, all of them but the parents are on the host.
    state: PartState,
    gpu: Option<PartGpu<'p>>,
    /// At least one rank has a device.
    any_device: bool,
    /// The error of this rank's device, which is then no longer used.
    lost: Option<DeviceError>,
    /// The error of setting up the device, if this rank continues without it.
    set_up_without: Option<String>,
    /// Whether the search may continue without the device if it fails.
    fall_back: bool,
    /// Whether the device has written parents in the current search.
    device_has_found: bool,
    /// By rank, at the end of a search: 0, or the [`MessageKind`] that reports the failure of its device.
    verdicts: Vec<u8>,
    /// Room for the exchange of the neighbours of leaves that are sources.
    leaves: Slab<Vertex>,
    /// What that exchange took in the current search, until it is added to level 0.
    begun: LevelTraffic,
    /// A bit for each row that is the neighbour of such a leaf and that level 0 finds, and whether any bit is set.
    joining: (Slab<u64>, bool),
    /// Whether `parent` may hold entries of other rows than those that are searched and leaves. [`finish`](Self::finish) does not remove
    /// them.
    strange_parent: bool,
    /// The frontier, the same on every rank. A queue is in the order of ranks, ascending within each rank.
    frontier: PartFrontier,
    /// Rows that the current level found top-down.
    found: Slab<Vertex>,
    /// By thread: rows without a parent in the columns (bottom-up), or the current batch (top-down).
    scratch: Vec<Slab<Vertex>>,
    outgoing: Slab<u8>,
    first: Slab<u8>,
    /// Messages of all ranks, in one region of `stride` bytes each.
    incoming: Slab<u8>,
    stride: usize,
    lengths: Vec<i32>,
    offsets: Vec<i32>,
    block: usize,
    /// The counts before the next level, the same on every rank.
    stats: LevelStats,
    traffic: Vec<LevelTraffic>,
}

impl<'p, R: Ranks> RankEngine<'p, R> {
    pub(super) fn new(part: &'p Part, ranks: &'p R, options: &ClusterOptions) -> Result<Self, ClusterError> {
        let kernels = options.simd().kernels()?;
        let team = Team::new(options.threads.max(1), &options.cpus).map_err(ClusterError::Threads)?;
        let (words, own) = (part.words, part.deal.words(part.words));
        let most = part.words.div_ceil(part.deal.ranks);
        let stride = message::longest(most).max(BLOCK[1]).next_multiple_of(64);
        let batch = options.batch.max(1);
        let (held, queue) = ((64 * WORDS).max(batch), part.deal.ranks * message::few(most) + 1);
        // Parents and the rows found; the queue and the buffers; bitmaps; messages. Pages are provided when they are written, so a lack of
        // memory would end the program in the middle of a search.
        let numbers = team.size().saturating_mul(held).saturating_add(2 * 64 * own + queue);
        let bytes = numbers.saturating_mul(4).saturating_add(16 * words + 24 * own + part.deal.ranks * (stride + BLOCK[1]) + stride);
        memory::check_available(bytes as u64, "the search of a rank")?;
        let mut scratch = Vec::new();
        for _ in 0..team.size() {
            scratch.push(Slab::zeroed(held, "per-thread buffers")?);
        }
        let state = PartState::new(&OnHost, words, own, queue)?;
        let mut engine = Self {
            part,
            ranks,
            kernels,
            batch,
            sorted: options.sorted,
            state,
            any_device: false,
            gpu: None,
            lost: None,
            set_up_without: None,
            fall_back: false,
            device_has_found: false,
            verdicts: vec![0; part.deal.ranks],
            leaves: part.room_for_leaves()?,
            begun: LevelTraffic::default(),
            joining: (Slab::zeroed(own, "bitmaps")?, false),
            strange_parent: true,
            frontier: PartFrontier::Queue(0),
            found: Slab::zeroed(64 * own, "frontier queue")?,
            scratch,
            outgoing: Slab::zeroed(stride, "messages")?,
            first: Slab::zeroed(part.deal.ranks * BLOCK[1], "messages")?,
            incoming: Slab::zeroed(part.deal.ranks * stride, "messages")?,
            stride,
            lengths: vec![0; part.deal.ranks],
            offsets: vec![0; part.deal.ranks],
            block: BLOCK[0],
            stats: LevelStats::default(),
            traffic: Vec::with_capacity(LevelTraffic::KEPT),
            team,
        };
        // A rank without vertices needs no device.
        if let Some(device) = options.device.as_ref().filter(|_| own > 0) {
            engine.fall_back = device.fall_back;
            match engine.set_up(device) {
                Ok(()) => {}
                Err(source) => {
                    let error = ClusterError::Gpu { device: device.setup.device.info().name.clone(), source };
                    // As in a search of one process, a policy that needs a device does not start without one.
                    if !device.fall_back || options.policy.needs_device() {
                        return Err(error);
                    }
                    let reason = with_causes("", &error);
                    log::warn!("rank {}: {reason}; continuing on the CPU alone", part.deal.rank);
                    engine.set_up_without = Some(reason);
                    (engine.gpu, engine.state) = (None, PartState::new(&OnHost, words, own, queue)?);
                }
            }
        }
        Ok(engine)
    }

    /// Builds the kernels, shares the state with the device, and compares what its kernels find with what the CPU finds: drivers have bugs.
    fn set_up(&mut self, device: &RankDevice) -> Result<(), GpuEngineError> {
        let (part, rows, queue) = (self.part, self.state.own.device_len(), self.state.queue.device_len());
        let mut setup = device.setup.clone();
        loop {
            let ((gpu, state), options) = setup.build(|options| {
                let gpu = PartGpu::new(part.arrays(), part.words, &GpuSetup { options, ..setup.clone() })?;
                let state = gpu.state(part.words, rows, queue)?;
                Ok((gpu, state))
            })?;
            (self.state, setup.options) = (state, options);
            let group = gpu.used().group;
            self.gpu = Some(gpu);
            let wrong = self.wrong_kernel();
            if setup.passes(group, wrong)? {
                return Ok(());
            }
        }
    }

    /// Expands the vertex that has arcs to the most rows. Returns the first kernel whose vertices or parents differ from those of the CPU.
    fn wrong_kernel(&mut self) -> Result<Option<GpuKernel>, DeviceError> {
        let by_source = &self.part.by_source;
        let Some(v) = (0..by_source.vertices() as Vertex).max_by_key(|&v| by_source.degree(v)).filter(|&v| by_source.degree(v) > 0) else {
            return Ok(None);
        };
        let original = self.part.original(v);
        self.stand_at(&[original]);
        self.stats.frontier_edges = u64::from(by_source.degree(v)) * self.part.deal.ranks as u64;
        self.top_down();
        let wanted = self.state.next.to_vec();
        for (kernel, is_bitmap) in [(GpuKernel::Tg, false), (GpuKernel::Tg, true), (GpuKernel::Bg, false), (GpuKernel::Bgc, false)] {
            self.stand_at(&[original]);
            self.state.parent.fill(NONE);
            self.state.host_has_found = true;
            if is_bitmap {
                self.state.bitmap.fill(0);
                self.state.bitmap[(v >> 6) as usize] = 1 << (v & 63);
                self.frontier = PartFrontier::Bitmap(1);
            }
            match self.on_device(kernel.direction(), kernel, &mut LevelWork::default()) {
                Err(DeviceError::WRONG) => return Ok(Some(kernel)),
                found => found?,
            };
            self.state.parents_to_host()?;
            let parents_are_right =
                wanted.iter().zip(self.state.own.iter()).enumerate().all(|(word, (after, before))| {
                    Bits(after & !before).all(|bit| self.state.parent[word * 64 + bit as usize] == original)
                });
            if *self.state.next != *wanted || !parents_are_right {
                return Ok(Some(kernel));
            }
        }
        Ok(None)
    }

    /// Sets the state and the counts to those of a search whose frontier is the `sources` (original numbers) that are searched.
    fn stand_at(&mut self, sources: &[Vertex]) {
        let part = self.part;
        let (mut len, queue) = (0, &mut self.state.queue);
        self.stats = part.begin(sources, &mut self.state.visited, |v| {
            if let Some(place) = queue.get_mut(len) {
                *place = v;
            }
            len += 1;
        });
        self.frontier = PartFrontier::Queue(len);
        if len > self.state.queue.len() {
            for (bits, (visited, unsearched)) in self.state.bitmap.iter_mut().zip(self.state.visited.iter().zip(&part.unsearched[..])) {
                *bits = visited & !unsearched;
            }
            self.frontier = PartFrontier::Bitmap(len as u64);
        }
        for (own, word) in self.state.own.iter_mut().enumerate() {
            *word = self.state.visited[part.deal.word(own)];
        }
        self.state.next.copy_from_slice(&self.state.own);
    }

    /// Hands the parents over to the host. If that fails, the device is lost.
    fn take_parents(&mut self) {
        if self.lost.is_none() && self.state.parent.owner() != Owner::Host {
            self.lost = self.state.parents_to_host().err();
        }
    }

    /// Finds out whether every rank has its parents on its host. All ranks call it.
    fn agree_on_parents(&mut self) -> Result<(), Halt> {
        let own = if self.lost.is_some() { self.failed_form() as u8 } else { 0 };
        let begin = Instant::now();
        self.ranks.all_gather(&[own], &mut self.verdicts);
        // One byte from each rank, added to the traffic of the last level.
        if let Some(last) = self.traffic.last_mut() {
            let others = self.part.deal.ranks as u64 - 1;
            let wait_ns = nanoseconds(begin, Instant::now());
            last.add(LevelTraffic { received: others, sent: others, messages: 1, wait_ns, compute_ns: 0 });
        }
        let has = |form: MessageKind| self.verdicts.contains(&(form as u8));
        if has(MessageKind::Failed) {
            return Err(Halt::Failed);
        }
        if has(MessageKind::Again) { Err(Halt::Again) } else { Ok(()) }
    }

    /// The form of a message that reports the failure of this rank's device.
    fn failed_form(&self) -> MessageKind {
        if self.fall_back { MessageKind::Again } else { MessageKind::Failed }
    }

    fn complete_parents(&mut self, sources: &[Vertex]) {
        let (leaves, parent, visited) = (&self.part.leaves[..], Shared::new(&mut self.state.parent), &self.state.visited[..]);
        share(&self.team, leaves.len(), RESET / 16, leaves.len() < RESET / 16, &|_, range| {
            for &[row, neighbour, original] in &leaves[range] {
                let reached = visited[(neighbour >> 6) as usize] >> (neighbour & 63) & 1 == 1;
                // SAFETY: each leaf has one row, in range, and each range of leaves is handed out once.
                unsafe { *parent.get().add(row as usize) = if reached { original } else { NONE } };
            }
        });
        for &source in sources {
            if let Some(row) = self.part.own_row(source) {
                self.state.parent[row] = source;
                self.strange_parent |= !self.part.has_edge(source);
            }
        }
        let (own, parent) = (&self.state.own[..], Shared::new(&mut self.state.parent));
        share(&self.team, own.len(), RESET / 64, own.len() < RESET / 64, &|_, range| {
            for word in range {
                for bit in Bits(!own[word]) {
                    // SAFETY: a word has 64 rows, and each word is handed out once.
                    unsafe { *parent.get().add(word * 64 + bit as usize) = NONE };
                }
            }
        });
    }

    /// Top-down: visits the arcs from the frontier to this rank's rows, in batches. Returns the number of rows found, which are in `found`,
    /// and that of the threads that took part.
    fn top_down(&mut self) -> (u64, u32) {
        let threads = self.team.size();
        let alone = threads == 1 || self.stats.frontier_edges / (self.part.deal.ranks as u64) < SHARED_ARCS;
        let count = AtomicUsize::new(0);
        let next = as_wide_atomics(&mut self.state.next);
        let step = TopDown {
            part: self.part,
            next,
            parent: Shared::new(&mut self.state.parent),
            found: Shared::new(&mut self.found),
            count: &count,
        };
        let buffers = SharedBuffers(&self.scratch);
        let (batch, sorted) = (self.batch, self.sorted);
        let (_, worked) = match self.frontier {
            PartFrontier::Queue(len) => {
                let queue = &self.state.queue[..len];
                let grain = if alone { batch } else { batch.min((len / (4 * threads)).max(1)) };
                share_and_sum(&self.team, len, grain, alone, &|thread, range| {
                    // SAFETY: buffer `thread` is this thread's own.
                    let held = unsafe { &mut buffers.of(thread)[..range.len()] };
                    held.copy_from_slice(&queue[range]);
                    if sorted {
                        held.sort_unstable();
                    }
                    step.run(held.iter().copied(), alone);
                    [0; 2]
                })
            }
            PartFrontier::Bitmap(_) => {
                let bitmap = &self.state.bitmap[..];
                let grain = (batch / 64).clamp(1, (bitmap.len() / (4 * threads)).max(1));
                share_and_sum(&self.team, bitmap.len(), grain, alone, &|_, range| {
                    let vertices = range.flat_map(|word| Bits(bitmap[word]).map(move |bit| (word * 64) as Vertex + bit));
                    step.run(vertices, alone);
                    [0; 2]
                })
            }
        };
        (count.into_inner() as u64, worked)
    }

    /// Bottom-up: the unvisited rows of this rank look for a neighbour in the frontier. Returns the number of rows found, and that of the
    /// threads that took part.
    fn bottom_up(&mut self) -> (u64, u32) {
        let part = self.part;
        let words = self.state.own.len();
        let level = BottomUp {
            visited: &self.state.visited,
            own: &self.state.own,
            next: Shared::new(&mut self.state.next),
            parent: Shared::new(&mut self.state.parent),
            columns: part.columns.numbers(),
            originals: part.columns.originals(),
            lists: Lists::new(&part.lists, None),
            degrees: &[],
            to_original: &part.to_original,
            none: (64 * part.words) as Vertex,
        };
        let scratch = SharedBuffers(&self.scratch);
        let kernel = self.kernels.bottom_up;
        let alone = words < SHARED_WORDS || self.stats.unvisited_vertices / (part.deal.ranks as u64) < SHARED_UNVISITED;
        let ([found, _], worked) = share_and_sum(&self.team, words, WORDS, alone, &|thread, range| {
            // SAFETY: words are handed out once, buffer `thread` is this thread's own, and the slabs have the sizes that `BottomUp` needs:
            // columns, lists and parents have 64 rows a word, all neighbours are below 64 * `words`, and `visited` has a word of 0 after
            // those words.
            let found = unsafe { kernel(&level, range, scratch.of(thread)) };
            [found.vertices, found.edges]
        });
        (found, worked)
    }

    /// Runs a level on the device. Returns the number of rows found.
    fn on_device(&mut self, direction: Direction, kernel: GpuKernel, work: &mut LevelWork) -> Result<u64, DeviceError> {
        let Some(gpu) = &mut self.gpu else { return Err(DeviceError::NONE) };
        self.device_has_found = true;
        let level = match direction {
            Direction::BottomUp => gpu.bottom_up(&mut self.state, kernel)?,
            Direction::TopDown => gpu.top_down(&mut self.state, self.frontier, self.stats.frontier_edges / self.part.deal.ranks as u64)?,
        };
        work.handover_ns = level.handover_ns;
        work.threads = 0;
        Ok(level.found)
    }

    /// Runs a level on the CPU. Returns the number of rows found; top-down, they are in `found`.
    fn on_cpu(&mut self, direction: Direction, work: &mut LevelWork) -> Result<u64, DeviceError> {
        if self.gpu.is_some() {
            let begin = Instant::now();
            self.state.parents_to_host()?;
            self.state.host_has_found = true;
            work.handover_ns = nanoseconds(begin, Instant::now());
        }
        let (found, worked) = match direction {
            Direction::TopDown => self.top_down(),
            Direction::BottomUp => self.bottom_up(),
        };
        work.threads = worked.max(1);
        Ok(found)
    }

    /// Expands the frontier to this rank's rows, and writes the message. Returns its length.
    fn expand(&mut self, plan: LevelPlan, work: &mut LevelWork) -> Result<usize, DeviceError> {
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        let few = message::few(self.state.own.len()) as u64;
        // Whether the rows found are in `next` only, not in `found`.
        let (mut found, mut in_bits) = match (plan.placement, self.frontier) {
            // All sources are leaves.
            (_, PartFrontier::Queue(0)) => (0, true),
            (Placement::Gpu(kernel), _) if self.gpu.is_some() => (self.on_device(plan.direction, kernel, work)?, true),
            _ => (self.on_cpu(plan.direction, work)?, false),
        };
        if mem::take(&mut self.joining.1) {
            for (next, joining) in self.state.next.iter_mut().zip(self.joining.0.iter_mut()) {
                found += u64::from((*joining & !*next).count_ones());
                *next |= mem::take(joining);
            }
            in_bits = true;
        }
        let length = if plan.direction == Direction::TopDown && found <= few {
            // The rows of a message are in ascending order.
            let rows = &mut self.found[..found as usize];
            if in_bits {
                let new = self.state.own.iter().zip(self.state.next.iter()).map(|(before, now)| now & !before);
                rows.iter_mut().zip(rows_of(new)).for_each(|(found, row)| *found = row);
            } else {
                rows.sort_unstable();
            }
            message::write_rows(rows, &mut self.outgoing)
        } else {
            message::write(&self.state.own, &self.state.next, &mut self.outgoing)
        };
        match plan.direction {
            Direction::TopDown => self.state.own.copy_from_slice(&self.state.next),
            Direction::BottomUp => {
                mem::swap(&mut self.state.own, &mut self.state.next);
                self.state.next.copy_from_slice(&self.state.own);
            }
        }
        Ok(length)
    }

    /// Exchanges the messages of all ranks, which give the next frontier.
    fn exchange(&mut self, length: usize, work: &mut LevelWork) -> Result<Found, Halt> {
        let ranks = self.part.deal.ranks;
        let begin = Instant::now();
        // A message has few bytes for few unvisited vertices: rows of mostly two bytes, or lists of less than half of the vertices. Every
        // rank must compute the same block, so it uses counts that all ranks have: `own` differs in length between ranks, though only a
        // little.
        let open = (self.stats.unvisited_vertices as usize).div_ceil(ranks);
        let rows = 2 * open.min(message::few(self.part.words.div_ceil(ranks)));
        let block = self.block.min((HEADER + rows.max(open / 4)).next_multiple_of(BLOCK_STEP));
        self.ranks.all_gather(&self.outgoing[..block], &mut self.first[..ranks * block]);
        let mut longest = 0;
        let mut rest = 0;
        for rank in 0..ranks {
            let arrived = &self.first[rank * block..][..block];
            let length = message::length(arrived);
            if length > self.stride {
                return Err(ClusterError::Message { rank }.into());
            }
            longest = longest.max(length);
            self.lengths[rank] = length.saturating_sub(block) as i32;
            self.offsets[rank] = (rank * self.stride + block) as i32;
            self.incoming[rank * self.stride..][..block].copy_from_slice(arrived);
            rest += if rank == self.part.deal.rank { 0 } else { length.saturating_sub(block) };
        }
        let mut messages = 1;
        if longest > block {
            let own = &self.outgoing[block.min(length)..length];
            self.ranks.all_gather_varying(own, &mut self.incoming, &self.lengths, &self.offsets);
            messages = 2;
        }
        let arrived = Instant::now();
        work.wait_ns = nanoseconds(begin, arrived);
        self.block = longest.next_multiple_of(BLOCK_STEP).clamp(BLOCK[0], BLOCK[1]);
        let traffic = LevelTraffic {
            received: ((ranks - 1) * block + rest) as u64,
            sent: ((ranks - 1) * (block + length.saturating_sub(block))) as u64,
            messages,
            wait_ns: work.wait_ns,
            compute_ns: 0,
        };
        traffic.append_to(&mut self.traffic);
        let found = self.read_messages()?;
        work.merge_ns = nanoseconds(arrived, Instant::now());
        Ok(found)
    }

    /// Reads all messages into the visited bits and the next frontier.
    fn read_messages(&mut self) -> Result<Found, Halt> {
        let part = self.part;
        let (ranks, words) = (part.deal.ranks, part.words);
        let (incoming, stride) = (&self.incoming[..], self.stride);
        let message = |rank: usize| Message::read(&incoming[rank * stride..][..stride]).map_err(|Malformed| ClusterError::Message { rank });
        let (mut nothing, mut all_rows, mut halt) = (true, true, None);
        for rank in 0..ranks {
            let message = message(rank)?;
            match message.form {
                MessageKind::Failed => halt = Some(Halt::Failed),
                MessageKind::Again => halt = halt.or(Some(Halt::Again)),
                MessageKind::Rows | MessageKind::Chunks => {}
            }
            all_rows &= message.form == MessageKind::Rows;
            nothing &= message.is_empty();
        }
        if let Some(halt) = halt {
            return Err(halt);
        }
        // No rank found a vertex. The frontier stays as it is, since `leaf_is_deepest` reads the deepest level from it.
        if nothing {
            return Ok((0, 0, false));
        }
        if all_rows {
            let (mut len, mut edges, mut estimated) = (0, 0, false);
            for rank in 0..ranks {
                let deal = Deal { rank, ..part.deal };
                let rows = 64 * deal.words(words);
                for row in message(rank)?.rows() {
                    if row as usize >= rows || len == self.state.queue.len() {
                        return Err(ClusterError::Message { rank }.into());
                    }
                    let v = deal.vertex(row);
                    let (word, bit) = (&mut self.state.visited[(v >> 6) as usize], 1 << (v & 63));
                    // A rank sends only vertices that no rank has visited, and each once. The counts rely on this.
                    if *word & bit != 0 {
                        return Err(ClusterError::Message { rank }.into());
                    }
                    *word |= bit;
                    self.state.queue[len] = v;
                    len += 1;
                    edges += part.degree_like(v);
                    estimated |= Part::is_estimated(v);
                }
            }
            self.frontier = PartFrontier::Queue(len);
            return Ok((len as u64, edges, estimated));
        }
        let (found, edges, malformed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(usize::MAX));
        let visited = &as_wide_atomics(&mut self.state.visited)[..words];
        let bitmap = as_wide_atomics(&mut self.state.bitmap);
        let own = &self.state.own[..];
        let alone = self.team.size() == 1 || words < SHARED_READ;
        share(&self.team, ranks, 1, alone, &|_, range| {
            let (mut new_found, mut new_edges) = (0, 0);
            // Each rank has its own words, so no two threads write the same word.
            let mut new = |word: usize, bits: u64| {
                visited[word].store(visited[word].load(Relaxed) | bits, Relaxed);
                bitmap[word].store(bits, Relaxed);
                let new = u64::from(bits.count_ones());
                new_found += new;
                new_edges += new * u64::from(part.word_degrees[word]);
            };
            for rank in range {
                if rank == part.deal.rank {
                    // `own` contains what this rank sent.
                    for (own, word) in own.iter().zip((rank..words).step_by(ranks)) {
                        new(word, own & !visited[word].load(Relaxed));
                    }
                    continue;
                }
                let deal = Deal { rank, ..part.deal };
                let read = message(rank).is_ok_and(|message| message::read(message, deal, visited, &mut new).is_ok());
                if !read {
                    malformed.fetch_min(rank, Relaxed);
                }
            }
            found.fetch_add(new_found, Relaxed);
            edges.fetch_add(new_edges, Relaxed);
        });
        if malformed.load(Relaxed) != usize::MAX {
            return Err(ClusterError::Message { rank: malformed.into_inner() }.into());
        }
        let (found, mut edges, mut known) = (found.into_inner(), edges.into_inner(), 0);
        if let Some(&first) = self.state.bitmap.first() {
            known = u64::from(first.count_ones());
            let exact: u64 = Bits(first).map(|bit| u64::from(part.first_degrees[bit as usize])).sum();
            edges += exact;
            edges -= known * u64::from(part.word_degrees[0]);
        }
        self.frontier = PartFrontier::Bitmap(found);
        Ok((found, edges, found > known))
    }
}

/// Nanoseconds from one instant to another.
fn nanoseconds(from: Instant, to: Instant) -> u64 {
    to.duration_since(from).as_nanos() as u64
}

/// The data that the threads of a top-down level share.
#[derive(Clone, Copy)]
struct TopDown<'a> {
    part: &'a Part,
    next: &'a [AtomicU64],
    parent: Shared<Vertex>,
    found: Shared<Vertex>,
    count: &'a AtomicUsize,
}

impl TopDown<'_> {
    /// Expands `vertices`. With `alone`, no other thread takes part.
    fn run(&self, vertices: impl Iterator<Item = Vertex>, alone: bool) {
        let mut held = [0; COLLECTED];
        let mut len = 0;
        for source in vertices {
            let original = self.part.original(source);
            for &row in self.part.by_source.neighbours(source) {
                let (word, bit) = (&self.next[(row >> 6) as usize], 1 << (row & 63));
                let before = word.load(Relaxed);
                if before & bit != 0 {
                    continue;
                }
                if alone {
                    word.store(before | bit, Relaxed);
                } else if word.fetch_or(bit, Relaxed) & bit != 0 {
                    continue;
                }
                // SAFETY: rows are in range, and only the thread that set the bit of a row writes its parent.
                unsafe { *self.parent.get().add(row as usize) = original };
                held[len] = row;
                len += 1;
                if len == COLLECTED {
                    self.append(&held);
                    len = 0;
                }
            }
        }
        self.append(&held[..len]);
    }

    fn append(&self, rows: &[Vertex]) {
        let at = self.count.fetch_add(rows.len(), Relaxed);
        // SAFETY: every row is found once, so all of them fit; `fetch_add` hands each place out once.
        unsafe { std::ptr::copy_nonoverlapping(rows.as_ptr(), self.found.get().add(at), rows.len()) };
    }
}

impl<R: Ranks> Engine for RankEngine<'_, R> {
    type Error = Halt;

    fn begin(&mut self, sources: &[Vertex]) -> Result<u64, Halt> {
        let part = self.part;
        self.take_parents();
        (self.device_has_found, self.state.host_has_found) = (false, false);
        if mem::take(&mut self.strange_parent) {
            self.state.parent.fill(NONE);
            self.state.parents_are_new = true;
        }
        self.traffic.clear();
        self.block = BLOCK[0];
        self.stand_at(sources);
        if mem::take(&mut self.joining.1) {
            self.joining.0.fill(0);
        }
        let (state, (joining, joins), is_lost) = (&mut self.state, &mut self.joining, self.lost.is_some());
        self.begun = part.neighbours_of_leaves(self.ranks, sources, &mut self.leaves, |leaf, neighbour| {
            let is_source = state.visited[(neighbour >> 6) as usize] >> (neighbour & 63) & 1 == 1;
            if !is_source && part.deal.owns(neighbour) && !is_lost {
                let row = part.deal.row(neighbour);
                joining[(row >> 6) as usize] |= 1 << (row & 63);
                state.parent[row as usize] = leaf;
                (*joins, state.host_has_found) = (true, true);
            }
        })?;
        Ok(0)
    }

    fn stats(&mut self) -> LevelStats {
        self.stats
    }

    fn run(&mut self, plan: LevelPlan) -> Result<LevelWork, Halt> {
        let begin = Instant::now();
        let mut work = LevelWork { levels: 1, threads: 1, ..LevelWork::default() };
        let length = match self.expand(plan, &mut work) {
            Ok(length) => length,
            Err(error) => {
                self.lost = Some(error);
                message::write_form(self.failed_form(), &mut self.outgoing)
            }
        };
        let compute_ns = nanoseconds(begin, Instant::now());
        let found = self.exchange(length, &mut work)?;
        if let Some(traffic) = self.traffic.last_mut() {
            traffic.compute_ns += compute_ns;
            traffic.add(mem::take(&mut self.begun));
        }
        advance(&mut self.stats, plan.direction, found);
        work.found = found.0;
        work.finished = found.0 == 0;
        Ok(work)
    }
}

impl<R: Ranks> Runner for RankEngine<'_, R> {
    fn parents(&self) -> &[Vertex] {
        &self.state.parent
    }

    fn traffic(&self) -> &[LevelTraffic] {
        &self.traffic
    }

    fn threads(&self) -> usize {
        self.team.size()
    }

    fn device(&self) -> Option<DeviceUse> {
        self.gpu.as_ref().map(PartGpu::used)
    }

    fn announce(&mut self) -> Option<String> {
        self.any_device = sum(self.ranks, self.gpu.is_some().into()) > 0;
        self.set_up_without.take()
    }

    fn failure(&self) -> String {
        match (&self.lost, &self.gpu) {
            (Some(error), Some(gpu)) => format!("{}: {error}", gpu.used().name),
            _ => String::new(),
        }
    }

    fn fall_back(&mut self) -> Result<Option<String>, OutOfMemory> {
        if self.lost.is_none() {
            return Ok(None);
        }
        let failure = self.failure();
        let words = (self.part.words, self.part.deal.words(self.part.words));
        self.state = PartState::new(&OnHost, words.0, words.1, self.state.queue.device_len())?;
        (self.lost, self.gpu, self.strange_parent) = (None, None, true);
        Ok(Some(failure))
    }

    /// Also clears what the last search left at rows that this search did not reach.
    fn finish(&mut self, sources: &[Vertex]) -> Result<(), Halt> {
        self.take_parents();
        if self.lost.is_none() {
            self.complete_parents(sources);
            if self.device_has_found && check_parents(&self.state.parent, self.part.vertices()).is_err() {
                self.lost = Some(DeviceError::WRONG);
            }
        }
        if self.any_device { self.agree_on_parents() } else { Ok(()) }
    }

    fn leaf_is_deepest(&mut self) -> bool {
        self.part.any_leaf(&self.state.parent, |neighbour| match self.frontier {
            PartFrontier::Queue(len) => self.state.queue[..len].contains(&neighbour),
            PartFrontier::Bitmap(_) => self.state.bitmap[(neighbour >> 6) as usize] >> (neighbour & 63) & 1 == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ClusterSearch, ThreadRanks,
        damaged::{Damaged, Operation},
    };
    use socbfs::graph::{EdgeList, Listing, Order};

    /// Small levels run on one thread, whatever the size of the team.
    #[test]
    fn levels_have_the_number_of_threads_that_took_part() {
        let list = EdgeList::new(5, vec![[0, 1], [1, 2], [2, 0], [0, 3], [3, 4]], Listing::Once).unwrap();
        for threads in ThreadRanks::run(2, |ranks| {
            let part = Part::build(&list, Order::Original, ranks).unwrap();
            let options = ClusterOptions { threads: 2, ..ClusterOptions::default() };
            let mut search = ClusterSearch::new(&part, ranks, &options).unwrap();
            search.run(0).unwrap();
            search.records().iter().map(|level| level.threads).collect::<Vec<_>>()
        }) {
            assert!(!threads.is_empty() && threads.iter().all(|&threads| threads == 1), "{threads:?}");
        }
    }

    /// All ranks know the degrees of the first 64 vertices, and the mean degree of each other word.
    #[test]
    fn estimated_numbers_of_edges_are_marked() {
        // Messages are rows on one rank, and chunks on two.
        for (ranks, vertices) in [(1, 600), (2, 200)] {
            let list = EdgeList::new(vertices as usize, (1..vertices).map(|v| [v - 1, v]).collect(), Listing::Once).unwrap();
            let of_ranks = ThreadRanks::run(ranks, |ranks| {
                let part = Part::build(&list, Order::Original, ranks).unwrap();
                let mut search = ClusterSearch::new(&part, ranks, &ClusterOptions::default()).unwrap();
                search.run(1).unwrap();
                search.records().to_vec()
            });
            for records in of_ranks {
                assert_eq!(records.len(), vertices as usize - 2, "{ranks} ranks");
                // Vertex 0 is a leaf, so the frontier of level n is vertex n + 1.
                for (level, record) in records.iter().enumerate() {
                    let marked = (record.stats.frontier_is_estimated, record.stats.unvisited_is_estimated);
                    assert_eq!(marked, (level >= 63, level >= 63), "{ranks} ranks, level {level}");
                }
            }
        }
    }

    /// The owner of a leaf that is a source sends the leaf's neighbour to all ranks: 4 bytes from each of the two ranks.
    #[test]
    fn a_damaged_neighbour_of_a_leaf_is_an_error() {
        // A triangle of 0, 1 and 2, with the leaf 3 at 0. Vertex 4 has no edge, and vertices from 5 on do not exist.
        let list = EdgeList::new(5, vec![[0, 1], [1, 2], [2, 0], [0, 3]], Listing::Once).unwrap();
        let search = |neighbour: Vertex| {
            let of_ranks = ThreadRanks::run(2, |ranks| {
                let part = Part::build(&list, Order::Original, ranks).unwrap();
                let damage = |operation: Operation, bytes: &mut [u8]| {
                    if operation == Operation::AllGather && bytes.len() == 8 {
                        bytes.copy_from_slice(&[neighbour.to_le_bytes(); 2].concat());
                    }
                };
                let ranks = Damaged { ranks, damage };
                let mut search = ClusterSearch::new(&part, &ranks, &ClusterOptions::default()).unwrap();
                search.run(3).map(|outcome| outcome.reached)
            });
            of_ranks.into_iter().next().unwrap()
        };
        assert_eq!(search(0).unwrap(), 4);
        for neighbour in [3, 4, 5, 63, 64, NONE] {
            assert!(matches!(search(neighbour), Err(ClusterError::Message { rank: 0 })), "{neighbour}");
        }
    }
}
