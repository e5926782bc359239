//! The leaves that the layout left out of the search ([`Leaves`](crate::graph::Leaves)): their parents, and whether one of them is on the
//! deepest level.

use super::{
    CpuEngine,
    tuning::{HOST_WORDS, SHARED_HOST_WORDS},
};
use crate::{
    engine::Frontier,
    graph::{NONE, Vertex},
    memory::Shared,
    threads::share,
};

impl CpuEngine<'_> {
    /// Writes the parents of left-out leaves behind the parents of searched vertices, where mapping back finds them. Unless `all` was
    /// searched, the leaves of frontier vertices get no parent, since they are deeper than the frontier.
    ///
    /// In nearly all searches the parent of a leaf is its host. The entries therefore stay as the last search left them, and only
    /// differences are written.
    pub(super) fn enter_leaves(&mut self, all: bool) {
        let (layout, leaves) = (self.layout, self.layout.leaves());
        if leaves.hosts().is_empty() {
            return;
        }
        let (places, first) = (layout.internal_places(), self.layout.first_leaf());
        let is_shared = self.state.parent.way().is_some();
        let (parents, of_leaves) = self.state.parent.split_at_mut(first);
        let parents = &*parents;
        if is_shared || !self.leaves_are_entered {
            // A handover does not transfer the parents of leaves, so all are written again.
            of_leaves.copy_from_slice(leaves.name_of());
            self.absent.fill(0);
            self.leaves_are_entered = true;
        }
        let visited = self.state.bitmap_is_of_search.then_some(&self.state.visited[self.state.current]);
        let (bits, excluded) = (leaves.bits(), &self.excluded);
        {
            let (absent, out) = (Shared::new(&mut self.absent), Shared::new(of_leaves));
            share(&self.team, bits.len(), HOST_WORDS, bits.len() < SHARED_HOST_WORDS, &|_, words| {
                for word in words {
                    // The bits of excluded vertices are always set, so their parents are checked.
                    let seen = visited.map_or(0, |visited| visited[word] & !excluded[word]);
                    // SAFETY: words are handed out once, and `absent` has one for each.
                    let was = unsafe { &mut *absent.get().add(word) };
                    let mut asked = bits[word] & !seen;
                    let mut now = asked;
                    while asked != 0 {
                        let lane = asked.trailing_zeros();
                        now &= !(u64::from(parents[64 * word + lane as usize] != NONE) << lane);
                        asked &= asked - 1;
                    }
                    let mut differ = now ^ *was;
                    *was = now;
                    while differ != 0 {
                        let lowest = differ & differ.wrapping_neg();
                        let index = leaves.index_at(word, lowest);
                        let parent = if now & lowest == 0 { layout.to_original(leaves.hosts()[index]) } else { NONE };
                        for &leaf in leaves.of(index) {
                            // SAFETY: every leaf has its own place, and one host, whose bit is in one word.
                            unsafe { *out.get().add(places[leaf as usize] as usize - first) = parent };
                        }
                        differ &= differ - 1;
                    }
                }
            });
        }
        if !all {
            let absent = &mut self.absent;
            let cut = |v: Vertex| {
                if let Some(index) = leaves.index_of(v) {
                    leaves.of(index).iter().for_each(|&leaf| of_leaves[places[leaf as usize] as usize - first] = NONE);
                    absent[v as usize / 64] |= 1 << (v % 64);
                }
            };
            match self.state.frontier {
                Frontier::Queue { len } => self.state.queue[..len + self.state.idle].iter().copied().for_each(cut),
                Frontier::Bitmap { .. } => {
                    each_new(&self.state.visited[self.state.current], &self.state.visited[1 - self.state.current], cut)
                }
                Frontier::Mask { .. } => unreachable!("the host has no masks"),
            }
        }
    }

    /// Whether a left-out leaf is deeper than all searched vertices; `None`: not recorded.
    pub(crate) fn leaf_is_deepest(&self) -> Option<bool> {
        if self.layout.leaves().hosts().is_empty() { Some(false) } else { self.leaf_is_deepest }
    }

    /// As [`leaf_is_deepest`](Self::leaf_is_deepest), but computed from the parents in original numbers, if the searched vertices lie on
    /// `levels` levels. It walks from vertices that have leaves to their sources.
    pub(crate) fn leaf_is_below(&self, levels: u32) -> bool {
        let (parents, leaves) = (self.parents(), self.layout.leaves());
        let is_last = |name: Vertex| {
            let (mut at, mut depth) = (name as usize, 0);
            while depth < levels && parents.get(at).is_some_and(|&parent| parent != NONE && parent as usize != at) {
                at = parents[at] as usize;
                depth += 1;
            }
            depth + 1 == levels && parents.get(at).is_some_and(|&parent| parent as usize == at)
        };
        let mut hosts = leaves.hosts().iter();
        hosts.any(|&host| self.leaf_sources.leave_a_leaf_of(self.layout, host) && is_last(self.layout.to_original(host)))
    }

    /// Forgets whether a leaf is deepest, because another engine continues the search.
    pub(crate) fn forget_deepest(&mut self) {
        self.leaf_is_deepest = None;
    }

    /// Records whether a frontier vertex has a left-out leaf, in case no later level finds anything. (In most frontiers one of the first
    /// vertices has leaves.)
    pub(super) fn note_deepest(&mut self) {
        let (leaves, sources) = (self.layout.leaves(), &self.leaf_sources);
        if leaves.hosts().is_empty() {
            return;
        }
        let any = match self.state.frontier {
            // All leaves of a vertex of the first two levels may be sources. (If some sources are leaves and some are not, these frontiers
            // are queues.)
            _ if self.state.level == 0 || sources.any() && !self.state.is_late && self.state.level == 1 => {
                self.reached_last().iter().any(|&v| sources.leave_a_leaf_of(self.layout, v))
            }
            Frontier::Bitmap { .. } => {
                let (now, before) = (&self.state.visited[self.state.current], &self.state.visited[1 - self.state.current]);
                now.iter().zip(before.iter()).zip(leaves.bits()).any(|((&now, &before), &hosts)| now & !before & hosts != 0)
            }
            _ => self.frontier_queue().iter().any(|&v| leaves.index_of(v).is_some()),
        };
        self.leaf_is_deepest = Some(any);
    }
}

/// Calls `visit` with the vertices whose bits are in `now` and not in `before`.
fn each_new(now: &[u64], before: &[u64], mut visit: impl FnMut(Vertex)) {
    for (word, (&now, &before)) in now.iter().zip(before).enumerate() {
        let mut new = now & !before;
        while new != 0 {
            visit(word as Vertex * 64 + new.trailing_zeros());
            new &= new - 1;
        }
    }
}
