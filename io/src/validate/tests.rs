use proptest::{prelude::*, sample::Index};

use super::*;
use crate::generate::Generator;
use socbfs::{bfs::BfsResult, graph::Listing};

fn list(vertices: usize, edges: &[[Vertex; 2]]) -> EdgeList {
    EdgeList::new(vertices, edges.to_vec(), Listing::Once).unwrap()
}

fn search(edges: &EdgeList, directed: bool, root: Vertex) -> BfsResult {
    SerialBfs::new(edges, directed).unwrap().search(root).unwrap()
}

fn violation(edges: &EdgeList, directed: bool, root: Vertex, parent: &[Vertex]) -> Violation {
    match validate(edges, directed, root, parent) {
        Err(ValidateError::Violation(violation)) => violation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_entry_of_a_symmetric_list_is_two_arcs() {
    let edges = EdgeList::new(4, vec![[1, 0], [2, 1], [1, 1], [2, 1]], Listing::Symmetric).unwrap();
    let tree = search(&edges, true, 0);
    assert_eq!(tree.level, [0, 1, 2, NONE]);
    let found = validate(&edges, true, 0, &tree.parent).unwrap();
    assert_eq!((found.reached, found.edges, found.self_loops), (3, 6, 1));
    assert_eq!(validate(&edges, false, 0, &tree.parent).unwrap().edges, 3);
    // These parents would be right if the arcs had one direction only.
    assert_eq!(violation(&edges, true, 0, &[0, NONE, NONE, NONE]).check(), Check::Component);
}

/// Checks that the serial tree passes and that its counts are right.
fn passes(vertices: usize, pairs: &[[Vertex; 2]], directed: bool, root: Vertex) -> Validated {
    let edges = list(vertices, pairs);
    let tree = search(&edges, directed, root);
    let mut validator = Validator::new(&edges, directed).unwrap();
    let validated = validator.validate(root, &tree.parent, Some(&tree.level)).unwrap();
    assert_eq!(validator.levels(), tree.level);
    let inside = |&&[u, v]: &&[Vertex; 2]| tree.level[u as usize] != NONE && tree.level[v as usize] != NONE;
    let (loops, joined): (Vec<&[Vertex; 2]>, Vec<&[Vertex; 2]>) = pairs.iter().filter(inside).partition(|[u, v]| u == v);
    let reached = tree.level.iter().filter(|&&level| level != NONE);
    let expected = Validated {
        root,
        reached: reached.clone().count() as u64,
        levels: reached.max().unwrap() + 1,
        edges: joined.len() as u64,
        self_loops: loops.len() as u64,
    };
    assert_eq!(validated, expected);
    validated
}

#[test]
fn trees_of_odd_graphs_pass() {
    for directed in [false, true] {
        assert_eq!(passes(1, &[], directed, 0).levels, 1);
        assert_eq!(passes(3, &[[0, 0], [1, 1], [1, 1]], directed, 1).self_loops, 2);
        assert_eq!(passes(5, &[[0, 1], [1, 2], [0, 2]], directed, 4).reached, 1);
        let star: Vec<[Vertex; 2]> = (1..1000).map(|v| [0, v]).collect();
        assert_eq!(passes(1000, &star, directed, 0).levels, 2);
        // Deeper than a byte can hold, around the limit of the short levels, and long enough for several chunks.
        for n in [254, 255, 256, 257, 40_000] {
            let path: Vec<[Vertex; 2]> = (1..n).map(|v| [v - 1, v]).collect();
            let passed = passes(n as usize, &path, directed, 0);
            assert_eq!((passed.levels, passed.reached, passed.edges), (n, u64::from(n), u64::from(n) - 1));
        }
        let two = [[0, 1], [1, 2], [2, 0], [3, 4], [4, 5]];
        assert_eq!(passes(6, &two, directed, 3).reached, 3);
        let parallel = vec![[1, 0]; 100_000];
        assert_eq!(passes(2, &parallel, directed, 1).edges, 100_000);
    }
    assert_eq!(passes(1000, &(1..1000).map(|v| [0, v]).collect::<Vec<_>>(), false, 7).levels, 3);
    assert_eq!(passes(2, &[[0, 1]], true, 1).reached, 1);
}

#[test]
fn the_tree_of_a_grid_passes() {
    let grid = Generator::Grid { width: 60, height: 50, deletion: 0.1, seed: 1 }.generate(&|_| ()).unwrap();
    let tree = search(&grid, false, 0);
    assert!(validate(&grid, false, 0, &tree.parent).unwrap().levels > 100);
}

#[test]
fn edges_listed_in_both_directions_count_twice() {
    let edges = EdgeList::new(3, vec![[0, 1], [1, 0], [1, 2], [2, 1], [2, 2]], Listing::BothDirections).unwrap();
    let tree = search(&edges, false, 0);
    let validated = validate(&edges, false, 0, &tree.parent).unwrap();
    assert_eq!((validated.edges, validated.self_loops), (4, 1));
}

/// Compares with counts of the Graph500 reference code 3.0.1 from the first root.
fn golden(scale: u32, root: Vertex, sizes: &[u64], edges: Option<[u64; 2]>) {
    let graph = Generator::graph500(scale).generate(&|_| ()).unwrap();
    let tree = search(&graph, false, root);
    let mut validator = Validator::new(&graph, false).unwrap();
    let validated = validator.validate(root, &tree.parent, Some(&tree.level)).unwrap();
    let mut found = vec![0; validated.levels as usize];
    validator.levels().iter().filter(|&&level| level != NONE).for_each(|&level| found[level as usize] += 1);
    assert_eq!(found, sizes);
    assert_eq!(validated.reached, sizes.iter().sum::<u64>());
    if let Some([without_loops, with_loops]) = edges {
        assert_eq!((validated.edges, validated.edges + validated.self_loops), (without_loops, with_loops));
    }
}

#[test]
fn levels_match_the_reference() {
    golden(10, 458, &[1, 8, 500, 380, 8], None);
    golden(16, 29348, &[1, 27, 8336, 36624, 1805, 10], None);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "16.8 million edges: run with --release")]
fn levels_of_scale_20_match_the_reference() {
    golden(20, 469_580, &[1, 46, 70030, 539_775, 35665, 126], Some([16_775_818, 16_776_976]));
}

#[test]
#[ignore = "67 million edges and 1.5 GB: run with --release and --ignored"]
fn levels_of_scale_22_match_the_reference() {
    golden(22, 1_878_321, &[1, 24, 88419, 2_020_686, 284_881, 1166, 2], None);
}

#[test]
fn input_that_does_not_fit_is_refused() {
    let edges = list(3, &[[0, 1]]);
    let message = |result: Result<Validated, ValidateError>| result.unwrap_err().to_string();
    assert_eq!(message(validate(&edges, false, 0, &[0, 0])), "2 parents are given for a graph of 3 vertices");
    assert_eq!(message(validate(&edges, false, 3, &[0, 0, 0])), "root 3 is not a vertex: the graph has 3 vertices, numbered from 0");
    let root_parent = "check 1 (the tree has no cycle): the root 0 must be its own parent, but";
    assert_eq!(message(validate(&edges, false, 0, &[NONE, 0, NONE])), format!("{root_parent} it has none"));
    assert_eq!(message(validate(&edges, false, 0, &[1, 0, NONE])), format!("{root_parent} 1 is given"));
    assert!(message(validate(&edges, false, 0, &[0, 1, NONE])).ends_with("run into a cycle of 1 vertex at vertex 1"));
    let mut validator = Validator::new(&edges, false).unwrap();
    assert_eq!(message(validator.validate(0, &[0, 0, NONE], Some(&[0; 4]))), "4 levels are given for a graph of 3 vertices");
    let empty = list(0, &[]);
    assert!(matches!(validate(&empty, false, 0, &[]), Err(ValidateError::RootOutOfRange { root: 0, vertices: 0 })));

    let mut pairs = vec![[0, 1]; 30_000];
    pairs[20_000] = [2, 3];
    pairs[25_000] = [9, 0];
    let broken = list(3, &pairs);
    let expected = GraphError::VertexOutOfRange { index: 20_000, source_vertex: 2, target_vertex: 3, vertices: 3 };
    assert_eq!(validate(&broken, false, 0, &[0; 3]).unwrap_err(), ValidateError::Graph(expected.clone()));
    assert_eq!(SerialBfs::new(&broken, true).unwrap_err(), expected);
    assert_eq!(SerialBfs::new(&edges, true).unwrap().search(3), None);
}

#[test]
fn faults_of_the_tree_are_found() {
    let edges = list(6, &[[0, 1], [1, 2], [2, 3], [3, 4], [4, 2]]);
    assert_eq!(violation(&edges, false, 0, &[1, 0, 1, 2, 2, NONE]), Violation::RootParent { root: 0, parent: 1 });
    assert_eq!(violation(&edges, false, 0, &[NONE, 0, 1, 2, 2, NONE]), Violation::RootParent { root: 0, parent: NONE });
    // The cycle 2 -> 4 -> 3 -> 2; vertex 1 leads into it.
    assert_eq!(violation(&edges, false, 0, &[0, 3, 4, 2, 3, NONE]), Violation::Cycle { vertex: 1, cycle: 2, length: 3 });
    assert_eq!(violation(&edges, false, 0, &[0, 0, 1, 2, 4, NONE]), Violation::Cycle { vertex: 4, cycle: 4, length: 1 });
    let dead = violation(&edges, false, 0, &[0, 0, 1, 5, 3, NONE]);
    assert_eq!(dead, Violation::DeadEnd { vertex: 3, last: 3, parent: 5, exists: true });
    assert_eq!(
        dead.to_string(),
        "check 1 (the tree has no cycle): the parents of vertex 3 end at vertex 3, whose parent 5 was not reached"
    );
    let dead = violation(&edges, false, 0, &[0, 0, 1, 6, 3, NONE]);
    assert_eq!(dead, Violation::DeadEnd { vertex: 3, last: 3, parent: 6, exists: false });
}

#[test]
fn long_cycle_is_found_on_any_number_of_threads() {
    let n = 100_000;
    let edges = list(n, &(1..n as Vertex).map(|v| [v - 1, v]).collect::<Vec<_>>());
    // From vertex 50 on, the parent is the next vertex; the parent of the last one, 60,000, closes the cycle.
    let mut parent: Vec<Vertex> = (0..n as Vertex).map(|v| if v < 50 { v.saturating_sub(1) } else { v + 1 }).collect();
    parent[n - 1] = 60_000;
    for threads in [1, 2, 4] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let expected = Violation::Cycle { vertex: 50, cycle: 60_000, length: 40_000 };
        assert_eq!(pool.install(|| violation(&edges, false, 0, &parent)), expected);
    }
}

#[test]
fn the_first_failed_check_and_its_first_edge_are_reported() {
    // A triangle 0 1 2 with a tail 2 3 4. The parents make it a path, so that edges 2 and 5 span two levels. Faults at vertex 4, reached or
    // not, come later.
    let pairs = [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [0, 2]];
    let edges = list(5, &pairs);
    let gap = Violation::LevelGap { edge: 2, source_vertex: 2, source_level: 2, target_vertex: 0, target_level: 0 };
    assert_eq!(violation(&edges, false, 0, &[0, 0, 1, 2, NONE]), gap);
    assert_eq!(gap.to_string(), "check 3 (the ends of each edge are at most one level apart): edge 2 joins 2 on level 2 and 0 on level 0");
    // In the directed graph, 2 -> 0 leads up, and only 0 -> 2 spans two levels.
    let gap = Violation::LevelGap { edge: 5, source_vertex: 0, source_level: 0, target_vertex: 2, target_level: 2 };
    assert_eq!(violation(&edges, true, 0, &[0, 0, 1, 2, 3]), gap);

    let missed = violation(&edges, false, 0, &[0, 0, 0, 2, NONE]);
    assert_eq!(missed, Violation::NotSpanned { edge: 4, reached: 3, missed: 4 });
    assert_eq!(violation(&edges, false, 0, &[0, NONE, NONE, NONE, NONE]), Violation::NotSpanned { edge: 0, reached: 0, missed: 1 });
    // An arc into the tree from outside is not a fault.
    assert!(validate(&edges, true, 3, &[NONE, NONE, NONE, 3, 3]).is_ok());
    assert!(validate(&edges, false, 3, &[NONE, NONE, NONE, 3, 3]).is_err());

    // Level 1 holds 1 and 3, and 2 has an edge to 1 only.
    let square = list(4, &[[0, 1], [3, 0], [2, 1]]);
    let stranger = violation(&square, false, 0, &[0, 0, 3, 0]);
    assert_eq!(stranger, Violation::NotAnEdge { vertex: 2, parent: 3 });
    assert_eq!(
        stranger.to_string(),
        "check 5 (each vertex and its parent are joined by an edge): vertex 2 has the parent 3, but no edge joins them"
    );
}

#[test]
fn the_missed_end_of_a_path_of_any_depth_is_found() {
    for n in [2, 253, 254, 255, 256, 257, 300] {
        let edges = list(n, &(1..n as Vertex).map(|v| [v - 1, v]).collect::<Vec<_>>());
        for directed in [false, true] {
            let mut tree = search(&edges, directed, 0);
            assert_eq!(validate(&edges, directed, 0, &tree.parent).unwrap().levels, n as u32);
            tree.parent[n - 1] = NONE;
            let (reached, missed) = (n as Vertex - 2, n as Vertex - 1);
            assert_eq!(violation(&edges, directed, 0, &tree.parent), Violation::NotSpanned { edge: n - 2, reached, missed });
        }
    }
}

#[test]
fn arcs_confirm_parents_in_their_direction_only() {
    // A square 0 1 2 3 of arcs 0 -> 1, 0 -> 3, 1 -> 2, 2 -> 3.
    let edges = list(4, &[[0, 1], [0, 3], [1, 2], [2, 3]]);
    assert!(validate(&edges, false, 0, &[0, 0, 3, 0]).is_ok());
    assert_eq!(violation(&edges, true, 0, &[0, 0, 3, 0]), Violation::NotAnEdge { vertex: 2, parent: 3 });
    assert!(validate(&edges, true, 0, &[0, 0, 1, 0]).is_ok());
}

#[test]
fn given_levels_are_checked() {
    let edges = list(4, &[[0, 1], [1, 2]]);
    let mut validator = Validator::new(&edges, false).unwrap();
    let parent = [0, 0, 1, NONE];
    assert!(validator.validate(0, &parent, Some(&[0, 1, 2, NONE])).is_ok());
    for (levels, vertex) in [([1, 1, 2, NONE], 0), ([0, 1, 3, NONE], 2), ([0, 1, 2, 3], 3), ([0, NONE, 1, NONE], 1)] {
        let error = validator.validate(0, &parent, Some(&levels)).unwrap_err();
        assert!(
            matches!(error, ValidateError::Violation(fault @ Violation::Level { vertex: v, .. }) if v == vertex && fault.check() == Check::TreeLevels)
        );
    }
    let message = validator.validate(0, &parent, Some(&[0, 1, 2, 3])).unwrap_err().to_string();
    assert_eq!(message, "check 2 (each tree edge spans one level): vertex 3 is given level 3, but by its parents it has no level");
}

#[test]
fn earlier_trees_do_not_affect_later_ones() {
    let edges = list(7, &[[0, 1], [3, 0], [2, 1], [4, 5]]);
    let mut validator = Validator::new(&edges, false).unwrap();
    for _ in 0..2 {
        assert_eq!(validator.validate(0, &[0, 0, 1, 0, NONE, NONE, NONE], None).unwrap().reached, 4);
        // Vertices confirmed by an earlier tree do not count.
        assert!(validator.validate(0, &[0, 0, 3, 0, NONE, NONE, NONE], None).is_err());
        assert!(validator.validate(0, &[0, 2, 1, 0, NONE, NONE, NONE], None).is_err());
        assert_eq!(validator.validate(5, &[NONE, NONE, NONE, NONE, 5, 5, NONE], None).unwrap().reached, 2);
        assert_eq!(validator.levels(), [NONE, NONE, NONE, NONE, 1, 0, NONE]);
    }
}

/// Graphs of few vertices and many components, loops and repeats.
fn graphs() -> impl Strategy<Value = (usize, Vec<[Vertex; 2]>, bool, Vertex)> {
    (1..40_u32).prop_flat_map(|n| (Just(n as usize), prop::collection::vec([0..n, 0..n], 0..100), any::<bool>(), 0..n))
}

/// Marks the vertices below `top` in the tree, `top` included.
fn subtree(parent: &[Vertex], top: Vertex, root: Vertex) -> Vec<bool> {
    let below = |mut v: Vertex| loop {
        if v == top {
            return true;
        }
        if v == root || v == NONE {
            return false;
        }
        v = parent[v as usize];
    };
    (0..parent.len() as Vertex).map(|v| parent[v as usize] != NONE && below(v)).collect()
}

proptest! {
    #[test]
    fn right_trees_pass((n, pairs, directed, root) in graphs()) {
        passes(n, &pairs, directed, root);
    }

    #[test]
    fn wrong_trees_fail_the_right_check((n, pairs, directed, root) in graphs(), kind in 0..6, which: Index, other: Index) {
        let edges = list(n, &pairs);
        let tree = search(&edges, directed, root);
        let (level, mut parent, mut claimed) = (tree.level, tree.parent, None);
        let reached: Vec<Vertex> = (0..n as Vertex).filter(|&v| v != root && level[v as usize] != NONE).collect();
        prop_assume!(!reached.is_empty());
        let v = *which.get(&reached);
        let depth = level[v as usize];
        let below = subtree(&parent, v, root);
        let choose = |condition: &dyn Fn(Vertex) -> bool| {
            let choice: Vec<Vertex> = (0..n as Vertex).filter(|&w| condition(w)).collect();
            (!choice.is_empty()).then(|| *other.get(&choice))
        };
        let joined = |w: Vertex| pairs.iter().any(|&[a, b]| [a, b] == [w, v] || !directed && [b, a] == [w, v]);
        let expected = match kind {
            // The parent is a vertex below the vertex itself: a cycle.
            0 => {
                parent[v as usize] = choose(&|w| below[w as usize]).unwrap();
                Check::Tree
            }
            // The parent is a vertex that was not reached or does not exist.
            1 => {
                parent[v as usize] = choose(&|w| level[w as usize] == NONE).unwrap_or(n as Vertex);
                Check::Tree
            }
            2 => {
                let mut levels = level.clone();
                levels[v as usize] = if other.index(2) == 0 { depth + 1 } else { depth - 1 };
                claimed = Some(levels);
                Check::TreeLevels
            }
            // The parent is so deep that the edge to the old parent spans several levels.
            3 => {
                let deeper = choose(&|w| level[w as usize] != NONE && level[w as usize] >= depth && !below[w as usize]);
                prop_assume!(deeper.is_some());
                parent[v as usize] = deeper.unwrap();
                Check::EdgeLevels
            }
            // The vertex and all vertices below it are cut off.
            4 => {
                (0..n).filter(|&w| below[w]).for_each(|w| parent[w] = NONE);
                Check::Component
            }
            // The parent is on the right level, but is not a neighbour.
            _ => {
                let stranger = choose(&|w| level[w as usize] == depth - 1 && !joined(w));
                prop_assume!(stranger.is_some());
                parent[v as usize] = stranger.unwrap();
                Check::TreeEdges
            }
        };
        let result = Validator::new(&edges, directed).unwrap().validate(root, &parent, claimed.as_deref());
        match result {
            Err(ValidateError::Violation(violation)) => prop_assert_eq!(violation.check(), expected, "{}", violation),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
