//! `socbfs compare`: two programs or settings in turn, or two recorded runs side by side.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::Args;

use crate::{
    report::{Comparison, Effect, InTurn, Run, figures, html, over_graphs},
    shell::{Bar, Failure, Output, interrupt, print, progress, read, take_stdout, worse_of},
};
use socbfs::files;

const EXAMPLES: &str = "\
Examples:
  socbfs compare --a '--policy auto' --b '--policy alpha-beta:50,18' road.gr
  socbfs compare --a-binary old/socbfs kronecker:20 --fail-if-slower 2
  socbfs bench --json before.json
  socbfs compare before.json after.json

The speed of a machine drifts: runs in turn (A B B A ...) see through that, two
records do not. With flags, `socbfs bench` searches GRAPH... with these flags in
each round, from the same roots, and validates every tree.
Exit code 3: B is slower than --fail-if-slower allows.";

/// Compare two settings or programs in turn, or two records of `socbfs bench --json`
///
/// Prints medians and means of the times, B's speed over A's with its 95 % interval (by a bootstrap over roots and rounds), and one
/// sentence that says which is faster, if that is certain. Of two records, also every field in which machine, build, graph, roots or
/// settings differ; records of different graphs are refused.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareArgs {
    /// Two records, the baseline A and the candidate B; with --a, --b, --a-binary or --b-binary: files or generators
    #[arg(value_name = "A.json B.json|GRAPH", required = true)]
    named: Vec<PathBuf>,

    /// Flags of `bench` for A, in one word
    #[arg(long, value_name = "FLAGS", default_value = "", hide_default_value = true, allow_hyphen_values = true, help_heading = "In turn")]
    a: String,

    /// Flags of `bench` for B
    #[arg(long, value_name = "FLAGS", default_value = "", hide_default_value = true, allow_hyphen_values = true, help_heading = "In turn")]
    b: String,

    /// Another program for A, such as an older build [default: this one]
    #[arg(long, value_name = "FILE", help_heading = "In turn")]
    a_binary: Option<PathBuf>,

    /// Another program for B
    #[arg(long, value_name = "FILE", help_heading = "In turn")]
    b_binary: Option<PathBuf>,

    /// Rounds, in each of which A and B run once over every graph
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(2..), help_heading = "In turn")]
    rounds: u16,

    /// Roots of each graph
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..), help_heading = "In turn")]
    roots: u16,

    /// End with exit code 3 if B is slower by more than this, at every point of the interval
    #[arg(long, value_name = "PERCENT")]
    fail_if_slower: Option<f64>,

    /// Compare records of different graphs
    #[arg(long)]
    force: bool,

    /// Write a page of two records: both runs side by side, with intervals and what differs ("-": standard output)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["a", "b", "a_binary", "b_binary"])]
    html: Option<PathBuf>,
}

pub(super) fn run(arguments: &CompareArgs) -> Result<(), Failure> {
    let takes_turns = !arguments.a.is_empty() || !arguments.b.is_empty() || arguments.a_binary.is_some() || arguments.b_binary.is_some();
    match &arguments.named[..] {
        graphs if takes_turns => arguments.in_turn(graphs),
        [a, b] => arguments.records([a, b]),
        named => Err(Failure::new(format!("two records are compared, and not {}", named.len()))
            .cure("name two; --a FLAGS and --b FLAGS compare settings on graphs")),
    }
}

/// The exit code if B is too slow.
const SLOWER: u8 = 3;

impl CompareArgs {
    /// Fails if `effect` says that B is too slow.
    fn limit(&self, effect: Option<Effect>) -> Result<(), Failure> {
        match (self.fail_if_slower, effect) {
            (Some(percent), Some(effect)) if effect.is_slower_by(percent) => Err(Failure::Command(SLOWER)),
            _ => Ok(()),
        }
    }

    fn records(&self, paths: [&PathBuf; 2]) -> Result<(), Failure> {
        let html = self.html.as_deref().map(Output::open).transpose()?;
        let names = paths.map(|path| path.display().to_string());
        let load = |path: &PathBuf, name: &str| {
            let text = read(path, files::Kind::Stream, files::RECORD)?;
            Ok::<_, Failure>(Run::parse(&text, name)?)
        };
        let runs = [load(paths[0], &names[0])?, load(paths[1], &names[1])?];
        let comparison = Comparison::new((&names[0], &runs[0]), (&names[1], &runs[1]), self.force)?;
        for (field, [left, right]) in &comparison.differences {
            log::warn!("{field} differs: {left} | {right}");
        }
        let in_place = take_stdout([&html]);
        let sides = [&*names[0], &names[1]];
        let drawn = html.map_or(Ok(()), |html| write_comparison(html, sides, &runs, &comparison));
        let printed = if in_place { Ok(()) } else { print(&comparison.table(sides)) };
        worse_of(worse_of(drawn, printed), self.limit(comparison.medians))
    }

    /// Runs A and B in turn over every graph.
    fn in_turn(&self, graphs: &[PathBuf]) -> Result<(), Failure> {
        let flags = [words(&self.a)?, words(&self.b)?];
        let this = || std::env::current_exe().map_err(|error| Failure::because("can't find this program", &error));
        let program = |given: &Option<PathBuf>| given.clone().map_or_else(this, Ok);
        let programs = [program(&self.a_binary)?, program(&self.b_binary)?];
        let mut compared: Vec<InTurn> = Vec::new();
        for (graph, number) in graphs.iter().zip(1..) {
            let name = graph.display().to_string();
            progress::at_graph(number, graphs.len());
            let rounds = usize::from(self.rounds);
            let progress = Bar::still(&name, 2 * u64::from(self.rounds));
            let mut turns = InTurn::default();
            for round in 0..rounds {
                let mut pair = [None, None];
                for place in 0..2 {
                    // A B B A: a steady drift is the same for both.
                    let side = if round % 2 == 0 { place } else { 1 - place };
                    let label = ["A", "B"][side];
                    progress.between_saying((2 * round + place) as u64, &format!("round {} of {rounds}, {label}, {name}", round + 1));
                    pair[side] = Some(self.bench(label, &programs[side], graph, &flags[side])?);
                }
                if let [Some(a), Some(b)] = pair {
                    turns.add(["A", "B"], [a, b])?;
                }
            }
            drop(progress);
            print(&(turns.table(&name) + if graphs.len() > 1 { "\n" } else { "" }))?;
            compared.push(turns);
        }
        let (effect, sentence) = over_graphs(&compared);
        let printed = if compared.len() > 1 { print(&format!("Over {} graphs: {sentence}\n", compared.len())) } else { Ok(()) };
        worse_of(printed, self.limit(effect))
    }

    /// Runs `bench` once, as a process of its own, and reads its record.
    fn bench(&self, label: &str, program: &Path, graph: &Path, flags: &[String]) -> Result<Run, Failure> {
        let mut command = Command::new(program);
        command.args(["bench", "--quiet", "--roots", &self.roots.to_string(), "--json", "-"]);
        // Windows of energy would take most of the time.
        if !flags.iter().any(|flag| flag.starts_with("--energy")) {
            command.args(["--energy", "off"]);
        }
        command.args(flags).arg("--").arg(graph).stdin(Stdio::null()).stdout(Stdio::piped());
        let passing = interrupt::passing();
        let name = program.display();
        let child = command.spawn().map_err(|error| {
            Failure::because(&format!("can't run {name}"), &error).cure("name a build of socbfs that this machine can run")
        })?;
        passing.to(child.id());
        let output = child.wait_with_output().map_err(|error| Failure::because(&format!("can't wait for {name}"), &error));
        let interrupted = passing.interrupted();
        drop(passing);
        let output = output?;
        if interrupted {
            return Err(Failure::Command(130));
        }
        if !output.status.success() {
            let flags = flags.join(" ");
            return Err(Failure::new(format!("{label}: `{name} bench {flags}` ended with {}", output.status)));
        }
        Ok(Run::parse(&String::from_utf8_lossy(&output.stdout), &format!("the output of {label}"))?)
    }
}

/// The words of `text`, which quotes may hold together.
fn words(text: &str) -> Result<Vec<String>, Failure> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(quote) => Err(Failure::new(format!("{text}: the quote {quote} has no end"))),
        None => Ok(words),
    }
}

/// Writes a page with both runs.
fn write_comparison(html: Output, names: [&str; 2], runs: &[Run; 2], comparison: &Comparison) -> Result<(), Failure> {
    let mut documents = Vec::new();
    for (name, run) in names.iter().zip(runs) {
        let mut document = figures::document(name, &run.value).map_err(|error| Failure::because("", &error))?;
        // The page puts sections of the same title side by side, and the same graph may have been read under two names.
        document.sections.iter_mut().for_each(|section| section.title = "Both runs".to_owned());
        documents.push(document);
    }
    html.finish_page(&html::page(&documents, Some(&comparison.section(names))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_words_and_quotes_hold_them_together() {
        let split = |text: &str| words(text).unwrap();
        assert_eq!(split("  --policy tc --threads=2 "), ["--policy", "tc", "--threads=2"]);
        assert_eq!(split(r#"--policy 'rule:a > b' --at "x y"z ''"#), ["--policy", "rule:a > b", "--at", "x yz", ""]);
        assert_eq!(split(""), [""; 0]);
        assert!(words("--policy 'rule").is_err());
    }
}
