//! Ranks that are processes of `mpirun`, on one machine or several.

use mpi::{
    Threading,
    collective::{CommunicatorCollectives, Root},
    datatype::{Partition, PartitionMut},
    environment::Universe,
    topology::{Communicator, SimpleCommunicator},
};

use super::{
    host::{announces_several, is_launched},
    ranks::{Messages, Ranks},
};

/// This process among those that `mpirun` started. Dropping it ends MPI.
///
/// If an MPI call fails, the MPI library prints a message and ends all processes (MPI's default).
pub struct MpiRanks {
    world: SimpleCommunicator,
    _universe: Universe,
}

impl std::fmt::Debug for MpiRanks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MpiRanks").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

/// An empty Rust slice may point to address 1, which Open MPI takes for `MPI_IN_PLACE`. This returns one that points to memory.
fn anchored(bytes: &[u8]) -> &[u8] {
    static ANCHOR: [u8; 1] = [0];
    if bytes.is_empty() { &ANCHOR[..0] } else { bytes }
}

/// Slurm's environment variable with the number of processes. It is also set for a single process in an allocation for several.
const OF_SLURM: &str = "SLURM_NTASKS";

impl MpiRanks {
    /// Joins the other processes. Returns `None` if this process was not started as one of several, or if MPI runs already. Warns if a
    /// launcher has started several, but MPI knows of one.
    ///
    /// MPI is not started in a single process: that would take some tenths of a second, and could fail without need.
    pub fn join() -> Option<Self> {
        let launched = is_launched();
        if !launched && !announces_several(OF_SLURM) {
            return None;
        }
        // A team has more threads, but only one thread calls MPI.
        let (universe, _) = mpi::initialize_with_threading(Threading::Funneled)?;
        let world = universe.world();
        if launched && world.size() == 1 {
            let library = Self::library();
            log::warn!("several processes were started, but {library} knows of one, so each works alone; start them with its own mpirun");
        }
        (world.size() > 1).then_some(Self { world, _universe: universe })
    }

    /// Ends all processes at once.
    pub fn abort(&self, code: i32) -> ! {
        self.world.abort(code)
    }

    /// Name and version of the MPI library.
    pub fn library() -> String {
        let text = mpi::environment::library_version().unwrap_or_default();
        text.split([',', '\n']).next().unwrap_or_default().trim_end_matches('\0').trim().to_owned()
    }
}

impl Ranks for MpiRanks {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn size(&self) -> usize {
        self.world.size() as usize
    }

    fn barrier(&self) {
        self.world.barrier();
    }

    fn all_gather(&self, own: &[u8], all: &mut [u8]) {
        // All ranks give equally many bytes, so all skip the call or none does.
        if !own.is_empty() {
            self.world.all_gather_into(own, all);
        }
    }

    fn all_gather_varying(&self, own: &[u8], all: &mut [u8], lengths: &[i32], offsets: &[i32]) {
        // All ranks know all lengths, so all skip the call or none does.
        if lengths.iter().any(|&length| length > 0) {
            self.world.all_gather_varcount_into(anchored(own), &mut PartitionMut::new(all, lengths, offsets));
        }
    }

    fn all_to_all(&self, own: Messages<'_>, all: &mut [u8], expected: &[i32], places: &[i32]) {
        let own = Partition::new(anchored(own.bytes), own.lengths, own.offsets);
        // A rank that receives nothing also needs a buffer that points to memory.
        let mut nothing = [0];
        let all = if all.is_empty() { &mut nothing } else { all };
        self.world.all_to_all_varcount_into(&own, &mut PartitionMut::new(all, expected, places));
    }

    fn broadcast(&self, from: usize, bytes: &mut [u8]) {
        if !bytes.is_empty() {
            self.world.process_at_rank(from as i32).broadcast_into(bytes);
        }
    }
}
