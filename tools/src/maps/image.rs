//! Images whose light pixels are free: PGM (<https://netpbm.sourceforge.net/doc/pgm.html>) and PNG.

use std::io::Cursor;

use super::{Cells, Fault, LENGTH, UNKNOWN, length, reserve, room_for, ros::Occupancy, shown};

/// The cells of an image; `None` if it is neither PGM nor PNG.
pub(super) fn read(bytes: &[u8], occupancy: &Occupancy) -> Option<Result<Cells, Fault>> {
    match bytes {
        [b'P', b'2', ..] => Some(Words { bytes, at: 2 }.pgm(true, occupancy)),
        [b'P', b'5', ..] => Some(Words { bytes, at: 2 }.pgm(false, occupancy)),
        [0x89, b'P', b'N', b'G', ..] => Some(read_png(bytes, occupancy)),
        _ => None,
    }
}

/// The words of a PGM.
struct Words<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Words<'b> {
    /// The next word, and its place. Empty at the end of the file.
    fn next(&mut self) -> (usize, &'b [u8]) {
        let mut in_comment = false;
        while let Some(&byte) = self.bytes.get(self.at) {
            in_comment = byte != b'\n' && (in_comment || byte == b'#');
            if !in_comment && !byte.is_ascii_whitespace() {
                break;
            }
            self.at += 1;
        }
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'#').unwrap_or(rest.len());
        let place = self.at;
        self.at += end;
        (place, &rest[..end])
    }

    fn fault(&self, at: usize, reason: String, cure: &str) -> Fault {
        Fault::in_text(self.bytes, at, reason, cure)
    }

    fn pgm(mut self, is_text: bool, occupancy: &Occupancy) -> Result<Cells, Fault> {
        let mut size = |name: &str| {
            let (at, word) = self.next();
            length(word).ok_or_else(|| Fault::in_text(self.bytes, at, format!("the {name} is {}", shown(word)), LENGTH))
        };
        let (columns, rows) = (size("width")?, size("height")?);
        let (at, word) = self.next();
        let most = length(word).and_then(|most| u16::try_from(most).ok());
        let most = most.ok_or_else(|| self.fault(at, format!("the value of white is {}", shown(word)), "it must be from 1 to 65535"))?;
        let what = format!("{rows} x {columns} cells");
        let table = occupancy.table(most.into());
        let mut cells = Vec::new();
        if is_text {
            // A pixel is a blank and a digit at least. What the header says may be larger than any file.
            let (left, count) = (self.bytes.len() - self.at, rows.saturating_mul(columns));
            let least = count.saturating_mul(2);
            if left < least {
                return Err(Fault::length(self.at, what, left, least));
            }
            reserve(&mut cells, count)?;
            while cells.len() < count {
                let (at, word) = self.next();
                if word.is_empty() {
                    let reason = format!("it ends after {} of {what}", cells.len());
                    return Err(self.fault(at, reason, "the file was cut off: copy or save it again"));
                }
                let value = word.iter().try_fold(0_usize, |value, byte| {
                    byte.is_ascii_digit().then(|| value.saturating_mul(10).saturating_add(usize::from(byte - b'0')))
                });
                let Some(&cell) = value.and_then(|value| table.get(value)) else {
                    let cure = format!("a pixel is a number from 0 to {most}");
                    return Err(self.fault(at, format!("{} is not the value of a pixel", shown(word)), &cure));
                };
                cells.push(cell);
            }
            let (at, word) = self.next();
            if !word.is_empty() {
                let reason = format!("{} follows {what}", shown(word));
                return Err(self.fault(at, reason, "correct the size in the header, or remove what follows the cells"));
            }
        } else {
            if self.bytes.get(self.at) == Some(&b'\r') {
                let reason = "a carriage return stands before the pixels, where one white space belongs".to_owned();
                return Err(Fault::at_byte(self.at, reason, "save it with line feeds alone, or as P2"));
            }
            let raster = self.bytes.get(self.at + 1..).unwrap_or_default();
            let depth = if most < 256 { 1 } else { 2 };
            let needs = rows.checked_mul(columns).and_then(|count| count.checked_mul(depth)).unwrap_or(usize::MAX);
            // Some programs end a file with a line feed.
            if raster.len() != needs && (raster.len() != needs.saturating_add(1) || raster.last() != Some(&b'\n')) {
                return Err(Fault::length(self.at + 1, what, raster.len(), needs));
            }
            reserve(&mut cells, needs / depth)?;
            for pixel in raster[..needs].chunks_exact(depth) {
                let value = pixel.iter().fold(0, |value, &byte| value << 8 | usize::from(byte));
                let Some(&cell) = table.get(value) else {
                    let at = self.at + 1 + depth * cells.len();
                    return Err(Fault::at_byte(at, format!("pixel {value} is lighter than white, {most}"), "correct the value of white"));
                };
                cells.push(cell);
            }
        }
        Ok(Cells { format: "PGM", rows, columns, cells })
    }
}

/// The most cells of a PNG: a small file may hold many, since equal rows take hardly any space.
const MOST: u64 = 1 << 28;

fn read_png(bytes: &[u8], occupancy: &Occupancy) -> Result<Cells, Fault> {
    let bad =
        |error: png::DecodingError| Fault::new(format!("it is not a valid PNG: {error}"), "the file may be cut off: copy or save it again");
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut image = decoder.read_info().map_err(bad)?;
    let (rows, columns) = (image.info().height, image.info().width);
    if u64::from(rows) * u64::from(columns) > MOST {
        let reason = format!("{rows} x {columns} cells are more than the {MOST} that are read of a PNG");
        return Err(Fault::new(reason, "save it as PGM, or cut it into parts"));
    }
    room_for(u64::from(rows) * u64::from(columns))?;
    if image.info().interlaced {
        return Err(Fault::new("the image is interlaced", "save it without interlacing (Adam7)"));
    }
    let (colour, depth) = image.output_color_type();
    let (samples, bytes) = (colour.samples(), if depth == png::BitDepth::Sixteen { 2 } else { 1 });
    let colours = if samples % 2 == 0 { samples - 1 } else { samples };
    // Of the sums of the colours, so that their mean is not cut to a whole number.
    let table = occupancy.table(((1 << (8 * bytes)) - 1) * colours as u32);
    let mut cells = Vec::new();
    while let Some(row) = image.next_row().map_err(bad)? {
        reserve(&mut cells, columns as usize)?;
        cells.extend(row.data().chunks_exact(samples * bytes).map(|pixel| {
            let (colour, alpha) = pixel.split_at(colours * bytes);
            let sample = |sample: &[u8]| sample.iter().fold(0, |value, &byte| value << 8 | usize::from(byte));
            let light = colour.chunks_exact(bytes).map(sample).sum::<usize>();
            if alpha.iter().any(|&alpha| alpha < 255) { UNKNOWN } else { table[light] }
        }));
    }
    let (rows, columns) = (rows as usize, columns as usize);
    if cells.len() as u64 != rows as u64 * columns as u64 {
        return Err(Fault::new(format!("it ends after {} of {rows} x {columns} cells", cells.len()), "copy or save it again"));
    }
    Ok(Cells { format: "PNG", rows, columns, cells })
}
