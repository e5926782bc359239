//! The `socbfs` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    socbfs_tools::command()
}
