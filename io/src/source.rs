//! The bytes of a file: a stream of blocks, decompressed. A plain file (a regular one that is neither compressed nor an archive) is also
//! read at any place.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::archive;
#[cfg(feature = "compression")]
use super::damage::Explained;
use super::scan::Cut;
use super::{Compression, Fault};
use socbfs::files::RegularFile;
use socbfs::graph::Stopper;
use socbfs::memory;
use socbfs::words::bytes;

/// A file that has been opened.
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) compression: Compression,
    /// The first bytes of the content, decompressed.
    pub(super) head: Vec<u8>,
    /// The content after `head`; `None` if nothing follows.
    rest: Option<Box<dyn Read + Send>>,
    /// The file, unless it is a pipe.
    pub(super) file: Option<RegularFile>,
    is_archive: bool,
    /// Bytes of the file that have been read so far.
    pub(super) consumed: Arc<AtomicU64>,
    /// Ends the reading.
    pub(super) stopper: Stopper,
}

/// Name of the thread that reads and decompresses a stream.
pub const READING: &str = "socbfs-read";

/// Bytes at the start of a stream from which its format is recognised.
const HEAD: usize = 64 << 10;

/// Bytes of the blocks that a stream is cut into: enough work for every thread, and small compared with a graph that is worth reading in
/// parallel.
const BLOCK: usize = 8 << 20;

/// Bytes of the longest line of a stream, for formats with only a few numbers on a line.
pub(super) const LONGEST: usize = 1 << 20;

/// The most memory that a decompressor may take, in bytes: four times what `xz -9` needs, twice the window of `zstd --ultra -22`; less if
/// less is available.
#[cfg(feature = "compression")]
fn granted() -> u64 {
    let is_available = |&bytes: &u64| memory::check_available(bytes, "a decompressor").is_ok();
    (12..=28).rev().map(|exponent| 1 << exponent).find(is_available).unwrap_or(1 << 12)
}

impl Source {
    /// Opens a file and looks at its first bytes.
    pub(super) fn open(path: &Path, stopper: &Stopper) -> Result<Self, Box<Fault>> {
        let open_error = |reason| Fault::open(path, reason);
        // Nonblocking: neither the opening nor the reading of a pipe waits longer than until the reading is stopped.
        let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path).map_err(open_error)?;
        let metadata = file.metadata().map_err(open_error)?;
        if metadata.is_dir() {
            return Err(Fault::Directory.into());
        }
        let consumed = Arc::new(AtomicU64::new(0));
        let mut source = Self {
            path: path.to_owned(),
            compression: Compression::None,
            head: Vec::new(),
            rest: None,
            file: file.try_clone().and_then(RegularFile::new).map_err(open_error)?,
            is_archive: false,
            consumed: Arc::clone(&consumed),
            stopper: stopper.clone(),
        };
        read_ahead(&file);
        let mut raw = BufReader::with_capacity(256 << 10, Counted { file, consumed, stopper: stopper.clone() });
        // A pipe may deliver its first bytes one at a time. The longest magic number has six bytes.
        let mut start = Vec::new();
        raw.by_ref().take(8).read_to_end(&mut start)?;
        source.compression = Compression::of_content(&start);
        let mut rest = source.decompressor(Cursor::new(start).chain(raw))?;
        let mut head = Vec::new();
        read_head(&mut rest, &mut head)?;
        if head.is_empty() {
            return Err(Fault::Empty.into());
        }
        if let Some(reason) = archive::not_read(&head) {
            return Err(Fault::Unsupported(reason).into());
        }
        source.refuse_false_suffix()?;
        if archive::is_tar(&head) {
            source.is_archive = true;
            rest = archive::matrix(Cursor::new(std::mem::take(&mut head)).chain(rest))?;
            read_head(&mut rest, &mut head)?;
        }
        source.rest = (head.len() == HEAD).then_some(rest);
        source.head = head;
        Ok(source)
    }

    /// Size of the file in bytes, 0 for a pipe.
    pub(super) fn size(&self) -> u64 {
        self.file.as_ref().map_or(0, RegularFile::size)
    }

    /// The file if its bytes are the content.
    pub(super) fn plain(&self) -> Option<&RegularFile> {
        self.file.as_ref().filter(|_| self.compression == Compression::None && !self.is_archive)
    }

    /// Whether `head` is the whole content.
    pub(super) fn is_complete(&self) -> bool {
        self.rest.is_none()
    }

    /// A reader of the whole content. It can be taken once.
    pub(super) fn reader(&mut self) -> impl Read + Send + use<> {
        Cursor::new(std::mem::take(&mut self.head)).chain(self.rest.take().unwrap_or_else(|| Box::new(io::empty())))
    }

    /// The result of reading, unless another process has written to the file meanwhile: then neither the data nor an error can be trusted.
    pub(super) fn unchanged<T>(&self, result: Result<T, Box<Fault>>) -> Result<T, Box<Fault>> {
        unchanged(self.file.as_ref(), result)
    }

    /// A reader of the decompressed content of `raw`.
    #[cfg(feature = "compression")]
    fn decompressor(&self, raw: impl BufRead + Send + 'static) -> Result<Box<dyn Read + Send>, Box<Fault>> {
        let (compression, limit) = (self.compression, granted());
        Ok(match compression {
            Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(Explained { decompressor: flate2::bufread::MultiGzDecoder::new(raw), compression, limit }),
            Compression::Xz => {
                let decompressor = lzma_rust2::XzReader::new_mem_limit(raw, true, (limit >> 10) as u32);
                Box::new(Explained { decompressor, compression, limit })
            }
            Compression::Zstd => {
                let limit = limit / 2; // of the window, which is nearly all that the decompressor takes
                let mut decompressor = zstd::Decoder::with_buffer(raw)?;
                decompressor.window_log_max(limit.ilog2())?;
                Box::new(Explained { decompressor, compression, limit })
            }
        })
    }

    /// A reader of `raw`, which must not be compressed: this build has no decompressors.
    #[cfg(not(feature = "compression"))]
    fn decompressor(&self, raw: impl BufRead + Send + 'static) -> Result<Box<dyn Read + Send>, Box<Fault>> {
        match self.compression {
            Compression::None => Ok(Box::new(raw)),
            compression => {
                let reason = format!("it is compressed with {compression}, and socbfs was built without its feature `compression`");
                Err(Fault::Unsupported(reason).into())
            }
        }
    }

    /// Refuses a file that is named like a compressed one, but is not compressed. A pipe may have any name.
    fn refuse_false_suffix(&self) -> Result<(), Box<Fault>> {
        let named = Compression::of_path(&self.path);
        if self.file.is_none() || named == Compression::None || self.compression != Compression::None {
            return Ok(());
        }
        let reason = format!("its name says so, but it does not start as {named} data does; rename it, or fetch it again");
        Err(Fault::Decompress { compression: named, reason }.into())
    }
}

/// As [`Source::unchanged`], for a `file`.
pub(super) fn unchanged<T>(file: Option<&RegularFile>, result: Result<T, Box<Fault>>) -> Result<T, Box<Fault>> {
    if file.is_some_and(RegularFile::has_changed) { Err(Fault::Changed.into()) } else { result }
}

/// Asks the system to read the file ahead. This is a hint; a refusal costs speed only.
fn read_ahead(file: &File) {
    let _ = nix::fcntl::posix_fadvise(file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_WILLNEED);
}

/// Milliseconds between two looks whether the reading is stopped.
const WAIT: u16 = 50;

/// A file that counts what is read from it, and waits for a pipe only until the reading is stopped.
struct Counted {
    file: File,
    consumed: Arc<AtomicU64>,
    stopper: Stopper,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = loop {
            if self.stopper.is_stopped() {
                // Not `Interrupted`, after which readers try again.
                return Err(io::Error::other("the reading was stopped"));
            }
            // A pipe that no writer has opened yet has neither data nor an end, and a read of it would return the end.
            let mut wanted = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
            match poll(&mut wanted, PollTimeout::from(WAIT)) {
                Ok(0) | Err(Errno::EINTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                read => break read?,
            }
        };
        self.consumed.fetch_add(count as u64, Ordering::Relaxed); // a number to show; nothing depends on it
        Ok(count)
    }
}

/// Feeds a stream to `consume` in blocks that end where `cut` allows, while a thread of its own reads (and decompresses) the next blocks.
/// Holds at most four blocks of [`BLOCK`] bytes, unless a single line is longer.
pub(super) fn for_each_block(
    reader: impl Read + Send,
    cut: Cut,
    longest: usize,
    mut consume: impl FnMut(&[u8]) -> Result<(), Box<Fault>>,
) -> Result<(), Box<Fault>> {
    let (full_sender, full) = mpsc::sync_channel::<io::Result<Vec<u8>>>(2);
    let (empty, empty_receiver) = mpsc::channel::<Vec<u8>>();
    thread::scope(|scope| {
        let producer = thread::Builder::new()
            .name(READING.to_owned())
            .spawn_scoped(scope, move || {
                let mut blocks = Blocks { reader, cut, longest, carry: Vec::new(), ended: false };
                loop {
                    let block = blocks.next(empty_receiver.try_recv().unwrap_or_default());
                    let last = block.as_ref().map_or(true, Vec::is_empty);
                    // A send fails if the consumer has stopped.
                    if full_sender.send(block).is_err() || last {
                        return;
                    }
                }
            })
            .map_err(|error| {
                // The system's own reason is that it is "temporarily unavailable".
                let text =
                    format!("can't start a thread that reads it: {error}; there is too little memory, or a limit of threads is reached");
                io::Error::new(io::ErrorKind::OutOfMemory, text)
            })?;
        // By value: an early return drops the receiver, which ends the producer.
        for block in full {
            let block = block?;
            if !block.is_empty() {
                consume(&block)?;
            }
            let _ = empty.send(block); // the producer may have finished
        }
        // Joined explicitly, so that a panic in a decompressor becomes an error.
        producer.join().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "decompression failed").into())
    })
}

/// Reads the first bytes of the content.
fn read_head(reader: &mut impl Read, head: &mut Vec<u8>) -> io::Result<usize> {
    reader.take(HEAD as u64).read_to_end(head).map_err(|error| sized(error, HEAD as u64))
}

fn no_memory(size: u64, reason: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, format!("no memory for {} of text: {reason}", bytes(size)))
}

/// Reading may need memory of its own, and its error has no size.
fn sized(error: io::Error, size: u64) -> io::Error {
    if error.kind() == io::ErrorKind::OutOfMemory && error.get_ref().is_none() { no_memory(size, error) } else { error }
}

/// Cuts a stream into blocks.
struct Blocks<R> {
    reader: R,
    cut: Cut,
    /// Most bytes that a block may hold without a place to cut it.
    longest: usize,
    /// The bytes after the last cut.
    carry: Vec<u8>,
    ended: bool,
}

impl<R: Read> Blocks<R> {
    /// Reads the next block into the buffer of an earlier one; the block is empty at the end of the stream.
    fn next(&mut self, mut block: Vec<u8>) -> io::Result<Vec<u8>> {
        block.clear();
        block.append(&mut self.carry);
        while !self.ended {
            let want = if block.len() < BLOCK { BLOCK - block.len() } else { block.len() };
            let size = (block.len() + want) as u64;
            memory::check_available(want as u64, "a block of text").map_err(|error| no_memory(size, error))?;
            block.try_reserve_exact(want).map_err(|error| no_memory(size, error))?;
            let read = self.reader.by_ref().take(want as u64).read_to_end(&mut block).map_err(|error| sized(error, size))?;
            self.ended = read < want;
            let end = if self.ended { block.len() } else { self.cut.last(&block) };
            if end > 0 || self.ended {
                self.carry.extend_from_slice(&block[end..]);
                block.truncate(end);
                break;
            }
            if block.len() > self.longest {
                return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a line is longer than {} bytes", self.longest)));
            }
        }
        Ok(block)
    }
}

/// Appends the rest of a stream, at most `at_most` bytes, to `bytes`. Too little memory is an error, not an abort.
pub(super) fn read_all(reader: &mut impl Read, bytes: &mut Vec<u8>, at_most: u64) -> Result<(), Box<Fault>> {
    let mut left = at_most;
    let mut reader = reader.take(at_most);
    let mut buffered = BufReader::with_capacity(1 << 20, &mut reader);
    loop {
        let part = buffered.fill_buf()?;
        if part.is_empty() {
            return Ok(());
        }
        if bytes.capacity() - bytes.len() < part.len() {
            // Doubles the size if that much memory is available: the system may grant more than it has.
            let more = bytes.len().max(1 << 20).min(usize::try_from(left).unwrap_or(usize::MAX)).max(part.len());
            let mut reserve =
                |more: usize| memory::check_available(more as u64, "the file").is_ok() && bytes.try_reserve_exact(more).is_ok();
            if !(reserve(more) || reserve(part.len())) {
                return Err(Fault::OutOfMemory(at_most).into());
            }
        }
        bytes.extend_from_slice(part);
        let count = part.len();
        left -= count as u64;
        buffered.consume(count);
    }
}

// These tests also run in a build without decompressors.
#[cfg(test)]
mod tests {
    use std::{fs, thread, time::Duration};

    use crate::{Fault, ReadOptions, read};
    use socbfs::graph::Stopper;

    /// The first bytes decide whether a file is compressed, not its name.
    #[test]
    fn a_compressed_file_is_read_or_refused_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.el");
        // `0 1`, compressed by gzip.
        let bytes = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x33\x50\x30\xe4\x02\x00\xf1\x8f\xaa\xcf\x04\x00\x00\x00";
        fs::write(&path, bytes).unwrap();
        let result = read(&path, &ReadOptions::default());
        if cfg!(feature = "compression") {
            assert_eq!(result.unwrap().len(), 1);
        } else {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("g.el") && error.contains("gzip") && error.contains("feature `compression`"), "{error}");
        }
    }

    #[test]
    fn a_pipe_is_read_to_its_end_or_until_the_reading_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.el");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let later = |work: &dyn Fn()| {
            thread::sleep(Duration::from_millis(200));
            work();
        };
        // A writer that comes late and pauses; its end is the end of the file.
        let edges = thread::scope(|scope| {
            scope.spawn(|| {
                later(&|| {
                    let mut writer = fs::OpenOptions::new().write(true).open(&path).unwrap();
                    later(&|| std::io::Write::write_all(&mut &writer, b"0 1\n1 2\n").unwrap());
                    later(&|| std::io::Write::write_all(&mut &writer, b"2 3\n").unwrap());
                    std::io::Write::flush(&mut writer).unwrap();
                });
            });
            read(&path, &ReadOptions::default()).unwrap().len()
        });
        assert_eq!(edges, 3);
        // A writer that never comes, and one that stays and writes nothing more.
        let options = ReadOptions::default();
        thread::scope(|scope| {
            scope.spawn(|| later(&|| options.stopper.stop()));
            assert!(matches!(*read(&path, &options).unwrap_err().fault, Fault::Stopped));
        });
        options.stopper.reset();
        thread::scope(|scope| {
            scope.spawn(|| {
                let writer = fs::OpenOptions::new().write(true).open(&path).unwrap();
                std::io::Write::write_all(&mut &writer, b"0 1\n").unwrap();
                later(&|| options.stopper.stop());
                later(&|| ());
            });
            assert!(matches!(*read(&path, &options).unwrap_err().fault, Fault::Stopped));
        });
    }

    #[test]
    fn the_parsing_of_a_file_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        // An edge list, and the rows of a METIS file.
        let text = ["0 1\n".repeat(1 << 20), format!("{} 0\n{}", 1 << 20, "\n".repeat(1 << 20))];
        for (name, text) in ["g.el", "g.metis"].iter().zip(text) {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            let stopper = Stopper::default();
            let stops = |_: u64, _: u64| stopper.stop();
            let options = ReadOptions { progress: Some(&stops), stopper: stopper.clone(), ..ReadOptions::default() };
            assert!(matches!(*read(&path, &options).unwrap_err().fault, Fault::Stopped), "{name}");
            assert!(read(&path, &ReadOptions::default()).is_ok(), "{name}");
        }
    }

    /// A sparse file of 5 GB, more than 32 bits can address. Text is read in blocks; a `.sg` file, which must be held as a whole, is
    /// refused before it is read.
    #[cfg(target_pointer_width = "32")]
    #[test]
    fn files_larger_than_the_address_space_are_read_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let fails = |name: &str, head: &[u8], size: u64| {
            let path = folder.path().join(name);
            fs::write(&path, head).unwrap();
            fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(size).unwrap();
            read(&path, &ReadOptions::default()).unwrap_err().to_string()
        };
        let (vertices, entries) = (1_u64, 1_250_000_000_u64);
        let size = 17 + 8 * (vertices + 1) + 4 * entries;
        let head = [&[0][..], &entries.to_le_bytes(), &vertices.to_le_bytes()].concat();
        let error = fails("g.sg", &head, size);
        assert!(error.contains("no memory for 4.7 GiB of the graph") && error.contains("a 64-bit build"), "{error}");
        assert!(fails("short.sg", &head, size - 1).contains("which need 5000000033 bytes, but the file has 5000000032"));
        assert!(fails("g.el", b"0 1\nbad 2\n", size).contains("g.el:2: 'bad' is not a vertex number"));
    }
}
