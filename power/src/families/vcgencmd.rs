//! The power management chip of Raspberry Pi 5, through `vcgencmd pmic_read_adc`: twelve rails, each with one line for its current and one
//! for its voltage. Devices on USB and NVMe are not included. Every read runs the command, so this sensor, unlike the others, allocates.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use crate::{Channel, Domain, Family, Lost, Pace, Reading, Sensor, Sink, Source, SystemFiles, Unusable, Watts, monotonic};

/// The command takes some milliseconds of one core, so a shorter interval would measure the command itself.
const INTERVAL: Duration = Duration::from_millis(200);

/// The rails that the command reports.
#[derive(Debug)]
struct Rails {
    command: PathBuf,
    names: Vec<String>,
}

impl Sensor for Rails {
    fn pace(&self) -> Pace {
        Pace::Waits(INTERVAL)
    }

    fn sample(&mut self, sink: &mut dyn Sink) {
        let answer = ask(&self.command);
        let at = monotonic();
        for (channel, name) in self.names.iter().enumerate() {
            let reading = match &answer {
                Ok(text) => rails(text)
                    .find(|(found, _)| found == name)
                    .map_or(Reading::Unavailable(Lost::Gone), |(_, watts)| Reading::Power(watts)),
                Err(_) => Reading::Unavailable(Lost::Gone),
            };
            sink.put(channel, at, reading);
        }
    }
}

fn ask(command: &Path) -> Result<String, String> {
    let output = Command::new(command).arg("pmic_read_adc").stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() && rails(&text).next().is_some() {
        return Ok(text);
    }
    let said = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    Err(format!("`pmic_read_adc` prints no rails, only {:?}", said.lines().next().unwrap_or_default()))
}

/// Rails with both a current and a voltage: `VDD_CORE_A current(7)=1.2A` and `VDD_CORE_V volt(15)=0.72V`.
pub(super) fn rails(text: &str) -> impl Iterator<Item = (&str, Watts)> {
    let value = |line: &str, unit: char| line.rsplit_once('=')?.1.trim().strip_suffix(unit)?.parse::<f64>().ok();
    let named = move |line: &str, suffix: &str| line.split_whitespace().next()?.strip_suffix(suffix).map(str::to_owned);
    text.lines().filter_map(move |line| {
        let name = line.split_whitespace().next()?.strip_suffix("_A")?;
        let amperes = value(line, 'A')?;
        let volts = text.lines().find(|line| named(line, "_V").as_deref() == Some(name)).and_then(|line| value(line, 'V'))?;
        Some((name, Watts(amperes * volts)))
    })
}

/// The rails of the board of `tree` if it has the command. The command knows them only on a Raspberry Pi 5.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    let command = ["usr/bin/vcgencmd", "opt/vc/bin/vcgencmd"].map(|path| tree.path(path)).into_iter().find(|path| path.exists());
    let Some(command) = command else { return Vec::new() };
    if tree.is_live() {
        return of_command(command);
    }
    // The tree may be a copy of an untrusted machine, and so may be the program in it.
    let place = command.display().to_string();
    let reason = "a program in a copy of another machine's files is not run".to_owned();
    vec![Source::new(vec![channel(&place, "pmic")], Err(Unusable::Protocol { place, reason }))]
}

fn channel(place: &str, name: &str) -> Channel {
    let place = format!("{place} pmic_read_adc");
    let domain = Domain::of_label(name).unwrap_or(Domain::Board);
    Channel { domain, ..Channel::rail(Family::Vcgencmd, name.to_owned(), Some(name.to_owned()), INTERVAL, place) }
}

/// The rails that `command` reports.
fn of_command(command: PathBuf) -> Vec<Source> {
    let place = command.display().to_string();
    match ask(&command) {
        Ok(text) => {
            let names: Vec<String> = rails(&text).map(|(name, _)| name.to_owned()).collect();
            let channels = names.iter().map(|name| channel(&place, name)).collect();
            vec![Source::new(channels, Ok(Box::new(Rails { command, names })))]
        }
        Err(reason) => vec![Source::new(vec![channel(&place, "pmic")], Err(Unusable::Protocol { place, reason }))],
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::families::tests::fixture::{Fixture, sample};

    /// Output of the command, shortened to five rails; EXT5V and BATT have no current.
    const RECORDED: &str = "\
 3V7_WL_SW_A current(0)=0.08392478A
   3V3_SYS_A current(1)=0.06338592A
  DDR_VDD2_A current(4)=0.02049618A
  VDD_CORE_A current(7)=1.20500000A
   3V3_ADC_A current(13)=0.00000000A
 3V7_WL_SW_V volt(8)=3.71338000V
   3V3_SYS_V volt(9)=3.31136900V
  DDR_VDD2_V volt(12)=1.10695500V
  VDD_CORE_V volt(15)=0.72142330V
   3V3_ADC_V volt(21)=3.30647000V
     EXT5V_V volt(24)=5.15254000V
      BATT_V volt(25)=0.00000000V
";

    fn command(fixture: &Fixture, script: &str) {
        fixture.file("usr/bin/vcgencmd", &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(fixture.path("usr/bin/vcgencmd"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn rails_are_pairs_of_current_and_voltage() {
        let found: Vec<_> = rails(RECORDED).collect();
        assert_eq!(found.iter().map(|rail| rail.0).collect::<Vec<_>>(), ["3V7_WL_SW", "3V3_SYS", "DDR_VDD2", "VDD_CORE", "3V3_ADC"]);
        assert!((found[3].1.0 - 1.205 * 0.721_423_3).abs() < 1e-12);
    }

    #[test]
    fn the_command_is_run_for_every_sample() {
        let fixture = Fixture::new();
        fixture.file("adc", RECORDED);
        command(&fixture, &format!("[ \"$1\" = pmic_read_adc ] && cat {}", fixture.path("adc").display()));
        let mut found = of_command(fixture.path("usr/bin/vcgencmd"));
        assert_eq!(found[0].channels.len(), 5);
        assert_eq!((found[0].channels[2].domain, found[0].channels[3].domain), (Domain::Memory, Domain::Soc));
        let readings = sample(&mut found[0]);
        assert!(matches!(readings[3], (3, Reading::Power(Watts(watts))) if (watts - 0.869_315).abs() < 1e-5), "{readings:?}");
        fixture.file("adc", "VDD_CORE_A current(7)=2.0A\nVDD_CORE_V volt(15)=0.5V\n");
        let readings = sample(&mut found[0]);
        assert_eq!((readings[0].1, readings[3].1), (Reading::Unavailable(Lost::Gone), Reading::Power(Watts(1.0))));
    }

    #[test]
    fn a_board_that_lacks_the_command_is_reported() {
        let fixture = Fixture::new();
        command(&fixture, "echo 'error=1 error_msg=\"Command not registered\"'; exit 255");
        let found = of_command(fixture.path("usr/bin/vcgencmd"));
        assert!(matches!(&found[0].sensor, Err(Unusable::Protocol { reason, .. }) if reason.contains("not registered")), "{found:?}");
        assert!(discover(&Fixture::new().tree()).is_empty());
    }

    #[test]
    fn the_program_in_a_copied_tree_is_not_run() {
        let fixture = Fixture::new();
        command(&fixture, &format!("touch {}", fixture.path("has-run").display()));
        let found = discover(&fixture.tree());
        assert!(matches!(&found[0].sensor, Err(Unusable::Protocol { reason, .. }) if reason.contains("not run")), "{found:?}");
        assert!(!fixture.path("has-run").exists());
    }
}
