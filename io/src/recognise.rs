//! Recognises the format of a file: by `--format`, its first bytes, its extension, or the rest of its content.

use std::path::Path;

use super::adjacency::{LIGRA, LIGRA_WEIGHTED};
use super::format::extension;
use super::graph500::EdgeFormat;
use super::matrix_market::is_banner;
use super::scan::{Field, columns, count_lines, field, fields, line_end, shown};
use super::source::Source;
use super::{Compression, Fault, Format, Place, gap};

/// A format and why it was chosen.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Recognised {
    /// The format.
    pub format: Format,
    /// How the file is compressed.
    pub compression: Compression,
    /// Why this format was chosen.
    pub reason: String,
    /// Only the look of the numbers suggests the format, so the reader must exclude other formats.
    #[serde(skip)]
    pub(super) by_structure: bool,
}

/// What some editors write before the first character of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Most data lines from which a format is recognised.
const LINES: usize = 1000;

/// A format that the content alone proves.
struct Proof {
    format: Format,
    reason: &'static str,
    by_structure: bool,
}

impl Proof {
    fn of(format: Format, reason: &'static str) -> Self {
        Self { format, reason, by_structure: false }
    }
}

/// Recognises the format of an opened file.
pub(super) fn recognise(source: &Source, wanted: Option<Format>) -> Result<Recognised, Box<Fault>> {
    let path = &source.path;
    let head = &source.head[..];
    let binary_wanted = matches!(wanted, Some(Format::GapSg | Format::Graph500Packed | Format::Graph500Int64));
    if head.starts_with(BYTE_ORDER_MARK) && is_text(head) && !binary_wanted {
        let fault = Fault::at(0, "the file starts with a UTF-8 byte-order mark, three bytes that are no part of the graph");
        return Err(fault.placed(|_| Place::Line(1)).cure("save it without one, or remove it: tail -c +4 FILE >NEW"));
    }
    let chosen = |format, reason: String| Recognised { format, compression: source.compression, reason, by_structure: false };
    if let Some(format) = wanted {
        return Ok(chosen(format, "as --format says".into()));
    }
    let (named, _) = Format::of_path(path);
    if let Some((format, sign)) = signature(head) {
        if let Some(named) = named.filter(|&named| named != format) {
            log::warn!("{}: named like {named}, but it starts as {format} does; read as {format}", path.display());
        }
        return Ok(chosen(format, format!("it starts with {sign}")));
    }
    if let Some(format) = named {
        return Ok(chosen(format, "by its name".into()));
    }
    let inner = if source.compression == Compression::None { path.as_path() } else { Path::new(path.file_stem().unwrap_or_default()) };
    if extension(inner).as_deref() == Some("wsg") {
        let reason = "a weighted graph of GAP (.wsg); breadth-first search needs no weights: write it without them, as .sg, with GAP's `converter -b`";
        return Err(Fault::Unsupported(reason.into()).into());
    }
    let found = if is_text(head) { text(head, source.is_complete()) } else { binary(source)? };
    match found {
        Ok(Proof { format, reason, by_structure }) => Ok(Recognised { by_structure, ..chosen(format, reason.into()) }),
        Err(reason) => Err(Fault::Unrecognised(reason).into()),
    }
}

/// The format that the first bytes announce, and the word that does so.
fn signature(head: &[u8]) -> Option<(Format, &'static str)> {
    let start = head.trim_ascii_start();
    let (_, first) = fields(&start[..start.len().min(64)]).next()?;
    if is_banner(first) {
        return Some((Format::MatrixMarket, "%%MatrixMarket"));
    }
    if first == LIGRA || first == LIGRA_WEIGHTED {
        return Some((Format::Ligra, if first == LIGRA { "AdjacencyGraph" } else { "WeightedAdjacencyGraph" }));
    }
    // Any number of comments may precede the header of DIMACS.
    let mut at = 0;
    while matches!(head.get(at), Some(b'c' | b'\n' | b'\r')) {
        at = line_end(head, at);
    }
    match head.get(at..)? {
        [b'p', b' ' | b'\t', rest @ ..] => match fields(&rest[..rest.len().min(64)]).next()?.1 {
            b"sp" => Some((Format::Dimacs, "'p sp'")),
            b"tw" => Some((Format::Dimacs, "'p tw'")),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the file starts with printable characters and white space (comments may hold bytes above 127).
fn is_text(head: &[u8]) -> bool {
    head.iter().take(4096).all(|&byte| byte >= b' ' && byte != 0x7f || matches!(byte, b'\t'..=b'\r'))
}

/// The format that the look of a text proves, or why it proves none.
fn text(head: &[u8], complete: bool) -> Result<Proof, String> {
    // Whole lines only, unless the last one is the end of the file.
    let whole = if complete { head } else { &head[..memchr::memrchr(b'\n', head).map_or(0, |at| at + 1)] };
    let mut rows: Vec<(usize, Vec<Field>)> = Vec::new(); // offset and fields of data lines
    let mut comment = None;
    let mut at = 0;
    while at < whole.len() && rows.len() < LINES {
        let end = line_end(whole, at);
        let line = &whole[at..end];
        match line.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => {}
            Some(&sign @ (b'#' | b'%')) => comment = comment.or(Some(char::from(sign))),
            Some(_) => {
                let row: Vec<Field> = columns(line, true).map(|(_, word)| field(word)).take(8).collect();
                if !row.iter().take(2).all(|field| matches!(field, Field::Number(_))) {
                    let line_number = count_lines(&whole[..at]) + 1;
                    return Err(format!("line {line_number} is {}, where numbers are expected", shown(line.trim_ascii())));
                }
                let alone = rows.is_empty() && row.len() == 1;
                rows.push((at, row));
                if alone {
                    break; // not an edge list; `rodinia` checks the lines that follow
                }
            }
        }
        at = end;
    }
    let Some((start, first)) = rows.first() else {
        return Err("there are no numbers in it".into());
    };
    if first.len() == 1 {
        return match (comment, rodinia(&whole[*start..], complete)) {
            (None, Ok(())) => Ok(Proof::of(Format::Rodinia, "a number, followed by starts and degrees that add up")),
            (None, Err(reason)) => Err(format!("the first line is a single number, as in Rodinia's and Parboil's files, but {reason}")),
            (Some(sign), _) => Err(format!("the first line is a single number, and Rodinia's files have no '{sign}' comments")),
        };
    }
    if let Some((at, row)) = rows.iter().find(|(_, row)| row.len() != first.len()) {
        let line_number = count_lines(&whole[..*at]) + 1;
        return Err(format!(
            "an edge list has the same number of fields on every line, but line {line_number} has {} and the first {}",
            row.len(),
            first.len()
        ));
    }
    Ok(match comment {
        Some('#') => Proof::of(Format::EdgeListText, "'#' comments, and lines of two numbers or more"),
        _ => Proof { format: Format::EdgeListText, reason: "every line holds two numbers or more", by_structure: true },
    })
}

/// Checks that the numbers, as far as they are there, add up as in Rodinia's and Parboil's files. The error says what does not.
fn rodinia(text: &[u8], complete: bool) -> Result<(), String> {
    let mut numbers = fields(text).map(|(_, word)| field(word)).peekable();
    let mut next = || {
        let number = numbers.next()?;
        // No number of an incomplete text is cut short: only whole lines are given.
        Some(if let Field::Number(number) = number { Ok(number) } else { Err("not everything that follows is a number".to_owned()) })
    };
    let Some(vertices) = next().transpose()? else { return Err("nothing follows".into()) };
    let mut sum = 0_u64;
    for vertex in 0..vertices {
        let (Some(start), Some(degree)) = (next().transpose()?, next().transpose()?) else {
            return if complete || vertex == 0 { Err("starts and degrees of its vertices do not follow".into()) } else { Ok(()) };
        };
        if start != sum {
            return Err(format!("the edges of vertex {vertex} do not start where those before it end"));
        }
        sum = sum.saturating_add(degree);
    }
    let (source, entries) = (next().transpose()?, next().transpose()?);
    match (source, entries) {
        (Some(source), _) if source >= vertices => Err("no source follows".into()),
        (_, Some(entries)) if entries != sum => Err("the degrees do not add up to the number of edges".into()),
        (_, None) if complete => Err("no source and number of edges follow".into()),
        _ => Ok(()),
    }
}

/// The format that the bytes of a binary file prove, or why they prove none.
fn binary(source: &Source) -> Result<Result<Proof, String>, Box<Fault>> {
    let Some(file) = source.plain() else {
        return Ok(Err("it is binary, and only the whole uncompressed file would prove its format".into()));
    };
    let proofs = || Ok([gap::proves(file)?, EdgeFormat::Packed.fits(file)?, EdgeFormat::Int64.fits(file)?]);
    Ok(match source.unchanged(proofs())? {
        [true, _, _] => Ok(Proof::of(Format::GapSg, "header, offsets and size agree")),
        [_, true, false] => Ok(Proof::of(Format::Graph500Packed, "every 12 bytes are an edge")),
        [_, false, true] => Ok(Proof::of(Format::Graph500Int64, "every 16 bytes are an edge")),
        [_, true, true] => Err("it is binary, and may be edges of 12 or of 16 bytes".into()),
        [_, false, false] => Err("it is binary, and neither a .sg file nor Graph500 edges".into()),
    })
}
