//! The calibration file: what `socbfs calibrate` measured on one machine, and the models fitted to it, as TOML.
//!
//! A calibration holds for the machine, the device and the settings that it names (see [`Identity`]) and for no other: speeds depend
//! on all of them.

use std::{fmt::Write as _, path::Path};

use serde::{Deserialize, Serialize, de::IgnoredAny};

use super::{Contest, Decider, HandoverTable, Trained};
use crate::board::{DocumentError, Entry, Kind, Violation, check_work_group, entries, not_negative, positive, ranges, refuse};
use socbfs::{Simd, bfs::Strategy, memory::SharingMode};
use socbfs_policy::{CostModel, CostModelError, mlp::NetworkKind};

/// The version of the calibration format that this build reads and writes.
pub const SCHEMA: u32 = 1;

const KIND: Kind = Kind { name: "calibration", short: "calibration", schema: SCHEMA, former: &[] };

/// The content of a calibration file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Version of the format: [`SCHEMA`].
    pub schema: u32,
    /// How and when it was made.
    pub made: Made,
    /// The machine, device and settings for which it holds.
    pub identity: Identity,
    /// The contest whose winner `auto` uses to minimise time, on the CPU or on a device that was named (`None`: there were too few graphs).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<Contest>,
    /// The model of all terms.
    pub model: CostModel,
    /// The model in the form of Zhang 2018 (equations 2 and 4): one average speed for each strategy.
    pub model_zhang: CostModel,
    /// The figures of every strategy, in the order of [`Strategy::ALL`].
    pub strategies: Vec<StrategyNumbers>,
    /// Power (`None`: no sensor).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// What an earlier version measured, and nothing uses.
    #[serde(default, skip_serializing)]
    pub parallel: IgnoredAny,
    /// The device that was measured in addition to the CPU (`None`: the CPU alone was measured).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<MeasuredDevice>,
    /// The graphs that were searched.
    pub graphs: Vec<GraphNumbers>,
    /// SURF's network, trained on this machine (`None`: not trained).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surf: Option<Trained>,
    /// Our network, trained on this machine (`None`: not trained).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mlp: Option<Trained>,
}

/// How and when a calibration was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// Version of socbfs.
    pub version: String,
    /// Commit of that version, with "+" where the source differs from it.
    pub commit: String,
    /// When it was made, RFC 3339 in UTC.
    pub date: String,
    /// The command line that made it.
    pub command: Vec<String>,
    /// Seed of the training set.
    pub seed: u64,
    /// Whether less care was taken, to save time.
    pub quick: bool,
    /// Seconds of generating, building and searching graphs, without interruptions.
    pub seconds: f64,
}

/// The machine, device and settings for which a calibration holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Name of the board profile.
    pub board: String,
    /// The processor, as the system names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Release of the kernel. (Only shown: a calibration holds for other kernels too.)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Number of threads that search.
    pub threads: usize,
    /// CPUs that the threads are bound to, in order (empty: not bound).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<usize>,
    /// Vector instructions.
    pub simd: Simd,
    /// The device that searches use in addition to the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<OpenClIdentity>,
}

/// An OpenCL device and how it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenClIdentity {
    /// Its name.
    pub name: String,
    /// Its platform.
    pub platform: String,
    /// Version of its driver.
    pub driver: String,
    /// Number of its compute units, since a board may have two devices of the same name.
    pub compute_units: u32,
    /// The sharing mode.
    pub memory_way: SharingMode,
    /// Work-items in a work-group: as given, or the size with which searches were fastest (`None`: by the kind of device).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_group: Option<usize>,
}

/// The figures of one strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategyNumbers {
    /// The strategy.
    pub strategy: Strategy,
    /// Number of levels at which it was measured and had edges to follow.
    pub levels: usize,
    /// Number of levels at which it was the fastest.
    pub fastest_levels: usize,
    /// Mean over these levels of edges divided by time, as Zhang 2018 averages, in 10^6 per second. Edges are those out of the frontier
    /// top-down, and those of unvisited vertices bottom-up.
    pub mean_mega_edges_per_s: f64,
    /// First quartile of these speeds.
    pub first_quartile_mega_edges_per_s: f64,
    /// Median of these speeds.
    pub median_mega_edges_per_s: f64,
    /// Third quartile of these speeds.
    pub third_quartile_mega_edges_per_s: f64,
    /// Sum over all levels of |modelled - measured| divided by the sum of measured, for the model of all terms.
    pub residual: f64,
    /// The same for the model of Zhang's form.
    pub residual_zhang: f64,
    /// Power of the machine while only this strategy runs, idle power included (`None`: not measured).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watts: Option<f64>,
    /// Its part of a split level while both devices work (`None`: not measured).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corun: Option<CoRun>,
}

/// Time of a part of a split level while the other device works, over its time while that device is idle, for the same part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoRun {
    /// Number of levels.
    pub levels: usize,
    /// First quartile of the ratios.
    pub first_quartile: f64,
    /// Median of the ratios, which the model uses.
    pub median: f64,
    /// Third quartile of the ratios.
    pub third_quartile: f64,
}

/// How power was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// What the counted sensors cover together.
    pub scope: String,
    /// The counted sensors.
    pub sensors: Vec<String>,
    /// Power of the idle machine (`None`: its window was not complete).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_watts: Option<f64>,
    /// Least length of a window.
    pub window_seconds: f64,
    /// The graph that was searched.
    pub graph: String,
}

/// The costs of a device other than those of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredDevice {
    /// Time of the quickest launch of a kernel that fills the smallest array in `handover`, until it is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_ns: Option<u64>,
    /// Times of the work-group sizes, if they were compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_groups: Vec<GroupTimes>,
    /// The cost of bottom-up levels relative to top-down ones, in thousandths of that ratio by
    /// [`SampledCosts`](socbfs::SampledCosts).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottom_up_permille: Option<u32>,
    /// The costs of handovers, by sharing mode and size.
    pub handover: HandoverTable,
}

/// One size of work-group, measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupTimes {
    /// Work-items in a work-group.
    pub items: usize,
    /// Time of searches with this size divided by the time with the usual size, measured in turn: geometric mean over graphs and kernels.
    pub relative: f64,
}

/// A graph of the training set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphNumbers {
    /// The generator with every parameter.
    pub graph: String,
    /// Number of vertices, including those without edges.
    pub vertices: u64,
    /// Number of edges, including repeats and self-loops.
    pub edges: u64,
    /// Number of roots searched from.
    pub roots: usize,
    /// Number of levels of all these searches.
    pub levels: usize,
}

/// A difference between the machine of a calibration and this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs.
    pub what: &'static str,
    /// Its value in the calibration.
    pub calibrated: String,
    /// Its value here.
    pub here: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "its {} is {}, here it is {}", self.what, self.calibrated, self.here)
    }
}

impl Identity {
    /// The first difference that matters between `self`, where a calibration was made, and `here`. `None`: the calibration holds here.
    pub fn difference(&self, here: &Self) -> Option<Difference> {
        let differs = |(calibrated, here): &((_, String), (_, String))| calibrated != here;
        let ((what, calibrated), (_, here)) = self.facts().into_iter().zip(here.facts()).find(differs)?;
        Some(Difference { what, calibrated, here })
    }

    /// What must be the same where a calibration holds.
    fn facts(&self) -> [(&'static str, String); 11] {
        let none = || "none".to_owned();
        let cpus = self.cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let device = |of: fn(&OpenClIdentity) -> String| self.device.as_ref().map_or_else(none, of);
        let group = self.device.as_ref().and_then(|device| device.work_group);
        [
            ("board", self.board.clone()),
            ("CPU", self.cpu_model.clone().unwrap_or_else(none)),
            ("number of threads", self.threads.to_string()),
            ("list of CPUs", if cpus.is_empty() { "not bound".to_owned() } else { cpus }),
            ("kind of vector instructions", self.simd.to_string()),
            ("OpenCL device", device(|device| device.name.clone())),
            ("OpenCL platform", device(|device| device.platform.clone())),
            ("OpenCL driver", device(|device| device.driver.clone())),
            ("number of compute units", device(|device| device.compute_units.to_string())),
            ("sharing mode", device(|device| device.memory_way.to_string())),
            ("work-group", group.map_or_else(|| "by the kind of device".to_owned(), |items| items.to_string())),
        ]
    }

    /// The strategies that can run: with a device all, otherwise those of the CPU.
    pub fn strategies(&self) -> &'static [Strategy] {
        if self.device.is_some() { &Strategy::ALL } else { &Strategy::CPU }
    }

    /// Name of its calibration file: `<board>-<threads>t-<simd>[-cpus<LIST>][-<device>-<units>cu].toml`. The device's name keeps only its
    /// letters and digits, in lower case, with `-` between words. Long parts are cut.
    pub fn file_name(&self) -> String {
        // Names and lists may be long; file systems allow 255 bytes.
        let cut = |mut text: String, bytes| {
            text.truncate(bytes);
            text
        };
        let mut name = cut(format!("{}-{}t-{}", self.board, self.threads, self.simd), 80);
        if !self.cpus.is_empty() {
            name.push_str("-cpus");
            name.push_str(&cut(ranges(&self.cpus).replace(',', "+"), 40));
        }
        if let Some(device) = &self.device {
            let words = device.name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
            let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
            // Writing to a String can't fail.
            let _ = write!(name, "-{}-{}cu", cut(words.join("-"), 80), device.compute_units);
        }
        format!("{name}.toml")
    }
}

impl Calibration {
    /// Reads and checks the calibration at `path`.
    ///
    /// # Errors
    /// [`DocumentError`] with the file, the line, the key and what is wrong.
    pub fn load(path: &Path) -> Result<Self, DocumentError> {
        Self::parse(&KIND.read(path)?, &path.display().to_string())
    }

    /// Whether `text` is that of a calibration, also one of another version or with values that are refused.
    pub fn is_recognised(text: &str) -> bool {
        text.parse::<toml::Table>().is_ok_and(|all| ["schema", "made", "identity"].iter().all(|key| all.contains_key(*key)))
    }

    /// Reads and checks a calibration from its text; `file` names it in errors.
    ///
    /// # Errors
    /// As [`Calibration::load`].
    pub fn parse(text: &str, file: &str) -> Result<Self, DocumentError> {
        KIND.parse(text, file, |calibration: &Self, _| calibration.validate())
    }

    /// The text of a calibration file with this content.
    ///
    /// # Errors
    /// If a value can't be written as TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        const HEAD: &str = "# Written by `socbfs calibrate`; every search on the machine named in [identity] finds it again.\n\n";
        Ok(format!("{HEAD}{}", toml::to_string(self)?))
    }

    /// Every key of the contest, the models and power in the calibration at `path`, with value and line, for readers who want to know what
    /// decides.
    ///
    /// # Errors
    /// [`DocumentError`] if the file can't be read.
    pub fn entries(path: &Path) -> Result<Vec<Entry>, DocumentError> {
        let all = entries(&KIND.read(path)?, &path.display().to_string(), &[])?;
        let decides = |entry: &Entry| ["auto.", "model.", "model_zhang.", "power."].iter().any(|table| entry.key.starts_with(table));
        Ok(all.into_iter().filter(decides).collect())
    }

    /// The policy that `auto` uses to minimise time, on the CPU or on a device that was named.
    pub fn decider(&self) -> Decider {
        let usual = if self.identity.device.is_some() { Decider::Sampled } else { Decider::CostModel };
        self.auto.as_ref().map_or(usual, |contest| contest.policy)
    }

    /// The network of this form that was trained on this machine.
    pub fn trained(&self, form: NetworkKind) -> Option<&Trained> {
        match form {
            NetworkKind::Surf => self.surf.as_ref(),
            NetworkKind::Mlp => self.mlp.as_ref(),
        }
    }

    /// Sets the network of this form. A contest's score of the previous `mlp` does not hold for a new one: until the next calibration
    /// `auto` decides without `mlp`.
    pub fn set_trained(&mut self, form: NetworkKind, trained: Trained) {
        match form {
            NetworkKind::Surf => self.surf = Some(trained),
            NetworkKind::Mlp => {
                self.mlp = Some(trained);
                if let Some(Contest { graphs, mut candidates, .. }) = self.auto.take() {
                    candidates.retain(|candidate| candidate.policy != Decider::Mlp);
                    self.auto = Contest::of(graphs, candidates, self.identity.device.is_some());
                }
            }
        }
    }

    /// The figures of `strategy`.
    pub fn strategy(&self, strategy: Strategy) -> Option<&StrategyNumbers> {
        self.strategies.iter().find(|numbers| numbers.strategy == strategy)
    }

    /// Checks all values. An error holds the path of the key and what is wrong.
    fn validate(&self) -> Result<(), Violation> {
        not_negative("made.seconds", Some(self.made.seconds))?;
        if self.identity.threads == 0 {
            return refuse("identity.threads", "is 0");
        }
        check_work_group("identity.device", self.identity.device.as_ref().and_then(|device| device.work_group))?;
        for (place, numbers) in self.strategies.iter().enumerate() {
            let key = |key: &str| format!("strategies[{place}].{key}");
            if self.strategies[..place].iter().any(|other| other.strategy == numbers.strategy) {
                return refuse(key("strategy"), format!("{} is given twice", numbers.strategy.name()));
            }
            for (name, value) in [
                ("mean_mega_edges_per_s", numbers.mean_mega_edges_per_s),
                ("first_quartile_mega_edges_per_s", numbers.first_quartile_mega_edges_per_s),
                ("median_mega_edges_per_s", numbers.median_mega_edges_per_s),
                ("third_quartile_mega_edges_per_s", numbers.third_quartile_mega_edges_per_s),
                ("residual", numbers.residual),
                ("residual_zhang", numbers.residual_zhang),
            ] {
                not_negative(&key(name), Some(value))?;
            }
            positive(&key("watts"), numbers.watts)?;
            if let Some(CoRun { first_quartile, median, third_quartile, .. }) = numbers.corun {
                for (name, ratio) in [("first_quartile", first_quartile), ("median", median), ("third_quartile", third_quartile)] {
                    positive(&key(&format!("corun.{name}")), Some(ratio))?;
                }
            }
        }
        for &strategy in self.identity.strategies() {
            let name = strategy.name();
            if self.strategy(strategy).is_none() {
                return refuse("strategies", format!("{name} is missing"));
            }
            for (key, model) in [("model", &self.model), ("model_zhang", &self.model_zhang)] {
                if model.of(strategy).is_none() {
                    return refuse(key, format!("has no entry for {name}"));
                }
            }
        }
        for (key, model) in [("model", &self.model), ("model_zhang", &self.model_zhang)] {
            model.validate().map_err(|error| match error {
                CostModelError::OutOfRange { key: term, value, least } => {
                    Violation { key: format!("{key}.{term}"), reason: format!("is {value}; it must be a finite number, {least} or above") }
                }
                other => Violation { key: key.to_owned(), reason: other.to_string() },
            })?;
        }
        self.validate_auto()?;
        for form in NetworkKind::ALL {
            if let Some(trained) = self.trained(form) {
                trained.validate(form).map_err(|Violation { key, reason }| Violation { key: format!("{}.{key}", form.name()), reason })?;
            }
        }
        if let Some(power) = &self.power {
            positive("power.idle_watts", power.idle_watts)?;
            not_negative("power.window_seconds", Some(power.window_seconds))?;
        }
        if self.device.as_ref().is_some_and(|device| device.bottom_up_permille == Some(0)) {
            return refuse("device.bottom_up_permille", "is 0; it must be above 0, or absent");
        }
        match (&self.identity.device, &self.device) {
            (Some(_), None) => refuse("device", "is missing, but identity.device names one"),
            (None, Some(_)) => refuse("device", "is given, but identity.device names none"),
            _ => Ok(()),
        }
    }

    fn validate_auto(&self) -> Result<(), Violation> {
        let Some(contest) = &self.auto else { return Ok(()) };
        for (place, candidate) in contest.candidates.iter().enumerate() {
            // The oracle looks ahead, so a policy is faster only by rounding.
            for (key, regret) in [("regret", candidate.regret), ("worst_regret", candidate.worst_regret)] {
                if !regret.is_finite() || regret < -1e-6 {
                    let key = format!("auto.candidates[{place}].{key}");
                    return refuse(key, format!("is {regret}; it must be a finite number, 0 or above"));
                }
            }
        }
        if !contest.candidates.iter().any(|candidate| candidate.policy == contest.policy) {
            return refuse("auto.policy", format!("is {}, which is none of the candidates", contest.policy));
        }
        if contest.policy == Decider::Mlp && self.mlp.is_none() {
            return refuse("auto.policy", "is mlp, but there are no weights: the table mlp is missing");
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use socbfs_policy::ChangeCost;

    /// A calibration with every table and key that exists.
    pub(crate) fn with_device() -> Calibration {
        Calibration::parse(include_str!("../../../tests/fixtures/calibration.toml"), "calibration.toml").unwrap()
    }

    fn without_device() -> Calibration {
        let mut calibration = with_device();
        for strategy in Strategy::ALL.into_iter().filter(|strategy| strategy.is_gpu()) {
            (*calibration.model.of_mut(strategy), *calibration.model_zhang.of_mut(strategy)) = (None, None);
        }
        calibration.strategies.retain(|numbers| !numbers.strategy.is_gpu());
        Calibration {
            identity: Identity { device: None, cpus: Vec::new(), kernel: None, ..calibration.identity },
            power: None,
            device: None,
            auto: None,
            surf: None,
            mlp: None,
            ..calibration
        }
    }

    #[test]
    fn calibrations_are_read_as_written() {
        for calibration in [with_device(), without_device()] {
            let text = calibration.to_toml().unwrap();
            assert_eq!(Calibration::parse(&text, "c.toml").unwrap(), calibration, "{text}");
        }
        // The thresholds of threads, which an earlier version measured, have no effect.
        let former = "[[parallel]]\nkey = \"piece\"\nvalue = 64\nrelative = 0.5\n";
        assert_eq!(Calibration::parse(&(with_device().to_toml().unwrap() + former), "c.toml").unwrap(), with_device());
        // What was not measured must be absent rather than 0.
        let text = without_device().to_toml().unwrap();
        assert!(!text.contains("[power]") && !text.contains("[device]") && text.matches("watts").count() == 1, "{text}");
    }

    #[test]
    fn unusable_values_are_refused_with_file_line_and_key() {
        let good = with_device().to_toml().unwrap();
        let line = |text: &str, start: &str| 1 + text.lines().position(|line| line.starts_with(start)).unwrap();
        let replaced = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            good.replacen(from, to, 1)
        };
        for (text, start, words) in [
            (replaced("schema = 1", "schema = 2"), "schema", &["schema 2", "reads schema 1"][..]),
            (replaced("threads = 4", "threads = 0"), "threads", &["identity.threads", "is 0"]),
            (replaced("threads = 4", "thread = 4"), "thread", &["did you mean `threads`?"]),
            (replaced("mean_mega_edges_per_s = 412.25", "mean_mega_edges_per_s = nan"), "mean_mega", &["strategies[0].mean_mega", "NaN"]),
            (replaced("residual = 0.25", "residual = inf"), "residual", &["strategies[0].residual", "inf"]),
            (replaced("residual = 0.25", "residual = -0.25"), "residual", &["strategies[0].residual", "-0.25"]),
            (replaced("watts = 3.5", "watts = 0.0"), "watts = 0", &["", "above 0, or absent"]),
            (replaced("seconds = 12.5", "seconds = -1.0"), "seconds", &["made.seconds", "-1"]),
            (replaced("idle_watts = 1.25", "idle_watts = nan"), "idle_watts", &["power.idle_watts"]),
            (
                replaced("frontier_edge_ns = 0.001", "frontier_edge_ns = nan"),
                "frontier_edge_ns = nan",
                &["model.tc.frontier_edge_ns", "NaN"],
            ),
            (
                replaced("frontier_edge_ns = 0.001", "frontier_edge_ns = -2.0"),
                "frontier_edge_ns = -2",
                &["model.tc.frontier_edge_ns", "-2"],
            ),
            (replaced("corun = 1.25", "corun = 0.05"), "corun = 0.05", &["model.tc.corun", "0.05", "0.1 or above"]),
            (replaced("median = 1.25", "median = 0.0"), "median = 0", &["strategies[0].corun.median", "above 0"]),
            (replaced("form = \"full\"", "form = \"best\""), "form = \"best\"", &["best"]),
            (replaced("strategy = \"bgc\"", "strategy = \"bg\""), "strategy", &["bg", "twice"]),
            (replaced("simd = \"neon\"", "simd = \"mmx\""), "simd", &["mmx"]),
            (replaced("board = \"odroid-xu4\"", "board = "), "board", &["file.toml"]),
            (replaced("regret = 0.03", "regret = nan"), "regret = nan", &["auto.candidates[0].regret", "NaN"]),
            (replaced("policy = \"mlp\"", "policy = \"mlq\""), "policy = \"mlq\"", &["mlq"]),
            (replaced("accuracy = 0.9625", "accuracy = 1.5"), "accuracy = 1.5", &["surf.accuracy", "1.5"]),
            (replaced("work_group = 64", "work_group = 48"), "work_group = 48", &["identity.device.work_group", "48"]),
            (replaced("schema = 1\npolicy = \"surf\"", "schema = 1\npolicy = \"mlp\""), "[surf.network]", &["surf.network", "not of surf"]),
        ] {
            let error = Calibration::parse(&text, "file.toml").unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
            if !error.contains("twice") {
                assert!(error.starts_with(&format!("file.toml:{}: ", line(&text, start))), "{start}: {error}");
            }
        }
        let error = Calibration::parse("[made]\nversion = 'x'", "f").unwrap_err().to_string();
        assert!(error.contains("no schema"), "{error}");
        let never = ChangeCost { fixed_ns: f64::INFINITY, ..ChangeCost::default() };
        let missing = |change: &dyn Fn(&mut Calibration)| {
            let mut calibration = with_device();
            change(&mut calibration);
            Calibration::parse(&calibration.to_toml().unwrap(), "f").unwrap_err().to_string()
        };
        assert!(missing(&|c| c.strategies.truncate(5)).contains("strategies: bgc is missing"));
        assert!(missing(&|c| c.model.tg = None).contains("model: has no entry for tg"));
        assert!(missing(&|c| c.model_zhang.bc = None).contains("model_zhang: has no entry for bc"));
        assert!(missing(&|c| c.mlp = None).contains("auto.policy: is mlp, but there are no weights"));
        assert!(missing(&|c| c.auto.as_mut().unwrap().candidates.truncate(3)).contains("auto.policy: is mlp, which is none of"));
        assert!(
            missing(&|c| c.mlp.as_mut().unwrap().network.hidden[3].bias = f32::NAN).contains("mlp.network.hidden[3]: hidden unit 3 has a")
        );
        assert!(missing(&|c| c.mlp.as_mut().unwrap().network.hidden[2].weights.truncate(4)).contains("mlp.network.hidden[2]: "));
        assert!(missing(&|c| c.surf.as_mut().unwrap().network.hidden.truncate(4)).contains("surf.network: surf has 6 hidden units, not 4"));
        assert!(missing(&|c| c.surf.as_mut().unwrap().network.bias = f32::INFINITY).contains("surf.network: the output has a value"));
        assert!(missing(&|c| c.device = None).contains("device: is missing"));
        let none = |c: &mut Calibration| c.device.as_mut().unwrap().bottom_up_permille = Some(0);
        assert!(missing(&none).contains("device.bottom_up_permille: is 0; it must be above 0"));
        assert!(missing(&|c| c.model.top_down_split = Some(never)).contains("model.top_down_split.fixed_ns"));
        assert!(missing(&|c| c.model_zhang.bottom_up_split = Some(never)).contains("model_zhang.bottom_up_split.fixed_ns"));
        assert!(missing(&|c| c.identity.device = None).contains("device: is given"));
        assert!(matches!(Calibration::load(Path::new("/nowhere/c.toml")), Err(DocumentError::Read { .. })));
    }

    #[test]
    fn a_policy_with_new_weights_is_no_longer_chosen() {
        let mut calibration = with_device();
        assert_eq!(calibration.decider(), Decider::Mlp);
        calibration.set_trained(NetworkKind::Surf, Trained { graphs: 7, ..with_device().surf.unwrap() });
        assert_eq!((calibration.decider(), calibration.trained(NetworkKind::Surf).unwrap().graphs), (Decider::Mlp, 7));
        calibration.set_trained(NetworkKind::Mlp, Trained { graphs: 8, ..with_device().mlp.unwrap() });
        assert_eq!((calibration.decider(), calibration.trained(NetworkKind::Mlp).unwrap().graphs), (Decider::Sampled, 8));
        assert_eq!(Calibration::parse(&calibration.to_toml().unwrap(), "f").unwrap(), calibration);
        assert_eq!(without_device().decider(), Decider::CostModel);
    }

    #[test]
    fn damaged_files_are_refused_or_read_but_never_panic() {
        let text = without_device().to_toml().unwrap();
        for (place, c) in text.char_indices() {
            for damaged in [text[..place].to_owned(), format!("{}{}", &text[..place], &text[place + c.len_utf8()..])] {
                if let Err(error) = Calibration::parse(&damaged, "damaged.toml") {
                    assert!(error.to_string().starts_with("damaged.toml:"), "{error}");
                }
            }
        }
    }

    #[test]
    fn differences_from_another_machine_are_reported() {
        let calibrated = with_device().identity;
        assert_eq!(calibrated.difference(&calibrated), None);
        assert_eq!(calibrated.difference(&Identity { kernel: Some("6.2".into()), ..calibrated.clone() }), None);
        let device = |change: fn(&mut OpenClIdentity)| {
            let mut device = calibrated.device.clone().unwrap();
            change(&mut device);
            Identity { device: Some(device), ..calibrated.clone() }
        };
        for (here, words) in [
            (Identity { board: "odroid-n2".into(), ..calibrated.clone() }, "its board is odroid-xu4, here it is odroid-n2"),
            (Identity { cpu_model: None, ..calibrated.clone() }, "its CPU is Cortex, here it is none"),
            (Identity { threads: 8, ..calibrated.clone() }, "its number of threads is 4, here it is 8"),
            (Identity { cpus: vec![], ..calibrated.clone() }, "its list of CPUs is 4,5,6,7, here it is not bound"),
            (Identity { simd: Simd::Scalar, ..calibrated.clone() }, "its kind of vector instructions is neon, here it is scalar"),
            (Identity { device: None, ..calibrated.clone() }, "its OpenCL device is Mali-T628, here it is none"),
            (device(|d| d.name = "Mali-G52".into()), "its OpenCL device is Mali-T628, here it is Mali-G52"),
            (device(|d| d.platform = "Clover".into()), "its OpenCL platform is ARM, here it is Clover"),
            (device(|d| d.driver = "r13".into()), "its OpenCL driver is r12, here it is r13"),
            (device(|d| d.compute_units = 2), "its number of compute units is 4, here it is 2"),
            (device(|d| d.memory_way = SharingMode::Copy), "its sharing mode is svm-fine, here it is copy"),
            (device(|d| d.work_group = None), "its work-group is 64, here it is by the kind of device"),
        ] {
            assert_eq!(calibrated.difference(&here).unwrap().to_string(), words);
        }
    }

    #[test]
    fn the_file_name_identifies_board_cpus_and_device() {
        let identity = with_device().identity;
        assert_eq!(identity.file_name(), "odroid-xu4-4t-neon-cpus4-7-mali-t628-4cu.toml");
        assert_eq!(Identity { device: None, ..identity.clone() }.file_name(), "odroid-xu4-4t-neon-cpus4-7.toml");
        let bound = |cpus: &[usize]| Identity { cpus: cpus.to_vec(), ..without_device().identity }.file_name();
        assert_eq!(bound(&[]), "odroid-xu4-4t-neon.toml");
        assert_eq!(bound(&[6, 0, 1, 2, 4]), "odroid-xu4-4t-neon-cpus6+0-2+4.toml");
        let name = format!("pthread-../{}", "x".repeat(300));
        let device = OpenClIdentity { name, ..identity.device.clone().unwrap() };
        let long = Identity { device: Some(device), ..identity }.file_name();
        assert!(
            long.len() < 200
                && long.starts_with("odroid-xu4-4t-neon-cpus4-7-pthread-xx")
                && long.ends_with("x-4cu.toml")
                && !long.contains('/'),
            "{long}"
        );
    }
}
