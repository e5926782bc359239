//! `socbfs grid`: the session in docs/grids.md, the files that it writes, and what it refuses.

use std::{
    collections::VecDeque,
    fs,
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use socbfs_algo::grid::{Cell, Connectivity, Grid, GridOptions, GridSearch};
use socbfs_tools::{bench::grid_edges, maps};

use crate::{
    built::{Folder, socbfs, text, wait_until_handled},
    command::board_with_rails,
};

const MAP: &str = "type octile\nheight 3\nwidth 5\nmap\n..@..\n.@@..\n.....\n";

fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn good(arguments: &[&str]) -> String {
    let (code, stdout, stderr) = output(&mut socbfs(arguments));
    assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    stdout
}

/// The words of a text, with T for a time and S for a speed.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    for at in 1..words.len() {
        let mark = match words[at].trim_end_matches(',') {
            "s" | "ms" | "us" | "ns" => "T",
            "million" => "S",
            _ => continue,
        };
        words[at - 1] = mark.to_owned();
        words[at] = mark.to_owned();
    }
    words
}

/// The session on the page is what the program prints, except for times.
#[test]
fn the_page_shows_a_session_as_it_is() {
    let page = fs::read_to_string(Path::new(crate::REPOSITORY).join("docs/grids.md")).unwrap();
    let session = page.split("```console\n$ ").nth(1).unwrap().split("```").next().unwrap();
    let folder = Folder::new();
    let mut compared = 0;
    for call in session.split("\n$ ") {
        let (call, shown) = call.split_once('\n').unwrap();
        match call.split_once(' ').unwrap() {
            ("cat", name) => _ = folder.file(name, format!("{}\n", shown.trim_end())),
            ("socbfs", arguments) => {
                let arguments: Vec<&str> = arguments.split(' ').map(|word| word.trim_matches('\'')).collect();
                let (code, stdout, stderr) = output(socbfs(&arguments).current_dir(folder.path("")));
                assert_eq!(code, Some(0), "{stderr}");
                assert_eq!(words(&stdout), words(shown), "{stdout}");
                compared += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(compared, 1);
}

/// The numbers of a NumPy file of `bytes` each, and the text of its header.
fn numbers(file: &str, bytes: usize) -> (String, Vec<u32>) {
    let content = fs::read(file).unwrap();
    let end = 10 + usize::from(content[8]);
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
    (text(&content[10..end]), content[end..].chunks_exact(bytes).map(number).collect())
}

#[test]
fn distances_steps_and_sources_are_written() {
    let folder = Folder::new();
    let map = folder.file("a.map", MAP);
    let [distances, steps, nearest, json] = ["d.npy", "s.npy", "n.npy", "r.json"].map(|name| folder.path(name));
    let files = ["--distances", &distances, "--steps", &steps, "--nearest", &nearest, "--json", &json];
    let sources = folder.file("docks.txt", "0,1\n\n 1 , 4 \n");
    let printed = good(&[&["grid", &map, "--sources", &sources, "--target", "2,2"], &files[..]].concat());
    assert!(printed.contains("reached:    11 of 12 free cells, until the target\n"), "{printed}");
    assert!(printed.contains("\npath:       3 steps from (2, 2) to source (1, 4)\n"), "{printed}");
    let none = u32::from(u16::MAX);
    let (head, levels) = numbers(&distances, 2);
    assert!(head.contains("'<u2'") && head.contains("(3, 5)"), "{head}");
    assert_eq!(levels, [1, 0, none, 2, 1, 2, none, none, 1, 0, 3, none, 3, 2, 1]);
    // Of several ways that are as short, any will do.
    for (cell, &step) in numbers(&steps, 1).1.iter().enumerate() {
        let to = match step {
            0 => cell - 5,
            2 => cell + 1,
            4 => cell + 5,
            6 => cell - 1,
            step => {
                assert!(step == if levels[cell] == 0 { 8 } else { 255 } && [0, none].contains(&levels[cell]), "{cell}: {step}");
                continue;
            }
        };
        assert_eq!(levels[to], levels[cell] - 1, "{cell}: {step}");
    }
    let far = u32::MAX;
    assert_eq!(numbers(&nearest, 4).1, [1, 1, far, 9, 9, 1, far, far, 9, 9, 1, far, 9, 9, 9]);
    let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(
        record["outcome"],
        json!({"sources": 2, "reached": 11, "levels": 4, "visits": record["outcome"]["visits"], "end": "target"})
    );
    assert_eq!(record["path"][0], json!({"row": 2, "column": 2}));
    assert_eq!(record["path"].as_array().unwrap().len(), 4);
    assert!(record["energy"].is_null(), "{record}");
}

/// A ROS map in its own frame: row 0 of the image is at the top, and the origin at the bottom left.
#[test]
fn maps_of_ros_are_searched_in_metres() {
    let folder = Folder::new();
    // Three rows of four cells; one is blocked, in the lowest row.
    folder.file("a.pgm", [&b"P5 4 3 255\n"[..], &[255; 8], &[255, 0, 255, 255]].concat());
    let yaml = |name: &str, origin: &str| folder.file(name, format!("image: a.pgm\nresolution: 0.5\norigin: {origin}\n"));
    let [json, distances] = ["r.json", "d.npy"].map(|name| folder.path(name));
    let searched = |map: &str, from: &str, to: &str| {
        let arguments = ["grid", map, "--metres", "--sources", from, "--target", to, "--json", &json, "--distances", &distances];
        let printed = good(&arguments);
        (printed, serde_json::from_str::<Value>(&fs::read_to_string(&json).unwrap()).unwrap())
    };
    let straight = yaml("a.yaml", "[-1.0, 2.0, 0.0]");
    let (printed, record) = searched(&straight, "-0.9,2.1", "0.3,2.4");
    assert!(printed.contains("\npath:       4 steps, 2.00 m from (2, 2) to source (2, 0)\n"), "{printed}");
    assert_eq!(record["path_metres"], json!([[0.25, 2.25], [0.25, 2.75], [-0.25, 2.75], [-0.75, 2.75], [-0.75, 2.25]]));
    let (head, bits) = numbers(&distances, 4);
    assert!(head.contains("'<f4'") && head.contains("(3, 4)"), "{head}");
    let metres: Vec<f32> = bits.iter().map(|&bits| f32::from_bits(bits)).collect();
    assert_eq!((metres[8], metres[4], metres[10], metres[9]), (0.0, 0.5, 2.0, f32::INFINITY));
    // Turned by a quarter about its origin, the first row leads upwards.
    let turned = yaml("b.yaml", "[10, 0, 1.5707963267948966]");
    let (_, record) = searched(&turned, "9.9,0.1", "9.9,1.1");
    assert_eq!((&record["sources"], &record["target"]), (&json!([{"row": 2, "column": 0}]), &json!({"row": 2, "column": 2})));
    let end = record["path_metres"][0].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>();
    assert!((end[0] - 9.75).abs() < 1e-9 && (end[1] - 1.25).abs() < 1e-9, "{end:?}");
    // The corner of the map belongs to it, whatever is rounded.
    assert!(good(&["grid", &turned, "--metres", "--sources", "9.5,0", "--target", "9.5,0"]).contains("0 steps, 0.00 m from (1, 0)"));
    // The robot has a radius: of the row beside the blocked cell nothing is left.
    let inflated = good(&["grid", &straight, "--metres", "--sources", "-0.9,3.4", "--inflate", "0.5"]);
    assert!(inflated.contains("3 x 4 cells (rows x columns), 6 free"), "{inflated}");
    for (arguments, error) in [
        (
            &["--sources", "-1.1,2.1"][..],
            "error: --sources: -1.1,2.1 lies outside of the map, whose lower left cell is at -0.75,2.25 and its upper right one at 0.75,3.25",
        ),
        (&["--sources", "x,2"], "error: can't read x,2"),
        (&["--sources", "1"], "error: --sources: \"1\" is not a point\n  help: a point is X,Y in metres"),
        (&["--sources", "0,3", "--connectivity", "8", "--distances", "d.npy"], "error: --distances can't be in metres"),
    ] {
        let (code, stdout, stderr) = output(&mut socbfs(&[&["grid", &straight, "--metres"], arguments].concat()));
        assert!(code == Some(2) && stdout.is_empty() && stderr.contains(error), "{arguments:?}: {code:?} {stdout}{stderr}");
    }
    for (origin, resolution) in [("[0, 0]", "0.5"), ("0", "0.5"), ("[a, 0, 0]", "0.5"), ("[0, 0, 0]", "0"), ("[0, 0, 0]", "inf")] {
        let map = folder.file("c.yaml", format!("image: a.pgm\nresolution: {resolution}\norigin: {origin}\n"));
        good(&["grid", &map, "--sources", "0,0"]);
        let (code, _, stderr) = output(&mut socbfs(&["grid", &map, "--sources", "0,0", "--metres"]));
        assert!(
            code == Some(2) && stderr.contains("error: the map does not say where it lies in metres"),
            "{origin} {resolution}: {stderr}"
        );
        let wrong = if resolution == "0.5" { "c.yaml:3: the origin is not a list of three" } else { "c.yaml:2: the resolution is not a" };
        assert!(stderr.contains(wrong), "{origin} {resolution}: {stderr}");
    }
}

#[test]
fn a_picture_is_a_map_again() {
    let folder = Folder::new();
    let (map, pgm, png) = (folder.file("a.map", MAP), folder.path("d.pgm"), folder.path("d.png"));
    for file in [&pgm, &png] {
        good(&["grid", &map, "--sources", "2,0", "--depth", "3", "--picture", file]);
    }
    // Of a PGM the white cells are free: those that were not reached.
    let map = maps::read(Path::new(&pgm), false).unwrap();
    assert_eq!(map.grid.free_cells(), 3 + 5);
    assert!(maps::read(Path::new(&png), false).unwrap().grid.rows() > 300);
}

#[test]
fn wrong_cells_and_flags_are_refused() {
    let folder = Folder::new();
    let map = folder.file("a.map", MAP);
    let lines = folder.file("bad.txt", "0,0\n7\n");
    let unknown = folder.file("a.pgm", b"P5 2 1 255\n\xff\xcd");
    for (arguments, error) in [
        (&[&*map, "--sources", "5"][..], "error: --sources: \"5\" is not a cell\n  help: a cell is ROW,COLUMN"),
        (&[&map, "--sources", "5,9,12"], "error: --sources: \"5,9,12\" is not a cell"),
        (&[&map, "--sources", "0,0;-1,2"], "error: --sources: \"-1,2\" is not a cell"),
        (&[&map, "--sources", "0,5"], "error: cell (0, 5) (row, column) lies outside of the grid of 3 by 5 cells\n  help: a cell is"),
        (&[&map, "--sources", "1,1"], "error: cell (1, 1) (row, column) is blocked, so no search begins or ends there"),
        (&[&unknown, "--sources", "0,1"], "--unknown free takes such cells as free"),
        (&[&map, "--sources", ""], "error: a search needs at least one source"),
        (&[&map, "--sources", &lines], "bad.txt:2: \"7\" is not a cell"),
        (&[&map, "--sources", "absent.txt"], "error: can't read absent.txt"),
        (&[&map, "--sources", "0,0", "--target", "7"], "error: --target: \"7\" is not a cell\n  help: a cell is ROW,COLUMN"),
        (&[&map, "--sources", "0,0", "--target", "3,0"], "error: cell (3, 0)"),
        (&[&map, "--sources", "0,0", "--target", "1,1"], "error: cell (1, 1) (row, column) is blocked"),
        (&[&map, "--sources", "0,0", "--metres"], "error: the map does not say where it lies in metres\n  help: name the .yaml file"),
        (&[&map, "--sources", "0,0", "--inflate", "-0.5"], "error: --inflate -0.5 is no radius"),
        (&[&map, "--sources", "0,0", "--inflate", "1"], "help: if the map has it free, choose a smaller radius of --inflate"),
        (&[&map, "--sources", "0,0", "--connectivity", "6"], "[possible values: 4, 8]"),
        (&[&map, "--sources", "0,0", "--around-corners"], "help: add --connectivity 8"),
        (
            &[&map, "--sources", "0,0", "--picture", "a.jpg"],
            "error: a.jpg: no known format for this output\n  help: end its name with .png or .pgm",
        ),
        (&[&map, "--sources", "0,0", "--steps", "a.txt"], "end its name with .npy"),
        (&[&map], "--sources <ROW,COLUMN;...|FILE>"),
        (&["absent.map", "--sources", "0,0"], "error: absent.map: can't read it: "),
        (&["kronecker:5", "--sources", "0,0"], "error: kronecker:5: can't read it: "),
        (&[&lines, "--sources", "0,0"], "bad.txt: the content is of no known format\n  help: a map is a PGM"),
    ] {
        let (code, stdout, stderr) = output(&mut socbfs(&[&["grid"], arguments].concat()));
        assert!(code == Some(2) && stdout.is_empty() && stderr.contains(error), "{arguments:?}: {code:?} {stdout}{stderr}");
    }
    // The map is not replaced by an output.
    let picture = folder.path("a.pgm");
    let (code, _, stderr) = output(&mut socbfs(&["grid", &picture, "--sources", "0,0", "--picture", &picture]));
    assert!(code == Some(2) && stderr.contains("a.pgm"), "{stderr}");
    assert_eq!(fs::read(&picture).unwrap(), b"P5 2 1 255\n\xff\xcd");
    // A target that can't be reached is a result, and one that is blocked an error.
    let apart = folder.file("apart.pgm", b"P5 3 1 255\n\xff\x00\xff");
    let printed = good(&["grid", &apart, "--sources", "0,0", "--target", "0,2"]);
    assert!(printed.contains("\npath:       none: (0, 2) was not reached\n"), "{printed}");
    let printed = good(&["grid", &unknown, "--sources", "0,1", "--unknown", "free"]);
    assert!(printed.contains("2 free, 1 unknown: taken as free\n"), "{printed}");
}

#[test]
fn energy_is_measured_in_windows_and_interrupted_without_a_trace() {
    let folder = Folder::new();
    let (map, root, json) = (folder.file("a.map", MAP), board_with_rails(&folder), folder.path("r.json"));
    let energy = ["--energy", "ina2xx", "--sysfs-root", &root, "--energy-repeats", "2", "--energy-seconds"];
    let grid = ["grid", &map, "--sources", "0,0", "--json", &json];
    let (printed, record) = crate::undisturbed(
        || {
            let printed = good(&[&grid[..], &energy, &["0.5"]].concat());
            (printed, serde_json::from_str::<Value>(&fs::read_to_string(&json).unwrap()).unwrap())
        },
        |(_, record)| record["energy"]["measured"]["summary"].is_object(),
    );
    let measured = &record["energy"]["measured"];
    assert_eq!(measured["windows"].as_array().unwrap().len(), 2, "{measured:#}");
    let watts = measured["summary"]["watts"]["mean"].as_f64().unwrap();
    assert!((watts - 4.0).abs() < 1e-6, "{watts}");
    for window in measured["windows"].as_array().unwrap() {
        let [searches, seconds, teps] = ["searches", "search_seconds", "teps"].map(|field| window[field].as_f64().unwrap());
        let expected = searches * record["edges"].as_f64().unwrap() / seconds;
        assert!(searches > 10.0 && (teps / expected - 1.0).abs() < 1e-9, "{window:#}");
    }
    assert!(printed.contains("\n  Energy of a search") && printed.contains("MTEPS/W") && !printed.contains("Modelled"), "{printed}");
    fs::remove_file(&json).unwrap();

    let mut long = socbfs(&[&grid[..], &energy, &["100"]].concat()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until_handled(&long, Signal::SIGINT);
    sleep(Duration::from_millis(300));
    kill(Pid::from_raw(long.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(long.wait().unwrap().code(), Some(130));
    assert_eq!(folder.names().iter().filter(|name| name.contains("r.json")).count(), 0, "{:?}", folder.names());
    // Without a sensor the search is still a result.
    let printed = good(&["grid", &map, "--sources", "0,0", "--energy", "auto", "--sysfs-root", &folder.path("sys/class")]);
    assert!(printed.contains("\n  Energy  n/a: "), "{printed}");
}

proptest! {
    /// Edges are the steps between two cells that were reached; those are counted here one by one.
    #[test]
    fn edges_are_steps_between_reached_cells(
        columns in 1..9_usize,
        cells in vec(0..3_u8, 1..80),
        kind in prop::sample::select(vec![Connectivity::Four, Connectivity::Eight, Connectivity::EightAroundCorners]),
        depth in prop::option::of(0..6_u32),
    ) {
        let rows = cells.len().div_ceil(columns);
        let mut free: Vec<u8> = cells.into_iter().map(|cell| cell.min(1)).collect();
        free.resize(rows * columns, 1);
        let source = free.iter().position(|&cell| cell > 0);
        prop_assume!(source.is_some());
        let source = source.unwrap();
        let grid = Grid::from_cells(rows, columns, &free).unwrap();
        let mut search = GridSearch::new(grid, &GridOptions { connectivity: kind, threads: 1, ..GridOptions::default() }).unwrap();
        let until = socbfs_algo::grid::GridUntil { depth, target: None };
        search.run_until(&[Cell::new(source / columns, source % columns)], until).unwrap();
        let levels = maps::levels(&search);
        let is_free = |row: usize, column: usize| row < rows && column < columns && free[row * columns + column] > 0;
        let steps = |cell: usize| {
            let (row, column) = (cell / columns, cell % columns);
            let straight = [(row.wrapping_sub(1), column), (row + 1, column), (row, column.wrapping_sub(1)), (row, column + 1)];
            let aside = [row.wrapping_sub(1), row + 1].into_iter().flat_map(move |to| [(to, column.wrapping_sub(1)), (to, column + 1)]);
            let aside = aside.filter(move |&(to, beside)| match kind {
                Connectivity::Four => false,
                Connectivity::Eight => true,
                Connectivity::EightAroundCorners => is_free(to, column) && is_free(row, beside),
            });
            straight.into_iter().chain(aside).filter(|&(row, column)| is_free(row, column)).map(|(row, column)| row * columns + column)
        };
        let mut queue = VecDeque::from([source]);
        let mut expected = vec![u32::MAX; free.len()];
        expected[source] = 0;
        while let Some(cell) = queue.pop_front() {
            for to in steps(cell).filter(|_| depth.is_none_or(|depth| expected[cell] < depth)).collect::<Vec<_>>() {
                if expected[to] == u32::MAX {
                    expected[to] = expected[cell] + 1;
                    queue.push_back(to);
                }
            }
        }
        prop_assert_eq!(&levels, &expected);
        let reached = |cell: &usize| expected[*cell] != u32::MAX;
        let both: usize = (0..free.len()).filter(reached).map(|cell| steps(cell).filter(reached).count()).sum();
        prop_assert_eq!(grid_edges(&search, &levels), both as u64 / 2);
    }
}
