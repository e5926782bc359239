//! A search that keeps its layout alive, for handles in languages without borrowing.

use std::sync::Arc;

use super::Search;
use crate::{graph::Layout, threads::AffinityGuard};

/// A [`Search`] and a share of the layout that it borrows. If the search binds its threads to CPUs, the calling thread is bound only while
/// it searches, since it belongs to the program.
#[derive(Debug)]
pub struct OwnedSearch {
    // Fields are dropped in this order: the search before the layout that it borrows.
    search: Search<'static>,
    layout: Arc<Layout>,
}

impl OwnedSearch {
    /// Keeps the search that `make` sets up over `layout`.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new<E>(layout: Arc<Layout>, make: impl for<'g> FnOnce(&'g Layout) -> Result<Search<'g>, E>) -> Result<Self, E> {
        // SAFETY: the layout is behind the `Arc`, is never written to, and is dropped after the search. No caller can see the lifetime that
        // is made up here: `make` and the closures of `with` must accept any, and `get` shortens it.
        let borrowed: &'static Layout = unsafe { &*Arc::as_ptr(&layout) };
        let _restored = AffinityGuard::new();
        Ok(Self { search: make(borrowed)?, layout })
    }

    /// The layout.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The search, for reading.
    pub fn get(&self) -> &Search<'_> {
        &self.search
    }

    /// Calls `use_it` with the search.
    pub fn with<T>(&mut self, use_it: impl for<'g> FnOnce(&mut Search<'g>) -> T) -> T {
        let _restored = AffinityGuard::bound(&self.search.options.cpus);
        use_it(&mut self.search)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::{BuildOptions, EdgeList, Listing},
        search::{SearchError, SearchOptions},
    };

    #[test]
    fn the_calling_thread_is_bound_only_while_it_searches() {
        use nix::{sched, unistd::Pid};
        let cpus = || {
            let set = sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
            (0..sched::CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap()).collect::<Vec<_>>()
        };
        let before = cpus();
        let list = EdgeList::new(4, vec![[0, 1], [1, 2]], Listing::Once).unwrap();
        let layout = Arc::new(Layout::build(&list, &BuildOptions::default()).unwrap());
        let options = SearchOptions { threads: 2, cpus: vec![before[0]], ..SearchOptions::default() };
        let mut search = OwnedSearch::new(layout, |layout| Search::new(layout, &options)).unwrap();
        assert_eq!(cpus(), before);
        let (reached, during) = search.with(|search| (search.run(0).unwrap().reached, cpus()));
        assert_eq!((reached, during), (3, vec![before[0]]));
        assert_eq!(cpus(), before);
    }

    #[test]
    fn an_owned_search_keeps_its_layout_and_moves_between_threads() {
        let list = EdgeList::new(4, vec![[0, 1], [1, 2]], Listing::Once).unwrap();
        let layout = Arc::new(Layout::build(&list, &BuildOptions::default()).unwrap());
        let options = SearchOptions { threads: 2, ..SearchOptions::default() };
        let mut search = OwnedSearch::new(Arc::clone(&layout), |layout| Search::new(layout, &options)).unwrap();
        drop(layout);
        let reached = std::thread::spawn(move || {
            let outcome = search.with(|search| search.run(1)).unwrap();
            assert_eq!(search.get().parents()[..3], [1, 1, 1]);
            assert_eq!(search.layout().vertices(), 4);
            outcome.reached
        });
        assert_eq!(reached.join().unwrap(), 3);
        let layout = Arc::new(Layout::build(&list, &BuildOptions::default()).unwrap());
        assert!(OwnedSearch::new(layout, |_| Err(SearchError::Threads("none".into()))).is_err());
    }
}
