//! Measures a search: one untimed warm-up, then every root timed and validated.

use std::time::{Duration, Instant};

use crate::record::RootRecord;
use socbfs::{EdgeList, Layout, LevelRecord, NONE, Outcome, Search, SearchError, Vertex, memory::available_bytes};
use socbfs_io::validate::{ValidateError, Validator};

/// Why a run could not continue. A tree that fails validation is a result, not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The search could not run.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The tree could not be checked.
    #[error("the tree can't be validated")]
    Validate(#[source] ValidateError),
}

/// What the runner gets of a search. Its tree was written into an array.
type Searched = Result<(Outcome, Vec<LevelRecord>), SearchError>;

/// Searches from every root in turn, after one untimed search from the first one. Validates every tree against the edges as listed, outside
/// the timed region. Ends with the first root that fails validation, as the reference code does.
///
/// Searches follow one another directly, as in GAP's harness. Their trees are kept, and validated together after the last search, or after
/// as many searches as a quarter of the free memory has room for or as take 10 s. A validation between two searches would leave its own
/// edges in the caches and its threads on the processors.
///
/// The time of a search is measured by the search: from its call to the parents in original numbers. `finished` is called after each
/// search and each validation with the number of these, of which there are two for every root, and after a validation with its record.
///
/// # Errors
/// [`MeasureError`] for a root that is not a vertex, a failed device, or where memory is short.
pub fn measure(
    edges: &EdgeList,
    layout: &Layout,
    search: &mut Search<'_>,
    roots: &[Vertex],
    finished: &mut dyn FnMut(usize, Option<RootRecord>),
) -> Result<(), MeasureError> {
    let search = |root, tree: &mut [Vertex]| {
        let outcome = search.run(root)?;
        tree.copy_from_slice(search.parents());
        Ok((outcome, search.records().to_vec()))
    };
    measure_with(edges, layout, search, roots, finished)
}

/// Time of searches after which their trees are validated, so that an interruption loses no more.
const UNVALIDATED: Duration = Duration::from_secs(10);

/// [`measure`] of any search, since that of a test has faults.
fn measure_with(
    edges: &EdgeList,
    layout: &Layout,
    mut search: impl FnMut(Vertex, &mut [Vertex]) -> Searched,
    roots: &[Vertex],
    finished: &mut dyn FnMut(usize, Option<RootRecord>),
) -> Result<(), MeasureError> {
    let Some(&first) = roots.first() else { return Ok(()) };
    let (mut rest, mut done) = (roots, 0);
    let mut validator = Validator::new(edges, layout.directed()).map_err(|error| MeasureError::Validate(error.into()))?;
    // If the list has every undirected edge in both directions, the validator counts each edge twice.
    let listings = if layout.stats().both_directions && !layout.directed() { 2 } else { 1 };
    // Filled before any search is timed, so that no search pays for page faults.
    let mut trees = vec![vec![NONE; layout.vertices()]; batch(layout.vertices(), roots.len())];
    search(first, &mut trees[0])?;
    while !rest.is_empty() {
        let (begin, mut searched) = (Instant::now(), Vec::with_capacity(trees.len()));
        for (&root, tree) in rest.iter().zip(&mut trees) {
            searched.push(search(root, tree)?);
            done += 1;
            finished(done, None);
            if begin.elapsed() > UNVALIDATED {
                break;
            }
        }
        rest = &rest[searched.len()..];
        for ((outcome, level_records), tree) in searched.into_iter().zip(&trees) {
            let start = Instant::now();
            let verdict = validator.validate(outcome.root, tree, None);
            let validation_seconds = start.elapsed().as_secs_f64();
            let violation = match verdict {
                Err(ValidateError::Violation(violation)) => Some(violation.to_string()),
                Err(other) => return Err(MeasureError::Validate(other)),
                Ok(found) => miscounted(&outcome, (found.reached, found.edges / listings, found.levels)),
            };
            let passed = violation.is_none();
            done += 1;
            finished(done, Some(RootRecord::new(layout.order(), &outcome, violation, validation_seconds, level_records)));
            if !passed {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// What is wrong with the counts of a search, from which its speed is computed, if the vertices, edges and levels of its tree are `found`.
pub(super) fn miscounted(outcome: &Outcome, found: (u64, u64, u32)) -> Option<String> {
    let (vertices, edges, levels) = (outcome.reached, outcome.edges, outcome.levels);
    let said = format!("the search reports {vertices} vertices, {edges} edges and {levels} levels, the tree has");
    (found != (vertices, edges, levels)).then(|| format!("{said} {}, {} and {}", found.0, found.1, found.2))
}

/// Number of trees of `vertices` parents that are kept at the same time, at least one.
fn batch(vertices: usize, roots: usize) -> usize {
    let budget = available_bytes().unwrap_or(256 << 20) / 4;
    let tree = vertices.max(1) as u64 * size_of::<Vertex>() as u64;
    usize::try_from(budget / tree).unwrap_or(usize::MAX).clamp(1, roots.max(1))
}

/// The records of all roots.
#[cfg(test)]
pub(super) fn validated(
    edges: &EdgeList,
    layout: &Layout,
    search: &mut Search<'_>,
    roots: &[Vertex],
) -> Result<Vec<RootRecord>, MeasureError> {
    let mut records = Vec::new();
    measure(edges, layout, search, roots, &mut |_, record| records.extend(record)).map(|()| records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::{
        graph::{BuildOptions, Listing, Order},
        search::{End, SearchOptions},
    };

    /// The path 0 - 1 - 2 - 3 with a self-loop, and an isolated vertex.
    fn built() -> (EdgeList, Layout) {
        let edges = EdgeList::new(5, vec![[0, 1], [1, 2], [2, 3], [3, 3]], Listing::Once).unwrap();
        let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
        (edges, layout)
    }

    #[test]
    fn every_root_is_measured_and_validated() {
        let (edges, layout) = built();
        let mut search = Search::new(&layout, &SearchOptions::default()).unwrap();
        let (mut calls, mut records) = (Vec::new(), Vec::new());
        let mut finished = |done, record: Option<RootRecord>| {
            calls.push((done, record.is_some()));
            records.extend(record);
        };
        measure(&edges, &layout, &mut search, &[1, 3], &mut finished).unwrap();
        assert_eq!(calls, [(1, false), (2, false), (3, true), (4, true)]);
        assert_eq!(records.iter().map(|r| (r.root, r.reached, r.levels, r.edges)).collect::<Vec<_>>(), [(1, 4, 3, 3), (3, 4, 4, 3)]);
        assert!(records.iter().all(|r| r.validation.passed && r.seconds.is_some() && r.mapping_seconds.is_some()));
    }

    #[test]
    fn an_empty_list_gives_no_records_and_a_wrong_root_is_an_error() {
        let (edges, layout) = built();
        let mut search = Search::new(&layout, &SearchOptions::default()).unwrap();
        assert!(validated(&edges, &layout, &mut search, &[]).unwrap().is_empty());
        assert!(validated(&edges, &layout, &mut search, &[5]).is_err());
    }

    /// Gives right trees for its first `good` searches, the warm-up included. Then vertex 3 has the wrong parent 0.
    fn faulty(edges: &EdgeList, layout: &Layout, mut good: usize, counted: u64, roots: &[Vertex]) -> Vec<RootRecord> {
        let search = |root, tree: &mut [Vertex]| {
            tree.copy_from_slice(&[0, 0, 1, 2, NONE]);
            match good.checked_sub(1) {
                Some(left) => good = left,
                None => tree[3] = 0,
            }
            let (elapsed, mapping) = (Duration::from_millis(2), Duration::from_millis(1));
            Ok((Outcome { root, sources: 1, reached: 4, levels: 4, edges: counted, end: End::Complete, elapsed, mapping }, Vec::new()))
        };
        let mut records = Vec::new();
        measure_with(edges, layout, search, roots, &mut |_, record| records.extend(record)).unwrap();
        records
    }

    #[test]
    fn a_wrong_tree_ends_the_run_and_has_no_time() {
        let (edges, layout) = built();
        let records = faulty(&edges, &layout, 2, 3, &[0, 0, 0]);
        assert_eq!(records.iter().map(|r| r.validation.passed).collect::<Vec<_>>(), [true, false]);
        assert_eq!(records[0].seconds, Some(0.002));
        assert_eq!((records[1].seconds, records[1].mapping_seconds), (None, None));
        let violation = records[1].validation.violation.as_deref().unwrap();
        assert!(violation.contains('3') && violation.contains('0'), "{violation}");
    }

    #[test]
    fn only_a_layout_that_renumbers_vertices_has_a_time_of_mapping() {
        let (edges, _) = built();
        for (order, seconds) in [(Order::Original, 0.0), (Order::Degree, 0.001)] {
            let layout = Layout::build(&edges, &BuildOptions { order, ..BuildOptions::default() }).unwrap();
            let records = faulty(&edges, &layout, 9, 3, &[0]);
            assert_eq!((records[0].seconds, records[0].mapping_seconds), (Some(0.002), Some(seconds)), "{order:?}");
        }
    }

    #[test]
    fn edges_listed_in_both_directions_count_once() {
        let edges = EdgeList::new(3, vec![[0, 1], [1, 0], [1, 2], [2, 1]], Listing::BothDirections).unwrap();
        let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
        let mut search = Search::new(&layout, &SearchOptions::default()).unwrap();
        let records = validated(&edges, &layout, &mut search, &[0]).unwrap();
        assert_eq!(records[0].edges, 2);
        assert!(records[0].validation.passed, "{:?}", records[0].validation);
    }

    #[test]
    fn a_wrong_edge_count_fails_validation_and_has_no_time() {
        let (edges, layout) = built();
        let records = faulty(&edges, &layout, 9, 4, &[0]);
        assert!(!records[0].validation.passed && records[0].seconds.is_none());
        assert!(records[0].validation.violation.as_deref().unwrap().contains("4 edges"));
    }
}
