//! Rails of Google's Pixel 6 and later: `/sys/bus/iio/devices/iio:deviceN/energy_value`. Its first line is the time since the boot in
//! milliseconds at which the driver read the chip (`t=349894`); each further line is a channel with its energy in microjoules
//! (`CH3(T=349894)[S2M_VDD_CPUCL2], 30203502`). The driver cros_ec_pwrmon of Chromebooks writes the same form.

use std::{path::Path, time::Duration};

use nix::time::{ClockId, clock_gettime};

use super::powercap::KEEP_ALIVE;
use crate::{Channel, Family, Held, Pace, Reading, Sensor, Signal, Sink, Source, SystemFiles, Unusable, line, monotonic, name_of, text};

/// The driver reads the chip again if it has made 20 conversions since the last time, at 125 a second.
const REFRESH: Duration = Duration::from_millis(160);

/// A file of sysfs has at most one page.
const PAGE: usize = 4096;

/// The power monitors of `tree`.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    let devices = tree.list("sys/bus/iio/devices", |name| name.starts_with("iio:device"));
    devices.iter().filter(|device| device.join("energy_value").exists()).map(|device| source(device)).collect()
}

fn source(device: &Path) -> Source {
    let path = device.join("energy_value");
    let place = path.display().to_string();
    let name = line(device.join("name")).unwrap_or_else(|| name_of(device));
    let channel = |id: String, label: Option<&str>| Channel {
        signal: Signal::Counter { joules_per_count: 1e-6, range: u64::MAX },
        ..Channel::rail(Family::Odpm, id, label.map(str::to_owned), REFRESH, place.clone())
    };
    let content = text(&path).unwrap_or_default();
    let (numbers, channels): (Vec<u32>, Vec<Channel>) =
        rails(&content).map(|(number, label, _)| (number, channel(format!("{name}:{number}"), Some(label)))).unzip();
    let opened = Held::open(&path);
    if channels.is_empty() {
        let reason = "there is no line of a channel".to_owned();
        let problem = opened.err().unwrap_or(Unusable::Protocol { place: place.clone(), reason });
        return Source::new(vec![channel(name, None)], Err(problem));
    }
    Source::new(channels, opened.map(|file| Box::new(Monitor { file, numbers, last: None }) as Box<dyn Sensor>))
}

/// Number, label and microjoules of every channel in `content`.
fn rails(content: &str) -> impl Iterator<Item = (u32, &str, u64)> {
    content.lines().filter_map(|line| {
        let (channel, microjoules) = line.strip_prefix("CH")?.rsplit_once("], ")?;
        let (number, label) = channel.split_once('[')?;
        let number = number.split_once('(').map_or(number, |(number, _)| number);
        Some((number.parse().ok()?, label, microjoules.trim().parse().ok()?))
    })
}

#[derive(Debug)]
struct Monitor {
    file: Held,
    /// The number of every channel.
    numbers: Vec<u32>,
    /// The time of the last content that was passed on.
    last: Option<u64>,
}

impl Sensor for Monitor {
    fn pace(&self) -> Pace {
        Pace::Every(KEEP_ALIVE)
    }

    fn sample(&mut self, sink: &mut dyn Sink) {
        let Self { file, numbers, last } = self;
        let read = file.text::<PAGE, ()>(|content| {
            let milliseconds: u64 = content.lines().next()?.strip_prefix("t=")?.trim().parse().ok()?;
            if last.replace(milliseconds) == Some(milliseconds) {
                return Some(());
            }
            // The driver's clock also counts the time that the machine was suspended.
            let boot = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
            let age = Duration::from(boot).saturating_sub(Duration::from_millis(milliseconds));
            let at = monotonic().saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
            for (number, _, microjoules) in rails(content) {
                if let Some(channel) = numbers.iter().position(|&known| known == number) {
                    sink.put(channel, at, Reading::Counter(microjoules));
                }
            }
            Some(())
        });
        if let Err(lost) = read {
            (0..numbers.len()).for_each(|channel| sink.put(channel, monotonic(), Reading::Unavailable(lost)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::FileExt,
        sync::atomic::{AtomicBool, Ordering},
    };

    use super::*;
    use crate::{
        channel::{Domain, Lost},
        families::tests::fixture::{Fixture, sample},
        meter::Meter,
        selection::Selection,
    };

    const DEVICE: &str = "sys/bus/iio/devices/iio:device0";

    /// As a Pixel 6 prints it, with channels out of order.
    const CONTENT: &str = "t=349894\nCH1(T=349894)[VSYS_PWR_MODEM], 179646995\nCH3(T=349894)[S2M_VDD_CPUCL2], 30203502\n\
                           CH5(T=349894)[S4M_VDD_CPUCL0], 289995530\nCH7(T=349894)[S1M_VDD_MIF], 196512891\nCH6(T=349894)[S2S_VDD_G3D], 0\n";

    #[test]
    fn every_channel_is_a_counter_with_its_rail() {
        let fixture = Fixture::new();
        fixture.files(DEVICE, &[("name", "s2mpg10-odpm\n"), ("energy_value", CONTENT)]);
        fixture.file("sys/bus/iio/devices/iio:device1/name", "adc");
        let mut found = discover(&fixture.tree());
        assert_eq!(found.len(), 1);
        let channels: Vec<_> = found[0].channels.iter().map(|channel| (&channel.id[..], channel.domain)).collect();
        let [modem, big, little] =
            [("s2mpg10-odpm:1", Domain::Soc), ("s2mpg10-odpm:3", Domain::CpuBig), ("s2mpg10-odpm:5", Domain::CpuLittle)];
        assert_eq!(channels, [modem, big, little, ("s2mpg10-odpm:7", Domain::Memory), ("s2mpg10-odpm:6", Domain::Gpu)]);
        assert!(!found[0].channels[0].part.overlaps(&found[0].channels[1].part));
        let energies = [179_646_995, 30_203_502, 289_995_530, 196_512_891, 0].map(Reading::Counter);
        assert_eq!(sample(&mut found[0]), energies.into_iter().enumerate().collect::<Vec<_>>());
        // The driver shows the same values again if it did not read the chip, and nothing if it is asked too often.
        assert_eq!(sample(&mut found[0]), []);
        fixture.file(&format!("{DEVICE}/energy_value"), "");
        assert_eq!(sample(&mut found[0]), [0, 1, 2, 3, 4].map(|channel| (channel, Reading::Unavailable(Lost::Gone))));
    }

    #[test]
    fn content_without_channels_is_no_sensor() {
        let fixture = Fixture::new();
        fixture.files(DEVICE, &[("name", "s2mpg10-odpm"), ("energy_value", "t=5\nCH1(T=5)[A] 7\nCHx[B], 7\n")]);
        let found = discover(&fixture.tree());
        assert_eq!(found[0].channels[0].name(), "odpm:s2mpg10-odpm");
        assert!(matches!(&found[0].sensor, Err(Unusable::Protocol { place, .. }) if place.ends_with("energy_value")));
    }

    /// The chip is read at most every 160 ms, and the values are true at the time in the file.
    #[test]
    fn old_values_count_at_their_own_time() {
        let fixture = Fixture::new();
        fixture.files(DEVICE, &[("name", "s2mpg10-odpm"), ("energy_value", "")]);
        let file = std::fs::File::options().write(true).open(fixture.path(&format!("{DEVICE}/energy_value"))).unwrap();
        // 3 W. One write replaces the whole text, so that no part of it is read.
        let write = || {
            let now = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap()).as_millis();
            file.write_all_at(format!("t={now}\nCH3(T=1)[S2M_VDD_CPUCL2], {}\n", now * 3000).as_bytes(), 0).unwrap();
        };
        write();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(160));
                    write();
                }
            });
            let selection = Selection::named(discover(&fixture.tree()), &["odpm:S2M_VDD_CPUCL2".to_owned()], None).unwrap();
            let meter = Meter::start(selection).unwrap();
            let energy = meter.idle(Duration::from_secs(1));
            stop.store(true, Ordering::Relaxed);
            assert!((energy.watts.unwrap().0 / 3.0 - 1.0).abs() <= 0.005, "{energy:?}");
        });
    }
}
