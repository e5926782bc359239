//! The machine of a rank, and the values that ranks exchange outside a search.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    ClusterError,
    ranks::{Ranks, texts},
};
use socbfs_machine as machine;

/// The machine that a rank runs on. Ranks of one machine see the same sensors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Host {
    /// The host name, for people. Several boards may have the same.
    pub name: String,
    /// The boot id, a random number that Linux draws when it starts: it differs on every machine.
    pub boot: String,
}

/// Containers on one board have different names but the same boot id and sensors, so the boot id decides.
impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        self.boot == other.boot && (!self.boot.is_empty() || self.name == other.name)
    }
}

impl Eq for Host {}

impl Host {
    /// The machine whose files are below `root`.
    pub fn read(root: &Path) -> Self {
        let text = |path: &str| machine::text(root.join(path)).map(|text| text.trim().to_owned()).unwrap_or_default();
        Self { name: text("proc/sys/kernel/hostname"), boot: text("proc/sys/kernel/random/boot_id") }
    }

    /// The machines of `all` ranks, each once.
    pub fn distinct<'h>(all: impl Iterator<Item = &'h Self>) -> Vec<&'h Self> {
        all.fold(Vec::new(), |mut found, host| {
            if !found.contains(&host) {
                found.push(host);
            }
            found
        })
    }
}

/// Environment variables with the number of processes, set by launchers: Open MPI, MPICH and others that use PMI.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"];

/// Whether an environment variable announces several processes.
pub(super) fn announces_several(name: &str) -> bool {
    std::env::var(name).is_ok_and(|size| size.parse().is_ok_and(|size: u32| size > 1))
}

/// Whether a launcher of MPI has started this process as one of several.
pub fn is_launched() -> bool {
    SIZES.into_iter().any(announces_several)
}

/// Gathers the value `own` of every rank, in the order of ranks.
///
/// # Errors
/// [`ClusterError::Message`].
pub fn all_gather<T: Serialize + for<'t> Deserialize<'t>>(ranks: &impl Ranks, own: &T) -> Result<Vec<T>, ClusterError> {
    // A value that can't be written as JSON is sent as an empty text, which every rank refuses.
    let own = serde_json::to_string(own).unwrap_or_default();
    let read = |(rank, text): (usize, String)| serde_json::from_str(&text).map_err(|_| ClusterError::Message { rank });
    texts(ranks, &own)?.into_iter().enumerate().map(read).collect()
}
