//! Regular files that are read in parts, by several threads. They are not mapped into memory: if another process truncates a mapped file,
//! the next read there ends this process by SIGBUS, even if it is one that only embeds the library.

use std::{
    fs::{File, Metadata},
    io,
    ops::Range,
    os::unix::fs::{FileExt, MetadataExt},
};

use rayon::prelude::*;

/// Bytes that one task reads: large compared with the cost of a call, small compared with a cache.
const TASK: usize = 1 << 20;

/// A regular file that is read at any place. All of its errors are those of the system; a file that ends early is one of them.
#[derive(Debug)]
pub struct RegularFile {
    file: File,
    /// Size and modification time (seconds, nanoseconds) when the file was opened.
    state: (u64, i64, i64),
}

fn state(metadata: &Metadata) -> (u64, i64, i64) {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

impl RegularFile {
    /// Takes an open file; `None` if it is not a regular file.
    ///
    /// # Errors
    /// If the system does not describe the file.
    pub fn new(file: File) -> io::Result<Option<Self>> {
        let metadata = file.metadata()?;
        Ok(metadata.is_file().then(|| Self { file, state: state(&metadata) }))
    }

    /// Size in bytes when the file was opened.
    pub fn size(&self) -> u64 {
        self.state.0
    }

    /// Whether the file has changed since it was opened. Data that was read from it may then be inconsistent.
    pub fn has_changed(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| state(&metadata) != self.state)
    }

    /// Fills `bytes` with the content from `at` on, in parallel on the current rayon pool.
    ///
    /// # Errors
    /// If the file can't be read, or ends before.
    pub fn fill(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        bytes.par_chunks_mut(TASK).enumerate().try_for_each(|(task, part)| self.file.read_exact_at(part, at + (task * TASK) as u64))
    }

    /// The results of `of` for the content in `range`, in blocks of `size` bytes (the last one may be shorter), computed in parallel.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub fn in_blocks<T: Send>(&self, range: Range<u64>, size: usize, of: impl Fn(&[u8]) -> T + Sync) -> io::Result<Vec<T>> {
        let blocks = range.end.saturating_sub(range.start).div_ceil(size as u64);
        let one = |buffer: &mut Vec<u8>, block: u64| {
            let start = range.start + block * size as u64;
            buffer.resize((range.end - start).min(size as u64) as usize, 0);
            self.file.read_exact_at(buffer, start)?;
            Ok(of(buffer))
        };
        (0..blocks).into_par_iter().map_init(Vec::new, one).collect()
    }

    /// A reader of the content in `range`. It ends early if the file does.
    pub fn section(&self, range: Range<u64>) -> Section<'_> {
        Section { file: &self.file, range }
    }
}

/// A part of a file, read in sequence.
#[derive(Debug)]
pub struct Section<'a> {
    file: &'a File,
    range: Range<u64>,
}

impl io::Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.range.end.saturating_sub(self.range.start);
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = self.file.read_at(&mut buffer[..most], self.range.start)?;
        self.range.start += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Read};

    use super::*;

    #[test]
    fn parts_are_read_from_any_place_and_changes_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(RegularFile::new(File::open(folder.path()).unwrap()).unwrap().is_none());
        let path = folder.path().join("a");
        let bytes: Vec<u8> = (0..3 * TASK as u32 + 7).map(|i| (i / 1000) as u8).collect();
        fs::write(&path, &bytes).unwrap();
        let file = RegularFile::new(File::open(&path).unwrap()).unwrap().unwrap();
        let mut part = vec![0; 2 * TASK + 1];
        file.fill(&mut part, 5).unwrap();
        assert!(part == bytes[5..5 + part.len()] && file.size() == bytes.len() as u64);
        let blocks = file.in_blocks(5..2 * TASK as u64, 1000, <[u8]>::to_vec).unwrap();
        assert!(blocks.concat() == bytes[5..2 * TASK] && blocks[0].len() == 1000);
        let mut part = Vec::new();
        file.section(5..2005).read_to_end(&mut part).unwrap();
        assert_eq!(part, bytes[5..2005]);
        assert!(!file.has_changed());
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1000).unwrap();
        assert!(file.has_changed());
        assert_eq!(file.fill(&mut [0; 2], 999).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(file.in_blocks(0..2000, 100, |_| ()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let mut part = Vec::new();
        file.section(5..2005).read_to_end(&mut part).unwrap();
        assert_eq!(part, bytes[5..1000]);
    }
}
