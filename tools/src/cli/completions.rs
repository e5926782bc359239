//! `socbfs completions`: completions for a shell.

use clap::Args;
use clap_complete::Shell;

use crate::shell::{Failure, print};

const EXAMPLES: &str = "\
Examples:
  socbfs completions bash > ~/.local/share/bash-completion/completions/socbfs
  socbfs completions zsh > ~/.zfunc/_socbfs
  socbfs completions fish > ~/.config/fish/completions/socbfs.fish";

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArgs, mut command: clap::Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "socbfs", &mut text);
    print(&String::from_utf8_lossy(&text))
}
