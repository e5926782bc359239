//! The text of a profile: its keys, their lines, and their comments.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::DocumentError;
use socbfs::words::line_at;

/// A key of a profile that has a value.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// Path of the key: `cpu.clusters[0].max_mhz`.
    pub key: String,
    /// The value as written in the file.
    pub value: String,
    /// Line of the key, from 1.
    pub line: usize,
    /// Whether the value is an estimate: not measured on this board.
    pub estimate: bool,
    /// Where the value is from: the comment after it on its line, else the one directly above it, else the one directly above the header of
    /// its table.
    pub source: Option<String>,
}

/// The keys and tables of a profile.
#[derive(Debug)]
pub struct Document<'a> {
    text: &'a str,
    /// Every value and every table, with the byte offset of its key, in the order of the file.
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    path: String,
    /// Byte offset of the first character of the key, or of the table's header.
    start: usize,
    /// Byte range of the value; `None` for a table.
    value: Option<std::ops::Range<usize>>,
}

impl<'a> Document<'a> {
    /// Reads the structure of `text`. `file` names it in errors.
    ///
    /// # Errors
    /// [`DocumentError::Parse`] if the text is not TOML.
    pub fn parse(text: &'a str, file: &str) -> Result<Self, DocumentError> {
        let table = DeTable::parse(text).map_err(|error| DocumentError::parse(text, file, &error))?;
        let mut nodes = Vec::new();
        collect(table.get_ref(), "", &mut nodes);
        nodes.sort_by_key(|node| node.start);
        Ok(Self { text, nodes })
    }

    /// Line of the key or table at `path`, from 1. If it is absent, the line of the closest existing table around it, else 1.
    pub(crate) fn line(&self, path: &str) -> usize {
        let mut path = path;
        loop {
            if let Some(node) = self.nodes.iter().find(|node| node.path == path) {
                return line_at(self.text, node.start);
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return 1,
            }
        }
    }

    /// Line of the key that the error `message` names, by itself or by its value, if the error points at the `line` where the key's table
    /// begins; else `line`.
    pub(super) fn line_of_fault(&self, line: usize, message: &str) -> usize {
        let Some(table) = self.nodes.iter().find(|node| node.value.is_none() && line_at(self.text, node.start) == line) else {
            return line;
        };
        // The part after a semicolon says what would be correct.
        let fault = message.split(';').next().unwrap_or_default();
        let words = || fault.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
        let key = |node: &&Node| {
            let own = node.path.strip_prefix(&table.path).and_then(|rest| rest.strip_prefix('.'));
            own.is_some_and(|own| words().any(|word| word == own))
        };
        // An unknown name is named without its key.
        let value = |node: &&Node| {
            let value = node.value.clone().map(|value| self.text[value].trim_matches(['\'', '"']));
            node.path.starts_with(&table.path) && value.is_some_and(|value| words().any(|word| word == value))
        };
        self.nodes.iter().find(key).or_else(|| self.nodes.iter().find(value)).map_or(line, |node| line_at(self.text, node.start))
    }

    /// The key whose value contains the byte offset `place`.
    pub(super) fn key_at(&self, place: usize) -> Option<&str> {
        let holds = |node: &&Node| node.value.as_ref().is_some_and(|value| value.contains(&place));
        self.nodes.iter().find(holds).map(|node| node.path.as_str())
    }

    /// Whether there is a key or table at `path`.
    pub(super) fn has(&self, path: &str) -> bool {
        self.nodes.iter().any(|node| node.path == path)
    }

    /// Paths of all keys and tables.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.path.as_str())
    }

    /// The text of the tables of these names as written in the file: their headers, their keys, and the comments directly above them.
    pub fn tables(&self, names: &[&str]) -> String {
        let mut places: Vec<(usize, bool)> = self
            .nodes
            .iter()
            .filter(|node| node.value.is_none() && self.text[line_start(self.text, node.start)..].starts_with('['))
            .map(|node| (self.with_comment(node.start), node))
            .map(|(start, node)| (start, names.contains(&node.path.split(['.', '[']).next().unwrap_or_default())))
            .collect();
        places.push((self.text.len(), false));
        places.dedup_by_key(|(start, _)| *start);
        places.windows(2).filter(|pair| pair[0].1).map(|pair| &self.text[pair[0].0..pair[1].0]).collect()
    }

    /// Every key that has a value, in the order of the file, except `schema` and `estimates`.
    pub fn entries(&self, estimates: &[String]) -> Vec<Entry> {
        let entry = |node: &Node| {
            let value = node.value.clone()?;
            Some(Entry {
                key: node.path.clone(),
                value: one_line(&self.text[value.clone()]),
                line: line_at(self.text, node.start),
                estimate: estimates.iter().any(|name| covers(name, &node.path)),
                source: self.beside(value.end).or_else(|| self.above(node.start)).or_else(|| self.above_table(&node.path)),
            })
        };
        self.nodes.iter().filter(|node| !["schema", "estimates"].contains(&node.path.as_str())).filter_map(entry).collect()
    }

    /// The comment on the same line after a value that ends at `end`.
    fn beside(&self, end: usize) -> Option<String> {
        let (before, comment) = self.text[end..].lines().next()?.split_once('#')?;
        // In an inline table, the rest of the line may be more of the table.
        before.trim().is_empty().then(|| comment.trim().to_owned())
    }

    /// Byte offset where the comment directly above the line of `start` begins; without a comment, that of the line.
    fn with_comment(&self, start: usize) -> usize {
        let mut start = line_start(self.text, start);
        while start > 0 {
            let above = line_start(self.text, start - 1);
            if !self.text[above..].starts_with('#') {
                break;
            }
            start = above;
        }
        start
    }

    /// The comment directly above the line of `start`, joined to one line.
    fn above(&self, start: usize) -> Option<String> {
        let above = &self.text[..self.text[..start].rfind('\n')?];
        let mut lines: Vec<&str> = above.lines().rev().map_while(|line| line.trim().strip_prefix('#')).map(str::trim).collect();
        lines.reverse();
        if lines.is_empty() { None } else { Some(lines.join(" ")) }
    }

    fn above_table(&self, path: &str) -> Option<String> {
        let (table, _) = path.rsplit_once('.')?;
        self.above(self.nodes.iter().find(|node| node.path == table)?.start)
    }
}

/// Whether the entry `name` of `estimates` is `path` or a table around it.
pub fn covers(name: &str, path: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn collect(table: &DeTable<'_>, around: &str, nodes: &mut Vec<Node>) {
    for (key, value) in table {
        let path = if around.is_empty() { key.get_ref().to_string() } else { format!("{around}.{}", key.get_ref()) };
        node(&path, key.span().start, value, nodes);
    }
}

fn node(path: &str, start: usize, value: &Spanned<DeValue<'_>>, nodes: &mut Vec<Node>) {
    match value.get_ref() {
        DeValue::Table(table) => {
            nodes.push(Node { path: path.to_owned(), start, value: None });
            collect(table, path, nodes);
        }
        DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => {
            nodes.push(Node { path: path.to_owned(), start, value: None });
            for (place, item) in items.iter().enumerate() {
                node(&format!("{path}[{place}]"), item.span().start, item, nodes);
            }
        }
        _ => nodes.push(Node { path: path.to_owned(), start, value: Some(value.span()) }),
    }
}

/// Byte offset where the line of `place` begins.
fn line_start(text: &str, place: usize) -> usize {
    text[..place].rfind('\n').map_or(0, |end| end + 1)
}

/// A value without the line breaks and comments inside it.
fn one_line(value: &str) -> String {
    if !value.contains('\n') || value.starts_with(['"', '\'']) {
        return value.to_owned();
    }
    let lines = value.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.collect::<Vec<_>>().join(" ").replace("[ ", "[").replace(", ]", "]").replace(" ]", "]")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
schema = 1
estimates = ['a.x', 'b[1]']

# not about x

[a]
# from the paper,
# table 3
x = 0x10
y = 'no # comment' # measured

# counted
[[b]]
z = 1
[[b]]
z = [ # cores
    1,
    2,
]
";

    #[test]
    fn entries_have_key_value_line_estimate_and_source() {
        let document = Document::parse(TEXT, "x.toml").unwrap();
        let entries = document.entries(&["a.x".to_owned(), "b[1]".to_owned()]);
        let found: Vec<_> = entries.iter().map(|e| (e.key.as_str(), e.value.as_str(), e.line, e.estimate, e.source.as_deref())).collect();
        assert_eq!(
            found,
            [
                ("a.x", "0x10", 9, true, Some("from the paper, table 3")),
                ("a.y", "'no # comment'", 10, false, Some("measured")),
                ("b[0].z", "1", 14, false, Some("counted")),
                ("b[1].z", "[1, 2]", 16, true, None),
            ]
        );
    }

    #[test]
    fn errors_get_the_line_of_the_key_they_name() {
        let document = Document::parse(TEXT, "x.toml").unwrap();
        assert_eq!(document.line_of_fault(6, "a does not take y = 3; it takes x"), 10);
        assert_eq!(document.line_of_fault(6, "x is 16; it must be y"), 9);
        assert_eq!(document.line_of_fault(6, "x-y is what nothing is called"), 6);
        assert_eq!(document.line_of_fault(15, "z is wrong"), 16);
        let policy = Document::parse("[policy]\nalpha = 1\nkind = 'fastest'\n", "x.toml").unwrap();
        assert_eq!(policy.line_of_fault(1, "unknown policy \"fastest\"; known: tc"), 3);
        assert_eq!(policy.line_of_fault(1, "unknown policy \"faster\"; known: tc"), 1);
        // No table begins there.
        assert_eq!(document.line_of_fault(9, "y is wrong"), 9);
    }

    #[test]
    fn tables_are_extracted_with_their_comments() {
        let document = Document::parse(TEXT, "x.toml").unwrap();
        assert_eq!(document.tables(&["b"]), TEXT[TEXT.find("# counted").unwrap()..]);
        assert_eq!(document.tables(&["a"]), TEXT[TEXT.find("[a]").unwrap()..TEXT.find("# counted").unwrap()]);
        assert_eq!(document.tables(&["c"]), "");
    }

    #[test]
    fn absent_keys_get_the_line_of_their_table() {
        let document = Document::parse(TEXT, "x.toml").unwrap();
        assert!(document.has("a") && document.has("b[1]") && !document.has("b[2]"));
        assert_eq!(document.line("a"), 6);
        assert_eq!(document.line("b[1]"), 15);
        assert_eq!(document.line("b[1].w"), 15);
        assert_eq!(document.line("a.z.u"), 6);
        assert_eq!(document.line("c.d"), 1);
    }
}
