//! Changes to a profile that keep the rest of its text.

use serde::de::IgnoredAny;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, TableLike, Value};

use socbfs::board::{Board, Document, DocumentError, covers, line_at};

/// The new value of a key.
#[derive(Debug, Clone)]
pub struct Change {
    /// Path of the key, as in `opencl.devices[0].memory_way`. Absent tables are created.
    pub path: String,
    /// Its value (`None`: the key is removed).
    pub value: Option<Value>,
    /// The comment after the value, which says where it is from.
    pub comment: String,
}

/// The profile `text` with `changes`; `file` names it in errors. The new values are measured, so their names are removed from `estimates`.
///
/// # Errors
/// [`DocumentError`] if the text is not a profile before or after the changes.
pub fn edit(text: &str, file: &str, changes: &[Change]) -> Result<String, DocumentError> {
    let before = Board::<IgnoredAny>::parse(text, file)?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| parse_error(text, file, &error))?;
    let estimates = remaining(&before.estimates, text, file, changes)?;
    if estimates != before.estimates {
        if estimates.is_empty() {
            document.remove("estimates");
        } else {
            document["estimates"] = Item::Value(Value::Array(estimates.iter().collect::<Array>()));
        }
    }
    for change in changes {
        apply(document.as_table_mut(), &change.path, change);
    }
    let text = document.to_string();
    Board::<IgnoredAny>::parse(&text, file)?;
    Ok(text)
}

fn parse_error(text: &str, file: &str, error: &toml_edit::TomlError) -> DocumentError {
    let line = error.span().map_or(1, |span| line_at(text, span.start));
    DocumentError::Parse { file: file.to_owned(), line, message: error.message().trim().replace('\n', "; ") }
}

/// The names of estimates after `changes`. The name of a table in which some keys are set is replaced by the names of its other keys.
fn remaining(estimates: &[String], text: &str, file: &str, changes: &[Change]) -> Result<Vec<String>, DocumentError> {
    let document = Document::parse(text).map_err(|error| DocumentError::parse(text, file, &error.into()))?;
    let is_set = |path: &str| changes.iter().any(|change| change.path == path);
    let keys: Vec<String> = document.entries(&[]).into_iter().map(|entry| entry.key).collect();
    let mut left: Vec<String> = Vec::new();
    for name in estimates {
        let is_kept = !changes.iter().any(|change| covers(name, &change.path));
        let others = keys.iter().filter(|key| !is_kept && covers(name, key) && !is_set(key));
        for name in is_kept.then_some(name).into_iter().chain(others) {
            // A profile may name a table and a key in it.
            if !left.contains(name) {
                left.push(name.clone());
            }
        }
    }
    Ok(left)
}

/// Sets the key at the end of `path` below `table`.
fn apply(table: &mut dyn TableLike, path: &str, change: &Change) {
    let Some((first, rest)) = path.split_once('.') else {
        match &change.value {
            Some(value) => {
                let mut value = value.clone();
                value.decor_mut().set_suffix(format!(" # {}", change.comment));
                table.insert(path, Item::Value(value));
                // The comment above the key was about the old value.
                if let Some(mut key) = table.key_mut(path) {
                    key.leaf_decor_mut().set_prefix("");
                }
            }
            None => {
                table.remove(path);
            }
        }
        return;
    };
    let (name, place) = match first.split_once('[') {
        Some((name, place)) => (name, place.trim_end_matches(']').parse::<usize>().ok()),
        None => (first, None),
    };
    let absent = change.value.is_none() && !table.contains_key(name);
    if absent {
        return;
    }
    let new = || match place {
        Some(_) => Item::ArrayOfTables(ArrayOfTables::new()),
        None => {
            let mut made = Table::new();
            // A table without keys of its own needs no header.
            made.set_implicit(rest.contains('.'));
            Item::Table(made)
        }
    };
    let item = table.entry(name).or_insert_with(new);
    if place.is_some() && item.is_array() {
        // Inline tables have no place for comments, so the array becomes tables with headers.
        *item = std::mem::take(item).into_array_of_tables().map_or_else(|item| item, Item::ArrayOfTables);
    }
    match (item, place) {
        (Item::ArrayOfTables(tables), Some(place)) => {
            while tables.len() <= place {
                tables.push(Table::new());
            }
            if let Some(table) = tables.get_mut(place) {
                apply(table, rest, change);
            }
        }
        (item, None) => {
            // An inline table has no place for comments, so it becomes a table with a header.
            if let Some(inline) = item.as_inline_table() {
                *item = Item::Table(inline.clone().into_table());
            }
            if let Some(table) = item.as_table_mut() {
                apply(table, rest, change);
                if !rest.contains('.') {
                    retire_comment(table, change);
                }
            }
        }
        _ => {}
    }
}

/// Removes the comment above a table if every key in it now has the comment of `change`.
fn retire_comment(table: &mut Table, change: &Change) {
    let is_named = |item: &Item| {
        let suffix = item.as_value().and_then(|value| value.decor().suffix()?.as_str());
        suffix.is_some_and(|suffix| suffix.contains(&change.comment))
    };
    if table.iter().all(|(_, item)| is_named(item)) {
        table.decor_mut().set_prefix("\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# A board.
schema = 1
estimates = [\"adaptive\", \"cpu.threads\"] # nobody measured

[board]
name = \"b\" # mine

[cpu]
threads = 3

# From a paper.
[adaptive.top_down]
# of another chip
gpu_from = 90_000
up_to = 12_000_000

# From another paper.
[adaptive.bottom_up]
gpu_from = 15_000
";

    fn change(path: &str, value: Option<i64>) -> Change {
        Change { path: path.into(), value: value.map(Value::from), comment: "measured".into() }
    }

    #[test]
    fn set_values_get_a_comment_and_are_no_longer_estimates() {
        let changes = [change("adaptive.top_down.gpu_from", Some(7)), change("adaptive.bottom_up.gpu_from", Some(8))];
        let text = edit(TEXT, "b.toml", &changes).unwrap();
        let board = Board::<toml::Table>::parse(&text, "b.toml").unwrap();
        assert_eq!(board.estimates, ["adaptive.top_down.up_to", "cpu.threads"]);
        assert_eq!((board.adaptive.top_down.gpu_from, board.adaptive.top_down.up_to), (Some(7), Some(12_000_000)));
        assert!(text.contains("gpu_from = 7 # measured\n") && !text.contains("of another chip"), "{text}");
        // One table still has a value from the paper, the other does not.
        assert!(text.contains("# From a paper.") && !text.contains("# From another paper."), "{text}");
        assert!(text.starts_with("# A board.\n") && text.contains("name = \"b\" # mine"), "{text}");
    }

    #[test]
    fn a_key_that_is_estimated_twice_stays_once() {
        let names = "estimates = [\"adaptive\", \"adaptive.top_down\", \"adaptive.bottom_up.gpu_from\", \"cpu.threads\"] # nobody measured";
        let text = TEXT.replace("estimates = [\"adaptive\", \"cpu.threads\"] # nobody measured", names);
        assert_ne!(text, TEXT);
        let edited = edit(&text, "b.toml", &[change("adaptive.top_down.gpu_from", Some(7))]).unwrap();
        let board = Board::<toml::Table>::parse(&edited, "b.toml").unwrap();
        assert_eq!(board.estimates, ["adaptive.top_down.up_to", "adaptive.bottom_up.gpu_from", "cpu.threads"]);
    }

    #[test]
    fn absent_keys_are_added_and_keys_without_a_value_removed() {
        let device = Change { path: "opencl.devices[0].name".into(), value: Some("GPU".into()), comment: "clinfo".into() };
        let changes = [
            change("adaptive.top_down.up_to", None),
            change("adaptive.bottom_up.up_to", None),
            change("adaptive.bottom_up.gpu_permille", Some(400)),
            change("adaptive.handover.fixed_us", Some(2)),
            device,
        ];
        let text = edit(TEXT, "b.toml", &changes).unwrap();
        let board = Board::<toml::Table>::parse(&text, "b.toml").unwrap();
        assert_eq!((board.adaptive.top_down.up_to, board.adaptive.bottom_up.gpu_permille), (None, Some(400)));
        assert_eq!(board.adaptive.handover.fixed_us, Some(2.0));
        assert_eq!(board.opencl.devices[0].name.as_str(), "GPU");
        assert_eq!(board.estimates, ["adaptive.top_down.gpu_from", "adaptive.bottom_up.gpu_from", "cpu.threads"]);
        // The same changes again change nothing.
        assert_eq!(edit(&text, "b.toml", &changes).unwrap(), text);
    }

    #[test]
    fn inline_tables_are_expanded() {
        let text = "schema = 1\nboard = { name = 'b' }\nadaptive = { top_down = { gpu_from = 3 } }\n";
        let edited = edit(text, "b.toml", &[change("adaptive.top_down.split_from", Some(9))]).unwrap();
        let board = Board::<toml::Table>::parse(&edited, "b.toml").unwrap();
        assert_eq!((board.adaptive.top_down.gpu_from, board.adaptive.top_down.split_from), (Some(3), Some(9)), "{edited}");
    }

    #[test]
    fn inline_arrays_of_tables_are_expanded() {
        let text = "schema = 1\nboard = { name = 'b' }\nopencl = { devices = [{ name = 'A' }, { name = 'B', work_group = 32 }] }\n";
        let edited = edit(text, "b.toml", &[change("opencl.devices[1].work_group", Some(64))]).unwrap();
        let board = Board::<toml::Table>::parse(&edited, "b.toml").unwrap();
        let devices: Vec<_> = board.opencl.devices.iter().map(|device| (device.name.as_str(), device.work_group)).collect();
        assert_eq!(devices, [("A", None), ("B", Some(64))], "{edited}");
        assert!(edited.contains("work_group = 64 # measured"), "{edited}");
    }

    #[test]
    fn edits_that_give_an_invalid_profile_are_refused() {
        let error = edit(TEXT, "b.toml", &[change("adaptive.top_down.gpu_from", Some(12_000_000))]).unwrap_err();
        assert!(error.to_string().contains("adaptive.top_down.up_to"), "{error}");
    }
}
