//! Checks the outputs of socbfs in virtual machines with the real sensor drivers. `tests/vm/run` boots these guests and runs this test.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde_json::Value;

/// The outputs of one guest, by section name.
struct Guest(BTreeMap<String, String>);

impl Guest {
    /// Reads the outputs of a guest (`None` if it was not booted).
    fn read(name: &str) -> Option<Self> {
        let Some(folder) = std::env::var_os("SOCBFS_VM_OUTPUT") else {
            eprintln!("SKIPPED vm_energy of {name}: tests/vm/run boots the guests and runs this");
            return None;
        };
        let path = PathBuf::from(folder).join(name);
        if !path.exists() {
            eprintln!("SKIPPED vm_energy of {name}: the guest was not booted");
            return None;
        }
        let text = fs::read_to_string(path).unwrap();
        let mut sections = BTreeMap::new();
        for section in text.split("\n@@ ").skip(1) {
            let (name, body) = section.split_once('\n').unwrap();
            sections.insert(name.to_owned(), body.to_owned());
        }
        Some(Self(sections))
    }

    fn text(&self, section: &str) -> &str {
        self.0.get(section).unwrap_or_else(|| panic!("no section {section} in {:?}", self.0.keys()))
    }

    /// The exit code and the JSON of a section.
    fn json(&self, section: &str) -> (i32, Value) {
        let text = self.text(section);
        let line = text.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no JSON in {section}: {text}"));
        (self.code(section), serde_json::from_str(line).unwrap_or_else(|error| panic!("{section}: {error}: {line}")))
    }

    fn good(&self, section: &str) -> Value {
        let (code, value) = self.json(section);
        assert_eq!(code, 0, "{section}");
        value
    }

    fn code(&self, section: &str) -> i32 {
        let text = self.text(section);
        text.lines().find_map(|line| line.strip_prefix("@rc ")).unwrap_or_else(|| panic!("{section}: {text}")).parse().unwrap()
    }

    /// The powers that were set in a section, as (seconds, watts).
    fn log(&self, section: &str) -> Vec<(f64, f64)> {
        let (_, log) = self.text(section).split_once("@log\n").unwrap();
        let entry = |line: &str| {
            let (at, watts) = line.split_once(' ')?;
            Some((at.parse().ok()?, watts.parse().ok()?))
        };
        log.lines().filter_map(entry).collect()
    }
}

/// The energy of the powers in `log`, from `begin` for `seconds`.
fn programmed(log: &[(f64, f64)], begin: f64, seconds: f64) -> f64 {
    assert!(log.first().unwrap().0 <= begin && log.last().unwrap().0 >= begin + seconds - 2.5, "{log:?} from {begin} for {seconds}");
    let changes = log.iter().zip(log[1..].iter().map(|next| next.0).chain([f64::INFINITY]));
    changes.map(|(&(from, watts), to)| (to.min(begin + seconds) - from.max(begin)).max(0.0) * watts).sum()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Checks that the energy of `window`, of at least 6 s, is that of the log plus `others` watts, within `tolerance`.
fn assert_programmed(window: &Value, log: &[(f64, f64)], others: f64, tolerance: f64) {
    let seconds = number(&window["seconds"]);
    let expected = programmed(log, number(&window["begin_monotonic_seconds"]), seconds) + others * seconds;
    let measured = window["joules"].as_f64().unwrap_or_else(|| panic!("not measured: {window}"));
    let error = measured / expected - 1.0;
    let counted = window["rails"].as_array().unwrap().iter().find(|rail| rail["counted"] == true).unwrap();
    println!("{}: {measured:.2} J measured, {expected:.2} J programmed in {seconds:.2} s: {:+.2} %", counted["sensor"], 100.0 * error);
    assert!(seconds >= 6.0 && error.abs() <= tolerance, "{window}");
}

fn sensor<'v>(found: &'v Value, name: &str) -> &'v Value {
    let all = found["sensors"].as_array().unwrap();
    all.iter().find(|sensor| sensor["sensor"] == name).unwrap_or_else(|| panic!("{name} in {found}"))
}

fn assert_watts(found: &Value, name: &str, watts: f64, tolerance: f64) {
    let measured = number(&sensor(found, name)["watts"]);
    assert!((measured / watts - 1.0).abs() <= tolerance, "{name}: {measured} W and not {watts} W");
}

fn unusable<'v>(found: &'v Value, name: &str) -> &'v str {
    let all = found["unusable"].as_array().unwrap();
    let skipped = all.iter().find(|skipped| skipped["sensor"].as_str().unwrap().starts_with(name));
    skipped.unwrap_or_else(|| panic!("{name} in {found}"))["reason"].as_str().unwrap()
}

#[test]
fn intel_rapl_ina_chips_and_battery() {
    let Some(guest) = Guest::read("x86") else { return };
    let bus = guest.text("bus").trim();
    let ina = |address: &str| format!("ina2xx:{bus}-{address}");
    let found = guest.good("sensors");
    for (name, watts) in [("powercap:intel-rapl:0", 20.0), ("powercap:intel-rapl:0:0", 9.0), ("powercap:intel-rapl:0:1", 3.0)] {
        assert_watts(&found, name, watts, 0.02);
    }
    assert_watts(&found, &ina("0040"), 18.0, 0.001);
    assert_watts(&found, &ina("0044"), 18.0, 0.001);
    assert_watts(&found, &ina("0045"), 1.0, 0.001);
    assert_watts(&found, &ina("0046"), 17.92, 0.001);
    let meter = number(&sensor(&found, "acpi-power-meter:ACPI000D:00")["watts"]);
    // It is programmed to 10 and 20 W in turn; the mean of its samples is rounded as sums of floating point are.
    assert!((9.99..=20.01).contains(&meter), "{found}");
    let ina3221 = |channel: u32| format!("ina3221:{bus}-0041:{channel}");
    assert_watts(&found, &ina3221(1), 5.0, 0.001);
    assert_watts(&found, &ina3221(2), 0.4 * 3.296, 0.001);
    assert!(unusable(&found, &ina3221(3)).contains("dead channel"), "{found}");
    assert_watts(&found, "power-supply:test_battery", 6.08, 0.001);
    // psys exists, but its counter stands still.
    let psys = found["unusable"].as_array().unwrap().iter().find(|s| s["sensor"].as_str().unwrap().contains("psys")).unwrap();
    assert!(psys["reason"].as_str().unwrap().contains("did not change"), "{psys}");
    assert_eq!(found["auto"]["scope"], "cpu-package");
    let auto: Vec<&str> = found["auto"]["sensors"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(auto.contains(&"powercap:intel-rapl:0") && auto.iter().all(|name| !name.contains("ina")), "{auto:?}");

    // Another user may not read the counters, and gets the commands that allow it. The benchmark still runs.
    let theirs = guest.good("sensors-of-a-user");
    assert!(unusable(&theirs, "powercap:intel-rapl:0").contains("may not be read"), "{theirs}");
    let cure = theirs["unusable"][0]["cure"].as_str().unwrap();
    assert!(cure.contains("sudo usermod -a -G socbfs-power") && cure.contains("udev"), "{cure}");
    assert_watts(&theirs, &ina("0040"), 18.0, 0.001);
    assert_eq!(guest.code("bench-of-a-user"), 0);
    let cured = guest.good("cure");
    assert_watts(&cured, "powercap:intel-rapl:0", 20.0, 0.02);
    let modes: Vec<&str> = guest.text("cure").lines().filter(|line| line.starts_with("@mode ")).collect();
    assert!(modes.len() >= 4 && modes.iter().all(|&mode| mode == "@mode 440 990"), "{modes:?}");
    let others = guest.good("still-closed");
    assert!(unusable(&others, "powercap:intel-rapl:0").contains("may not be read"), "{others}");

    // Counters are right within 2 %, across a wrap.
    let record = guest.good("bench-rapl");
    let windows = record["energy"]["measured"]["windows"].as_array().unwrap();
    for window in windows {
        assert_programmed(&window["energy"], &guest.log("bench-rapl"), 0.0, 0.02);
    }
    let wraps: f64 = windows.iter().map(|window| number(&window["energy"]["rails"][0]["wraps"])).sum();
    assert_eq!((windows.len(), wraps), (6, 1.0), "the counter was to wrap in one of the windows");
    let window = &windows[0];
    assert_eq!((&record["valid"], &record["energy"]["measured"]["scope"]), (&Value::from(true), &Value::from("cpu-package")));
    assert!(number(&record["energy"]["measured"]["summary"]["mteps_per_watt"]["mean"]) > 0.0);
    assert!(number(&window["search_seconds"]) > 0.5 * number(&window["energy"]["seconds"]), "{window}");

    // Sampled sensors are right within 5 %.
    let record = guest.good("bench-ina226");
    let window = &record["energy"]["measured"]["windows"][0];
    assert_programmed(&window["energy"], &guest.log("bench-ina226"), 0.0, 0.05);
    assert!(number(&window["energy"]["rails"][0]["samples"]) >= 100.0, "{window}");
    for section in ["ina238", "acpi-power-meter"] {
        assert_programmed(&guest.good(section)["runs"][0], &guest.log(section), 0.0, 0.05);
    }
    let battery = guest.good("battery");
    assert_programmed(&battery["runs"][0], &guest.log("battery"), 0.0, 0.05);
    assert_ne!(guest.code("charging"), 0);
    assert!(guest.text("charging").contains("unplug the charger"), "{}", guest.text("charging"));

    // All rails at once: 18 + 18 + 1 + 17.92 W, 5 W and 1.3184 W. The dead channel is left out and reported.
    let all = guest.good("all-rails");
    assert!((number(&all["runs"][0]["watts"]) / (18.0 + 18.0 + 1.0 + 17.92 + 5.0 + 0.4 * 3.296) - 1.0).abs() < 0.01, "{all}");
    assert!(all["skipped"].as_array().unwrap().iter().any(|skipped| skipped["sensor"] == ina3221(3)), "{all}");

    for section in ["vanishes", "vanishes-ina"] {
        let run = &guest.good(section)["runs"][0];
        assert_eq!((&run["complete"], &run["joules"]), (&Value::from(false), &Value::Null), "{section}");
        assert!(run["problem"].as_str().unwrap().contains("% of it is covered"), "{run}");
    }
}

#[test]
fn amd_rapl() {
    let Some(guest) = Guest::read("amd") else { return };
    let found = guest.good("sensors");
    assert_watts(&found, "powercap:intel-rapl:0", 12.0, 0.02);
    let names: Vec<&str> = found["sensors"].as_array().unwrap().iter().map(|sensor| sensor["label"].as_str().unwrap()).collect();
    assert_eq!(names, ["package-0", "core"]);
    let energy = &guest.good("energy")["runs"][0];
    let (joules, seconds) = (number(&energy["joules"]), number(&energy["seconds"]));
    println!("AMD: {joules:.2} J measured, {:.2} J programmed in {seconds:.2} s", 12.0 * seconds);
    assert!(seconds >= 6.0 && (joules / (12.0 * seconds) - 1.0).abs() < 0.02, "{energy}");
    // The core zone is a single core inside the package, so it is reported and not counted.
    assert_eq!((&energy["rails"][1]["counted"], &energy["rails"][1]["domain"]), (&Value::from(false), &Value::from("cpu-core")));
}

#[test]
fn arm64_board_with_rails() {
    let Some(guest) = Guest::read("arm64") else { return };
    let bus = guest.text("bus").trim();
    assert_eq!(bus, "0", "the profile's rails are on bus 0");
    let found = guest.good("sensors");
    for (address, label, domain, watts) in [
        ("0040", Some("VDD_ARM"), "cpu-big", 3.0),
        ("0041", None, "memory", 0.24),
        ("0044", None, "gpu", 1.35),
        ("0045", Some("VDD_KFC"), "cpu-little", 0.38),
    ] {
        let name = format!("ina2xx:0-{address}");
        // The chip's resolution is 6.25 mW.
        assert!((number(&sensor(&found, &name)["watts"]) - watts).abs() < 0.007, "{found}");
        assert_eq!(sensor(&found, &name)["domain"], domain);
        assert_eq!(sensor(&found, &name)["label"].as_str(), label);
    }
    assert_watts(&found, "ina3221:0-0042:1", 38.4, 0.001);
    assert_eq!(sensor(&found, "ina3221:0-0042:1")["label"], "VDD_IN");
    assert_eq!(sensor(&found, "ina3221:0-0042:2")["label"], "VDD_CPU_GPU_CV");
    // A channel that the device tree leaves out is dead or has no files.
    assert!(found["sensors"].as_array().unwrap().iter().all(|sensor| sensor["sensor"] != "ina3221:0-0042:3"));
    assert_eq!(found["auto"]["scope"], "soc-rails");

    let record = guest.good("bench-profile");
    let measured = &record["energy"]["measured"];
    assert_eq!(measured["sensors"], serde_json::json!(["ina2xx:0-0040", "ina2xx:0-0041", "ina2xx:0-0044", "ina2xx:0-0045"]));
    let others = 0.01 * ((24.0 / 0.625_f64).floor() * 0.625 + (135.0 / 0.625_f64).floor() * 0.625 + (38.0 / 0.625_f64).floor() * 0.625);
    assert_programmed(&measured["windows"][0]["energy"], &guest.log("bench-profile"), others, 0.05);
    let domains: Vec<&str> =
        measured["summary"]["domains"].as_array().unwrap().iter().map(|domain| domain["domain"].as_str().unwrap()).collect();
    assert_eq!(domains, ["cpu-big", "memory", "gpu", "cpu-little"]);
    // VDD_IN contains the other rails, so it alone is the sum of its family.
    let jetson = &guest.good("jetson")["runs"][0];
    assert_eq!(jetson["scope"], "board-input");
    assert!((number(&jetson["watts"]) / 38.4 - 1.0).abs() < 0.01, "{jetson}");
}
