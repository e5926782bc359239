//! What ends long work before it is done.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};

use super::GraphError;

/// Stops long work from any thread: the reading of a file, the building of a [`Layout`](super::Layout), and searches: the running one,
/// between two of its levels, and all later ones, until it is [reset](Self::reset).
///
/// Consecutive small levels that the CPU runs in one step end after at most a million vertices. A device may run up to 16 steps, each a
/// large level or up to 512 small ones, before the host can stop it. With plans by which devices search independently (`Placement::Apart`),
/// all levels from the point where the devices part are one step: a stop takes effect only before that step.
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
pub struct Stopper(Arc<Stop>);

#[derive(Debug, Default)]
struct Stop {
    is_set: AtomicBool,
    deadline: Option<Instant>,
}

impl Stopper {
    /// A stopper that stops by itself at `deadline` (`None`: never).
    pub fn at(deadline: Option<Instant>) -> Self {
        Self(Arc::new(Stop { is_set: AtomicBool::new(false), deadline }))
    }

    /// Stops the work. Searches return [`SearchError::Stopped`](crate::search::SearchError::Stopped).
    pub fn stop(&self) {
        self.0.is_set.store(true, Relaxed); // it orders no other memory
    }

    /// Lets work run again, if no deadline has passed.
    pub fn reset(&self) {
        self.0.is_set.store(false, Relaxed);
    }

    /// Whether work is stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.is_set.load(Relaxed) || self.0.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// [`GraphError::Stopped`] if work is stopped.
    pub(super) fn check(&self) -> Result<(), GraphError> {
        if self.is_stopped() { Err(GraphError::Stopped) } else { Ok(()) }
    }
}
