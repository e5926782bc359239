//! The energy of a window of time, with everything needed to judge the number.

use serde::{Deserialize, Serialize};

use crate::{Domain, Family, Joules, Unusable, Watts};

/// Share of the sum that a rail may read below 0: the chip of a rail that carries nothing has an offset.
const OFFSET: f64 = 0.02;

/// The energy of a window of time, and how it was measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Energy {
    /// What the counted rails cover together.
    pub scope: String,
    /// Beginning of the window, in seconds of CLOCK_MONOTONIC.
    pub begin_monotonic_seconds: f64,
    /// Length of the window.
    pub seconds: f64,
    /// Sum of the counted rails, above 0 (`None` if one of them is not complete, none is counted, or the power can't be true: never a
    /// silent zero).
    pub joules: Option<Joules>,
    /// Mean power of that sum over the window.
    pub watts: Option<Watts>,
    /// Whether every counted rail was measured over the whole window, with a power that can be true.
    pub complete: bool,
    /// Why there is no sum.
    pub problem: Option<String>,
    /// The rails, counted and not.
    pub rails: Vec<RailEnergy>,
    /// Mean power by domain. A domain may contain another one, so these powers do not add up.
    pub domains: Vec<DomainPower>,
}

/// The energy of one rail in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RailEnergy {
    /// The sensor: `ina2xx:0-0040`.
    pub sensor: String,
    /// Its family.
    pub family: Family,
    /// Its label.
    pub label: Option<String>,
    /// What it feeds.
    pub domain: Domain,
    /// Whether it is a part of the sum.
    pub counted: bool,
    /// Its energy (`None` if it is not complete, or can't be true).
    pub joules: Option<Joules>,
    /// Its mean power.
    pub watts: Option<Watts>,
    /// Kind of value that the sensor reads.
    pub signal: SignalKind,
    /// Valid readings inside the window.
    pub samples: u64,
    /// Readings per second.
    pub rate_hertz: f64,
    /// Interval at which the sensor has a new value, in milliseconds.
    pub refresh_ms: f64,
    /// Number of times the counter wrapped.
    pub wraps: u64,
    /// Reads that gave no value.
    pub missed: u64,
    /// Readings that can't be true.
    pub rejected: u64,
    /// Share of the window that readings cover.
    pub coverage: f64,
    /// Why it has no energy.
    pub problem: Option<String>,
}

/// Kind of value that a sensor reads: a [`Signal`](crate::Signal) without its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignalKind {
    /// Energy since an unspecified time.
    Counter,
    /// Power.
    Power,
}

/// The mean power of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DomainPower {
    /// The domain.
    pub domain: Domain,
    /// Sum of its counted rails, or of all its rails if none is counted.
    pub watts: Watts,
    /// Whether these rails are in the counted sum.
    pub counted: bool,
}

impl Energy {
    /// The sum of `rails` over a window of `seconds`. A power that can't be true is taken from its rail.
    pub fn sum(scope: &str, begin_monotonic_seconds: f64, seconds: f64, mut rails: Vec<RailEnergy>) -> Self {
        let counted: Option<Watts> = rails.iter().filter(|rail| rail.counted).map(|rail| rail.watts).sum();
        let least = -OFFSET * counted.map_or(0.0, |watts| watts.0.max(0.0));
        for rail in &mut rails {
            // A rail may be switched off. A processor takes power while it runs.
            let is_doubtful = |watts: &Watts| watts.0 < least || rail.domain == Domain::Package;
            if let Some(problem) = rail.watts.filter(is_doubtful).and_then(Unusable::of_power) {
                (rail.joules, rail.watts, rail.problem) = (None, None, Some(problem.to_string()));
            }
        }
        let counted = || rails.iter().filter(|rail| rail.counted);
        let problem = counted().find_map(|rail| Some(format!("{}: {}", rail.sensor, rail.problem.as_deref()?)));
        let sum: Option<Joules> = counted().map(|rail| rail.joules).sum_all();
        let none = sum.and_then(|joules| joules.over(seconds)).and_then(Unusable::of_power);
        let problem = problem.or_else(|| Some(format!("the sum of the counted sensors {}", none.as_ref()?)));
        let joules = sum.filter(|_| none.is_none());
        Self {
            scope: scope.to_owned(),
            begin_monotonic_seconds,
            seconds,
            watts: joules.and_then(|joules| joules.over(seconds)),
            complete: joules.is_some(),
            joules,
            problem,
            domains: domains(&rails),
            rails,
        }
    }
}

/// The power of every domain of which all rails are complete. Counted rails do not overlap. A rail that is not counted may contain one of
/// them (the input of a meter and its outputs, amdgpu and RAPL), so it is added only where no rail of its domain is counted.
fn domains(rails: &[RailEnergy]) -> Vec<DomainPower> {
    let is_first = |place: usize| !rails[..place].iter().any(|before| before.domain == rails[place].domain);
    let power = |place: usize| {
        let domain = rails[place].domain;
        let counted = rails.iter().any(|rail| rail.domain == domain && rail.counted);
        let added = rails.iter().filter(|rail| rail.domain == domain && rail.counted == counted);
        Some(DomainPower { domain, watts: added.map(|rail| rail.watts).sum::<Option<Watts>>()?, counted })
    };
    (0..rails.len()).filter(|&place| is_first(place)).filter_map(power).collect()
}

/// A sum that is `None` if one of its parts is, or if it has no parts.
trait SumAll {
    fn sum_all(self) -> Option<Joules>;
}

impl<I: Iterator<Item = Option<Joules>>> SumAll for I {
    fn sum_all(mut self) -> Option<Joules> {
        let first = self.next()??;
        self.try_fold(first, |sum, joules| Some(sum + joules?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rail(domain: Domain, counted: bool, joules: Option<f64>) -> RailEnergy {
        RailEnergy {
            sensor: format!("ina2xx:{domain}"),
            family: Family::Ina2xx,
            label: None,
            domain,
            counted,
            joules: joules.map(Joules),
            watts: joules.and_then(|joules| Joules(joules).over(2.0)),
            signal: SignalKind::Power,
            samples: 100,
            rate_hertz: 50.0,
            refresh_ms: 20.0,
            wraps: 0,
            missed: 0,
            rejected: 0,
            coverage: 1.0,
            problem: joules.is_none().then(|| "the sensor has disappeared".to_owned()),
        }
    }

    #[test]
    fn counted_rails_are_added() {
        let rails = vec![
            rail(Domain::CpuBig, true, Some(6.0)),
            rail(Domain::Gpu, true, Some(4.0)),
            rail(Domain::Memory, false, Some(2.0)),
            rail(Domain::Gpu, true, Some(1.0)),
        ];
        let energy = Energy::sum("soc-rails", 0.0, 2.0, rails);
        assert_eq!((energy.joules, energy.watts, energy.complete), (Some(Joules(11.0)), Some(Watts(5.5)), true));
        let domains: Vec<_> = energy.domains.iter().map(|d| (d.domain, d.watts.0, d.counted)).collect();
        assert_eq!(domains, [(Domain::CpuBig, 3.0, true), (Domain::Gpu, 2.5, true), (Domain::Memory, 1.0, false)]);
    }

    #[test]
    fn a_domain_adds_its_counted_rails_or_all_of_them() {
        let domains = |rails: Vec<RailEnergy>| -> Vec<(Domain, f64, bool)> {
            Energy::sum("board-input", 0.0, 2.0, rails).domains.iter().map(|d| (d.domain, d.watts.0, d.counted)).collect()
        };
        // The input of a meter contains its two outputs, which are counted.
        let meter = vec![
            rail(Domain::Board, false, Some(11.0)),
            rail(Domain::Board, true, Some(6.0)),
            rail(Domain::Board, true, Some(4.0)),
            rail(Domain::Cpu, false, Some(3.0)),
            rail(Domain::Cpu, false, Some(1.0)),
        ];
        assert_eq!(domains(meter), [(Domain::Board, 5.0, true), (Domain::Cpu, 2.0, false)]);
        // A domain that lacks the power of a rail has none.
        let lost = vec![rail(Domain::Board, true, Some(6.0)), rail(Domain::Cpu, false, Some(3.0)), rail(Domain::Cpu, false, None)];
        assert_eq!(domains(lost), [(Domain::Board, 3.0, true)]);
    }

    #[test]
    fn a_power_that_can_t_be_true_is_no_result() {
        let sum = |rails: &[(Domain, f64)]| {
            let rails = rails.iter().map(|&(domain, watts)| rail(domain, true, Some(2.0 * watts)));
            Energy::sum("soc-rails", 0.0, 2.0, rails.collect())
        };
        let (big, gpu, package) = (Domain::CpuBig, Domain::Gpu, Domain::Package);
        // A rail that is switched off reads 0 W, and the offset of its chip may take it a little below.
        for (rails, watts) in [(&[(big, 3.0), (gpu, 0.0)], 3.0), (&[(big, 3.0), (gpu, -0.04)], 2.96)] {
            assert!((sum(rails).watts.unwrap().0 - watts).abs() < 1e-9, "{rails:?}");
        }
        for (rails, why) in [
            (&[(big, 0.0)][..], "the sum of the counted sensors reads 0.000 W, and a power must be above 0"),
            (&[(big, 0.0), (gpu, 0.0)], "the sum of the counted sensors reads 0.000 W, and a power must be above 0"),
            (&[(big, -1.0)], "ina2xx:cpu-big: reads -1.000 W, and a power must be above 0"),
            // The wrong way round, which a sum above 0 would hide.
            (&[(big, 3.0), (gpu, -1.0)], "ina2xx:gpu: reads -1.000 W, and a power must be above 0"),
            // A counter that has stopped, beside one that goes on.
            (&[(package, 20.0), (package, 0.0)], "ina2xx:package: reads 0.000 W, and a power must be above 0"),
        ] {
            let energy = sum(rails);
            assert_eq!((energy.joules, energy.watts, energy.complete, energy.problem.as_deref()), (None, None, false, Some(why)));
            assert!(energy.domains.iter().all(|domain| domain.watts.0 >= 0.0), "{energy:?}");
        }
        // One that is not counted leaves the sum as it is, and its domain has no power.
        let energy = Energy::sum("soc-rails", 0.0, 2.0, vec![rail(big, true, Some(6.0)), rail(gpu, false, Some(-2.0))]);
        assert_eq!((energy.watts, energy.rails[1].watts, energy.domains.len()), (Some(Watts(3.0)), None, 1), "{energy:?}");
    }

    #[test]
    fn a_sum_that_lacks_a_rail_has_no_energy() {
        let energy = Energy::sum("soc-rails", 0.0, 2.0, vec![rail(Domain::CpuBig, true, Some(6.0)), rail(Domain::Gpu, true, None)]);
        assert_eq!((energy.joules, energy.watts, energy.complete), (None, None, false));
        assert_eq!(energy.problem.as_deref(), Some("ina2xx:gpu: the sensor has disappeared"));
        // An incomplete rail that is not counted does not matter.
        assert!(Energy::sum("soc-rails", 0.0, 2.0, vec![rail(Domain::CpuBig, true, Some(6.0)), rail(Domain::Gpu, false, None)]).complete);
        assert_eq!(Energy::sum("soc-rails", 0.0, 2.0, Vec::new()).joules, None);
    }
}
