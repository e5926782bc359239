//! The facts of an energy measurement.

use socbfs_power::{Joules, Watts};

use super::{
    cells::{Cell, Facts, fact, joules},
    trace::direction,
};
use crate::record::{EnergyRecord, EnergySummary, Model};
use socbfs::{
    stats,
    words::{counted, general, seconds},
};

/// The scope and the sensors of the measurement, or why there is none.
pub(super) fn source(energy: &EnergyRecord) -> Facts {
    let Some(measured) = &energy.measured else {
        let reason = fact("Energy", format!("n/a: {}", energy.why()));
        // A command is not broken into lines.
        return [reason].into_iter().chain(energy.cure.as_ref().map(|cure| fact("help", format!(" {cure}")))).collect();
    };
    let windows = &measured.windows;
    let searches: u64 = windows.iter().map(|window| window.searches).sum();
    let time: f64 = windows.iter().map(|window| window.energy.seconds).sum();
    let refreshes = windows.iter().map(|window| window.refreshes).min().unwrap_or(0);
    let of = format!(
        "{}, {} in all, {}, at least {} each",
        counted(windows.len() as u64, "window", "windows"),
        seconds(time),
        counted(searches, "search", "searches"),
        counted(refreshes, "refresh", "refreshes")
    );
    let mut facts = vec![fact("Energy", format!("{}: {}; {of}", measured.scope, measured.sensors.join(" + ")))];
    let rules = |lines: &[String]| format!("by its rules, with these clocks and power saving: {}", lines.join("; "));
    facts.extend(energy.green.as_ref().map(|green| fact("Green Graph500", rules(&green.power_saving))));
    facts.extend(energy.reason().map(|reason| fact("MTEPS/W", format!("n/a: {reason}"))));
    facts
}

/// The figures of the energy, if there are any.
pub(super) fn figures(energy: &EnergyRecord) -> Facts {
    let (Some(summary), Some(measured)) = (energy.summary(), &energy.measured) else { return Facts::new() };
    of_summary(summary).into_iter().chain(model(&measured.model)).collect()
}

/// The statistics of the windows.
pub(super) fn of_summary(summary: &EnergySummary) -> Facts {
    let number = |value: f64| general(value, 4);
    let watts = |watts: f64| Watts(watts).to_string();
    let net = |value: &Option<stats::Summary>, text: &dyn Fn(f64) -> String| {
        let none = || Cell::word("n/a: the searches took no more power than the idle machine");
        value.as_ref().map_or_else(none, |value| Cell::spread(value, text))
    };
    let mut total = Cell::spread(&summary.mteps_per_watt, number);
    total.text += " (all power, idle included)";
    let mut facts = vec![
        ("MTEPS/W".to_owned(), total),
        ("net of idle".to_owned(), net(&summary.mteps_per_watt_net_of_idle, &number)),
        ("Power".to_owned(), Cell::spread(&summary.watts, watts)),
        fact("idle", summary.idle_watts.to_string()),
    ];
    facts.extend(summary.domains.iter().map(|domain| {
        let note = if domain.counted { "" } else { " (not in the sum by itself)" };
        (domain.domain.to_string(), Cell::word(format!("{}{note}", domain.watts)))
    }));
    facts.extend([
        ("Energy of a search".to_owned(), Cell::spread(&summary.joules_per_search, joules)),
        ("energy net of idle".to_owned(), net(&summary.joules_per_search_net_of_idle, &joules)),
        ("energy times time".to_owned(), Cell::spread(&summary.energy_delay_joule_seconds, |value| format!("{} J s", number(value)))),
    ]);
    facts
}

fn model(model: &Model) -> Facts {
    let how = match (&model.unavailable, model.residual) {
        (None, Some(residual)) => format!("not measured; measured - modelled: {} %", general(100.0 * residual, 3)),
        (reason, _) => format!("n/a: {}", reason.as_deref().unwrap_or("the searches had no levels")),
    };
    let strategies = model.strategies.iter().filter_map(|strategy| {
        let (watts, Joules(energy)) = (strategy.watts?, strategy.modelled_joules_per_search?);
        let share = general(100.0 * strategy.time_share, 3);
        let text = format!("{} of a search: {share} % of the time at {watts}", joules(energy));
        Some((format!("{} on {}", direction(strategy.direction), strategy.device), Cell { text, value: Some(energy) }))
    });
    [fact("Modelled by level", how)].into_iter().chain(strategies).collect()
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
            "  Energy                   cpu-package: powercap:intel-rapl:0; 2 windows, 20.00\n",
            " s in all, 2,000 searches, at least 10,000 refreshes\n",
            "  MTEPS/W                  208.3 +/- 58.93 (all power, idle included)\n",
            "  net of idle              266.7",
            "  Power                    25.00 W",
            "  idle                     5.000 W",
            "  package                  25.00 W",
            "  Energy of a search       250 mJ +/- 70.71 mJ\n",
            "  energy net of idle       200 mJ +/- 70.71 mJ\n",
            "  Modelled by level        not measured; measured - modelled: -1.25 %\n",
            "  bottom-up on cpu         104 mJ of a search: 40 % of the time at 26.00 W\n",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
    }

    #[test]
    fn without_a_sensor_only_the_reason_and_its_cure_are_shown() {
        let mut record = record(&[0.001]);
        record.energy.cure = Some("sudo chmod".into());
        let text = table(&record);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("Energy n/a: no power sensor was found on this machine help sudo chmod"), "{text}");
        assert!(!text.contains("MTEPS/W") && !text.contains("Power"), "{text}");
    }
}
