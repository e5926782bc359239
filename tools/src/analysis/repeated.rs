//! Work that both halves of an asynchronous search do (Remis 2016, figures 5.5 to 5.7).

use crate::record::{Repeated, SplitLevel};

use super::Levels;
use socbfs::{Layout, NONE, Vertex, graph::Csr};

/// Most levels at which a search is divided; in a longer search they are evenly spaced.
const MOST_SPLITS: usize = 32;

/// Divides the search of `levels` at each level of at least two vertices that is not the last, at `MOST_SPLITS` levels at most. F_k is
/// sorted by original vertex number and cut where `share_permille` of its arcs are reached.
pub fn repeated(layout: &Layout, levels: &Levels, share_permille: u16) -> Repeated {
    let mut sizes = vec![0_u64; levels.last as usize + 1];
    levels.of.iter().filter(|&&level| level != NONE).for_each(|&level| sizes[level as usize] += 1);
    let wide: Vec<u32> = (0..levels.last).filter(|&level| sizes[level as usize] >= 2).collect();
    let chosen: Vec<u32> = match wide.len() {
        0..=MOST_SPLITS => wide,
        many => (0..MOST_SPLITS).map(|index| wide[index * (many - 1) / (MOST_SPLITS - 1)]).collect(),
    };
    let reached = levels.reached();
    let mut work = Halves::new(layout.csr());
    let splits = chosen
        .into_iter()
        .map(|level| {
            let mut frontier = levels.frontier(level);
            frontier.sort_unstable_by_key(|&v| layout.to_original(v));
            let (a, b) = frontier.split_at(cut(layout.csr(), &frontier, share_permille));
            let thesis = work.search_halves(levels, level, a, b, true);
            let ours = work.search_halves(levels, level, a, b, false);
            let left = levels.last - level;
            SplitLevel {
                level,
                traversed: sizes[..=level as usize].iter().sum::<u64>() as f64 / reached as f64,
                repeated_thesis: thesis.common as f64 / reached as f64,
                repeated_ours: ours.common as f64 / reached as f64,
                depth_a: thesis.depths[0],
                depth_b: thesis.depths[1],
                left,
                extra_levels: i64::from(thesis.depths[0].max(thesis.depths[1])) - i64::from(left),
            }
        })
        .collect();
    Repeated { share_permille, splits }
}

/// Index at which the frontier is cut: the first half ends with the vertex that reaches the share of arcs. Neither half is empty.
fn cut(csr: &Csr, frontier: &[Vertex], share_permille: u16) -> usize {
    let arcs = |v: &Vertex| u64::from(csr.degree(*v));
    let all: u64 = frontier.iter().map(arcs).sum();
    let mut sum = 0;
    let reaches = |v: &Vertex| {
        sum += arcs(v);
        1000 * sum >= u64::from(share_permille) * all
    };
    (frontier.iter().position(reaches).unwrap_or(0) + 1).clamp(1, frontier.len().max(2) - 1)
}

/// The result of both halves.
struct Repeats {
    /// Vertices that both halves found.
    common: u64,
    depths: [u32; 2],
}

/// Scratch memory of the two searches.
struct Halves<'g> {
    csr: &'g Csr,
    visited: Vec<bool>,
    by_first: Vec<bool>,
}

impl<'g> Halves<'g> {
    fn new(csr: &'g Csr) -> Self {
        let vertices = csr.vertices();
        Self { csr, visited: vec![false; vertices], by_first: vec![false; vertices] }
    }

    /// Runs the search of each half to its end. `knows_other`: the other half counts as visited.
    fn search_halves(&mut self, levels: &Levels, level: u32, a: &[Vertex], b: &[Vertex], knows_other: bool) -> Repeats {
        self.by_first.fill(false);
        let mut found = Repeats { common: 0, depths: [0; 2] };
        for (half, (own, other)) in [(a, b), (b, a)].into_iter().enumerate() {
            for (visited, &of) in self.visited.iter_mut().zip(&levels.of) {
                *visited = of <= level;
            }
            if !knows_other {
                other.iter().for_each(|&v| self.visited[v as usize] = false);
            }
            let (mut frontier, mut next) = (own.to_vec(), Vec::new());
            loop {
                for &u in &frontier {
                    for &v in self.csr.neighbours(u) {
                        if std::mem::replace(&mut self.visited[v as usize], true) {
                            continue;
                        }
                        next.push(v);
                        if half == 0 {
                            self.by_first[v as usize] = true;
                        } else {
                            found.common += u64::from(self.by_first[v as usize]);
                        }
                    }
                }
                if next.is_empty() {
                    break;
                }
                found.depths[half] += 1;
                frontier.clear();
                std::mem::swap(&mut frontier, &mut next);
            }
        }
        found
    }
}
