//! `socbfs devices`: the OpenCL devices of this machine, and the cost of a handover on each.

use clap::Args;

use crate::{
    report::{self, Devices, Platform},
    shell::{Bar, Failure, print, print_json},
};
use socbfs::{
    Device, DeviceInfo, Limits, OpenClError,
    opencl::{self},
};
use socbfs_boards::measure::{HandoverTable, measure, measure_quickly};

const EXAMPLES: &str = "\
Examples:
  socbfs devices
  socbfs devices --quick --json | jq '.platforms[].devices[].name'

--device NAME chooses a device by its name or its platform's, or a part of it. If
several match it takes the largest; NAME#2 is the second match in this list.
Without OpenCL searches run on the CPU.";

/// Show the OpenCL devices, and the cost of handing memory to them and back
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DevicesArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Measure only two sizes, as every search on a device does at its start
    #[arg(long)]
    quick: bool,
}

pub(super) fn run(arguments: &DevicesArgs) -> Result<(), Failure> {
    let all = match opencl::platforms() {
        Ok(platforms) => {
            let progress = Bar::start("Measuring handovers", 0);
            let found = |info: &DeviceInfo| handover(info, arguments.quick);
            let platforms = platforms.into_iter().map(|platform| Platform::new(platform, found)).collect();
            drop(progress);
            Devices { library: opencl::opened_library(), problem: None, platforms }
        }
        Err(problem @ (OpenClError::NoLibrary | OpenClError::NamedLibrary { .. } | OpenClError::NoPlatform)) => {
            Devices { library: opencl::opened_library(), problem: Some(problem.to_string()), platforms: Vec::new() }
        }
        Err(error) => return Err(Failure::because("looking for OpenCL devices", &error)),
    };
    if arguments.json { print_json(&all) } else { print(&report::devices(&all)) }
}

fn handover(info: &DeviceInfo, quick: bool) -> Result<HandoverTable, String> {
    let device = Device::open(info, Limits::default()).map_err(|error| error.to_string())?;
    Ok(if quick { measure_quickly(&device) } else { measure(&device) })
}
