//! Events that end the program: a panic, and an abort, such as that of the standard library where an allocation fails and no error can be
//! returned. Each ends it with exit code 2 and a line with the reason, as every error does. A panic also leaves no temporary file.

use std::panic::PanicHookInfo;

use nix::libc;
use signal_hook::{consts::SIGABRT, low_level};

use socbfs::files;
use socbfs_io as input;

/// The exit code of an error.
const CODE: i32 = 2;

/// What is said after an abort. The standard library has said how much memory it did not get; a driver may have said nothing.
const ABORTED: &str = "error: the program was aborted, by a lack of memory (if a line above says so) or by an OpenCL driver\n  help: use a \
    smaller graph or a machine with more memory; --device cpu searches without a driver\n";

/// Installs the panic hook and the handler of an abort.
pub(crate) fn watch() {
    std::panic::set_hook(Box::new(panicked));
    // SAFETY: the handler calls only what a signal handler may call: it writes and exits.
    let watched = unsafe {
        low_level::register(SIGABRT, || {
            libc::write(2, ABORTED.as_ptr().cast(), ABORTED.len());
            libc::_exit(CODE);
        })
    };
    if let Err(error) = watched {
        log::debug!("aborts are not explained: {error}");
    }
}

fn panicked(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let reason = payload.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| payload.downcast_ref::<String>().cloned());
    let reason = reason.unwrap_or_default();
    let place = info.location().map_or_else(String::new, ToString::to_string);
    if std::thread::current().name() == Some(input::READING) {
        super::say(&format!("error: the data are damaged: decompression failed ({reason})"));
    } else {
        super::say(&format!("error: a bug in socbfs, at {place}: {reason}"));
        super::say("  help: please report it, with the command; SECURITY.md says how if the input is another person's");
    }
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
        super::say(&std::backtrace::Backtrace::force_capture().to_string());
    }
    files::try_remove_temporaries();
    // SAFETY: ends the process. (Not by `exit`, since other threads are still running.)
    unsafe { libc::_exit(CODE) };
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Environment variable that gives a child process of the test the name of the thread that panics.
    const PANICS: &str = "SOCBFS_TEST_PANICS";

    #[test]
    fn a_panic_ends_the_process_as_an_error() {
        if let Ok(name) = std::env::var(PANICS) {
            super::watch();
            let thread = std::thread::Builder::new().name(name).spawn(|| panic!("the \u{1b}reason"));
            let _ = thread.unwrap().join();
            std::thread::sleep(std::time::Duration::from_secs(60));
            return;
        }
        let test = "shell::fatal::tests::a_panic_ends_the_process_as_an_error";
        for (thread, words) in [
            ("any", &["error: a bug in socbfs, at tools/src/shell/fatal.rs:", "the \\u{1b}reason", "  help: please report it"][..]),
            (socbfs_io::READING, &["error: the data are damaged: decompression failed"]),
        ] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(PANICS, thread).env_remove("RUST_BACKTRACE");
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{thread}: {said}");
            assert!(words.iter().all(|word| said.contains(word)), "{thread}: {said}");
            assert!(!said.contains("RUST_BACKTRACE"), "{thread}: {said}");
        }
    }
}
