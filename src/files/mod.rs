//! Files that must not be lost, or that another user or process may change. They are written ([`AtomicFile`], [`open_user_file`]), read
//! whole ([`read`], [`read_text`]), or read in parts ([`RegularFile`]).

mod atomic;
mod claim;
mod read;
mod regular;
mod temporary;
mod user;

pub use atomic::AtomicFile;
pub use claim::{Claim, protect};
pub(crate) use read::read_open;
pub use read::{CONFIGURATION, Kind, RECORD, explained, read, read_text, write_cure};
pub use regular::{RegularFile, Section};
pub use temporary::{Temporary, remove_temporaries, try_remove_temporaries};
#[cfg(test)]
pub use user::can_give_away;
pub use user::{UserFile, open_of_user, open_user_file};
