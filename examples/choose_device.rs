//! Lists the OpenCL devices of this machine, and searches with the chosen one. With `auto`, a GPU shares the levels with the CPU; a device
//! that is named searches alone.
//!
//! ```text
//! cargo run --release --example choose_device -- [DEVICE]      cpu, gpu, auto, or (a part of) the device's name
//! ```

use std::{env, error::Error};

use socbfs::{BuildOptions, DeviceChoice, Layout, Outcome, devices};
use socbfs_boards::{Runtime, Setting};
use socbfs_io::Generator;

/// Searches a Kronecker graph with the device that `choice` means. Returns the names of the OpenCL devices (none: the CPU searched
/// alone), and the outcome.
pub fn search_on(choice: DeviceChoice) -> Result<(Vec<String>, Outcome), Box<dyn Error>> {
    let edges = Generator::graph500(12).generate(&|_| ())?;
    let layout = Layout::build(&edges, &BuildOptions::default())?;
    // The board's profile supplies the settings that are not given here. The policy `auto` decides where each level runs.
    let runtime = Runtime { device: Setting::flag(choice), ..Runtime::detect()? };
    let mut prepared = runtime.search(&layout)?;
    let outcome = prepared.run(5)?;
    let names = prepared.devices.iter().map(|device| device.used.name.clone()).collect();
    Ok((names, outcome))
}

fn main() -> Result<(), Box<dyn Error>> {
    match devices() {
        Ok(found) => found.iter().for_each(|device| println!("{} ({}), {:?}", device.name, device.platform, device.kind)),
        // A machine without OpenCL searches on its CPU.
        Err(error) => println!("no OpenCL: {error}"),
    }
    let choice = env::args().nth(1).unwrap_or_else(|| "auto".to_owned()).parse()?;
    let (names, outcome) = search_on(choice)?;
    println!("devices: {names:?}; {} vertices in {:?}", outcome.reached, outcome.elapsed);
    Ok(())
}
