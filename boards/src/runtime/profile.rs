//! The board profile in force: the one that was named, or the one that fits this machine.

use std::{borrow::Cow, path::Path};

use super::{Origin, RuntimeError};
use crate::board::{self, Board, GENERIC};
use socbfs_policy::Policy;

/// Root folder of the running system.
const ROOT: &str = "/";

/// A board profile, with the reason why it was chosen.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The values of the profile.
    pub board: Board<Policy>,
    /// The text of the profile.
    pub text: Cow<'static, str>,
    /// The path of the file, or the name of a profile that is compiled in.
    pub place: String,
    /// The origin of values that come from this profile.
    pub origin: Origin,
    /// The reason why it was chosen, in words.
    pub reason: String,
}

impl Profile {
    /// The compiled-in profile of this name, else the profile in this file.
    ///
    /// # Errors
    /// [`RuntimeError::NoProfile`], and [`RuntimeError::Profile`] with the file, the line and what would be correct.
    pub fn named(name: &Path) -> Result<Self, RuntimeError> {
        let compiled_in = name.to_str().and_then(|name| Some((name, board::shipped_text(name)?)));
        let place = name.display().to_string();
        let text = match compiled_in {
            Some((_, text)) => Cow::Borrowed(text),
            // A word without folder and extension that is not a file is taken for the name of a profile.
            None if !name.exists() && name.components().count() == 1 && name.extension().is_none() => {
                return Err(RuntimeError::NoProfile(place));
            }
            None => Cow::Owned(board::read(name).map_err(RuntimeError::Profile)?),
        };
        let board = Board::parse(&text, &place).map_err(RuntimeError::Profile)?;
        Ok(Self { board, text, place, origin: Origin::Board, reason: "asked for".to_owned() })
    }

    /// The profile that fits this machine.
    ///
    /// # Errors
    /// [`RuntimeError::Profile`] if a compiled-in profile can't be read, which a test rules out.
    pub fn detected() -> Result<Self, RuntimeError> {
        Self::detected_below(Path::new(ROOT))
    }

    /// The profile that fits the machine whose files are below `root`.
    ///
    /// # Errors
    /// [`RuntimeError::Profile`] if a compiled-in profile can't be read, which a test rules out.
    pub fn detected_below(root: &Path) -> Result<Self, RuntimeError> {
        let detection = board::detect(root).map_err(RuntimeError::Profile)?;
        let text = board::shipped_text(detection.name).unwrap_or_default();
        let board = Board::parse(text, detection.name).map_err(RuntimeError::Profile)?;
        let origin = if detection.name == GENERIC { Origin::BuiltIn } else { Origin::Detected };
        Ok(Self { board, text: Cow::Borrowed(text), place: detection.name.to_owned(), origin, reason: detection.reason })
    }

    /// The power rails of the profile with their scope, if it has rails.
    pub fn power(&self) -> Option<socbfs_power::Profile> {
        let power = &self.board.power;
        if power.rails.is_empty() {
            return None;
        }
        // If no rail is counted there is no sum, and nothing reads its scope.
        let scope = power.scope.unwrap_or(socbfs_power::Scope::BoardInput);
        Some(socbfs_power::Profile { scope, rails: power.rails.clone() })
    }

    /// Name of the board.
    pub fn name(&self) -> &str {
        &self.board.board.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_the_machine_is_detected() {
        let fixture = |name: &str| Profile::detected_below(crate::fixtures::machine(&format!("board/{name}")).path()).unwrap();
        let known = fixture("rock-5b");
        assert_eq!((known.name(), known.origin), ("rk3588", Origin::Detected));
        assert!(known.reason.contains("rockchip,rk3588"));
        assert_eq!(known.board.adaptive.top_down.gpu_permille, Some(500));
        let unknown = fixture("raspberry-pi-4");
        assert_eq!((unknown.name(), unknown.origin), (GENERIC, Origin::BuiltIn));
    }

    #[test]
    fn a_rail_that_is_not_counted_keeps_its_sign_and_scale() {
        let text = "schema = 1\n[board]\nname = 'b'\n[[power.rails]]\nfamily = 'power-supply'\nid = 'BAT0'\ndomain = 'board'\n\
                    counted = false\nsign = -1\nscale = 1000.0\n";
        let board = Board::parse(text, "b.toml").unwrap();
        let profile = Profile { board, text: text.into(), place: "b.toml".into(), origin: Origin::Board, reason: String::new() };
        let rails = profile.power().unwrap().rails;
        assert_eq!((rails.len(), rails[0].counted, rails[0].factor()), (1, false, -1000.0));
    }

    #[test]
    fn profiles_are_found_by_name_or_by_file() {
        assert_eq!(Profile::named(Path::new("odroid-xu4")).unwrap().name(), "odroid-xu4");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles/odroid-xu3.toml");
        let profile = Profile::named(&file).unwrap();
        assert_eq!((profile.name(), profile.origin, Path::new(&profile.place)), ("odroid-xu3", Origin::Board, &*file));
        let unknown = Profile::named(Path::new("odroid-xu5")).unwrap_err();
        assert!(unknown.cure().unwrap().contains("odroid-xu4"), "{unknown:?}");
    }

    /// A detected profile is used without a request of the user, even in a container that allows fewer CPUs than the board has.
    #[test]
    fn shipped_profiles_do_not_bind_threads() {
        for name in board::shipped() {
            let profile = Profile::named(Path::new(name)).unwrap();
            assert_eq!((profile.board.cpu.threads, profile.board.cpu.cpus), (None, None), "{name}");
        }
    }

    #[test]
    fn rails_of_a_profile_are_passed_to_the_sensors() {
        use socbfs_power::{Domain, Family, Scope};
        for name in board::shipped() {
            let profile = Profile::named(Path::new(name)).unwrap();
            let rails = profile.power().map_or(0, |power| power.rails.len());
            assert_eq!(rails, profile.board.power.rails.len(), "{name}");
        }
        let text = "schema = 1\n[board]\nname = 'b'\n[power]\nscope = 'board-input'\n[[power.rails]]\nfamily = 'power-supply'\nid = 'battery'\ndomain = 'board'\ncounted = true\nsign = -1\nscale = 1000.0\n";
        let profile = Profile { board: Board::parse(text, "b").unwrap(), ..Profile::detected_below(Path::new("/nowhere")).unwrap() };
        let power = profile.power().unwrap();
        let rail = &power.rails[0];
        assert_eq!((power.scope, rail.family, rail.domain), (Scope::BoardInput, Family::PowerSupply, Domain::Board));
        assert_eq!((rail.id.as_ref().map(|id| id.as_str()), &rail.label), (Some("battery"), &None));
        assert!((rail.factor() + 1000.0).abs() < 1e-9);
    }
}
