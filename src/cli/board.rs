//! `socbfs board`: profiles.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Subcommand};

use super::{
    config::{SearchArgs, SearchConfig, board_failure},
    error::Failure,
    output::print,
};
use crate::{
    board::{self, Board},
    engine::Simd,
    policy::Policy,
};

/// Show or check board profiles
#[derive(Debug, Args)]
pub(super) struct BoardArgs {
    #[command(subcommand)]
    command: BoardCommand,
}

#[derive(Debug, Subcommand)]
enum BoardCommand {
    /// Print the settings in force, each with its origin
    Show(Box<SearchArgs>),
    /// Print a profile that is compiled in, to start one's own from
    Profile {
        /// Name of the profile
        #[arg(default_value = "generic")]
        name: String,
    },
    /// Check a profile
    Validate {
        /// The profile
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

pub(super) fn run(arguments: &BoardArgs, matches: &ArgMatches) -> Result<(), Failure> {
    match &arguments.command {
        BoardCommand::Show(search) => {
            let matches = matches.subcommand().map_or(matches, |(_, matches)| matches);
            print(&settings(&search.resolve(matches)?))
        }
        BoardCommand::Profile { name } => match board::shipped_text(name) {
            Some(text) => print(text),
            None => Err(Failure::new(format!("there is no profile {name:?}"))
                .cure(format!("compiled in: {}", board::shipped().collect::<Vec<_>>().join(", ")))),
        },
        BoardCommand::Validate { file } => {
            let board = Board::<Policy>::load(file).map_err(|error| board_failure(&error))?;
            print(&format!("{}: a good profile, named {}\n", file.display(), board.board.name))
        }
    }
}

fn settings(config: &SearchConfig) -> String {
    let threads = match config.threads.value {
        0 => "one for every CPU".to_owned(),
        threads => threads.to_string(),
    };
    let cpus = if config.cpus.value.numbers().is_empty() { "not bound".to_owned() } else { config.cpus.value.to_string() };
    let row = |name: &str, value: &str, origin: &dyn std::fmt::Display| format!("{name:<10}{value:<24}{origin}\n");
    [
        format!("{:<10}{}\n", "board", config.board),
        row("threads", &threads, &config.threads.origin),
        row("cpus", &cpus, &config.cpus.origin),
        row("policy", &config.policy.value.to_string(), &config.policy.origin),
        row("simd", &config.simd.value.unwrap_or_else(Simd::detect).to_string(), &config.simd.origin),
    ]
    .concat()
}
