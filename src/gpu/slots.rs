//! Constants that host and kernels share: the words of a counter slot, the bits of its state, and the layout of guards. The kernels get
//! them as compiler options ([`defines`]), so that they are defined only here.

use crate::bfs::Ahead;

/// Constants that the kernels are compiled with.
macro_rules! shared {
    ($($(#[$doc:meta])* $name:ident = $value:expr;)+) => {
        $($(#[$doc])* pub(super) const $name: u32 = $value;)+
        const SHARED: &[(&str, u32)] = &[$((stringify!($name), $name)),+];
    };
}

shared! {
    /// Words of a slot.
    SLOT = 16;
    /// Slots. They are used in turn, one for each step; a step reads the slot before its own and clears the one after it.
    SLOTS = 32;

    /// Vertices of the frontier after the step: entries of the queue, bits, or bytes of the mask.
    TAIL = 0;
    /// Arcs that leave the frontier after the step.
    EDGES = 1;
    /// Pieces of long lists.
    PIECES = 2;
    /// Levels that the step ran (0: it did not apply, or is a conversion).
    LEVELS = 3;
    /// Vertices visited before this frontier was found.
    VISITED = 4;
    /// Arcs of all frontiers before this one.
    EXPANDED = 5;
    /// Size of the frontier before this one.
    BEFORE = 6;
    /// State bits: `FLIP_QUEUE` to `IS_MASK`.
    STATE = 7;
    /// Sample of unvisited vertices: their number (`SAMPLED`), and the neighbours that they looked at (`PROBES`).
    SAMPLED = 8;
    PROBES = 9;
    /// Sample of hubs: vertices tested (`ASKED`: entries of the queue, else hubs), and those that are hubs of the frontier (`HUBS`).
    ASKED = 10;
    HUBS = 11;

    /// The word after the slots: how many launches have run of the kernels that complete the work of another one, modulo 2^32. Their
    /// results look the same to the host, and to the next kernel, if a driver ends one of them without an error.
    COMPLETIONS = SLOTS * SLOT;

    /// The queue of the frontier is the second of the two, and the next queue the first.
    FLIP_QUEUE = 1;
    /// The current bitmap is the second of the two.
    FLIP_BITMAP = 2;
    /// The mask of the frontier is the second of the two.
    FLIP_MASK = 4;
    /// The frontier is a queue.
    IS_QUEUE = 8;
    /// The frontier is the difference of both bitmaps.
    IS_BITMAP = 16;
    /// The frontier is a mask.
    IS_MASK = 32;

    /// Numbers of a form: a constant, then the factors of frontier vertices, frontier arcs, unvisited vertices and unvisited arcs.
    TERMS = 5;
}

/// Words of the buffer of counters: the slots, and [`COMPLETIONS`].
pub(super) const COUNTERS: usize = COMPLETIONS as usize + 1;

/// Words of the buffer of guards: vertices and arcs of the graph, the number of linear forms of a guard, then the guards. A guard holds
/// where all of its forms are above 0.
pub(super) const GUARDS: usize = 3 + Ahead::PLANS * Ahead::FORMS * TERMS as usize;

/// The compiler options with all of these constants.
pub(super) fn defines() -> String {
    SHARED.iter().map(|(name, value)| format!(" -D{name}={value}")).collect()
}

/// The words of a slot that was read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slot([u32; SLOT as usize]);

impl Slot {
    /// Slot `index` of the words of all slots.
    pub(super) fn of(all: &[u32], index: u32) -> Self {
        let mut words = [0; SLOT as usize];
        words.copy_from_slice(&all[(index * SLOT) as usize..((index + 1) * SLOT) as usize]);
        Self(words)
    }

    /// Word `word` of the slot.
    pub(super) fn get(&self, word: u32) -> u32 {
        self.0[word as usize]
    }
}

/// The words of the buffer of guards for `ahead`.
pub(super) fn guards(ahead: &Ahead) -> [u32; GUARDS] {
    let mut words = [0; GUARDS];
    (words[0], words[1], words[2]) = (ahead.vertices as u32, ahead.arcs as u32, Ahead::FORMS as u32);
    let forms = ahead.plans.iter().flat_map(|surely| surely.map_or([crate::bfs::Linear::NEVER; Ahead::FORMS], |surely| surely.above_zero));
    for (form, words) in forms.zip(words[3..].chunks_exact_mut(TERMS as usize)) {
        let terms = [form.constant, form.frontier_vertices, form.frontier_edges, form.unvisited_vertices, form.unvisited_edges];
        for (word, term) in words.iter_mut().zip(terms) {
            *word = term.to_bits();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_slot_are_distinct_and_within_it() {
        let words = [TAIL, EDGES, PIECES, LEVELS, VISITED, EXPANDED, BEFORE, STATE, SAMPLED, PROBES, ASKED, HUBS];
        let mut sorted = words.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), words.len());
        assert!(words.iter().all(|&word| word < SLOT));
        let bits = [FLIP_QUEUE, FLIP_BITMAP, FLIP_MASK, IS_QUEUE, IS_BITMAP, IS_MASK];
        assert_eq!(bits.iter().fold(0, |all, bit| all | bit).count_ones() as usize, bits.len());
    }

    #[test]
    fn kernels_use_all_shared_names_and_define_none() {
        let sources = super::super::kernels::SOURCES.concat();
        for (name, _) in SHARED {
            assert!(!sources.contains(&format!("#define {name} ")), "{name}");
            assert!(sources.contains(name), "no kernel uses {name}");
        }
    }
}
