//! The sources of a search: the frontier of level 0, and the left-out leaves ([`Leaves`](crate::graph::Leaves)) among them.
//!
//! A left-out leaf has one neighbour, its host. If all sources are such leaves, the search begins at their hosts, one level late. If some
//! are, their hosts join the frontier that level 0 has found, unless they were reached before.

use std::{ops::Range, sync::atomic::Ordering::Relaxed};

use super::{CpuEngine, tuning::SHARED_WORDS};
use crate::{
    bfs::LevelWork,
    engine::Frontier,
    graph::{Layout, NONE, Place, Vertex},
    memory::{OutOfMemory, Shared, Slab, as_atomics},
    threads::share,
};

/// Forests of at most this depth are labelled by walks of equal length, where the layout keeps the original order.
const SHALLOW: u32 = 12;
/// Vertices that such walks begin at together.
const AT_ONCE: usize = 64;
/// Vertices that a thread labels at a time.
const LABELLED: usize = 16 << 10;

/// The left-out leaves among the sources.
#[derive(Debug, Default)]
pub(super) struct LeafSources {
    /// A bit for each original vertex; empty if the layout leaves no leaf out.
    bits: Slab<u64>,
    /// The words outside of which no bit is set.
    words: Range<usize>,
    /// Whether their hosts join the frontier after level 0.
    join: bool,
}

impl LeafSources {
    pub(super) fn new(layout: &Layout) -> Result<Self, OutOfMemory> {
        let words = if layout.leaves().hosts().is_empty() { 0 } else { layout.vertices().div_ceil(64) };
        Ok(Self { bits: Slab::zeroed(words, "bitmaps")?, words: 0..0, join: false })
    }

    /// Whether there is any.
    pub(super) fn any(&self) -> bool {
        !self.words.is_empty()
    }

    fn has(&self, leaf: Vertex) -> bool {
        self.any() && self.bits[leaf as usize / 64] >> (leaf % 64) & 1 == 1
    }

    /// Whether `host` has a left-out leaf that is not a source.
    pub(super) fn leave_a_leaf_of(&self, layout: &Layout, host: Vertex) -> bool {
        layout.leaves().of_host(host).iter().any(|&leaf| !self.has(leaf))
    }

    /// Calls `visit` with each of them.
    pub(super) fn each(&self, mut visit: impl FnMut(Vertex)) {
        for word in self.words.clone() {
            let mut rest = self.bits[word];
            while rest != 0 {
                visit(word as Vertex * 64 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
    }
}

impl CpuEngine<'_> {
    /// Notes which sources are left-out leaves, and whether all that take part in the search are.
    pub(crate) fn note_leaf_sources(&mut self, sources: &[Vertex]) {
        let leaves = &mut self.leaf_sources;
        leaves.bits[std::mem::take(&mut leaves.words)].fill(0);
        let (mut last, mut count, mut any_searched) = (NONE, 0, false);
        if leaves.bits.is_empty() {
            any_searched = true;
        } else {
            for &source in sources {
                match self.layout.place(source) {
                    Place::Searched(_) => any_searched = true,
                    Place::LeafOf(_) => {
                        let (word, bit) = (&mut leaves.bits[source as usize / 64], 1 << (source % 64));
                        count += usize::from(*word & bit == 0);
                        *word |= bit;
                        last = source;
                        let at = source as usize / 64;
                        leaves.words = if leaves.any() { leaves.words.start.min(at)..leaves.words.end.max(at + 1) } else { at..at + 1 };
                    }
                    Place::Paired(_) | Place::Alone => {}
                }
            }
        }
        leaves.join = count > 0 && any_searched;
        self.state.is_late = count > 0 && !any_searched;
        self.state.leaf_root = if count == 1 { last } else { NONE };
    }

    /// Whether the hosts of sources will join the frontier that level 0 finds.
    pub(crate) fn hosts_will_join(&self) -> bool {
        self.leaf_sources.join
    }

    /// Makes the sources the frontier of level 0, after all parents were reset.
    pub(super) fn enter_sources(&mut self, sources: &[Vertex]) {
        self.note_leaf_sources(sources);
        let (mut queue, late) = (Entered::default(), self.state.is_late);
        for &source in sources {
            match self.layout.place(source) {
                Place::Searched(v) => self.enter(v, source, &mut queue),
                Place::LeafOf(host) if late => self.enter(host, source, &mut queue),
                _ => {}
            }
        }
        self.set_frontier(queue);
        self.state.visited_count = queue.active as u64;
    }

    /// Adds `v`, unless it was reached before.
    fn enter(&mut self, v: Vertex, parent: Vertex, entered: &mut Entered) {
        let entry = &mut self.state.parent[v as usize];
        if *entry != NONE {
            return;
        }
        *entry = parent;
        let at = entered.active + entered.idle;
        if self.excluded[v as usize / 64] >> (v % 64) & 1 == 1 {
            self.state.queue[at] = v;
            entered.idle += 1;
        } else {
            self.state.queue[at] = self.state.queue[entered.active];
            self.state.queue[entered.active] = v;
            entered.active += 1;
        }
    }

    /// Makes the vertices that were entered the frontier. If none of them has an arc, one of them is the frontier all the same, so that the
    /// level counts.
    fn set_frontier(&mut self, Entered { active, idle }: Entered) {
        let len = active.max(usize::from(idle > 0));
        self.state.frontier = Frontier::Queue { len };
        self.state.idle = active + idle - len;
    }

    /// Lets the hosts of sources join the frontier that level 0 has found, if any are to. `work` is that of level 0.
    pub(crate) fn join_hosts(&mut self, work: &mut LevelWork) {
        if !std::mem::take(&mut self.leaf_sources.join) {
            return;
        }
        let active = self.frontier_to_queue();
        let leaves = std::mem::take(&mut self.leaf_sources);
        let mut entered = Entered { active, idle: 0 };
        leaves.each(|leaf| {
            if let Place::LeafOf(host) = self.layout.place(leaf) {
                self.enter(host, leaf, &mut entered);
            }
        });
        self.leaf_sources = leaves;
        let current = self.state.current;
        for &v in &self.state.queue[active..entered.active] {
            self.state.visited[current][v as usize / 64] |= 1 << (v % 64);
        }
        let joined = (entered.active - active) as u64;
        self.state.visited_count += joined;
        work.found += joined + entered.idle as u64;
        self.set_frontier(entered);
        for &v in &self.state.queue[active..entered.active + entered.idle] {
            self.distances.set(v, 1);
        }
        (self.state.counted_edges, self.state.counted_are_estimated) = (None, false);
        work.finished = self.state.frontier.len() == 0;
    }

    /// The frontier of a search that ends early, if it is a queue, with the vertices reached with it that have no arc.
    pub(super) fn reached_last(&self) -> &[Vertex] {
        let Frontier::Queue { len } = self.state.frontier else { return &[] };
        &self.state.queue[..len + self.state.idle]
    }

    /// Writes for each vertex the source to which its parents lead ([`NONE`]: not reached). `parents` (`None`: those of the engine) and
    /// `labels` have one entry for each original vertex; no vertex is deeper than `deepest`. `is_here`: the state holds these parents too,
    /// except those of vertices that no level searches, which have parents if there are sources `outside`. Labels are useless if parents
    /// lead round in a cycle, which only a faulty device writes.
    pub(crate) fn label(&mut self, parents: Option<&[Vertex]>, labels: &mut [Vertex], deepest: u32, is_here: bool, outside: bool) {
        if is_here && !self.layout.internal_places().is_empty() {
            if self.table.is_empty() {
                self.table = Slab::zeroed(self.layout.first_leaf() + self.layout.leaves().host_of().len(), "labels").unwrap_or_default();
            }
            if !self.table.is_empty() {
                let mut table = std::mem::take(&mut self.table);
                self.label_places(&mut table, labels);
                self.table = table;
                if outside {
                    // The parent of a vertex that no level searches is its source.
                    let parents = parents.unwrap_or(self.parents());
                    labels.iter_mut().zip(parents).filter(|(label, _)| **label == NONE).for_each(|(label, &parent)| *label = parent);
                }
                return;
            }
        }
        let (parents, vertices) = (parents.unwrap_or(self.parents()), labels.len());
        assert_eq!(parents.len(), vertices, "one label per vertex");
        if deepest > SHALLOW {
            self.reset(labels);
            self.pass_down(as_atomics(labels), vertices, |v| parents[v], |source| source, 0);
            return;
        }
        let Some(last) = vertices.checked_sub(1).map(|last| last as Vertex) else { return };
        let (labels, alone) = (as_atomics(labels), vertices < SHARED_WORDS * 64);
        // Walks of equal length from many vertices at once: the processor can't predict how many steps lead from a vertex to its source. (A
        // source leads to itself.)
        share(&self.team, vertices, LABELLED, alone, &|_, range| {
            for begin in range.clone().step_by(AT_ONCE) {
                let range = begin..range.end.min(begin + AT_ONCE);
                let (own, mut held) = (&parents[range.clone()], [0; AT_ONCE]);
                for (at, &parent) in held.iter_mut().zip(own) {
                    *at = parent.min(last);
                }
                for _ in 1..deepest {
                    for at in &mut held {
                        // SAFETY: no number is above the last vertex's.
                        *at = unsafe { *parents.get_unchecked(*at as usize) }.min(last);
                    }
                }
                for ((label, &parent), &source) in labels[range].iter().zip(own).zip(&held) {
                    label.store(if parent == NONE { NONE } else { source }, Relaxed);
                }
            }
        });
    }

    /// As [`label`](Self::label), in the order of the layout, which begins with the vertices that most others have as parents: they have
    /// their labels first, and are near each other.
    fn label_places(&self, table: &mut [Vertex], labels: &mut [Vertex]) {
        let (layout, leaves, parents) = (self.layout, self.layout.leaves(), &self.state.parent[..]);
        let places = layout.internal_places();
        self.reset(table);
        self.leaf_sources.each(|leaf| table[places[leaf as usize] as usize] = leaf);
        let numbers = as_atomics(table);
        let parent = |v: usize| if parents[v] == NONE { NONE } else { places[parents[v] as usize] };
        self.pass_down(numbers, layout.csr().vertices(), parent, |source| layout.to_original(source), 0);
        let (of_leaves, parents) = (&numbers[layout.first_leaf()..], &parents[layout.first_leaf()..]);
        share(&self.team, of_leaves.len(), LABELLED, of_leaves.len() < SHARED_WORDS * 64, &|_, range| {
            for ((leaf, &host), &parent) in of_leaves[range.clone()].iter().zip(&leaves.host_of()[range.clone()]).zip(&parents[range]) {
                if leaf.load(Relaxed) == NONE {
                    leaf.store(if parent == NONE { NONE } else { numbers[host as usize].load(Relaxed) }, Relaxed);
                }
            }
        });
        self.map_into(table, Shared::new(labels));
    }
}

/// Vertices at the beginning of the queue: those with arcs, then those without.
#[derive(Debug, Clone, Copy, Default)]
struct Entered {
    active: usize,
    idle: usize,
}
