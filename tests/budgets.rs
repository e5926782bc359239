//! Checks the table of budgets in ARCHITECTURE.md: lines of code by room, and counts of what should become less. A number that is exceeded
//! fails, and so does one that lies more than 2 % above what is there: then it is lowered in the same commit.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{spanned::Spanned, visit::Visit};

/// Lines of a file and of a function from which it is counted.
const LONG_FILE: usize = 600;
const LONG_FUNCTION: usize = 80;

/// The folders of sources, and whether each of their rooms has a budget, or the crate one.
const FOLDERS: [(&str, bool); 11] = [
    ("src", true),
    ("tools/src", true),
    ("algo/src", false),
    ("boards/src", false),
    ("io/src", false),
    ("machine/src", false),
    ("policy/src", false),
    ("power/src", false),
    ("cluster/src", false),
    ("capi/src", false),
    ("python/src", false),
];

/// Whether an item is compiled for tests alone.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// What a file of sources counts.
#[derive(Default)]
struct Counted {
    /// Lines of test modules, and of functions, each as (first, last).
    tests: Vec<(usize, usize)>,
    functions: Vec<usize>,
    /// Paths that begin with `crate`, `super`, `self` or the name of another crate, their first names joined by `::`.
    paths: BTreeSet<String>,
}

impl Counted {
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        self.functions.push(block.span().end().line + 1 - signature.span().start().line);
    }

    fn tree(&mut self, before: &str, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => self.tree(&format!("{before}{}::", path.ident), &path.tree),
            syn::UseTree::Name(name) => _ = self.paths.insert(format!("{before}{}", name.ident)),
            syn::UseTree::Rename(name) => _ = self.paths.insert(format!("{before}{}", name.ident)),
            syn::UseTree::Glob(_) => _ = self.paths.insert(format!("{before}*")),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(before, tree)),
        }
    }
}

impl<'a> Visit<'a> for Counted {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if is_test(&item.attrs) {
            self.tests.push((item.span().start().line, item.span().end().line));
        } else {
            syn::visit::visit_item_mod(self, item);
        }
    }
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if is_test(&item.attrs) {
            return;
        }
        self.function(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }
    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.tree("", &item.tree);
    }
    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.segments.len() > 1 {
            self.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>().join("::"));
        }
        syn::visit::visit_path(self, path);
    }
}

fn counted(text: &str) -> Counted {
    let mut counted = Counted::default();
    counted.visit_file(&syn::parse_file(text).unwrap());
    counted
}

/// Lines that are neither empty nor a comment nor part of a test module.
fn lines_of_code(text: &str, tests: &[(usize, usize)]) -> usize {
    let is_code = |(at, line): (usize, &str)| {
        let line = line.trim();
        !line.is_empty()
            && !line.starts_with("//")
            && line != "#[cfg(test)]"
            && !tests.iter().any(|&(first, last)| (first..=last).contains(&(at + 1)))
    };
    text.lines().enumerate().filter(|&line| is_code(line)).count()
}

/// The module of a file below a folder of sources: `cpu/simd/mod.rs` is `cpu::simd`.
fn module(inside: &Path) -> Vec<String> {
    let mut names: Vec<String> = inside.with_extension("").components().map(|name| name.as_os_str().to_str().unwrap().to_owned()).collect();
    if names.last().is_some_and(|name| name == "mod" || name == "lib") {
        names.pop();
    }
    names
}

/// Of the files of one folder, those in a circle of imports. Files that only gather others (`mod.rs`, `lib.rs`) do not count: what they
/// declare imports from them.
fn in_circles(files: &[(PathBuf, Counted)]) -> usize {
    let gathers = |inside: &Path| inside.ends_with("mod.rs") || inside.ends_with("lib.rs");
    let modules: Vec<(Vec<String>, &Counted)> =
        files.iter().filter(|(inside, _)| !gathers(inside)).map(|(inside, counted)| (module(inside), counted)).collect();
    let folders: BTreeSet<Vec<String>> = files.iter().filter(|(inside, _)| gathers(inside)).map(|(inside, _)| module(inside)).collect();
    let reaches = |from: &[String], counted: &Counted| -> BTreeSet<usize> {
        let absolute = |path: &String| {
            let mut at = from.to_vec();
            let mut names = path.split("::").peekable();
            match names.peek() {
                Some(&"crate") => {
                    at.clear();
                    names.next();
                }
                Some(&"self" | &"super") => {}
                _ => return None,
            }
            while let Some(word) = names.next_if(|word| ["super", "self"].contains(word)) {
                if word == "super" {
                    at.pop();
                }
            }
            at.extend(names.map(str::to_owned));
            Some(at)
        };
        let target = |path: Vec<String>| {
            (1..=path.len()).rev().find_map(|len| {
                let found = modules.iter().position(|(module, _)| module[..] == path[..len]);
                // An item of a folder's own file is not one of its files.
                found.map(Some).or_else(|| folders.contains(&path[..len]).then_some(None))
            })
        };
        counted.paths.iter().filter_map(absolute).filter_map(|path| target(path).flatten()).collect()
    };
    let edges: Vec<BTreeSet<usize>> = modules.iter().map(|(module, counted)| reaches(module, counted)).collect();
    let from = |start: usize| {
        let (mut seen, mut open) = (BTreeSet::new(), edges[start].clone());
        while let Some(at) = open.pop_first() {
            if seen.insert(at) {
                open.extend(edges[at].iter().filter(|next| !seen.contains(next)));
            }
        }
        seen
    };
    (0..modules.len()).filter(|&at| edges[at].iter().any(|&next| next != at && from(next).contains(&at))).count()
}

/// The modules that `src/lib.rs` hides from the documentation.
fn hidden_modules(library: &str) -> BTreeSet<String> {
    let after = |part: &str| part.trim_start().strip_prefix("pub mod ").map(|rest| rest.split(';').next().unwrap().to_owned());
    library.split("#[doc(hidden)]").skip(1).filter_map(after).collect()
}

/// What the table of budgets should say, by its first column.
fn measured() -> BTreeMap<String, usize> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let hidden = hidden_modules(&fs::read_to_string(root.join("src/lib.rs")).unwrap());
    let mut all = BTreeMap::new();
    let mut add = |what: &str, count: usize| *all.entry(what.to_owned()).or_insert(0) += count;
    for (folder, has_rooms) in FOLDERS {
        let (mut paths, mut files) = (Vec::new(), Vec::new());
        super::rooms::files(&root.join(folder), &mut paths);
        for path in paths {
            let inside = path.strip_prefix(root.join(folder)).unwrap().to_owned();
            if inside.ends_with("tests.rs") || inside.components().any(|part| part.as_os_str() == "tests") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let counted = counted(&text);
            let room = module(&inside).first().cloned().filter(|_| has_rooms).map_or(folder.to_owned(), |room| format!("{folder}/{room}"));
            add(&room, lines_of_code(&text, &counted.tests));
            let length = text.lines().count() - counted.tests.iter().map(|(first, last)| last + 1 - first).sum::<usize>();
            add("files above 600 lines", usize::from(length > LONG_FILE));
            add("functions above 80 lines", counted.functions.iter().filter(|&&lines| lines > LONG_FUNCTION).count());
            files.push((inside, counted));
        }
        add("files in circles of imports", in_circles(&files));
        let door = |path: &&String| path.strip_prefix("socbfs::").is_some_and(|path| hidden.contains(path.split("::").next().unwrap()));
        let through: BTreeSet<&String> = files.iter().flat_map(|(_, counted)| counted.paths.iter().filter(door)).collect();
        add("paths through hidden modules", through.len());
    }
    all
}

#[test]
fn nothing_is_above_its_budget_or_far_below_it() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    let table = page.split("<!-- budgets: begin -->").nth(1).unwrap().split("<!-- budgets: end -->").next().unwrap();
    let budgets: BTreeMap<String, usize> = table
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            Some((cells.next()?.trim_matches('`').to_owned(), cells.next()?.parse().ok()?))
        })
        .collect();
    let measured = measured();
    let wrong: Vec<String> = measured
        .iter()
        .filter_map(|(what, &count)| match budgets.get(what) {
            Some(&budget) if count > budget => Some(format!("{what}: {count}, {} above its budget", count - budget)),
            Some(&budget) if 100 * count < 98 * budget => Some(format!("{what}: {count}, lower its budget of {budget}")),
            Some(_) => None,
            None => Some(format!("{what}: {count}, it has no budget")),
        })
        .chain(budgets.keys().filter(|what| !measured.contains_key(*what)).map(|what| format!("{what}: there is nothing of this name")))
        .collect();
    assert!(wrong.is_empty(), "the table of budgets in ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

#[test]
fn what_is_counted_is_found() {
    let text = "//! x\nuse crate::{a::B, c};\n\n/// y\npub fn f() {\n    // z\n    super::d::e();\n}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
    let one = counted(text);
    assert_eq!((lines_of_code(text, &one.tests), &one.functions[..]), (4, &[4][..]));
    assert!(["crate::a::B", "crate::c", "super::d::e"].iter().all(|path| one.paths.contains(*path)), "{:?}", one.paths);
    let file = |name: &str, text: &str| (PathBuf::from(name), counted(text));
    let circle = [
        file("r/mod.rs", "mod a; mod b; pub struct S;"),
        file("r/a.rs", "use super::{S, b::B};"),
        file("r/b.rs", "use crate::r::c::C;"),
        file("r/c.rs", "fn f() { super::a::g() }"),
        file("r/d.rs", "use super::a::A; use crate::r::S;"),
    ];
    assert_eq!(in_circles(&circle), 3);
    assert_eq!(hidden_modules("#[doc(hidden)]\npub mod a;\npub mod b;\n"), BTreeSet::from(["a".to_owned()]));
}
