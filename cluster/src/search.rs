//! Searches over the parts of one graph, one after another.

use std::time::{Duration, Instant};

use super::{
    ClusterError,
    levels::{Halt, RankEngine},
    pairs::PairsEngine,
    part::Part,
    placing::{Places, RankDevice, RankPlanner},
    ranks::{Ranks, max, sum, texts},
};
use socbfs::{
    bfs::{LevelRecord, Records, level_loop},
    cpu::Simd,
    gpu::DeviceUse,
    graph::{NONE, Vertex},
    policy::{LevelDevice, Policy, PolicyPlanner},
    search::Outcome,
    words::with_causes,
};

/// The data that ranks send each other after a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// The vertices that were found, to all ranks.
    #[default]
    Found,
    /// Each neighbour of the frontier with its parent, to its owner (Sunway 2021, algorithm 2); top-down only.
    Pairs,
}

/// Options of a search over ranks.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// The policy that decides the direction of each level. It must decide the same on every rank, so it gets no samples. If it names a
    /// kernel of a device and the rank has a device, that kernel runs the levels of its direction.
    pub policy: Policy,
    /// The device of this rank; ranks may have different ones, or none. ([`Exchange::Pairs`] takes none.)
    pub device: Option<RankDevice>,
    /// Threads of each rank.
    pub threads: usize,
    /// CPUs the threads are bound to.
    pub cpus: Vec<usize>,
    /// Vector instructions (`None`: the best this CPU has).
    pub simd: Option<Simd>,
    /// What ranks send each other.
    pub exchange: Exchange,
    /// Vertices of the frontier that a thread processes at a time: as many as fit a cache or a local memory.
    pub batch: usize,
    /// Sort each batch first (Sunway 2021, algorithm 5), so that lists are read in the order of memory.
    pub sorted: bool,
}

impl ClusterOptions {
    /// Vertices in a batch by default: 16 KiB of numbers, half of the first-level cache of a small core.
    pub const BATCH: usize = 4096;

    pub(super) fn simd(&self) -> Simd {
        self.simd.unwrap_or_else(Simd::detect)
    }
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            policy: Policy::AlphaBeta(socbfs::policy::AlphaBeta::default()),
            device: None,
            threads: 1,
            cpus: Vec::new(),
            simd: None,
            exchange: Exchange::Found,
            batch: Self::BATCH,
            sorted: true,
        }
    }
}

/// What one rank sent and received at one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct LevelTraffic {
    /// Bytes received from other ranks.
    pub received: u64,
    /// Bytes of this rank's messages, times the number of ranks that received them.
    pub sent: u64,
    /// Collective operations.
    pub messages: u32,
    /// Time from the end of this rank's own work to the arrival of all messages, in nanoseconds: other ranks' work and the network.
    pub wait_ns: u64,
    /// Time of this rank's own work at the level, in nanoseconds, without reading the messages that arrived.
    pub compute_ns: u64,
}

impl LevelTraffic {
    /// Adds the traffic of another level.
    pub fn add(&mut self, other: Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.messages += other.messages;
        self.wait_ns += other.wait_ns;
        self.compute_ns += other.compute_ns;
    }
}

#[derive(Debug)]
enum Runner<'p, R: Ranks> {
    Found(Box<RankEngine<'p, R>>),
    Pairs(Box<PairsEngine<'p, R>>),
}

/// Searches one graph over ranks, any number of times. [`run_uncounted`](Self::run_uncounted) does not allocate.
#[derive(Debug)]
pub struct ClusterSearch<'p, R: Ranks> {
    part: &'p Part,
    ranks: &'p R,
    runner: Runner<'p, R>,
    planner: RankPlanner,
    records: Records,
    /// The root of the last search, if it has no edge to another vertex.
    alone: Option<Vertex>,
    device: Option<DeviceUse>,
    fallen_back: Option<String>,
    /// The rank whose device was lost for good, and the reason; the same on all ranks. Every later search is refused.
    failed: Option<(usize, String)>,
}

impl<'p, R: Ranks> ClusterSearch<'p, R> {
    /// Allocates everything that a search needs on this rank. All ranks call it, and all get an error if one of them does.
    ///
    /// # Errors
    /// [`ClusterError`] if memory, threads, vector instructions or the device are not available; [`ClusterError::SetUp`] if they are not on
    /// another rank.
    pub fn new(part: &'p Part, ranks: &'p R, options: &ClusterOptions) -> Result<Self, ClusterError> {
        let made = match options.exchange {
            Exchange::Found => RankEngine::new(part, ranks, options).map(|engine| Runner::Found(Box::new(engine))),
            Exchange::Pairs => PairsEngine::new(part, ranks, options).map(|engine| Runner::Pairs(Box::new(engine))),
        };
        let mut runner = all_or_none(ranks, made)?;
        let mut fallen_back = None;
        let policy = match &mut runner {
            Runner::Found(engine) => {
                engine.announce();
                fallen_back = engine.set_up_without().map(str::to_owned);
                options.policy.clone()
            }
            Runner::Pairs(_) => Policy::Fixed(socbfs::bfs::Strategy::Tc),
        };
        let records = Records::with_capacity(part.vertices().clamp(1, 4096));
        let device = match &runner {
            Runner::Found(engine) => engine.device(),
            Runner::Pairs(_) => None,
        };
        let planner = PolicyPlanner::new(policy, LevelDevice::Cpu);
        let planner = RankPlanner::new(planner, options.device.as_ref().filter(|_| device.is_some()), ranks.size());
        Ok(Self { part, ranks, runner, planner, records, alone: None, device, fallen_back, failed: None })
    }

    /// The device that this rank was set up with, even if it has failed since.
    pub fn device(&self) -> Option<&DeviceUse> {
        self.device.as_ref()
    }

    /// Why this rank continues without its device, if it does (see [`RankDevice::fall_back`]).
    pub fn fallen_back(&self) -> Option<&str> {
        self.fallen_back.as_deref()
    }

    /// Changes where this rank runs levels from the next search on (`None`: on the CPU for good).
    pub(super) fn set_places(&mut self, places: Option<Places>) {
        self.planner.set_places(places);
    }

    /// Threads of this rank.
    pub fn threads(&self) -> usize {
        match &self.runner {
            Runner::Found(engine) => engine.threads(),
            Runner::Pairs(_) => 1,
        }
    }

    /// Searches from `root` (an original number), and counts the vertices and edges reached. All ranks call it and get the same counts. The
    /// time is that of the slowest rank, from a barrier on.
    ///
    /// # Errors
    /// [`ClusterError::RootOutOfRange`], [`ClusterError::Message`], and on all ranks [`ClusterError::Device`] if the device of one was
    /// lost, in this search or an earlier one, and that rank may not ([`RankDevice::fall_back`]) or can't continue without it.
    pub fn run(&mut self, root: Vertex) -> Result<Outcome, ClusterError> {
        let mut outcome = self.run_uncounted(root)?;
        let (mut reached, mut edges) = (0, 0);
        for (&parent, &degree) in self.parents_by_row().iter().zip(self.part.input_degrees()) {
            if parent != NONE {
                reached += 1;
                edges += u64::from(degree);
            }
        }
        // A root without an internal number has no row and no edge, but is reached.
        outcome.reached = sum(self.ranks, reached) + u64::from(self.alone.is_some() && self.part.internal(root) == NONE);
        outcome.edges = sum(self.ranks, edges) / 2;
        let deeper = match &self.runner {
            Runner::Found(engine) => self.alone.is_none() && engine.leaf_is_deepest(root),
            Runner::Pairs(engine) => self.alone.is_none() && self.leaf_is_below(engine.deepest(), root),
        };
        outcome.levels += (max(self.ranks, u64::from(deeper))) as u32;
        outcome.elapsed = Duration::from_nanos(max(self.ranks, outcome.elapsed.as_nanos() as u64));
        Ok(outcome)
    }

    /// Whether the deepest level of any rank contains the neighbour of a leaf of this rank, other than the root. All ranks call it, each
    /// with its own rows of that level.
    fn leaf_is_below(&self, deepest: &[Vertex], root: Vertex) -> bool {
        let part = self.part;
        let mut bits = vec![0u8; 8 * part.words.div_ceil(part.deal.ranks)];
        for &row in deepest {
            bits[row as usize / 8] |= 1 << (row % 8);
        }
        let mut all = vec![0; bits.len() * part.deal.ranks];
        self.ranks.all_gather(&bits, &mut all);
        let is_deepest = |v: Vertex| all[part.deal.owner(v) * bits.len() + part.deal.row(v) as usize / 8] >> (v % 8) & 1 == 1;
        part.leaves.iter().any(|&[row, neighbour, _]| part.original(part.deal.vertex(row)) != root && is_deepest(neighbour))
    }

    /// As [`run`](Self::run), without counting: `reached` and `edges` are 0, `levels` counts the levels that were searched, and the time is
    /// this rank's.
    ///
    /// # Errors
    /// [`ClusterError::RootOutOfRange`], [`ClusterError::Message`], and on all ranks [`ClusterError::Device`] if the device of one was
    /// lost, in this search or an earlier one, and that rank may not ([`RankDevice::fall_back`]) or can't continue without it.
    pub fn run_uncounted(&mut self, root: Vertex) -> Result<Outcome, ClusterError> {
        if root as usize >= self.part.vertices() {
            return Err(ClusterError::RootOutOfRange { root, vertices: self.part.vertices() });
        }
        if let Some((rank, reason)) = self.failed.clone() {
            return Err(ClusterError::Device { rank, reason });
        }
        self.ranks.barrier();
        let begin = Instant::now();
        let (levels, found) = loop {
            match self.search(root) {
                Ok(done) => break done,
                Err(Halt::Again) => self.go_on()?,
                Err(Halt::Failed) => return Err(self.fail("")),
                Err(Halt::Error(error)) => return Err(error),
            }
        };
        let end = Instant::now();
        Ok(Outcome { root, reached: 0, levels, edges: 0, elapsed: end - begin, mapping: end - found })
    }

    /// Searches once. Returns the number of levels that were searched, and the time when the last one ended.
    fn search(&mut self, root: Vertex) -> Result<(u32, Instant), Halt> {
        let internal = self.part.internal(root);
        let is_alone = internal == NONE || self.part.is_isolated(internal);
        self.alone = is_alone.then_some(root);
        if is_alone {
            self.records.clear();
            match &mut self.runner {
                Runner::Found(engine) => engine.begin_isolated()?,
                Runner::Pairs(engine) => engine.begin_isolated(),
            }
            if let Some(row) = self.part.own_row(root) {
                self.parents_mut()[row] = root;
            }
            return Ok((1, Instant::now()));
        }
        let levels = match &mut self.runner {
            Runner::Found(engine) => level_loop(&mut **engine, &mut self.planner, internal, &mut self.records)?,
            Runner::Pairs(engine) => level_loop(&mut **engine, &mut self.planner, internal, &mut self.records)?,
        };
        let found = Instant::now();
        match &mut self.runner {
            Runner::Found(engine) => engine.finish()?,
            Runner::Pairs(engine) => engine.finish(),
        }
        Ok((levels, found))
    }

    /// Continues without the device on each rank whose device failed. All ranks call it.
    fn go_on(&mut self) -> Result<(), ClusterError> {
        let Runner::Found(engine) = &mut self.runner else { return Ok(()) };
        let mut refused = String::new();
        match engine.fall_back() {
            Ok(None) => {}
            Ok(Some(reason)) => {
                log::warn!("rank {}: the search failed on {reason}; continuing on the CPU alone", self.part.deal.rank);
                self.planner.set_places(None);
                self.fallen_back = Some(reason);
            }
            Err(error) => refused = format!("{}; continuing on the CPU alone failed: {error}", engine.failure()),
        }
        if sum(self.ranks, u64::from(!refused.is_empty())) > 0 { Err(self.fail(&refused)) } else { Ok(()) }
    }

    /// Sends the failure to all ranks. They keep it and refuse later searches, since a lost device still owns the rank's memory. `refused`
    /// is the error of continuing without the device ("": this was not tried, or succeeded).
    fn fail(&mut self, refused: &str) -> ClusterError {
        let own = match &self.runner {
            Runner::Found(engine) if refused.is_empty() => engine.failure(),
            _ => refused.to_owned(),
        };
        let (rank, reason) = match texts(self.ranks, &own) {
            Ok(all) => first_of(all).unwrap_or_default(),
            Err(error) => return error,
        };
        self.failed = Some((rank, reason.clone()));
        ClusterError::Device { rank, reason }
    }

    fn parents_mut(&mut self) -> &mut [Vertex] {
        match &mut self.runner {
            Runner::Found(engine) => &mut engine.state.parent,
            Runner::Pairs(engine) => &mut engine.parent,
        }
    }

    /// Parents of this rank's vertices, in original numbers, by row ([`Part::own_vertices`] lists the rows). The parent of the root is the
    /// root; a vertex that was not reached has [`NONE`].
    pub fn parents_by_row(&self) -> &[Vertex] {
        match &self.runner {
            Runner::Found(engine) => &engine.state.parent,
            Runner::Pairs(engine) => &engine.parent,
        }
    }

    /// The records of the levels of the last search, as measured on this rank.
    pub fn records(&self) -> &[LevelRecord] {
        self.records.get()
    }

    /// The traffic of this rank at each level of the last search.
    pub fn traffic(&self) -> &[LevelTraffic] {
        match &self.runner {
            Runner::Found(engine) => &engine.traffic,
            Runner::Pairs(engine) => &engine.traffic,
        }
    }
}

/// The first rank whose text is not empty, and that text.
pub(super) fn first_of(texts: Vec<String>) -> Option<(usize, String)> {
    texts.into_iter().enumerate().find(|(_, text)| !text.is_empty())
}

/// Returns the result of each rank, or an error on every rank: if one rank returned alone, the others would wait for it.
pub(super) fn all_or_none<T>(ranks: &impl Ranks, made: Result<T, impl Into<ClusterError>>) -> Result<T, ClusterError> {
    let made = made.map_err(Into::into);
    let own = made.as_ref().err().map_or_else(String::new, |error| with_causes("", error));
    let failed = first_of(texts(ranks, &own)?);
    match (made, failed) {
        // Only the first rank that failed returns its own error.
        (_, Some((rank, reason))) if rank != ranks.rank() => Err(ClusterError::SetUp { rank, reason }),
        (made, _) => made,
    }
}

/// Gathers the traffic `own` of every rank, in the order of ranks.
pub fn gather(ranks: &impl Ranks, own: &[LevelTraffic]) -> Vec<Vec<LevelTraffic>> {
    let numbers = own.iter().flat_map(|t| [t.received, t.sent, t.messages.into(), t.wait_ns, t.compute_ns]);
    let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    // Every rank has run the same levels.
    let mut all = vec![0; bytes.len() * ranks.size()];
    ranks.all_gather(&bytes, &mut all);
    let number = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
    let level = |bytes: &[u8]| LevelTraffic {
        received: number(&bytes[..8]),
        sent: number(&bytes[8..16]),
        messages: number(&bytes[16..24]) as u32,
        wait_ns: number(&bytes[24..32]),
        compute_ns: number(&bytes[32..40]),
    };
    all.chunks_exact(bytes.len().max(1)).map(|rank| rank.chunks_exact(40).map(level).collect()).collect()
}
