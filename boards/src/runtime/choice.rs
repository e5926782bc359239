//! Resolves the policy that decides levels from the flags, the board, the calibration and measurements, with the origin of every bound.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{FoundCalibration, Origin, Runtime, RuntimeError};
use crate::{
    board::{self, Speeds},
    measure::{Decider, Measured},
};
use socbfs::{SampledCosts, bfs::Strategy, opencl::DeviceChoice};
use socbfs_policy::{
    Adaptive, Band, Bands, ChangeCost, CostModel, Mlp, ModelTerms, NEVER, Objective, Policy, StrategyCost, mlp::NetworkKind,
};

/// A bound with which a policy places levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// Key of the bound in a board profile, without the table `adaptive`.
    pub key: Cow<'static, str>,
    /// Value of the bound (`None`: never reached).
    pub value: Option<u64>,
    /// Where the value came from.
    pub origin: Origin,
}

/// A policy with its parameters from board, calibration and measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The policy.
    pub policy: Policy,
    /// The origin of the decision for it.
    pub origin: Origin,
    /// The reason for the decision.
    pub reason: String,
    /// The bounds with which it places levels (empty: it has no bounds).
    pub bands: Vec<Bound>,
}

impl Choice {
    fn new(policy: Policy, origin: Origin, reason: impl Into<String>) -> Self {
        Self { policy, origin, reason: reason.into(), bands: Vec::new() }
    }

    /// Whether the policy can place every level without further measurements.
    pub fn is_complete(&self) -> bool {
        self.policy.adaptive().is_none_or(Adaptive::is_complete)
    }

    /// Writes the choice to the log.
    pub(super) fn tell(&self) {
        log::info!("policy in force: {} ({}: {})", self.policy, self.origin, self.reason);
        for band in &self.bands {
            let value = band.value.map_or_else(|| "never".to_owned(), |value| value.to_string());
            log::info!("adaptive.{} = {value} ({})", band.key, band.origin);
        }
    }
}

/// The costs of the device of a search.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Costs {
    /// Thresholds that were measured for this search.
    pub measured: Option<Measured>,
    /// The cost of a handover of the state of this search, to the GPU and back.
    pub handover: Option<(ChangeCost, ChangeCost)>,
    /// The cost of a bottom-up level relative to a top-down one, in thousandths of that ratio in [`SampledCosts`], and its origin.
    pub bottom_up: Option<(u32, Origin)>,
    /// Whether the device has local memory on its chip, without which BGC is left out (`None`: the board does not say).
    pub local_memory: Option<bool>,
}

/// Names of the bounds, in the order of [`bounds`].
const NAMES: [&str; 8] = [
    "top_down.gpu_from",
    "top_down.split_from",
    "top_down.up_to",
    "top_down.gpu_permille",
    "bottom_up.gpu_from",
    "bottom_up.split_from",
    "bottom_up.up_to",
    "bottom_up.gpu_permille",
];

fn bounds(bands: &Bands) -> [Option<u64>; 8] {
    let of = |band: &Band| [band.gpu_from, band.split_from, band.up_to, band.gpu_permille.map(u64::from)];
    let ([a, b, c, d], [e, f, g, h]) = (of(&bands.top_down), of(&bands.bottom_up));
    [a, b, c, d, e, f, g, h]
}

impl Runtime {
    /// The policy for this machine, resolved with a calibration that is valid here, whether there is a device, and the known costs of the
    /// device.
    ///
    /// # Errors
    /// [`RuntimeError::Objective`] and [`RuntimeError::NoPower`].
    pub fn choose(&self, found: Option<&FoundCalibration>, with_device: bool, costs: Costs) -> Result<Choice, RuntimeError> {
        let mut choice = self.choose_kind(found, with_device, costs)?;
        if let Some(adaptive) = choice.policy.adaptive_mut().filter(|_| with_device) {
            choice.bands = self.complete(adaptive, self.policy.origin, found, costs);
        }
        if let Some((permille, origin)) = costs.bottom_up.filter(|_| choice.policy.has_usual_costs()) {
            choice.policy = Policy::Sampled(SampledCosts::default().times(permille));
            choice.reason = format!("{}; bottom-up costs {:.3} times the usual ({origin})", choice.reason, f64::from(permille) / 1e3);
        }
        Ok(choice)
    }

    /// The policy of the flags or the profile. `auto` and some others are replaced by the policy that they stand for on this machine.
    fn choose_kind(&self, found: Option<&FoundCalibration>, with_device: bool, costs: Costs) -> Result<Choice, RuntimeError> {
        let (objective, asked) = (self.objective.value, &self.policy.value);
        let calibration = found.map(|found| &found.calibration);
        match asked {
            Policy::Auto(_) | Policy::CostModel(_) if objective != Objective::Time => {
                let model = self.model(found, if let Policy::CostModel(named) = asked { Some(named) } else { None });
                let origin = match asked {
                    Policy::CostModel(_) => self.policy.origin,
                    _ if found.is_some() => Origin::Calibration,
                    _ => Origin::BuiltIn,
                };
                let policy = self.priced(model, found, with_device, costs)?;
                Ok(Choice::new(policy, origin, format!("the cost model is the policy that minimises {objective}")))
            }
            _ if objective != Objective::Time => {
                Err(RuntimeError::Objective { objective, policy: asked.to_string(), origin: self.policy.origin })
            }
            // A device that was named searches alone. If a GPU was only found, each level runs where it is faster.
            Policy::Auto(_) if with_device && self.device.value == DeviceChoice::Auto => {
                // Bounds of the board (not estimated ones) and costs of a calibration decide.
                let has_costs = found.is_some_and(|found| self.permitted(found.calibration.model, Some(found), costs).has_gpu());
                let is_open = self.board_bands(false) == Bands::default() && !has_costs;
                if is_open && costs.measured.is_some_and(|measured| measured.gpu_alone) {
                    return Ok(Choice::new(Policy::default(), Origin::Measured, "a GPU was found, and is faster alone"));
                }
                Ok(Choice::new(Policy::Adaptive(Box::default()), Origin::BuiltIn, "a GPU was found"))
            }
            Policy::Auto(_) => {
                let Some(calibration) = calibration else {
                    let reason = if with_device { "the device was named" } else { "only the CPU searches" };
                    return Ok(Choice::new(Policy::default(), Origin::BuiltIn, reason));
                };
                let decider = calibration.decider();
                let policy = match decider {
                    Decider::CostModel => self.priced(calibration.model, found, with_device, costs)?,
                    Decider::Zhang => self.priced(calibration.model_zhang, found, with_device, costs)?,
                    Decider::Sampled => Policy::Sampled(SampledCosts::default()),
                    Decider::Mlp => self.trained(found, NetworkKind::Mlp, with_device).unwrap_or_default(),
                };
                let reason = format!("{decider} had the lowest regret in the calibration");
                Ok(Choice::new(policy, Origin::Calibration, reason))
            }
            Policy::CostModel(named) => {
                let policy = self.priced(self.model(found, Some(named)), found, with_device, costs)?;
                Ok(Choice::new(policy, self.policy.origin, "asked for"))
            }
            Policy::Mlp(mlp) => {
                let trained = self.plain_network().and_then(|form| self.trained(found, form, with_device));
                let reason = if trained.is_some() { "asked for; its weights are those of the calibration" } else { "asked for" };
                Ok(Choice::new(trained.unwrap_or_else(|| Policy::Mlp(mlp.clone())), self.policy.origin, reason))
            }
            other => Ok(Choice::new(other.clone(), self.policy.origin, "asked for")),
        }
    }

    /// The bounds with which a search places its levels, as far as they are known without a measurement.
    pub fn bands(&self, found: Option<&FoundCalibration>) -> Vec<Bound> {
        let mut policy = self.policy.value.clone();
        let mut any = Adaptive::default();
        self.complete(policy.adaptive_mut().unwrap_or(&mut any), self.policy.origin, found, Costs::default())
    }

    /// Completes the bounds and the costs of `adaptive`. Returns all bounds with their origin, which is `given` for those that `adaptive`
    /// already had. The costs of a calibration take the place of bounds that the board does not give.
    fn complete(&self, adaptive: &mut Adaptive, given: Origin, found: Option<&FoundCalibration>, costs: Costs) -> Vec<Bound> {
        let mut origins = [None; NAMES.len()];
        let mut fill = |adaptive: &mut Adaptive, bands: Bands, origin: Origin| {
            adaptive.fill(bands);
            for (own, value) in origins.iter_mut().zip(bounds(&adaptive.bands)) {
                *own = own.or(value.map(|_| origin));
            }
        };
        fill(adaptive, Bands::default(), given);
        fill(adaptive, self.board_bands(false), self.profile.origin);
        if let Some(found) = found {
            adaptive.model = self.permitted(CostModel { objective: Objective::Time, ..found.calibration.model }, Some(found), costs);
        }
        if !adaptive.model.has_gpu() {
            // What was measured here, on this graph, counts more than an estimate.
            if let Some(measured) = costs.measured {
                if !adaptive.is_complete() {
                    fill(adaptive, measured.bands, Origin::Measured);
                }
                adaptive.model = measured.adaptive().model;
            }
            fill(adaptive, self.board_bands(true), Origin::Estimate);
        }
        if let Some((to_gpu, to_cpu)) = costs.handover {
            (adaptive.model.to_gpu, adaptive.model.to_cpu) = (to_gpu, to_cpu);
        }
        if let Some(change) = self.board_handover() {
            (adaptive.model.to_gpu, adaptive.model.to_cpu) = (change, change);
        }
        let all = NAMES.into_iter().zip(bounds(&adaptive.bands)).zip(origins);
        all.filter_map(|((key, value), origin)| {
            Some(Bound { key: key.into(), value: Some(value?).filter(|&value| value < NEVER), origin: origin? })
        })
        .collect()
    }

    /// The bounds by which a search that splits no level places its levels, and whether they leave one open, so that all have to be
    /// measured. Estimates do not count in that case, since what is measured counts more. (No share of a split level is needed.)
    pub(super) fn undivided_bands(&self) -> (Bands, bool) {
        let given = self.board_bands(false);
        let all = given.or(self.board_bands(true));
        let is_open = all.top_down.gpu_from.is_none() || all.bottom_up.gpu_from.is_none();
        (if is_open { given } else { all }, is_open)
    }

    /// The bands of the board's profile: the measured ones or, with `estimates`, its estimates.
    fn board_bands(&self, estimates: bool) -> Bands {
        let board = &self.profile.board;
        let band = |band: &Band, table: &str| {
            let is_asked = |key: &str| board.is_estimate(&format!("adaptive.{table}.{key}")) == estimates;
            Band {
                gpu_from: band.gpu_from.filter(|_| is_asked("gpu_from")),
                split_from: band.split_from.filter(|_| is_asked("split_from")),
                up_to: band.up_to.filter(|_| is_asked("up_to")),
                gpu_permille: band.gpu_permille.filter(|_| is_asked("gpu_permille")),
            }
        };
        Bands { top_down: band(&board.adaptive.top_down, "top_down"), bottom_up: band(&board.adaptive.bottom_up, "bottom_up") }
    }

    /// The cost of a handover, from the board's profile.
    pub(super) fn board_handover(&self) -> Option<ChangeCost> {
        let board::Handover { fixed_us, mega_vertex_us } = self.profile.board.adaptive.handover;
        if fixed_us.is_none() && mega_vertex_us.is_none() {
            return None;
        }
        // A word is 64 vertices.
        let word_ns = mega_vertex_us.unwrap_or(0.0) * 1e3 * 64.0 / 1e6;
        Some(ChangeCost { fixed_ns: fixed_us.unwrap_or(0.0) * 1e3, word_ns, ..ChangeCost::default() })
    }

    /// The cost model of the calibration, else `named`, else the shipped one. A model in Zhang's form takes speeds from the board.
    fn model(&self, found: Option<&FoundCalibration>, named: Option<&CostModel>) -> CostModel {
        let is_zhang = named.is_some_and(|named| named.form == ModelTerms::Zhang);
        let mut model = match (found.map(|found| &found.calibration), named) {
            (Some(calibration), _) if is_zhang => calibration.model_zhang,
            (Some(calibration), _) => calibration.model,
            (None, Some(named)) => *named,
            (None, None) => CostModel::shipped(ModelTerms::Full),
        };
        if is_zhang {
            self.speeds_into(&mut model, found.is_some());
        }
        model
    }

    /// Sets the speeds of the board in `model`. Estimates do not replace speeds that a calibration measured.
    fn speeds_into(&self, model: &mut CostModel, is_calibrated: bool) {
        let (board, speeds) = (&self.profile.board, &self.profile.board.speeds);
        let counts = |key: &str| !(is_calibrated && board.is_estimate(&format!("speeds.{key}")));
        for strategy in Strategy::ALL {
            if let Some(speed) = speeds.of(strategy).filter(|_| counts(&Speeds::key(strategy))) {
                let watts = model.of(strategy).and_then(|cost| cost.watts);
                *model.of_mut(strategy) = Some(StrategyCost { watts, ..StrategyCost::zhang(strategy, 1e3 / speed) });
            }
        }
        let launch_us = speeds.launch_us.filter(|_| counts("launch_us"));
        for strategy in Strategy::ALL.into_iter().filter(|strategy| strategy.is_gpu()) {
            if let (Some(cost), Some(us)) = (model.of_mut(strategy), launch_us) {
                cost.fixed_ns = us * 1e3;
            }
        }
    }

    /// `model` without the costs of BGC if the board says that the device has no local memory on its chip. Where the device of the search
    /// is not known yet, it is that of the calibration.
    fn permitted(&self, mut model: CostModel, found: Option<&FoundCalibration>, costs: Costs) -> CostModel {
        let used = found.and_then(|found| found.calibration.identity.device.as_ref());
        let of_calibrated = || used.and_then(|used| self.local_memory(&used.name, &used.platform));
        if costs.local_memory.or_else(of_calibrated) == Some(false) {
            *model.of_mut(Strategy::Bgc) = None;
        }
        model
    }

    /// `model` as a policy, with the power of each strategy if the objective needs it.
    fn priced(&self, model: CostModel, found: Option<&FoundCalibration>, with_device: bool, costs: Costs) -> Result<Policy, RuntimeError> {
        let mut model = self.permitted(CostModel { objective: self.objective.value, ..model }, found, costs);
        for strategy in Strategy::ALL.into_iter().filter(|strategy| strategy.is_gpu() && !with_device) {
            *model.of_mut(strategy) = None;
        }
        if self.objective.value != Objective::Time {
            self.power_into(&mut model, found)?;
        }
        Ok(Policy::CostModel(Box::new(model)))
    }

    /// Sets the power of each strategy of `model`: from the board, else from the calibration, else from the board's estimates. All values
    /// come from one source, since watts of a sensor on one board can't be compared with watts that a paper printed for another.
    fn power_into(&self, model: &mut CostModel, found: Option<&FoundCalibration>) -> Result<(), RuntimeError> {
        let (board, objective) = (&self.profile.board, self.objective.value);
        let of_board = |strategy: Strategy, estimates: bool| {
            let is_estimate = board.is_estimate(&format!("power.watts.{}", strategy.name()));
            board.power.watts.of(strategy).filter(|_| estimates || !is_estimate)
        };
        let calibration = found.map(|found| &found.calibration).filter(|calibration| calibration.power.is_some());
        let of_calibration = |strategy| calibration.and_then(|calibration| calibration.model.of(strategy)?.watts);
        let strategies: Vec<Strategy> = Strategy::ALL.into_iter().filter(|&strategy| model.of(strategy).is_some()).collect();
        let places: [&dyn Fn(Strategy) -> Option<f64>; 3] =
            [&|strategy| of_board(strategy, false), &of_calibration, &|strategy| of_board(strategy, true)];
        let missing = |of: &dyn Fn(Strategy) -> Option<f64>| -> Vec<&str> {
            strategies.iter().filter(|&&strategy| of(strategy).is_none()).map(|strategy| strategy.name()).collect()
        };
        if let Some(watts) = places.into_iter().find(|of| missing(of).is_empty()) {
            for &strategy in &strategies {
                if let Some(cost) = model.of_mut(strategy) {
                    cost.watts = watts(strategy);
                }
            }
            return Ok(());
        }
        let place = match found {
            Some(found) => format!("neither calibration {} nor board profile {} has", found.file.display(), self.profile.place),
            None => format!("there is no calibration, and board profile {} does not have", self.profile.place),
        };
        let absent = if calibration.is_some() { missing(&of_calibration) } else { missing(places[2]) };
        Err(RuntimeError::NoPower { objective, place, strategies: absent.join(", ") })
    }

    /// The network of this form in the calibration, if it was trained on the levels that it would decide: those of the device, or of the
    /// CPU.
    fn trained(&self, found: Option<&FoundCalibration>, form: NetworkKind, on_device: bool) -> Option<Policy> {
        let trained = found?.calibration.trained(form).filter(|trained| trained.on_device == on_device)?;
        // (The weights were checked when the calibration was read.)
        trained.network(form).ok().map(Policy::Mlp)
    }

    /// The form of the network of the policy, if the policy is a network without weights of its own.
    pub(super) fn plain_network(&self) -> Option<NetworkKind> {
        match &self.policy.value {
            Policy::Mlp(mlp) if Mlp::is_shipped(mlp) && mlp.origin().is_none() => Some(mlp.form()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        board::{Board, Evidence, Goal, KEYS, key},
        runtime::{Profile, Setting},
    };
    use crate::{measure::example, runtime::testing::invented};
    use socbfs::{
        graph::{BuildOptions, EdgeList, Layout, Listing},
        memory::SharingMode,
        opencl::{DeviceInfo, DeviceKind},
    };

    fn runtime(text: &str, policy: Option<&str>) -> Runtime {
        let board = Board::parse(text, "b.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let text = text.to_owned().into();
        let profile = Profile { board, text, place: "b.toml".into(), origin: Origin::Board, reason: "asked for".into() };
        let mut runtime = Runtime::new(profile);
        if let Some(policy) = policy {
            runtime.policy = Setting::flag(policy.parse().unwrap());
        }
        runtime
    }

    fn calibrated() -> FoundCalibration {
        FoundCalibration { calibration: example(), file: "c.toml".into() }
    }

    fn measured(bands: Bands) -> Measured {
        Measured {
            bands,
            top_down_factor: 1.0,
            bottom_up_factor: 1.0,
            tc: None,
            tg: None,
            bc: None,
            bg: None,
            split_top_down: None,
            split_bottom_up: None,
            handover_ns: 1.0,
            cpu_ns: 1,
            gpu_ns: 1,
            gpu_alone: false,
        }
    }

    #[test]
    fn a_gpu_that_is_faster_alone_searches_alone_unless_bounds_are_given() {
        let bounds = format!("{NAME}[adaptive.top_down]\ngpu_from = 7\n[adaptive.bottom_up]\ngpu_from = 8\n");
        let guessed = bounds.replacen("schema = 1", "schema = 1\nestimates = ['adaptive']", 1);
        for (text, policy, gpu_alone, alone) in [
            (NAME, None, true, true),
            (NAME, None, false, false),
            (NAME, Some("adaptive"), true, false),
            (&bounds, None, true, false),
            (&guessed, None, true, true),
        ] {
            let costs = Costs { measured: Some(Measured { gpu_alone, ..measured(Bands::CPU) }), ..Costs::default() };
            let choice = runtime(text, policy).choose(None, true, costs).unwrap();
            assert_eq!(choice.policy.adaptive().is_none(), alone, "{policy:?} {text}");
            assert!(choice.is_complete());
        }
    }

    const NAME: &str = "schema = 1\n[board]\nname = 'b'\n";

    fn of(choice: &Choice, key: &str) -> Option<(Option<u64>, Origin)> {
        choice.bands.iter().find(|band| band.key == key).map(|band| (band.value, band.origin))
    }

    /// Tests each bound from the source with the lowest precedence to that with the highest.
    #[test]
    fn each_bound_comes_from_the_source_with_the_highest_precedence() {
        let full = Band { gpu_from: Some(5), split_from: Some(6), up_to: Some(900), gpu_permille: Some(7) };
        let measured = measured(Bands { top_down: full, bottom_up: full });
        let costs = Costs { measured: Some(measured), ..Costs::default() };
        for (place, name) in NAMES.into_iter().enumerate() {
            let (table, key) = name.split_once('.').unwrap();
            let was = [5, 6, 900, 7][place % 4];
            let board = format!("{NAME}[adaptive.{table}]\n{key} = 800\n");
            let estimate = board.replacen("schema = 1", &format!("schema = 1\nestimates = ['adaptive.{name}']"), 1);
            let flag = format!("adaptive:{table}_{key}=700");
            for (text, policy, value, origin) in [
                (NAME, "adaptive", was, Origin::Measured),
                (&estimate, "adaptive", was, Origin::Measured),
                (&board, "adaptive", 800, Origin::Board),
                (&board, &flag, 700, Origin::Flag),
                (&estimate, &flag, 700, Origin::Flag),
            ] {
                let choice = runtime(text, Some(policy)).choose(None, true, costs).unwrap();
                assert_eq!(of(&choice, name), Some((Some(value), origin)), "{policy} {text}");
                assert_eq!(bounds(&choice.policy.adaptive().unwrap().bands)[place], Some(value), "{policy} {text}");
                assert!(choice.is_complete());
            }
            let guessed = runtime(&estimate, Some("adaptive")).choose(None, true, Costs::default()).unwrap();
            assert_eq!(of(&guessed, name), Some((Some(800), Origin::Estimate)), "nothing was measured");
            // The costs of a calibration come after the board's values, and before measurements and estimates.
            let found = calibrated();
            for (text, bound) in [(&board, Some((Some(800), Origin::Board))), (&estimate, None), (&NAME.to_owned(), None)] {
                let choice = runtime(text, Some("adaptive")).choose(Some(&found), true, costs).unwrap();
                assert_eq!(of(&choice, name), bound, "{text}");
                assert!(choice.is_complete() && choice.policy.adaptive().unwrap().model.has_gpu());
            }
        }
    }

    #[test]
    fn estimates_that_leave_a_bound_open_yield_to_measurements() {
        let of = |text: &str| {
            let (bands, is_open) = runtime(text, None).undivided_bands();
            (bands.top_down.gpu_from, bands.top_down.up_to, bands.bottom_up.gpu_from, is_open)
        };
        let down = format!("{NAME}[adaptive.top_down]\ngpu_from = 7\nup_to = 900\n");
        let both = format!("{down}[adaptive.bottom_up]\ngpu_from = 8\n");
        let estimated = |text: &str| text.replacen("schema = 1", "schema = 1\nestimates = ['adaptive']", 1);
        // What the board gives is kept, and a measurement fills the gap.
        assert_eq!(of(&down), (Some(7), Some(900), None, true));
        assert_eq!(of(&estimated(&down)), (None, None, None, true));
        for text in [both.clone(), estimated(&both)] {
            assert_eq!(of(&text), (Some(7), Some(900), Some(8), false));
        }
    }

    #[test]
    fn a_given_value_counts_as_given_even_if_it_is_the_default() {
        let board = format!("{NAME}[adaptive.top_down]\nsplit_from = 7\n[adaptive.bottom_up]\nsplit_from = 8\n");
        let given = runtime(&board, Some("concurrent:262144,262144,500")).choose(None, true, Costs::default()).unwrap();
        assert_eq!(of(&given, "top_down.split_from"), Some((Some(262_144), Origin::Flag)));
        assert_eq!(of(&given, "bottom_up.split_from"), Some((Some(262_144), Origin::Flag)));
        let plain = runtime(&board, Some("concurrent")).choose(None, true, Costs::default()).unwrap();
        assert_eq!(of(&plain, "top_down.split_from"), Some((Some(7), Origin::Board)));
    }

    #[test]
    fn auto_is_adaptive_where_a_gpu_may_be_used_else_the_winner_of_the_calibration_else_sampled() {
        let board = format!("{NAME}[adaptive.top_down]\ngpu_from = 7\n");
        let found = calibrated();
        for text in [NAME, &board] {
            for found in [None, Some(&found)] {
                let choice = runtime(text, None).choose(found, true, Costs::default()).unwrap();
                assert_eq!((choice.policy.kind(), choice.origin), ("adaptive", Origin::BuiltIn), "{text}");
                let bound = (text != NAME).then_some((Some(7), Origin::Board));
                assert_eq!(of(&choice, "top_down.gpu_from"), bound);
                assert_eq!(
                    choice.is_complete(),
                    found.is_some(),
                    "it is measured where neither board nor calibration says where levels run"
                );
            }
        }
        let choose = |found: Option<&FoundCalibration>, with_device: bool, device: &str| {
            let mut runtime = runtime(&board, None);
            runtime.device = Setting::flag(device.parse().unwrap());
            let bottom_up = with_device.then_some((640, Origin::Calibration));
            runtime.choose(found, with_device, Costs { bottom_up, ..Costs::default() }).unwrap()
        };
        let choice = choose(None, false, "auto");
        assert_eq!((choice.policy.kind(), choice.origin), ("auto", Origin::BuiltIn));
        let here = Policy::Sampled(SampledCosts::default().times(640));
        let measured = Costs { bottom_up: Some((640, Origin::Measured)), ..Costs::default() };
        assert_eq!(runtime(&board, None).choose(None, false, measured).unwrap().policy, here, "with the costs of the CPU on this graph");
        assert_eq!(choose(None, true, "gpu").policy, here, "with the costs of the device");
        let mut found = calibrated();
        for (decider, on_cpu, on_device) in [(Decider::Sampled, "sampled", here.to_string()), (Decider::Mlp, "auto", "mlp".to_owned())] {
            found.calibration.auto.as_mut().unwrap().policy = decider;
            found.calibration.mlp.as_mut().unwrap().on_device = true;
            let alone = choose(Some(&found), true, "Mali");
            assert_eq!((alone.policy.to_string(), alone.origin), (on_device, Origin::Calibration));
            assert_eq!(choose(Some(&found), false, "auto").policy.kind(), on_cpu, "{decider}: its network is for the device");
        }
        for (decider, kind) in [(Decider::CostModel, "cost-model"), (Decider::Zhang, "cost-model:zhang"), (Decider::Sampled, "sampled")] {
            found.calibration.auto.as_mut().unwrap().policy = decider;
            assert_eq!(choose(Some(&found), false, "auto").policy.to_string(), kind);
        }
        // The flag takes precedence over all of them.
        let flag = runtime(&board, Some("tc")).choose(Some(&found), true, Costs::default()).unwrap();
        assert_eq!((flag.policy.kind(), flag.origin), ("tc", Origin::Flag));
    }

    #[test]
    fn a_bound_that_no_level_reaches_is_never() {
        let board = format!("{NAME}[adaptive.top_down]\ngpu_from = 4_294_967_296\n");
        let choice = runtime(&board, Some("adaptive")).choose(None, true, Costs::default()).unwrap();
        assert_eq!(of(&choice, "top_down.gpu_from"), Some((None, Origin::Board)));
        assert_eq!(of(&choice, "bottom_up.gpu_from"), None, "what is absent is not never");
    }

    #[test]
    fn a_board_rules_out_bgc_although_the_calibration_has_its_costs() {
        let found = calibrated();
        let costs = |text: &str, policy: &str| {
            let choice = runtime(text, Some(policy)).choose(Some(&found), true, Costs::default()).unwrap();
            match &choice.policy {
                Policy::CostModel(model) => (model.bg, model.bgc),
                other => other.adaptive().map(|adaptive| (adaptive.model.bg, adaptive.model.bgc)).unwrap(),
            }
        };
        for policy in ["cost-model", "cost-model:zhang", "adaptive", "concurrent"] {
            for (key, is_ruled_out) in [("bgc = true", false), ("bgc = false", true), ("quirks = ['local-is-global']", true)] {
                let (bg, bgc) = costs(&format!("{NAME}[[opencl.devices]]\nname = 'Mali*'\n{key}\n"), policy);
                assert_eq!((bg.is_some(), bgc.is_none()), (true, is_ruled_out), "{policy}, {key}");
            }
            // Another device's table says nothing.
            assert!(costs(&format!("{NAME}[[opencl.devices]]\nname = 'Adreno*'\nbgc = false\n"), policy).1.is_some());
        }
    }

    #[test]
    fn a_board_rules_out_bgc_although_its_own_speeds_have_it() {
        let bgc = |key: &str, with_device: bool| {
            let text = format!("{NAME}[[opencl.devices]]\nname = 'Mali*'\n{key}\n[speeds]\nbgc_mega_edges_per_s = 900.0\n");
            let runtime = runtime(&text, Some("cost-model:zhang"));
            let costs = Costs { local_memory: runtime.local_memory("Mali-G610", "p"), ..Costs::default() };
            match runtime.choose(None, with_device, costs).unwrap().policy {
                Policy::CostModel(model) => model.bgc,
                other => panic!("{other}"),
            }
        };
        assert!(bgc("bgc = true", true).is_some() && bgc("", true).is_some());
        assert!(bgc("bgc = false", true).is_none() && bgc("quirks = ['local-is-global']", true).is_none());
        assert!(bgc("bgc = true", false).is_none());
    }

    #[test]
    fn the_share_of_a_policy_is_the_share_that_is_shown() {
        let board = format!("{NAME}[adaptive.top_down]\ngpu_permille = 300\n[adaptive.bottom_up]\ngpu_permille = 300\n");
        let choice = runtime(&board, Some("concurrent:1,1,500")).choose(None, true, Costs::default()).unwrap();
        for key in ["top_down.gpu_permille", "bottom_up.gpu_permille"] {
            assert_eq!(of(&choice, key), Some((Some(500), Origin::Flag)));
        }
        let choice = runtime(&board, Some("concurrent:top_down_split_from=1")).choose(None, true, Costs::default()).unwrap();
        assert_eq!(of(&choice, "top_down.gpu_permille"), Some((Some(300), Origin::Board)));
    }

    #[test]
    fn an_objective_keeps_the_origin_of_the_policy() {
        let watts = "[power.watts]\ntc = 1.5\ntg = 1.5\ntgm = 1.5\nbc = 1.5\nbg = 1.5\nbgc = 1.5\n";
        let origin = |policy: Option<&str>| {
            let mut runtime = runtime(&format!("{NAME}{watts}"), policy);
            runtime.objective = Setting::flag(Objective::Energy);
            runtime.choose(Some(&calibrated()), true, Costs::default()).map(|choice| choice.origin)
        };
        assert_eq!(origin(Some("cost-model")).unwrap(), Origin::Flag);
        assert_eq!(origin(None).unwrap(), Origin::Calibration);
        let error = origin(Some("tc")).unwrap_err();
        assert_eq!(error.to_string(), "--objective energy is for the cost model, and the policy is tc (flag)");
        let mut runtime = runtime(&format!("{NAME}{watts}[policy]\nkind = 'sampled'\n"), None);
        runtime.objective = Setting::flag(Objective::Energy);
        let error = runtime.choose(None, true, Costs::default()).unwrap_err();
        assert!(error.to_string().ends_with("the policy is sampled (board file)"), "{error}");
        assert_eq!(error.cure().unwrap(), "give --policy auto or --policy cost-model");
    }

    #[test]
    fn the_first_table_of_devices_that_describes_a_gpu_is_preferred() {
        let gpu = |platform: &str, name: &str, units| invented(platform, name, DeviceKind::Gpu, units);
        let processor = invented("p", "cpu", DeviceKind::Cpu, 8);
        let mut unusable = gpu("a", "Mali-G31", 1);
        unusable.unusable = Some("no compiler".into());
        let found = [gpu("n", "Card", 80), gpu("a", "Mali-G610", 4), gpu("rusticl", "Mali-G610", 4), unusable, processor];
        let kept = |tables: &str| {
            let mut found = found.to_vec();
            runtime(&format!("{NAME}{tables}"), None).keep_preferred(&mut found);
            found.iter().map(|info| format!("{}/{}", info.platform, info.name)).collect::<Vec<_>>()
        };
        let table = |name: &str, via: &str| format!("[[opencl.devices]]\nname = '{name}'\n{via}");
        let others = ["a/Mali-G31", "p/cpu"];
        assert_eq!(kept(""), ["n/Card", "a/Mali-G610", "rusticl/Mali-G610", "a/Mali-G31", "p/cpu"]);
        assert_eq!(kept(&table("Mali-G610", "")), [&["a/Mali-G610", "rusticl/Mali-G610"][..], &others].concat());
        assert_eq!(kept(&table("Mali-G610", "via = 'rusticl'\n")), [&["rusticl/Mali-G610"][..], &others].concat());
        assert_eq!(kept(&(table("Card", "") + &table("Mali*", ""))), [&["n/Card"][..], &others].concat());
        // A table whose device can't be used, or is absent, is passed over.
        assert_eq!(kept(&(table("Mali-G31", "") + &table("Card", ""))), [&["n/Card"][..], &others].concat());
        assert_eq!(kept(&table("Adreno*", "")).len(), 5);
    }

    #[test]
    fn watts_come_from_the_board_before_the_calibration() {
        let watts = "[power.watts]\ntc = 1.5\ntg = 1.5\ntgm = 1.5\nbc = 1.5\nbg = 1.5\nbgc = 1.5\n";
        let mut found = calibrated();
        for strategy in Strategy::ALL {
            if let Some(cost) = found.calibration.model.of_mut(strategy) {
                cost.watts = Some(9.0);
            }
        }
        let tc = |text: &str| {
            let mut runtime = runtime(text, None);
            runtime.objective = Setting::flag(Objective::Energy);
            match runtime.choose(Some(&found), true, Costs::default()).unwrap().policy {
                Policy::CostModel(model) => model.tc.unwrap().watts,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(tc(&format!("{NAME}{watts}")), Some(1.5));
        assert_eq!(tc(NAME), Some(9.0));
        let estimate = format!("{NAME}{watts}").replacen("schema = 1", "schema = 1\nestimates = ['power.watts']", 1);
        assert_eq!(tc(&estimate), Some(9.0));
    }

    #[test]
    fn the_sharing_mode_comes_from_flag_then_board_then_calibration() {
        let mut info = invented("p", "Mali-G610", DeviceKind::Gpu, 4);
        (info.svm_coarse, info.svm_fine) = (true, true);
        let board = format!("{NAME}[[opencl.devices]]\nname = 'Mali*'\nmemory_way = 'copy'\n");
        // The sharing mode of the calibration is svm-fine.
        let found = calibrated();
        let way = |text: &str, asked: Option<Setting<SharingMode>>, found: Option<&FoundCalibration>| {
            let memory_way = asked.map_or_else(Setting::default, |Setting { value, origin }| Setting { value: Some(value), origin });
            Runtime { memory_way, ..runtime(text, None) }.way(&info, found)
        };
        assert_eq!(way(NAME, None, None), None, "it is measured");
        assert_eq!(way(NAME, None, Some(&found)), Some(SharingMode::SvmFine));
        assert_eq!(way(&board, None, Some(&found)), Some(SharingMode::Copy));
        for origin in [Origin::Flag, Origin::Environment] {
            let asked = Setting { value: SharingMode::SvmCoarse, origin };
            assert_eq!(way(&board, Some(asked), Some(&found)), Some(SharingMode::SvmCoarse));
        }
    }

    #[test]
    fn the_size_of_a_work_group_comes_from_flag_then_board_then_calibration() {
        let info = invented("p", "Mali-G610", DeviceKind::Gpu, 4);
        let board = format!("{NAME}[[opencl.devices]]\nname = 'Mali*'\nwork_group = 128\n");
        // The size of the calibration is 64.
        let found = calibrated();
        let group = |text: &str, asked: Option<Setting<usize>>, found: Option<&FoundCalibration>| {
            let work_group = asked.map_or_else(Setting::default, |Setting { value, origin }| Setting { value: Some(value), origin });
            Runtime { work_group, ..runtime(text, None) }.group(Some(&info), found).map(|group| group.value)
        };
        assert_eq!(group(NAME, None, None), None, "by the kind of device");
        assert_eq!(group(NAME, None, Some(&found)), Some(64));
        assert_eq!(group(&board, None, Some(&found)), Some(128));
        for origin in [Origin::Flag, Origin::Environment] {
            assert_eq!(group(&board, Some(Setting { value: 32, origin }), Some(&found)), Some(32));
        }
    }

    #[test]
    fn the_cost_of_bottom_up_comes_from_flag_then_board_then_calibration() {
        let info = invented("p", "Mali-G610", DeviceKind::Gpu, 4);
        let board = format!("{NAME}[[opencl.devices]]\nname = 'Mali*'\nbottom_up_permille = 2000\n");
        let found = calibrated();
        let chosen = |text: &str, asked: Option<&str>, found: Option<&FoundCalibration>, measured: Option<u32>| {
            let runtime = runtime(text, asked);
            let bottom_up = runtime.bottom_up(&info, found).or(measured.map(|permille| (permille, Origin::Measured)));
            (bottom_up, runtime.choose(None, true, Costs { bottom_up, ..Costs::default() }).unwrap().policy)
        };
        let times = |permille| Policy::Sampled(SampledCosts::default().times(permille));
        for asked in [None, Some("sampled")] {
            if asked.is_some() {
                assert_eq!(chosen(NAME, asked, None, None), (None, times(1000)));
            }
            let known = |text, found, measured| {
                let (known, policy) = chosen(text, asked, found, measured);
                let (permille, origin) = known.unwrap();
                assert!(asked.is_none() || policy == times(permille), "{policy}");
                (permille, origin)
            };
            assert_eq!(known(NAME, None, Some(500)), (500, Origin::Measured));
            assert_eq!(known(NAME, Some(&found), Some(500)), (640, Origin::Calibration));
            assert_eq!(known(&board, Some(&found), Some(500)), (2000, Origin::Board));
        }
        // Costs that a flag gives are not changed.
        let (_, given) = chosen(&board, Some("sampled:1,1,1"), Some(&found), None);
        assert_eq!(given, "sampled:1,1,1".parse().unwrap());
        // A policy that does not use these costs is not changed.
        assert_eq!(chosen(&board, Some("tg"), Some(&found), None).1, "tg".parse().unwrap());
    }

    #[test]
    fn thresholds_of_threads_reach_the_search() {
        let edges = EdgeList::new(3, vec![[0, 1], [1, 2]], Listing::Once).unwrap();
        let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
        let prepared = runtime(NAME, None).search(&layout).unwrap();
        assert_eq!(prepared.options.parallel, Some(runtime(NAME, None).parallel()));
    }

    /// Everything in a search that a profile may change.
    fn observed(text: &str) -> String {
        let mut info = invented("Portable Computing Language", "Mali-G610 r0p0", DeviceKind::Gpu, 4);
        (info.svm_coarse, info.svm_fine, info.max_alloc_bytes, info.global_bytes) = (true, true, 1 << 40, 1 << 41);
        (info.max_work_group, info.local_bytes) = (1 << 12, 1 << 20);
        let info: DeviceInfo = info;
        let runtime = runtime(text, None);
        let permitted: Vec<SharingMode> = SharingMode::ALL.into_iter().filter(|&way| runtime.permits(&info, way)).collect();
        let choose = |policy: Option<&str>, objective: Objective| {
            let mut asked = runtime.clone();
            if let Some(policy) = policy {
                asked.policy = Setting::flag(policy.parse().unwrap());
            }
            asked.objective = Setting::flag(objective);
            asked.choose(None, true, Costs::default()).map_err(|error| error.to_string())
        };
        let evidence = Evidence {
            device_tree: vec!["a,b".into()],
            model: Some("M".into()),
            dmi_vendor: Some("V".into()),
            dmi_product: Some("P".into()),
            dmi_board: Some("B".into()),
            cpu_model: Some("C".into()),
        };
        let mut at = runtime.clone();
        let point = at.run_at(Goal::Efficient).map_err(|error| error.to_string());
        format!(
            "{:?}",
            (
                (point.map(|_| ()), &at.threads, &at.cpus, &at.device),
                (runtime.profile.name(), &runtime.threads, &runtime.cpus, &runtime.batch, &runtime.policy, runtime.profile.power()),
                (runtime.limits(&info), runtime.way_asked(&info), runtime.group_asked(&info), permitted, runtime.runs(&info)),
                (runtime.bottom_up(&info, None), runtime.parallel()),
                (choose(Some("adaptive"), Objective::Time), choose(Some("cost-model:zhang"), Objective::Time)),
                (choose(Some("cost-model"), Objective::Energy), choose(Some("cost-model:zhang"), Objective::Energy)),
                evidence.fits(&runtime.profile.board.detect),
            )
        )
    }

    #[test]
    fn another_value_of_an_effective_key_changes_the_search() {
        let device = "[[opencl.devices]]\nname = 'Mali*'\n";
        let rail =
            "[power]\nscope = 'soc-rails'\n[[power.rails]]\nid = 'i'\nlabel = 'l'\ndomain = 'gpu'\ncounted = true\nfamily = 'ina2xx'\n";
        // A tested key needs the other keys of these tables to have an effect.
        let speeds = "[speeds]\ntg_mega_edges_per_s = 3.0\n";
        let watts = "[speeds]\ntg_mega_edges_per_s = 3.0\ntgm_mega_edges_per_s = 3.0\nbg_mega_edges_per_s = 3.0\nbgc_mega_edges_per_s = 3.0\n\
                     [power.watts]\ntc = 1.0\ntg = 1.0\ntgm = 1.0\nbc = 1.0\nbg = 1.0\nbgc = 1.0\n";
        let point = "[[operating_points]]\ngoal = 'efficient'\ncpus = '0'\n";
        let cases: &[(&str, &str, &str, &str)] = &[
            ("board.name", "", "'b'", "'c'"),
            ("detect.device_tree", "[detect]\n", "['a,b']", "['x,y']"),
            ("detect.device_tree_model", "[detect]\n", "['M']", "['X']"),
            ("detect.dmi_vendor", "[detect]\n", "['V']", "['X']"),
            ("detect.dmi_product", "[detect]\n", "['P']", "['X']"),
            ("detect.dmi_board", "[detect]\n", "['B']", "['X']"),
            ("detect.cpu_model", "[detect]\n", "['C']", "['X']"),
            ("cpu.threads", "[cpu]\n", "2", "3"),
            ("cpu.cpus", "[cpu]\n", "'0'", "'1'"),
            ("cpu.batch", "[cpu]\n", "512", "1024"),
            ("opencl.devices[0].name", "[[opencl.devices]]\nbgc = false\n", "'Mali*'", "'Adreno*'"),
            ("opencl.devices[0].via", &format!("{device}bgc = false\n"), "'pocl'", "'rusticl'"),
            ("opencl.devices[0].compute_units", device, "5", "6"),
            ("opencl.devices[0].max_alloc_bytes", device, "1024", "2048"),
            ("opencl.devices[0].max_work_group", device, "64", "128"),
            ("opencl.devices[0].work_group", device, "64", "128"),
            ("opencl.devices[0].bottom_up_permille", device, "500", "2000"),
            ("opencl.devices[0].local_bytes", device, "64", "128"),
            ("opencl.devices[0].global_bytes", device, "4096", "8192"),
            ("opencl.devices[0].timeout_s", device, "20", "30"),
            ("opencl.devices[0].memory_way", device, "'copy'", "'svm-fine'"),
            ("opencl.devices[0].bgc", device, "true", "false"),
            ("opencl.devices[0].quirks", device, "[]", "['map-copies']"),
            ("opencl.devices[0].quirks", device, "[]", "['use-host-ptr-copies']"),
            ("opencl.devices[0].quirks", device, "[]", "['not-coherent']"),
            ("opencl.devices[0].quirks", device, "[]", "['local-is-global']"),
            ("policy.kind", "[policy]\n", "'tc'", "'bc'"),
            ("adaptive.top_down.gpu_from", "[adaptive.top_down]\n", "1", "2"),
            ("adaptive.top_down.split_from", "[adaptive.top_down]\n", "1", "2"),
            ("adaptive.top_down.up_to", "[adaptive.top_down]\n", "1", "2"),
            ("adaptive.top_down.gpu_permille", "[adaptive.top_down]\n", "1", "2"),
            ("adaptive.bottom_up.gpu_from", "[adaptive.bottom_up]\n", "1", "2"),
            ("adaptive.bottom_up.split_from", "[adaptive.bottom_up]\n", "1", "2"),
            ("adaptive.bottom_up.up_to", "[adaptive.bottom_up]\n", "1", "2"),
            ("adaptive.bottom_up.gpu_permille", "[adaptive.bottom_up]\n", "1", "2"),
            ("adaptive.handover.fixed_us", "[adaptive.handover]\n", "1.0", "2.0"),
            ("adaptive.handover.mega_vertex_us", "[adaptive.handover]\n", "1.0", "2.0"),
            ("speeds.tc_mega_edges_per_s", "[speeds]\n", "1.0", "2.0"),
            ("speeds.tg_mega_edges_per_s", "[speeds]\n", "1.0", "2.0"),
            ("speeds.tgm_mega_edges_per_s", "[speeds]\n", "1.0", "2.0"),
            ("speeds.bc_mega_edges_per_s", "[speeds]\n", "1.0", "2.0"),
            ("speeds.bg_mega_edges_per_s", "[speeds]\n", "1.0", "2.0"),
            ("speeds.bgc_mega_edges_per_s", "[speeds]\n", "1.0", "2.0"),
            ("speeds.launch_us", speeds, "1.0", "2.0"),
            ("operating_points[0].goal", point, "'fastest'", "'efficient'"),
            ("operating_points[0].cpus", point, "'1'", "'2'"),
            ("operating_points[0].device", point, "'cpu'", "'gpu'"),
            ("power.scope", rail, "'soc-rails'", "'card'"),
            ("power.watts.tc", watts, "1.0", "2.0"),
            ("power.watts.tg", watts, "1.0", "2.0"),
            ("power.watts.tgm", watts, "1.0", "2.0"),
            ("power.watts.bc", watts, "1.0", "2.0"),
            ("power.watts.bg", watts, "1.0", "2.0"),
            ("power.watts.bgc", watts, "1.0", "2.0"),
            ("power.rails[0].family", rail, "'ina2xx'", "'ina3221'"),
            ("power.rails[0].id", rail, "'i'", "'j'"),
            ("power.rails[0].label", rail, "'l'", "'m'"),
            ("power.rails[0].domain", rail, "'gpu'", "'cpu'"),
            (
                "power.rails[0].counted",
                &format!("{rail}[[power.rails]]\nid = 'k'\nfamily = 'ina2xx'\ndomain = 'cpu'\ncounted = true\n"),
                "true",
                "false",
            ),
            ("power.rails[0].sign", rail, "1", "-1"),
            ("power.rails[0].scale", rail, "1.0", "2.0"),
        ];
        let with = |key: &str, table: &str, value: &str| {
            let name = key.rsplit('.').next().unwrap();
            let text = format!("{NAME}{table}");
            // The line of the key in its table replaces the one that is there.
            let line = format!("{name} = {value}");
            let lines: Vec<&str> = text.lines().collect();
            let header = match key.rsplit_once('.').unwrap().0 {
                "board" => "[board]".to_owned(),
                around if around.ends_with(']') => format!("[[{}]]", around.split('[').next().unwrap()),
                around => format!("[{around}]"),
            };
            let start = lines.iter().position(|line| *line == header).unwrap_or_else(|| panic!("{header} in {text}"));
            let end = lines.iter().skip(start + 1).position(|line| line.starts_with('[')).map_or(lines.len(), |end| start + 1 + end);
            let is_old = |line: &&str| line.split(" = ").next() == Some(name);
            let mut new: Vec<&str> = lines[..=start].to_vec();
            new.push(&line);
            new.extend(lines[start + 1..end].iter().filter(|line| !is_old(line)));
            new.extend(&lines[end..]);
            new.join("\n")
        };
        let mut tested = BTreeSet::new();
        for &(path, table, one, other) in cases {
            let (one, other) = (with(path, table, one), with(path, table, other));
            assert_ne!(observed(&one), observed(&other), "{path}:\n{one}\n{other}");
            tested.insert(path.replace("[0]", "[]"));
        }
        // Every key that acts was tested. Keys that only inform change nothing.
        let full = board::tests::FULL;
        for entry in Board::<toml::Table>::entries(full, "full.toml").unwrap() {
            let plain = entry.key.replace("[0]", "[]").replace("[1]", "[]");
            let informs = key(&entry.key).unwrap().informs;
            assert_eq!(informs, !tested.contains(&plain), "{}", entry.key);
        }
        assert!(KEYS.iter().any(|key| key.informs));
        let informing = [
            ("board.vendor", "", "'x'"),
            ("board.soc", "", "'x'"),
            ("board.url", "", "'x'"),
            ("board.notes", "", "'x'"),
            ("board.memory_bytes", "", "5"),
            ("board.memory_bandwidth_mega_bytes_per_s", "", "5"),
            ("opencl.devices[0].quirks", device, "['max-alloc-unchecked', 'memory-understated', 'unmapped-stores-lost', 'opt-in']"),
        ];
        for (path, table, value) in informing {
            assert_eq!(observed(&format!("{NAME}{table}")), observed(&with(path, table, value)), "{path}");
        }
    }
}
