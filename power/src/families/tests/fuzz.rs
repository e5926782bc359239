//! Random bytes in the files of sensors and in the lines of meters: each gives a reading or a reason why there is none, and none panics or
//! gives an infinity or a NaN.
//!
//! `PROPTEST_CASES` is the number of cases. If it is not set, there are 20,000 with `SOCBFS_TEST_ALL`, else 300.

use std::{collections::BTreeMap, fs};

use proptest::{collection::vec, prelude::*, sample::Index, test_runner::TestRunner};

use super::{
    super::{discover, external, smartpower2, smartpower3, vcgencmd, wt310},
    fixture::Fixture,
};
use crate::{channel::Reading, selection::Selection};

const FILES: &[(&str, &str)] = &[
    ("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n"),
    ("sys/class/powercap/intel-rapl/enabled", "1\n"),
    ("sys/class/powercap/intel-rapl:0/name", "package-0\n"),
    ("sys/class/powercap/intel-rapl:0/energy_uj", "123999999\n"),
    ("sys/class/powercap/intel-rapl:0/enabled", "0\n"),
    ("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n"),
    ("sys/class/powercap/intel-rapl:0:0/name", "core\n"),
    ("sys/class/powercap/intel-rapl:0:0/energy_uj", "5\n"),
    ("sys/bus/event_source/devices/power/type", "23\n"),
    ("sys/bus/event_source/devices/power/cpumask", "0\n"),
    ("sys/bus/event_source/devices/power/events/energy-pkg", "event=0x02\n"),
    ("sys/bus/event_source/devices/power/events/energy-pkg.scale", "2.3283064365386962890625e-10\n"),
    ("sys/bus/event_source/devices/power/events/energy-pkg.unit", "Joules\n"),
    ("sys/class/hwmon/hwmon0/name", "ina226\n"),
    ("sys/class/hwmon/hwmon0/power1_input", "18000000\n"),
    ("sys/class/hwmon/hwmon0/curr1_input", "-1500\n"),
    ("sys/class/hwmon/hwmon0/update_interval", "70\n"),
    ("sys/class/hwmon/hwmon0/device/of_node/label", "VDD_ARM\0"),
    ("sys/class/hwmon/hwmon1/name", "ina3221\n"),
    ("sys/class/hwmon/hwmon1/in1_input", "5000\n"),
    ("sys/class/hwmon/hwmon1/in1_label", "VDD_IN\n"),
    ("sys/class/hwmon/hwmon1/curr1_input", "100\n"),
    ("sys/class/hwmon/hwmon1/samples", "16\n"),
    ("sys/class/hwmon/hwmon4/name", "amdgpu\n"),
    ("sys/class/hwmon/hwmon4/power1_input", "15012000\n"),
    ("sys/class/hwmon/hwmon4/power1_label", "PPT\n"),
    ("sys/class/hwmon/hwmon5/name", "ina228\n"),
    ("sys/class/hwmon/hwmon5/energy1_input", "5000000000000\n"),
    ("sys/class/hwmon/hwmon5/power1_input", "18000000\n"),
    ("sys/class/hwmon/hwmon6/name", "powerz\n"),
    ("sys/class/hwmon/hwmon6/in0_input", "5100\n"),
    ("sys/class/hwmon/hwmon6/curr1_input", "-900\n"),
    ("sys/class/hwmon/hwmon7/name", "macsmc_hwmon\n"),
    ("sys/class/hwmon/hwmon7/power1_input", "7250000\n"),
    ("sys/class/hwmon/hwmon7/power1_label", "Total System Power\n"),
    ("sys/class/hwmon/hwmon8/device/name", "power_meter\n"),
    ("sys/class/hwmon/hwmon8/device/power1_average", "142000000\n"),
    ("sys/class/hwmon/hwmon8/device/power1_average_interval", "1000\n"),
    ("sys/class/hwmon/hwmon8/device/power1_oem_info", "CPU Power Socket 0\n"),
    ("sys/class/hwmon/hwmon9/name", "scmi_sensors\n"),
    ("sys/class/hwmon/hwmon9/power1_input", "1200000\n"),
    ("sys/class/hwmon/hwmon9/energy1_input", "99000000\n"),
    ("sys/bus/iio/devices/iio:device1/name", "s2mpg10-odpm\n"),
    ("sys/bus/iio/devices/iio:device1/energy_value", "t=349894\nCH3(T=349894)[S2M_VDD_CPUCL2], 30203502\n"),
    ("sys/bus/iio/devices/iio:device0/name", "ina226\n"),
    ("sys/bus/iio/devices/iio:device0/in_power2_raw", "100\n"),
    ("sys/bus/iio/devices/iio:device0/in_power2_scale", "12.5\n"),
    ("sys/bus/iio/devices/iio:device0/in_sampling_frequency", "455\n"),
    ("sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0/rail_name_0", "VDD_SYS_GPU\n"),
    ("sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0/in_power0_input", "1500\n"),
    ("sys/bus/i2c/drivers/INA231/3-0045/sensor_name", "sensor_arm\n"),
    ("sys/bus/i2c/drivers/INA231/3-0045/enable", "1\n"),
    ("sys/bus/i2c/drivers/INA231/3-0045/sensor_W", "0.250\n"),
    ("sys/bus/i2c/drivers/INA231/3-0045/update_period", "263808\n"),
    ("sys/class/power_supply/battery/type", "Battery\n"),
    ("sys/class/power_supply/battery/status", "Discharging\n"),
    ("sys/class/power_supply/battery/power_now", "7000000\n"),
    ("sys/class/power_supply/battery/voltage_now", "3900000\n"),
    ("sys/class/power_supply/battery/current_now", "-500000\n"),
];

const PIECES: [&str; 16] = [
    "",
    "0",
    "-1",
    "1e999",
    "nan",
    "inf",
    "-inf",
    "18446744073709551616",
    "18446744073709551615",
    "-9223372036854775808",
    "0x7f",
    "\0",
    "Unknown",
    "event=0xffffffffffffffff",
    "\n\n",
    "4294967296",
];

/// Content that replaces that of a file.
fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::sample::select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        vec(any::<u8>(), 0..40),
        vec(prop_oneof![b'0'..=b'9', Just(b'.'), Just(b'-'), Just(b'e'), Just(b'\n')], 0..30),
    ]
}

fn runner() -> TestRunner {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = asked.unwrap_or(if std::env::var_os("SOCBFS_TEST_ALL").is_some() { 20_000 } else { 300 });
    TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() })
}

#[test]
fn no_content_of_files_makes_a_sensor_panic() {
    let fixture = Fixture::new();
    for (path, text) in FILES {
        fixture.file(path, text);
    }
    let families = |tree: &Fixture| -> BTreeMap<String, usize> {
        let mut found = BTreeMap::new();
        for source in discover(&tree.tree()) {
            *found.entry(source.channels[0].family.to_string()).or_default() += 1;
        }
        found
    };
    let right = families(&fixture);
    assert!(right.len() >= 12, "not every family is tried: {right:?}");
    // Each change happens before the sensors are discovered, or between discovery and reading.
    let changes = vec((any::<Index>(), proptest::option::of(content()), any::<bool>()), 1..5);
    let tried = runner().run(&changes, |changes| {
        let put = |late: bool| {
            for (index, content, _) in changes.iter().filter(|(.., is_late)| *is_late == late) {
                let path = fixture.path(FILES[index.index(FILES.len())].0);
                match content {
                    Some(content) => fs::write(path, content).unwrap(),
                    None => drop(fs::remove_file(path)),
                }
            }
        };
        put(false);
        let mut sources = discover(&fixture.tree());
        put(true);
        for source in &mut sources {
            for channel in &source.channels {
                assert!(!channel.name().is_empty() && !channel.refresh.is_zero(), "{channel:?}");
            }
            let count = source.channels.len();
            if let Ok(sensor) = &mut source.sensor {
                for _ in 0..2 {
                    sensor.sample(&mut |channel: usize, _: u64, reading: Reading| {
                        assert!(channel < count);
                        if let Reading::Power(watts) = reading {
                            assert!(watts.0.is_finite(), "{watts}");
                        }
                    });
                }
            }
        }
        match Selection::automatic(sources, None) {
            Ok(selection) => assert!(!selection.scope().is_empty()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        for (index, ..) in &changes {
            let (path, text) = FILES[index.index(FILES.len())];
            fixture.file(path, text);
        }
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(families(&fixture), right);
}

#[test]
fn no_line_of_a_meter_makes_it_panic() {
    let fixture = Fixture::new();
    fixture.file("watts", "");
    let path = fixture.path("watts");
    let lines = vec((content(), any::<bool>()), 1..8);
    let tried = runner().run(&lines, |lines| {
        let mut text = b"1.5,20.25\n".to_vec();
        for (line, is_ended) in lines {
            text.extend_from_slice(&line);
            text.extend_from_slice(if is_ended { b"\n" } else { b"," });
        }
        fs::write(&path, &text).unwrap();
        let mut source = external::open(path.to_str().unwrap());
        source.sensor.as_mut().unwrap().sample(&mut |_: usize, _: u64, reading: Reading| {
            assert!(!matches!(reading, Reading::Power(watts) if !watts.0.is_finite()), "{reading:?}");
        });
        let text = String::from_utf8_lossy(&text);
        for (_, watts) in vcgencmd::rails(&text) {
            assert!(watts.0.is_finite(), "{watts}");
        }
        for line in text.lines() {
            let watts = [smartpower2::parse(line), wt310::parse(line).ok()];
            assert!(watts.into_iter().flatten().all(|watts| watts.0.is_finite()), "{line:?}");
            let _ = smartpower3::parse(line);
        }
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
}
