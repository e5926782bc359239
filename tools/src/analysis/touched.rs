//! Bytes of each array that a level of a search on the CPU touches: the cache size at which the level would not wait for memory.

use crate::analysis::Levels;
use socbfs::{
    bfs::{Direction, LevelRecord},
    cpu::is_wide,
    graph::{Layout, NONE, ROW_CONTINUES, Vertex},
};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of the distinct cache lines of each array that one step touches. A line that is touched again counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct TouchedBytes {
    /// Queues: the frontier's and the next one.
    pub queues: u64,
    /// 16-bit notes of a wide top-down level: for each vertex, the place in the queue of the frontier vertex that led to it.
    pub notes: u64,
    /// Offsets of lists.
    pub offsets: u64,
    /// Lists of neighbours, and rows of four neighbours.
    pub lists: u64,
    /// Columns of first neighbours.
    pub columns: u64,
    /// Original numbers of the neighbours in columns and of single vertices, and the internal places read when parents are mapped back.
    pub names: u64,
    /// Visited bitmaps: the one at the start of the level, and the next one.
    pub bitmaps: u64,
    /// Parents.
    pub parents: u64,
    /// Parents in original vertex numbers.
    pub output: u64,
}

impl TouchedBytes {
    /// Bytes of all arrays.
    pub fn total(&self) -> u64 {
        self.arrays().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Adds the bytes of another step, which runs after this one.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.fields().into_iter().zip(other.arrays()).for_each(|((_, sum), (_, bytes))| *sum += bytes);
        self
    }

    /// Name and bytes of each array.
    pub fn arrays(mut self) -> [(&'static str, u64); 9] {
        self.fields().map(|(name, bytes)| (name, *bytes))
    }

    fn fields(&mut self) -> [(&'static str, &mut u64); 9] {
        [
            ("queues", &mut self.queues),
            ("notes", &mut self.notes),
            ("offsets", &mut self.offsets),
            ("lists", &mut self.lists),
            ("columns", &mut self.columns),
            ("names", &mut self.names),
            ("bitmaps", &mut self.bitmaps),
            ("parents", &mut self.parents),
            ("output", &mut self.output),
        ]
    }
}

/// A step of a search: before the first level, a level, or after the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchedStep {
    /// Parents are reset.
    Reset,
    /// A level with its number and direction.
    Level(u32, Direction),
    /// Parents are mapped back to original vertex numbers.
    MapBack,
}

/// How a level was searched.
#[derive(Debug, Clone, Copy)]
struct Plan {
    direction: Direction,
    is_wide: bool,
    /// Whether the frontier was converted before the level.
    converts: bool,
}

/// The cache lines of an array: for each, the number of the last step that touched it.
struct Lines {
    entry: usize,
    last: Vec<u32>,
    bytes: u64,
}

impl Lines {
    fn new(entries: usize, entry: usize) -> Self {
        Self { entry, last: vec![0; (entries * entry).div_ceil(LINE)], bytes: 0 }
    }

    fn touch(&mut self, step: u32, entries: std::ops::Range<usize>) {
        if entries.is_empty() {
            return;
        }
        for line in entries.start * self.entry / LINE..=(entries.end * self.entry - 1) / LINE {
            // Entries past the end are padding that this array does not have.
            let Some(last) = self.last.get_mut(line) else { return };
            if *last != step {
                *last = step;
                self.bytes += LINE as u64;
            }
        }
    }

    fn touch_one(&mut self, step: u32, entry: usize) {
        self.touch(step, entry..entry + 1);
    }

    fn take(&mut self) -> u64 {
        std::mem::take(&mut self.bytes)
    }
}

/// The arrays of a search.
struct Arrays {
    offsets: Lines,
    lists: Lines,
    rows: Lines,
    columns: Vec<Lines>,
    originals: Vec<Lines>,
    names: Lines,
    bitmaps: [Lines; 2],
    parents: Lines,
}

/// Counts what each step of a search by one thread touches, for the search that left these `records` and `levels`. Directions are those of
/// the records; a level without a record of its own takes the direction of the record that includes it. Sampling by policies is not
/// counted, nor are the leaves that the layout leaves out.
///
/// # Panics
/// If the levels are not those of a search of `layout`.
pub fn touched(layout: &Layout, levels: &Levels, records: &[LevelRecord]) -> Vec<(TouchedStep, TouchedBytes)> {
    let n = layout.padded();
    assert_eq!(levels.of.len(), layout.csr().vertices(), "levels of another layout");
    // Bottom-up levels read the lists of incoming arcs.
    let (out, incoming) = (layout.csr(), layout.incoming());
    let mut arrays = Arrays {
        offsets: Lines::new(n + 1, 4),
        lists: Lines::new(out.arcs().max(incoming.arcs()), 4),
        rows: Lines::new(layout.rows().len(), 16),
        columns: layout.columns().iter().map(|column| Lines::new(column.len(), 4)).collect(),
        // In the order of the input, the columns hold the original numbers themselves.
        originals: layout
            .column_originals()
            .iter()
            .filter(|_| !layout.original_numbers().is_empty())
            .map(|column| Lines::new(column.len(), 4))
            .collect(),
        names: Lines::new(layout.original_numbers().len(), 4),
        bitmaps: [Lines::new(n / 64 + 1, 8), Lines::new(n / 64 + 1, 8)],
        parents: Lines::new(n + 1, 4),
    };
    // The vertices by level, and of a level in ascending order.
    let depth = levels.last as usize + 1;
    let level_of = |v: &Vertex| levels.of[*v as usize];
    let mut by_level: Vec<Vertex> = (0..levels.of.len() as Vertex).filter(|v| level_of(v) != NONE).collect();
    by_level.sort_by_key(level_of);
    let frontier_of = |level: u32| {
        let [begin, end] = [level, level + 1].map(|level| by_level.partition_point(|v| level_of(v) < level));
        &by_level[begin..end]
    };
    // A vertex without an edge takes part in no search.
    let is_searched = |v: usize| v < levels.of.len() && (out.degree(v as Vertex) > 0 || incoming.degree(v as Vertex) > 0);
    let mut left = (0..n).filter(|&v| is_searched(v)).count() as u64;
    let mut all = vec![(TouchedStep::Reset, TouchedBytes { parents: 4 * n as u64, ..TouchedBytes::default() })];
    // The plan of each level by the records; the first record of a level counts.
    let mut plans = vec![Plan { direction: Direction::TopDown, is_wide: false, converts: false }; depth];
    for record in records.iter().rev() {
        let stats = &record.stats;
        let begin = (stats.level as usize).min(depth);
        let end = begin.saturating_add(record.levels.max(1) as usize).min(depth);
        plans[begin..end].iter_mut().for_each(|plan| plan.direction = record.plan.direction);
        if let Some(plan) = plans.get_mut(begin) {
            let visited = stats.vertices.saturating_sub(stats.unvisited_vertices);
            plan.is_wide = is_wide(layout, stats.frontier_vertices, stats.frontier_edges, visited, stats.vertices);
            plan.converts |= record.conversion_ns > 0;
        }
    }
    for (level, plan) in (0..depth as u32).zip(plans) {
        let step = level + 1;
        let (frontier, found) = (frontier_of(level), frontier_of(level + 1).len());
        // `left` does not count a root without an edge.
        left = left.saturating_sub(frontier.len() as u64);
        let mut bytes = TouchedBytes::default();
        // The engine ends the search where nothing is left to find.
        match plan.direction {
            _ if left == 0 => {}
            Direction::TopDown if plan.is_wide => {
                bytes.queues = (4 * frontier.len()).next_multiple_of(LINE) as u64;
                bytes.notes = 2 * n as u64;
                arrays.top_down(layout, step, frontier);
                // A wide level ends with a pass over all parents and bitmaps.
                arrays.parents.touch(step, 0..n);
                arrays.bitmaps.iter_mut().for_each(|lines| lines.touch(step, 0..n / 64));
            }
            Direction::TopDown => {
                bytes.queues = (4 * (frontier.len() + found)).next_multiple_of(LINE) as u64;
                arrays.top_down(layout, step, frontier);
            }
            Direction::BottomUp => arrays.bottom_up(layout, levels, step),
        }
        if plan.converts && left > 0 {
            // Before a top-down level, the conversion reads the bitmaps; before a bottom-up level, it reads all parents and writes a
            // bitmap.
            match plan.direction {
                Direction::TopDown => arrays.bitmaps.iter_mut().for_each(|lines| lines.touch(step, 0..n / 64)),
                Direction::BottomUp => {
                    arrays.parents.touch(step, 0..n);
                    arrays.bitmaps[0].touch(step, 0..n / 64);
                }
            }
        }
        all.push((TouchedStep::Level(level, plan.direction), arrays.take(bytes)));
    }
    if !layout.internal_places().is_empty() {
        let vertices = 4 * layout.vertices() as u64;
        all.push((
            TouchedStep::MapBack,
            TouchedBytes {
                names: vertices,
                parents: 4 * (n as u64).min(layout.vertices() as u64),
                output: vertices,
                ..TouchedBytes::default()
            },
        ));
    }
    all
}

impl Arrays {
    fn top_down(&mut self, layout: &Layout, step: u32, frontier: &[Vertex]) {
        let csr = layout.csr();
        for &u in frontier {
            if !layout.original_numbers().is_empty() {
                self.names.touch_one(step, u as usize);
            }
            if let Some(row) = layout.rows().get(u as usize) {
                self.rows.touch_one(step, u as usize);
                let none = layout.padded() as Vertex;
                for v in row.iter().map(|v| v & !ROW_CONTINUES).filter(|&v| v != none) {
                    self.parents.touch_one(step, v as usize);
                }
                if row[0] & ROW_CONTINUES == 0 {
                    continue;
                }
            }
            let begin = csr.offsets[u as usize] as usize;
            self.offsets.touch(step, u as usize..u as usize + 2);
            self.lists.touch(step, begin..begin + csr.degree(u) as usize);
            csr.neighbours(u).iter().for_each(|&v| self.parents.touch_one(step, v as usize));
        }
    }

    fn bottom_up(&mut self, layout: &Layout, levels: &Levels, step: u32) {
        let level = step - 1;
        let (incoming, none) = (layout.incoming(), layout.padded() as Vertex);
        let is_visited = |v: Vertex| levels.of.get(v as usize).is_some_and(|&of| of <= level);
        let degrees = |v: Vertex| incoming.degree(v) > 0 || layout.csr().degree(v) > 0;
        self.bitmaps[0].touch(step, 0..layout.padded() / 64);
        self.bitmaps[1].touch(step, 0..layout.padded() / 64);
        for (v, _) in levels.of.iter().enumerate().filter(|&(v, &of)| of > level && degrees(v as Vertex)) {
            let mut found = false;
            let mut is_over = false;
            for (k, column) in layout.columns().iter().enumerate() {
                self.columns[k].touch_one(step, v);
                let neighbour = column[v];
                if neighbour == none {
                    is_over = true;
                    break;
                }
                self.bitmaps[0].touch_one(step, neighbour as usize / 64);
                if is_visited(neighbour) {
                    if let Some(originals) = self.originals.get_mut(k) {
                        originals.touch_one(step, v);
                    }
                    found = true;
                    break;
                }
            }
            if !found && !is_over {
                self.offsets.touch(step, v..v + 2);
                let begin = incoming.offsets[v] as usize;
                let list = incoming.neighbours(v as Vertex);
                for (place, &w) in list.iter().enumerate().skip(layout.columns().len()) {
                    self.lists.touch_one(step, begin + place);
                    self.bitmaps[0].touch_one(step, w as usize / 64);
                    if is_visited(w) {
                        if !layout.original_numbers().is_empty() {
                            self.names.touch_one(step, w as usize);
                        }
                        found = true;
                        break;
                    }
                }
            }
            if found {
                self.parents.touch_one(step, v);
            }
        }
    }

    fn take(&mut self, rest: TouchedBytes) -> TouchedBytes {
        TouchedBytes {
            offsets: self.offsets.take(),
            lists: self.lists.take() + self.rows.take(),
            columns: self.columns.iter_mut().map(Lines::take).sum(),
            names: self.names.take() + self.originals.iter_mut().map(Lines::take).sum::<u64>(),
            bitmaps: self.bitmaps.iter_mut().map(Lines::take).sum(),
            parents: self.parents.take(),
            ..rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::{
        graph::{BuildOptions, EdgeList, Listing, Order},
        policy::Policy,
        search::{Search, SearchOptions},
    };

    fn of(edges: Vec<[Vertex; 2]>, n: usize, policy: &str, order: Order) -> Vec<(TouchedStep, TouchedBytes)> {
        let list = EdgeList::new(n, edges, Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions { order, keep_leaves: true, ..BuildOptions::default() }).unwrap();
        let policy: Policy = policy.parse().unwrap();
        let mut search = Search::new(&layout, &SearchOptions { policy, threads: 1, ..SearchOptions::default() }).unwrap();
        let levels = Levels::search(&mut search, 0).unwrap();
        touched(&layout, &levels, search.records())
    }

    /// A star of 1,000 vertices in the order of the input, so that the lines can be counted by hand.
    #[test]
    fn touched_lines_of_a_star_match_a_count_by_hand() {
        let star = || (1..1000).map(|v| [0, v]).collect::<Vec<_>>();
        let steps = of(star(), 1000, "tc", Order::Original);
        let padded = 1024;
        assert_eq!(steps[0], (TouchedStep::Reset, TouchedBytes { parents: 4 * padded, ..TouchedBytes::default() }));
        // The hub's list of 999 entries takes 63 lines of 16 entries, the parents of 1 to 999 as many, the hub's offsets one.
        let lines = |count: u64| 64 * count;
        let level = TouchedBytes { queues: lines(63), offsets: lines(1), lists: lines(63), parents: lines(63), ..TouchedBytes::default() };
        assert_eq!(steps[1], (TouchedStep::Level(0, Direction::TopDown), level));
        // The engine knows that nothing is left.
        assert_eq!(steps[2], (TouchedStep::Level(1, Direction::TopDown), TouchedBytes::default()));
        assert_eq!(steps.len(), 3, "nothing is mapped back");

        let steps = of(star(), 1000, "bc", Order::Original);
        let (step, bottom_up) = steps[1];
        assert_eq!(step, TouchedStep::Level(0, Direction::BottomUp));
        // Every vertex finds the hub in the first column, and its parent is written. The two bitmaps have 16 words each. The conversion
        // before has read all parents.
        assert_eq!((bottom_up.lists, bottom_up.offsets, bottom_up.columns), (0, 0, lines(63)));
        assert_eq!((bottom_up.names, bottom_up.bitmaps, bottom_up.parents), (0, lines(4), lines(64)));
    }

    /// A hub with half of a large graph as neighbours, and a second hub through which the rest is reached.
    #[test]
    fn wide_levels_write_notes_only_where_their_places_fit_16_bits() {
        let (n, half) = (1 << 18, 1 << 17);
        let edges = (2..half + 2).map(|v| [0, v]).chain([[2, 1]]).chain((half + 2..n).map(|v| [1, v])).collect();
        let steps = of(edges, n as usize, "tc", Order::Original);
        let (step, level) = steps[1];
        assert_eq!((step, level.notes, level.queues), (TouchedStep::Level(0, Direction::TopDown), 2 * u64::from(n), 64));
        assert_eq!((level.parents, level.bitmaps), (4 * u64::from(n), u64::from(n) / 4));
        // The places of a frontier of half of the vertices do not fit 16 bits.
        assert_eq!((steps[2].1.notes, steps[2].1.parents > 0), (0, true));
    }

    #[test]
    fn later_levels_do_not_touch_reached_vertices_again() {
        // In a skewed graph later levels touch less. Mapping back reads a place and writes a parent for each vertex.
        let edges =
            socbfs::input::generate::Generator::Kronecker { scale: 12, edge_factor: 16, seed1: 1, seed2: 2 }.generate(&|_| ()).unwrap();
        let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
        let mut search =
            Search::new(&layout, &SearchOptions { policy: "bc".parse().unwrap(), threads: 1, ..SearchOptions::default() }).unwrap();
        let levels = Levels::search(&mut search, layout.to_original(0)).unwrap();
        let steps = touched(&layout, &levels, search.records());
        let columns: Vec<u64> =
            steps.iter().filter(|(step, _)| matches!(step, TouchedStep::Level(..))).map(|(_, bytes)| bytes.columns).collect();
        assert!(columns.windows(2).all(|pair| pair[1] <= pair[0]) && columns[0] > 0, "{columns:?}");
        let (last, mapped) = steps[steps.len() - 1];
        assert_eq!((last, mapped.output), (TouchedStep::MapBack, 4 << 12));
        assert_eq!(mapped.total(), mapped.names + mapped.parents + mapped.output);
    }
}
