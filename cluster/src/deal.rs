//! The assignment of vertices to ranks.

use socbfs::graph::Vertex;

/// Vertices dealt to ranks by words of 64, like cards: word `w` belongs to rank `w mod ranks`.
///
/// If vertices are numbered by descending degree, every rank gets its share of the hubs. A rank owns whole words of every bitmap. It
/// numbers its own vertices without gaps: its *rows*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deal {
    /// Number of ranks.
    pub ranks: usize,
    /// The rank whose rows this value computes.
    pub rank: usize,
}

impl Deal {
    /// The rank that owns `v`.
    pub fn owner(self, v: Vertex) -> usize {
        (v >> 6) as usize % self.ranks
    }

    /// Whether the rank owns `v`.
    pub fn owns(self, v: Vertex) -> bool {
        self.owner(v) == self.rank
    }

    /// The row of `v` at its owner.
    pub fn row(self, v: Vertex) -> Vertex {
        ((v >> 6) / self.ranks as u32) << 6 | (v & 63)
    }

    /// The vertex of a row of this rank.
    pub fn vertex(self, row: Vertex) -> Vertex {
        ((row >> 6) * self.ranks as u32 + self.rank as u32) << 6 | (row & 63)
    }

    /// Index, in a bitmap of all vertices, of this rank's word `own`.
    pub fn word(self, own: usize) -> usize {
        own * self.ranks + self.rank
    }

    /// Number of words of this rank in a bitmap of `words` words.
    pub fn words(self, words: usize) -> usize {
        (words + self.ranks - 1 - self.rank) / self.ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vertex_has_one_row_at_one_rank() {
        for ranks in [1, 2, 3, 7] {
            let words = 10;
            let mut rows = vec![Vec::new(); ranks];
            for v in 0..words * 64 {
                let owner = Deal { ranks, rank: 0 }.owner(v);
                let deal = Deal { ranks, rank: owner };
                assert!(deal.owns(v));
                assert_eq!(deal.vertex(deal.row(v)), v);
                assert_eq!(deal.word((deal.row(v) >> 6) as usize), (v >> 6) as usize);
                rows[owner].push(deal.row(v));
            }
            for (rank, rows) in rows.iter().enumerate() {
                assert_eq!(rows.len(), 64 * Deal { ranks, rank }.words(words as usize));
                assert!(rows.iter().enumerate().all(|(i, &row)| i == row as usize), "rows without gaps, in the order of vertices");
            }
        }
    }
}
