//! Searches over the parts of one graph, one after another.

use std::time::{Duration, Instant};

use bytemuck::{cast_slice, cast_slice_mut};

use super::{
    ClusterError, ClusterOptions, Exchange,
    levels::RankEngine,
    pairs::PairsEngine,
    part::Part,
    placing::{Places, RankPlanner},
    ranks::{Ranks, all_or_none, first_of, max, sum, texts},
    runner::{Halt, LevelTraffic, Runner},
};
use socbfs::{
    DeviceUse, End, Sources,
    bfs::{LevelRecord, Records, level_loop},
    graph::{NONE, Vertex},
    search::Outcome,
};
use socbfs_policy::{LevelDevice, Policy, PolicyPlanner};

/// Searches one graph over ranks, any number of times. [`run_uncounted`](Self::run_uncounted) does not allocate.
#[derive(Debug)]
pub struct ClusterSearch<'p, R: Ranks> {
    part: &'p Part,
    ranks: &'p R,
    runner: Box<dyn Runner + 'p>,
    planner: RankPlanner,
    records: Records,
    device: Option<DeviceUse>,
    fallen_back: Option<String>,
    /// By rank: the first source that is not a vertex, and a fingerprint of all sources.
    asked: Vec<[u64; 2]>,
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
            Exchange::Found => RankEngine::new(part, ranks, options).map(|engine| Box::new(engine) as Box<dyn Runner>),
            Exchange::Pairs => PairsEngine::new(part, ranks, options).map(|engine| Box::new(engine) as Box<dyn Runner>),
        };
        let mut runner = all_or_none(ranks, made)?;
        let policy = match options.exchange {
            Exchange::Found => options.policy.clone(),
            Exchange::Pairs => Policy::Fixed(socbfs::bfs::Strategy::Tc),
        };
        let (fallen_back, device) = (runner.announce(), runner.device());
        let records = Records::with_capacity(part.vertices().clamp(1, 4096));
        let planner = PolicyPlanner::new(policy, LevelDevice::Cpu);
        let planner = RankPlanner::new(planner, options.device.as_ref().filter(|_| device.is_some()), ranks.size());
        Ok(Self { part, ranks, runner, planner, records, device, fallen_back, asked: vec![[0; 2]; ranks.size()], failed: None })
    }

    /// The device that this rank was set up with, even if it has failed since.
    pub fn device(&self) -> Option<&DeviceUse> {
        self.device.as_ref()
    }

    /// Why this rank continues without its device, if it does (see [`RankDevice::fall_back`](crate::RankDevice::fall_back)).
    pub fn fallen_back(&self) -> Option<&str> {
        self.fallen_back.as_deref()
    }

    /// Changes where this rank runs levels from the next search on (`None`: on the CPU for good).
    pub(super) fn set_places(&mut self, places: Option<Places>) {
        self.planner.set_places(places);
    }

    /// Threads of this rank.
    pub fn threads(&self) -> usize {
        self.runner.threads()
    }

    /// Searches from a root or from several sources at once, as [`Search::run`](socbfs::Search::run) does, and counts the vertices and
    /// edges reached. All ranks call it with the same sources, in the same order, and get the same counts. The time is that of
    /// the slowest rank, from a barrier on.
    ///
    /// # Errors
    /// [`ClusterError::Message`]; on all ranks [`ClusterError::RootOutOfRange`], [`ClusterError::OtherSources`], and
    /// [`ClusterError::Device`] if the device of one was lost, in this search or an earlier one, and that rank may not
    /// ([`RankDevice::fall_back`](crate::RankDevice::fall_back)) or can't continue without it.
    pub fn run<'s>(&mut self, sources: impl Into<Sources<'s>>) -> Result<Outcome, ClusterError> {
        let sources = sources.into();
        let sources = sources.as_slice();
        let mut outcome = self.run_uncounted(sources)?;
        let (mut reached, mut edges) = (0, 0);
        for (&parent, &degree) in self.parents_by_row().iter().zip(self.part.input_degrees()) {
            if parent != NONE {
                reached += 1;
                edges += u64::from(degree);
            }
        }
        outcome.reached = sum(self.ranks, reached) + self.part.without_owner(sources).len() as u64;
        outcome.edges = sum(self.ranks, edges) / 2;
        let deeper = self.runner.leaf_is_deepest();
        outcome.levels += max(self.ranks, u64::from(deeper)) as u32;
        outcome.elapsed = Duration::from_nanos(max(self.ranks, outcome.elapsed.as_nanos() as u64));
        Ok(outcome)
    }

    /// As [`run`](Self::run), without counting: `reached` and `edges` are 0, `levels` counts the levels that were searched, and
    /// the time is this rank's.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_uncounted(&mut self, sources: &[Vertex]) -> Result<Outcome, ClusterError> {
        if let Some((rank, reason)) = self.failed.clone() {
            return Err(ClusterError::Device { rank, reason });
        }
        self.agree_on(sources)?;
        let begin = Instant::now();
        let (levels, found) = loop {
            match self.search(sources) {
                Ok(done) => break done,
                Err(Halt::Again) => self.go_on()?,
                Err(Halt::Failed) => return Err(self.fail("")),
                Err(Halt::Error(error)) => return Err(error),
            }
        };
        let end = Instant::now();
        let (root, sources) = (sources.first().copied().unwrap_or(NONE), sources.len() as u64);
        let (elapsed, mapping) = (end - begin, end - found);
        Ok(Outcome { root, sources, reached: 0, levels, edges: 0, end: End::Complete, elapsed, mapping })
    }

    /// Waits for all ranks, and refuses on every rank what one of them can't search from: a rank that returned alone would be waited for.
    fn agree_on(&mut self, sources: &[Vertex]) -> Result<(), ClusterError> {
        let vertices = self.part.vertices();
        let wrong = sources.iter().find(|&&source| source as usize >= vertices).map_or(u64::MAX, |&source| source.into());
        let mix = |sum: u64, &source: &Vertex| (sum ^ u64::from(source)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let own = [wrong, sources.iter().fold(sources.len() as u64, mix)];
        self.ranks.all_gather(cast_slice(&own), cast_slice_mut(&mut self.asked));
        if let Some(root) = self.asked.iter().find_map(|&[wrong, _]| Vertex::try_from(wrong).ok()) {
            return Err(ClusterError::RootOutOfRange { root, vertices });
        }
        let other = self.asked.iter().position(|asked| *asked != self.asked[0]);
        other.map_or(Ok(()), |rank| Err(ClusterError::OtherSources { rank }))
    }

    /// Searches once. Returns the number of levels that were searched, and the time when the last one ended.
    fn search(&mut self, sources: &[Vertex]) -> Result<(u32, Instant), Halt> {
        let levels = level_loop(&mut *self.runner, &mut self.planner, sources, &mut self.records)?;
        let found = Instant::now();
        self.runner.finish(sources)?;
        // The loop counts a level 0 without a source too.
        Ok((if sources.is_empty() { 0 } else { levels }, found))
    }

    /// Continues without the device on each rank whose device failed. All ranks call it.
    fn go_on(&mut self) -> Result<(), ClusterError> {
        let mut refused = String::new();
        match self.runner.fall_back() {
            Ok(None) => {}
            Ok(Some(reason)) => {
                log::warn!("rank {}: the search failed on {reason}; continuing on the CPU alone", self.part.deal.rank);
                self.planner.set_places(None);
                self.fallen_back = Some(reason);
            }
            Err(error) => refused = format!("{}; continuing on the CPU alone failed: {error}", self.runner.failure()),
        }
        if sum(self.ranks, u64::from(!refused.is_empty())) > 0 { Err(self.fail(&refused)) } else { Ok(()) }
    }

    /// Sends the failure to all ranks. They keep it and refuse later searches, since a lost device still owns the rank's memory. `refused`
    /// is the error of continuing without the device ("": this was not tried, or succeeded).
    fn fail(&mut self, refused: &str) -> ClusterError {
        let own = if refused.is_empty() { self.runner.failure() } else { refused.to_owned() };
        let (rank, reason) = match texts(self.ranks, &own) {
            Ok(all) => first_of(all).unwrap_or_default(),
            Err(error) => return error,
        };
        self.failed = Some((rank, reason.clone()));
        ClusterError::Device { rank, reason }
    }

    /// Parents of this rank's vertices, in original numbers, by row ([`Part::own_vertices`] lists the rows). The parent of the root is the
    /// root; a vertex that was not reached has [`NONE`].
    pub fn parents_by_row(&self) -> &[Vertex] {
        self.runner.parents()
    }

    /// The records of the levels of the last search, as measured on this rank.
    pub fn records(&self) -> &[LevelRecord] {
        self.records.get()
    }

    /// The traffic of this rank at each level of the last search.
    pub fn traffic(&self) -> &[LevelTraffic] {
        self.runner.traffic()
    }
}
