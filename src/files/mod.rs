//! Files that must not be lost, or that another user or process may change. They are written ([`AtomicFile`], [`open_own`]), read whole
//! ([`read`], [`read_text`]), or read in parts ([`RegularFile`]).

mod atomic;
mod claim;
mod own;
mod regular;
mod temporary;
mod whole;

pub use atomic::AtomicFile;
pub use claim::{Claim, protect};
#[cfg(test)]
pub use own::can_give_away;
pub use own::{OwnFile, open_of_user, open_own};
pub use regular::{RegularFile, Section};
pub use temporary::{Temporary, remove_temporaries, try_remove_temporaries};
pub use whole::{CONFIGURATION, Kind, RECORD, explained, read, read_text, write_cure};
