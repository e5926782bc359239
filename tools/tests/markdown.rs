//! Checks the Markdown pages of this repository: their form, the targets of their links, and the commands that they show. Also checks the
//! width of comments, which rustfmt does not change.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Most characters of a line, as in rustfmt.toml. Tables and lines without a blank may be wider.
const WIDTH: usize = 140;

/// Collects the Markdown pages below `folder`.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "src" {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The anchor of a heading: lower case, hyphens instead of spaces, no punctuation, links replaced by their text.
fn anchor(heading: &str) -> String {
    let mut text = heading.trim().to_lowercase();
    while let (Some(open), Some(middle)) = (text.find('['), text.find("](")) {
        let end = middle + text[middle..].find(')').unwrap();
        text = format!("{}{}{}", &text[..open], &text[open + 1..middle], &text[end + 1..]);
    }
    text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_')).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_between_pages_have_existing_targets() {
    let root = Path::new(crate::REPOSITORY);
    let mut all = Vec::new();
    pages(root, &mut all);
    assert!(all.len() > 10, "{all:?}");
    let (mut broken, mut count) = (Vec::new(), 0);
    for page in &all {
        let text = fs::read_to_string(page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.contains(char::is_whitespace) {
                continue;
            }
            count += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let leads = fs::read_to_string(&target).is_ok_and(|text| {
                heading.is_empty()
                    || text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line.trim_start_matches('#')) == heading)
            });
            let is_folder = heading.is_empty() && target.exists();
            if !leads && !is_folder {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(count > 20, "only {count} links were found");
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Whether Cargo packs `file` by one of the patterns of `include`, which have at most one group of stars.
fn packs(include: &toml::Value, file: &str) -> bool {
    include.as_array().unwrap().iter().any(|pattern| {
        let pattern = pattern.as_str().unwrap().trim_start_matches('/');
        match pattern.split_once('*') {
            Some((start, end)) => file.starts_with(start) && file.ends_with(end.trim_start_matches('*')),
            None => file == pattern,
        }
    })
}

/// A registry shows a page alone, and docs.rs the files of the crate.
#[test]
fn pages_of_registries_link_to_what_is_public_or_packed() {
    const PACKED: &str = "https://docs.rs/crate/socbfs/latest/source/";
    let root = Path::new(crate::REPOSITORY);
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let manifest = |file: &str| toml::from_str::<toml::Value>(&read(file)).unwrap();
    let include = &manifest("Cargo.toml")["package"]["include"];
    assert!(packs(include, "src/cli/mod.rs") && packs(include, "LICENSE-MIT") && !packs(include, "tests/rooms.rs"));
    let python = manifest("python/pyproject.toml");
    let mut links: Vec<(String, String)> = Vec::new();
    for page in ["docs/crate.md", "power/README.md", "python/README.md"] {
        let text = read(page);
        links.extend(text.split("](").skip(1).filter_map(|rest| Some((page.to_owned(), rest.split(')').next()?.to_owned()))));
    }
    let urls = python["project"]["urls"].as_table().unwrap().values();
    links.extend(urls.map(|url| ("python/pyproject.toml".to_owned(), url.as_str().unwrap().to_owned())));
    assert!(links.len() > 10, "{links:?}");
    links.retain(|(_, link)| match link.strip_prefix(PACKED) {
        Some(file) => !packs(include, file) || !root.join(file).exists(),
        None => !link.starts_with("https://"),
    });
    assert!(links.is_empty(), "these lead nowhere: {links:?}");
    assert_eq!(python["project"]["readme"].as_str(), Some("README.md"));
}

/// A line of a page, outside or inside a code block.
enum Part<'a> {
    /// Text.
    Text(&'a str),
    /// Code, indented or between fences.
    Code(&'a str),
}

/// The lines of a page, numbered from 1, as text or code. A fence itself is text.
fn parts(page: &str) -> Vec<(usize, Part<'_>)> {
    let (mut fenced, mut indented, mut blank) = (false, false, true);
    let mut found = Vec::new();
    for (number, line) in page.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        // Indented lines are code after a blank line, until a line that is not indented.
        indented = !line.is_empty() && line.starts_with("    ") && (indented || blank) || indented && line.is_empty();
        let is_code = !is_fence && (fenced || indented && !line.is_empty());
        found.push((number + 1, if is_code { Part::Code(line) } else { Part::Text(line) }));
        blank = line.is_empty();
    }
    found
}

/// What is wrong with the form of a page: line numbers and reasons.
fn faults(page: &str) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let (mut level, mut open, mut headings) = (0, None, Vec::new());
    for (number, part) in parts(page) {
        let mut fault = |reason: String| faults.push((number, reason));
        let (Part::Text(line) | Part::Code(line)) = part;
        if line.ends_with([' ', '\t']) {
            fault("blanks at the end".to_owned());
        }
        if line.contains('\t') {
            fault("a tab".to_owned());
        }
        let Part::Text(line) = part else { continue };
        let width = line.chars().count();
        if width > WIDTH && !line.starts_with('|') && line.contains(' ') {
            fault(format!("{width} characters, more than {WIDTH}"));
        }
        if let Some(language) = line.trim_start().strip_prefix("```") {
            open = match open {
                None if language.is_empty() => {
                    fault("a code block without its language".to_owned());
                    Some(number)
                }
                None => Some(number),
                Some(_) => None,
            };
            continue;
        }
        let hashes = line.chars().take_while(|&c| c == '#').count();
        if hashes == 0 {
            continue;
        }
        if !line[hashes..].starts_with(' ') {
            fault("no blank after #".to_owned());
        }
        if hashes > level + 1 || (hashes == 1) != (level == 0) {
            fault(format!("a heading of level {hashes} after one of level {level}"));
        }
        if headings.contains(&anchor(&line[hashes..])) {
            fault("a heading that the page has already: links would lead to the first".to_owned());
        }
        headings.push(anchor(&line[hashes..]));
        level = hashes;
    }
    if !page.starts_with("# ") {
        faults.push((1, "no title (# TITLE)".to_owned()));
    }
    if let Some(number) = open {
        faults.push((number, "a code block that is not closed".to_owned()));
    }
    if !page.ends_with('\n') || page.ends_with("\n\n") {
        faults.push((page.lines().count(), "not one line end at the end of the page".to_owned()));
    }
    faults
}

#[test]
fn faults_of_form_are_found() {
    assert_eq!(faults("# A\n\n## B\n\n| a table |\n\n```sh\n# no heading\n```\n\n    # nor this\n\n## C\n"), []);
    let wide = "x ".repeat(71);
    for (page, line, reason) in [
        ("A\n", 1, "no title"),
        ("# A\n\n# B\n", 3, "level 1 after one of level 1"),
        ("# A\n\n### B\n", 3, "level 3 after one of level 1"),
        ("# A\n\n## B\n\n## B\n", 5, "has already"),
        ("# A\n\n##B\n", 3, "no blank"),
        ("# A\n\n```\nx\n```\n", 3, "language"),
        ("# A\n\n```sh\nx\n", 3, "not closed"),
        ("# A\n\nb \n", 3, "blanks"),
        ("# A\n\na\tb\n", 3, "tab"),
        ("# A\n\nb", 3, "line end"),
        ("# A\n\nb\n\n", 4, "line end"),
        (&format!("# A\n\n{}\n", wide.trim_end()), 3, "141 characters"),
    ] {
        let found = faults(page);
        assert!(found.iter().any(|(at, why)| *at == line && why.contains(reason)), "{page:?}: {found:?}");
    }
}

#[test]
fn pages_have_no_faults_of_form() {
    let mut all = Vec::new();
    pages(Path::new(crate::REPOSITORY), &mut all);
    let mut found = Vec::new();
    for page in &all {
        let faults = faults(&fs::read_to_string(page).unwrap());
        found.extend(faults.into_iter().map(|(line, reason)| format!("{}:{line}: {reason}", page.display())));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Collects the Rust and OpenCL C files below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            sources(&path, found);
        } else if name.ends_with(".rs") || name.ends_with(".cl") {
            found.push(path);
        }
    }
}

/// The numbers of the lines with a comment wider than [`WIDTH`]. A comment with a link may be wider.
fn wide_comments(text: &str) -> Vec<usize> {
    let is_wide = |line: &str| line.trim_start().starts_with("//") && line.chars().count() > WIDTH && !line.contains("://");
    text.lines().enumerate().filter(|(_, line)| is_wide(line)).map(|(number, _)| number + 1).collect()
}

#[test]
fn comments_are_not_wider_than_pages() {
    let long = "x".repeat(WIDTH);
    assert_eq!(wide_comments(&format!("//! a\n    // {long}\nlet text = \"// {long}\";\n/// {long}\n// https://{long}\n")), [2, 4]);
    let mut all = Vec::new();
    sources(Path::new(crate::REPOSITORY), &mut all);
    assert!(all.len() > 100, "{all:?}");
    let mut found = Vec::new();
    for file in &all {
        let lines = wide_comments(&fs::read_to_string(file).unwrap());
        found.extend(lines.into_iter().map(|line| format!("{}:{line}", file.display())));
    }
    assert!(found.is_empty(), "comments of more than {WIDTH} characters:\n{}", found.join("\n"));
}

/// The calls of socbfs on a page, in code blocks and within a line, without shell syntax such as redirections.
fn calls(page: &str) -> Vec<(usize, Vec<&str>)> {
    let mut found = Vec::new();
    for (number, part) in parts(page) {
        let pieces = match part {
            Part::Code(line) => vec![line.trim_start().trim_start_matches("$ ")],
            Part::Text(line) => line.split('`').skip(1).step_by(2).collect(),
        };
        for piece in pieces {
            let words = piece.split_whitespace().skip_while(|word| *word == "sudo" || word.contains('=') && !word.starts_with('-'));
            let call: Vec<&str> =
                words.take_while(|word| !word.starts_with(['|', '>', '#', ';', '&']) && *word != "--" && *word != "2>").collect();
            if call.first() == Some(&"socbfs") && call.len() > 1 && call[1] != "=" {
                found.push((number, call[1..].to_vec()));
            }
        }
    }
    found
}

#[test]
fn commands_on_pages_are_found() {
    let found = calls("# A\n\nSee `A=1 socbfs run G --root 1`, `socbfs`.\n\n    $ sudo socbfs energy --x=2 -- ls --y | cat\n");
    assert_eq!(found, [(3, vec!["run", "G", "--root", "1"]), (5, vec!["energy", "--x=2"])]);
}

/// The help of a command (`None` if there is no such command).
fn help_of(subcommands: &[&str]) -> Option<String> {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_socbfs")).args(subcommands).arg("--help").output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// Every subcommand and flag on a page exists.
#[test]
fn commands_on_pages_exist() {
    use std::collections::BTreeMap;
    let mut all = Vec::new();
    pages(Path::new(crate::REPOSITORY), &mut all);
    let mut helps: BTreeMap<Vec<String>, Option<String>> = BTreeMap::new();
    let mut help = |subcommands: &[&str]| {
        helps.entry(subcommands.iter().map(|&word| word.to_owned()).collect()).or_insert_with(|| help_of(subcommands)).clone()
    };
    let (mut unknown, mut count) = (Vec::new(), 0);
    for page in &all {
        let text = fs::read_to_string(page).unwrap();
        for (line, call) in calls(&text) {
            count += 1;
            let place = format!("{}:{line}: socbfs {}", page.display(), call.join(" "));
            let has_flag = call[0].starts_with('-');
            let subcommands = match call.get(1) {
                _ if has_flag => &[][..],
                // The subcommand has subcommands of its own.
                Some(second) if !second.starts_with('-') && help(&call[..1]).is_some_and(|text| text.contains("\nCommands:")) => &call[..2],
                _ => &call[..1],
            };
            let Some(known) = help(subcommands) else {
                unknown.push(format!("{place}: no such command"));
                continue;
            };
            for flag in call.iter().filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap()) {
                if !known.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == flag) {
                    unknown.push(format!("{place}: no flag {flag}"));
                }
            }
        }
    }
    assert!(count > 20, "only {count} calls were found");
    assert!(unknown.is_empty(), "\n{}", unknown.join("\n"));
}

/// Every environment variable that sets a flag is listed in `socbfs --help`.
#[test]
fn environment_variables_are_listed() {
    let (listed, bench) = (help_of(&[]).unwrap(), help_of(&["bench"]).unwrap());
    let names: Vec<&str> = bench.split("[env: ").skip(1).filter_map(|rest| rest.split(']').next()).collect();
    assert!(names.len() > 10, "{names:?}");
    let missing: Vec<_> =
        names.iter().filter(|&&name| !listed.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)).collect();
    assert!(missing.is_empty(), "{missing:?} in\n{listed}");
}

/// The README states the limits of the library.
#[test]
fn the_readme_states_the_limits() {
    let readme = fs::read_to_string(Path::new(crate::REPOSITORY).join("README.md")).unwrap();
    for (limit, of) in [(socbfs::graph::MAX_VERTICES, "vertices"), (u32::MAX as usize, "adjacency entries")] {
        let words = format!("{} {of}", socbfs::words::grouped(limit as u64));
        assert!(readme.contains(&words), "the README does not have the limit {words:?}");
    }
}
