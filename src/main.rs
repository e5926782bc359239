//! The `socbfs` command.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: socbfs::cli::Allocator = socbfs::cli::Allocator;

fn main() -> ExitCode {
    socbfs::command()
}
