//! Text that is safe for a terminal: text from a file, a name, a record or a board can't move the cursor, set a title, or hide anything.
//! Everything that is printed or logged passes through here.

use std::{borrow::Cow, os::fd::AsFd};

use socbfs::words::{LONGEST, cut};
use terminal_size::{Width, terminal_size_of};

use crate::report::wrapped;

/// Escapes control characters, except line feeds and tabs, and characters that change the direction of writing.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_active) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(escaped(text, |c| c.escape_default().to_string()))
}

/// Escapes the same characters in JSON as JSON does: they stand only in strings, and have at most four hexadecimal digits.
pub(crate) fn json(json: &str) -> String {
    escaped(json, |c| format!("\\u{:04x}", u32::from(c)))
}

fn escaped(text: &str, escape: impl Fn(char) -> String) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_active(c) { shown.push_str(&escape(c)) } else { shown.push(c) }
    }
    shown
}

/// Makes a message safe as [`text`] does, [cuts](cut) it, and indents all lines but the first, so that none looks like another message.
pub(crate) fn line(message: &str) -> String {
    text(&cut(message, LONGEST)).replace('\n', "\n    ")
}

/// Breaks lines at blanks where `place` is a terminal that they do not fit.
pub(crate) fn fitting(text: &str, place: impl AsFd) -> Cow<'_, str> {
    terminal_size_of(place).map_or(Cow::Borrowed(text), |(Width(columns), _)| broken(text, columns.into()))
}

fn broken(text: &str, columns: usize) -> Cow<'_, str> {
    let fits = |line: &str| line.chars().count() <= columns;
    if text.lines().all(fits) {
        return Cow::Borrowed(text);
    }
    let fit = |line| if fits(line) { line.into() } else { wrapped(line, columns.max(16) - 4).join("\n    ") };
    Cow::Owned(text.split('\n').map(fit).collect::<Vec<_>>().join("\n"))
}

fn is_active(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}');
    turns || c.is_control() && c != '\n' && c != '\t'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_are_escaped_and_long_lines_shortened() {
        assert_eq!(
            text("a\x1b]0;title\x07\r\u{9b}2J\u{202e}z\n\t\u{e9}\x7f"),
            "a\\u{1b}]0;title\\u{7}\\r\\u{9b}2J\\u{202e}z\n\t\u{e9}\\u{7f}"
        );
        assert!(matches!(text("plain, \u{e9}\n"), Cow::Borrowed(_)));
        assert_eq!(line("error: a\nerror: b"), "error: a\n    error: b");
        let long = line(&format!("error: {}the end", "x".repeat(1 << 20)));
        assert!(long.len() < 2100 && long.ends_with("the end"), "{}", long.len());
    }

    #[test]
    fn lines_that_do_not_fit_are_broken_at_blanks() {
        let text = "  help: a file of lines, such as /a/path/that/is/very/long/indeed\n    short  table\n";
        let wanted = "  help: a file\n    of lines, such\n    as\n    /a/path/that/is/very/long/indeed\n    short  table\n";
        assert_eq!(broken(text, 20), wanted);
        assert_eq!(broken(text, 80), text);
    }

    #[test]
    fn json_stays_json() {
        let name = "Mali\x1b[2J\x7f\u{9b}\u{202e}\u{2069}\u{2028}\n\t\u{e9}\u{1f600}\"";
        let shown = json(&serde_json::json!({ "name": name }).to_string());
        assert_eq!(shown, r#"{"name":"Mali\u001b[2J\u007f\u009b\u202e\u2069\u2028\n\té😀\""}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["name"], name);
    }

    proptest! {
        #[test]
        fn no_control_character_is_left(words in ".*") {
            let shown = line(&words);
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            let shown = json(&serde_json::Value::from(words.as_str()).to_string());
            prop_assert!(!shown.chars().any(is_active));
            prop_assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), words);
        }
    }
}
