//! The part of a machine that a sensor measures, so that nothing is counted twice.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node in the tree of parts: the wall outlet contains the board, the board its chip and its memory, the chip its packages, a package its
/// cores. Two sensors may be added up only if neither part contains the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// Path from the outermost part: `board/soc/package-0/core`. It is empty for the wall outlet, which contains everything.
    path: String,
    /// Kind and name of one of several shares of the part's load (the rails of a board, its batteries). Shares of one kind add up.
    share: Option<(String, String)>,
}

impl Component {
    /// The wall outlet, which feeds everything.
    pub fn wall() -> Self {
        Self::at("")
    }

    /// The input of the board.
    pub fn board() -> Self {
        Self::at("board")
    }

    /// One of several supplies of the board that share its load.
    pub fn supply(name: &str) -> Self {
        Self { share: Some(("supply".to_owned(), name.to_owned())), ..Self::board() }
    }

    /// A rail of the board that contains no other rail; `id` is unique on the machine. It is not known what the rail feeds, so it may be
    /// added only to other rails.
    pub fn rail(id: &str) -> Self {
        Self { share: Some(("rail".to_owned(), id.to_owned())), ..Self::board() }
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

    /// The die with number `die` inside this part (`None`: the whole part).
    pub(crate) fn of_die(self, die: Option<u32>) -> Self {
        die.map_or(self.clone(), |die| self.inner(&format!("die-{die}")))
    }

    /// The part `name` inside this part.
    pub fn inner(&self, name: &str) -> Self {
        let separator = if self.path.is_empty() { "" } else { "/" };
        Self::at(&format!("{}{separator}{name}", self.path))
    }

    fn at(path: &str) -> Self {
        Self { path: path.to_owned(), share: None }
    }

    /// Whether the sum of both parts would count something twice.
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

impl fmt::Display for Component {
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
    fn nested_parts_overlap() {
        let package = Component::package(0);
        for (one, other, overlap) in [
            (&package, &package, true),
            (&package, &package.inner("core"), true),
            (&package, &Component::package(1), false),
            (&Component::package(1), &Component::package(10), false),
            (&package, &Component::memory(0), false),
            (&package, &Component::board(), true),
            (&Component::wall(), &Component::card("0"), true),
            (&Component::rail("0-0040"), &Component::rail("0-0041"), false),
            (&Component::rail("0-0040"), &package, true),
            (&Component::rail("0-0040"), &Component::supply("0-0040"), true),
            (&Component::rail("0-0040"), &Component::supply("BAT0"), true),
            (&Component::supply("BAT0"), &Component::supply("BAT1"), false),
            (&Component::supply("BAT0"), &Component::supply("BAT0"), true),
            (&Component::supply("BAT0"), &Component::board(), true),
            (&Component::supply("BAT0"), &package, true),
        ] {
            assert_eq!(one.overlaps(other), overlap, "{one} and {other}");
            assert_eq!(other.overlaps(one), overlap, "{other} and {one}");
        }
    }

    #[test]
    fn parts_have_names() {
        assert_eq!(Component::wall().to_string(), "wall outlet");
        assert_eq!(Component::package(1).inner("core").to_string(), "board/soc/package-1/core");
        assert_eq!(Component::supply("BAT0").to_string(), "supply BAT0 of the board");
    }
}
