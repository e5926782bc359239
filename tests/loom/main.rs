//! Models of what the threads of a search share, in which loom tries the interleavings of the threads and the values that loads may see.
//!
//! The sources of the repository are compiled as they are, with [`standard`] for the standard library. `tests/loom/run` runs this.
//!
//! Usage: `socbfs-loom [MODEL...]`

extern crate self as std;
extern crate std as real;

mod standard;

use loom::sync::{Condvar, Mutex};
pub use standard::*;

use graph::{Csr, NONE, Vertex};
use memory::{Plain, Shared};
use share::{Pieces, share_and_sum};
use stop::Stopper;
use sync::atomic::{AtomicUsize, Ordering::Relaxed};
use team::Team;
use top_down::{CHUNK, TopDown};

/// What the sources import of other rooms.
mod threads {
    pub(crate) use crate::share::Pieces;
}
mod graph {
    pub type Vertex = u32;
    pub const NONE: Vertex = Vertex::MAX;
    pub const ROW_CONTINUES: Vertex = 1 << 31;

    /// As the real one, but in vectors.
    #[derive(Debug)]
    pub struct Csr {
        pub offsets: Vec<u32>,
        pub targets: Vec<Vertex>,
    }

    impl Csr {
        pub fn neighbours(&self, v: Vertex) -> &[Vertex] {
            &self.targets[self.offsets[v as usize] as usize..self.offsets[v as usize + 1] as usize]
        }
    }

    pub type Adjacency<'a, T> = (&'a [u32], &'a [T]);

    /// No model has one: threads share a level of blocks as they share one of numbers.
    #[derive(Debug, Clone, Copy)]
    pub enum Block {}

    impl Block {
        pub fn first(self, _: u32) -> Option<Vertex> {
            match self {}
        }

        pub unsafe fn enter(self, _: &mut [u64]) -> u32 {
            match self {}
        }
    }
}
mod memory {
    use real::ops;

    /// Plain memory, whose accesses loom sees: it ends a model if one is not ordered after the last write, or a write not after all others.
    #[derive(Debug, Default)]
    pub struct Plain<T>(loom::cell::UnsafeCell<T>);

    // SAFETY: loom runs one thread at a time.
    unsafe impl<T> Sync for Plain<T> {}

    impl<T: Copy> Plain<T> {
        pub fn new(value: T) -> Self {
            Self(loom::cell::UnsafeCell::new(value))
        }

        pub fn get(&self) -> T {
            // SAFETY: the value is copied before another thread runs.
            self.0.with(|value| unsafe { *value })
        }

        pub fn set(&self, new: T) {
            // SAFETY: as above.
            self.0.with_mut(|value| unsafe { *value = new });
        }
    }

    /// A pointer to plain memory.
    #[derive(Debug, Clone, Copy)]
    pub struct Places<T>(*const Plain<T>);

    impl<T> ops::Deref for Places<T> {
        type Target = T;

        fn deref(&self) -> &T {
            // SAFETY: loom ends the model if a write of another thread is not ordered before.
            self.at(0).0.with(|value| unsafe { &*value })
        }
    }

    impl<T> ops::DerefMut for Places<T> {
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: loom ends the model if an access of another thread is not ordered before.
            self.at(0).0.with_mut(|value| unsafe { &mut *value })
        }
    }

    impl<T> Places<T> {
        /// # Safety
        /// As for a pointer.
        pub unsafe fn add(self, count: usize) -> Self {
            // SAFETY: the caller's.
            Self(unsafe { self.0.add(count) })
        }

        pub fn at(&self, i: usize) -> &Plain<T> {
            // SAFETY: the models have more room than their graphs need, and `Shared` outlives the level.
            unsafe { &*self.0.add(i) }
        }
    }

    /// As the real one, over plain memory that loom watches.
    #[derive(Debug, Clone, Copy)]
    pub struct Shared<T>(Places<T>);

    // SAFETY: it is a number.
    unsafe impl<T> Send for Shared<T> {}
    // SAFETY: as above.
    unsafe impl<T> Sync for Shared<T> {}

    impl<T> Shared<T> {
        pub fn new(places: &[Plain<T>]) -> Self {
            Self(Places(places.as_ptr()))
        }

        pub fn get(self) -> Places<T> {
            self.0
        }
    }

    pub use crate::prefetch::prefetch;

    /// Not used by the models, nor is [`Slab`].
    pub trait Pod {}

    pub struct Slab<T>(real::cell::UnsafeCell<T>);

    impl<T> Slab<T> {
        pub fn shared(&self) -> &real::cell::UnsafeCell<T> {
            &self.0
        }

        pub fn len(&self) -> usize {
            1
        }
    }
}

// What the models do not use is dead code here, and what stands in for unsafe calls is safe.
#[allow(dead_code)]
#[path = "../../src/memory/prefetch.rs"]
mod prefetch;
#[allow(dead_code)]
#[path = "../../src/threads/share.rs"]
mod share;
#[allow(dead_code)]
#[path = "../../src/graph/stop.rs"]
mod stop;
#[allow(dead_code, unused_unsafe)]
#[path = "../../src/threads/team.rs"]
mod team;
#[allow(dead_code)]
#[path = "../../src/cpu/top_down.rs"]
mod top_down;

/// Looks for work before a thread goes to sleep: each is another place at which it may find some, and the first is like all.
const LOOKS: u32 = 1;

/// What `stop` imports of its own room.
#[derive(Debug)]
pub enum GraphError {
    Stopped,
}

fn team(threads: usize) -> Team {
    Team::new(threads, &[]).unwrap()
}

/// The start and the end of a level: a helper sees what the caller wrote before, the caller sees what helpers wrote, and none is in a level
/// that has ended. Ends with the end of the team.
fn levels(threads: usize, runs: usize) {
    let team = team(threads);
    for run in 1..=runs {
        let given = Plain::new(run);
        let done: Vec<_> = (0..threads).map(|_| Plain::new(0)).collect();
        team.run(&|thread| {
            assert_eq!(given.get(), run, "a thread works on another level");
            done[thread].set(run);
        });
        given.set(0);
        let done: Vec<usize> = done.iter().map(Plain::get).collect();
        assert!(done[0] == run && done.iter().all(|&done| done == run || done == 0), "{done:?}");
    }
}

/// A helper that sleeps wakes up for a level: a caller that waits for all would wait for ever, which loom notices.
fn wake(threads: usize, runs: usize) {
    let team = team(threads);
    for _ in 0..runs {
        let (here, changed) = (Mutex::new(0u32), Condvar::new());
        team.run(&|thread| {
            let mut here_now = here.lock().unwrap();
            *here_now |= 1 << thread;
            changed.notify_all();
            while *here_now + 1 != 1 << threads {
                here_now = changed.wait(here_now).unwrap();
            }
        });
    }
}

/// Runs `work` on so many threads, without a team, whose own interleavings would come on top of those of the work.
fn together(threads: usize, work: &(dyn Fn(usize) + Sync)) {
    // SAFETY: all threads have ended when this returns.
    let work: &'static (dyn Fn(usize) + Sync) = unsafe { mem::transmute(work) };
    let others: Vec<_> = (1..threads).map(|thread| loom::thread::spawn(move || work(thread))).collect();
    work(0);
    others.into_iter().for_each(|other| other.join().unwrap());
}

/// As [`together`], on a team.
fn by_team(threads: usize, work: &(dyn Fn(usize) + Sync)) {
    team(threads).run(work);
}

/// How many threads run a level.
type Run = fn(usize, &(dyn Fn(usize) + Sync));

/// A shared level: three frontier vertices, in three pieces, have the same neighbour. One of them becomes its parent, and it enters the
/// next queue once. The second of `both` levels then finds the neighbour's neighbour.
fn queue(threads: usize, both: bool, run: Run) {
    // 0, 1 and 2 lead to 3, which leads to 4.
    let csr = Csr { offsets: vec![0, 1, 2, 3, 4, 4], targets: vec![3, 3, 3, 4] };
    let parent: Vec<_> = [9, 9, 9, NONE, NONE].map(Plain::new).into();
    let visited = [Plain::new(7)];
    let level = |queue: &[Vertex]| -> Vec<Vertex> {
        let next: Vec<_> = (0..2).map(|_| Plain::new(NONE)).collect();
        let (tail, used) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let met: Vec<_> = (0..CHUNK * threads).map(|_| Plain::new([NONE; 2])).collect();
        let chunks: Vec<_> = (0..threads).map(|_| Plain::new([NONE; 2])).collect();
        let level = TopDown {
            lists: (&csr.offsets, &csr.targets),
            to_original: &[],
            parent: Shared::new(&parent),
            visited: Shared::new(&visited),
            queue,
            next: Shared::new(&next),
            capacity: next.len(),
            tail: &tail,
            pieces: Pieces::new(queue.len(), 1, threads),
            starts: &[],
            met: Shared::new(&met),
            chunks: Shared::new(&chunks),
            most: threads,
            used: &used,
            // One for each thread, although all vertices are in the first.
            partitions: (threads.next_power_of_two(), Pieces::new(threads.next_power_of_two(), 1, threads)),
        };
        run(threads, &|thread| level.expand_pieces(thread, &mut [0]));
        run(threads, &|thread| level.settle_partitions(thread));
        next[..tail.load(Relaxed)].iter().map(Plain::get).collect()
    };
    assert_eq!(level(&[0, 1, 2]), [3]);
    assert!(parent[3].get() < 3 && visited[0].get() == 15);
    if both {
        assert_eq!(level(&[3]), [4]);
        assert!(parent[4].get() == 3 && visited[0].get() == 31);
    }
}

/// Pieces of a level are handed out once, and the caller gets the sums of all.
fn pieces(threads: usize, len: usize) {
    let team = team(threads);
    let done: Vec<_> = (0..len).map(|_| Plain::new(0)).collect();
    let (sums, worked) = share_and_sum(&team, len, 1, false, &|_, piece| {
        piece.clone().for_each(|i| done[i].set(done[i].get() + 1));
        [piece.len() as u64, piece.map(|i| i as u64).sum()]
    });
    assert_eq!(sums, [len, len * (len - 1) / 2].map(|sum| sum as u64));
    assert!(done.iter().all(|done| done.get() == 1) && (1..=threads as u32).contains(&worked));
}

/// The stop flag: a search ends when another thread stops it, however late it sees that, and so does the next one, until the flag is reset.
fn stop(threads: usize) {
    let (team, stopper) = (team(threads), Stopper::default());
    let theirs = stopper.clone();
    let other = loom::thread::spawn(move || theirs.stop());
    while !stopper.is_stopped() {
        team.run(&|_| ());
        thread::yield_now();
    }
    other.join().unwrap();
    assert!(stopper.is_stopped(), "the next search is not stopped");
    stopper.reset();
    assert!(!stopper.is_stopped(), "stopped for ever");
}

/// A name with the number of threads, the most preemptions (switches away from a thread that could go on), and what is run. Without a
/// number of preemptions every interleaving is tried.
type Model = (&'static str, Option<usize>, fn());

const MODELS: [Model; 14] = [
    ("level-2", None, || levels(2, 1)),
    ("level-3", Some(3), || levels(3, 1)),
    ("levels-3", Some(2), || levels(3, 2)),
    ("wake-2", None, || wake(2, 1)),
    ("wake-3", Some(2), || wake(3, 1)),
    ("wakes-2", Some(5), || wake(2, 2)),
    ("pieces-2", Some(5), || pieces(2, 2)),
    ("pieces-3", Some(2), || pieces(3, 3)),
    ("queue-2", Some(4), || queue(2, false, together)),
    ("queue-3", Some(1), || queue(3, false, together)),
    ("queues-2", Some(2), || queue(2, true, by_team)),
    ("stop-2", None, || stop(1)),
    ("stop-3", Some(4), || stop(2)),
    // The longest: two million interleavings.
    ("levels-2", None, || levels(2, 2)),
];

fn main() {
    let names: Vec<String> = real::env::args().skip(1).collect();
    let chosen = |name: &&str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    assert!(names.iter().all(|wanted| MODELS.iter().any(|(name, ..)| wanted == name)), "unknown model among {names:?}");
    for (name, bound, model) in MODELS.into_iter().filter(|(name, ..)| chosen(name)) {
        let count = real::sync::Arc::new(real::sync::atomic::AtomicU64::new(0));
        let counted = real::sync::Arc::clone(&count);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = bound;
        let begin = real::time::Instant::now();
        builder.check(move || {
            counted.fetch_add(1, Relaxed);
            model();
        });
        let bound = bound.map_or("all there are".to_owned(), |bound| format!("all with up to {bound} preemptions"));
        println!("ok  {name}: {} interleavings, {bound} ({:.1} s)", count.load(Relaxed), begin.elapsed().as_secs_f64());
    }
}
