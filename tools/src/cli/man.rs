//! `socbfs man`: manual pages, for packages.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, Command};
use clap_mangen::Man;

use crate::shell::{Failure, Output};

/// Write a manual page for the command and each of its subcommands into a folder
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// The folder, created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(super) fn run(arguments: &ManArgs, command: Command) -> Result<(), Failure> {
    let folder = &arguments.folder;
    fs::create_dir_all(folder).map_err(|error| Failure::because(&format!("can't make {}", folder.display()), &error))?;
    // `build` gives subcommands their full names ("socbfs-board-detect"). The subcommand `help` needs no page.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    pages(&command, folder)
}

fn pages(command: &Command, folder: &Path) -> Result<(), Failure> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        pages(subcommand, folder)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = Output::open(&folder.join(format!("{name}.1")))?;
    file.finish(|out| page(command, out))
}

/// Writes the sections of a page. The lines of the text after the options (examples, notes) are not joined (`.nf`).
fn page(command: &Command, out: &mut dyn io::Write) -> io::Result<()> {
    let man = Man::new(command.clone()).manual("socbfs").source(concat!("socbfs ", env!("CARGO_PKG_VERSION")));
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(out)?;
    }
    if command.get_subcommands().any(|subcommand| !subcommand.is_hide_set()) {
        man.render_subcommands_section(out)?;
    }
    let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if !notes.trim().is_empty() {
        write!(out, ".SH NOTES\n.nf\n{}.fi\n", lines(&notes))?;
    }
    Ok(())
}

/// Escapes what roff would take for a request or an escape sequence.
fn lines(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for line in text.lines() {
        if line.starts_with(['.', '\'']) {
            escaped.push_str("\\&");
        }
        escaped.push_str(&line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga"));
        escaped.push('\n');
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_for_roff() {
        assert_eq!(lines("a --b\n.c\n'd'\ne\\f\n"), "a \\-\\-b\n\\&.c\n\\&\\(aqd\\(aq\ne\\ef\n");
    }

    #[test]
    fn every_subcommand_has_a_page_and_hidden_ones_have_none() {
        let folder = tempfile::tempdir().unwrap();
        let hidden = Command::new("hidden").hide(true);
        let command = Command::new("tool")
            .after_help("Examples:\n  tool one")
            .subcommand(Command::new("one").subcommand(Command::new("two")))
            .subcommand(hidden);
        run(&ManArgs { folder: folder.path().join("man") }, command).unwrap();
        let mut names: Vec<String> =
            fs::read_dir(folder.path().join("man")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["tool-one-two.1", "tool-one.1", "tool.1"]);
        let text = fs::read_to_string(folder.path().join("man/tool.1")).unwrap();
        assert!(text.contains(".TH tool 1") && text.contains(".SH NOTES\n.nf\nExamples:\n  tool one\n.fi\n"), "{text}");
    }
}
