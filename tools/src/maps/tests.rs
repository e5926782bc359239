//! Files that are read, files that are refused with their place and cure, and random changes of valid files.

use std::{fs, path::Path};

use proptest::{collection::vec, prelude::*, sample::Index};
use socbfs_algo::grid::{Cell, GridOptions, GridSearch};

use super::{Map, read, write_picture};

/// # is blocked, . free, and ? unknown.
const DRAWN: [&str; 3] = ["..#.", ".?##", "...."];

fn drawn(map: &Map) -> Vec<String> {
    let row = |row| (0..map.grid.columns()).map(|column| if map.grid.is_free(Cell::new(row, column)) { '.' } else { '#' }).collect();
    (0..map.grid.rows()).map(row).collect()
}

/// The drawing as bytes, with these values for blocked, free and unknown cells.
fn cells(values: [u8; 3]) -> Vec<u8> {
    DRAWN.concat().bytes().map(|cell| values[b"#.?".iter().position(|&known| known == cell).unwrap()]).collect()
}

fn npy(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(head.len() as u16).to_le_bytes()[..], head.as_bytes(), data].concat()
}

fn png(colour: png::ColorType, depth: png::BitDepth, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 4, 3);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    encoder.write_header().unwrap().write_image_data(data).unwrap();
    bytes
}

const WHITE: [u8; 3] = [0, 255, 205];
const OCTILE: &[u8] = b"type octile\nheight 3\nwidth 4\nmap\n.GT.\n.OW@\nS...\n";

/// A valid file of each kind, all of the same drawing: only some have unknown cells.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let p5 = |most: u32, data: &[u8]| [format!("P5\n# a comment\n4 3\n{most}\n").as_bytes(), data].concat();
    let words: Vec<String> = cells(WHITE).iter().map(u8::to_string).collect();
    let wide: Vec<u8> = cells(WHITE).iter().flat_map(|&value| [value, value]).collect();
    let columns: Vec<u8> = (0..4).flat_map(|column| cells([0, 1, 0]).into_iter().skip(column).step_by(4)).collect();
    let alpha: Vec<u8> =
        cells([0, 1, 2]).iter().flat_map(|&cell| [if cell == 0 { 0 } else { 255 }, if cell == 2 { 0 } else { 255 }]).collect();
    vec![
        ("a.pgm", p5(255, &cells(WHITE))),
        ("deep.pgm", p5(65535, &wide)),
        ("text.pgm", format!("P2 4 # columns\n3 255\n{}", words.join("\n#x\n")).into_bytes()),
        ("a.map", OCTILE.to_vec()),
        ("b.map", String::from_utf8_lossy(OCTILE).replace('\n', "\r\n").into_bytes()),
        ("bool.npy", npy("|b1", "False", "(3, 4)", &cells([0, 1, 0]))),
        ("bytes.npy", npy("|i1", "True", "(3,4)", &columns)),
        ("grey.png", png(png::ColorType::Grayscale, png::BitDepth::Eight, &cells(WHITE))),
        ("deep.png", png(png::ColorType::Grayscale, png::BitDepth::Sixteen, &wide)),
        ("alpha.png", png(png::ColorType::GrayscaleAlpha, png::BitDepth::Eight, &alpha)),
        (
            "rgb.png",
            png(png::ColorType::Rgb, png::BitDepth::Eight, &cells(WHITE).iter().flat_map(|&light| [light; 3]).collect::<Vec<u8>>()),
        ),
    ]
}

#[test]
fn every_format_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files() {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let map = read(&path, false).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(drawn(&map), DRAWN.map(|row| row.replace('?', "#")), "{name}");
        let has_unknown = !name.ends_with(".map") && !name.ends_with(".npy");
        assert_eq!(map.unknown, u64::from(has_unknown), "{name}");
        let map = read(&path, true).unwrap();
        assert_eq!(drawn(&map), DRAWN.map(|row| row.replace('?', if has_unknown { "." } else { "#" })), "{name}");
    }
}

#[test]
fn a_yaml_file_names_an_image_and_its_meaning() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("maps")).unwrap();
    let image = |values: [u8; 3]| fs::write(folder.path().join("maps/room 1.pgm"), [b"P5 4 3 255\n", &cells(values)[..]].concat()).unwrap();
    let yaml = |lines: &str| {
        let path = folder.path().join("maps/room.yaml");
        fs::write(&path, format!("---\nresolution: 0.05 # metres\nimage: \"room 1.pgm\"\n{lines}")).unwrap();
        read(&path, false).map(|map| (drawn(&map), map.unknown)).map_err(|error| format!("{error} ({})", error.cure()))
    };
    let right = || Ok((DRAWN.map(|row| row.replace('?', "#")).to_vec(), 1));
    image(WHITE);
    assert_eq!(yaml("origin:\n- -10.0\n- 0.0\nnegate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.196\n"), right());
    assert_eq!(yaml("mode: scale\r\n"), right());
    // As navigation stacks write it today: a pixel of 205 is then free.
    assert_eq!(yaml("free_thresh: 0.25\n").unwrap().1, 0);
    image([255, 0, 100]);
    assert_eq!(yaml("negate: 1\norigin: [0, 0, 0]\n"), right());
    for lines in [
        "negate : 1\n",
        "\"negate\": 'TRUE'\n",
        "? negate\n: Yes\n",
        "negate:\t!!int 1 # x\n...\n# y\n",
        "further: {negate: 0, deep: [[0], {a: {b: c}}]}\nnegate: 1\n",
        "text: |\n  negate: 0\nnegate: on\n",
    ] {
        assert_eq!(yaml(lines), right(), "{lines}");
    }
    image([100, 0, 255]);
    assert_eq!(yaml("mode: raw\n"), right());
    assert_eq!(yaml("mode: RAW\n"), right());
    for (lines, wrong) in [
        ("negate: 2\n", "room.yaml:4: negate is \"2\" (it must be 0 or 1)"),
        ("\noccupied_thresh: NaN\n", "room.yaml:5: occupied_thresh is \"NaN\" (it must be a number from 0 to 1)"),
        ("free_thresh: -0.1\n", "room.yaml:4: free_thresh is \"-0.1\""),
        ("mode: fancy\n", "it must be trinary, scale or raw"),
        ("image: b.pgm\n", "room.yaml:4: image is given twice (remove one of them)"),
        ("free_thresh: 0.9\n", "free_thresh (0.9) is above occupied_thresh (0.65)"),
        ("negate 0\n", "room.yaml:4: it is not valid YAML: "),
        ("- 5\n", "room.yaml:4: it is not valid YAML: "),
        ("negate: [0]\n", "room.yaml:4: negate is a list or a map (it must be 0 or 1)"),
        ("negate:\n", "room.yaml:4: negate is \"\" (it must be 0 or 1)"),
        ("free_thresh: &a 0.1\noccupied_thresh: *a\n", "room.yaml:5: it refers to another value (*) (write that value here)"),
        ("resolution: 0.1\n", "room.yaml:4: resolution is given twice"),
        ("[a]: 1\n", "room.yaml:4: it is not `key: value`"),
        ("---\nnegate: 1\n", "room.yaml:5: it is not `key: value`"),
    ] {
        let error = yaml(lines).unwrap_err();
        assert!(error.contains(wrong), "{error}");
    }
    for text in [
        "\u{feff}image: maps/room 1.pgm\nnegate: 1\n",
        "%YAML 1.1\n---\nimage: maps/room 1.pgm\nnegate: 1\n",
        "{image: maps/room 1.pgm, origin: [0, 0, 0], negate: 1}\n",
        "  image: 'maps/room\n    1.pgm'\n  negate: 1\n",
    ] {
        image([255, 0, 100]);
        let path = folder.path().join("c.yaml");
        fs::write(&path, text).unwrap();
        assert_eq!(drawn(&read(&path, false).unwrap()), right().unwrap().0, "{text}");
    }
    let other = |text: &[u8]| {
        let path = folder.path().join("b.yml");
        fs::write(&path, text).unwrap();
        read(&path, false).unwrap_err().to_string()
    };
    assert!(other(b"image: c.pgm\n").contains("c.pgm: can't read it: "));
    // A pipe would block, and a device may do anything when it is opened.
    nix::unistd::mkfifo(&folder.path().join("pipe.pgm"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for image in ["pipe.pgm", "/dev/zero"] {
        assert!(other(format!("image: {image}\n").as_bytes()).contains("it is a device or a pipe"));
    }
    assert!(other(b"negate: 0\n").contains("names no image"));
    assert!(other(b"image:\n").contains("b.yml:1: image is \"\""));
    assert!(other(b"image: b.yml\n").contains("b.yml: neither PGM nor PNG"));
    assert!(other(b"image: a\n\xff").contains("b.yml:2: it is not UTF-8"));
    assert!(other(b"- image: a\n").contains("b.yml:1: it is not `key: value`"));
    assert!(other(&[b"image: a\n".as_slice(), &[b'#'; 1 << 16]].concat()).contains("and the description of a map at most 65536"));
    // As deep as a file may be.
    let deep = ["a: ", &"[".repeat(60_000)].concat();
    assert!(other(deep.as_bytes()).contains("b.yml:1: it is not valid YAML: "));
    assert!(other(["a:\n ", &"- ".repeat(30_000)].concat().as_bytes()).contains("names no image"));
}

/// In `raw`, a pixel is a number of 8 bits whatever the image has. Elsewhere the mean of its colours is not cut to a whole number.
#[test]
fn images_of_16_bits_and_of_colours_are_read_as_nav2_does() {
    let folder = tempfile::tempdir().unwrap();
    let seen = |mode: &str, name: &str, image: &[u8]| {
        fs::write(folder.path().join(name), image).unwrap();
        let path = folder.path().join("m.yaml");
        fs::write(&path, format!("image: {name}\n{mode}\n")).unwrap();
        let map = read(&path, false).unwrap();
        (drawn(&map).concat(), map.unknown)
    };
    let deep = |values: [u16; 3]| values.iter().flat_map(|value| value.to_be_bytes()).collect::<Vec<u8>>();
    // 100, 0 and 101 of 255; 128 of 65535 is nearer to 0 than to 1.
    for values in [[25_700, 128, 25_829], [25_828, 0, 65_535]] {
        let pgm = [b"P5 3 1 65535\n", &deep(values)[..]].concat();
        assert_eq!(seen("mode: raw", "deep.pgm", &pgm), ("#.#".to_owned(), 1), "{values:?}");
        let row = deep([values[0], values[1], values[2]]);
        let picture = png(png::ColorType::Grayscale, png::BitDepth::Sixteen, &[&row[..], &[0; 18]].concat());
        assert_eq!(seen("mode: raw", "deep.png", &picture).1, 1, "{values:?}");
    }
    // 205, 205 and 207 are 205.67 of 255, so occupied with 0.1935: free, and 205 with 0.1961 is not.
    let picture = |last: u8| png(png::ColorType::Rgb, png::BitDepth::Eight, &[205, 205, last].repeat(12));
    assert_eq!(seen("negate: 0", "rgb.png", &picture(207)).1, 0);
    assert_eq!(seen("negate: 0", "rgb.png", &picture(205)).1, 12);
}

#[test]
fn damaged_files_are_refused_with_place_and_cure() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |bytes: &[u8]| {
        let path = folder.path().join("m");
        fs::write(&path, bytes).unwrap();
        let error = read(&path, false).unwrap_err();
        assert!(!error.cure().is_empty());
        error.to_string().replace(&format!("{}/", folder.path().display()), "")
    };
    let huge = npy("|b1", "False", "(4294967295, 4294967295)", b"1");
    for (bytes, error) in [
        (&b""[..], "m: the file is empty"),
        (b"P6\n1 1\n255\nabc", "m: the content is of no known format"),
        (b"P5\n-3 4\n255\n", "m:2: the width is \"-3\""),
        (b"P5\n+3 4\n255\n", "m:2: the width is \"+3\""),
        (b"P5\n3 0\n255\n", "m:2: the height is \"0\""),
        (b"P5\n3 99999999999\n255\n", "m:2: the height is \"99999999999\""),
        (b"P5\n3\n", "m:3: the height is \"\""),
        (b"P5 3 4\n65536\n", "m:2: the value of white is \"65536\""),
        (b"P5 2 2 255\nabc", "m, byte 11: 2 x 2 cells need 4 bytes, and 3 are there"),
        (b"P5 2 2 256\nabcdefg", "m, byte 11: 2 x 2 cells need 8 bytes, and 7 are there"),
        (b"P5 2 2 255\nabcdef", "m, byte 11: 2 x 2 cells need 4 bytes, and 6 are there"),
        (b"P5 2 2 99\nabcz", "m, byte 13: pixel 122 is lighter than white, 99"),
        (b"P5 4294967295 4294967295 255\nab", "m, byte 29: 4294967295 x 4294967295 cells need "),
        (b"P2 4294967295 4294967295 255\n1 1", "m, byte 28: 4294967295 x 4294967295 cells need "),
        (b"P2 2 1 9\n1\n-1\n", "m:3: \"-1\" is not the value of a pixel"),
        (b"P2 2 1 9\n1\n10\n", "m:3: \"10\" is not the value of a pixel"),
        (b"P2 2 1 9\n1  #2\n", "m:3: it ends after 1 of 1 x 2 cells"),
        (b"P2 2 1 9\n1 2 3\n", "m:2: \"3\" follows 1 x 2 cells"),
        (b"type tile\n", "m:1: \"type tile\" is not known"),
        (b"type octile\nheight -2\n", "m:2: the height is \"-2\""),
        (b"type octile\nheight 1\nmap\n.", "m: the size is missing"),
        (b"type octile\nheight 1\n", "m:3: \"\" is not known"),
        (b"type octile\nheight 1 2\n", "m:2: \"height 1 2\" is not known"),
        (b"type octile\nheight 1\nheight 1\n", "m:3: the height is given twice"),
        (b"type octile\nheight 2\nwidth 2\nmap\n..\n", "m: it ends after 1 of 2 rows"),
        (b"type octile\nheight 2\nwidth 2\nmap\n..\n.", "m:6: the row has 1 of 2 cells"),
        (b"type octile\nheight 1\nwidth 2\nmap\n.x\n", "m:5: column 1 is \"x\""),
        (b"type octile\nheight 1\nwidth 2\nmap\n..\n..\n", "m:6: \"..\" follows 1 rows"),
        (&npy("<f8", "False", "(1, 1)", &[0; 8]), "m: its values are \"<f8\""),
        (&npy("|i1", "False", "(1, 3)", &[0, 100, 255]), "m, byte 71: a cell is 100, neither 1 (free) nor 0 (blocked)"),
        (&npy("|i1", "True", "(1, 3)", &[0, 0, 255]), "m, byte 71: a cell is -1, neither"),
        (&npy("|u1", "False", "(1, 3)", &[0, 0, 255]), "m, byte 72: a cell is 255, neither"),
        (&npy("|b1", "False", "(2,)", &[0; 2]), "m: its shape is (2,)"),
        (&npy("|b1", "False", "(0, 2)", &[]), "m: its shape is (0, 2)"),
        (&npy("|b1", "False", "(-1, 2)", &[]), "m: its shape is (-1, 2)"),
        (&npy("|b1", "False", "(2, 2)", &[0; 5]), "2 x 2 cells need 4 bytes, and 5 are there"),
        (&huge, "4294967295 x 4294967295 cells need "),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "m: its header claims 4294967295 bytes"),
        (b"\x93NUMPY\x01\x00", "m: it ends within its header"),
        (b"\x89PNG\r\n\x1a\n", "m: it is not a valid PNG: "),
    ] {
        let found = refused(bytes);
        assert!(found.starts_with(error) || found.contains(error) && error.contains(" cells need "), "{found}: {error}");
    }
    let long = refused(&[b"P5\n".as_slice(), &[b'7'; 1 << 20]].concat());
    assert!(long.len() < 100 && long.starts_with("m:2: the width is \"777"), "{long}");
    assert!(refused(&[b"P5\n#".as_slice(), &[b'#'; 1 << 20]].concat()).starts_with("m:2: the width is \"\""));
    let mut lying = png(png::ColorType::Grayscale, png::BitDepth::Eight, &cells(WHITE));
    lying[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    let mut sum = flate2::Crc::new();
    sum.update(&lying[12..29]);
    lying[29..33].copy_from_slice(&sum.sum().to_be_bytes());
    assert!(refused(&lying).contains("65535 x 65535 cells are more than "));
    assert!(read(Path::new("/nowhere/a.pgm"), false).unwrap_err().to_string().contains("/nowhere/a.pgm: can't read it: "));
    assert!(read(folder.path(), false).is_err());
}

proptest! {
    /// A file with random changes, cut off or not, is a map or refused. What is read has no more cells than a file of its kind can have.
    #[test]
    fn changed_files_are_read_or_refused(
        file in any::<Index>(),
        changes in vec((any::<Index>(), any::<u8>(), 0..3_u8), 0..6),
        words in vec((any::<Index>(), prop::sample::select(vec!["-1", "0", "7", "65536", "4294967295", "99999999999999999999", "#", "\n"])), 0..2),
        end in prop::option::of(any::<Index>()),
    ) {
        let yaml = b"%YAML 1.2\n---\nimage: \"c.pgm\" # a\norigin: [-1.0, {a: b}]\nfree_thresh: 0.25\n? mode\n: raw\nx:\n  - &y |\n    z\n...\n";
        let files = [files(), vec![("b.yaml", yaml.to_vec())]].concat();
        let (name, mut bytes) = file.get(&files).clone();
        for (at, byte, kind) in changes {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => _ = (bytes.len() > 1).then(|| bytes.remove(at)),
            }
        }
        for (at, word) in words {
            let at = at.index(bytes.len());
            bytes.splice(at..(at + 1).min(bytes.len()), word.bytes());
        }
        if let Some(end) = end {
            bytes.truncate(end.index(bytes.len()));
        }
        let folder = tempfile::tempdir().unwrap();
        // A part of a file as the description of itself.
        for name in [name, "a.yaml"] {
            let path = folder.path().join(name);
            fs::write(&path, &bytes).unwrap();
            match read(&path, false) {
                Ok(map) => prop_assert!(map.grid.rows() * map.grid.columns() <= 9000 * bytes.len()),
                Err(error) => prop_assert!(error.to_string().len() < 600 && !error.cure().is_empty(), "{}", error),
            }
        }
    }
}

/// The picture of a search from the first cell of the drawing.
fn picture(kind: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.map");
    fs::write(&path, OCTILE).unwrap();
    let mut search = GridSearch::new(read(&path, false).unwrap().grid, &GridOptions { threads: 1, ..GridOptions::default() }).unwrap();
    search.run(&[Cell::new(0, 0)]).unwrap();
    let way: Vec<Cell> = search.path(Cell::new(2, 1)).unwrap().collect();
    let mut picture = Vec::new();
    write_picture(&mut picture, kind, &search, &super::levels(&search), &way).unwrap();
    picture
}

#[test]
fn a_pgm_has_the_distances() {
    let numbers: Vec<u8> =
        [0, 1, 65535, 65535, 1, 65535, 65535, 65535, 2, 3, 4, 5_u16].iter().flat_map(|level| level.to_be_bytes()).collect();
    assert_eq!(picture("pgm"), [b"P5\n4 3\n65535\n", &numbers[..]].concat());
}

#[test]
fn a_png_has_a_colour_for_every_kind_of_cell() {
    let bytes = picture("png");
    let mut decoder = png::Decoder::new(std::io::Cursor::new(&bytes));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut image = decoder.read_info().unwrap();
    assert_eq!((image.info().width, image.info().height), (512, 384));
    let mut pixels = vec![0; image.output_buffer_size().unwrap()];
    image.next_frame(&mut pixels).unwrap();
    let at = |row: usize, column: usize| <[u8; 3]>::try_from(&pixels[3 * (512 * (128 * row + 64) + 128 * column + 64)..][..3]).unwrap();
    let [black, grey, red] = super::output::OTHERS;
    assert_eq!([at(0, 0), at(1, 0), at(2, 0), at(2, 1)], [red; 4]);
    assert_eq!([at(0, 2), at(1, 1), at(0, 3)], [black, black, grey]);
    let light = |colour: [u8; 3]| colour.iter().map(|&part| u32::from(part)).sum::<u32>();
    assert!(light(at(0, 1)) > light(at(2, 2)) && light(at(2, 2)) > light(at(2, 3)), "{:?} {:?} {:?}", at(0, 1), at(2, 2), at(2, 3));
}
