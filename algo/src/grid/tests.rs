//! Searches over grids, against a plain queue and against searches over the same grid as a graph.

use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::{Cell, Connectivity, Distances, Grid, GridError, GridOptions, GridSearch, GridUntil, STAY};
use socbfs::search::{End, threads_of};
use socbfs::{BuildOptions, EdgeList, Layout, Listing, Search, SearchOptions, Simd, Stopper};

const KINDS: [Connectivity; 3] = [Connectivity::Four, Connectivity::Eight, Connectivity::EightAroundCorners];
const TURN: [(isize, isize); 8] = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)];

/// A grid as bytes.
#[derive(Debug, Clone)]
struct Plain {
    rows: usize,
    columns: usize,
    free: Vec<u8>,
}

impl Plain {
    fn is_free(&self, row: isize, column: isize) -> bool {
        (0..self.rows as isize).contains(&row)
            && (0..self.columns as isize).contains(&column)
            && self.free[row as usize * self.columns + column as usize] != 0
    }

    /// The cells that one step reaches, and its direction.
    fn neighbours(&self, kind: Connectivity, cell: usize) -> Vec<(usize, usize)> {
        let (row, column) = ((cell / self.columns) as isize, (cell % self.columns) as isize);
        let allowed = |&(direction, (down, right)): &(usize, (isize, isize))| {
            let straight = direction % 2 == 0;
            self.is_free(row + down, column + right)
                && match kind {
                    Connectivity::Four => straight,
                    Connectivity::Eight => true,
                    Connectivity::EightAroundCorners => straight || (self.is_free(row + down, column) && self.is_free(row, column + right)),
                }
        };
        let cell = |(direction, (down, right)): (usize, (isize, isize))| {
            (((row + down) * self.columns as isize + column + right) as usize, direction)
        };
        TURN.into_iter().enumerate().filter(allowed).map(cell).collect()
    }

    /// Distances by a queue.
    fn distances(&self, kind: Connectivity, sources: &[usize]) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.free.len()];
        let mut queue: VecDeque<usize> = sources.iter().copied().collect();
        sources.iter().for_each(|&source| distances[source] = 0);
        while let Some(cell) = queue.pop_front() {
            for (next, _) in self.neighbours(kind, cell) {
                if distances[next] == u32::MAX {
                    distances[next] = distances[cell] + 1;
                    queue.push_back(next);
                }
            }
        }
        distances
    }
}

fn cell(plain: &Plain, cell: usize) -> Cell {
    Cell::new(cell / plain.columns, cell % plain.columns)
}

fn found(search: &GridSearch) -> Vec<u32> {
    let mut levels = vec![0; search.grid().rows() * search.grid().columns()];
    search.levels_into(&mut levels);
    levels
}

/// Checks everything that a search answers against the queue's distances.
fn check(plain: &Plain, search: &mut GridSearch, sources: &[usize]) {
    let kind = search.connectivity();
    let expected = plain.distances(kind, sources);
    let outcome = search.run(&sources.iter().map(|&source| cell(plain, source)).collect::<Vec<Cell>>()).unwrap();
    assert_eq!(found(search), expected, "{kind:?} {plain:?} from {sources:?}");
    let reached: Vec<u32> = expected.iter().copied().filter(|&distance| distance != u32::MAX).collect();
    assert_eq!((outcome.reached, outcome.levels), (reached.len() as u64, reached.iter().max().unwrap() + 1));
    assert_eq!((outcome.end, outcome.sources), (End::Complete, sources.len() as u64));
    let line = search.line();
    let steps = search.steps().unwrap().to_vec();
    let nearest = search.sources().unwrap().to_vec();
    for (at, &distance) in expected.iter().enumerate() {
        let place = at / plain.columns * line + at % plain.columns;
        match distance {
            u32::MAX => assert_eq!((steps[place], nearest[place]), (u8::MAX, u32::MAX)),
            0 => assert_eq!((steps[place], nearest[place] as usize), (STAY, at)),
            _ => {
                // The step is one that is allowed, and leads one nearer to the same source.
                let (to, _) = *plain.neighbours(kind, at).iter().find(|(_, direction)| *direction == usize::from(steps[place])).unwrap();
                assert_eq!(expected[to], distance - 1);
                assert_eq!(nearest[to / plain.columns * line + to % plain.columns], nearest[place]);
                assert!(sources.contains(&(nearest[place] as usize)));
            }
        }
    }
    let far = (0..expected.len()).rev().filter(|&at| expected[at] != u32::MAX).max_by_key(|&at| expected[at]).unwrap();
    let path: Vec<Cell> = search.path(cell(plain, far)).unwrap().collect();
    assert_eq!(path.len() as u32, expected[far] + 1);
    assert_eq!(search.path(cell(plain, far)).unwrap().len(), path.len());
    assert_eq!(*path.last().unwrap(), cell(plain, nearest[far / plain.columns * line + far % plain.columns] as usize));

    // As far as half of the way, by a target and by a depth.
    let most = expected[far] / 2;
    let target = expected.iter().position(|&distance| distance == most).unwrap();
    let near: Vec<u32> = expected.iter().map(|&distance| if distance <= most { distance } else { u32::MAX }).collect();
    for (until, end) in [
        (GridUntil { target: Some(cell(plain, target)), depth: None }, End::Target),
        (GridUntil { target: None, depth: Some(most) }, End::Depth),
    ] {
        let sources: Vec<Cell> = sources.iter().map(|&source| cell(plain, source)).collect();
        let outcome = search.run_until(&sources, until).unwrap();
        assert_eq!(found(search), near, "{kind:?} {plain:?} from {sources:?}, {until:?}");
        let reached = near.iter().filter(|&&distance| distance <= most).count();
        assert_eq!((outcome.end, outcome.levels, outcome.reached), (end, most + 1, reached as u64));
    }
}

fn search_of(plain: &Plain, connectivity: Connectivity, threads: usize, simd: Option<Simd>) -> GridSearch {
    let grid = Grid::from_cells(plain.rows, plain.columns, &plain.free).unwrap();
    GridSearch::new(grid, &GridOptions { connectivity, threads, simd, ..GridOptions::default() }).unwrap()
}

fn sides() -> impl Strategy<Value = usize> {
    prop_oneof![1 => Just(1), 1 => Just(2), 2 => 15usize..18, 3 => 31usize..34, 2 => 63usize..66, 2 => 95usize..98, 1 => 127usize..130, 3 => 1usize..140]
}

/// Free cells by chance, a maze of walls with gaps, or a spiral.
fn grids() -> impl Strategy<Value = Plain> {
    (sides(), sides(), 0u8..5, any::<u64>()).prop_map(|(rows, columns, form, seed)| {
        let mut state = seed | 1;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 11
        };
        let percent = [0, 5, 35, 60][usize::from(form) % 4];
        let mut free: Vec<u8> = (0..rows * columns).map(|_| u8::from(random() % 100 >= percent)).collect();
        if form == 4 {
            // Every second row is a wall with one gap, at alternating ends: a path through all of them.
            for row in (1..rows).step_by(2) {
                free[row * columns..][..columns].fill(0);
                free[row * columns + if row % 4 == 1 { columns - 1 } else { 0 }] = 1;
            }
        }
        Plain { rows, columns, free }
    })
}

/// An emulated CPU tries fewer cases.
fn runner(cases: u32) -> TestRunner {
    let cases = if std::env::var_os("SOCBFS_TEST_EMULATED").is_some() { cases.div_ceil(20) } else { cases };
    TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases) })
}

#[test]
fn distances_steps_and_sources_are_those_of_a_queue() {
    let cases = if std::env::var_os("SOCBFS_TEST_ALL").is_some() { 20_000 } else { 400 };
    let mut runner = runner(cases);
    let simds: Vec<Simd> = Simd::ALL.into_iter().filter(|simd| simd.available()).collect();
    let input = (
        grids(),
        0..KINDS.len(),
        1usize..4,
        any::<proptest::sample::Index>(),
        proptest::collection::vec(any::<proptest::sample::Index>(), 1..6),
    );
    let changes = proptest::collection::vec((any::<proptest::sample::Index>(), sides(), sides(), any::<bool>()), 0..4);
    let result = runner.run(&(input, changes), |((mut plain, kind, threads, simd, picks), changes)| {
        let mut search = search_of(&plain, KINDS[kind], threads, Some(*simd.get(&simds)));
        // Also visits of one tile, and visits that are shared and not in turn.
        search.shared_tiles = [1, 3, 9][picks.len() % 3];
        let mut changes = changes.into_iter();
        loop {
            let free: Vec<usize> = (0..plain.free.len()).filter(|&at| plain.free[at] != 0).collect();
            assert_eq!(search.grid().free_cells(), free.len() as u64);
            if free.is_empty() {
                let error = search.run(&[Cell::new(0, 0)]).unwrap_err();
                assert!(matches!(error, GridError::Blocked(_)), "{error}");
            } else {
                let sources: Vec<usize> = picks.iter().map(|pick| *pick.get(&free)).collect();
                check(&plain, &mut search, &sources);
            }
            // A rectangle, or one cell, changes between two searches.
            let Some((at, height, width, value)) = changes.next() else { break };
            let at = at.index(plain.free.len());
            let (row, column) = (at / plain.columns, at % plain.columns);
            let (end, right) = ((row + height).min(plain.rows), (column + width).min(plain.columns));
            if height == 1 && width == 1 {
                search.grid_mut().set(Cell::new(row, column), value).unwrap();
            } else {
                search.grid_mut().fill(row..end, column..right, value).unwrap();
            }
            for row in row..end {
                plain.free[row * plain.columns..][column..right].fill(u8::from(value));
            }
        }
        Ok(())
    });
    result.unwrap();
}

#[test]
fn a_grid_as_a_graph_has_the_same_distances() {
    let mut runner = runner(100);
    let result = runner.run(&(grids(), 0..KINDS.len(), any::<proptest::sample::Index>()), |(plain, kind, pick)| {
        let free: Vec<usize> = (0..plain.free.len()).filter(|&at| plain.free[at] != 0).collect();
        if free.is_empty() {
            return Ok(());
        }
        let edges: HashSet<[u32; 2]> = free
            .iter()
            .flat_map(|&at| plain.neighbours(KINDS[kind], at).into_iter().map(move |(to, _)| [at.min(to) as u32, at.max(to) as u32]))
            .collect();
        let list = EdgeList::new(plain.free.len(), edges.into_iter().collect(), Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        let mut graph = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() }).unwrap();
        let source = *pick.get(&free);
        graph.run(source as u32).unwrap();
        let mut levels = vec![0; plain.free.len()];
        graph.levels_into(&mut levels);
        let mut search = search_of(&plain, KINDS[kind], 1, None);
        search.run(&[cell(&plain, source)]).unwrap();
        assert_eq!(found(&search), levels);
        Ok(())
    });
    result.unwrap();
}

/// All threads take part in the visits of a large open grid.
#[test]
fn threads_share_visits() {
    let plain = Plain { rows: 200, columns: 5000, free: vec![1; 200 * 5000] };
    for kind in KINDS {
        let sources: Vec<usize> = (0..40).map(|i| i * 24_481).collect();
        let mut alone = search_of(&plain, kind, 1, None);
        let mut shared = search_of(&plain, kind, 4, None);
        shared.shared_tiles = 30;
        let cells: Vec<Cell> = sources.iter().map(|&source| cell(&plain, source)).collect();
        let outcome = alone.run(&cells).unwrap();
        // On a busy machine visits may be over before another thread has a processor.
        let is_shared = (0..300).any(|run| {
            let again = shared.run(&cells).unwrap();
            assert_eq!((again.reached, again.levels), (outcome.reached, outcome.levels));
            assert_eq!(found(&alone), found(&shared));
            run > 0 && (shared.workers > 1 || threads_of(0, &[]) == 1)
        });
        assert!(is_shared, "no visits were shared");
    }
}

/// A path through 300 rows of 500 columns has 75,000 steps.
#[test]
fn distances_of_32_bits_where_a_path_is_long() {
    let mut plain = Plain { rows: 300, columns: 500, free: vec![1; 150_000] };
    for row in (1..300).step_by(2) {
        plain.free[row * 500..][..500].fill(0);
        plain.free[row * 500 + if row % 4 == 1 { 499 } else { 0 }] = 1;
    }
    let mut search = search_of(&plain, Connectivity::Four, 1, None);
    check(&plain, &mut search, &[0]);
    assert!(matches!(search.distances(), Distances::Long(_)));
    check(&plain, &mut search, &[75_000]);
    // The longest distance of 16 bits is 65,533: one cell less and it fits.
    for (free, long) in [(65_534, false), (65_535, true)] {
        let grid = Grid::free(1, free).unwrap();
        let mut search = GridSearch::new(grid, &GridOptions { threads: 1, ..GridOptions::default() }).unwrap();
        let outcome = search.run(&[Cell::new(0, 0)]).unwrap();
        assert_eq!((outcome.levels, outcome.reached), (free as u32, free as u64));
        assert_eq!(matches!(search.distances(), Distances::Long(_)), long, "{free} cells");
        assert_eq!(search.distance(Cell::new(0, free - 1)), Some(free as u32 - 1));
    }
}

proptest! {
    /// Against the definition: a cell stays free if no cell within `radius` rows and columns is blocked.
    #[test]
    fn an_inflated_grid_keeps_its_distance(columns in 1_usize..80, radius in 0_usize..9, rare in proptest::collection::vec(0_u8..40, 80..1600)) {
        let rows = rare.len() / columns;
        let free: Vec<u8> = rare[..rows * columns].iter().map(|&rare| u8::from(rare != 0)).collect();
        let inflated = Grid::from_cells(rows, columns, &free).unwrap().inflated(radius as u32, &GridOptions::default()).unwrap();
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let near = |at: usize, most: usize| at.saturating_sub(radius)..(at + radius + 1).min(most);
            let wanted = near(row, rows).all(|row| near(column, columns).all(|column| free[row * columns + column] == 1));
            prop_assert_eq!(inflated.is_free(Cell::new(row, column)), wanted, "{} {}", row, column);
        }
    }
}

#[test]
fn searches_end_at_a_target_a_depth_a_stop_and_a_deadline() {
    let plain = Plain { rows: 90, columns: 90, free: vec![1; 8100] };
    let stopper = Stopper::default();
    let grid = Grid::from_cells(90, 90, &plain.free).unwrap();
    let mut search = GridSearch::new(grid, &GridOptions { threads: 1, stopper: stopper.clone(), ..GridOptions::default() }).unwrap();
    assert_eq!(search.distance(Cell::new(0, 0)), None);
    let from = [Cell::new(10, 10)];
    let within = |most: u32| move |distance: u32| if distance <= most { distance } else { u32::MAX };
    let all = plain.distances(Connectivity::Four, &[910]);
    for (until, end, most) in [
        (GridUntil { depth: Some(7), ..GridUntil::default() }, End::Depth, 7),
        (GridUntil { depth: Some(0), ..GridUntil::default() }, End::Depth, 0),
        (GridUntil { target: Some(Cell::new(12, 15)), ..GridUntil::default() }, End::Target, 7),
        (GridUntil { target: Some(from[0]), ..GridUntil::default() }, End::Target, 0),
        (GridUntil { target: Some(Cell::new(89, 89)), depth: Some(500) }, End::Target, 158),
        (GridUntil::default(), End::Complete, 158),
    ] {
        let outcome = search.run_until(&from, until).unwrap();
        assert_eq!((outcome.end, outcome.levels), (end, most + 1), "{until:?}");
        assert_eq!(found(&search), all.iter().copied().map(within(most)).collect::<Vec<u32>>());
    }
    stopper.stop();
    assert!(matches!(search.run(&from), Err(GridError::Stopped)));
    assert!(matches!(search.distances(), Distances::Short([])));
    assert_eq!((search.distance(from[0]), search.steps().unwrap().len(), search.sources().unwrap().len()), (None, 0, 0));
    stopper.reset();
    search.set_deadline(Some(Instant::now()));
    assert!(matches!(search.run(&from), Err(GridError::Stopped)));
    search.set_deadline(None);
    check(&plain, &mut search, &[910]);
}

/// A search that is stopped in its middle, also while threads share its visits, leaves nothing behind.
#[test]
fn a_search_after_a_stopped_one_is_right() {
    let plain = Plain { rows: 700, columns: 700, free: vec![1; 490_000] };
    let mut search = search_of(&plain, Connectivity::Four, 2, None);
    for shared_tiles in [1, 20, 1 << 20] {
        search.shared_tiles = shared_tiles;
        search.set_deadline(Some(Instant::now() + Duration::from_micros(300)));
        assert!(matches!(search.run(&[Cell::new(350, 350)]), Err(GridError::Stopped)), "700 levels in 0.3 ms");
        search.set_deadline(None);
        // What the stopped search has reached, and the next one does not.
        let mut walled = plain.clone();
        walled.free[5 * 700..6 * 700].fill(0);
        search.grid_mut().fill(5..6, 0..700, false).unwrap();
        check(&walled, &mut search, &[3 * 700 + 690]);
        search.grid_mut().fill(5..6, 0..700, true).unwrap();
        check(&plain, &mut search, &[3 * 700 + 690]);
    }
    // A target and a depth, while threads share visits.
    search.shared_tiles = 1;
    let until = GridUntil { target: Some(Cell::new(400, 500)), ..GridUntil::default() };
    let outcome = search.run_until(&[Cell::new(350, 350)], until).unwrap();
    assert_eq!((outcome.end, outcome.levels), (End::Target, 201));
    assert_eq!((search.distance(Cell::new(350, 550)), search.distance(Cell::new(350, 551))), (Some(200), None));
}

#[test]
fn a_grid_of_another_shape_is_refused() {
    let mut search = GridSearch::new(Grid::free(16, 64).unwrap(), &GridOptions { threads: 1, ..GridOptions::default() }).unwrap();
    search.run(&[Cell::new(0, 0)]).unwrap();
    *search.grid_mut() = Grid::free(32, 32).unwrap();
    assert_eq!(search.steps().unwrap().len(), search.line() * 16);
    assert!(matches!(search.run(&[Cell::new(0, 0)]), Err(GridError::Replaced { rows: 32, columns: 32 })));
    assert_eq!(search.distance(Cell::new(15, 63)), Some(78));
    *search.grid_mut() = Grid::free(16, 64).unwrap();
    assert_eq!(search.run(&[Cell::new(15, 63)]).unwrap().levels, 79);
}

#[test]
fn wrong_calls_are_refused() {
    for (rows, columns) in [(0, 5), (5, 0), (1 << 16, 1 << 16), (usize::MAX, usize::MAX)] {
        assert!(matches!(Grid::free(rows, columns), Err(GridError::Shape { .. })), "{rows} by {columns}");
    }
    assert!(matches!(Grid::from_cells(2, 3, &[1; 5]), Err(GridError::Length { given: 5, wanted: 6 })));
    // As in an occupancy grid of ROS, whose 0 is free.
    let error = Grid::from_cells(2, 3, &[0, 1, 0, 0, 255, 100]).unwrap_err();
    assert!(matches!(error, GridError::Value { cell: Cell { row: 1, column: 1 }, value: 255 }), "{error}");
    let mut grid = Grid::free(20, 30).unwrap();
    assert!(matches!(grid.assign(&[2; 600]), Err(GridError::Value { value: 2, .. })) && grid.free_cells() == 600);
    assert!(matches!(grid.copy_from(&Grid::free(30, 20).unwrap()), Err(GridError::Replaced { rows: 30, columns: 20 })));
    assert!(matches!(grid.set(Cell::new(20, 0), false), Err(GridError::Outside { .. })));
    assert!(matches!(grid.fill(0..2, 5..31, false), Err(GridError::Outside { .. })));
    assert!(!grid.is_free(Cell::new(0, 30)) && !grid.is_free(Cell::new(usize::MAX, usize::MAX)) && grid.is_free(Cell::new(0, 29)));
    grid.fill(4..4, 90..95, false).unwrap();
    grid.set(Cell::new(3, 4), false).unwrap();
    let mut search = GridSearch::new(grid, &GridOptions { threads: 1, ..GridOptions::default() }).unwrap();
    assert!(matches!(search.run(&[]), Err(GridError::NoSource)));
    let error = search.run(&[Cell::new(0, 0), Cell::new(3, 4)]).unwrap_err();
    assert_eq!(error.to_string(), "cell (3, 4) (row, column) is blocked, so no search begins or ends there: set it free, or leave it out");
    let until = GridUntil { target: Some(Cell::new(3, 4)), ..GridUntil::default() };
    assert!(matches!(search.run_until(&[Cell::new(0, 0)], until), Err(GridError::Blocked(Cell { row: 3, column: 4 }))));
    let error = search.run(&[Cell::new(19, 30)]).unwrap_err();
    assert_eq!(error.to_string(), "cell (19, 30) (row, column) lies outside of the grid of 20 by 30 cells");
    let error = search.run_until(&[Cell::new(0, 0)], GridUntil { target: Some(Cell::new(20, 0)), ..GridUntil::default() }).unwrap_err();
    assert!(matches!(error, GridError::Outside { .. }));
    assert_eq!(search.run(&[Cell::new(0, 0)]).unwrap().reached, 599);
    assert!(search.path(Cell::new(3, 4)).is_none() && search.path(Cell::new(99, 4)).is_none());
}
