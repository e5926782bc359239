//! The `socbfs` command.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: socbfs::CommandAllocator = socbfs::CommandAllocator;

fn main() -> ExitCode {
    socbfs::command()
}
