//! The plans of a recorded run, to be replayed.

use serde::Deserialize;

use socbfs::{
    bfs::LevelRecord,
    graph::{Layout, Vertex},
};
use socbfs_policy::Replay;

/// Why a recorded run can't be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The record is of another graph.
    #[error("{name} is a record of {source_name}, with {recorded} {field} where this graph has {here}")]
    OtherGraph {
        /// File name.
        name: String,
        /// The graph that was searched, as the record names it.
        source_name: String,
        /// The count that differs.
        field: &'static str,
        /// Value in the record.
        recorded: u64,
        /// Value in the graph.
        here: u64,
    },
    /// The record has no search from this root.
    #[error("{name} has no search from root {root}; it has {}", roots(.known))]
    UnknownRoot {
        /// File name.
        name: String,
        /// The root.
        root: Vertex,
        /// The roots of the record.
        known: Vec<Vertex>,
    },
}

/// Lists the first few roots.
fn roots(known: &[Vertex]) -> String {
    const SHOWN: usize = 8;
    let mut text = known.iter().take(SHOWN).map(Vertex::to_string).collect::<Vec<_>>().join(", ");
    if known.len() > SHOWN {
        text += &format!(" and {} more", known.len() - SHOWN);
    }
    text
}

/// The plans of a run by root, and the recorded counts of its graph.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedPlans {
    name: String,
    graph: RecordedGraph,
    roots: Vec<Vertex>,
    replay: Replay,
}

/// The fields that identify the graph. Counts of the searched structure are not among them, since the layout may differ.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RecordedGraph {
    /// Name of the graph.
    pub source: String,
    /// Whether arcs keep their direction.
    pub directed: bool,
    /// Number of vertices.
    pub vertices: u64,
    /// Number of listed edges.
    pub edges: u64,
    /// Number of edges without repeats.
    pub unique_edges: u64,
}

impl RecordedPlans {
    /// The plans of searches of `graph` from these roots. Errors name the run by `name`.
    pub fn new(name: &str, graph: RecordedGraph, searches: &[(Vertex, &[LevelRecord])]) -> Self {
        let replay = Replay::of_roots(searches.iter().copied()).running_ahead();
        Self { name: name.to_owned(), graph, roots: searches.iter().map(|&(root, _)| root).collect(), replay }
    }

    /// The name that errors use for the record.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The plans to replay.
    pub fn replay(&self) -> &Replay {
        &self.replay
    }

    /// Checks that `layout` is of the graph that was searched.
    ///
    /// # Errors
    /// [`ReplayError::OtherGraph`] with the first count that differs.
    pub fn check_graph(&self, layout: &Layout) -> Result<(), ReplayError> {
        let (graph, stats) = (&self.graph, layout.stats());
        let arcs = |directed: bool, edges: u64| if directed { edges } else { 2 * edges };
        for (field, recorded, here) in [
            ("vertices", graph.vertices, stats.vertices),
            ("edges", graph.edges, stats.edges),
            ("distinct arcs", arcs(graph.directed, graph.unique_edges), arcs(layout.directed(), stats.unique_edges)),
        ] {
            if recorded != here {
                return Err(ReplayError::OtherGraph { name: self.name.clone(), source_name: graph.source.clone(), field, recorded, here });
            }
        }
        Ok(())
    }

    /// Checks that a search from `root` was recorded.
    ///
    /// # Errors
    /// [`ReplayError::UnknownRoot`].
    pub fn check_root(&self, root: Vertex) -> Result<(), ReplayError> {
        if self.replay.has_root(root) {
            return Ok(());
        }
        Err(ReplayError::UnknownRoot { name: self.name.clone(), root, known: self.roots.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::{
        bfs::Strategy,
        graph::{BuildOptions, EdgeList, Listing},
    };

    /// Searches of the path 0 - 1 - 2: that from 0 has three levels, the last one bottom-up.
    fn plans() -> RecordedPlans {
        let level = |strategy: Strategy, levels| LevelRecord { plan: strategy.plan(), levels, ..LevelRecord::default() };
        let records = [level(Strategy::Tc, 2), level(Strategy::Bc, 1)];
        let graph = RecordedGraph { source: "path.el".into(), directed: false, vertices: 3, edges: 2, unique_edges: 2 };
        RecordedPlans::new("r.json", graph, &[(0, &records)])
    }

    fn layout(edges: &[[Vertex; 2]], vertices: usize, directed: bool) -> Layout {
        let list = EdgeList::new(vertices, edges.to_vec(), Listing::Once).unwrap();
        Layout::build(&list, &BuildOptions { directed, ..BuildOptions::default() }).unwrap()
    }

    #[test]
    fn plans_are_kept_for_each_root() {
        let plans = plans();
        assert_eq!(plans.replay().plans(), [Strategy::Tc, Strategy::Tc, Strategy::Bc].map(Strategy::plan));
        assert_eq!(plans.check_root(0), Ok(()));
        let error = plans.check_root(2).unwrap_err();
        assert_eq!(error.to_string(), "r.json has no search from root 2; it has 0");
    }

    #[test]
    fn records_of_another_graph_are_refused() {
        let plans = plans();
        assert_eq!(plans.check_graph(&layout(&[[0, 1], [2, 1]], 3, false)), Ok(()));
        for (edges, vertices, directed, field) in [
            (&[[0, 1], [1, 2]][..], 4, false, "3 vertices where this graph has 4"),
            (&[[0, 1]], 3, false, "2 edges where this graph has 1"),
            (&[[0, 1], [1, 2]], 3, true, "4 distinct arcs where this graph has 2"),
            (&[[0, 1], [0, 1]], 3, false, "4 distinct arcs where this graph has 2"),
        ] {
            let error = plans.check_graph(&layout(edges, vertices, directed)).unwrap_err().to_string();
            assert!(error.starts_with("r.json is a record of path.el, with ") && error.ends_with(field), "{error}");
        }
    }

    #[test]
    fn long_lists_of_roots_are_shortened() {
        assert_eq!(roots(&[1, 2]), "1, 2");
        assert_eq!(roots(&(0..10).collect::<Vec<_>>()), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}
