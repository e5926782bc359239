//! What is counted of a search over a grid.

use socbfs::NONE;
use socbfs_algo::grid::{Cell, Connectivity, GridSearch};

/// The edges for TEPS of the last search of `search`, whose distances are `levels`, row by row: steps between two cells that it reached,
/// those in both directions once.
pub fn grid_edges(search: &GridSearch, levels: &[u32]) -> u64 {
    let (grid, columns) = (search.grid(), search.grid().columns());
    let corners = search.connectivity() == Connectivity::EightAroundCorners;
    // A row with an empty column on either side.
    let row = |of: &dyn Fn(usize) -> bool| -> Vec<bool> { (0..columns + 2).map(|at| (1..=columns).contains(&at) && of(at - 1)).collect() };
    let both = |a: &[bool], b: &[bool]| a.iter().zip(b).filter(|(a, b)| **a && **b).count() as u64;
    let (mut edges, mut above, mut open_above) = (0, vec![false; columns + 2], Vec::new());
    for (number, levels) in levels.chunks_exact(columns).enumerate() {
        let own = row(&|column| levels[column] != NONE);
        edges += both(&own, &own[1..]) + both(&own, &above);
        if corners {
            let open = row(&|column| grid.is_free(Cell::new(number, column)));
            if number > 0 {
                let squares = |at: usize| open[at] && open[at + 1] && open_above[at] && open_above[at + 1];
                let diagonals = |at: usize| u64::from(own[at] && above[at + 1]) + u64::from(own[at + 1] && above[at]);
                edges += (0..=columns).filter(|&at| squares(at)).map(diagonals).sum::<u64>();
            }
            open_above = open;
        } else if search.connectivity() == Connectivity::Eight {
            edges += both(&own, &above[1..]) + both(&own[1..], &above);
        }
        above = own;
    }
    edges
}
