//! Checks the order of the rooms of `src/`: a room imports only rooms before it. Also checks that the build script sees what they include.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The rooms in their order. A room may be listed before it exists.
const ROOMS: [&str; 25] = [
    "words",
    "stats",
    "machine",
    "files",
    "opencl",
    "memory",
    "graph",
    "input",
    "board",
    "bfs",
    "policy",
    "engine",
    "search",
    "many",
    "calibrate",
    "validate",
    "cluster",
    "bench",
    "runtime",
    "train",
    "analysis",
    "report",
    "doctor",
    "cli",
    "main",
];

/// Every `room` that `text` names as `crate::room` or `socbfs::room`, in `use` lines (grouped ones too) and in paths, with its line
/// number. Comments and string literals are ignored.
fn imports(text: &str) -> Vec<(usize, String)> {
    let code = without_comments_and_strings(text);
    let mut found = Vec::new();
    for name in ["crate", "socbfs"] {
        for (at, _) in code.match_indices(&format!("{name}::")) {
            // `mycrate::` is another crate.
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let line = 1 + code[..at].matches('\n').count();
            let rest = &code[at + name.len() + 2..];
            for room in first_names(rest) {
                found.push((line, room));
            }
        }
    }
    found
}

/// `graph::Csr` gives graph; `{graph::{Csr, Layout}, bfs}` gives graph and bfs.
fn first_names(path: &str) -> Vec<String> {
    let word = |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = path.trim_start().strip_prefix('{') else { return vec![word(path)] };
    let mut names = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(word(&group[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The text with comments and string literals replaced by blanks; line breaks are kept.
fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let blank = |code: &mut String, part: &str| code.extend(part.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if c == '"' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|&(_, c)| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            end.map_or(rest.len(), |(end, _)| end + 1)
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            rest[1..].find('\'').map_or(1, |end| end + 2)
        } else {
            code.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        blank(&mut code, &rest[..length]);
        rest = &rest[length..];
    }
    code
}

/// The forbidden imports of a file of `room`, each with its line number.
fn violations(room: &str, text: &str) -> Vec<String> {
    let place = |room: &str| ROOMS.iter().position(|known| *known == room);
    let Some(own) = place(room) else { return vec![format!("0: room {room} has no place in the list")] };
    imports(text)
        .into_iter()
        // Names that are not rooms, such as macros and items of lib.rs, are ignored.
        .filter(|(_, import)| import != room && place(import).is_some_and(|other| other > own))
        .map(|(line, import)| format!("{line}: {room} imports {import}, which comes after it in the list"))
        .collect()
}

/// Collects the Rust files below `folder`.
pub fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The files of all rooms: room, path within `src/`, text. `lib.rs` is not among them, since it declares all rooms and links to them.
fn sources() -> Vec<(String, PathBuf, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&source, &mut all);
    assert!(all.len() > 20, "only {} files found", all.len());
    let room = |inside: &Path| Path::new(inside.components().next().unwrap().as_os_str()).file_stem().unwrap().to_str().unwrap().to_owned();
    let all = all.iter().map(|path| {
        let inside = path.strip_prefix(&source).unwrap().to_owned();
        (room(&inside), inside, fs::read_to_string(path).unwrap())
    });
    all.filter(|(room, ..)| room != "lib").collect()
}

#[test]
fn every_room_imports_only_rooms_below_it() {
    let (mut found, mut rooms) = (Vec::new(), BTreeSet::new());
    for (room, inside, text) in sources() {
        found.extend(violations(&room, &text).into_iter().map(|violation| format!("src/{}:{violation}", inside.display())));
        rooms.insert(room);
    }
    assert!(rooms.len() >= 10, "{rooms:?}");
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn planted_violations_are_found() {
    let bad = |room: &str, text: &str| violations(room, text);
    assert_eq!(bad("graph", "use crate::cli::main;"), ["1: graph imports cli, which comes after it in the list"]);
    assert_eq!(
        bad("graph", "//! x\nuse crate::{memory::Slab, bfs::{A, B}, stats};"),
        ["2: graph imports bfs, which comes after it in the list"]
    );
    assert_eq!(bad("stats", "fn f() { crate::report::table(); }"), ["1: stats imports report, which comes after it in the list"]);
    assert_eq!(bad("input", "pub(crate) use crate::{\n    graph::{Csr, EdgeList},\n    board::Board,\n};").len(), 1);
    assert_eq!(bad("bfs", "let q = '\"'; use crate::policy::Policy;").len(), 1);
    assert_eq!(bad("report", "socbfs_tools::cli::main()").len(), 1);
    assert_eq!(bad("attic", "").len(), 1);
}

#[test]
fn allowed_imports_are_not_reported() {
    for (room, text) in [
        ("cli", "use crate::{bench::Record, graph::{Layout, Vertex}, report};"),
        ("graph", "use crate::graph::Csr; use crate::memory::Slab; use super::cli;"),
        ("graph", "// use crate::cli::main;\n/* crate::bench */ /// see [`crate::bench`]\n"),
        ("graph", "const X: &str = \"crate::cli \\\" crate::bench\";"),
        ("main", "fn main() { socbfs_tools::cli::main() }"),
        ("stats", "use othercrate::cli::x;"),
    ] {
        assert_eq!(violations(room, text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn the_architecture_page_lists_the_rooms_in_their_order() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let table = page.split("<!-- rooms: begin -->").nth(1).unwrap().split("<!-- rooms: end -->").next().unwrap();
    let listed: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let exists = |room: &&str| ["", ".rs"].iter().any(|end| root.join(format!("src/{room}{end}")).exists());
    let built: Vec<&str> = ROOMS.iter().copied().filter(|room| *room != "main").filter(exists).collect();
    assert_eq!(listed, built);
}

/// Draws which room imports which: a row for each room, in the order of the list, and a column for each room that another imports.
/// `imports` has pairs of a room and one that it imports.
fn drawing(rooms: &[&str], imports: &BTreeSet<(String, String)>) -> String {
    let has = |room: &str, other: &str| imports.contains(&(room.to_owned(), other.to_owned()));
    let columns: Vec<&str> = rooms.iter().copied().filter(|other| rooms.iter().any(|room| room != other && has(room, other))).collect();
    let width = rooms.iter().map(|room| room.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    // The names of the columns are written downwards.
    for letter in 0..columns.iter().map(|room| room.len()).max().unwrap_or(0) {
        let letters: Vec<_> = columns.iter().map(|room| room.chars().nth(letter).unwrap_or(' ').to_string()).collect();
        lines.push(format!("{:width$}  {}", "", letters.join(" ")));
    }
    for room in rooms {
        let mark = |other: &&str| match (room == other, has(room, other)) {
            (true, _) => "\\",
            (false, true) => "x",
            (false, false) => ".",
        };
        // Nothing is drawn right of the diagonal, unless a room imports one after it.
        let place = rooms.iter().position(|other| other == room).unwrap();
        let until = columns.iter().rposition(|other| has(room, other) || rooms.iter().position(|room| room == other).unwrap() <= place);
        let marks: Vec<_> = columns[..until.map_or(0, |last| last + 1)].iter().map(mark).collect();
        lines.push(format!("{room:width$}  {}", marks.join(" ")));
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[test]
fn a_drawing_has_a_row_for_each_room_and_a_column_for_each_that_is_imported() {
    let imports = [("b", "aa"), ("c", "aa"), ("c", "b"), ("aa", "b")].map(|(room, other)| (room.to_owned(), other.to_owned()));
    let wanted = "    a b\n    a\naa  \\ x\nb   x \\\nc   x x\n";
    assert_eq!(drawing(&["aa", "b", "c"], &imports.into()), wanted);
}

#[test]
fn the_architecture_page_draws_the_imports_of_the_rooms() {
    // Unit tests may import more than the code that they test.
    let code = |text: &str| text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
    let (mut imported, mut built) = (BTreeSet::new(), BTreeSet::new());
    for (room, _, text) in sources() {
        imported.extend(imports(&code(&text)).into_iter().map(|(_, other)| (room.clone(), other)));
        built.insert(room);
    }
    let rooms: Vec<&str> = ROOMS.iter().copied().filter(|room| *room != "main" && built.contains(*room)).collect();
    let drawing = drawing(&rooms, &imported);
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    assert!(page.contains(&format!("```text\n{drawing}```\n")), "ARCHITECTURE.md needs this drawing:\n{drawing}");
}

/// Of the paths in `files`, the folders and files at the root that `page` does not name.
fn strangers<'f>(page: &str, files: impl IntoIterator<Item = &'f str>) -> BTreeSet<String> {
    let at_root = files.into_iter().map(|file| file.split_once('/').map_or(file.to_owned(), |(folder, _)| format!("{folder}/")));
    at_root.filter(|name| !page.contains(&format!("`{name}`"))).collect()
}

#[test]
fn the_architecture_page_names_all_that_lies_at_the_root() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let listed = Command::new(root.join("tests/files")).output().expect("tests/files can't be run");
    let listed = String::from_utf8(listed.stdout).unwrap();
    let files: Vec<&str> = listed.split_terminator('\0').collect();
    assert!(files.len() > 100 && files.contains(&"tests/rooms.rs"), "tests/files prints {files:?}");
    let strangers_found = strangers(&page, files);
    assert!(strangers_found.is_empty(), "remove these from the root, or name them in ARCHITECTURE.md: {strangers_found:?}");
    let planted = strangers(&page, ["src/lib.rs", "sys/class/name", "sys/x", "g.json"]);
    assert_eq!(planted, BTreeSet::from(["g.json".to_owned(), "sys/".to_owned()]));
}

/// The commit that records name is marked if a file of the program differs from it, so the build script has to run when one changes.
#[test]
fn the_build_script_watches_all_that_is_compiled_in() {
    let script = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs")).unwrap();
    // The sensors are a crate of their own.
    let mut parts = BTreeSet::from(["power".to_owned(), "src".to_owned()]);
    for (_, inside, text) in sources() {
        let root = "../".repeat(inside.components().count());
        for line in text.lines().filter(|line| line.contains("include_str!(") || line.contains("include_bytes!(")) {
            let path = line.split('"').nth(1).unwrap();
            parts.extend(path.strip_prefix(root.as_str()).and_then(|path| path.split('/').next()).map(str::to_owned));
        }
    }
    assert!(parts.contains("kernels") && parts.contains("boards"), "{parts:?}");
    let unseen: Vec<_> = parts.iter().filter(|part| !script.contains(&format!("\"{part}\""))).collect();
    assert!(unseen.is_empty(), "build.rs does not watch {unseen:?}");
}
