//! The flag that stops searches.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// Stops searches from any thread: the running search, between two of its levels, and all later ones, until it is [reset](Self::reset).
///
/// Consecutive small levels that the CPU runs in one step end after at most a million vertices. A device may run up to 16 steps, each a
/// large level or up to 512 small ones, before the host can stop it. With a policy whose devices search independently
/// ([`Policy::Asynchronous`](crate::policy::Policy::Asynchronous)), all levels from the point where the devices part are one step: a stop takes effect only before that step.
///
/// ```
/// # use socbfs::{BuildOptions, Layout, Search, SearchOptions, search::SearchError, graph::{EdgeList, Listing}};
/// # let edges = EdgeList::new(3, vec![[0, 1], [1, 2]], Listing::Once)?;
/// # let layout = Layout::build(&edges, &BuildOptions::default())?;
/// let mut search = Search::new(&layout, &SearchOptions::default())?;
/// let stopper = search.stopper();
/// std::thread::spawn(move || stopper.stop()).join().unwrap();
/// assert!(matches!(search.run(0), Err(SearchError::Stopped(0))));
/// search.stopper().reset();
/// assert_eq!(search.run(0)?.reached, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stopper(Arc<AtomicBool>);

impl Stopper {
    /// Stops searches. They return [`SearchError::Stopped`](super::SearchError::Stopped).
    pub fn stop(&self) {
        self.0.store(true, Relaxed); // it orders no other memory
    }

    /// Lets searches run again.
    pub fn reset(&self) {
        self.0.store(false, Relaxed);
    }

    /// Whether searches are stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Relaxed)
    }
}
