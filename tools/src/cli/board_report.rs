//! `socbfs bench --report board`: the benchmark of a board over several scales.

use std::path::Path;

use clap::ArgMatches;

use super::bench::{BenchArgs, ROOT, all_valid};
use crate::{
    bench::{available_memory, kronecker_bytes, temperatures},
    record::{BoardIdentity, BoardRecord, DriverRecord, Drivers, Environment, LeftOut, Record},
    report,
    shell::{Failure, Outputs, SoFar, Source, say, source},
};
use socbfs::{
    DeviceChoice, OpenClError,
    opencl::{self},
    words::{bytes, mteps},
};
use socbfs_boards::{board::Evidence, runtime::Runtime};

/// Share of the free memory that a graph may take: the rest is for the driver's copies and for other programs.
const MEMORY_SHARE: f64 = 0.75;

/// Searches every scale that fits the memory. After an interruption the report has the scales that are finished.
pub(super) fn run(arguments: &BenchArgs, matches: &ArgMatches, quiet: bool) -> Result<(), Failure> {
    if arguments.graph.is_some() || arguments.kronecker.is_some() {
        return Err(Failure::new("--report board searches Kronecker graphs of several scales, and takes no graph")
            .cure("choose the scales with --scales; one scale is enough"));
    }
    let config = arguments.search.resolve(matches)?;
    let outputs = arguments.output.open()?;
    arguments.energy.check(&config.profile)?;
    let environment = Environment::read(Path::new(ROOT));
    config.apply()?;
    let record = BoardRecord::new(environment.clone(), identity(&config), drivers(&config.device.value));
    let so_far = so_far(record, outputs, &arguments.scales.0);
    so_far.run(|| {
        let kept: Vec<Record> = so_far.resume(&environment, &config, &[], ["scale", "scales"])?;
        let scales = fitting(arguments, &mut so_far.lock().record, &kept)?;
        let kronecker = |scale| source::checked(source::kronecker(scale, arguments.edgefactor, arguments.seed)).map(Source::Generated);
        let sources = scales.into_iter().map(kronecker).collect::<Result<Vec<_>, _>>()?;
        let measure = |source: &Source| {
            // Only temperatures are read again. The load is the one before the first run: later it would include our own.
            let environment = Environment { temperatures: temperatures(Path::new(ROOT)), ..environment.clone() };
            arguments.measure(&config, environment, source)
        };
        // Printed and added under one lock, so that a report after Ctrl-C has what was printed.
        so_far.each(
            &sources,
            kept,
            |run| &run.graph.source,
            measure,
            |record, run, earlier| {
                if earlier.is_none() && !quiet {
                    say(&one_line(run));
                }
                record.add(run.clone());
                all_valid(&run.roots)
            },
            |_| Ok(()),
        )
    })
}

/// A record of these `scales`, and where it goes. Those that are missing at its end are left out.
fn so_far(record: BoardRecord, outputs: Outputs, scales: &[u32]) -> SoFar<BoardRecord> {
    let scales = scales.to_vec();
    SoFar::new(
        record,
        outputs,
        |record, outputs| outputs.publish(record, || report::board(record)),
        move |record, why| {
            let is_known =
                |scale: u32| record.runs.iter().any(|run| run.graph.scale == scale) || record.left_out.iter().any(|out| out.scale == scale);
            let rest: Vec<u32> = scales.iter().copied().filter(|&scale| !is_known(scale)).collect();
            leave_out(record, &rest, why.unwrap_or_default());
            record.complete = why.is_none();
            !record.runs.is_empty()
        },
    )
}

fn leave_out(record: &mut BoardRecord, scales: &[u32], reason: &str) {
    record.left_out.extend(scales.iter().map(|&scale| LeftOut { scale, reason: reason.to_owned() }));
}

/// The scales that fit the memory or are `kept`; the others are recorded as left out.
fn fitting(arguments: &BenchArgs, record: &mut BoardRecord, kept: &[Record]) -> Result<Vec<u32>, Failure> {
    let available = available_memory(Path::new(ROOT));
    let mut scales = Vec::new();
    for &scale in &arguments.scales.0 {
        let needed = kronecker_bytes(scale, arguments.edgefactor);
        match available {
            Some(free) if needed as f64 > MEMORY_SHARE * free as f64 && !kept.iter().any(|run| run.graph.scale == scale) => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{report::tests::record, shell::Output};

    fn some(runs: &[Record], json: Option<Output>) -> SoFar<BoardRecord> {
        let board = BoardIdentity { profile: "generic".into(), reason: "test".into(), machine: None, soc: None };
        let mut all = BoardRecord::new(record(&[0.001]).environment, board, Drivers::default());
        runs.iter().for_each(|run| all.add(run.clone()));
        so_far(all, Outputs { json, html: None }, &[20, 22])
    }

    #[test]
    fn a_failed_validation_gives_exit_code_1_and_an_incomplete_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("board.json");
        let mut bad = record(&[0.001]);
        bad.valid = false;
        bad.summary = None;
        bad.roots[0].validation.passed = false;
        let so_far = some(&[record(&[0.001]), bad.clone()], Some(Output::open(&path).unwrap()));
        assert_eq!(so_far.finish(all_valid(&bad.roots)).unwrap_err().code(), 1);
        let written: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!((&written["valid"], &written["complete"]), (&false.into(), &false.into()));
        assert!(written["runs"][1]["summary"].is_null());
    }

    #[test]
    fn an_error_gives_exit_code_2_and_an_incomplete_record() {
        let so_far = some(&[record(&[0.001])], None);
        assert_eq!(so_far.finish(Err(Failure::new("no memory"))).unwrap_err().code(), 2);
        assert!(!so_far.lock().record.complete);
        assert!(so_far.finish(Ok(())).is_ok() && so_far.lock().record.complete);
    }
}
