//! Includes every file of `examples/` as a module, and runs it.

use std::{fs, path::Path, time::Duration};

use socbfs::{DeviceChoice, bfs::Direction, graph::NONE};
use socbfs_boards::RuntimeError;
use socbfs_io::{generate::Generator, validate::validate};
use socbfs_power::{Selection, SystemFiles, discover};

#[path = "../examples/choose_device.rs"]
#[allow(dead_code, reason = "its main is for the shell")]
mod choose_device;
#[path = "../examples/energy.rs"]
#[allow(dead_code, reason = "its main is for the shell")]
mod energy;
#[path = "../examples/nearest.rs"]
#[allow(dead_code, reason = "its main is for the shell")]
mod nearest;
#[path = "../examples/own_policy.rs"]
#[allow(dead_code, reason = "its main is for the shell")]
pub mod own_policy;
#[path = "../examples/repeat_search.rs"]
#[allow(dead_code, reason = "its main is for the shell")]
mod repeat_search;
#[path = "../examples/search_file.rs"]
#[allow(dead_code, reason = "its main is for the shell")]
mod search_file;

#[test]
fn every_example_is_tested_here() {
    let here = fs::read_to_string(file!()).unwrap();
    let mut examples = 0;
    for entry in fs::read_dir(Path::new("examples")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(here.contains(&format!("../examples/{name}")), "{name} is not run by tests/examples.rs");
        examples += 1;
    }
    assert_eq!(examples, here.matches("#[path = \"../examples/").count());
}

#[test]
fn a_file_is_searched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("path.el");
    fs::write(&path, "0 1\n1 2\n2 3\n").unwrap();
    let outcome = search_file::search_file(&path, 1).unwrap();
    assert_eq!((outcome.reached, outcome.levels), (4, 3));
    let error = search_file::search_file(&path, 4).unwrap_err();
    assert!(error.to_string().contains("root 4 is not a vertex"), "{error}");
}

#[test]
fn depots_serve_what_is_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("paths.mtx");
    // Two paths, 0 to 5 and 6 to 7, and vertex 8 without an edge; depots at 0, 3 and 6.
    fs::write(&path, "%%MatrixMarket matrix coordinate pattern symmetric\n9 9 6\n2 1\n3 2\n4 3\n5 4\n6 5\n8 7\n").unwrap();
    let served = nearest::nearest(&path, 3).unwrap();
    assert_eq!((served.components, served.farthest, served.by), ((3, 2), 2, [(0, 2), (3, 4), (6, 2)].into()));
}

#[test]
fn a_graph_is_searched_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cycle.el");
    fs::write(&path, "0 1\n1 2\n2 3\n3 0\n").unwrap();
    assert_eq!(repeat_search::repeat_search(&path, 3, None).unwrap(), 3 * 4);
    fs::write(&path, "0 0\n").unwrap();
    let error = repeat_search::repeat_search(&path, 1, None).unwrap_err();
    assert_eq!(error.to_string(), "the graph has no edges");
}

#[test]
fn a_device_is_chosen() {
    let (devices, alone) = choose_device::search_on(DeviceChoice::Cpu).unwrap();
    assert!(devices.is_empty());
    let error = choose_device::search_on(DeviceChoice::Named(vec!["no such device".to_owned()])).unwrap_err();
    assert!(format!("{error:?}").contains("no such device"), "{error:?}");
    let (_, with_any) = choose_device::search_on(DeviceChoice::Auto).unwrap();
    assert_eq!((alone.reached, alone.levels), (with_any.reached, with_any.levels));
}

#[test]
fn energy_is_measured_or_the_error_names_the_missing_sensor() {
    let machine = tempfile::tempdir().unwrap();
    let error = Selection::automatic(discover(&SystemFiles::new(machine.path())), None).unwrap_err();
    assert!(error.to_string().contains("no power sensor"), "{error}");
    // A battery that always reads 5 W.
    let sensor = machine.path().join("sys/class/power_supply/BAT0");
    fs::create_dir_all(&sensor).unwrap();
    for (file, text) in [("type", "Battery\n"), ("status", "Discharging\n"), ("power_now", "5000000\n"), ("voltage_now", "11000000\n")] {
        fs::write(sensor.join(file), text).unwrap();
    }
    let names = ["power-supply:BAT0".to_owned()];
    let selection = Selection::named(discover(&SystemFiles::new(machine.path())), &names, None).unwrap();
    let (searches, energy) = energy::measure(selection, Duration::from_millis(200)).unwrap();
    assert!(searches > 0 && energy.seconds >= 0.2, "{energy:?}");
    let watts = energy.joules.unwrap().0 / energy.seconds;
    assert!((4.9..5.1).contains(&watts), "{energy:?}");
}

#[test]
fn a_custom_policy_decides_the_directions() {
    let edges = Generator::graph500(12).generate(&|_| ()).unwrap();
    for (share, switches) in [(0.05, true), (2.0, false)] {
        let (directions, parents) = own_policy::search(share).unwrap();
        assert_eq!(directions.contains(&Direction::BottomUp), switches, "{directions:?}");
        assert!(parents.contains(&NONE) && parents[5] == 5);
        validate(&edges, false, 5, &parents).unwrap();
    }
    let reached = own_policy::search(0.05).unwrap().1.iter().filter(|&&parent| parent != NONE).count() as u64;
    match own_policy::search_on_gpu(0.05) {
        Ok(on_gpu) => assert_eq!(on_gpu, reached),
        // This machine has no GPU.
        Err(error) => {
            assert!(matches!(error.downcast_ref(), Some(RuntimeError::NoDevice(_) | RuntimeError::Device(_))), "{error:?}");
        }
    }
}
