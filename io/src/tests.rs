//! Tests of the readers and writers of every format.

use std::fs;
use std::io::Write;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use socbfs::graph::{Listing, MAX_VERTICES, Vertex};

/// The vertices, entries and listing of an edge list.
type Parts = (usize, Vec<[Vertex; 2]>, Listing);

fn parts(list: &EdgeList) -> Parts {
    let mut edges = Vec::new();
    list.for_each(0..list.len(), |source, target| edges.push([source, target]));
    (list.vertices(), edges, list.listing())
}

fn read_as(name: &str, bytes: &[u8], format: Option<Format>) -> Result<Parts, InputError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let whole = read(&path, &ReadOptions { format, ..ReadOptions::default() }).map(|list| parts(&list));
    // One number of parts for each file: there are many files.
    let count = 1 + bytes.len() % 7;
    if let Some(shared) = read_in_parts(&path, format, count) {
        assert_same(&shared, &whole, &format!("{name} in {count} parts"));
    }
    let pieces = read_in_pieces(&path, format);
    // Read in pieces, the size of a stream is checked only at its end, and an earlier error is reported first.
    let is_rows = recognise(&path, format).is_ok_and(|recognised| recognised.format == Format::GapSg);
    if pieces.is_ok() || whole.is_ok() || !is_rows {
        assert_same(&pieces, &whole, &format!("{name} in pieces"));
    }
    whole
}

fn assert_same(found: &Result<Parts, InputError>, whole: &Result<Parts, InputError>, what: &str) {
    match (found, whole) {
        (Ok(found), Ok(whole)) => assert_eq!(found, whole, "{what}"),
        (Err(found), Err(whole)) => assert_eq!(found.to_string(), whole.to_string(), "{what}"),
        (found, whole) => panic!("{what}: {found:?} instead of {whole:?}"),
    }
}

/// Reads the file as `count` processes do together; `None` if it can't be cut.
fn read_in_parts(path: &Path, format: Option<Format>, count: usize) -> Option<Result<Parts, InputError>> {
    faulty_in_parts(path, format, count).map(|read| read.in_file(path))
}

fn faulty_in_parts(path: &Path, format: Option<Format>, count: usize) -> Option<Result<Parts, Box<Fault>>> {
    let open = |part| {
        let opened = OpenFile::open(path)?;
        let chosen = opened.recognise(format)?;
        opened.can_be_cut(&chosen).then(|| opened.cut(&chosen, part, count)).transpose()
    };
    let parts: Result<Option<Vec<FilePart>>, Box<Fault>> = (0..count).map(open).collect();
    let mut parts = match parts {
        Ok(parts) => parts?,
        Err(error) => return Some(Err(error)),
    };
    for part in 0..count {
        assert_eq!(parts[part].checksum(part).unwrap(), parts[0].checksum(part).unwrap());
    }
    let mut read = || {
        let (mut rows, mut found) = (0, Tallies::default());
        for part in &mut parts {
            let own = part.rows()?;
            found.join(&part.read(rows, None)?);
            rows += own;
        }
        let (mut vertices, mut listing, mut edges) = (0, Listing::Unknown, Vec::new());
        for part in std::mem::take(&mut parts) {
            let slice = part.conclude(&found)?;
            slice.for_each(0..slice.len(), |source, target| edges.push([source, target]));
            (vertices, listing) = (slice.vertices(), slice.listing());
        }
        Ok((vertices, edges, listing))
    };
    Some(read())
}

/// Reads the file piece by piece, as a process does that keeps none of the edges.
fn read_in_pieces(path: &Path, format: Option<Format>) -> Result<Parts, InputError> {
    faulty_in_pieces(path, format).in_file(path)
}

fn faulty_in_pieces(path: &Path, format: Option<Format>) -> Result<Parts, Box<Fault>> {
    let opened = OpenFile::open(path)?;
    let chosen = opened.recognise(format)?;
    let mut edges = Vec::new();
    let whole = opened.in_pieces(&chosen, None, &mut |piece| {
        edges.extend_from_slice(piece);
        Ok(())
    })?;
    Ok((whole.vertices as usize, edges, whole.listing))
}

fn read_bytes(name: &str, bytes: &[u8]) -> Result<Parts, InputError> {
    read_as(name, bytes, None)
}

fn ok(name: &str, text: &str) -> Parts {
    read_bytes(name, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// The message of the error, from the file name on.
fn message(name: &str, bytes: &[u8]) -> String {
    let text = read_bytes(name, bytes).unwrap_err().to_string();
    text[text.find(name).unwrap_or_else(|| panic!("no file name in {text}"))..].to_owned()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8], block: Option<u64>) -> Vec<u8> {
    let mut options = lzma_rust2::XzOptions::with_preset(0);
    options.set_block_size(block.and_then(std::num::NonZeroU64::new));
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ::zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A tar archive. The names of headers that extend the next one are those that GNU tar and pax give them.
fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, text) in files {
        let mut header = [0_u8; 512];
        // Two fields hold a long name.
        let (folder, name) = name.rsplit_once('/').filter(|_| name.len() > 100).unwrap_or(("", name));
        header[345..345 + folder.len()].copy_from_slice(folder.as_bytes());
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o} ", text.len()).as_bytes());
        header[156] = match name {
            "././@LongLink" => b'L',
            "PaxHeader" => b'x',
            _ if name.ends_with('/') => b'5',
            _ => b'0',
        };
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        bytes.extend(header);
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// Faults that were once accepted silently, or refused without a cure.
mod regressions {
    use super::*;

    #[test]
    fn announced_numbers_of_edges_are_checked() {
        assert!(message("g.txt", b"# Nodes: 3 Edges: 3\n0 1\n1 2\n").contains("announces 3 edges, but the file holds 2"));
        assert!(message("g.el", b"# socbfs entries 1\n0 1\n1 2\n").contains("announces 1 edge, but the file holds 2"));
        // A file written by socbfs, cut anywhere after its first line.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.el");
        let list = EdgeList::new(9, (0..8).map(|v| [v, v + 1]).collect(), Listing::Once).unwrap();
        write(&path, Format::EdgeListText, &list, &WriteOptions::default()).unwrap();
        let whole = fs::read(&path).unwrap();
        let first = whole.iter().position(|&byte| byte == b'\n').unwrap();
        assert_eq!(read_bytes("g.el", &whole).unwrap(), parts(&list));
        for length in first + 1..whole.len() - 2 {
            assert!(read_bytes("g.el", &whole[..length]).is_err(), "cut to {length}");
        }
    }

    #[test]
    fn lone_carriage_returns_are_refused() {
        let mtx = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\r2 1\n";
        for (name, text) in [
            ("g.el", "0 1\r1 2\r2 3\r"),
            ("g.el", "# comment\r0 1\n1 2\n"),
            ("g.el", "0 1\n1 2\r2 3\n"),
            ("g.mtx", mtx),
            ("g.gr", "p sp 2 1\ra 1 2 3\n"),
            ("g.graph", "3 2\n2\r1 3\r2\n"),
        ] {
            let message = message(name, text.as_bytes());
            assert!(message.contains("carriage return") && message.contains("tr '"), "{text:?}: {message}");
        }
        assert_eq!(ok("g.el", "0 1\r\r\n1 2 \r \n").1, [[0, 1], [1, 2]]);
    }

    #[test]
    fn damaged_notes_are_reported() {
        for note in ["vertices", "vertices x", "entries -1", "listing twice", "vertexes 5"] {
            let message = message("g.el", format!("# socbfs {note}\n0 1\n").as_bytes());
            assert!(message.contains("note of socbfs is damaged"), "{note}: {message}");
        }
    }

    #[test]
    fn invalid_weights_are_reported() {
        for weight in ["-", "e", "1e", ".", "--1", "f", "1-2"] {
            for count in [1, 100] {
                let message = message("g.gr", format!("p sp 2 {count}\n{}", format!("a 1 2 {weight}\n").repeat(count)).as_bytes());
                assert!(message.contains("is not a weight"), "{weight}: {message}");
            }
        }
    }

    /// NetworkX writes `{}`, other programs dates, texts, and commas between the columns.
    #[test]
    fn columns_after_the_second_are_ignored() {
        let lines = |line: &str| {
            let edges: String = [[0, 1], [2, 10]].map(|[u, v]| line.replace('u', &u.to_string()).replace('v', &v.to_string())).concat();
            [edges.clone(), edges.repeat(50)]
        };
        for line in [
            "u v {}\n",
            "u v 2009-12-14\n",
            "u v {'weight': 0.5}\r\n",
            "u v \n",
            "u,v\n",
            "u, v\n",
            "u ,v\r\n",
            "u , v,\n",
            "u,v,x,-\n",
            "u\tv,\n",
        ] {
            for text in lines(line) {
                let expected: Vec<[Vertex; 2]> = [[0, 1], [2, 10]].repeat(text.lines().count() / 2);
                for name in ["g.el", "g.txt", "g.csv"] {
                    assert_eq!(ok(name, &text), (11, expected.clone(), Listing::Unknown), "{name}: {line:?}");
                }
            }
        }
        for (line, reason) in
            [("u v {}\r1 2\n", "carriage return"), ("u,,v\n", "'' is not a vertex number"), ("u v\\\n", "is not a vertex number")]
        {
            for text in lines(line) {
                assert!(message("g.el", text.as_bytes()).contains(reason), "{line:?}");
            }
        }
    }

    #[test]
    fn banners_with_one_sign_or_after_blanks_are_read() {
        let size = "\n5 5 4\n2 1 1\n3 2 1\n4 3 1\n5 4 1\n";
        let expected = (5, vec![[1, 0], [2, 1], [3, 2], [4, 3]], Listing::Symmetric);
        for banner in ["%MatrixMarket", " %%MatrixMarket", "\n \r\n\t%matrixmarket", "%%MATRIXMARKET"] {
            for field in ["real", "unsigned-integer"] {
                let text = format!("{banner} matrix coordinate {field} symmetric{size}");
                for name in ["g.mtx", "g.txt", "g.el"] {
                    assert_eq!(ok(name, &text), expected, "{name}: {text}");
                }
            }
        }
        assert!(
            message("g.mtx", format!("%%%MatrixMarket matrix coordinate real general{size}").as_bytes())
                .contains("is not '%%MatrixMarket'")
        );
    }

    #[test]
    fn an_archive_with_two_matrices_is_refused() {
        let mtx = |text: &str| format!("%%MatrixMarket matrix coordinate pattern symmetric\n%{text}\n3 3 2\n2 1\n3 2\n");
        // The second one also follows a matrix that is longer than the start from which the format is recognised.
        for first in [mtx(""), mtx(&"x".repeat(100_000))] {
            let archive = tar(&[("a/", ""), ("a/a.mtx", &first), ("a/a_b.mtx", "x"), ("b/", ""), ("b/b.mtx", &mtx(""))]);
            for (name, bytes) in [("g.tar", archive.clone()), ("g.tar.gz", gzip(&archive))] {
                let error = message(name, &bytes);
                assert!(error.contains("two matrices, a/a.mtx and b/b.mtx; unpack it"), "{error}");
            }
        }
    }

    #[test]
    fn the_size_announced_by_a_zstd_frame_is_checked() {
        // A frame of one raw block of four bytes in a single segment, with the size of its content in a byte.
        let frame = |size: u8| [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, size, 4 << 3 | 1, 0, 0][..], b"0 1\n"].concat();
        assert_eq!(read_bytes("g.el.zst", &frame(4)).unwrap().1, [[0, 1]]);
        for size in [3, 5] {
            assert!(message("g.el.zst", &frame(size)).contains("the zstd data are damaged"), "{size}");
        }
    }

    /// Damage is also found after the matrix, and where a header is expected.
    #[test]
    fn damaged_compressed_archives_are_reported() {
        let random: String = (0..60_000_u32).map(|x| char::from(b' ' + (x.wrapping_mul(2_654_435_761) >> 25) as u8 % 90)).collect();
        let mtx = "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n2 1\n3 2\n";
        // Longer than the start from which the format is recognised.
        let long = format!("%%MatrixMarket matrix coordinate pattern general\n%{}\n3 3 2\n2 1\n3 2\n", random.repeat(2));
        for mtx in [mtx, &long] {
            let after = tar(&[("g/g.mtx", mtx), ("g/g_b.mtx", &random)]);
            let before = tar(&[("g/g_b.mtx", &random), ("g/g.mtx", mtx)]);
            for (archive, name) in [(&after, "the matrix first"), (&before, "the matrix last")] {
                for (suffix, whole) in [("gzip", gzip(archive)), ("xz", xz(archive, None)), ("zstd", zstd(archive))] {
                    let file = "g"; // a name without the suffix that the message must contain
                    assert_eq!(read_bytes(file, &whole).unwrap().1, [[1, 0], [2, 1]], "{suffix}, {name}");
                    for end in [whole.len() - 1, whole.len() - 9, whole.len() / 2, 600] {
                        let message = message(file, &whole[..end]);
                        assert!(message.contains(suffix), "{suffix}, {name}, cut to {end} of {}: {message}", whole.len());
                    }
                }
                // Damage to the checksum, which is at the end.
                let mut damaged = gzip(archive);
                let at = damaged.len() - 7;
                damaged[at] ^= 1;
                assert!(message("g.tar.gz", &damaged).contains("gzip"), "{name}");
            }
        }
    }

    #[test]
    fn the_matrix_of_an_archive_is_read_and_other_archives_are_refused() {
        let mtx = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n";
        let archive = tar(&[("bcs/", ""), ("bcs/bcs_b.mtx", "%%MatrixMarket matrix array real general\n"), ("bcs/bcs.mtx", mtx)]);
        let expected = ok("g.mtx", mtx);
        for (name, bytes) in [("bcs.tar.gz", gzip(&archive)), ("bcs.tar", archive.clone()), ("x.tar.xz", xz(&archive, None))] {
            assert_eq!(read_bytes(name, &bytes).unwrap(), expected, "{name}");
        }
        assert!(message("x.tar.gz", &gzip(&archive[..archive.len() - 1500])).contains("cut off"));
        // After the matrix: its padding, the next header, the next file. The blocks of zeros at the end may be missing.
        let archive = tar(&[("g/g.mtx", mtx), ("g/g_b.mtx", "%%MatrixMarket matrix array real general\n")]);
        // Another checksum, and an archive of the first form, which has nothing else to know it by.
        assert!(message("g.tar", &[&archive[..150], b"7", &archive[151..]].concat()).contains("a header of the tar archive is damaged"));
        let mut first_form = archive.clone();
        for at in [0, 1024] {
            let sum: u32 = b"ustar".iter().map(|&byte| u32::from(byte)).sum();
            let was = u32::from_str_radix(std::str::from_utf8(&first_form[at + 148..at + 154]).unwrap(), 8).unwrap();
            first_form[at + 257..at + 262].fill(0);
            first_form[at + 148..at + 154].copy_from_slice(format!("{:06o}", was - sum).as_bytes());
        }
        assert_eq!(read_bytes("g.tar", &first_form).unwrap(), read_bytes("g.tar", &archive).unwrap());
        for end in [512 + mtx.len(), 1024 + 100, 1536 + 3] {
            assert!(message("g.tar", &archive[..end]).contains("cut off"), "cut to {end}");
        }
        for end in [1024, 2048, 2048 + 512] {
            assert_eq!(read_bytes("g.tar", &archive[..end]).unwrap(), expected, "cut to {end}");
        }
        // Names that do not fit their field, and macOS's attributes beside each file.
        let name = |long: &str| format!("{long}/{long}.mtx");
        let (long, split) = ("n".repeat(140), name(&"p".repeat(90)));
        let [gnu, pax] = [format!("{}\0", name(&long)), format!("13 comment=x\n295 path={}\n", name(&long))];
        let sized = format!("11 size={:02}\n", mtx.len());
        for files in [
            &[("././@LongLink", &*gnu), ("n/n", mtx)][..],
            &[("PaxHeader", &pax), ("n", mtx)],
            &[("PaxHeader", &sized), ("g/g.mtx", mtx)],
            &[("PaxHeader", "13 comment=x\n"), ("././@LongLink", &gnu), ("n", mtx), ("n", "1 2\n")],
            &[(&*split, mtx)],
            &[("./._a.mtx", "\0\x05\x16\x07"), ("./a.mtx", mtx), ("._b.mtx", "\0\x05\x16\x07")],
        ] {
            assert_eq!(read_bytes("g.tar", &tar(files)).unwrap(), expected, "{}", files[0].0);
        }
        let both = message("g.tar", &tar(&[("a.mtx", mtx), ("././@LongLink", &gnu), ("n", mtx)]));
        assert!(both.contains(&name(&long)), "{both}");
        for records in ["x", "5 x=y", "99999999999999999999 a=b\n", "0 a=b\n", "3 \n", "9 size=x\n", "12 comment=x\n"] {
            assert!(message("g.tar", &tar(&[("PaxHeader", records), ("n", mtx)])).contains("damaged"), "{records}");
        }
        assert!(message("g.tar", &tar(&[("././@LongLink", &"n".repeat(2 << 20)), ("n", mtx)])).contains("too long"));
        assert!(message("g.tar", &tar(&[("././@LongLink", &gnu), ("n", mtx)])[..700]).contains("cut off"));
        let none = message("x.tar.gz", &gzip(&tar(&[("a/b.txt", "0 1\n")])));
        assert!(none.contains("tar xf") && !none.contains("gzip"), "{none}");
        for (name, head, word) in
            [("a.bz2", &b"BZh91AY&SY"[..], "bunzip2"), ("a.zip", b"PK\x03\x04rest", "unzip"), ("a.7z", b"7z\xbc\xaf\x27\x1c", "7z x")]
        {
            assert!(message(name, head).contains(word), "{name}");
            assert!(message("b.el.gz", &gzip(head)).contains(word), "{name} inside gzip");
        }
    }
}

/// Another process truncates a file, or writes to it, while it is read. This process must survive it, also without handlers of signals.
mod changes {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    type Change = fn(&fs::File);

    const CHANGES: [Change; 4] = [
        |file| file.set_len(0).unwrap(),
        |file| file.set_len(file.metadata().unwrap().len() / 2).unwrap(),
        |mut file| file.write_all(b"9").unwrap(),
        |file| file.set_len(file.metadata().unwrap().len() + 100).unwrap(),
    ];

    /// Graphs of 2 MB, more than is read when a file is opened.
    fn files(folder: &Path) -> Vec<std::path::PathBuf> {
        let edges: Vec<[Vertex; 2]> = (0..200_000).map(|k| [k, (k * 7) % 199_999]).collect();
        let list = EdgeList::new(200_000, edges.clone(), Listing::Once).unwrap();
        let paths: Vec<_> = ["g.el", "g.mtx", "g.sg", "g.graph", "g.el.gz", "g.sg.gz", "g.bin"].map(|name| folder.join(name)).into();
        for (path, format) in paths.iter().zip([Format::EdgeListText, Format::MatrixMarket, Format::GapSg]) {
            write(path, format, &list, &WriteOptions::default()).unwrap();
        }
        let both: Vec<[Vertex; 2]> = edges.iter().flat_map(|&[u, v]| [[u, v], [v, u]]).collect();
        fs::write(&paths[3], print::metis(200_000, &both, [false; 3], 1)).unwrap();
        fs::write(&paths[4], gzip(&fs::read(&paths[0]).unwrap())).unwrap();
        fs::write(&paths[5], gzip(&fs::read(&paths[2]).unwrap())).unwrap();
        fs::write(&paths[6], print::graph500(&edges, true)).unwrap();
        std::thread::sleep(Duration::from_millis(20)); // times of files have the resolution of the kernel's clock
        paths
    }

    #[test]
    fn a_file_that_changes_after_it_was_opened_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for path in files(folder.path()) {
            let content = fs::read(&path).unwrap();
            let whole = |source: Source| match recognise::recognise(&source, None)?.format {
                Format::GapSg => gap::read(source, None),
                format => text::read(source, &mut *parser(format, false).unwrap(), None),
            };
            type Reading<'a> = &'a dyn Fn(&dyn Fn()) -> Result<(), Box<Fault>>;
            let readings: [Reading<'_>; 4] = [
                &|change| {
                    let source = Source::open(&path, &Stopper::default())?;
                    change();
                    whole(source).map(drop)
                },
                &|change| {
                    let opened = OpenFile::open(&path)?;
                    let chosen = opened.recognise(None)?;
                    change();
                    opened.in_pieces(&chosen, None, &mut |_| Ok(())).map(drop)
                },
                &|change| {
                    let opened = OpenFile::open(&path)?;
                    let chosen = opened.recognise(None)?;
                    if !opened.can_be_cut(&chosen) {
                        change();
                        return Err(Fault::Changed.into());
                    }
                    let mut part = opened.cut(&chosen, 1, 3)?;
                    change();
                    let found = part.checksum(1).and_then(|_| part.rows()).and_then(|rows| part.read(rows, None));
                    found.and_then(|found| part.conclude(&found)).map(drop)
                },
                &|change| {
                    let opened = OpenFile::open(&path)?;
                    let chosen = opened.recognise(None)?;
                    change();
                    if !opened.can_be_cut(&chosen) {
                        return Err(Fault::Changed.into());
                    }
                    let mut part = opened.cut(&chosen, 1, 3)?;
                    let found = part.read(0, None)?;
                    part.conclude(&found).map(drop)
                },
            ];
            for (number, reading) in readings.iter().enumerate() {
                for (kind, change) in CHANGES.iter().enumerate() {
                    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                    let error = reading(&|| change(&file)).unwrap_err();
                    let says = matches!(*error, Fault::Changed | Fault::Read(_));
                    assert!(says, "{}, reading {number}, change {kind}: {error}", path.display());
                    fs::write(&path, &content).unwrap();
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_cut_off_between_two_blocks_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.el");
        let text: String = (0..4_000_000_u32).map(|k| format!("{k} 1\n")).collect();
        fs::write(&path, &text).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let is_cut = AtomicBool::new(false);
        let cut = |_, _| {
            if !is_cut.swap(true, Ordering::Relaxed) {
                fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
            }
        };
        let error = read(&path, &ReadOptions { progress: Some(&cut), ..ReadOptions::default() }).unwrap_err();
        assert!(matches!(*error.fault, Fault::Changed), "{error}");
    }
}

/// Every reader gets random bytes, and valid files with random changes: it returns an error or a graph, and never panics.
mod fuzz {
    use super::*;

    const NAMES: [&str; 9] = ["g.el", "g.mtx", "g.gr", "g.graph", "g.sg", "g.adj", "graph_input.dat", "g.txt", "g.bin"];

    const SEEDS: [&str; 8] = [
        "# socbfs vertices 4 entries 3 listing once\n0 1 5\n1 2 -1e3\n2 3\n",
        "%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n1 2 1.5\n3 1 nan\n",
        "c x\np sp 3 2\na 1 2 3\na 2 3 4\n",
        "3 2 011 1\n1 2 5\n% c\n1 1 5 3 6\n2 2 6\n",
        "WeightedAdjacencyGraph\n2\n2\n0\n1\n1\n0\n5\n-6\n",
        "2\n0 1\n1 1\n0\n2\n1 3\n0 4\n",
        "# Nodes: 3 Edges: 2\n0\t1\r\n1\t2\r\n",
        "p tw 3 2\n1 2\n2 3\n",
    ];

    /// A valid file: a text of `SEEDS`, or a `.sg` file written by socbfs.
    fn seed(index: usize) -> Vec<u8> {
        if index < SEEDS.len() {
            return SEEDS[index].as_bytes().to_vec();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("g.sg");
        let list = EdgeList::new(3, vec![[0, 1], [1, 2]], Listing::Once).unwrap();
        write(&path, Format::GapSg, &list, &WriteOptions { directed: index % 2 == 0, progress: None }).unwrap();
        fs::read(path).unwrap()
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), Just(b'0'), Just(b'1'), Just(b'-'), Just(b'%'), any::<u8>()];
        let changed =
            (0..SEEDS.len() + 2, proptest::collection::vec((any::<Index>(), piece.clone(), 0..4_u8), 0..6)).prop_map(|(index, changes)| {
                let mut bytes = seed(index);
                for (at, byte, what) in changes {
                    let at = at.index(bytes.len() + 1);
                    match what {
                        0 => bytes.insert(at, byte),
                        1 if at < bytes.len() => bytes[at] = byte,
                        2 if at < bytes.len() => drop(bytes.remove(at)),
                        3 => bytes.truncate(at),
                        _ => {}
                    }
                }
                bytes
            });
        prop_oneof![proptest::collection::vec(piece, 0..200), changed]
    }

    fn check(name: &str, bytes: &[u8], packed: u8, format: Option<Format>) {
        let bytes = match packed {
            1 => gzip(bytes),
            2 => zstd(bytes),
            3 => xz(bytes, None),
            4 => gzip(&tar(&[("g/g.mtx", &String::from_utf8_lossy(bytes))])),
            _ => bytes.to_vec(),
        };
        if let Err(error) = read_as(name, &bytes, format) {
            assert!(!error.to_string().is_empty());
        }
        // A decompressor also gets damaged data.
        if packed > 0 && !bytes.is_empty() {
            let mut damaged = bytes;
            let at = damaged.len() / 2;
            damaged[at] ^= 0x55;
            let _ = read_as(name, &damaged, format);
        }
    }

    fn cases(count: u32) {
        let format = proptest::option::of(proptest::sample::select(&Format::ALL[..]));
        let strategy = (proptest::sample::select(&NAMES[..]), bytes(), 0..6_u8, format);
        let config = ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() };
        proptest::test_runner::TestRunner::new(config)
            .run(&strategy, |(name, bytes, packed, format)| {
                check(name, &bytes, packed, format);
                Ok(())
            })
            .unwrap();
    }

    #[test]
    fn random_files_make_no_reader_panic() {
        cases(if std::env::var_os("SOCBFS_TEST_ALL").is_some() { 4000 } else { 1500 });
    }

    #[test]
    #[ignore = "takes minutes, with PROPTEST_CASES=1000000 an hour"]
    fn many_random_files_make_no_reader_panic() {
        cases(std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(50_000));
    }
}

mod formats {
    use super::*;

    #[test]
    fn edge_list() {
        let edges = vec![[0, 1], [2, 0], [7, 7], [2, 0]];
        let expected = (8, edges, Listing::Unknown);
        for text in [
            "0 1\n2 0\n7 7\n2 0\n",
            "0 1\n2 0\n7 7\n2 0",
            "# SNAP\n#\tx y\n0\t1\n\n2\t0\n% KONECT\n 7   7 \n2 0",
            "0 1\r\n2 0\r\n7 7\r\n2 0\r\n",
            "0 1 5\n2 0 0.25\n7 7 -1e-3\n2 0 1 1262304000\n",
            "0 1 5\r\n2 0 7 \r\n7 7 1\r\n2 0 1\r\n",
            "00 01\n2\x0b0\n000000000000000000000000000007 7\n2 0\n\n\n",
        ] {
            assert_eq!(ok("g.el", text), expected, "{text:?}");
        }
        assert_eq!(ok("g.txt", "# Nodes: 9 Edges: 1\n0 1\n"), (9, vec![[0, 1]], Listing::Unknown));
        assert_eq!(ok("g.txt", "# Nodes: 2 Edges: 1\n5 7\n"), (8, vec![[5, 7]], Listing::Unknown));
        assert_eq!(ok("g.el", "# socbfs vertices 0 entries 0\n"), (0, vec![], Listing::Unknown));
        assert_eq!(ok("g.el", "# Nodes: 3 Edges: 0\n"), (3, vec![], Listing::Unknown));
        assert_eq!(ok("g.el", "0 4294967167\n").0, MAX_VERTICES);
    }

    #[test]
    fn matrix_market() {
        let (general, symmetric) = (Listing::Unknown, Listing::Symmetric);
        for (kind, values, listing) in [
            ("pattern general", "", general),
            ("real general", " -1.5e-300", general),
            ("integer symmetric", " 3", symmetric),
            ("real skew-symmetric", " 1.0000000000000000000000000000000000000000000000000000000000", symmetric),
            ("complex hermitian", " 1.5 -2", symmetric),
            ("Pattern Symmetric", "", symmetric),
        ] {
            let text = format!("%%MatrixMarket matrix coordinate {kind}\n% a\n\n4 4 3\n1 1{values}\n3 2{values}\n4 1{values}\n");
            let expected = (4, vec![[0, 0], [2, 1], [3, 0]], listing);
            assert_eq!(ok("g.mtx", &text), expected, "{text}");
            assert_eq!(ok("g.txt", &text), expected, "by its banner");
            assert_eq!(ok("g.mtx", &text.replace('\n', "\r\n")), expected);
        }
        assert_eq!(ok("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n0 0 0\n"), (0, vec![], general));
    }

    #[test]
    fn dimacs() {
        let arcs = vec![[0, 1], [1, 0], [3, 2]];
        assert_eq!(ok("g.gr", "c road\np sp 5 3\nc x\na 1 2 803\na 2 1 803\na 4 3 1\n"), (5, arcs.clone(), Listing::Unknown));
        assert_eq!(ok("g.gr", "p tw 5 3\n1 2\n2 1\n4 3\n"), (5, arcs.clone(), Listing::Symmetric));
        assert_eq!(ok("g.txt", "c\nc comment\n\np\tsp  5 3\r\na 1 2 1\r\na 2 1 1\r\n\ta 4\t3 1\r\n"), (5, arcs, Listing::Unknown));
    }

    #[test]
    fn metis() {
        // The graph of the manual's figure: 7 vertices, 11 edges.
        let plain = "7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n";
        let (vertices, edges, listing) = ok("g.graph", plain);
        assert_eq!((vertices, edges.len(), listing), (7, 22, Listing::BothDirections));
        assert_eq!(edges[..6], [[0, 4], [0, 2], [0, 1], [1, 0], [1, 2], [1, 3]]);
        for text in [
            "% c\n7 11 0\n% c\n5 3 2 \n 1 3 4\n5  4\t2 1\n% c\n2 3 6 7\r\n1 3 6\n5 4 7\n6 4\n\n\n",
            "7 11 1\n5 1 3 2 2 1\n1 1 3 2 4 1\n5 3 4 2 2 2 1 2\n2 1 3 2 6 2 7 5\n1 1 3 3 6 2\n5 2 4 2 7 6\n6 6 4 5\n",
            "7 11 011\n4 5 1 3 2 2 1\n2 1 1 3 2 4 1\n5 5 3 4 2 2 2 1 2\n3 2 1 3 2 6 2 7 5\n1 1 1 3 3 6 2\n6 5 2 4 2 7 6\n2 6 6 4 5\n",
            "7 11 10 3\n1 2 0 5 3 2\n0 2 2 1 3 4\n4 1 1 5 4 2 1\n2 2 3 2 3 6 7\n1 1 1 1 3 6\n2 2 1 5 4 7\n1 2 1 6 4\n",
            "7 11 100\n1 5 3 2\n0 1 3 4\n4 5 4 2 1\n2 2 3 6 7\n1 1 3 6\n2 5 4 7\n1 6 4",
            "7 11 111 1\n9 4 5 1 3 2 2 1\n9 2 1 1 3 2 4 1\n9 5 5 3 4 2 2 2 1 2\n9 3 2 1 3 2 6 2 7 5\n9 1 1 1 3 3 6 2\n9 6 5 2 4 2 7 6\n9 2 6 6 4 5\n",
        ] {
            assert_eq!(ok("g.graph", text), (7, edges.clone(), listing), "{text}");
        }
        let isolated = ok("g.graph", "4 1\n\n4\n\n2\n");
        assert_eq!(isolated, (4, vec![[1, 3], [3, 1]], Listing::BothDirections));
    }

    #[test]
    fn gap_sg() {
        let sg = |directed: u8, offsets: &[u64], targets: &[u32]| {
            let mut bytes = vec![directed];
            bytes.extend((targets.len() as u64).to_le_bytes());
            bytes.extend((offsets.len() as u64 - 1).to_le_bytes());
            for _ in 0..=directed {
                offsets.iter().for_each(|offset| bytes.extend(offset.to_le_bytes()));
                targets.iter().for_each(|target| bytes.extend(target.to_le_bytes()));
            }
            bytes
        };
        let undirected = sg(0, &[0, 1, 1, 2], &[2, 0]);
        let expected = (3, vec![[0, 2], [2, 0]], Listing::BothDirections);
        assert_eq!(read_bytes("g.sg", &undirected).unwrap(), expected);
        assert_eq!(read_bytes("g.bin", &undirected).unwrap(), expected, "header, offsets and size prove it");
        assert_eq!(read_bytes("g.sg.gz", &gzip(&undirected)).unwrap(), expected);
        let directed = sg(1, &[0, 1, 1, 1], &[2]);
        let expected = (3, vec![[0, 2]], Listing::Unknown);
        assert_eq!(read_bytes("g.sg", &directed).unwrap(), expected);
        assert_eq!(read_bytes("g.sg.zst", &zstd(&directed)).unwrap(), expected);

        assert!(message("g.sg", &undirected[..40]).contains("byte 1: the header announces 3 vertices and 2 entries, which need 57 bytes"));
        assert!(message("g.sg.gz", &gzip(&undirected[..40])).contains("but the file has 40; is it cut off?"));
        assert!(message("g.sg", &undirected[..9]).contains("9 bytes are too few"));
        assert!(message("g.sg", b"0 1\n1 2\n2 3\n3 4\n4 5\n").contains("the first byte of a GAP .sg file is 0 or 1, this one is 48"));
        assert!(message("g.sg", &sg(0, &[0, 2, 1, 2], &[2, 0])).contains("byte 33: the offset of vertex 2 is 1"));
        assert!(message("g.sg", &sg(0, &[0, 1, 1, 2], &[2, 3])).contains("byte 53: entry 1 names vertex 3"));
        let weighted = sg(0, &[0, 1, 1, 2], &[2, 0, 0, 0]);
        let mut weighted = [&weighted[..1], &2_u64.to_le_bytes(), &weighted[9..]].concat();
        assert!(message("g.sg", &weighted).contains(".wsg"));
        assert!(message("g.wsg", &weighted).contains(".wsg"));
        weighted[1..17].fill(0xff);
        assert!(message("g.sg", &weighted).contains("negative"));
        weighted[8] = 0x7f;
        weighted[16] = 0x7f;
        assert!(message("g.sg", &weighted).contains("more than any file can hold"));
        assert!(message("g.sg.gz", &gzip(&weighted)).contains("more than any file can hold"));
    }

    #[test]
    fn ligra() {
        let expected = (4, vec![[0, 1], [0, 2], [2, 3]], Listing::Unknown);
        assert_eq!(ok("g.adj", "AdjacencyGraph\n4\n3\n0\n2\n2\n3\n1\n2\n3\n"), expected);
        assert_eq!(ok("g.txt", "WeightedAdjacencyGraph\n4 3 0 2 2 3\n1 2 3\n-7 0.5 99999999999999999999"), expected);
        assert_eq!(ok("g.adj", "AdjacencyGraph\n0\n0\n"), (0, vec![], Listing::Unknown));
        assert_eq!(ok("g.adj", "AdjacencyGraph\n2\n0\n0\n0\n"), (2, vec![], Listing::Unknown));
    }

    #[test]
    fn rodinia_and_parboil() {
        let text = "4\n0 2\n2 0\n2 1\n3 0\n\n1\n\n3\n1 5\n2 6\n3 -7\n";
        let expected = (4, vec![[0, 1], [0, 2], [2, 3]], Listing::Unknown);
        assert_eq!(ok("graph4.txt", text), expected);
        assert_eq!(ok("graph_input.dat", text), expected);
        assert_eq!(ok("x.txt", "1\n0 0\n0\n0\n"), (1, vec![], Listing::Unknown));
    }

    #[test]
    fn graph500() {
        let edges = [[1_u32, 6], [3, 3], [0, 2]];
        let packed: Vec<u8> = edges.iter().flat_map(|&[u, v]| [u, v, 0]).flat_map(u32::to_le_bytes).collect();
        let int64: Vec<u8> = edges.iter().flatten().flat_map(|&end| u64::from(end).to_le_bytes()).collect();
        let expected = (8, edges.to_vec(), Listing::Once); // 2^SCALE vertices
        for (bytes, format) in [(&packed, Format::Graph500Packed), (&int64, Format::Graph500Int64)] {
            assert_eq!(read_as("edges", bytes, Some(format)).unwrap(), expected);
            assert_eq!(read_bytes("edges", bytes).unwrap(), expected, "{format} is proven by the zeros");
            assert_eq!(read_as("edges.xz", &xz(bytes, None), Some(format)).unwrap(), expected);
            let error = read_as("edges", &bytes[..bytes.len() - 5], Some(format)).unwrap_err().to_string();
            assert!(error.contains("of an edge of"), "{error}");
            let error = read_as("edges", &bytes[..bytes.len() / 3 * 2 + 1], Some(format)).unwrap_err().to_string();
            assert!(error.contains("the file ends with 1 byte of an edge of"), "{error}");
            assert!(message("edges.gz", &gzip(bytes)).contains("--format"), "not all of it is looked at");
        }
        assert!(message("edges", &[0; 48]).contains("may be edges of 12 or of 16 bytes"));
        let mut far = packed.clone();
        far[12 + 8] = 1; // bit 32 of the second edge's first vertex
        let error = read_as("edges", &far, Some(Format::Graph500Packed)).unwrap_err().to_string();
        assert!(error.contains("byte 12: vertex 4294967299, but socbfs numbers vertices with 32 bits"), "{error}");
        let negative: Vec<u8> = [-1_i64, -1].iter().flat_map(|end| end.to_le_bytes()).collect();
        let error = read_as("edges", &negative, Some(Format::Graph500Int64)).unwrap_err().to_string();
        assert!(error.contains("byte 0: a vertex is negative"), "{error}");
    }
}

mod recognition {
    use super::*;

    fn recognised(name: &str, text: &str) -> Result<Format, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        recognise(&path, None).map(|found| found.format).map_err(|error| error.to_string())
    }

    #[test]
    fn content_that_proves_a_format_is_recognised() {
        for (name, text, format) in [
            ("g.txt", "# Nodes: 3\n0\t1\n1\t2\n", Format::EdgeListText),
            ("g", "0 1\n1 2\n5 1\n", Format::EdgeListText),
            ("g.tsv", "% sym\n1 2 1 0\n2 3 1 0\n", Format::EdgeListText),
            ("g.txt", "3\n0 1\n1 0\n1 1\n0\n2\n1 1\n2 1\n", Format::Rodinia),
            ("g.el", "%%matrixmarket matrix coordinate pattern general\n1 1 0\n", Format::MatrixMarket),
            ("g.graph", "c\np sp 1 0\n", Format::Dimacs),
            ("g", "WeightedAdjacencyGraph\n0\n0\n", Format::Ligra),
        ] {
            assert_eq!(recognised(name, text), Ok(format), "{text}");
        }
    }

    #[test]
    fn content_that_proves_no_format_is_refused_with_a_cure() {
        for (name, text, reason) in [
            ("g.txt", "3\n0 1\n5 0\n", "the edges of vertex 1 do not start where those before it end"),
            ("g.txt", "3\n", "starts and degrees of its vertices do not follow"),
            ("g.txt", "1\n0 3\n0\n4\n", "the degrees do not add up"),
            ("g.txt", "0 1\n1 2 3\n", "line 2 has 3 and the first 2"),
            ("g.csv", "0;1\n1;2\n", "line 1 is '0;1', where numbers are expected"),
            ("g.txt", "source target\n0 1\n", "line 1 is 'source target'"),
            ("g.txt", "# only\n", "there are no numbers in it"),
            ("g.txt", "\0\u{1}\u{2}", "binary"),
        ] {
            let error = recognised(name, text).unwrap_err();
            assert!(error.contains(reason) && error.contains(&format!("--format, one of {}", Format::names())), "{text:?}: {error}");
            assert!(error.contains("the ending of its name"), "{error}");
        }
    }

    #[test]
    fn a_first_line_that_may_be_a_header_is_refused_without_a_format() {
        for text in ["5 3\n0 1\n1 2\n3 4\n", "3 3\n2 3\n1 3\n1 2\n", "2 1\n0 1\n"] {
            assert!(message("g.txt", text.as_bytes()).contains("--format el"), "{text}");
            assert_eq!(read_as("g.txt", text.as_bytes(), Some(Format::EdgeListText)).unwrap().1.len(), text.lines().count());
            assert!(read_bytes("g.txt", format!("# SNAP\n{text}").as_bytes()).is_ok());
            // The name of the file says which, too: C and Python have no option for the format.
            assert!(message("g.txt", text.as_bytes()).contains("the ending .el"), "{text}");
            assert_eq!(read_bytes("g.el", text.as_bytes()).unwrap().1.len(), text.lines().count());
        }
        assert_eq!(read_as("g.txt", b"3 3\n2 3\n1 3\n1 2\n", Some(Format::Metis)).unwrap().1.len(), 6);
        assert_eq!(read_bytes("g.graph", b"3 3\n2 3\n1 3\n1 2\n").unwrap().1.len(), 6);
        assert_eq!(ok("g.txt", "5 3\n0 1\n1 6\n3 4\n").1.len(), 4); // vertex 6 is above 5, so the first line is not a header
    }

    #[test]
    fn a_long_rodinia_file_is_recognised_by_its_start() {
        let vertices = 50_000;
        let mut text = format!("{vertices}\n");
        (0..vertices).for_each(|vertex| text += &format!("{vertex} 1\n"));
        text += &format!("0\n{vertices}\n");
        (0..vertices).for_each(|vertex| text += &format!("{vertex} 1\n"));
        for (name, bytes) in [("g.txt", text.clone().into_bytes()), ("g.txt.gz", gzip(text.as_bytes()))] {
            assert_eq!(read_bytes(name, &bytes).unwrap().1.len(), vertices);
        }
    }
}

mod faults {
    use super::*;

    #[test]
    fn faults_are_reported_with_file_line_and_reason() {
        let mtx = |rest: &str| format!("%%MatrixMarket matrix coordinate real general\n{rest}");
        for (name, text, wanted) in [
            ("g.el", "0 1\n0 x\n".to_owned(), "g.el:2: 'x' is not a vertex number"),
            ("g.el", "0 1\n\n3\n".to_owned(), "g.el:3: the second vertex of the edge is missing in '3'; is the file cut off"),
            (
                "g.gr",
                "p sp 2 1\na 1,2 1\n".to_owned(),
                "g.gr:2: '1,2' is not a vertex number; fields are separated by blanks or tabs, not by commas",
            ),
            ("g.el", "0 1\n0 -1\n".to_owned(), "g.el:2: '-1' is negative"),
            ("g.el", "0 4294967168\n".to_owned(), "g.el:1: vertex 4294967168, but socbfs numbers vertices with 32 bits"),
            ("g.el", "0 1\n0 99999999999999999999\n".to_owned(), "g.el:2: a vertex beyond 64 bits"),
            ("g.gr", "p sp 2 1\na 1 2 2;3\n".to_owned(), "g.gr:2: '2;3' is not a weight"),
            ("g.el", "0 1\n\u{1}\0\u{7f}\n".to_owned(), "g.el:2: '\\x01\\x00\\x7f' is not a vertex number"),
            (
                "g.el",
                "# nothing\n".to_owned(),
                "g.el: there is no edge in it, and no comment that gives the number of vertices; is it cut off?",
            ),
            ("g.el", " \n\n".to_owned(), "g.el: there is no edge in it"),
            ("g.el", "\u{feff}1 2\n".to_owned(), "g.el:1: the file starts with a UTF-8 byte-order mark, three bytes"),
            ("g.txt", "\u{feff}# x\n1 2\n".to_owned(), "g.txt:1: the file starts with a UTF-8 byte-order mark, three bytes"),
            ("g.mtx", "\u{feff}%%MatrixMarket\n".to_owned(), "g.mtx:1: the file starts with a UTF-8 byte-order mark, three bytes"),
            ("g.mtx", mtx("3 3 1\n"), "g.mtx: the size line announces 1 entry, but the file holds 0"),
            ("g.gr", "p sp 2 1\n".to_owned(), "g.gr: the header announces 1 edge, but the file holds 0"),
            ("g.mtx", "1 1 1\n".to_owned(), "g.mtx:1: '1 1 1' is not a MatrixMarket banner"),
            (
                "g.mtx",
                "%%MatrixMarket matrix array real general\n".to_owned(),
                "g.mtx: a MatrixMarket matrix in array layout is not a sparse matrix",
            ),
            ("g.mtx", "%%MatrixMarket matrix coordinate quaternion general\n".to_owned(), "g.mtx:1: unknown kind of values 'quaternion'"),
            ("g.mtx", "%%MatrixMarket matrix coordinate real lopsided\n".to_owned(), "g.mtx:1: unknown symmetry 'lopsided'"),
            ("g.mtx", mtx("% c\n3 4 1\n1 1 1\n"), "g.mtx:3: the matrix has 3 rows and 4 columns"),
            ("g.mtx", mtx("% c\n3 3\n1 1 1\n"), "g.mtx:3: '3 3' is not a size line; it is 'rows columns entries'"),
            ("g.mtx", mtx("3 3 1\n0 1 1\n"), "g.mtx:3: vertex 0, but this format counts vertices from 1"),
            ("g.mtx", mtx("3 3 2\n1 1 1\n1 4 1\n"), "g.mtx:4: vertex 4, but the header says that vertices go from 1 to 3"),
            ("g.mtx", mtx("3 3 1\n1 2\n"), "g.mtx:3: the value of the edge is missing; is the file cut off?"),
            ("g.mtx", mtx("3 3 1\n1 2 3 4\n"), "g.mtx:3: unexpected '4' after the edge"),
            ("g.mtx", mtx("3 3 2\n1 2 3\n"), "g.mtx: the size line announces 2 entries, but the file holds 1; is it cut off?"),
            ("g.mtx", mtx(""), "g.mtx: the file ends before its size line"),
            ("g.mtx", mtx("5000000000 5000000000 1\n"), "g.mtx: the graph has 5000000000 vertices"),
            ("g.gr", "a 1 2 3\n".to_owned(), "g.gr:1: 'a 1 2 3' is found where the header of a DIMACS .gr file is expected"),
            ("g.gr", "c\np max 3 1\n".to_owned(), "g.gr:2: a DIMACS file of kind 'max' is not read"),
            ("g.gr", "p sp 3 x\n".to_owned(), "g.gr:1: 'p sp 3 x' does not have two numbers"),
            ("g.gr", "p sp 3 1\ne 1 2\n".to_owned(), "g.gr:2: an edge line starts with 'a', this one with 'e'"),
            ("g.gr", "p sp 3 1\na 1 4 1\n".to_owned(), "g.gr:2: vertex 4, but"),
            ("g.gr", "p tw 3 2\n1 2\n".to_owned(), "g.gr: the header announces 2 edges, but the file holds 1; is it cut off?"),
            ("g.gr", "c\n".to_owned(), "g.gr: there is no header line"),
            ("g.graph", "x\n".to_owned(), "g.graph:1: 'x' is not a METIS header"),
            ("g.graph", "2 1 3\n2\n1\n".to_owned(), "g.graph:1: '2 1 3' is not a METIS header"),
            ("g.graph", "2 1\n2\n".to_owned(), "g.graph: the header announces 2 vertices, but only 1 row follows"),
            (
                "g.graph",
                "2 2\n2\n1\n".to_owned(),
                "g.graph: the header announces 2 edges, so 4 neighbours (each edge at both ends), but the rows hold 2",
            ),
            ("g.graph", "2 1\n% c\n3\n1\n".to_owned(), "g.graph:3: vertex 3, but the header says that there are 2"),
            ("g.graph", "2 1\n0\n1\n".to_owned(), "g.graph:2: vertex 0, but this format counts vertices from 1"),
            ("g.graph", "2 1\n2\n1\n2\n".to_owned(), "g.graph:4: a row more than the 2 vertices"),
            ("g.graph", "2 1 1\n2 1\n1\n".to_owned(), "g.graph:3: the weight of an edge is missing at vertex 2"),
            ("g.graph", "% c\n".to_owned(), "g.graph: there is no header line"),
            ("g.adj", "Adjacency\n1\n".to_owned(), "g.adj:1: 'Adjacency' is found where 'AdjacencyGraph'"),
            (
                "g.adj",
                "AdjacencyGraph\n3\n1\n0\n1\n".to_owned(),
                "g.adj: the file ends before the offsets (2 of 3 numbers read); is it cut off?",
            ),
            ("g.adj", "AdjacencyGraph\n2\n1\n0\n2\n0\n".to_owned(), "g.adj:5: the offset of vertex 1 is 2"),
            ("g.adj", "AdjacencyGraph\n2\n1\n0\n1\n2\n".to_owned(), "g.adj:6: '2' is not one of the 2 vertices"),
            ("g.adj", "AdjacencyGraph\n2\n1\n0\n1\n1\n7\n".to_owned(), "g.adj:7: more numbers follow"),
            ("g.adj", "AdjacencyGraph\n0\n1\n0\n".to_owned(), "g.adj:4: edges follow, but the graph has no vertices"),
            ("g.adj", "AdjacencyGraph\n2\n-1\n".to_owned(), "g.adj:3: '-1' is found where a number below 2^32 is expected"),
            ("g.adj", "AdjacencyGraph\n2\nx\n".to_owned(), "g.adj:3: 'x' is not a number"),
            ("graph_input.dat", "2\n0 1\n1 1\n2\n2\n".to_owned(), "graph_input.dat:4: the source 2 is not one of the 2 vertices"),
            ("graph_input.dat", "2\n0 1\n1 1\n0\n3\n".to_owned(), "graph_input.dat:5: 3 edges are announced, but the degrees add up to 2"),
            ("graph_input.dat", "2\n0 1\n2 1\n".to_owned(), "graph_input.dat:3: the edges of vertex 1 start at 2"),
            ("graph_input.dat", "2\n0 4294967295\n4294967295 1\n".to_owned(), "graph_input.dat:3: the degrees add up to 4294967296"),
            ("graph_input.dat", "2\n0 1\n1 1\n0\n2\n1 1\n2 1\n".to_owned(), "graph_input.dat:7: '2' is not one of the 2 vertices"),
            (
                "graph_input.dat",
                "2\n0 1\n1 1\n0\n2\n1 1\n0\n".to_owned(),
                "graph_input.dat: the file ends before the edges (3 of 4 numbers read)",
            ),
        ] {
            let message = message(name, text.as_bytes());
            assert!(message.starts_with(wanted), "{text:?}\n got: {message}\nwant: {wanted}");
            if !name.ends_with(".dat") {
                // Compressed text is read by another path, which must give the same message.
                let packed = super::message(&format!("{name}.gz"), &gzip(text.as_bytes()));
                assert_eq!(packed.replacen(".gz", "", 1), message);
            }
        }
    }

    #[test]
    fn missing_empty_and_mislabelled_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let fails = |name: &str| read(&folder.path().join(name), &ReadOptions::default()).unwrap_err();
        assert!(matches!(*fails("missing.el").fault, Fault::Open { .. }));
        assert!(fails("missing.el").to_string().contains("check the spelling"));
        let named = read(Path::new("kronecker"), &ReadOptions::default()).unwrap_err().to_string();
        assert!(named.contains("can't open it: ") && named.ends_with("; the command line names the generator kronecker:SCALE"), "{named}");
        assert!(matches!(*fails("").fault, Fault::Directory));
        for name in ["g.el", "g.sg", "g.txt", "g.el.gz"] {
            fs::write(folder.path().join(name), "").unwrap();
            assert!(matches!(*fails(name).fault, Fault::Empty), "{name}");
        }
        fs::write(folder.path().join("none.el.gz"), gzip(b"")).unwrap();
        assert!(matches!(*fails("none.el.gz").fault, Fault::Empty));
        fs::write(folder.path().join("plain.el.gz"), "0 1\n").unwrap();
        assert!(fails("plain.el.gz").to_string().contains("does not start as gzip data does"));
    }

    #[test]
    fn faults_in_large_files_are_reported_with_the_right_line() {
        // Several chunks, blocks and megabytes; the fault is far from all their borders.
        let lines = 800_000;
        let mut text = "# head\n".to_owned();
        (0..lines).for_each(|line| text += &format!("{} {}\n", line, line / 2));
        let good = text.clone();
        text.insert_str(text.find("654321 ").unwrap(), "12 bad\n");
        for (name, text) in [("g.el", text.clone().into_bytes()), ("g.el.zst", zstd(text.as_bytes()))] {
            assert!(message(name, &text).contains(":654323: 'bad' is not a vertex number"));
        }
        for (name, text) in [("g.el", good.clone().into_bytes()), ("g.el.xz", xz(good.as_bytes(), Some(1 << 20)))] {
            let (vertices, edges, _) = read_bytes(name, &text).unwrap();
            assert_eq!(vertices, lines);
            assert!(edges.iter().enumerate().all(|(line, &edge)| edge == [line as u32, line as u32 / 2]));
            assert_eq!(edges.len(), lines);
        }
        let matrix = format!("%%MatrixMarket matrix coordinate pattern general\n{lines} {lines} {lines}\n{}", &good[7..]);
        assert!(message("g.mtx", matrix.as_bytes()).contains("g.mtx:3: vertex 0"));
    }
}

mod compression {
    use super::*;

    const TEXT: &str = "0 1\n1 2\n2 3\n";

    #[test]
    fn several_members_streams_and_frames_are_read_as_one_file() {
        let expected = ok("g.el", TEXT);
        let (one, two) = TEXT.as_bytes().split_at(6); // within a line
        for (name, bytes) in [
            ("g.el.gz", [gzip(one), gzip(two)].concat()),
            ("g.el.xz", [xz(one, None), xz(two, None)].concat()),
            ("g.el.zst", [zstd(one), zstd(two)].concat()),
            ("g.el.zst", [&[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(TEXT.as_bytes())].concat()),
            ("g.el", gzip(TEXT.as_bytes())), // recognised by content
        ] {
            assert_eq!(read_bytes(name, &bytes).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn damaged_data_is_reported() {
        let text = TEXT.repeat(1000);
        for (name, good) in
            [("g.el.gz", gzip(text.as_bytes())), ("g.el.xz", xz(text.as_bytes(), None)), ("g.el.zst", zstd(text.as_bytes()))]
        {
            assert!(read_bytes(name, &good).is_ok());
            let error = message(name, &good[..good.len() - 1]);
            assert!(error.contains("can't decompress"), "{name} without its last byte: {error}");
            let error = message(name, &good[..good.len() / 2]);
            assert!(error.contains("can't decompress"), "{name} without its second half: {error}");
            let error = message(name, &[&good[..], b"rubbish!"].concat());
            assert!(error.contains("can't decompress"), "{name} with more behind it: {error}");
        }
        // Flips a bit of the checksum of the content, which is in the last bytes.
        for (name, mut bytes) in [("g.el.gz", gzip(text.as_bytes())), ("g.el.zst", zstd(text.as_bytes()))] {
            let at = bytes.len() - if name.ends_with("gz") { 8 } else { 1 };
            bytes[at] ^= 1;
            assert!(message(name, &bytes).contains("can't decompress"), "{name}");
        }
    }

    /// No text of a decompressor's source code, and a cure that fits.
    #[test]
    fn damage_is_described_in_words() {
        let text: String = (0..40_000_u32).map(|line| format!("{} {}\n", line, line.wrapping_mul(2_654_435_761) >> 12)).collect();
        for (name, packed) in [
            ("gzip", gzip(text.as_bytes())),
            ("xz", xz(text.as_bytes(), None)),
            ("xz", xz(text.as_bytes(), Some(4096))),
            ("zstd", zstd(text.as_bytes())),
        ] {
            for part in 1..20 {
                let end = packed.len() * part / 20;
                let cut = message("g.el", &packed[..end]);
                assert_eq!(cut, format!("g.el: can't decompress it as {name}: it ends early; is it cut off?"), "cut to {end}");
                let mut damaged = packed.clone();
                damaged[end..end + 4].iter_mut().for_each(|byte| *byte ^= 0x5a);
                // Where the decompressor does not notice the damage at once, the reader may find it in the text.
                let error = message("g.el", &damaged);
                let known = error.contains(&format!("the {name} data are damaged")) && error.ends_with("; fetch the file again");
                assert!(known || error.contains("is it cut off?") || error.starts_with("g.el:"), "at {end}: {error}");
                assert!(!error.contains(['{', '}']) && !error.contains("Error"), "at {end}: {error}");
            }
            for more in [&b"r"[..], b"rubbish", b"rubbish! and more of it"] {
                let error = message("g.el", &[&packed[..], more].concat());
                let wanted = format!("the {name} data are damaged, or other bytes follow them; fetch the file again");
                // The first bytes may be too few for a header of gzip.
                assert!(error.contains(&wanted) || name == "gzip" && error.contains("is it cut off?"), "{error}");
            }
        }
    }

    #[test]
    fn bipartite_graphs_of_konect_are_refused() {
        let error = message("out.movielens", b"% bip posweighted\n% 3 2 2\n1 1\n2 1\n1 2\n");
        assert!(error.starts_with("out.movielens:1: this is a bipartite graph of KONECT"), "{error}");
        assert!(error.ends_with("add the size of the left side to every number of the right side, and remove the line"), "{error}");
        for header in ["% sym unweighted", "% bip is what this is not", "% bip"] {
            assert_eq!(ok("g.el", &format!("{header}\n{TEXT}")), ok("g.el", TEXT));
        }
    }

    #[test]
    fn oversized_zstd_windows_are_refused() {
        // A frame header that requires a window of 2 TiB, and one that announces a content of 2^62 bytes in a single segment.
        let window = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 1, 0, 0];
        let segment = [0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0x40, 1, 0, 0];
        for bytes in [&window[..], &segment[..]] {
            let error = message("g.el.zst", bytes);
            assert!(
                error.contains("more memory than the limit of 128.0 MiB") && error.ends_with("first with `zstd -d --long=31`"),
                "{error}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_read_as_a_stream() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe.el");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for bytes in [TEXT.as_bytes().to_vec(), gzip(TEXT.as_bytes())] {
            let expected = ok("g.el", TEXT);
            let writer = {
                let path = path.clone();
                std::thread::spawn(move || {
                    let mut pipe = fs::OpenOptions::new().write(true).open(path).unwrap();
                    for byte in bytes {
                        pipe.write_all(&[byte]).unwrap();
                    }
                })
            };
            assert_eq!(parts(&read(&path, &ReadOptions::default()).unwrap()), expected);
            writer.join().unwrap();
        }
    }
}

mod writers {
    use super::*;

    fn written(folder: &Path, format: Format, list: &EdgeList, directed: bool) -> Parts {
        let path = folder.join(format!("g.{format}"));
        write(&path, format, list, &WriteOptions { directed, progress: None }).unwrap();
        parts(&read(&path, &ReadOptions::default()).unwrap())
    }

    /// The text that is written for three entries.
    fn text(format: Format, vertices: usize, listing: Listing, directed: bool) -> String {
        let folder = tempfile::tempdir().unwrap();
        let list = EdgeList::new(vertices, vec![[0, 1], [2, 1], [2, 2]], listing).unwrap();
        let path = folder.path().join("g");
        write(&path, format, &list, &WriteOptions { directed, progress: None }).unwrap();
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn written_text_follows_the_formats() {
        let text = |format, listing| text(format, 4, listing, false);
        assert_eq!(text(Format::EdgeListText, Listing::Unknown), "# socbfs vertices 4 entries 3\n0 1\n2 1\n2 2\n");
        assert_eq!(text(Format::EdgeListText, Listing::Once), "# socbfs vertices 4 entries 3 listing once\n0 1\n2 1\n2 2\n");
        assert_eq!(text(Format::EdgeListText, Listing::Symmetric), "# socbfs vertices 4 entries 3 listing symmetric\n0 1\n2 1\n2 2\n");
        let head = "%%MatrixMarket matrix coordinate pattern";
        assert_eq!(text(Format::MatrixMarket, Listing::Unknown), format!("{head} general\n4 4 3\n1 2\n3 2\n3 3\n"));
        assert_eq!(text(Format::MatrixMarket, Listing::Once), format!("{head} symmetric\n4 4 3\n2 1\n3 2\n3 3\n"));
        assert_eq!(
            text(Format::MatrixMarket, Listing::BothDirections),
            format!("{head} general\n% socbfs listing both-directions\n4 4 3\n1 2\n3 2\n3 3\n")
        );
    }

    #[test]
    fn sg_lists_edges_in_both_directions_and_arcs_in_one() {
        let folder = tempfile::tempdir().unwrap();
        let both = vec![[0, 1], [1, 0], [1, 2], [2, 1]];
        for (edges, listing) in [
            (vec![[0, 1], [2, 1]], Listing::Once),
            (vec![[1, 0], [1, 2]], Listing::Unknown),
            (both.clone(), Listing::Unknown),
            (both.clone(), Listing::BothDirections),
            (vec![[0, 1], [2, 1]], Listing::Symmetric),
        ] {
            let list = EdgeList::new(4, edges, listing).unwrap();
            assert_eq!(written(folder.path(), Format::GapSg, &list, false), (4, both.clone(), Listing::BothDirections));
            if listing == Listing::Symmetric {
                assert_eq!(written(folder.path(), Format::GapSg, &list, true), (4, both.clone(), Listing::Unknown));
                let bytes = fs::read(folder.path().join("g.sg")).unwrap();
                assert_eq!((bytes[0], &bytes[17..73]), (1, &bytes[73..]), "incoming arcs as outgoing");
            }
        }
        let list = EdgeList::new(4, vec![[3, 1], [0, 1], [0, 0]], Listing::Unknown).unwrap();
        assert_eq!(written(folder.path(), Format::GapSg, &list, true), (4, vec![[0, 0], [0, 1], [3, 1]], Listing::Unknown));
        let bytes = fs::read(folder.path().join("g.sg")).unwrap();
        let incoming: Vec<u8> = [0_u64, 1, 3, 3, 3].iter().flat_map(|offset| offset.to_le_bytes()).collect();
        assert_eq!(bytes[17 + 5 * 8 + 3 * 4..][..40], incoming);
    }

    #[test]
    fn a_self_loop_stays_one_entry() {
        let folder = tempfile::tempdir().unwrap();
        for (listing, directed) in
            [(Listing::Once, false), (Listing::Unknown, false), (Listing::Symmetric, false), (Listing::Symmetric, true)]
        {
            let list = EdgeList::new(3, vec![[0, 1], [1, 1], [2, 2], [2, 2]], listing).unwrap();
            let expected = vec![[0, 1], [1, 0], [1, 1], [2, 2], [2, 2]];
            assert_eq!(written(folder.path(), Format::GapSg, &list, directed).1, expected, "{listing:?}");
        }
    }

    #[test]
    fn a_directed_graph_keeps_its_arcs_in_text() {
        let text = |format, listing| text(format, 3, listing, true);
        let head = "%%MatrixMarket matrix coordinate pattern general\n";
        assert_eq!(text(Format::MatrixMarket, Listing::Once), format!("{head}3 3 3\n1 2\n3 2\n3 3\n"));
        let mirrored = format!("{head}% socbfs listing both-directions\n3 3 5\n1 2\n2 1\n3 2\n2 3\n3 3\n");
        assert_eq!(text(Format::MatrixMarket, Listing::Symmetric), mirrored);
        assert_eq!(text(Format::EdgeListText, Listing::Once), "# socbfs entries 3\n0 1\n2 1\n2 2\n");
        assert_eq!(text(Format::EdgeListText, Listing::Symmetric), "# socbfs entries 5 listing both-directions\n0 1\n1 0\n2 1\n1 2\n2 2\n");
    }

    #[test]
    fn refused_writes_leave_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let list = EdgeList::new(2, vec![[0, 1]], Listing::Once).unwrap();
        let fails = |list: &EdgeList, name: &str, format| {
            let error = write(&folder.path().join(name), format, list, &WriteOptions::default()).unwrap_err();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{error}");
            error.to_string()
        };
        assert!(fails(&list, "g.graph", Format::Metis).contains("metis is read, but not written; write el or mtx or sg"));
        assert!(fails(&list, "g.el.gz", Format::EdgeListText).contains("without the suffix"));
        assert!(fails(&list, "missing/g.el", Format::EdgeListText).contains("missing/g.el: can't write it: "));
        assert!(fails(&list, "", Format::GapSg).contains("directory"));
        let bad = EdgeList::new(2, vec![[0, 1], [2, 0]], Listing::Once).unwrap();
        for format in Format::WRITABLE {
            assert!(fails(&bad, "g", format).contains("edge 1 joins 2 and 0"));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported() {
        let list = EdgeList::new(100, (0..100_000).map(|k| [k % 100, k % 7]).collect(), Listing::Once).unwrap();
        for format in Format::WRITABLE {
            let error = write(Path::new("/dev/full"), format, &list, &WriteOptions::default()).unwrap_err().to_string();
            assert!(error.starts_with("/dev/full: can't write it") && error.contains("free some space"), "{error}");
        }
    }

    #[test]
    fn progress_reaches_the_end() {
        use std::sync::atomic::{AtomicU64, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let list = EdgeList::new(100, (0..300_000).map(|k| [k % 100, k % 7]).collect(), Listing::Unknown).unwrap();
        for format in Format::WRITABLE {
            let (done, total) = (AtomicU64::new(0), AtomicU64::new(0));
            let update = |now, all| {
                done.fetch_max(now, Ordering::Relaxed);
                total.store(all, Ordering::Relaxed);
            };
            let path = folder.path().join(format!("g.{format}"));
            write(&path, format, &list, &WriteOptions { directed: false, progress: Some(&update) }).unwrap();
            assert_eq!(done.swap(0, Ordering::Relaxed), total.load(Ordering::Relaxed));
            read(&path, &ReadOptions { format: None, progress: Some(&update), ..ReadOptions::default() }).unwrap();
            assert_eq!(done.load(Ordering::Relaxed), fs::metadata(&path).unwrap().len());
            assert_eq!(total.load(Ordering::Relaxed), fs::metadata(&path).unwrap().len());
        }
    }
}

/// Writes any list in the formats that socbfs reads but does not write, and in variants that it does not write.
mod print {
    use std::fmt::Write;

    use super::*;

    fn rows(vertices: usize, edges: &[[Vertex; 2]]) -> Vec<Vec<Vertex>> {
        let mut rows = vec![Vec::new(); vertices];
        edges.iter().for_each(|&[source, target]| rows[source as usize].push(target));
        rows
    }

    pub(super) fn edge_list(edges: &[[Vertex; 2]], decorate: &dyn Fn(usize) -> (&'static str, &'static str, &'static str)) -> String {
        let mut text = String::new();
        for (line, [source, target]) in edges.iter().enumerate() {
            let (before, between, behind) = decorate(line);
            write!(text, "{before}{source}{between}{target}{behind}").unwrap();
        }
        text
    }

    pub(super) fn dimacs(vertices: usize, edges: &[[Vertex; 2]], arcs: bool) -> String {
        let mut text = format!("c x\np {} {vertices} {}\n", if arcs { "sp" } else { "tw" }, edges.len());
        for (line, [source, target]) in edges.iter().enumerate() {
            let (source, target) = (source + 1, target + 1);
            if arcs { writeln!(text, "a {source} {target} {line}") } else { writeln!(text, "{source} {target}") }.unwrap();
        }
        text
    }

    /// METIS, with the flags of `fmt`; `edges` must be listed in both directions.
    pub(super) fn metis(vertices: usize, edges: &[[Vertex; 2]], fmt: [bool; 3], constraints: usize) -> String {
        let [sizes, weights, edge_weights] = fmt;
        let digits: String = fmt.iter().map(|&flag| if flag { '1' } else { '0' }).collect();
        let mut text = format!("{vertices} {} {digits}", edges.len() / 2);
        if weights {
            write!(text, " {constraints}").unwrap();
        }
        text.push('\n');
        for row in rows(vertices, edges) {
            let mut words = vec!["3".to_owned(); usize::from(sizes) + if weights { constraints } else { 0 }];
            for target in row {
                words.push((target + 1).to_string());
                if edge_weights {
                    words.push("5".into());
                }
            }
            writeln!(text, "{}", words.join(" ")).unwrap();
        }
        text
    }

    pub(super) fn ligra(vertices: usize, edges: &[[Vertex; 2]], weighted: bool) -> String {
        let rows = rows(vertices, edges);
        let mut text = format!("{}\n{vertices}\n{}\n", if weighted { "WeightedAdjacencyGraph" } else { "AdjacencyGraph" }, edges.len());
        let mut offset = 0;
        for row in &rows {
            writeln!(text, "{offset}").unwrap();
            offset += row.len();
        }
        rows.iter().flatten().for_each(|target| writeln!(text, "{target}").unwrap());
        if weighted {
            (0..edges.len()).for_each(|edge| writeln!(text, "{}", 5 - edge as i64).unwrap());
        }
        text
    }

    pub(super) fn rodinia(vertices: usize, edges: &[[Vertex; 2]]) -> String {
        let rows = rows(vertices, edges);
        let mut text = format!("{vertices}\n");
        let mut start = 0;
        for row in &rows {
            writeln!(text, "{start} {}", row.len()).unwrap();
            start += row.len();
        }
        writeln!(text, "\n0\n\n{}", edges.len()).unwrap();
        rows.iter().flatten().for_each(|target| writeln!(text, "{target} 7").unwrap());
        text
    }

    pub(super) fn matrix_market(vertices: usize, edges: &[[Vertex; 2]], kind: &str, value: &str) -> String {
        let mut text = format!("%%MatrixMarket matrix coordinate {kind}\n% x\n{vertices} {vertices} {}\n", edges.len());
        edges.iter().for_each(|[source, target]| writeln!(text, "{} {}{value}", source + 1, target + 1).unwrap());
        text
    }

    pub(super) fn graph500(edges: &[[Vertex; 2]], packed: bool) -> Vec<u8> {
        edges
            .iter()
            .flat_map(|&[source, target]| if packed { vec![source, target, 0] } else { vec![source, 0, target, 0] })
            .flat_map(u32::to_le_bytes)
            .collect()
    }
}

/// Graphs of few edges, with repeats and self-loops. Some have so many vertices that their numbers have up to ten digits.
fn graphs() -> impl Strategy<Value = (usize, Vec<[Vertex; 2]>)> {
    prop_oneof![1_usize..40, Just(100_000), Just(4_000_000_000)].prop_flat_map(|vertices| {
        let end = prop_oneof![0..vertices as u32, 0..vertices.min(12) as u32];
        (Just(vertices), proptest::collection::vec([end.clone(), end], 0..60))
    })
}

/// Graphs with so few vertices that all rows are written out quickly.
fn small_graphs() -> impl Strategy<Value = (usize, Vec<[Vertex; 2]>)> {
    prop_oneof![1_usize..40, Just(1200)].prop_flat_map(|vertices| {
        let end = 0..vertices as u32;
        (Just(vertices), proptest::collection::vec([end.clone(), end], 0..60))
    })
}

fn listings() -> impl Strategy<Value = Listing> {
    prop_oneof![Just(Listing::Once), Just(Listing::Symmetric), Just(Listing::BothDirections), Just(Listing::Unknown)]
}

/// The entries sorted by row, in their given order within a row.
fn by_row(mut edges: Vec<[Vertex; 2]>) -> Vec<[Vertex; 2]> {
    edges.sort_by_key(|edge| edge[0]); // stable
    edges
}

/// The name and the bytes, plain or compressed.
fn packed(name: &str, bytes: Vec<u8>, how: u8) -> (String, Vec<u8>) {
    match how % 5 {
        0 => (format!("{name}.gz"), gzip(&bytes)),
        1 => (format!("{name}.xz"), xz(&bytes, Some(4096))),
        2 => (format!("{name}.zst"), zstd(&bytes)),
        _ => (name.to_owned(), bytes),
    }
}

/// A graph as a file of every format, each with the result that reading it must give.
fn files(vertices: usize, edges: &[[Vertex; 2]]) -> Vec<(&'static str, Option<Format>, Vec<u8>, Parts)> {
    let plain =
        |line: usize| [("", " ", "\n"), ("", "\t", "\r\n"), ("# x\n", " ", " 5\n"), (" ", "  ", " \n"), ("\n", " ", " 0.5 -7\n")][line % 5];
    let both: Vec<[Vertex; 2]> = edges.iter().flat_map(|&[source, target]| [[source, target], [target, source]]).collect();
    let rows = by_row(edges.to_vec());
    let largest = edges.iter().flatten().max().map_or(0, |&end| end as usize + 1);
    let unknown = (vertices, edges.to_vec(), Listing::Unknown);
    let symmetric = (vertices, edges.to_vec(), Listing::Symmetric);
    let by_rows = (vertices, rows, Listing::Unknown);
    let both_rows = (vertices, by_row(both.clone()), Listing::BothDirections);
    let mut files = vec![
        ("g.mtx", None, print::matrix_market(vertices, edges, "pattern general", "").into_bytes(), unknown.clone()),
        ("g.mtx", None, print::matrix_market(vertices, edges, "complex hermitian", " 1 -2.5e7").into_bytes(), symmetric.clone()),
        ("g.gr", None, print::dimacs(vertices, edges, true).into_bytes(), unknown),
        ("g.gr", None, print::dimacs(vertices, edges, false).into_bytes(), symmetric),
        ("g.graph", None, print::metis(vertices, &both, [false; 3], 1).into_bytes(), both_rows.clone()),
        ("g.graph", None, print::metis(vertices, &both, [true, true, true], 2).into_bytes(), both_rows),
        ("g.adj", None, print::ligra(vertices, edges, false).into_bytes(), by_rows.clone()),
        ("g.adj", None, print::ligra(vertices, edges, true).into_bytes(), by_rows.clone()),
        ("g.txt", Some(Format::Rodinia), print::rodinia(vertices, edges).into_bytes(), by_rows),
    ];
    if !edges.is_empty() {
        let scale = (largest.next_power_of_two(), edges.to_vec(), Listing::Once);
        files.push(("g.el", None, print::edge_list(edges, &plain).into_bytes(), (largest, edges.to_vec(), Listing::Unknown)));
        files.push(("g", Some(Format::Graph500Packed), print::graph500(edges, true), scale.clone()));
        files.push(("g", Some(Format::Graph500Int64), print::graph500(edges, false), scale));
    }
    files
}

/// First bytes of files of the formats and compressions.
const STARTS: &[&[u8]] = &[
    b"",
    b"%%MatrixMarket matrix coordinate pattern general\n3 3 3\n",
    b"p sp 3 3\n",
    b"3 3\n",
    b"AdjacencyGraph\n3 3\n",
    b"\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00",
    b"\x1f\x8b\x08\x00",
    b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd",
];

/// Few cases, so that the tests stay quick, unless `PROPTEST_CASES` sets their number.
fn config() -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    if asked { ProptestConfig::default() } else { ProptestConfig::with_cases(64) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn written_graphs_are_read_back((vertices, edges) in graphs(), listing in listings()) {
        let folder = tempfile::tempdir().unwrap();
        let list = EdgeList::new(vertices, edges.clone(), listing).unwrap();
        let back = |format: Format, directed| {
            let path = folder.path().join(format!("g.{format}"));
            write(&path, format, &list, &WriteOptions { directed, progress: None }).unwrap();
            parts(&read(&path, &ReadOptions::default()).unwrap())
        };
        prop_assert_eq!(back(Format::EdgeListText, false), (vertices, edges.clone(), listing));
        let triangle = |&[source, target]: &[Vertex; 2]| [source.max(target), source.min(target)];
        let lower = edges.iter().map(triangle).collect();
        let once = listing.is_once();
        let expected = if once { (vertices, lower, Listing::Symmetric) } else { (vertices, edges.clone(), listing) };
        prop_assert_eq!(back(Format::MatrixMarket, false), expected);
        // In a directed graph an entry is one arc, or two if the listing is symmetric.
        let mirror = |&[source, target]: &[Vertex; 2]| [[source, target], [target, source]].into_iter().take(1 + usize::from(source != target));
        let (arcs, listed): (Vec<[Vertex; 2]>, _) = match listing {
            Listing::Symmetric => (edges.iter().flat_map(mirror).collect(), Listing::BothDirections),
            Listing::Once => (edges.clone(), Listing::Unknown),
            _ => (edges.clone(), listing),
        };
        for format in [Format::EdgeListText, Format::MatrixMarket] {
            prop_assert_eq!(back(format, true), (vertices, arcs.clone(), listed));
        }
        if vertices <= 100_000 {
            let mut directed = arcs;
            directed.sort_unstable();
            prop_assert_eq!(back(Format::GapSg, true), (vertices, directed, Listing::Unknown));
            let mut arcs = edges.clone();
            arcs.sort_unstable();
            let mut reversed: Vec<[Vertex; 2]> = edges.iter().map(|&[source, target]| [target, source]).collect();
            reversed.sort_unstable();
            if once || reversed != arcs {
                // A self-loop has no other direction.
                arcs.extend(reversed.into_iter().filter(|[source, target]| source != target));
                arcs.sort_unstable();
            }
            prop_assert_eq!(back(Format::GapSg, false), (vertices, arcs, Listing::BothDirections));
        }
    }

    #[test]
    fn every_format_is_read((vertices, edges) in small_graphs(), how in any::<u8>()) {
        for (name, format, bytes, expected) in files(vertices, &edges) {
            let (name, bytes) = packed(name, bytes, how);
            let found = read_as(&name, &bytes, format);
            prop_assert!(found.is_ok(), "{name} {format:?}: {}", found.unwrap_err());
            prop_assert_eq!(found.unwrap(), expected, "{} {:?}", name, format);
        }
    }

    #[test]
    fn damaged_files_are_refused_or_read_without_a_panic(
        (vertices, edges) in small_graphs(), how in any::<u8>(), cut in proptest::option::of(any::<Index>()),
        changes in proptest::collection::vec((any::<Index>(), prop_oneof![any::<u8>(), Just(b' '), Just(b'\n'), b'0'..=b'9', Just(b'-')]), 0..5),
    ) {
        let vertices = vertices.min(50);
        let edges: Vec<[Vertex; 2]> = edges.iter().map(|edge| edge.map(|end| end % vertices as u32)).collect();
        for (name, format, bytes, _) in files(vertices, &edges) {
            let damage = |mut bytes: Vec<u8>| {
                if let Some(cut) = cut {
                    bytes.truncate(cut.index(bytes.len() + 1));
                }
                for (at, byte) in &changes {
                    if !bytes.is_empty() {
                        let at = at.index(bytes.len());
                        bytes[at] = *byte;
                    }
                }
                bytes
            };
            // Damage before the compression, and after it.
            let (packed_name, inner) = packed(name, damage(bytes.clone()), how);
            let _ = read_as(&packed_name, &inner, format);
            let (packed_name, outer) = packed(name, bytes, how);
            let _ = read_as(&packed_name, &damage(outer), format);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read_without_a_panic(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300),
            proptest::collection::vec(prop_oneof![Just(b' '), Just(b'\n'), b'0'..=b'3', Just(b'%'), Just(b'#'), Just(b'a')], 0..300),
        ],
        start in proptest::sample::select(STARTS),
    ) {
        let bytes = [start, &bytes[..]].concat();
        for format in Format::ALL {
            let _ = read_as("g", &bytes, Some(format));
        }
        for name in ["g", "g.txt", "g.gz", "g.sg.zst"] {
            let _ = read_bytes(name, &bytes);
        }
    }
}
