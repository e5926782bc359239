//! The maps of ROS: a file of YAML that names an image, and which of its pixels are free
//! (<https://wiki.ros.org/map_server>, <https://docs.nav2.org>). Images without such a file have its defaults.
//!
//! Keys that have no meaning here are skipped with a warning, and with whatever is below them.

use std::path::Path;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::{BLOCKED, FREE, Fault, Frame, UNKNOWN, shown};

/// Most bytes of a file: those of ROS have some hundred.
const MOST: usize = 1 << 16;

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
    /// Where the map lies.
    pub(super) frame: Option<Frame>,
}

impl Default for Occupancy {
    fn default() -> Self {
        Self { negate: false, occupied: 0.65, free: 0.196, is_raw: false, frame: None }
    }
}

impl Occupancy {
    /// The cell of each value of a pixel, of which `most` is white.
    pub(super) fn table(&self, most: u32) -> Vec<u8> {
        let cell = |value: u32| {
            let light = f64::from(value) / f64::from(most);
            // A number of 8 bits whatever the depth of the image, as in Nav2.
            let raw = (255.0 * light).round();
            let occupied = match (self.is_raw, self.negate) {
                (true, _) if raw > 100.0 => return UNKNOWN,
                (true, _) => raw / 100.0,
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

    /// The name of the image, and the meaning of its pixels. `path` names the file in warnings.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<(String, Self), Fault> {
        const CURE: &str = "name the .yaml file of a map: it names the image";
        if bytes.len() > MOST {
            return Err(Fault::new(format!("it has {} bytes, and the description of a map at most {MOST}", bytes.len()), CURE));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| Fault::in_text(bytes, error.valid_up_to(), "it is not UTF-8 text", CURE))?;
        let (mut image, mut occupancy, mut seen) = (None, Self::default(), Vec::new());
        let (mut resolution, mut origin) = (None, None);
        let number = |value: &str| value.parse().ok().filter(|number: &f64| number.is_finite());
        for Entry { line, key, value, items } in entries(text)? {
            if seen.contains(&key) {
                let name = shown(key.as_bytes());
                return Err(Fault::in_line(line, format!("{} is given twice", name.trim_matches('"')), "remove one of them"));
            }
            let value = value.as_deref();
            let bad = |must: &str| {
                let is = value.map_or_else(|| "a list or a map".to_owned(), |value| shown(value.as_bytes()));
                Fault::in_line(line, format!("{key} is {is}"), format!("it must be {must}"))
            };
            let share = || {
                let share = value.and_then(|value| value.parse().ok()).filter(|share| (0.0..=1.0).contains(share));
                share.ok_or_else(|| bad("a number from 0 to 1"))
            };
            let no_place = |must: &str| log::warn!("{}:{line}: the {key} is not {must}, so the map has no metres", path.display());
            match &*key {
                "image" => {
                    let name = value.filter(|name| !name.is_empty()).ok_or_else(|| bad("the name of a PGM or PNG file"))?;
                    image = Some(name.to_owned());
                }
                "negate" => occupancy.negate = value.and_then(on_or_off).ok_or_else(|| bad("0 or 1"))?,
                "occupied_thresh" => occupancy.occupied = share()?,
                "free_thresh" => occupancy.free = share()?,
                "mode" => {
                    let mode = value.map(str::to_lowercase).filter(|mode| matches!(&**mode, "trinary" | "scale" | "raw"));
                    // What is between the thresholds has a value of its own in `scale`; to a search it is unknown.
                    occupancy.is_raw = mode.ok_or_else(|| bad("trinary, scale or raw"))? == "raw";
                }
                // Without a place in metres, a map is searched in cells.
                "resolution" => {
                    resolution = value.and_then(number).filter(|metres| *metres > 0.0);
                    resolution.map_or_else(|| no_place("a number above 0"), drop);
                }
                "origin" => {
                    let numbers = items.iter().map(|item| number(item)).collect::<Option<Vec<f64>>>();
                    origin = numbers.and_then(|numbers| <[f64; 3]>::try_from(numbers).ok());
                    origin.map_or_else(|| no_place("a list of three numbers, x, y and yaw"), drop);
                }
                _ => log::warn!("{}:{line}: the key {} is not known, and skipped", path.display(), shown(key.as_bytes())),
            }
            seen.push(key);
        }
        if occupancy.free > occupancy.occupied {
            let reason = format!("free_thresh ({}) is above occupied_thresh ({})", occupancy.free, occupancy.occupied);
            return Err(Fault::new(reason, "cells are free below the one and blocked above the other: exchange them"));
        }
        let image = image.ok_or_else(|| Fault::new("it names no image", "add a line such as `image: map.pgm`"))?;
        occupancy.frame = resolution.zip(origin).map(|(resolution, origin)| Frame { resolution, origin });
        Ok((image, occupancy))
    }
}

/// A key of a file of YAML and its line.
struct Entry {
    line: usize,
    key: String,
    /// `None`: a list or a map.
    value: Option<String>,
    /// The words of a list.
    items: Vec<String>,
}

fn entries(text: &str) -> Result<Vec<Entry>, Fault> {
    const CURE: &str = "correct or remove the line";
    let mut all: Vec<Entry> = Vec::new();
    // The lists and maps that are open, and the key whose value comes next.
    let (mut depth, mut key) = (0_usize, None);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let mut line = error.marker().line();
            // A key without a colon is noticed only where the next one begins.
            if error.info().starts_with("simple key expect") {
                let has_text = |(_, text): &(usize, &str)| !text.trim_start().is_empty() && !text.trim_start().starts_with('#');
                line = (1..line).zip(text.lines()).filter(has_text).last().map_or(line, |(line, _)| line);
            }
            Fault::in_line(line, format!("it is not valid YAML: {}", error.info()), CURE)
        })?;
        let line = span.start.line();
        let is_first = depth == 0 && all.is_empty() && matches!(event, Event::MappingStart(..));
        let value = match event {
            // What has no value, as after `image:`, is read as `~`.
            Event::Scalar(word, ScalarStyle::Plain, ..) if word == "~" => Some(String::new()),
            Event::Scalar(word, ..) => Some(word.into_owned()),
            Event::SequenceStart(..) | Event::MappingStart(..) => None,
            Event::SequenceEnd | Event::MappingEnd => {
                depth -= 1;
                continue;
            }
            Event::Alias(_) => return Err(Fault::in_line(line, "it refers to another value (*)", "write that value here")),
            _ => continue,
        };
        let opened = usize::from(value.is_none());
        match (depth, key.take(), value) {
            (0, ..) if is_first => {}
            (0, ..) | (1, None, None) => return Err(Fault::in_line(line, "it is not `key: value`", CURE)),
            (1, None, Some(word)) => key = Some((line, word)),
            (1, Some((line, key)), value) => all.push(Entry { line, key, value, items: Vec::new() }),
            // A list or a map in a list is no number.
            (2, _, value) => all.iter_mut().last().into_iter().for_each(|entry| entry.items.push(value.clone().unwrap_or_default())),
            _ => {}
        }
        depth += opened;
    }
    Ok(all)
}

/// A number or a truth of YAML 1.1, which the programs of ROS read.
fn on_or_off(value: &str) -> Option<bool> {
    match &*value.to_lowercase() {
        "0" | "false" | "no" | "off" | "n" => Some(false),
        "1" | "true" | "yes" | "on" | "y" => Some(true),
        _ => None,
    }
}
