//! `socbfs bench --report board`: the benchmark of a board over several scales.

use std::{
    path::Path,
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use clap::ArgMatches;

use super::{
    bench::{BenchArgs, ROOT, verdict},
    error::Failure,
    interrupt,
    output::{Output, both, print, take_stdout, write_page},
    say,
    source::{self, Source},
};
use crate::{
    bench::{
        BoardIdentity, BoardRecord, DriverRecord, Drivers, Environment, LeftOut, Record, available_memory, kronecker_bytes, temperatures,
    },
    board::Evidence,
    opencl::{self, DeviceChoice, OpenClError},
    report,
    runtime::Runtime,
    words::{bytes, mteps},
};

/// Share of the free memory that a graph may take: the rest is for the driver's copies and for other programs.
const MEMORY_SHARE: f64 = 0.75;

/// Scales of Kronecker graphs, ascending, without duplicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scales(Vec<u32>);

impl FromStr for Scales {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.trim().parse::<u32>().map_err(|_| format!("{:?} is not a scale; scales look like 16..=22 or 16,20", text.trim()))
        };
        let mut scales = Vec::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once("..=") {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(format!("{} contains no scale", part.trim()));
            }
            if last > 40 {
                return Err(format!("scale {last} is beyond what 32-bit vertices can number"));
            }
            scales.extend(first..=last);
        }
        scales.sort_unstable();
        scales.dedup();
        Ok(Self(scales))
    }
}

/// The results so far, and their output files.
struct Progress {
    record: BoardRecord,
    json: Option<Output>,
    html: Option<Output>,
}

type Shared = Arc<Mutex<Progress>>;

fn lock(shared: &Shared) -> MutexGuard<'_, Progress> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Searches every scale that fits the memory. After an interruption the report has the scales that are finished.
pub(super) fn run(arguments: &BenchArgs, matches: &ArgMatches, quiet: bool) -> Result<(), Failure> {
    if arguments.graph.is_some() || arguments.kronecker.is_some() {
        return Err(Failure::new("--report board searches Kronecker graphs of several scales, and takes no graph")
            .cure("choose the scales with --scales; one scale is enough"));
    }
    let config = arguments.search.resolve(matches)?;
    let json = arguments.json.as_deref().map(Output::open).transpose()?;
    let html = arguments.html.as_deref().map(Output::open).transpose()?;
    if arguments.trace.is_some() {
        return Err(Failure::new("--trace is for one graph, and --report board searches several").cure("omit one of the two"));
    }
    arguments.energy.check(&config.profile)?;
    let environment = Environment::read(Path::new(ROOT));
    config.apply()?;
    let mut record = BoardRecord::new(environment.clone(), identity(&config), drivers(&config.device.value));
    let scales = fitting(arguments, &mut record)?;
    let shared = Arc::new(Mutex::new(Progress { record, json, html }));
    let words = last_words(&shared, &scales);
    let failed = each(arguments, &config, &environment, &scales, &shared, quiet).err();
    drop(words);
    finish(&mut lock(&shared), failed)
}

/// Publishes the results so far. Returns a failed validation, or else `failed`, unless a failure to publish has a higher exit code.
fn finish(made: &mut Progress, failed: Option<Failure>) -> Result<(), Failure> {
    made.record.complete = failed.is_none() && made.record.valid;
    if made.record.runs.is_empty() {
        return failed.map_or(Ok(()), Err);
    }
    let published = publish(made);
    // A failed validation comes before any other failure.
    let searched = made.record.runs.iter().try_for_each(verdict).and_then(|()| failed.map_or(Ok(()), Err));
    both(published, searched)
}

/// Runs the scales in turn, until one fails validation or can't run. Only the latter is returned as an error.
fn each(
    arguments: &BenchArgs,
    config: &Runtime,
    environment: &Environment,
    scales: &[u32],
    shared: &Shared,
    quiet: bool,
) -> Result<(), Failure> {
    for (index, &scale) in scales.iter().enumerate() {
        // Only temperatures are read again. The load is the one before the first run: later it would include our own.
        let environment = Environment { temperatures: temperatures(Path::new(ROOT)), ..environment.clone() };
        let source = Source::Generated(source::checked(source::kronecker(scale, arguments.edgefactor, arguments.seed))?);
        let result = arguments.measure(config, environment, &source);
        let mut made = lock(shared);
        let run = match result {
            Ok(run) => run,
            Err(failure) => {
                leave_out(&mut made.record, &scales[index..], &format!("scale {scale} could not run ({failure})"));
                return Err(failure);
            }
        };
        if !quiet {
            say(&one_line(&run));
        }
        let valid = run.valid;
        made.record.add(run);
        if !valid {
            leave_out(&mut made.record, &scales[index + 1..], &format!("scale {scale} failed validation"));
            break;
        }
    }
    Ok(())
}

/// Registers the output after Ctrl-C: the scales that are finished, or nothing if there are none.
fn last_words(shared: &Shared, scales: &[u32]) -> interrupt::Words {
    let (shared, scales) = (Arc::clone(shared), scales.to_vec());
    interrupt::last_words(move || {
        let mut made = lock(&shared);
        let Some(last) = made.record.runs.last().map(|run| run.graph.scale) else { return };
        let rest: Vec<u32> = scales.into_iter().filter(|scale| *scale > last).collect();
        leave_out(&mut made.record, &rest, "interrupted");
        // A failure to publish can't be reported any more.
        let _ = publish(&mut made);
    })
}

fn leave_out(record: &mut BoardRecord, scales: &[u32], reason: &str) {
    record.left_out.extend(scales.iter().map(|&scale| LeftOut { scale, reason: reason.to_owned() }));
}

/// The scales that fit the memory; the others are recorded as left out.
fn fitting(arguments: &BenchArgs, record: &mut BoardRecord) -> Result<Vec<u32>, Failure> {
    let available = available_memory(Path::new(ROOT));
    let mut scales = Vec::new();
    for &scale in &arguments.scales.0 {
        let needed = kronecker_bytes(scale, arguments.edgefactor);
        match available {
            Some(free) if needed as f64 > MEMORY_SHARE * free as f64 => {
                let reason = format!(
                    "it takes about {}, more than {:.0} % of the {} that are free",
                    bytes(needed),
                    100.0 * MEMORY_SHARE,
                    bytes(free)
                );
                log::warn!("scale {scale} is left out: {reason}");
                leave_out(record, &[scale], &reason);
            }
            _ => scales.push(scale),
        }
    }
    if scales.is_empty() {
        let reason = record.left_out.first().map_or("", |left_out| &left_out.reason);
        return Err(Failure::new(format!("no scale fits the memory; scale {}: {reason}", arguments.scales.0[0]))
            .cure("choose smaller ones with --scales, or end other programs"));
    }
    log::info!("scales {scales:?} fit the memory");
    Ok(scales)
}

fn identity(config: &Runtime) -> BoardIdentity {
    let evidence = Evidence::read(Path::new(ROOT));
    let dmi = || Some(format!("{} {}", evidence.dmi_vendor.as_ref()?, evidence.dmi_product.as_ref()?));
    BoardIdentity {
        profile: config.profile.name().to_owned(),
        reason: config.profile.reason.clone(),
        machine: evidence.model.clone().or_else(dmi),
        soc: config.profile.board.board.soc.clone(),
    }
}

/// The OpenCL devices. With `--device cpu` no driver is queried, since a faulty one may crash the process.
fn drivers(choice: &DeviceChoice) -> Drivers {
    if *choice == DeviceChoice::Cpu {
        return Drivers { problem: Some("not looked for (--device cpu)".to_owned()), devices: Vec::new() };
    }
    let devices = match opencl::devices() {
        Ok(devices) => devices,
        Err(OpenClError::NoLibrary) => return Drivers { problem: Some("no OpenCL library".to_owned()), devices: Vec::new() },
        Err(error) => return Drivers { problem: Some(error.to_string()), devices: Vec::new() },
    };
    let device = |info: opencl::DeviceInfo| DriverRecord {
        name: info.name,
        platform: info.platform,
        version: info.version,
        driver: info.driver,
        unusable: info.unusable,
    };
    Drivers { problem: None, devices: devices.into_iter().map(device).collect() }
}

fn one_line(run: &Record) -> String {
    let speed = run.summary.as_ref().filter(|_| run.valid).map_or_else(|| "no speed".to_owned(), |s| mteps(s.teps.harmonic_mean));
    let power = run.energy.summary().map_or_else(String::new, |e| format!(", {}", socbfs_power::Watts(e.watts.mean)));
    format!("scale {}: {speed}{power}", run.graph.scale)
}

fn publish(made: &mut Progress) -> Result<(), Failure> {
    let json = made.json.take();
    let in_place = take_stdout([&json, &made.html]);
    let written = json.map_or(Ok(()), |json| json.finish_json(|out| report::json(&made.record, out)));
    let drawn = made.html.take().map_or(Ok(()), |html| write_page(html, &made.record));
    both(both(written, drawn), if in_place { Ok(()) } else { print(&report::board(&made.record)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::record;

    #[test]
    fn a_failed_validation_gives_exit_code_1_and_an_incomplete_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("board.json");
        let mut bad = record(&[0.001]);
        bad.valid = false;
        bad.summary = None;
        bad.roots[0].validation.passed = false;
        let board = BoardIdentity { profile: "generic".into(), reason: "test".into(), machine: None, soc: None };
        let mut all = BoardRecord::new(bad.environment.clone(), board, Drivers::default());
        all.add(record(&[0.001]));
        all.add(bad);
        let mut made = Progress { record: all, json: Some(Output::open(&path).unwrap()), html: None };
        assert_eq!(finish(&mut made, None).unwrap_err().code(), 1);
        let written: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!((&written["valid"], &written["complete"]), (&false.into(), &false.into()));
        assert!(written["runs"][1]["summary"].is_null());
    }

    #[test]
    fn an_error_gives_exit_code_2_and_an_incomplete_record() {
        let board = BoardIdentity { profile: "generic".into(), reason: "test".into(), machine: None, soc: None };
        let mut all = BoardRecord::new(record(&[0.001]).environment, board, Drivers::default());
        all.add(record(&[0.001]));
        let mut made = Progress { record: all, json: None, html: None };
        assert_eq!(finish(&mut made, Some(Failure::new("no memory"))).unwrap_err().code(), 2);
        assert!(!made.record.complete);
        assert!(finish(&mut made, None).is_ok() && made.record.complete);
    }

    #[test]
    fn scales_are_read_from_ranges_and_lists() {
        let read = |text: &str| text.parse::<Scales>().map(|scales| scales.0);
        assert_eq!(read("16..=19"), Ok(vec![16, 17, 18, 19]));
        assert_eq!(read("20, 10,12..=13,12"), Ok(vec![10, 12, 13, 20]));
        for (bad, reason) in [
            ("", "is not a scale"),
            ("16..22", "is not a scale"),
            ("22..=16", "contains no scale"),
            ("x", "is not a scale"),
            ("41", "beyond"),
        ] {
            assert!(read(bad).unwrap_err().contains(reason), "{bad}");
        }
    }
}
