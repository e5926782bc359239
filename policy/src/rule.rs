//! What the file of a policy defines: its names, its parameters, its requirements on devices, and its rule.

use super::{Policy, PolicyError, history::History};
use socbfs::bfs::{Ahead, Direction, GpuKernel, LevelPlan, LevelStats, Placement, Surely, Uses};

/// A policy that can be selected by name.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Known {
    /// Its name: [`Policy::kind`].
    pub kind: &'static str,
    /// The parameters after the name and a colon (empty: none).
    pub parameters: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// The work that it comes from, as docs/policies.md names it (empty: none).
    pub from: &'static str,
    /// The policy of this name, with the defaults of its parameters.
    pub(super) default: fn(&str) -> Result<Policy, PolicyError>,
}

impl Known {
    /// The policy with the defaults of its parameters (`None`: it has no defaults, as `rule`).
    pub fn policy(&self) -> Option<Policy> {
        (self.default)(self.kind).ok().filter(|policy| policy.validate().is_ok())
    }
}

/// Where the levels of a policy that decides only directions run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LevelDevice {
    /// On the CPU.
    #[default]
    Cpu,
    /// On the GPU, by TG and the bottom-up kernel given.
    Gpu(GpuKernel),
}

impl LevelDevice {
    /// The requirements of a policy that decides directions only.
    pub(super) fn uses(self) -> Uses {
        if self == Self::Cpu { Uses::CPU } else { Uses::GPU }
    }

    pub(super) fn placement(self, direction: Direction) -> Placement {
        match (self, direction) {
            (Self::Cpu, _) => Placement::Cpu,
            (Self::Gpu(_), direction) => Placement::Gpu(self.kernel(direction)),
        }
    }

    /// The GPU's kernel for levels of this direction that the GPU runs, alone or together with the CPU.
    pub(super) fn kernel(self, direction: Direction) -> GpuKernel {
        match (self, direction) {
            (Self::Gpu(bottom_up), Direction::BottomUp) => bottom_up,
            _ => GpuKernel::of(direction)[0],
        }
    }

    /// The same levels on the GPU, with BG unless another kernel is given.
    pub(super) fn on_gpu(self) -> Self {
        if self == Self::Cpu { Self::Gpu(GpuKernel::Bg) } else { self }
    }
}

/// The rule of a policy, and its other properties. A policy that compares numbers and derives a direction from them needs only
/// [`known`](Rule::known), [`parameters`](Rule::parameters) and [`is_bottom_up`](Rule::is_bottom_up).
pub(super) trait Rule {
    /// Its name and its help.
    fn known(&self) -> &'static Known;

    /// Its parameters, in the order of the command line.
    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        Vec::new()
    }

    /// Whether records name the parameters even if all have their defaults.
    fn shows_defaults(&self) -> bool {
        true
    }

    /// Checks what the ranges of the parameters do not cover.
    fn validate(&self) -> Result<(), PolicyError> {
        Ok(())
    }

    /// Gives absent values their built-in ones, before the first search.
    fn ready(&mut self, _runs: LevelDevice) {}

    /// Its requirements on devices. `runs` says where levels run if the policy decides only directions.
    fn uses(&self, runs: LevelDevice) -> Uses {
        runs.uses()
    }

    /// Whether [`LevelStats::sampled_probes`] would change the plan.
    fn wants_sample(&self, _stats: &LevelStats, _runs: LevelDevice, _memory: &History) -> bool {
        false
    }

    /// Whether [`LevelStats::sampled_hubs`] would change the plan.
    fn wants_hubs(&self) -> bool {
        false
    }

    /// Decides the direction of a level.
    fn is_bottom_up(&self, _stats: &LevelStats, _memory: &History) -> bool {
        false
    }

    /// Decides where a level of this direction runs.
    fn placement(&self, direction: Direction, _stats: &LevelStats, runs: LevelDevice) -> Placement {
        runs.placement(direction)
    }

    /// Decides the direction and the placement of a level. It must not allocate.
    fn plan(&self, stats: &LevelStats, runs: LevelDevice, memory: &mut History) -> LevelPlan {
        let direction = if self.is_bottom_up(stats, memory) { Direction::BottomUp } else { Direction::TopDown };
        LevelPlan { direction, placement: self.placement(direction, stats, runs) }
    }

    /// The plans that it would surely make at later levels. `plan`, on a device, is its plan for the level with `stats`.
    fn surely(&self, _stats: &LevelStats, _plan: LevelPlan, _runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
        [None; Ahead::PLANS]
    }

    /// Whether it decides little without the samples that it asks for.
    fn needs_samples(&self) -> bool {
        self.wants_hubs()
    }

    /// Whether [`wants_sample`](Self::wants_sample) may be true at some level.
    fn may_sample(&self) -> bool {
        false
    }

    /// The rule itself, out of its box if it is in one.
    fn as_rule(&self) -> &dyn Rule
    where
        Self: Sized,
    {
        self
    }

    /// As [`as_rule`](Self::as_rule), mutable.
    fn as_rule_mut(&mut self) -> &mut dyn Rule
    where
        Self: Sized,
    {
        self
    }
}

/// A parameter of a policy: its name in TOML, and its value.
pub(super) struct Parameter<'a> {
    pub(super) name: &'static str,
    pub(super) value: Value<'a>,
}

/// The range of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    /// A finite number above 0.
    Positive,
    /// A finite number.
    Finite,
    /// A share of the whole, 0 to 1.
    Fraction,
    /// A number of vertices or arcs.
    Count,
    /// A share in thousandths, 1 to 999.
    Permille,
}

/// A value with its range. A board, a calibration or a measurement may fill in an optional value that is not given.
pub(super) enum Value<'a> {
    /// A number.
    Number(Range, &'a mut f64),
    /// A number of vertices or arcs, optional, or [`NEVER`](super::NEVER).
    Amount(&'a mut Option<u64>),
    /// A share in thousandths, 1 to 999, optional.
    Share(&'a mut Option<u16>),
    /// Something else.
    Special(&'a mut dyn Special),
}

impl<'a> Value<'a> {
    /// A parameter with this value and this name in TOML.
    pub(super) fn named(self, name: &'static str) -> Parameter<'a> {
        Parameter { name, value: self }
    }
}

/// A parameter of another type.
pub(super) trait Special {
    /// Its text (`None`: the default, which the text omits).
    fn text(&self) -> Option<String>;

    /// Sets it from text. `None`: the text is not valid.
    fn set_text(&mut self, text: &str) -> Option<()>;

    /// Sets it from all of the text after the colon, in which commas separate nothing (`None`: it is a parameter like others).
    fn set_whole(&mut self, _text: &str) -> Option<Result<(), PolicyError>> {
        None
    }

    /// As TOML (`None`: the default).
    fn toml(&self) -> Option<toml::Value>;

    /// Sets it from TOML.
    fn set_toml(&mut self, value: &toml::Value) -> Result<(), PolicyError>;
}
