//! The maps of ROS: a file of YAML that names an image, and which of its pixels are free
//! (<https://wiki.ros.org/map_server>, <https://docs.nav2.org>). Images without such a file have its defaults.
//!
//! Of YAML, the files need lines `key: value`; further keys, with whatever is below them, are skipped.

use super::{BLOCKED, FREE, Fault, UNKNOWN, shown};

/// How the pixels of an image become cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Occupancy {
    /// White is occupied, not black.
    negate: bool,
    /// Cells are blocked if they are occupied with more than this probability.
    occupied: f64,
    /// Cells are free if they are occupied with less than this probability.
    free: f64,
    /// Pixels are per cent, and unknown if above 100.
    is_raw: bool,
}

impl Default for Occupancy {
    fn default() -> Self {
        Self { negate: false, occupied: 0.65, free: 0.196, is_raw: false }
    }
}

impl Occupancy {
    /// The cell of each value of a pixel, of which `most` is white.
    pub(super) fn table(&self, most: u16) -> Vec<u8> {
        let cell = |value: u16| {
            let light = f64::from(value) / f64::from(most);
            let occupied = match (self.is_raw, self.negate) {
                (true, _) if value > 100 => return UNKNOWN,
                (true, _) => f64::from(value) / 100.0,
                (false, true) => light,
                (false, false) => 1.0 - light,
            };
            match () {
                () if occupied > self.occupied => BLOCKED,
                () if occupied < self.free => FREE,
                () => UNKNOWN,
            }
        };
        (0..=most).map(cell).collect()
    }

    /// The name of the image, and the meaning of its pixels.
    pub(super) fn parse(bytes: &[u8]) -> Result<(String, Self), Fault> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Fault::in_text(bytes, error.valid_up_to(), "it is not UTF-8 text", "name the .yaml file of a map: it names the image")
        })?;
        let (mut image, mut occupancy, mut seen) = (None, Self::default(), Vec::new());
        let mut skips = false;
        for (line, text) in (1..).zip(text.lines()) {
            let text = without_comment(text).trim_end();
            if text.is_empty() || text == "---" || (skips && text.starts_with([' ', '\t', '-', ']'])) {
                continue;
            }
            let Some((key, value)) = text.split_once(':') else {
                return Err(Fault::in_line(line, format!("{} is not `key: value`", shown(text.as_bytes())), "correct or remove the line"));
            };
            let value = value.trim();
            let value = value.strip_prefix(['"', '\'']).and_then(|inner| inner.strip_suffix(['"', '\''])).unwrap_or(value);
            let bad = |must: &str| Fault::in_line(line, format!("{key} is {}", shown(value.as_bytes())), format!("it must be {must}"));
            let share = || value.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| bad("a number from 0 to 1"));
            skips = false;
            match key {
                "image" if value.is_empty() => return Err(bad("the name of a PGM or PNG file")),
                "image" => image = Some(value.to_owned()),
                "negate" => occupancy.negate = on_or_off(value).ok_or_else(|| bad("0 or 1"))?,
                "occupied_thresh" => occupancy.occupied = share()?,
                "free_thresh" => occupancy.free = share()?,
                // What is between the thresholds has a value of its own in `scale`; to a search it is unknown.
                "mode" if matches!(value, "trinary" | "scale" | "raw") => occupancy.is_raw = value == "raw",
                "mode" => return Err(bad("trinary, scale or raw")),
                _ => {
                    skips = true;
                    continue;
                }
            }
            if seen.contains(&key) {
                return Err(Fault::in_line(line, format!("{key} is given twice"), "remove one of them"));
            }
            seen.push(key);
        }
        if occupancy.free > occupancy.occupied {
            let reason = format!("free_thresh ({}) is above occupied_thresh ({})", occupancy.free, occupancy.occupied);
            return Err(Fault::new(reason, "cells are free below the one and blocked above the other: exchange them"));
        }
        let image = image.ok_or_else(|| Fault::new("it names no image", "add a line such as `image: map.pgm`"))?;
        Ok((image, occupancy))
    }
}

fn on_or_off(value: &str) -> Option<bool> {
    match value {
        "0" | "false" => Some(false),
        "1" | "true" => Some(true),
        _ => None,
    }
}

/// The line without what follows a `#` at its begin or after a blank, outside of quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return &line[..at],
            (None, '"' | '\'') if before.is_whitespace() => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
        before = c;
    }
    line
}
