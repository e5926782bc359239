//! The `socbfs` command.

fn main() -> ! {
    socbfs_tools::command()
}
