//! The `socbfs` command.

fn main() {}
