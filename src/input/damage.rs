//! What is wrong with compressed data, in the words of the user. Decompressors describe the same damage in words of their own, some of them
//! in those of their source code.

use std::io;
#[cfg(feature = "compression")]
use std::{error::Error, io::Read};

#[cfg(feature = "compression")]
use super::Compression;
#[cfg(feature = "compression")]
use crate::words::bytes;

/// A fault of compressed data, carried by an I/O error. It distinguishes the fault from an error of reading the file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Damage(String);

/// An error with a reason (and cure) that the user is shown as it is.
pub(super) fn damage(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Damage(reason.into()))
}

/// Whether an error is one of the compressed data.
pub(super) fn is_damage(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Damage>())
}

/// The error for bytes behind the compressed data.
#[cfg(feature = "compression")]
pub(super) fn bytes_follow(compression: Compression) -> io::Error {
    damage(format!("bytes that are not {compression} data follow the end of the stream; remove them, or fetch the file again"))
}

/// A decompressor whose errors are put into the words of the user.
#[cfg(feature = "compression")]
pub(super) struct Explained<R> {
    pub(super) decompressor: R,
    pub(super) compression: Compression,
    /// Bytes of memory that the decompressor may take.
    pub(super) limit: u64,
}

#[cfg(feature = "compression")]
impl<R: Read> Read for Explained<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decompressor.read(buffer).map_err(|error| explained(error, self.compression, self.limit))
    }
}

#[cfg(feature = "compression")]
fn explained(error: io::Error, compression: Compression, limit: u64) -> io::Error {
    // An error of the system comes from the file, not from its data.
    if is_damage(&error) || error.raw_os_error().is_some() {
        return error;
    }
    // Neither decompressor has a type for its errors.
    let command = match (compression, &*error.to_string()) {
        (Compression::Xz, text) if text.starts_with("invalid data after stream") => return bytes_follow(compression),
        (Compression::Zstd, "Unknown frame descriptor") => return bytes_follow(compression),
        (Compression::Xz, _) if error.kind() == io::ErrorKind::OutOfMemory => Some("xz -d"),
        (Compression::Zstd, "Frame requires too much memory for decoding" | "Allocation error : not enough memory") => {
            Some("zstd -d --long=31")
        }
        _ => None,
    };
    if let Some(command) = command {
        let limit = bytes(limit);
        return damage(format!("its decompressor needs more memory than the limit of {limit}; decompress it first with `{command}`"));
    }
    let mut innermost: &(dyn Error + 'static) = &error;
    loop {
        if innermost.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
            return damage("it ends early; is it cut off?");
        }
        let next = match innermost.downcast_ref::<io::Error>() {
            // `source` of an I/O error passes over the error that it carries.
            Some(error) => error.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => innermost.source(),
        };
        let Some(next) = next else { break };
        innermost = next;
    }
    let detail = match innermost.to_string() {
        // The buffer of the zstd decompressor has room for the largest block that the format allows.
        detail if detail == "Destination buffer is too small" => "a block would become more than 128 KiB".to_owned(),
        detail => detail,
    };
    // Rust's `Debug` has braces; a single word or number says nothing to the user.
    let detail = if !detail.contains(' ') || detail.contains(['{', '}']) { String::new() } else { format!(" ({detail})") };
    damage(format!("the {compression} data are damaged{detail}; fetch the file again"))
}

/// Decompresses the members of a gzip file one after another. (flate2's reader of several members can't tell other bytes behind the last
/// member from a member that is cut off.)
#[cfg(feature = "compression")]
pub(super) struct GzipReader<R> {
    /// `None` after the last member.
    member: Option<flate2::bufread::GzDecoder<R>>,
}

#[cfg(feature = "compression")]
impl<R: io::BufRead> GzipReader<R> {
    pub(super) fn new(raw: R) -> Self {
        Self { member: Some(flate2::bufread::GzDecoder::new(raw)) }
    }
}

#[cfg(feature = "compression")]
impl<R: io::BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            let Some(member) = &mut self.member else { break };
            let count = member.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            let (next, is_padded) = after_padding(member.get_mut())?;
            self.member = match (next, self.member.take()) {
                (Some(0x1f), Some(member)) if !is_padded => Some(flate2::bufread::GzDecoder::new(member.into_inner())),
                (Some(_), _) => return Err(bytes_follow(Compression::Gzip)),
                _ => None,
            };
        }
        Ok(0)
    }
}

/// Skips zeros, with which some tools pad a file to whole blocks; gzip ignores them too. Returns the byte behind them, if there is one, and
/// whether there were any.
#[cfg(feature = "compression")]
fn after_padding(raw: &mut impl io::BufRead) -> io::Result<(Option<u8>, bool)> {
    let mut is_padded = false;
    loop {
        let bytes = raw.fill_buf()?;
        let (next, zeros) = (bytes.iter().find(|&&byte| byte != 0).copied(), bytes.iter().take_while(|&&byte| byte == 0).count());
        if zeros == 0 || next.is_some() {
            return Ok((next, is_padded || zeros > 0));
        }
        is_padded = true;
        raw.consume(zeros);
    }
}
