//! The energy part of the text report.

use std::fmt::{self, Write};

use socbfs::power::{Joules, Watts};

use super::{
    cells::{joules, row},
    trace::direction,
};
use crate::record::{EnergyRecord, EnergySummary, Model};
use socbfs::{
    stats,
    words::{general, grouped, seconds},
};

/// Writes the scope and the sensors of the measurement, or why there is none.
pub(super) fn source(out: &mut String, energy: &EnergyRecord) -> fmt::Result {
    let Some(measured) = &energy.measured else {
        let reason = energy.reason().unwrap_or("not measured");
        row(out, "Energy", format_args!("n/a: {reason}"))?;
        return energy.cure.as_ref().map_or(Ok(()), |cure| row(out, "", format_args!("  help: {cure}")));
    };
    row(out, "Energy", format_args!("{}: {}", measured.scope, measured.sensors.join(" + ")))?;
    let searches: u64 = measured.windows.iter().map(|window| window.searches).sum();
    let time: f64 = measured.windows.iter().map(|window| window.energy.seconds).sum();
    let refreshes = measured.windows.iter().map(|window| window.refreshes).min().unwrap_or(0);
    row(
        out,
        "",
        format_args!(
            "{} windows, {} in all, {} searches, at least {} refreshes each",
            measured.windows.len(),
            seconds(time),
            grouped(searches),
            grouped(refreshes)
        ),
    )?;
    if let Some(green) = &energy.green {
        row(out, "", "by the rules of Green Graph500, with these clocks and power saving:")?;
        green.power_saving.iter().try_for_each(|line| row(out, "", format_args!("  {line}")))?;
    }
    energy.reason().map_or(Ok(()), |reason| row(out, "", format_args!("n/a: {reason}")))
}

/// Writes the figures of the energy, if there are any.
pub(super) fn figures(out: &mut String, energy: &EnergyRecord) -> fmt::Result {
    let (Some(summary), Some(measured)) = (energy.summary(), &energy.measured) else { return Ok(()) };
    of_summary(out, summary)?;
    model(out, &measured.model)
}

/// Writes the statistics of the windows.
pub(super) fn of_summary(out: &mut String, summary: &EnergySummary) -> fmt::Result {
    let spread = |q: &stats::Summary| q.stddev.map_or_else(String::new, |spread| format!("  +/- {}", general(spread, 3)));
    let mut line = |name: &str, value: String| writeln!(out, "  {name:<26}{value}");
    let total = &summary.mteps_per_watt;
    line("MTEPS/W", format!("{}{}  (all power, idle included)", general(total.mean, 4), spread(total)))?;
    match &summary.mteps_per_watt_net_of_idle {
        Some(net) => line("  net of idle", format!("{}{}", general(net.mean, 4), spread(net)))?,
        None => line("  net of idle", "n/a: the searches took no more power than the idle machine".to_owned())?,
    }
    line("Power", format!("{}{}", Watts(summary.watts.mean), spread(&summary.watts)))?;
    line("  idle", summary.idle_watts.to_string())?;
    for domain in &summary.domains {
        let note = if domain.counted { "" } else { "  (not in the sum by itself)" };
        line(&format!("  {}", domain.domain), format!("{}{note}", domain.watts))?;
    }
    per_search(out, summary)
}

fn per_search(out: &mut String, summary: &EnergySummary) -> fmt::Result {
    let spread = |q: &stats::Summary| q.stddev.map_or_else(String::new, |spread| format!("  +/- {}", joules(spread)));
    let (total, net) = (&summary.joules_per_search, &summary.joules_per_search_net_of_idle);
    let delay = &summary.energy_delay_joule_seconds;
    writeln!(out, "  {:<26}{}{}", "Energy of a search", joules(total.mean), spread(total))?;
    writeln!(out, "  {:<26}{}{}", "  net of idle", joules(net.mean), spread(net))?;
    let spread = delay.stddev.map_or_else(String::new, |spread| format!("  +/- {}", general(spread, 3)));
    writeln!(out, "  {:<26}{} J s{spread}", "  times its time", general(delay.mean, 4))
}

fn model(out: &mut String, model: &Model) -> fmt::Result {
    match (&model.unavailable, model.residual) {
        (None, Some(residual)) => {
            writeln!(out, "  Modelled, not measured      measured - modelled: {} %", general(100.0 * residual, 3))?;
        }
        (reason, _) => {
            let reason = reason.as_deref().unwrap_or("the searches had no levels");
            writeln!(out, "  {:<26}n/a: {reason}", "Modelled by level")?;
        }
    }
    for strategy in &model.strategies {
        let (Some(watts), Some(Joules(energy))) = (strategy.watts, strategy.modelled_joules_per_search) else { continue };
        let share = general(100.0 * strategy.time_share, 3);
        let name = format!("  {} on {}", direction(strategy.direction), strategy.device);
        writeln!(out, "  {name:<26}{} of a search: {share} % of the time at {watts}", joules(energy))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::report::{
        table,
        tests::{measured_energy, record},
    };

    #[test]
    fn the_table_labels_each_energy_figure() {
        let mut record = record(&[0.001, 0.002]);
        record.energy = measured_energy();
        let text = table(&record);
        for part in [
            "Energy         cpu-package: powercap:intel-rapl:0\n",
            "2 windows, 20.00 s in all, 2,000 searches, at least 10,000\n               refreshes each\n",
            "MTEPS/W                   208.3  +/- 58.9  (all power, idle included)",
            "  net of idle             266.7",
            "Power                     25.00 W",
            "  idle                    5.000 W",
            "  package                 25.00 W",
            "Energy of a search        250 mJ  +/- 70.71 mJ",
            "  net of idle             200 mJ  +/- 70.71 mJ",
            "Modelled, not measured      measured - modelled: -1.25 %",
            "  bottom-up on cpu        104 mJ of a search: 40 % of the time at 26.00 W",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
    }

    #[test]
    fn without_a_sensor_only_the_reason_and_its_cure_are_shown() {
        let mut record = record(&[0.001]);
        record.energy.cure = Some("sudo chmod".into());
        let text = table(&record);
        assert!(
            text.contains("Energy         n/a: no power sensor was found on this machine\n                 help: sudo chmod\n"),
            "{text}"
        );
        assert!(!text.contains("MTEPS/W") && !text.contains("Power"), "{text}");
    }
}
