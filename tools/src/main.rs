//! The `socbfs` command.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: socbfs_tools::CommandAllocator = socbfs_tools::CommandAllocator;

fn main() -> ExitCode {
    socbfs_tools::command()
}
