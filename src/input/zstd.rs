//! Zstandard streams of any number of frames (RFC 8878), on top of a decoder for single frames.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::Compression;
use super::damage::{beyond_limit, bytes_follow};
use crate::{memory, words::bytes};

/// The largest window that is accepted, as in the reference decoder: `zstd --ultra -22` needs it.
const WINDOW: u64 = 128 << 20;

/// Decompresses frame after frame and verifies their checksums. Skippable frames are skipped.
pub(super) struct ZstdReader<R> {
    source: R,
    frame: Option<FrameDecoder>,
    /// Bytes of the frame's content that are still to come, if its header gives the size.
    left: Option<u64>,
    /// The largest window for which there was memory.
    granted: u64,
}

impl<R: BufRead> ZstdReader<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, frame: None, left: None, granted: 0 }
    }

    /// Starts the next frame; false at the end of the source.
    fn start(&mut self) -> io::Result<bool> {
        match self.source.fill_buf()?.first() {
            None => return Ok(false),
            Some(0x28 | 0x50..=0x5f) => {}
            // Seen here, since there may be fewer bytes than a frame's first four.
            Some(_) => return Err(bytes_follow(Compression::Zstd)),
        }
        let mut header = Vec::with_capacity(18);
        self.take(&mut header, 4)?;
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18] = header[..] {
            let mut length = Vec::with_capacity(4);
            self.take(&mut length, 4)?;
            let length = length.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            if io::copy(&mut self.source.by_ref().take(length), &mut io::sink())? < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            return Ok(true);
        }
        if header[..] != [0x28, 0xb5, 0x2f, 0xfd] {
            return Err(bytes_follow(Compression::Zstd));
        }
        self.take(&mut header, 1)?;
        let window = self.window(&mut header)?;
        if window > WINDOW {
            let reason = format!("its decompressor needs a window of {window} bytes, more than the limit of {WINDOW}");
            return Err(beyond_limit("zstd -d --long=31", &reason));
        }
        // The decoder reserves nothing at its first frame. Its buffer doubles until it holds a window and a block: if the window is a power
        // of two, a buffer of two windows is made while the one of a window is copied. It panics if that fails.
        if window > self.granted {
            let needed = 3 * window;
            let enough = memory::check_available(needed, "the window of its decompressor");
            enough.map_err(|_| beyond_limit("zstd -d", &format!("its decompressor needs {}, more memory than there is", bytes(needed))))?;
            self.granted = window;
        }
        let mut decoder = FrameDecoder::new();
        decoder.init((&header[..]).chain(&mut self.source)).map_err(invalid)?;
        // The descriptor says whether the size of the content is in the header.
        self.left = (header[4] & 0xe0 != 0).then(|| decoder.content_size());
        self.frame = Some(decoder);
        Ok(true)
    }

    /// Reads the fields after the descriptor of a frame header that define the window, and returns the size of the window in bytes.
    fn window(&mut self, header: &mut Vec<u8>) -> io::Result<u64> {
        let descriptor = header[4];
        let single_segment = descriptor & 0x20 != 0;
        if !single_segment {
            self.take(header, 1)?;
            let (exponent, mantissa) = (u32::from(header[5] >> 3), u64::from(header[5] & 7));
            let base = 1_u64 << (10 + exponent);
            return Ok(base + base / 8 * mantissa);
        }
        self.take(header, [0, 1, 2, 4][usize::from(descriptor & 3)])?; // dictionary
        let start = header.len();
        let size_bytes = [1, 2, 4, 8][usize::from(descriptor >> 6)];
        self.take(header, size_bytes)?;
        let size = header[start..].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        Ok(if size_bytes == 2 { size + 256 } else { size })
    }

    fn take(&mut self, into: &mut Vec<u8>, count: usize) -> io::Result<()> {
        let start = into.len();
        into.resize(start + count, 0);
        self.source.read_exact(&mut into[start..])
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            let Some(frame) = &mut self.frame else {
                if self.start()? {
                    continue;
                }
                return Ok(0);
            };
            while !frame.is_finished() && frame.can_collect() == 0 {
                frame.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1)).map_err(invalid)?;
            }
            let count = frame.read(buffer)?;
            if let Some(left) = &mut self.left {
                *left = left.checked_sub(count as u64).ok_or_else(|| invalid("a frame holds more than its header announces"))?;
            }
            if count > 0 {
                return Ok(count);
            }
            if self.left.is_some_and(|left| left > 0) {
                return Err(invalid("a frame holds less than its header announces"));
            }
            if let Some(expected) = frame.get_checksum_from_data() {
                if frame.get_calculated_checksum() != Some(expected) {
                    return Err(invalid("the checksum of a frame is wrong"));
                }
            }
            self.frame = None;
        }
        Ok(0)
    }
}

fn invalid(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
