//! A profile with other values, in which every value keeps its source.

use socbfs_boards::board::{Board, DocumentError, covers};
use socbfs_policy::NEVER;
use toml::Table;

/// The text of `board`: the profile `before` with new values at and below the paths of `changes`. Beside each value is a comment that says
/// where it is from: for a new one that of `changes`, else the source in `before`. The new values are measured, so they are no estimates.
/// `file` names the profile in errors.
///
/// # Errors
/// [`DocumentError`] if the text is not a profile before or after the changes.
pub fn rewritten(mut board: Board<Table>, before: &str, file: &str, changes: &[(String, String)]) -> Result<String, DocumentError> {
    let before = Board::<Table>::entries(before, file)?;
    let new = |key: &str| changes.iter().find(|(path, _)| covers(path, key)).map(|(_, comment)| comment);
    board.estimates = before.iter().filter(|entry| entry.estimate && new(&entry.key).is_none()).map(|entry| entry.key.clone()).collect();
    let refused = |error: toml::ser::Error| DocumentError::Parse { file: file.to_owned(), line: 1, message: error.to_string() };
    let text = toml::to_string(&board).map_err(refused)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for entry in Board::<Table>::entries(&text, file)? {
        let line = &mut lines[entry.line - 1];
        if entry.key.starts_with("adaptive.") && entry.value == NEVER.to_string() {
            *line = line.replace(&entry.value, "\"never\"");
        }
        let source = new(&entry.key).or_else(|| before.iter().find(|old| old.key == entry.key)?.source.as_ref());
        // Text over several lines has no place for a comment.
        if let Some(source) = source.filter(|_| !entry.value.contains('\n')) {
            *line += &format!(" # {source}");
        }
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# A board.
schema = 1
estimates = [\"adaptive\", \"adaptive.top_down\", \"cpu\"] # nobody measured
board = { name = \"b\", notes = \"two\\nlines\" }

[cpu]
threads = 3 # no 4
batch = 64

# From a paper.
[adaptive.top_down]
gpu_from = 90_000
up_to = 12_000_000

[[opencl.devices]]
name = 'a' # seen
max_alloc_bytes = 4294967296
";

    fn changed(change: impl FnOnce(&mut Board<Table>), path: &str) -> Result<String, DocumentError> {
        let mut board = Board::parse(TEXT, "b.toml").unwrap();
        change(&mut board);
        rewritten(board, TEXT, "b.toml", &[(path.to_owned(), "measured".to_owned())])
    }

    #[test]
    fn new_values_are_no_estimates_and_all_keep_their_sources() {
        let set = |board: &mut Board<Table>| {
            board.adaptive = socbfs_boards::board::Adaptive::default();
            (board.adaptive.top_down.gpu_from, board.adaptive.bottom_up.split_from) = (Some(7), Some(NEVER));
        };
        let text = changed(set, "adaptive").unwrap();
        let expected = "\
schema = 1
estimates = [\"cpu.threads\", \"cpu.batch\"]

[board]
name = \"b\"
notes = \"\"\"
two
lines\"\"\"

[cpu]
threads = 3 # no 4
batch = 64

[[opencl.devices]]
name = \"a\" # seen
max_alloc_bytes = 4294967296

[adaptive.top_down]
gpu_from = 7 # measured

[adaptive.bottom_up]
split_from = \"never\" # measured
";
        assert_eq!(text, expected);
        assert_eq!(Board::<Table>::parse(&text, "b.toml").unwrap().adaptive.bottom_up.split_from, Some(NEVER));
    }

    #[test]
    fn values_that_give_an_invalid_profile_are_refused() {
        let error = changed(|board| board.adaptive.top_down.gpu_from = Some(12_000_000), "adaptive.top_down.gpu_from").unwrap_err();
        assert!(error.to_string().contains("adaptive.top_down.up_to"), "{error}");
    }
}
