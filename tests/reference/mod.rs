//! A serial reference search, and the comparison of any search with it.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![allow(dead_code, reason = "not every test needs everything")]

use std::{collections::VecDeque, ops::Range};

use socbfs::{
    graph::{Layout, NONE},
    search::{Search, SearchOptions},
};

/// A graph as plain lists, and the expected results of searches from some roots.
pub struct Reference {
    /// Neighbours (successors of a directed graph), ascending.
    lists: Vec<Vec<u32>>,
    wanted: Vec<Wanted>,
}

/// The expected result for a root. The levels are unique; which parents are right follows from them.
pub struct Wanted {
    root: u32,
    level: Vec<u32>,
    reached: u64,
    levels: u32,
}

impl Reference {
    pub fn new(n: usize, edges: &[[u32; 2]], directed: bool, roots: &[u32]) -> Self {
        let mut lists = vec![Vec::new(); n];
        for &[u, v] in edges {
            lists[u as usize].push(v);
            if !directed {
                lists[v as usize].push(u);
            }
        }
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
        }
        let wanted = roots.iter().map(|&root| Wanted::new(&lists, root)).collect();
        Self { lists, wanted }
    }

    /// Searches from every root, and compares the results.
    pub fn compare(&self, layout: &Layout, options: &SearchOptions) {
        self.compare_with(layout, options, &mut Search::new(layout, options).unwrap());
    }

    /// The same as [`Self::compare`], with an existing search.
    pub fn compare_with(&self, layout: &Layout, options: &SearchOptions, search: &mut Search<'_>) {
        self.compare_roots(layout, options, search, 0..self.wanted.len());
    }

    /// The same as [`Self::compare_with`], from one root only, chosen by `number`.
    pub fn compare_in_turn(&self, number: usize, layout: &Layout, options: &SearchOptions, search: &mut Search<'_>) {
        let root = number % self.wanted.len();
        self.compare_roots(layout, options, search, root..root + 1);
    }

    fn compare_roots(&self, layout: &Layout, options: &SearchOptions, search: &mut Search<'_>, roots: Range<usize>) {
        for wanted in &self.wanted[roots] {
            let root = wanted.root;
            let simd = search.simd();
            let what = || {
                let SearchOptions { planner, threads, devices, .. } = options;
                let setups: Vec<_> = devices.iter().map(|setup| (&setup.device.info().name, setup.way, setup.options)).collect();
                format!("{:?} {threads} threads {simd} {planner:?} {setups:?} root {root}", layout.order())
            };
            let outcome = search.run(root).unwrap_or_else(|error| panic!("{}: {error:?}", what()));
            let result = search.result(root);
            if let Some(v) = (0..wanted.level.len()).find(|&v| result.level[v] != wanted.level[v]) {
                let plans: Vec<_> = search.records().iter().map(|record| (record.plan, record.levels, record.found)).collect();
                panic!("{}: vertex {v} is at level {}, not {}; {plans:?}", what(), result.level[v], wanted.level[v]);
            }
            assert_eq!((outcome.reached, outcome.levels), (wanted.reached, wanted.levels), "{}", what());
            let found: u64 = search.records().iter().map(|record| record.found).sum();
            // Leaves that are left out are not found by a level.
            let is_searched = |&v: &usize| wanted.level[v] != NONE && layout.to_internal(v as u32) != NONE;
            let searched = (0..wanted.level.len()).filter(is_searched).count() as u64;
            assert_eq!(found + 1, searched.max(1), "found: {}: {:?}", what(), search.records());
            for (v, &parent) in (0..).zip(&result.parent) {
                if v == root {
                    assert_eq!(parent, root, "{}", what());
                } else if parent != NONE {
                    let above = wanted.level[parent as usize];
                    assert_eq!(above + 1, wanted.level[v as usize], "{}: parent {parent} of {v}", what());
                    assert!(self.lists[parent as usize].binary_search(&v).is_ok(), "{}: ({parent}, {v}) is no edge", what());
                }
            }
        }
    }

    /// Levels of a search from `root`, which must be one of the given roots.
    pub fn levels(&self, root: u32) -> &[u32] {
        &self.wanted.iter().find(|wanted| wanted.root == root).unwrap().level
    }

    /// The least of the levels from each of the `sources`.
    pub fn least(&self, sources: &[u32]) -> Vec<u32> {
        let mut least = vec![NONE; self.lists.len()];
        for &source in sources {
            least.iter_mut().zip(self.levels(source)).for_each(|(least, &level)| *least = level.min(*least));
        }
        least
    }

    /// Compares the parents of one search with the reference.
    pub fn compare_tree(&self, root: u32, parents: &[u32]) {
        let wanted = self.wanted.iter().find(|wanted| wanted.root == root).unwrap();
        for (v, &parent) in (0..).zip(parents) {
            let level = wanted.level[v as usize];
            if v == root {
                assert_eq!(parent, root);
            } else if parent == NONE {
                assert_eq!(level, NONE, "vertex {v} was not reached");
            } else {
                assert_eq!(wanted.level[parent as usize].wrapping_add(1), level, "parent {parent} of {v}");
                assert!(self.lists[parent as usize].binary_search(&v).is_ok(), "({parent}, {v}) is no edge");
            }
        }
    }
}

impl Wanted {
    /// Searches with a plain queue.
    fn new(lists: &[Vec<u32>], root: u32) -> Self {
        let mut level = vec![NONE; lists.len()];
        level[root as usize] = 0;
        let (mut queue, mut reached, mut levels) = (VecDeque::from([root]), 0, 0);
        while let Some(u) = queue.pop_front() {
            reached += 1;
            levels = level[u as usize] + 1;
            for &v in &lists[u as usize] {
                if level[v as usize] == NONE {
                    level[v as usize] = levels;
                    queue.push_back(v);
                }
            }
        }
        Self { root, level, reached, levels }
    }
}
