//! `socbfs policies`: policies side by side.

use std::{path::Path, time::Duration};

use clap::{ArgMatches, Args};

use super::bench::{ROOT, all_valid};
use crate::{
    bench::{EnergyError, RootSource, measure, measure_policies_energy, of_machine},
    calibrate::{Contestant, Turns, evaluate},
    record::{Environment, ExactLevel, PoliciesEnergy, PoliciesReport, PolicyComparison, PolicyGraph},
    report::{
        self,
        figures::{self, Document},
    },
    shell::{
        Bar, EnergyArgs, Failure, GraphsArgs, Measured, OutputArgs, Outputs, PolicyArg, SoFar, Source, kept, print, progress, source,
        with_graph_help, without_effect,
    },
};
use socbfs::{EdgeList, Strategy, Vertex};
use socbfs_boards::{
    board::StrategyWatts,
    runtime::{Origin, Prepared, Runtime, RuntimeError, Setting},
};
use socbfs_policy::{CostModel, Known, LevelDevice, ModelTerms, Objective, Policy};

const EXAMPLES: &str = "\
Examples:
  socbfs policies kronecker:18 road.gr
  socbfs policies web.mtx.gz --only auto,alpha-beta --roots 16
  socbfs policies kronecker:20 --device gpu --json p.json --markdown
  socbfs policies kronecker:20 --only auto,daga --energy auto --baseline daga

The oracle knows the cost of every level by every strategy (each was run at every
level, after every other), and plans the cheapest search. Regret is the time that
a policy's levels take beyond those of the oracle's plan, replayed in the same
turn. The time also includes mapping parents back to the input's numbers. Energy is
measured only if --energy is given.

With --json or --html, each finished graph is kept in FILE.partial at once: if the
run does not end, the same command continues there.";

/// Compare policies with each other and with a per-level oracle
///
/// First, every strategy runs every level of the searches, repeatedly, which gives the oracle's plan. Then the policies and the oracle
/// search in turns from the same roots. The table has: time; regret against the oracle; the share of levels in the faster direction
/// (accuracy) and the share of the time between both directions that was saved (reduced time), as in tables 3 and 4 of SURF; and the time
/// spent deciding.
///
/// A strategy is given up at every level where it takes more than 8 times as long as the best one. A policy that takes more than 8 times as
/// long as the oracle searches once from each root, and is given up if it does not end within a second.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES), mut_arg("policy", |flag| flag.hide(true)))]
pub(super) struct PoliciesArgs {
    #[command(flatten)]
    graphs: GraphsArgs,

    /// Compare only these policies: a comma-separated list, or, for a policy with parameters, a flag of its own
    #[arg(long, value_name = "POLICY")]
    only: Vec<String>,

    /// Roots of each graph
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    roots: u16,

    /// Searches of each policy from each root, and of each strategy at each level; up to four times as many of policies that these do not
    /// tell apart
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,

    /// Seconds of searches on a graph after which a policy begins no further turn
    #[arg(long, value_name = "S", default_value_t = 30)]
    patience: u32,

    /// The policy with which --energy compares the others [default: the first]
    #[arg(long, value_name = "POLICY", help_heading = "Energy")]
    baseline: Option<String>,

    #[command(flatten)]
    energy: EnergyArgs,

    /// All columns, not only those that fit 80 characters
    #[arg(long, help_heading = "Output")]
    wide: bool,

    /// Print markdown, with all columns
    #[arg(long, help_heading = "Output")]
    markdown: bool,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(arguments: &PoliciesArgs, matches: &ArgMatches) -> Result<(), Failure> {
    without_effect(matches, &["policy"], "policies compares several", "--only names those to compare")?;
    let mut config = arguments.graphs.search.resolve(matches)?;
    let default_policy = config.policy.value.to_string();
    // The environment and the board set these for searches, and this command compares policies.
    config.set_policy(Setting { value: Policy::default(), origin: Origin::BuiltIn });
    let sources = arguments.graphs.sources()?;
    let only = arguments.policies()?;
    let outputs = arguments.output.open()?;
    let asked = arguments.energy.is_asked(matches);
    if asked {
        arguments.energy.check(&config.profile)?;
    } else {
        without_effect(matches, &["baseline"], "energy is measured only on request", "add --energy auto")?;
    }
    let environment = Environment::read(Path::new(ROOT));
    config.apply()?;
    let report = PoliciesReport {
        schema: report::POLICIES_SCHEMA.into(),
        schema_version: report::POLICIES_SCHEMA_VERSION,
        environment: environment.clone(),
        default_policy,
        graphs: Vec::new(),
        warnings: of_machine(&environment, config.team().value, config.cpus.value.numbers()),
    };
    let (markdown, wide) = (arguments.markdown, arguments.wide);
    let form = move |shown: Document| if markdown { figures::markdown(&shown) } else { figures::text(&shown, false, wide) };
    // The tables of the graphs have been printed when each ended.
    let publish = move |report: &PoliciesReport, outputs: Outputs| outputs.publish(report, || form(report::policies_end(report)));
    let so_far = SoFar::new(report, outputs, publish, |report, why| {
        report.warnings.extend(why.map(|why| format!("graphs are missing, since {why}")));
        !report.graphs.is_empty()
    });
    so_far.run(|| {
        let mut kept: Vec<PolicyGraph> = so_far.resume(&environment, &config, &sources, ["graph", "graphs"])?;
        kept.retain(PolicyGraph::fits);
        so_far.each(
            &sources,
            kept,
            |graph| &graph.name,
            |source| arguments.graph(source, &config, &only, asked),
            |report, graph, warning| {
                report.warnings.extend(warning);
                report.graphs.push(graph.clone());
                Ok(())
            },
            |report| print(&form(report::policies_of_last(report))),
        )
    })
}

/// Which policies to compare.
pub(super) enum Among<'a> {
    /// These, on the device if there is one; if empty, all default policies that can run here.
    Policies(&'a [Policy]),
    /// The default policies that have these names (if empty, all) and can run here, each with its default placement.
    Names(&'a [String]),
}

/// What to compare, and how.
pub(super) struct Compare<'a> {
    pub(super) among: Among<'a>,
    pub(super) turns: usize,
    /// For how long.
    pub(super) patience: Patience,
    /// With which policy the energy of the others is compared; the first if `None`.
    pub(super) baseline: Option<&'a str>,
    /// What measures energy, and the edges to validate against; `None`: none is measured.
    pub(super) energy: Option<(&'a EnergyArgs, &'a EdgeList)>,
    /// Exact counts of the levels from the first root, if they are known.
    pub(super) exact: &'a [ExactLevel],
}

/// How long a comparison on a graph may take. Every search is run once at least.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    /// The searches of each policy.
    EachPolicy(Duration),
    /// All policies together, and so long again the strategies.
    Together(Duration),
}

impl Compare<'_> {
    /// The turns of this number of policies, from `roots`.
    fn turns(&self, policies: usize, roots: usize) -> Turns {
        let part = |whole: Duration, of: usize| whole / of.max(1) as u32;
        let own = Turns::default().patience;
        let (patience, contest) = match self.patience {
            Patience::EachPolicy(each) => (own, each),
            Patience::Together(all) => (own.min(part(all, roots)), part(all, policies)),
        };
        Turns { turns: self.turns, patience, contest, ..Turns::default() }
    }
}

/// Compares policies by searches from `roots` of the graph `name`.
pub(super) fn compare(
    config: &Runtime,
    prepared: &mut Prepared<'_>,
    name: &str,
    roots: &[Vertex],
    asked: &Compare<'_>,
) -> Result<PolicyComparison, Failure> {
    let on_device = (!prepared.devices.is_empty()).then_some(prepared.runs);
    let mut contestants = match asked.among {
        Among::Policies(only) => contestants(only, on_device)?,
        Among::Names(names) => {
            let mut all = contestants(&[], on_device)?;
            // A name matches as a whole, or without its parameters; "... on the device" is another contestant.
            let is_one = |name: &str| {
                let kind = name.split(':').next().filter(|_| !name.contains(' '));
                names.iter().any(|wanted| wanted == name || Some(wanted.as_str()) == kind)
            };
            all.retain(|contestant| names.is_empty() || is_one(&contestant.name));
            all
        }
    };
    for contestant in &mut contestants {
        contestant.policy = as_configured(config, contestant, prepared, config.objective.value)?;
    }
    let watts = add_objectives(config, prepared, on_device, &mut contestants);
    let baseline = baseline(asked.baseline, &contestants)?;
    let strategies = if on_device.is_some() { &Strategy::ALL[..] } else { &Strategy::CPU[..] };
    let how = Turns { splits: on_device.is_some(), gives_up: true, ..asked.turns(contestants.len(), roots.len()) };
    let progress = Bar::still(&format!("{name}, {} policies", contestants.len()), 1000);
    let tell = |share: f64, what: String| progress.between_saying((1000.0 * share) as u64, &format!("{what}, {name}"));
    let (evaluation, given_up) = evaluate(&mut prepared.search, roots, strategies, &contestants, &how, tell)?;
    drop(progress);
    let baseline = contestants[baseline].name.clone();
    contestants.retain(|contestant| given_up.iter().all(|given_up| given_up.policy != contestant.name));
    let policies = contestants.iter().map(|contestant| contestant.name.clone()).collect();
    // A baseline that was given up has no energy to compare with.
    let baseline = contestants.iter().position(|contestant| contestant.name == baseline).unwrap_or(0);
    let with_energy = asked.energy.filter(|_| !contestants.is_empty());
    let energy = with_energy.map(|(asked, edges)| energies(asked, config, edges, prepared, roots, &contestants, baseline)).transpose()?;
    let no_energy = energy.as_ref().and_then(|energy| Some(energy.as_ref().err()?.why().to_owned()));
    let energy = energy.and_then(Result::ok);
    let edges = prepared.search.layout().stats().edges;
    Ok(PolicyComparison { policies, turns: how.turns, edges, watts, exact: asked.exact.to_vec(), evaluation, given_up, energy, no_energy })
}

/// The policy of `contestant` as a search uses it: with the parameters from the board, the calibration and measurements.
fn as_configured(config: &Runtime, contestant: &Contestant, prepared: &Prepared<'_>, objective: Objective) -> Result<Policy, RuntimeError> {
    let policy = &contestant.policy;
    // These decide directions only: the contestant says where their levels run.
    let is_told = matches!(policy, Policy::Mlp(_) | Policy::Sampled(_));
    let with_device = if is_told { contestant.runs != LevelDevice::Cpu } else { !prepared.devices.is_empty() };
    let mut config = config.clone();
    config.set_policy(Setting::flag(policy.clone()));
    // The objective is for cost models only: the policies that they are compared with minimise time.
    config.objective.value = if config.wants_objective() { objective } else { Objective::Time };
    Ok(prepared.choose(&config, with_device)?.policy)
}

/// If the power of strategies is known, adds cost models that minimise energy, and energy times delay. Returns the power of each strategy.
fn add_objectives(
    config: &Runtime,
    prepared: &Prepared<'_>,
    device: Option<LevelDevice>,
    contestants: &mut Vec<Contestant>,
) -> Option<StrategyWatts> {
    let policy = Policy::CostModel(Box::new(CostModel::shipped(ModelTerms::Full)));
    let mut watts = None;
    for objective in [Objective::Energy, Objective::Edp] {
        let contestant = Contestant { name: format!("cost-model, {objective}"), policy: policy.clone(), runs: device.unwrap_or_default() };
        // Without the power of strategies there is nothing to add.
        let Ok(Policy::CostModel(model)) = as_configured(config, &contestant, prepared, objective) else { continue };
        watts = Some(StrategyWatts::by(|strategy| model.of(strategy).and_then(|cost| cost.watts)));
        contestants.push(Contestant { policy: Policy::CostModel(model), ..contestant });
    }
    watts
}

/// Measures the energy of `contestants` in turn, after one validated search from each root.
fn energies(
    asked: &EnergyArgs,
    config: &Runtime,
    edges: &EdgeList,
    prepared: &mut Prepared<'_>,
    roots: &[Vertex],
    contestants: &[Contestant],
    baseline: usize,
) -> Result<Measured<PoliciesEnergy>, Failure> {
    let search = &mut prepared.search;
    let mut records = Vec::with_capacity(roots.len());
    let validated = measure(edges, search.layout(), search, roots, &mut |_, root| records.extend(root));
    if let Err(none) = kept(Ok(validated.map_err(EnergyError::from)), true)? {
        return Ok(Err(none));
    }
    all_valid(&records)?;
    asked.measure_valid(&config.profile, contestants.len(), |meter, options, finished| {
        measure_policies_energy(search, contestants, baseline, &records, meter, options, finished)
    })
}

impl PoliciesArgs {
    /// Compares policies on one graph.
    fn graph(&self, source: &Source, config: &Runtime, only: &[Policy], with_energy: bool) -> Result<PolicyGraph, Failure> {
        let (edges, _) = source.load()?;
        let layout = source::build(&source.name(), &edges, &self.graphs.layout.options())?;
        let drawn = source::draw_roots(&source.name(), &layout, usize::from(self.roots), RootSource::GRAPH500)?;
        // A policy of --only that needs a device gets one, as in the other commands.
        let mut setup = config.clone();
        if let Some(policy) = only.iter().find(|policy| policy.needs_device()) {
            (setup.policy, setup.objective.value) = (Setting::flag(policy.clone()), Objective::Time);
        }
        let mut prepared = setup.search_for_all(&layout, &progress::steps())?;
        let asked = Compare {
            among: Among::Policies(only),
            turns: usize::from(self.turns),
            patience: Patience::EachPolicy(Duration::from_secs(self.patience.into())),
            baseline: self.baseline.as_deref(),
            energy: with_energy.then_some((&self.energy, &edges)),
            exact: &[],
        };
        let compared = compare(config, &mut prepared, &source.name(), &drawn, &asked)?;
        Ok(PolicyGraph { name: source.name(), layout: layout.stats().clone(), compared })
    }

    /// The policies of `--only`.
    fn policies(&self) -> Result<Vec<Policy>, Failure> {
        // A comma separates policies, or parameters of one policy.
        let parse = |text: &str| text.parse::<PolicyArg>();
        let mut all = Vec::new();
        for text in &self.only {
            match text.split(',').map(parse).collect::<Result<Vec<_>, _>>() {
                Ok(several) => all.extend(several),
                Err(_) => all.push(parse(text).map_err(|error| Failure::new(error.to_string()))?),
            }
        }
        all.iter().map(PolicyArg::compared).collect()
    }
}

/// Index of the contestant of this name, with which --energy compares the others.
fn baseline(name: Option<&str>, contestants: &[Contestant]) -> Result<usize, Failure> {
    let Some(name) = name else { return Ok(0) };
    let whole = contestants.iter().position(|contestant| contestant.name == name);
    // The name may also omit the parameters.
    let kind = || contestants.iter().position(|contestant| contestant.name.split(':').next() == Some(name));
    whole.or_else(kind).ok_or_else(|| {
        let known = contestants.iter().map(|contestant| contestant.name.as_str()).collect::<Vec<_>>().join("; ");
        Failure::new(format!("--baseline: {name} is not compared here; these are: {known}"))
    })
}

/// The policies to compare: `only`, or if it is empty all that can run here. With a device, those that decide only directions run on the
/// CPU and on the device.
fn contestants(only: &[Policy], device: Option<LevelDevice>) -> Result<Vec<Contestant>, Failure> {
    let contestant = |policy: &Policy, runs| Contestant { name: policy.to_string(), policy: policy.clone(), runs };
    let on_device = device.unwrap_or_default();
    if !only.is_empty() {
        return Ok(only.iter().map(|policy| contestant(policy, on_device)).collect());
    }
    let policies: Vec<Policy> = socbfs_policy::known().filter_map(Known::policy).chain(["cost-model:zhang".parse()?]).collect();
    let (needing, others): (Vec<&Policy>, Vec<&Policy>) = policies.iter().partition(|policy| policy.needs_device());
    // `auto` and policies that decide by costs choose the placement themselves, so they get the device if there is one.
    let is_free = |policy: &Policy| policy.decides_directions() && !matches!(policy, Policy::Auto(_));
    let first = |policy: &Policy| if is_free(policy) { LevelDevice::Cpu } else { on_device };
    let mut all: Vec<Contestant> = others.iter().map(|policy| contestant(policy, first(policy))).collect();
    if device.is_some() {
        all.extend(needing.iter().map(|policy| contestant(policy, on_device)));
        let twice = others.iter().filter(|policy| is_free(policy));
        all.extend(twice.map(|policy| Contestant { name: format!("{policy} on the device"), ..contestant(policy, on_device) }));
    }
    Ok(all)
}
