//! Files that other users may have had their hands in, and files that must not be lost: what is written ([`AtomicFile`],
//! [`open_own`]) and what is read whole ([`read`], [`read_text`]).

mod atomic;
mod claim;
mod own;
mod temporary;
mod whole;

pub use atomic::{AtomicFile, remove_temporaries, try_remove_temporaries};
pub use claim::protect;
pub use own::{OwnFile, open_own};
pub(crate) use temporary::Temporary;
pub use whole::{CONFIGURATION, Kind, RECORD, read, read_text};
