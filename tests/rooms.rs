//! Checks the order of the rooms that ARCHITECTURE.md lists for each crate: a room imports only rooms before it. Also checks that the build
//! script sees what they include.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The folders of the crates that have rooms, each with the name by which its own program and tests import it.
const CRATES: [(&str, &str); 2] = [("src", "socbfs"), ("tools/src", "socbfs_tools")];

fn architecture() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap()
}

/// The rooms of the crate in `folder`, in their order.
fn rooms(folder: &str) -> Vec<String> {
    let page = architecture();
    let table = page.split(&format!("<!-- rooms of {folder}: begin -->")).nth(1).unwrap().split("<!-- rooms: end -->").next().unwrap();
    table.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned())).collect()
}

/// Every `room` that `text` names as `crate::room` or `own::room`, in `use` lines (grouped ones too) and in paths, with its line number.
/// Comments and string literals are ignored.
fn imports(own: &str, text: &str) -> Vec<(usize, String)> {
    let code = without_comments_and_strings(text);
    let mut found = Vec::new();
    for name in ["crate", own] {
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

/// The forbidden imports of a file of `room`, one of `rooms` of the crate `own`, each with its line number.
fn violations(rooms: &[String], own: &str, room: &str, text: &str) -> Vec<String> {
    let place = |room: &str| rooms.iter().position(|known| known == room);
    let Some(at) = place(room) else { return vec![format!("0: room {room} has no place in the list")] };
    imports(own, text)
        .into_iter()
        // Names that are not rooms, such as macros and items of lib.rs, are ignored.
        .filter(|(_, import)| import != room && place(import).is_some_and(|other| other > at))
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

/// The files of the rooms in `folder`: room, path within `folder`, text. `lib.rs` and `main.rs` are not among them: they declare and call.
fn sources(folder: &str) -> Vec<(String, PathBuf, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut all = Vec::new();
    files(&source, &mut all);
    assert!(all.len() > 20, "only {} files found", all.len());
    let room = |inside: &Path| Path::new(inside.components().next().unwrap().as_os_str()).file_stem().unwrap().to_str().unwrap().to_owned();
    let all = all.iter().map(|path| {
        let inside = path.strip_prefix(&source).unwrap().to_owned();
        (room(&inside), inside, fs::read_to_string(path).unwrap())
    });
    all.filter(|(room, ..)| room != "lib" && room != "main").collect()
}

#[test]
fn every_room_imports_only_rooms_below_it() {
    for (folder, own) in CRATES {
        let (rooms, mut found, mut seen) = (rooms(folder), Vec::new(), BTreeSet::new());
        for (room, inside, text) in sources(folder) {
            found.extend(
                violations(&rooms, own, &room, &text).into_iter().map(|violation| format!("{folder}/{}:{violation}", inside.display())),
            );
            seen.insert(room);
        }
        assert_eq!(seen, rooms.into_iter().collect(), "{folder}");
        assert!(found.is_empty(), "\n{}", found.join("\n"));
    }
}

#[test]
fn planted_violations_are_found() {
    let rooms = ["stats", "memory", "graph", "input", "board", "bfs", "policy", "bench", "report", "cli"].map(str::to_owned);
    let bad = |room: &str, text: &str| violations(&rooms, "socbfs", room, text);
    assert_eq!(bad("graph", "use crate::cli::main;"), ["1: graph imports cli, which comes after it in the list"]);
    assert_eq!(
        bad("graph", "//! x\nuse crate::{memory::Slab, bfs::{A, B}, stats};"),
        ["2: graph imports bfs, which comes after it in the list"]
    );
    assert_eq!(bad("stats", "fn f() { crate::report::table(); }"), ["1: stats imports report, which comes after it in the list"]);
    assert_eq!(bad("input", "pub(crate) use crate::{\n    graph::{Csr, EdgeList},\n    board::Board,\n};").len(), 1);
    assert_eq!(bad("bfs", "let q = '\"'; use crate::policy::Policy;").len(), 1);
    assert_eq!(bad("report", "socbfs::cli::main()").len(), 1);
    assert_eq!(bad("attic", "").len(), 1);
    for (room, text) in [
        ("cli", "use crate::{bench::Record, graph::{Layout, Vertex}, report};"),
        ("graph", "use crate::graph::Csr; use crate::memory::Slab; use super::cli;"),
        ("graph", "// use crate::cli::main;\n/* crate::bench */ /// see [`crate::bench`]\n"),
        ("graph", "const X: &str = \"crate::cli \\\" crate::bench\";"),
        ("stats", "use othercrate::cli::x;"),
    ] {
        assert_eq!(bad(room, text), Vec::<String>::new(), "{text}");
    }
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
    for (folder, own) in CRATES {
        let rooms = rooms(folder);
        let imported = sources(folder).into_iter().flat_map(|(room, _, text)| {
            imports(own, &code(&text)).into_iter().map(move |(_, other)| (room.clone(), other)).collect::<Vec<_>>()
        });
        let drawing = drawing(&rooms.iter().map(String::as_str).collect::<Vec<_>>(), &imported.collect());
        assert!(architecture().contains(&format!("```text\n{drawing}```\n")), "ARCHITECTURE.md needs this drawing of {folder}:\n{drawing}");
    }
}

/// The modules of the crates without rooms, in their order, by folder.
fn modules() -> Vec<(String, Vec<String>)> {
    let page = architecture();
    let table = page.split("<!-- modules: begin -->").nth(1).unwrap().split("<!-- modules: end -->").next().unwrap();
    let names = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    table.lines().map(names).filter(|names| !names.is_empty()).map(|mut names| (names.remove(0), names)).collect()
}

/// The modules in which the items lie that the text of `lib.rs` exports, by the names of these items.
fn exports(library: &str) -> BTreeMap<String, String> {
    let code = without_comments_and_strings(library);
    let mut found = BTreeMap::new();
    for statement in code.split("use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let own = statement.trim().trim_start_matches("self::").trim_start_matches('{');
        for path in own.split_inclusive('}').flat_map(|part| part.split(",\n")) {
            let words: Vec<_> = path.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
            found.extend(words.iter().skip(1).map(|item| ((*item).to_owned(), words[0].to_owned())));
        }
    }
    found
}

#[test]
fn modules_of_the_other_crates_import_only_those_before_them() {
    let all = modules();
    assert!(all.len() >= 7, "{all:?}");
    for (folder, order) in all {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(&folder);
        let exports = exports(&fs::read_to_string(source.join("lib.rs")).unwrap());
        let (mut paths, mut wrong, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        files(&source, &mut paths);
        for path in paths {
            let inside = path.strip_prefix(&source).unwrap();
            let module = inside.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned();
            if module == "lib" || inside.ends_with("tests.rs") || inside.iter().any(|part| part == "tests") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let above = if inside.components().count() == 1 { "super" } else { "crate" };
            let named = imports(above, code).into_iter().map(|(line, name)| (line, exports.get(&name).cloned().unwrap_or(name)));
            let place = |module: &str| order.iter().position(|other| other == module);
            let late = named.filter(|(_, other)| *other != module && place(other) > place(&module));
            wrong.extend(late.map(|(line, other)| format!("{folder}/{}:{line}: imports {other}", inside.display())));
            seen.insert(module);
        }
        assert_eq!(seen, order.into_iter().collect(), "{folder}");
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }
    let library = "pub use self::{\n    a::B,\n    c::{D, e},\n};\npub(crate) use f::G;\n";
    let wanted = [("B", "a"), ("D", "c"), ("e", "c"), ("G", "f")].map(|(item, module)| (item.to_owned(), module.to_owned()));
    assert_eq!(exports(library), wanted.into());
}

/// Of the paths in `files`, the folders and files at the root that `page` does not name.
fn strangers<'f>(page: &str, files: impl IntoIterator<Item = &'f str>) -> BTreeSet<String> {
    let at_root = files.into_iter().map(|file| file.split_once('/').map_or(file.to_owned(), |(folder, _)| format!("{folder}/")));
    at_root.filter(|name| !page.contains(&format!("`{name}`"))).collect()
}

#[test]
fn the_architecture_page_names_all_that_lies_at_the_root() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = architecture();
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
    let script = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/build.rs")).unwrap();
    // Crates with rooms, and those without.
    let mut parts =
        BTreeSet::from(["algo", "boards", "cluster/src", "io", "machine", "policy", "power", "src", "tools/src"].map(str::to_owned));
    for (_, inside, text) in sources("src") {
        let root = "../".repeat(inside.components().count());
        for line in text.lines().filter(|line| line.contains("include_str!(") || line.contains("include_bytes!(")) {
            let path = line.split('"').nth(1).unwrap();
            parts.extend(path.strip_prefix(root.as_str()).and_then(|path| path.split('/').next()).map(str::to_owned));
        }
    }
    parts.remove("tests");
    assert!(parts.contains("kernels"), "{parts:?}");
    let unseen: Vec<_> = parts.iter().filter(|part| !script.contains(&format!("\"{part}\""))).collect();
    assert!(unseen.is_empty(), "tools/build.rs does not watch {unseen:?}");
}
