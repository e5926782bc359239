//! Where levels of one direction run, by their work.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, Unexpected, Visitor},
};

/// A bound that no level reaches, since a graph has fewer vertices and arcs. A larger bound means the same.
pub const NEVER: u64 = 1 << 32;

/// A table `[adaptive.top_down]` or `[adaptive.bottom_up]`: where levels of one direction run, by their work. A level runs on the CPU below
/// `gpu_from`, on the GPU from there on, on both from `split_from` on, and on the CPU again from `up_to` on. A bound that is `None` may
/// come from another origin; if none gives it, a search uses [`NEVER`] (for the share, a half).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// The GPU runs levels of this much work and more.
    #[serde(default, deserialize_with = "bound", skip_serializing_if = "Option::is_none")]
    pub gpu_from: Option<u64>,
    /// Both run levels of this much work and more.
    #[serde(default, deserialize_with = "bound", skip_serializing_if = "Option::is_none")]
    pub split_from: Option<u64>,
    /// The CPU runs levels of this much work and more.
    #[serde(default, deserialize_with = "bound", skip_serializing_if = "Option::is_none")]
    pub up_to: Option<u64>,
    /// The GPU's share of the first split level, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_permille: Option<u16>,
}

/// Reads a bound of a [`Band`]: a number, or "never" for [`NEVER`], as in `[policy]` and on the command line.
fn bound<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    struct Bound;

    impl Visitor<'_> for Bound {
        type Value = u64;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a whole number or \"never\"")
        }

        fn visit_u64<E: Error>(self, bound: u64) -> Result<u64, E> {
            Ok(bound)
        }

        fn visit_i64<E: Error>(self, bound: i64) -> Result<u64, E> {
            u64::try_from(bound).map_err(|_| E::invalid_value(Unexpected::Signed(bound), &self))
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<u64, E> {
            if word == "never" { Ok(NEVER) } else { Err(E::invalid_value(Unexpected::Str(word), &self)) }
        }
    }

    deserializer.deserialize_any(Bound).map(Some)
}
