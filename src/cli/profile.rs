//! The board profile in force: the one asked for, or the one that fits this machine.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use clap::Args;

use super::{config::Origin, error::Failure};
use crate::{
    board::{self, Board, DocumentError, GENERIC},
    policy::Policy,
};

/// The live system.
const ROOT: &str = "/";

/// Where to look for what tells the board.
#[derive(Debug, Args)]
pub(super) struct RootArgs {
    /// Look below this folder instead of / (a copy of another machine's proc and sys)
    #[arg(long, value_name = "DIR", default_value = ROOT, hide_default_value = true)]
    pub(super) sysfs_root: PathBuf,
}

/// A board profile, as it was found.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    /// What it says.
    pub(super) board: Board<Policy>,
    /// Its text.
    pub(super) text: Cow<'static, str>,
    /// Its file, or its name where it is compiled in.
    pub(super) place: String,
    /// What its values are called: asked for, or detected.
    pub(super) origin: Origin,
    /// Why it was taken, in words.
    pub(super) reason: String,
}

impl Profile {
    /// The profile that is compiled in under this name, else the one in this file.
    pub(super) fn named(name: &Path) -> Result<Self, Failure> {
        let compiled_in = name.to_str().and_then(|name| Some((name, board::shipped_text(name)?)));
        let place = name.display().to_string();
        let text = match compiled_in {
            Some((_, text)) => Cow::Borrowed(text),
            // What is spelled like a name and is no file was meant as a name.
            None if !name.exists() && name.components().count() == 1 && name.extension().is_none() => {
                return Err(Failure::new(format!("there is no board profile {place:?}, compiled in or as a file"))
                    .cure(format!("compiled in: {}", board::shipped().collect::<Vec<_>>().join(", "))));
            }
            None => Cow::Owned(board::read(name).map_err(|error| failure(&error))?),
        };
        let board = Board::parse(&text, &place).map_err(|error| failure(&error))?;
        Ok(Self { board, text, place, origin: Origin::Board, reason: "asked for".to_owned() })
    }

    /// The profile that fits this machine.
    pub(super) fn detected() -> Result<Self, Failure> {
        Self::detected_below(Path::new(ROOT))
    }

    fn detected_below(root: &Path) -> Result<Self, Failure> {
        let detection = board::detect(root).map_err(|error| failure(&error))?;
        let text = board::shipped_text(detection.name).unwrap_or_default();
        let board = Board::parse(text, detection.name).map_err(|error| failure(&error))?;
        let origin = if detection.name == GENERIC { Origin::BuiltIn } else { Origin::Detected };
        Ok(Self { board, text: Cow::Borrowed(text), place: detection.name.to_owned(), origin, reason: detection.reason })
    }

    /// Name of the board.
    pub(super) fn name(&self) -> &str {
        &self.board.board.name
    }
}

/// A board error with its cure.
pub(super) fn failure(error: &DocumentError) -> Failure {
    let failure = Failure::because("", error);
    match error {
        DocumentError::Read { .. } => failure.cure("check the path, and that it is a text file"),
        DocumentError::Version { found: None, .. } => failure.cure("write `schema = 1` as its first line"),
        DocumentError::Version { .. } => {
            failure.cure("take a socbfs that reads it, or bring the values over into what `socbfs board init` writes")
        }
        _ => failure.cure("`socbfs board init` writes one to start from; boards/README.md in the repository describes every key"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_the_machine_is_taken() {
        let fixture =
            |name: &str| Profile::detected_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/board").join(name)).unwrap();
        let known = fixture("rock-5b");
        assert_eq!((known.name(), known.origin), ("rk3588", Origin::Detected));
        assert!(known.reason.contains("rockchip,rk3588"));
        assert_eq!(known.board.concurrent.top_down_gpu_share, Some(0.5));
        let unknown = fixture("raspberry-pi-4");
        assert_eq!((unknown.name(), unknown.origin), (GENERIC, Origin::BuiltIn));
    }

    #[test]
    fn a_name_comes_before_a_file() {
        assert_eq!(Profile::named(Path::new("odroid-xu4")).unwrap().name(), "odroid-xu4");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("boards/odroid-xu3.toml");
        let profile = Profile::named(&file).unwrap();
        assert_eq!((profile.name(), profile.origin, Path::new(&profile.place)), ("odroid-xu3", Origin::Board, &*file));
        let unknown = Profile::named(Path::new("odroid-xu5")).unwrap_err();
        assert!(format!("{unknown:?}").contains("odroid-xu4"), "{unknown:?}");
    }

    /// A detected profile is taken without being asked for, in containers too, which may allow fewer CPUs than the board has.
    #[test]
    fn no_profile_compiled_in_binds_threads() {
        for name in board::shipped() {
            let profile = Profile::named(Path::new(name)).unwrap();
            assert_eq!((profile.board.cpu.threads, profile.board.cpu.cpus), (None, None), "{name}");
        }
    }
}
