//! Archives: finds the matrix in a `.tar.gz` of the SuiteSparse collection, and recognises archives that are not read.

use std::io::{self, Read};
use std::path::Path;

/// Bytes of a header. Contents are padded to a multiple of it.
const BLOCK: usize = 512;

/// Signatures of archives and compressions that are not read, the bytes before each, and the command that unpacks such a file.
const NOT_READ: [(usize, &[u8], &str, &str); 4] = [
    (4, b"1AY&SY", "compressed by bzip2", "bunzip2 -k"),
    (0, b"PK\x03\x04", "a zip archive", "unzip"),
    (0, b"7z\xbc\xaf", "a 7z archive", "7z x"),
    (0, b"Rar!", "a rar archive", "unrar x"),
];

/// The reason and the cure if the first bytes are those of an archive or a compression that is not read.
pub(super) fn not_read(head: &[u8]) -> Option<String> {
    let (_, _, what, command) = NOT_READ.iter().find(|(at, sign, ..)| head.get(*at..).is_some_and(|rest| rest.starts_with(sign)))?;
    Some(format!("it is {what}, which socbfs does not read: run `{command} FILE` first, then give the graph in it"))
}

/// Whether the first bytes are those of a tar archive. One of the first form (v7) is known by its checksum alone.
pub(super) fn is_tar(head: &[u8]) -> bool {
    head.get(257..262).is_some_and(|magic| magic == b"ustar") || head.get(..BLOCK).is_some_and(is_header)
}

/// Whether a header has the right checksum: the sum of all bytes, its own taken as blanks (POSIX.1-1988, 10.1.1).
fn is_header(header: &[u8]) -> bool {
    let sum = header.iter().enumerate().map(|(at, &byte)| if (148..156).contains(&at) { 32 } else { u64::from(byte) }).sum();
    u64::from_str_radix(text(&header[148..156]).trim(), 8) == Ok(sum)
}

/// A reader of the matrix `NAME/NAME.mtx` in a tar archive (SuiteSparse adds vectors and coordinates in files of their own).
///
/// At the end of the matrix it also reads the rest of the archive: only the end of a compressed file proves that the file is whole, and
/// that it has no other matrix.
pub(super) fn matrix(mut archive: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let Some(Header { name, size, blocks }) = next_matrix(&mut archive)? else {
        return Err(invalid("it is a tar archive without a matrix NAME/NAME.mtx; unpack it (tar xf FILE) and give the graph in it"));
    };
    log::info!("the tar archive holds {name}, {size} bytes");
    Ok(Box::new(Entry { archive, name, left: size, padding: blocks - size }))
}

/// The header of an entry.
struct Header {
    name: String,
    size: u64,
    /// Bytes that the content takes in the archive: `size` rounded up to whole blocks.
    blocks: u64,
}

/// The header of the next matrix. Everything before its content has then been read; without another matrix, the whole archive.
fn next_matrix(archive: &mut impl Read) -> io::Result<Option<Header>> {
    // What headers before that of an entry say of it, where its own has no room.
    let (mut long_name, mut long_size) = (None, None);
    loop {
        let mut header = Vec::with_capacity(BLOCK);
        // Not `read_exact`: at the end of the archive it returns the same error as a decompressor whose input is cut off.
        match archive.by_ref().take(BLOCK as u64).read_to_end(&mut header)? {
            0 => return Ok(None),
            BLOCK => {}
            _ => return Err(invalid(CUT_OFF)),
        }
        if header.iter().all(|&byte| byte == 0) {
            return io::copy(archive, &mut io::sink()).map(|_| None);
        }
        // Octal digits, or a binary number that the highest bit marks (GNU tar, for 8 GiB and more).
        let size = match &header[124..136] {
            [0x80, 0, 0, 0, number @ ..] => number.try_into().ok().map(u64::from_be_bytes),
            digits => u64::from_str_radix(text(digits).trim(), 8).ok(),
        };
        let kind = header[156];
        let is_entry = !matches!(kind, b'L' | b'K' | b'x' | b'g');
        let size = if is_entry { long_size.take().or(size) } else { size };
        let blocks = size.and_then(|size| size.checked_next_multiple_of(BLOCK as u64));
        let (true, Some(size), Some(blocks)) = (is_header(&header), size, blocks) else { return Err(invalid(DAMAGED)) };
        match kind {
            // GNU's long name.
            b'L' => long_name = Some(text(&extension(archive, size, blocks)?)),
            // POSIX's records (pax).
            b'x' => {
                let records = extension(archive, size, blocks)?;
                let mut rest = &records[..];
                while !rest.is_empty() {
                    let (key, value, more) = record(rest).ok_or_else(|| invalid(DAMAGED))?;
                    match key {
                        b"path" => long_name = Some(text(value)),
                        b"size" => long_size = Some(text(value).parse().map_err(|_| invalid(DAMAGED))?),
                        _ => {}
                    }
                    rest = more;
                }
            }
            _ => {
                let short = || match text(&header[345..500]) {
                    folder if !folder.is_empty() && &header[257..263] == b"ustar\0" => format!("{folder}/{}", text(&header[..100])),
                    _ => text(&header[..100]),
                };
                if is_entry {
                    let name = long_name.take().unwrap_or_else(short);
                    if matches!(kind, b'0' | 0) && is_the_matrix(Path::new(&name)) {
                        return Ok(Some(Header { name, size, blocks }));
                    }
                }
                skip(archive, blocks)?;
            }
        }
    }
}

/// The text before the first zero byte.
fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

/// The content of a header that extends the next one.
fn extension(archive: &mut impl Read, size: u64, blocks: u64) -> io::Result<Vec<u8>> {
    /// Most bytes of such a header. macOS puts attributes of files into it.
    const MOST: u64 = 1 << 20;
    if size > MOST {
        return Err(invalid("a header of the tar archive is too long; unpack it (tar xf FILE) and give the graph in it"));
    }
    let mut content = Vec::new();
    archive.by_ref().take(size).read_to_end(&mut content)?;
    skip(archive, blocks - content.len() as u64)?;
    Ok(content)
}

/// The key and the value of the first record, `LENGTH KEY=VALUE` and a line feed, and what follows it.
fn record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let digits = records.iter().position(|&byte| byte == b' ')?;
    let length: usize = text(&records[..digits]).parse().ok()?;
    let record = records.get(digits + 1..length)?.strip_suffix(b"\n")?;
    let key = record.iter().position(|&byte| byte == b'=')?;
    Some((&record[..key], &record[key + 1..], &records[length..]))
}

fn skip(archive: &mut impl Read, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut archive.by_ref().take(bytes), &mut io::sink())?;
    if skipped == bytes { Ok(()) } else { Err(invalid(CUT_OFF)) }
}

fn is_the_matrix(name: &Path) -> bool {
    let folder = name.parent().and_then(Path::file_name);
    // macOS adds files of attributes under such names.
    let is_other = name.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"._"));
    !is_other && name.extension().is_some_and(|extension| extension == "mtx") && (folder.is_none() || folder == name.file_stem())
}

const CUT_OFF: &str = "the tar archive is cut off";
const DAMAGED: &str = "a header of the tar archive is damaged";

fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

/// A reader of one file in an archive.
struct Entry<R> {
    archive: R,
    name: String,
    left: u64,
    /// Bytes between the file and the next header.
    padding: u64,
}

impl<R: Read> Read for Entry<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (&mut self.archive).take(self.left).read(buffer)?;
        self.left -= count as u64;
        if count == 0 && !buffer.is_empty() {
            if self.left > 0 {
                return Err(invalid(CUT_OFF));
            }
            skip(&mut self.archive, std::mem::take(&mut self.padding))?;
            if let Some(other) = next_matrix(&mut self.archive)? {
                let both = format!("{} and {}", self.name, other.name);
                return Err(invalid(format!("the tar archive holds two matrices, {both}; unpack it (tar xf FILE) and give one of them")));
            }
        }
        Ok(count)
    }
}
