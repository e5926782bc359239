//! What is wrong with compressed data, in the words of the user. Decompressors describe the same damage in words of their own, some of them
//! in those of their source code.

#[cfg(feature = "compression")]
use std::io;

use super::Compression;
#[cfg(feature = "compression")]
use socbfs::words::bytes;

/// A fault of compressed data, carried by an I/O error. It distinguishes the fault from an error of reading the file.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(super) struct Damage {
    pub(super) compression: Compression,
    /// What is wrong (and the cure), as the user is shown it.
    pub(super) reason: String,
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
impl<R: io::Read> io::Read for Explained<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decompressor.read(buffer).map_err(|error| self.explained(error))
    }
}

#[cfg(feature = "compression")]
impl<R> Explained<R> {
    fn explained(&self, error: io::Error) -> io::Error {
        let Self { compression, limit, .. } = self;
        // An error of the system comes from the file, not from its data.
        if error.raw_os_error().is_some() {
            return error;
        }
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it ends early; is it cut off?".to_owned(),
            // zstd has no kinds of errors.
            kind if kind == io::ErrorKind::OutOfMemory || error.to_string().contains("memory") => {
                let (limit, options) = (bytes(*limit), if *compression == Compression::Zstd { "-d --long=31" } else { "-d" });
                let command = compression.command();
                format!("its decompressor needs more memory than the limit of {limit}; decompress it first with `{command} {options}`")
            }
            _ => format!("the {compression} data are damaged, or other bytes follow them; fetch the file again"),
        };
        io::Error::other(Damage { compression: *compression, reason })
    }
}
