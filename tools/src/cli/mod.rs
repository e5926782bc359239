//! The command line: one file per subcommand.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 good, 1 a result failed validation, 2 usage, input or
//! device, 3 what is compared is slower than allowed, 130 interrupted.

mod analyze;
mod bench;
mod board;
mod board_report;
mod calibrate;
#[cfg(feature = "mpi")]
mod cluster;
mod compare;
mod completions;
mod convert;
mod devices;
mod doctor;
mod energy;
mod generate;
mod grid;
mod info;
mod man;
mod policies;
mod report;
mod reproduce;
mod run;
mod sensors;
mod sweep;
mod train;
mod validate;

use std::{
    borrow::Cow,
    io::{Write, stderr, stdout},
};

use clap::{ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};

use crate::{
    report::COLUMNS,
    shell::{Failure, clocks, fatal, interrupt, keep_stdout, progress, say, shown, tell, tell_variables, with_variables, worse_of},
};
use socbfs::words::{LONGEST, cut};

const EXAMPLES: &str = "\
Examples:
  socbfs bench                                 a graph that fits this machine
  socbfs bench web.mtx.gz --threads 4 --json r.json
  socbfs run kronecker:18 --root 5 --trace     one search, level by level
  socbfs run road.gr --root 0 --parents tree.npy
  socbfs grid map.yaml --sources 9,4 --picture d.png    a map, no graph
  socbfs validate road.gr tree.npy --root 0    check a BFS tree
  socbfs compare --a '--policy auto' --b '--policy tc' road.gr    in turn
  socbfs analyze kronecker:18 --html k.html    the papers' plots of a graph
  socbfs doctor                                what is wrong on this machine
  socbfs calibrate --quick                     measure this machine for `auto`
  socbfs sensors                               what measures power here
  socbfs sweep                                 speed against watts: which CPUs, threads, clocks
  socbfs energy -- make -j4                    the energy of any command

Exit codes: 0 good, 1 a result failed validation, 2 usage, input or device,
3 B of `compare` is slower than allowed, 130 interrupted.
Environment: SOCBFS_THREADS, SOCBFS_CPUS, SOCBFS_POLICY, SOCBFS_SIMD,
SOCBFS_DEVICE, SOCBFS_MEMORY_WAY, SOCBFS_WORK_GROUP, SOCBFS_PARTS,
SOCBFS_BOARD, SOCBFS_CALIBRATION, SOCBFS_OBJECTIVE and SOCBFS_ENERGY set the
flags of these names unless they are empty, SOCBFS_DATA that of `reproduce
--data`. SOCBFS_LOG=info (or debug) logs as -v does. SOCBFS_CACHE_DIR names
the folder for built OpenCL programs. SOCBFS_DEVICE_TIMEOUT: the seconds that an
OpenCL driver may take to list or open its devices, and a device to end its
work.";

/// Breadth-first search for chips whose CPU and GPU share memory, measured and validated.
///
/// socbfs reads or generates a graph and builds a structure that is fast to search. At every level its search chooses the direction
/// (top-down or bottom-up) and the device (CPU, GPU or both). It checks every tree against the edges as given, and reports traversed edges
/// per second (TEPS) in the form of Graph500.
#[derive(Debug, Parser)]
#[command(name = "socbfs", version, long_version = LONG_VERSION, after_help = EXAMPLES, max_term_width = COLUMNS, arg_required_else_help = true)]
struct Cli {
    /// Print more messages (-vv: still more)
    #[arg(short, long, global = true, help_heading = "General", action = ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,

    /// Print results and errors only
    #[arg(short, long, global = true, help_heading = "General")]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("SOCBFS_COMMIT"),
    "\ncompiler: ",
    env!("SOCBFS_COMPILER"),
    "\ntarget: ",
    env!("SOCBFS_TARGET"),
);

#[derive(Debug, Subcommand)]
enum Command {
    Bench(bench::BenchArgs),
    Analyze(analyze::AnalyzeArgs),
    Report(report::ReportArgs),
    Reproduce(reproduce::ReproduceArgs),
    Run(run::RunArgs),
    Grid(grid::GridArgs),
    Validate(validate::ValidateArgs),
    Compare(compare::CompareArgs),
    Generate(generate::GenerateArgs),
    Convert(convert::ConvertArgs),
    Info(info::InfoArgs),
    Policies(policies::PoliciesArgs),
    Calibrate(calibrate::CalibrateArgs),
    Devices(devices::DevicesArgs),
    Train(train::TrainArgs),
    Board(board::BoardArgs),
    Sensors(sensors::SensorsArgs),
    Sweep(sweep::SweepArgs),
    Doctor(doctor::DoctorArgs),
    Energy(energy::CommandArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Man(man::ManArgs),
}

/// Parses the command line, runs the command, prints its error, and ends the process.
pub fn main() -> ! {
    let code = exit_code();
    // SAFETY: ends the process. (Not by `exit`: what drivers do at its end may crash or never end, and all output is written.)
    unsafe { nix::libc::_exit(code.into()) }
}

fn exit_code() -> u8 {
    fatal::watch();
    let (cli, matches) = match parse() {
        Ok(parsed) => parsed,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            let text = error.render().to_string();
            // Without a subcommand, the help goes to standard error. It has nothing of the command line.
            let is_help = !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
            let shorter = if is_help { Cow::Borrowed(&*text) } else { cut(&text, LONGEST) };
            let is_wide = !is_help && matches!(shown::fitting(&shorter, stderr()), Cow::Owned(_));
            if is_wide || matches!((&shorter, shown::text(&shorter)), (Cow::Owned(_), _) | (_, Cow::Owned(_))) {
                // The message is too long or has control characters: a script may have put foreign text on the command line.
                say(&shorter);
                tell_variables();
                return code;
            }
            let printed = error.print().and_then(|()| stdout().flush());
            // A failure to print an error can't be reported elsewhere. Help and version are results.
            if let Some(failure) = printed.err().filter(|_| code == 0).map(|error| Failure::stdout(&error)) {
                tell(&failure);
                return failure.code();
            }
            if !is_help {
                tell_variables();
            }
            return code;
        }
    };
    if cli.quiet {
        progress::disable();
    }
    let ready = keep_stdout().and_then(|()| log_to_stderr(&cli)).and_then(|()| interrupt::watch());
    match ready.and_then(|()| worse_of(dispatch(&cli, &matches), clocks::put_back())) {
        Ok(()) => 0,
        Err(failure) => {
            tell(&failure);
            failure.code()
        }
    }
}

/// The narrowest text that can be read; less in COLUMNS is ignored.
const LEAST_COLUMNS: usize = 40;

fn parse() -> Result<(Cli, ArgMatches), clap::Error> {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut command = Cli::command();
    // Where there is no terminal, clap takes any width from COLUMNS.
    if std::env::var("COLUMNS").is_ok_and(|columns| columns.parse().is_ok_and(|columns: usize| columns < LEAST_COLUMNS)) {
        command = command.term_width(COLUMNS);
    }
    let matches = with_variables(command, &words).try_get_matches()?;
    let cli = Cli::from_arg_matches(&matches)?;
    Ok((cli, matches))
}

fn dispatch(cli: &Cli, matches: &ArgMatches) -> Result<(), Failure> {
    // The processes would do the same work at once, and disturb each other's times.
    let in_one = matches!(
        cli.command,
        Command::Policies(_)
            | Command::Analyze(_)
            | Command::Reproduce(_)
            | Command::Calibrate(_)
            | Command::Train(_)
            | Command::Compare(_)
            | Command::Sweep(_)
            | Command::Grid(_)
    );
    if in_one && socbfs_cluster::is_launched() {
        return Err(Failure::new("mpirun started this command, which runs in one process").cure("start it without mpirun"));
    }
    #[cfg(not(feature = "mpi"))]
    if matches!(cli.command, Command::Bench(_) | Command::Run(_) | Command::Validate(_)) && socbfs_cluster::is_launched() {
        log::warn!(
            "mpirun started several processes, but this program was compiled without the feature mpi, so each works alone \
             (docs/cluster.md says how to compile it)"
        );
    }
    // The matches of the subcommand know which values came from the environment.
    let matches = matches.subcommand().map_or(matches, |(_, matches)| matches);
    #[cfg(feature = "mpi")]
    if let Some(ended) = over_ranks(&cli.command, matches, cli.quiet) {
        return ended;
    }
    match &cli.command {
        Command::Bench(arguments) if arguments.is_board() => board_report::run(arguments, matches, cli.quiet),
        Command::Bench(arguments) => bench::run(arguments, matches, cli.quiet),
        Command::Analyze(arguments) => analyze::run(arguments, matches),
        Command::Report(arguments) => report::run(arguments),
        Command::Reproduce(arguments) => reproduce::run(arguments, matches),
        Command::Run(arguments) => run::run(arguments, matches),
        Command::Grid(arguments) => grid::run(arguments, matches),
        Command::Validate(arguments) => validate::run(arguments),
        Command::Compare(arguments) => compare::run(arguments),
        Command::Generate(arguments) => generate::run(arguments, cli.quiet),
        Command::Convert(arguments) => convert::run(arguments, cli.quiet),
        Command::Info(arguments) => info::run(arguments),
        Command::Policies(arguments) => policies::run(arguments, matches),
        Command::Calibrate(arguments) => calibrate::run(arguments, matches, cli.quiet),
        Command::Devices(arguments) => devices::run(arguments),
        Command::Train(arguments) => train::run(arguments, matches, cli.quiet),
        Command::Board(arguments) => board::run(arguments, matches, cli.quiet),
        Command::Sensors(arguments) => sensors::run(arguments),
        Command::Sweep(arguments) => sweep::run(arguments, matches, cli.quiet),
        Command::Doctor(arguments) => doctor::run(arguments, cli.quiet),
        Command::Energy(arguments) => energy::run(arguments, cli.quiet),
        Command::Completions(arguments) => completions::run(arguments, Cli::command()),
        Command::Man(arguments) => man::run(arguments, Cli::command()),
    }
}

/// Runs a command as one of the processes of `mpirun`; `None`: this process was started alone, or the command has no use for others.
#[cfg(feature = "mpi")]
fn over_ranks(command: &Command, matches: &ArgMatches, quiet: bool) -> Option<Result<(), Failure>> {
    type Work<'a> = &'a dyn Fn(&socbfs_cluster::MpiRanks) -> Result<(), Failure>;
    let work: Work<'_> = match command {
        Command::Bench(arguments) => &|ranks| cluster::bench(arguments, matches, quiet, ranks),
        Command::Run(arguments) => &|ranks| cluster::run(arguments, matches, ranks),
        Command::Validate(arguments) => &|ranks| cluster::validate(arguments, ranks),
        _ => return None,
    };
    if let Some(ranks) = socbfs_cluster::MpiRanks::join() {
        return Some(cluster::as_rank(&ranks, || work(&ranks)));
    }
    let takes_flags = matches!(command, Command::Bench(_) | Command::Run(_));
    takes_flags.then(|| crate::shell::config::ClusterArgs::none_is_given(matches)).filter(Result::is_err)
}

/// Starts logging to standard error. Flags override SOCBFS_LOG; without both, only warnings and errors are logged.
fn log_to_stderr(cli: &Cli) -> Result<(), Failure> {
    const LEVELS: &str = "off, error, warn, info, debug, trace";
    let level = match (cli.quiet, cli.verbose, std::env::var("SOCBFS_LOG")) {
        (true, ..) => log::LevelFilter::Error,
        (false, 0, Ok(level)) if !level.is_empty() => level
            .parse()
            .map_err(|_| Failure::new(format!("SOCBFS_LOG={level} is not a log level")).cure(format!("it is one of {LEVELS}")))?,
        (false, 0, Err(std::env::VarError::NotUnicode(_))) => {
            return Err(Failure::new("SOCBFS_LOG is not valid text").cure(format!("it is one of {LEVELS}")));
        }
        (false, 0, _) => log::LevelFilter::Warn,
        (false, 1, _) => log::LevelFilter::Info,
        (false, ..) => log::LevelFilter::Debug,
    };
    let mut builder = env_logger::Builder::new();
    builder.filter_level(level);
    builder.format(|out, record| {
        let level = match record.level() {
            log::Level::Warn => "warning".to_owned(),
            other => other.as_str().to_ascii_lowercase(),
        };
        writeln!(out, "{}", shown::fitting(&shown::line(&format!("{level}: {}", record.args())), stderr()))
    });
    builder.init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    #[test]
    fn the_arguments_are_well_formed() {
        Cli::command().debug_assert();
    }

    /// The flags that an environment variable can set, with the variable.
    fn variables(command: &clap::Command, found: &mut BTreeSet<(String, String)>) {
        for argument in command.get_arguments() {
            if let (Some(flag), Some(variable)) = (argument.get_long(), argument.get_env()) {
                found.insert((flag.to_owned(), variable.to_string_lossy().into_owned()));
            }
        }
        command.get_subcommands().for_each(|command| variables(command, found));
    }

    #[test]
    fn every_variable_is_in_the_help_and_in_the_page_of_settings() {
        let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md")).unwrap();
        let mut found = BTreeSet::new();
        variables(&Cli::command(), &mut found);
        assert!(found.len() > 10, "{found:?}");
        for (flag, variable) in &found {
            let row = format!("| `--{flag}` | `{variable}` |");
            assert!(page.lines().any(|line| line.contains(&row)), "docs/settings.md lacks {row}");
        }
        let words = |text: &str| -> BTreeSet<String> {
            let words = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
            words.filter(|word| word.starts_with("SOCBFS_")).map(str::to_owned).collect()
        };
        let others = ["SOCBFS_LOG", "SOCBFS_CACHE_DIR", "SOCBFS_DEVICE_TIMEOUT"].map(str::to_owned);
        let known: BTreeSet<String> = found.into_iter().map(|(_, variable)| variable).chain(others).collect();
        assert_eq!(words(&page), known);
        assert_eq!(words(EXAMPLES), known);
    }
}
