//! Output of results: standard output, files, pages.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, BufWriter, IsTerminal as _, Write},
    os::fd::{AsFd, FromRawFd},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use clap::Args;
use serde::Serialize;

use super::{Failure, shown};
use crate::report::{
    self,
    figures::{self, COLOURS, Document, PLAIN},
    html,
};
use nix::unistd;
use socbfs::files::{self, AtomicFile, Claim};

/// Where a command that measures writes its record.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Write the whole record, raw times and levels included, as JSON, from which `socbfs report` makes the page ("-": standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) json: Option<PathBuf>,

    /// Write a page of charts: one file that needs no network ("-": standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
}

impl OutputArgs {
    /// Opens the outputs.
    pub(crate) fn open(&self) -> Result<Outputs, Failure> {
        Outputs::open(self.json.as_deref(), self.html.as_deref())
    }
}

/// Where a record goes besides the terminal: as JSON, and as a page.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    pub(crate) json: Option<Output>,
    pub(crate) html: Option<Output>,
}

impl Outputs {
    /// Opens those that are named.
    pub(crate) fn open(json: Option<&Path>, html: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self { json: json.map(Output::open).transpose()?, html: html.map(Output::open).transpose()? })
    }

    /// Whether one of them is standard output, which then has no room for text.
    pub(crate) fn take_stdout(&self) -> bool {
        take_stdout([&self.json, &self.html])
    }

    /// Writes `record` to them.
    pub(crate) fn write(self, record: &impl Serialize) -> Result<(), Failure> {
        // The record comes first: a page can be made from it again.
        let written = self.json.map_or(Ok(()), |json| json.finish_json(|out| report::json(record, out)));
        let draw = |page: Output| page.finish_page(&html::page(&[document(record)?], None));
        worse_of(written, self.html.map_or(Ok(()), draw))
    }

    /// Writes `record` to them, and prints the text `words` unless one of them is standard output.
    pub(crate) fn publish(self, record: &impl Serialize, words: impl FnOnce() -> String) -> Result<(), Failure> {
        let in_place = self.take_stdout();
        worse_of(self.write(record), if in_place { Ok(()) } else { print(&words()) })
    }
}

/// The figures of `record`, made from its JSON alone, so that `socbfs report` makes the same ones.
pub(crate) fn document(record: &impl Serialize) -> Result<Document, Failure> {
    let record = serde_json::to_value(record).map_err(|error| Failure::because("can't write JSON", &error))?;
    figures::document("this run", &record).map_err(|error| Failure::because("", &error))
}

/// Where results go.
static RESULTS: OnceLock<File> = OnceLock::new();

/// Keeps standard output for results: what a driver or another library prints there goes to standard error from now on.
pub(crate) fn keep_stdout() -> Result<(), Failure> {
    let keep = || {
        let results = io::stdout().as_fd().try_clone_to_owned()?;
        unistd::dup2_stdout(io::stderr())?;
        RESULTS.get_or_init(|| results.into());
        Ok(())
    };
    keep().map_err(|error: io::Error| Failure::because("can't keep standard output for results", &error))
}

/// Standard output as the command was given it.
pub(crate) fn results() -> &'static File {
    // SAFETY: the standard library opens descriptor 1 if it is closed, and a static is never dropped.
    RESULTS.get_or_init(|| unsafe { File::from_raw_fd(1) })
}

/// Prints a result on standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_safe(&shown::text(text))
}

fn print_safe(text: &str) -> Result<(), Failure> {
    let fits = |line| if str::starts_with(line, "warning: ") { shown::fitting(line, results()) } else { line.into() };
    let fitting: String = text.split_inclusive('\n').map(fits).collect();
    to_stdout(|out| out.write_all(fitting.as_bytes()))
}

/// Prints a result as one line of JSON on standard output.
pub(crate) fn print_json(record: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string(record).map_err(|error| Failure::because("can't write JSON", &error))?;
    to_stdout(|out| writeln!(out, "{}", shown::json(&json)))
}

/// Prints documents, in colours on a terminal, and with all columns of their tables if they are `wide`.
pub(crate) fn print_documents(documents: &[Document], wide: bool) -> Result<(), Failure> {
    print_coloured(|colours| documents.iter().map(|document| figures::text(document, colours, wide)).collect())
}

/// Prints the text that `write` returns: on a terminal with colours, those of [`COLOURS`].
pub(crate) fn print_coloured(write: impl FnOnce(bool) -> String) -> Result<(), Failure> {
    let variable = std::env::var_os;
    // mpirun gives its ranks a terminal, and writes what they print to wherever its own output goes.
    let shows = results().is_terminal() && !socbfs_cluster::is_launched();
    let colours = shows && has_colours(variable("NO_COLOR").as_deref(), variable("TERM").as_deref());
    let text = write(colours);
    if !colours {
        return print(&text);
    }
    let mut safe = shown::text(&text).into_owned();
    for colour in COLOURS.into_iter().chain([PLAIN]) {
        safe = safe.replace(&*shown::text(colour), colour);
    }
    print_safe(&safe)
}

/// Whether a terminal gets colours with these values of NO_COLOR (<https://no-color.org>) and TERM.
fn has_colours(no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    no_color.is_none_or(OsStr::is_empty) && term.is_none_or(|term| term != "dumb")
}

/// Whether one of `outputs` takes standard output, so that no text may go there.
pub(crate) fn take_stdout<'o>(outputs: impl IntoIterator<Item = &'o Option<Output>>) -> bool {
    outputs.into_iter().any(|output| matches!(output, Some(Output::Stdout(_))))
}

/// Combines the results of two outputs, or of an output and a check. If both failed, returns the failure with the higher exit code (the
/// first if the codes are equal), so that a closed pipe hides no other failure. Prints the other one.
pub(crate) fn worse_of(first: Result<(), Failure>, second: Result<(), Failure>) -> Result<(), Failure> {
    match (first, second) {
        (Err(first), Err(second)) => {
            let (kept, told) = if second.code() > first.code() { (second, first) } else { (first, second) };
            super::tell(&told);
            Err(kept)
        }
        (first, second) => first.and(second),
    }
}

fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(results());
    write(&mut out).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
}

/// Makes sure that no output of this command replaces the file at `path`, which the command reads. Called before it is read.
pub(crate) fn protect(path: &Path) -> Result<(), Failure> {
    files::protect(path).map_err(|error| unwritable(path, &error))
}

/// The text of the file at `path`, which no output of this command replaces.
pub(crate) fn read(path: &Path, kind: files::Kind, most: u64) -> Result<String, Failure> {
    protect(path)?;
    files::read_text(path, kind, most).map_err(|error| Failure::because(&format!("can't read {}", path.display()), &error))
}

/// The failure for an output at `path` that can't be opened.
fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::because(&format!("can't write {}", path.display()), error);
    failure.or_cure(match error.kind() {
        // The file is also an input or another output of this command.
        io::ErrorKind::ResourceBusy if path == Path::new("-") => "name a file for one of them",
        io::ErrorKind::ResourceBusy => "give the output a name of its own",
        _ => "name a file in a folder that exists and that you may write to",
    })
}

/// Where a result goes: a file, or standard output (`-`). It is opened before the work begins, so that a misspelt path does not cost hours
/// of work. The file appears under its name only when it is complete.
#[derive(Debug)]
pub(crate) enum Output {
    /// Standard output. Only one output can go there.
    Stdout(Claim),
    /// The path of a file, and the temporary that gets this name in the end.
    File(PathBuf, AtomicFile),
}

impl Output {
    /// Opens `path`, `-` for standard output.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        // Behind these paths is no longer what the command was given.
        if ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name)) {
            return Ok(Self::Stdout(Claim::stdout().map_err(|error| unwritable(path, &error))?));
        }
        AtomicFile::create(path).map(|file| Self::File(path.to_owned(), file)).map_err(|error| unwritable(path, &error))
    }

    /// As [`Output::open`] for a file that users edit: one that exists is refused with this cure.
    pub(crate) fn open_new(path: &Path, cure: &str) -> Result<Self, Failure> {
        if path.is_file() {
            return Err(Failure::new(format!("can't write {}: it exists already", path.display())).cure(cure));
        }
        Self::open(path)
    }

    /// The path, unless it is that of standard output, a terminal, a pipe or a device.
    pub(crate) fn regular_file(&self) -> Option<&Path> {
        match self {
            Self::File(path, _) if path.is_file() || !path.exists() => Some(path),
            _ => None,
        }
    }

    /// Calls `write` to write the content, then gives the file its name.
    pub(crate) fn finish(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        match self {
            Self::Stdout(_claim) => to_stdout(write),
            Self::File(path, file) => {
                let mut buffered = BufWriter::new(file);
                write(&mut buffered)
                    .and_then(|()| buffered.into_inner().map_err(io::IntoInnerError::into_error)?.commit())
                    .map_err(|error| Failure::because(&format!("can't write {}", path.display()), &error))
            }
        }
    }

    /// Writes a page or a picture with the escapes of [`print`]: it may go to a terminal, and a picture can't have control characters.
    pub(crate) fn finish_page(self, page: &str) -> Result<(), Failure> {
        self.finish(|out| out.write_all(shown::text(page).as_bytes()))
    }

    /// As [`Output::finish`] for JSON, in which standard output gets the escapes of [`print_json`].
    pub(crate) fn finish_json(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let is_stdout = matches!(self, Self::Stdout(_));
        self.finish(|out| {
            if !is_stdout {
                return write(out);
            }
            let mut json = Vec::new();
            write(&mut json)?;
            out.write_all(shown::json(&String::from_utf8_lossy(&json)).as_bytes())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_can_be_switched_off() {
        let has = |no_color: Option<&'static str>, term: Option<&'static str>| has_colours(no_color.map(OsStr::new), term.map(OsStr::new));
        assert!(has(None, None) && has(None, Some("xterm-256color")) && has(Some(""), Some("linux")));
        assert!(!has(Some("1"), Some("xterm")) && !has(Some("0"), None) && !has(None, Some("dumb")));
    }

    #[test]
    fn a_closed_pipe_hides_no_other_failure() {
        let pipe = || Err(Failure::BrokenPipe);
        let code = |result: Result<(), Failure>| result.map_or_else(|failure| failure.code(), |()| 0);
        assert_eq!(code(worse_of(Ok(()), Ok(()))), 0);
        assert_eq!(code(worse_of(pipe(), Ok(()))), 0);
        for failure in [|| Failure::Invalid, || Failure::new("disk full"), || Failure::Command(3)] {
            let expected = failure().code();
            for other in [pipe, || Ok(())] {
                assert_eq!(code(worse_of(other(), Err(failure()))), expected);
                assert_eq!(code(worse_of(Err(failure()), other())), expected);
            }
        }
        let kept = worse_of(Err(Failure::new("first")), Err(Failure::new("second"))).unwrap_err();
        assert_eq!(kept.to_string(), "first");
    }
}
