//! Which part of a machine a sensor measures, so that nothing is counted twice.

use std::fmt;

/// A place in the tree of what contains what: the wall outlet contains the board, the board its chip and its memory, the chip its
/// packages, a package its cores. Two sensors may be added up only if neither's part contains the other's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Path from the outermost: `board/soc/package-0/core`; empty for the wall outlet, which contains everything.
    path: String,
    /// One of several of a kind that share the load of the part (the rails of a board, its batteries): those of one kind add up.
    share: Option<(&'static str, String)>,
}

impl Part {
    /// What comes out of the wall outlet: everything.
    pub fn wall() -> Self {
        Self::at("")
    }

    /// What goes into the board.
    pub fn board() -> Self {
        Self::at("board")
    }

    /// One of several supplies of the board that share its load.
    pub fn supply(name: &str) -> Self {
        Self { share: Some(("supply", name.to_owned())), ..Self::board() }
    }

    /// A rail of the board that contains no other (`id` is unique on the machine). What it feeds is not known here, so it adds up with
    /// other rails and with nothing else.
    pub fn rail(id: &str) -> Self {
        Self { share: Some(("rail", id.to_owned())), ..Self::board() }
    }

    /// A card with a supply of its own.
    pub fn card(id: &str) -> Self {
        Self::at(&format!("board/card {id}"))
    }

    /// A processor package: its cores, caches and integrated GPU.
    pub fn package(index: u32) -> Self {
        Self::at(&format!("board/soc/package-{index}"))
    }

    /// The memory of a package.
    pub fn memory(package: u32) -> Self {
        Self::at(&format!("board/memory-{package}"))
    }

    /// That of a die, where it has a number of its own (`None`: the whole).
    pub(crate) fn of_die(self, die: Option<u32>) -> Self {
        die.map_or(self.clone(), |die| self.inner(&format!("die-{die}")))
    }

    /// A part of this part.
    pub fn inner(&self, name: &str) -> Self {
        let separator = if self.path.is_empty() { "" } else { "/" };
        Self::at(&format!("{}{separator}{name}", self.path))
    }

    fn at(path: &str) -> Self {
        Self { path: path.to_owned(), share: None }
    }

    /// Whether adding up both would count something twice.
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.path == other.path {
            return match (&self.share, &other.share) {
                (Some((kind, name)), Some((other_kind, other_name))) => kind != other_kind || name == other_name,
                _ => true,
            };
        }
        self.contains(other) || other.contains(self)
    }

    fn contains(&self, other: &Self) -> bool {
        self.path.is_empty() || other.path.strip_prefix(&self.path).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path[..], &self.share) {
            ("", _) => f.write_str("wall outlet"),
            (path, None) => f.write_str(path),
            (path, Some((kind, name))) => write!(f, "{kind} {name} of the {path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_contains_the_other_overlaps() {
        let package = Part::package(0);
        for (one, other, overlap) in [
            (&package, &package, true),
            (&package, &package.inner("core"), true),
            (&package, &Part::package(1), false),
            (&Part::package(1), &Part::package(10), false),
            (&package, &Part::memory(0), false),
            (&package, &Part::board(), true),
            (&Part::wall(), &Part::card("0"), true),
            (&Part::rail("0-0040"), &Part::rail("0-0041"), false),
            (&Part::rail("0-0040"), &package, true),
            (&Part::rail("0-0040"), &Part::supply("0-0040"), true),
            (&Part::rail("0-0040"), &Part::supply("BAT0"), true),
            (&Part::supply("BAT0"), &Part::supply("BAT1"), false),
            (&Part::supply("BAT0"), &Part::supply("BAT0"), true),
            (&Part::supply("BAT0"), &Part::board(), true),
            (&Part::supply("BAT0"), &package, true),
        ] {
            assert_eq!(one.overlaps(other), overlap, "{one} and {other}");
            assert_eq!(other.overlaps(one), overlap, "{other} and {one}");
        }
    }

    #[test]
    fn parts_have_names() {
        assert_eq!(Part::wall().to_string(), "wall outlet");
        assert_eq!(Part::package(1).inner("core").to_string(), "board/soc/package-1/core");
        assert_eq!(Part::supply("BAT0").to_string(), "supply BAT0 of the board");
    }
}
