//! Tests of pages made by `analyze`, `report` and other commands: text, record and page agree.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

fn socbfs(arguments: &[&str]) -> (i32, String, String) {
    let output = crate::built::socbfs(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn good(arguments: &[&str]) -> String {
    let (code, out, error) = socbfs(arguments);
    assert_eq!(code, 0, "{arguments:?}\n{error}");
    out
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

fn record(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The rows of the table of figure `id` in a page: every `data-value` (`None` if the cell has no number).
fn rows(page: &str, id: &str) -> Vec<Vec<Option<f64>>> {
    let begin = page.find(&format!("data-figure=\"{id}\"")).unwrap_or_else(|| panic!("no figure {id}"));
    let figure = &page[begin..begin + page[begin..].find("</figure>").unwrap()];
    let body = figure.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    let cell = |cell: &str| {
        let tag = &cell[..cell.find('>').unwrap()];
        tag.strip_prefix(" data-value=\"").map(|rest| rest.trim_end_matches('"').parse().unwrap())
    };
    body.split("<tr>").skip(1).map(|row| row.split("<td").skip(1).map(cell).collect()).collect()
}

/// Checks that a page fetches nothing, has no script, and that each of its links leads to one place on it.
fn stands_alone(page: &str) {
    for link in page.split("href=\"#").skip(1) {
        let (anchor, _) = link.split_once('"').unwrap();
        assert_eq!(page.matches(&format!(" id=\"{anchor}\"")).count(), 1, "{anchor}");
    }
    // Links differ in where they lead and in what they say.
    let (contents, _) = page.split_once("<nav").unwrap().1.split_once("</nav>").unwrap();
    let links: Vec<(&str, &str)> = contents.split("href=\"#").skip(1).map(|link| link.split_once("\">").unwrap()).collect();
    for (place, (anchor, text)) in links.iter().enumerate() {
        let text = text.split('<').next().unwrap();
        assert!(links[..place].iter().all(|(other, said)| other != anchor && said.split('<').next().unwrap() != text), "{anchor}: {text}");
    }
    let without_names = page.replace("http://www.w3.org/2000/svg", "");
    for part in ["http:", "https:", "<script", "src=", "@import", "url(", "<link", "javascript:"] {
        assert!(!without_names.contains(part), "{part}");
    }
}

/// The values of `keys` in every entry of a list.
fn numbers(list: &Value, keys: &[&str]) -> Vec<Vec<Option<f64>>> {
    list.as_array().unwrap().iter().map(|entry| keys.iter().map(|key| entry[key].as_f64()).collect()).collect()
}

fn without_iteration(rows: Vec<Vec<Option<f64>>>) -> Vec<Vec<Option<f64>>> {
    let drop = |mut row: Vec<Option<f64>>| {
        assert_eq!(row.remove(1), row[0].map(|level| level + 1.0));
        row
    };
    rows.into_iter().map(drop).collect()
}

#[test]
fn text_record_and_page_agree() {
    let folder = TempDir::new().unwrap();
    let [json, html, again] = ["a.json", "a.html", "b.html"].map(|name| path(&folder, name));
    let only = "profile,redundant,repeated";
    let arguments = ["analyze", "kronecker:9", "--device", "cpu", "--roots", "3", "--only", only, "--json", &json, "--html", &html];
    let text = good(&arguments);
    let (record, page) = (record(&json), fs::read_to_string(&html).unwrap());
    assert_eq!((&record["schema"], &record["schema_version"]), (&"socbfs-analysis".into(), &2.into()));
    good(&["report", &json, "--html", &again]);
    assert!(fs::read_to_string(&again).unwrap() == page, "{html} and {again} differ");
    assert_eq!(good(&["report", &json]), text);
    stands_alone(&page);

    let graph = &record["graphs"][0];
    let profile = ["level", "vertices", "arcs", "unvisited_vertices", "unvisited_arcs"];
    assert_eq!(without_iteration(rows(&page, "profile")), numbers(&graph["profile"]["levels"], &profile));
    let redundant = ["level", "arcs", "discovering", "repeat", "backward", "excess"];
    assert_eq!(without_iteration(rows(&page, "redundant")), numbers(&graph["redundant"]["levels"], &redundant));
    let probes = ["level", "arcs", "probes", "unvisited_vertices", "unvisited_arcs"];
    assert_eq!(without_iteration(rows(&page, "redundant-bottom-up")), numbers(&graph["redundant"]["levels"], &probes));
    let repeated = ["level", "traversed", "repeated_thesis", "repeated_ours", "depth_a", "depth_b", "left", "extra_levels"];
    assert_eq!(without_iteration(rows(&page, "repeated")), numbers(&graph["repeated"]["splits"], &repeated));
    for level in graph["profile"]["levels"].as_array().unwrap() {
        let count = socbfs::words::grouped(level["arcs"].as_u64().unwrap());
        assert!(text.contains(&format!(" {count} ")), "{count} in\n{text}");
    }
    assert!(page.contains(&format!("data-fact=\"mean degree m_d\" data-value=\"{}\"", graph["profile"]["mean_degree"])));
    // Each chart has a title, a description, the command that made it, and its numbers.
    assert_eq!(page.matches("<svg ").count(), 4);
    for part in ["<title>", "<desc>", "Made by <code>", "Numbers</summary>"] {
        assert!(page.matches(part).count() >= 4, "{part}");
    }
    assert!(page.contains("level (the root is 0)") && page.contains("arcs (logarithmic)") && page.contains("prefers-color-scheme:dark"));
}

#[test]
fn one_page_shows_records_of_several_boards() {
    let folder = TempDir::new().unwrap();
    let [a, b, html, svg] = ["a.json", "b.json", "both.html", "redundant.svg"].map(|name| path(&folder, name));
    for (json, root, last) in [(&a, "1", None), (&b, "2", Some("grid:4x4"))] {
        let graphs = ["grid:6x5", "kronecker:7"].into_iter().chain(last);
        let flags = ["--device", "cpu", "--root", root, "--turns", "1", "--json", json];
        good(&["analyze"].into_iter().chain(graphs).chain(flags).collect::<Vec<_>>());
    }
    good(&["report", &a, &b, "--html", &html]);
    let page = fs::read_to_string(&html).unwrap();
    stands_alone(&page);
    assert_eq!(page.matches("data-figure=\"profile\"").count(), 5);
    // The contents also list the figures of the graph that only the second record has.
    assert_eq!(page.matches("href=\"#").count(), page.matches("class=\"pair\"").count());
    assert!(page.matches("class=\"pair\"").count() >= 6 && page.contains(&a) && page.contains(&b));
    good(&["report", &a, "--figure", "redundant", "--svg", &svg]);
    let (code, _, error) = socbfs(&["report", &a, "--figure", "none"]);
    assert!(code == 2 && error.contains("no figure none") && error.contains("redundant"), "{error}");
    let picture = fs::read_to_string(&svg).unwrap();
    assert!(picture.starts_with("<svg ") && picture.contains("Redundant work") && picture.contains("prefers-color-scheme:dark"));
}

/// Programs other than browsers know no variables of CSS: without a colour of its own, all of a chart is black.
#[test]
fn every_kind_of_chart_has_its_colours_outside_browsers() {
    const TEST: &str = "every_kind_of_chart_has_its_colours_outside_browsers";
    let folder = TempDir::new().unwrap();
    let [json, svg] = ["a.json", "a.svg"].map(|name| path(&folder, name));
    let only = ["--only", "profile,redundant,heat", "--turns", "1", "--roots", "1"];
    good(&[&["analyze", "kronecker:8", "--device", "cpu", "--json", &json][..], &only].concat());
    for (figure, colour) in [("profile", [0x00, 0x72, 0xb2]), ("redundant", [0x00, 0x72, 0xb2]), ("heat", [0xf4, 0xf7, 0xfb])] {
        good(&["report", &json, "--figure", figure, "--svg", &svg]);
        assert!(!fs::read_to_string(&svg).unwrap().contains("var("), "{figure}");
        let Ok(drawn) = std::process::Command::new("rsvg-convert").arg(&svg).output() else {
            return crate::implementations::skipped(TEST, "rsvg-convert is not installed (Debian: librsvg2-bin)");
        };
        let mut image = png::Decoder::new(std::io::Cursor::new(&drawn.stdout)).read_info().unwrap();
        let mut pixels = vec![0; image.output_buffer_size().unwrap()];
        let shape = image.next_frame(&mut pixels).unwrap();
        let has = |colour: [u8; 3]| pixels.chunks_exact(shape.color_type.samples()).any(|pixel| pixel[..3] == colour);
        assert!(has(colour) && has([255; 3]) && !has([0; 3]), "{figure}");
    }
}

#[test]
fn the_smallest_graphs_have_pages() {
    let folder = TempDir::new().unwrap();
    let html = path(&folder, "a.html");
    for (name, text) in [("one.el", "0 0\n"), ("pair.el", "0 1\n"), ("apart.el", "0 1\n2 2\n"), ("star.el", "0 1\n0 2\n0 3\n")] {
        let graph = path(&folder, name);
        fs::write(&graph, text).unwrap();
        let text = good(&["analyze", &graph, "--device", "cpu", "--html", &html]);
        assert!(text.contains("level") && text.contains("vertices n"), "{text}");
        stands_alone(&fs::read_to_string(&html).unwrap());
    }
    let text = good(&["analyze", &path(&folder, "apart.el"), "--root", "2", "--only", "profile"]);
    assert!(text.contains("The root reaches no other vertex: the search has one level."), "{text}");
    let (code, _, error) = socbfs(&["analyze", &path(&folder, "pair.el"), "--root", "9"]);
    assert!(code == 2 && error.contains("root 9 is not a vertex"), "{error}");
}

#[test]
fn names_are_escaped_in_texts_and_pages() {
    let folder = TempDir::new().unwrap();
    let graph = path(&folder, "<img onerror=alert(1)> & \"q\" \u{1b}[31m.el");
    fs::write(&graph, "0 1\n1 2\n").unwrap();
    let (html, json) = (path(&folder, "a.html"), path(&folder, "a.json"));
    let text = good(&["analyze", &graph, "--device", "cpu", "--html", &html, "--json", &json]);
    let page = fs::read_to_string(&html).unwrap();
    assert!(!page.contains("<img") && page.contains("&lt;img onerror"), "{page}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let svg = path(&folder, "a.svg");
    good(&["report", &json, "--figure", "profile", "--svg", &svg]);
    assert!(!fs::read_to_string(&svg).unwrap().contains("<img"));
}

#[test]
fn files_that_are_not_records_are_refused() {
    let folder = TempDir::new().unwrap();
    let refused = |text: &str, words: &str| {
        let file = path(&folder, "bad.json");
        fs::write(&file, text).unwrap();
        let html = path(&folder, "bad.html");
        let (code, out, error) = socbfs(&["report", &file, "--html", &html]);
        assert_eq!((code, out.as_str()), (2, ""), "{error}");
        assert!(error.contains(words) && error.contains("help: "), "{error}");
        assert!(!Path::new(&html).exists());
    };
    refused("{", "bad.json");
    refused("[]", "no schema");
    refused("{\"schema\": \"x\"}", "the schema x");
    refused("{\"schema\": \"socbfs-analysis\", \"schema_version\": 99}", "version 99");
    refused("{\"schema\": \"socbfs-analysis\", \"schema_version\": 2}", "missing field");
}

#[test]
fn a_page_of_four_graphs_is_small() {
    let folder = TempDir::new().unwrap();
    let html = path(&folder, "four.html");
    good(&[
        "analyze",
        "kronecker:8",
        "grid:60x60",
        "rodinia:3000",
        "uniform:8",
        "--device",
        "cpu",
        "--roots",
        "1",
        "--turns",
        "1",
        "--html",
        &html,
    ]);
    let size = fs::metadata(&html).unwrap().len();
    assert!(size < 2_000_000, "{size} bytes");
}

/// The times of each level by each measured strategy, as in the table of a heat map.
fn own_times(graph: &Value) -> Vec<Vec<f64>> {
    let table = &graph["policies"]["evaluation"]["roots"][0]["table"];
    let measured: Vec<usize> = (0..6).filter(|&strategy| table["levels"][0]["own"][strategy].is_number()).collect();
    let of = |level: &Value| measured.iter().map(|&strategy| level["own"][strategy].as_f64().unwrap()).collect();
    table["levels"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn measured_analyses_agree_with_their_record() {
    let folder = TempDir::new().unwrap();
    let [json, html, again] = ["a.json", "a.html", "b.html"].map(|name| path(&folder, name));
    let few = ["--device", "cpu", "--threads", "2", "--turns", "2", "--roots", "2"];
    let text = good(&[&["analyze", "kronecker:8", "grid:9x9", "--json", &json, "--html", &html], &few[..]].concat());
    let (record, page) = (record(&json), fs::read_to_string(&html).unwrap());
    good(&["report", &json, "--html", &again]);
    assert!(fs::read_to_string(&again).unwrap() == page, "{html} and {again} differ");
    stands_alone(&page);
    // Before it there may be warnings about the machine.
    let last = record["warnings"].as_array().unwrap().last().unwrap();
    assert!(last.as_str().unwrap().contains("no OpenCL device") && text.contains("warning: split levels"), "{text}");
    let times = own_times(&record["graphs"][0]);
    let heat = rows(&page, "heat");
    assert_eq!(heat.len(), times.len() + 1);
    for (row, times) in heat.iter().zip(&times) {
        assert_eq!(row[5..7].iter().map(|cell| cell.unwrap()).collect::<Vec<_>>(), *times);
    }
    // The counts are the exact ones of the profile, not the estimates that policies read.
    let counts = numbers(&record["graphs"][0]["profile"]["levels"], &["vertices", "arcs"]);
    assert_eq!(heat[..times.len()].iter().map(|row| row[1..3].to_vec()).collect::<Vec<_>>(), counts);
    let sum = |column: usize| times.iter().map(|times| times[column]).sum::<f64>();
    for column in 0..2 {
        assert!((heat[times.len()][5 + column].unwrap() / sum(column) - 1.0).abs() < 1e-9);
    }
    // Speeds follow Graph500's rule: the harmonic mean over the roots.
    let evaluation = &record["graphs"][0]["policies"]["evaluation"]["roots"];
    let per_edge: Vec<f64> = evaluation
        .as_array()
        .unwrap()
        .iter()
        .map(|root| root["policies"][0]["total_ns"].as_f64().unwrap() / root["edges"].as_f64().unwrap())
        .collect();
    let mteps = 1e3 * per_edge.len() as f64 / per_edge.iter().sum::<f64>();
    assert!((rows(&page, "performance")[0][1].unwrap() / mteps - 1.0).abs() < 1e-9);
    assert!(text.contains("MTEPS/W is n/a: "), "{text}");
    let remapping = rows(&page, "remapping");
    assert_eq!(remapping[0][1], record["graphs"][0]["graph"]["vertices"].as_f64());
    for id in ["levels", "surf", "profile", "redundant", "repeated"] {
        assert!(page.contains(&format!("data-figure=\"{id}\"")), "{id}");
    }
    for id in ["split", "mapped", "handover"] {
        assert!(!page.contains(&format!("data-figure=\"{id}\"")), "{id}");
    }
}

#[test]
fn split_levels_and_handovers_are_measured_on_a_device() {
    const TEST: &str = "split_levels_and_handovers_are_measured_on_a_device";
    let installed = crate::implementations::installed(TEST);
    let Some((_, device)) = installed.iter().find(|(_, info)| info.platform.contains("Portable")) else {
        return crate::implementations::skipped(TEST, "PoCL is not installed");
    };
    let folder = TempDir::new().unwrap();
    let [json, html] = ["a.json", "a.html"].map(|name| path(&folder, name));
    let only = ["--only", "split,handover,levels", "--device", &device.name, "--turns", "1", "--root", "1"];
    good(&[&["analyze", "kronecker:8", "--json", &json, "--html", &html], &only[..]].concat());
    let (record, page) = (record(&json), fs::read_to_string(&html).unwrap());
    let graph = &record["graphs"][0];
    let shares = ["gpu_permille", "cpu_ns", "gpu_ns", "corun_ns", "both_ns", "level_ns", "contention"];
    for (direction, id) in
        graph["split"]["directions"].as_array().unwrap().iter().zip(["split", "split-tgm", "split-bottom-up", "split-bgc"])
    {
        let mut shown = rows(&page, id);
        for row in &mut shown {
            row[0] = row[0].map(|share| 1000.0 * share);
            // Predicted by the longer part alone.
            assert_eq!(row.remove(3), row[1].zip(row[2]).map(|(cpu, gpu)| cpu.max(gpu)));
        }
        assert_eq!(shown, numbers(&direction["shares"], &shares));
        let [first, last] = [0, 10].map(|share| &direction["shares"][share]);
        assert!(last["gpu_ns"].as_f64().unwrap() > 0.0 && first["cpu_ns"].as_f64().unwrap() > 0.0, "{direction}");
    }
    let mapped = ["level", "plain_ns", "mapped_ns", "handover_ns"];
    let shown = without_iteration(rows(&page, "mapped"));
    assert_eq!(shown, numbers(&graph["mapped"]["levels"], &mapped));
    assert!(shown.iter().all(|row| row[3].unwrap() > 0.0), "each level has a handover: {shown:?}");
    assert_eq!(record["handover"][0]["device"], device.name.as_str());
    let sizes: usize =
        record["handover"][0]["table"]["ways"].as_array().unwrap().iter().map(|way| way["sizes"].as_array().unwrap().len()).sum();
    assert_eq!(rows(&page, "handover").len(), sizes);
    assert!(page.contains(">parents</"), "the sizes of the graph's arrays are marked");
}

#[test]
fn policies_have_a_page() {
    let folder = TempDir::new().unwrap();
    let [json, html, again] = ["p.json", "p.html", "q.html"].map(|name| path(&folder, name));
    let few = ["--only", "sampled,tc,bc", "--turns", "2", "--roots", "2", "--device", "cpu"];
    good(&[&["policies", "kronecker:8", "--json", &json, "--html", &html], &few[..]].concat());
    good(&["report", &json, "--html", &again]);
    let page = fs::read_to_string(&html).unwrap();
    assert!(fs::read_to_string(&again).unwrap() == page, "{html} and {again} differ");
    stands_alone(&page);
    assert_eq!(rows(&page, "regret").len(), 4);
    assert_eq!(rows(&page, "performance").len(), 4);
}

#[test]
fn a_trace_has_exact_counts_on_request() {
    let folder = TempDir::new().unwrap();
    let json = path(&folder, "a.json");
    good(&["analyze", "kronecker:10", "--root", "458", "--only", "profile", "--device", "cpu", "--json", &json]);
    let text = good(&[
        "run",
        "kronecker:10",
        "--root",
        "458",
        "--trace",
        "--wide",
        "--exact",
        "--keep-leaves",
        "--device",
        "cpu",
        "--policy",
        "tc",
    ]);
    let levels = &record(&json)["graphs"][0]["profile"]["levels"];
    let rows: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).filter(|row| row.len() > 12 && row[1] == "top-down").collect();
    assert!(!rows.is_empty(), "{text}");
    for row in rows {
        // Small levels that were run together share a row, with the counts of the first.
        let first: usize = row[0].split('-').next().unwrap().parse().unwrap();
        let counts = ["vertices", "arcs", "unvisited_vertices", "unvisited_arcs"].map(|key| levels[first][key].as_u64().unwrap());
        assert_eq!(row[3..7], counts.map(socbfs::words::grouped), "{text}");
    }
    assert!(!text.contains('~'), "{text}");
    let (code, ..) = socbfs(&["run", "kronecker:10", "--root", "458", "--exact"]);
    assert_eq!(code, 2);
}

#[test]
fn benchmarks_have_pages_and_comparisons() {
    let folder = TempDir::new().unwrap();
    let [a, b, html, again, both] = ["a.json", "b.json", "a.html", "c.html", "both.html"].map(|name| path(&folder, name));
    let few = ["kronecker:9", "--device", "cpu", "--roots", "6", "--threads", "1"];
    good(&[&["bench", "--json", &a, "--html", &html], &few[..]].concat());
    good(&[&["bench", "--json", &b, "--policy", "tc"], &few[..]].concat());
    good(&["report", &a, "--html", &again]);
    let (run, page) = (record(&a), fs::read_to_string(&html).unwrap());
    assert!(fs::read_to_string(&again).unwrap() == page, "{html} and {again} differ");
    stands_alone(&page);
    let times: Vec<_> = rows(&page, "times").iter().map(|row| row[3]).collect();
    assert_eq!(times, run["roots"].as_array().unwrap().iter().map(|root| root["seconds"].as_f64()).collect::<Vec<_>>());
    let levels: Vec<_> = rows(&page, "timeline").iter().map(|row| row[4]).collect();
    let recorded = run["roots"][0]["level_records"].as_array().unwrap();
    assert_eq!(levels, recorded.iter().map(|level| level["elapsed_ns"].as_f64()).collect::<Vec<_>>());
    assert_eq!(rows(&page, "mapping").len(), 6);
    // Without a measurement the page says why there is no energy.
    assert!(page.contains("Energy is n/a: switched off with --energy off."), "no reason");
    let mteps = run["summary"]["teps"]["harmonic_mean"].as_f64().unwrap() / 1e6;
    assert!(page.contains(&format!("data-fact=\"Harmonic mean\" data-value=\"{mteps}\"")));

    let text = good(&["compare", &a, &b, "--html", &both]);
    let page = fs::read_to_string(&both).unwrap();
    stands_alone(&page);
    assert!(text.contains("B over A") && page.contains("95 % interval") && page.matches("data-figure=\"times\"").count() == 2);
    assert_eq!(rows(&page, "ratio").len(), 6);
    assert!(page.contains("search.policy"), "what differs is in the table");
}

#[test]
fn a_board_has_a_page() {
    let folder = TempDir::new().unwrap();
    let [json, html, again] = ["a.json", "a.html", "b.html"].map(|name| path(&folder, name));
    good(&["bench", "--report", "board", "--scales", "6,7", "--roots", "2", "--device", "cpu", "--json", &json, "--html", &html]);
    good(&["report", &json, "--html", &again]);
    let page = fs::read_to_string(&html).unwrap();
    assert!(fs::read_to_string(&again).unwrap() == page, "{html} and {again} differ");
    stands_alone(&page);
    let scales: Vec<_> = rows(&page, "scales").iter().map(|row| row[0]).collect();
    assert_eq!(scales, [Some(6.0), Some(7.0)]);
    assert_eq!(page.matches("data-figure=\"times\"").count(), 2);
}

#[test]
fn reproduce_compares_papers_with_this_machine() {
    let folder = TempDir::new().unwrap();
    let [json, html, again] = ["a.json", "a.html", "b.html"].map(|name| path(&folder, name));
    let machine = sensor(&folder);
    let energy = ["--energy", "ina2xx", "--sysfs-root", &machine, "--energy-seconds", "0.1", "--energy-repeats", "1"];
    let few = ["--quick", "--device", "cpu", "--threads", "1", "--json", &json, "--html", &html];
    for paper in ["zhang", "remis", "surf", "sunway"] {
        // Energy windows take time, so only two papers measure energy.
        let energy = if ["zhang", "sunway"].contains(&paper) { &energy[..] } else { &[] };
        let reproduced = || {
            good(&[&["reproduce", paper], &few[..], energy].concat());
            record(&json)
        };
        let record = crate::undisturbed(reproduced, |record| {
            let policies = record["graphs"][0]["policies"]["energy"]["policies"].as_array();
            policies.is_none_or(|policies| policies.iter().all(|of| of["summary"].is_object()))
        });
        good(&["report", &json, "--html", &again]);
        let page = fs::read_to_string(&html).unwrap();
        assert!(fs::read_to_string(&again).unwrap() == page, "{html} and {again} differ");
        stands_alone(&page.replace("https://", ""));
        let claims = record["paper"]["claims"].as_array().unwrap();
        let cells = record["paper"]["cells"].as_array().unwrap();
        for (figure, claims) in [("paper", claims), ("paper-cells", cells)] {
            let shown = if claims.is_empty() { Vec::new() } else { rows(&page, figure) };
            assert_eq!(shown.len(), claims.len(), "{paper}");
            for (row, claim) in shown.iter().zip(claims) {
                assert_eq!((row[2], row[3]), (claim["paper"].as_f64(), claim["ours"].as_f64()), "{claim}");
                assert!(claim["ours"].is_number() || claim["note"].as_str().is_some_and(|note| !note.is_empty()), "a reason: {claim}");
            }
        }
        let compared = |claims: &[Value]| claims.iter().filter(|claim| claim["ours"].is_number()).count();
        // Numbers of claims and of cells with a value of this machine. zhang: speed over Yasui's, GTEPS of two policies compared with two
        // machines, MTEPS/W over Yasui's compared with two machines, remapping; cells of TC and BC at existing levels. remis: iterations
        // of Rodinia's graphs. surf: all means.
        let known = [("zhang", 8, 8..=16), ("remis", 1, 0..=0), ("surf", 25, 0..=0), ("sunway", 0, 0..=0)];
        let (_, means, of_cells) = known.iter().find(|known| known.0 == paper).unwrap();
        assert_eq!(compared(claims), *means, "{claims:?}");
        assert!(of_cells.contains(&compared(cells)), "{paper}: {} cells", compared(cells));
        assert!(!record["paper"]["missing"].as_array().unwrap().is_empty());
        // Energy is measured in windows of each policy, and has a figure of its own.
        let measured = &record["graphs"][0]["policies"]["energy"]["policies"];
        assert_eq!(measured.is_array(), !energy.is_empty(), "{paper}: {measured}");
        if !energy.is_empty() {
            assert_eq!(rows(&page, "policy-energy").len(), measured.as_array().unwrap().len());
        }
        if paper == "zhang" {
            let efficiency = |name: &str| {
                let of = measured.as_array().unwrap().iter().find(|of| of["policy"].as_str().unwrap().starts_with(name)).unwrap();
                of["summary"]["mteps_per_watt"]["mean"].as_f64().unwrap()
            };
            assert!(efficiency("auto") > 0.0 && efficiency("yasui") > 0.0);
        }
        if paper == "sunway" {
            let ranks = record["graphs"][0]["ranks"]["times"].as_array().unwrap();
            assert_eq!(rows(&page, "ranks").len(), ranks.len());
            assert!(ranks.iter().all(|times| times["reached"] == ranks[0]["reached"]), "{ranks:?}");
        }
    }
}

#[test]
fn reproduce_finds_the_graphs_of_a_paper_by_file_name() {
    let folder = TempDir::new().unwrap();
    let [json, html] = ["a.json", "a.html"].map(|name| path(&folder, name));
    fs::write(path(&folder, "soc-pokec.el"), (1..400).map(|v| format!("{} {v}\n", v / 2)).collect::<String>()).unwrap();
    let data = folder.path().to_str().unwrap();
    let few = ["--device", "cpu", "--threads", "1", "--data", data, "--json", &json, "--html", &html];
    // Empty variables count as not set.
    let empty = ["SOCBFS_PARTS", "SOCBFS_OBJECTIVE", "SOCBFS_ENERGY"].map(|name| (name, ""));
    let output = crate::built::socbfs(&[&["reproduce", "surf"], &few[..]].concat()).envs(empty).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", crate::built::text(&output.stderr));
    let record = record(&json);
    assert_eq!(record["graphs"].as_array().unwrap().len(), 1);
    let policies = &record["graphs"][0]["policies"];
    assert!(policies["energy"].is_null() && policies["no_energy"].is_null(), "{}", policies["no_energy"]);
    assert_eq!(record["paper"]["searched"][0][0], "soc-pokec (PK)");
    let cells = record["paper"]["cells"].as_array().unwrap();
    let ours: Vec<&Value> = cells.iter().filter(|cell| cell["ours"].is_number()).collect();
    // Four methods in four tables, and three programs.
    assert_eq!(ours.len(), 19, "{ours:?}");
    assert!(ours.iter().all(|cell| cell["what"].as_str().unwrap().starts_with("soc-pokec (PK), ")));
    let pokec = |what: &str| cells.iter().find(|cell| cell["what"] == format!("soc-pokec (PK), {what}")).unwrap();
    assert_eq!(pokec("HBFS, run time, ms")["paper"], 2.26);
}

#[test]
fn reproduce_names_the_option_or_the_variable_of_an_invalid_value() {
    let folder = TempDir::new().unwrap();
    let html = path(&folder, "a.html");
    let quick = ["reproduce", "zhang", "--quick", "--html", &html];
    let (code, _, error) = socbfs(&[&quick[..], &["--threads", "x"]].concat());
    assert!(code == 2 && error.starts_with("error: invalid value 'x' for '--threads <N>'") && !error.contains("SOCBFS_THREADS"), "{error}");
    let output = crate::built::socbfs(&quick).env("SOCBFS_SIMD", "x").output().unwrap();
    let error = crate::built::text(&output.stderr);
    assert!(output.status.code() == Some(2) && error.starts_with("error: invalid value 'x' for '--simd <KIND>'"), "{error}");
    assert!(error.contains("\n  help: --simd is set by the environment variable SOCBFS_SIMD\n"), "{error}");
}

#[test]
fn reproduce_refuses_folders_that_do_not_exist_and_sizes_below_its_graphs() {
    let folder = TempDir::new().unwrap();
    let [html, json, none] = ["a.html", "a.json", "none"].map(|name| path(&folder, name));
    let few = ["--quick", "--device", "cpu", "--threads", "1", "--energy", "off", "--html", &html, "--json", &json];
    for (flags, words) in [
        (["--data", &none], [&none[..], "SOCBFS_DATA"]),
        (["--largest", "9"], ["--largest 9 leaves out every graph", "--largest 10 or more"]),
        (["--largest", "0"], ["--largest", "0"]),
    ] {
        let (code, _, error) = socbfs(&[&["reproduce", "zhang"], &few[..], &flags].concat());
        assert!(code == 2 && words.iter().all(|word| error.contains(word)), "{flags:?}: {error}");
        assert!(!Path::new(&html).exists() && !Path::new(&json).exists());
    }
    // The graphs that replace those of the paper have scales 10 and 11.
    good(&[&["reproduce", "zhang", "--largest", "10"], &few[..]].concat());
    let record = record(&json);
    let names: Vec<&str> = record["graphs"].as_array().unwrap().iter().map(|graph| graph["name"].as_str().unwrap()).collect();
    assert!(names.len() == 1 && names[0].contains("10"), "{names:?}");
}

#[test]
fn analyses_that_need_a_device_are_an_error_without_one_if_nothing_else_is_asked_for() {
    let split = ["analyze", "kronecker:6", "--device", "cpu", "--turns", "1", "--only"];
    for (only, what) in [("split", "split levels: no"), ("handover", "handover: no"), ("split,handover", "split levels and handover: no")] {
        let (code, out, error) = socbfs(&[&split[..], &[only]].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{only}: {error}");
        assert!(error.contains(what) && error.contains("help: name one with --device NAME"), "{error}");
    }
    let text = good(&[&split[..], &["profile,split"]].concat());
    assert!(text.contains("warning: split levels are left out: no OpenCL device is used; name one with --device NAME"), "{text}");
}

#[test]
fn a_layout_in_the_original_order_has_no_figure_of_mapping() {
    let folder = TempDir::new().unwrap();
    let [json, html] = ["a.json", "a.html"].map(|name| path(&folder, name));
    for (order, mapped) in [("original", false), ("degree", true)] {
        let flags = ["bench", "kronecker:7", "--device", "cpu", "--roots", "3", "--order", order, "--json", &json, "--html", &html];
        let (code, _, table) = socbfs(&flags);
        let (run, page) = (record(&json), fs::read_to_string(&html).unwrap());
        assert_eq!((code, table.contains("without mapping"), table.contains("mapping's share")), (0, mapped, mapped), "{table}");
        assert_eq!(run["summary"]["mapping_share"].as_f64().unwrap() > 0.0, mapped);
        assert_eq!((page.contains("data-figure=\"mapping\""), page.contains("mapping's share of time")), (mapped, mapped));
    }
    let roots: Vec<_> = record(&json)["roots"].as_array().unwrap().iter().map(|root| root["root"].as_f64()).collect();
    let page = fs::read_to_string(&html).unwrap();
    assert_eq!(rows(&page, "mapping").iter().map(|row| row[0]).collect::<Vec<_>>(), roots);
}

#[test]
fn a_root_in_a_small_component_is_named_wherever_warnings_are() {
    let folder = TempDir::new().unwrap();
    let [json, html] = ["a.json", "a.html"].map(|name| path(&folder, name));
    // One of the 64 roots reaches one edge.
    let flags = ["--report", "board", "--scales", "11", "--device", "cpu", "--threads", "1", "--json", &json, "--html", &html];
    let markdown = good(&[&["bench"], &flags[..]].concat());
    let warning = "1 of 64 roots (394) reaches less than 1 % of the edges";
    assert!(markdown.contains(&format!("- Warning: {warning}")), "{markdown}");
    let warnings = record(&json)["runs"][0]["warnings"].to_string();
    assert!(warnings.contains(warning), "{warnings}");
    assert!(fs::read_to_string(&html).unwrap().contains(&format!("Warning: {warning}")));
}

#[test]
fn records_that_no_run_can_have_are_refused() {
    type Edit = fn(&mut Value);
    let folder = TempDir::new().unwrap();
    let [good_file, bad] = ["a.json", "bad.json"].map(|name| path(&folder, name));
    good(&["bench", "kronecker:7", "--device", "cpu", "--roots", "2", "--json", &good_file]);
    let edits: [(Edit, &str); 2] = [
        (|run| run["roots"][1]["seconds"] = (-1).into(), "has a time of -1 s"),
        (|run| run["roots"] = Value::Array(Vec::new()), "its summary is of 2 roots, and its list has 0"),
    ];
    for (edit, reason) in edits {
        let mut run = record(&good_file);
        edit(&mut run);
        fs::write(&bad, run.to_string()).unwrap();
        for arguments in [&["compare", &good_file, &bad][..], &["report", &bad]] {
            let (code, out, error) = socbfs(arguments);
            assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {error}");
            assert!(error.contains(&bad) && error.contains(reason) && error.contains("help: "), "{error}");
        }
    }
    fs::write(&bad, "{\"schema\": \"socbfs-analysis\", \"schema_version\": 2}").unwrap();
    let (code, _, error) = socbfs(&["compare", &good_file, &bad]);
    assert!(code == 2 && error.contains("`socbfs analyze`") && error.contains("help: write a record with `socbfs bench --json"), "{error}");
}

/// Makes a machine with one INA219 that reads 18 W, and returns its root.
fn sensor(folder: &TempDir) -> String {
    let chip = folder.path().join("machine/sys/class/hwmon/hwmon0");
    fs::create_dir_all(&chip).unwrap();
    // The sensor is fast, since a slow one would need long windows.
    for (name, text) in [("name", "ina219"), ("power1_input", "18000000"), ("update_interval", "1")] {
        fs::write(chip.join(name), text).unwrap();
    }
    path(folder, "machine")
}

#[test]
fn policies_measure_energy_in_alternating_windows() {
    let folder = TempDir::new().unwrap();
    let (machine, [json, html, again]) = (sensor(&folder), ["p.json", "p.html", "q.html"].map(|name| path(&folder, name)));
    let energy = ["--energy", "ina2xx", "--sysfs-root", &machine, "--energy-seconds", "0.2", "--energy-repeats", "2"];
    let few = ["policies", "kronecker:8", "--only", "tc,bc", "--turns", "1", "--roots", "2", "--device", "cpu", "--threads", "1"];
    let text = good(&[&few[..], &energy[..], &["--baseline", "bc", "--json", &json, "--html", &html]].concat());
    good(&["report", &json, "--html", &again]);
    let (record, page) = (record(&json), fs::read_to_string(&html).unwrap());
    assert!(fs::read_to_string(&again).unwrap() == page, "{html} and {again} differ");
    let measured = &record["graphs"][0]["energy"];
    assert_eq!((&measured["baseline"], measured["policies"].as_array().unwrap().len()), (&"bc".into(), 2));
    let windows = |policy: usize| measured["policies"][policy]["windows"].as_array().unwrap();
    // The windows of the two policies alternate: A B A B.
    let begins = |policy: usize, turn: usize| windows(policy)[turn]["energy"]["begin_monotonic_seconds"].as_f64().unwrap();
    assert!(begins(0, 0) < begins(1, 0) && begins(1, 0) < begins(0, 1) && begins(0, 1) < begins(1, 1), "{measured}");
    let efficiency = |policy: usize, turn: usize| windows(policy)[turn]["teps"].as_f64().unwrap() / 18e6;
    let shown = rows(&page, "policy-energy");
    let near = |found: Option<f64>, value: f64| assert!((found.unwrap() / value - 1.0).abs() < 1e-6, "{found:?} {value}");
    for (policy, row) in shown.iter().enumerate() {
        near(row[2], (efficiency(policy, 0) + efficiency(policy, 1)) / 2.0);
        near(row[4], 18.0);
        near(row[6], (efficiency(policy, 0) / efficiency(1, 0) + efficiency(policy, 1) / efficiency(1, 1)) / 2.0);
    }
    assert!(text.contains("MTEPS/W") && text.contains("baseline bc"), "{text}");
    let (code, _, error) = socbfs(&[&few[..], &energy[..], &["--baseline", "daga"]].concat());
    assert!(code == 2 && error.contains("daga is not compared here"), "{error}");
    let (code, _, error) = socbfs(&[&few[..], &["--baseline", "bc"]].concat());
    assert!(code == 2 && error.contains("--baseline has no effect here") && error.contains("add --energy auto"), "{error}");
    // The environment variable requests energy like the flag, and its value `off` requests none.
    let text = |setting: &str| {
        let mut command = crate::built::socbfs(&[&few[..], &energy[2..]].concat());
        let output = command.env("SOCBFS_ENERGY", setting).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(text("ina2xx").contains("MTEPS/W") && !text("off").contains("Energy"));
    // If requested energy can't be measured, text and page give the reason.
    let none = ["--energy", "off", "--html", &html];
    assert!(good(&[&few[..], &none[..]].concat()).contains("MTEPS/W is n/a: switched off"));
    assert!(fs::read_to_string(&html).unwrap().contains("MTEPS/W is n/a: switched off"));
}

#[test]
fn a_benchmark_shows_its_energy_windows() {
    let folder = TempDir::new().unwrap();
    let (machine, [json, html]) = (sensor(&folder), ["a.json", "a.html"].map(|name| path(&folder, name)));
    let energy = ["--energy", "ina2xx", "--sysfs-root", &machine, "--energy-seconds", "0.2", "--energy-repeats", "2"];
    good(&[&["bench", "kronecker:8", "--device", "cpu", "--roots", "2", "--json", &json, "--html", &html], &energy[..]].concat());
    let (record, page) = (record(&json), fs::read_to_string(&html).unwrap());
    let shown = rows(&page, "energy");
    let windows = record["energy"]["measured"]["windows"].as_array().unwrap();
    assert_eq!((shown.len(), windows.len()), (3, 2));
    for (row, window) in shown[1..].iter().zip(windows) {
        assert_eq!(
            (row[3], row[4], row[5]),
            (window["energy"]["watts"].as_f64(), window["energy"]["joules"].as_f64(), window["searches"].as_f64())
        );
    }
}

/// Whether long tests are requested. Prints SKIPPED if not.
fn all(test: &str, why: &str) -> bool {
    let all = std::env::var_os("SOCBFS_TEST_ALL").is_some_and(|all| all == "1");
    if !all {
        crate::implementations::skipped(test, why);
    }
    all
}

#[test]
fn the_picture_in_the_readme_is_up_to_date() {
    let folder = TempDir::new().unwrap();
    let [json, svg] = ["k.json", "k.svg"].map(|name| path(&folder, name));
    good(&["analyze", "kronecker:16", "--device", "cpu", "--root", "5", "--only", "redundant", "--json", &json]);
    good(&["report", &json, "--figure", "redundant-bottom-up", "--svg", &svg]);
    let kept = fs::read_to_string(Path::new(crate::REPOSITORY).join("docs/directions.svg")).unwrap();
    assert!(fs::read_to_string(&svg).unwrap() == kept, "make docs/directions.svg anew by the commands in docs/analysis.md");
}

/// A script that sets the page's title to the faults of its layout: chart texts that overlap, words wider than their cell, a page wider
/// than its window.
const LAYOUT: &str = "<script>const out=[];document.querySelectorAll('svg').forEach(s=>{const t=[...s.querySelectorAll('text')].map(\
    e=>[e.getBoundingClientRect(),e.textContent.trim()]);for(let a=0;a<t.length;a++)for(let b=a+1;b<t.length;b++){const [p,n]=t[a],[q,m]=t[b];\
    const x=Math.min(p.right,q.right)-Math.max(p.left,q.left),y=Math.min(p.bottom,q.bottom)-Math.max(p.top,q.top);\
    if(x>1&&y>3)out.push(n+' / '+m)}});document.querySelectorAll('td,th,dd,p,h1,h2,h3,li').forEach(e=>{const r=document.createRange();\
    r.selectNodeContents(e);if(r.getBoundingClientRect().right>e.getBoundingClientRect().right+1)out.push('runs out: '+e.textContent)});\
    if(document.documentElement.scrollWidth>innerWidth)out.push(innerWidth+' are too few');\
    document.title='RESULT '+(out.length?out.join('; '):'none')</script></body>";

#[test]
fn a_browser_shows_pages_without_overlap() {
    const TEST: &str = "a_browser_shows_pages_without_overlap";
    if !all(TEST, "it starts a browser eighteen times: SOCBFS_TEST_ALL=1 does") {
        return;
    }
    if std::process::Command::new("chromium").arg("--version").output().is_err() {
        return crate::implementations::skipped(TEST, "chromium is not installed");
    }
    let folder = TempDir::new().unwrap();
    let [graphs, paper, run] = ["graphs.html", "paper.html", "run.html"].map(|name| path(&folder, name));
    let [probe, frame] = ["probe.html", "frame.html"].map(|name| path(&folder, name));
    good(&["analyze", "kronecker:8", "grid:12x12", "--device", "cpu", "--threads", "1", "--turns", "1", "--roots", "1", "--html", &graphs]);
    // This page has long addresses in a table.
    good(&["reproduce", "surf", "--quick", "--device", "cpu", "--threads", "1", "--energy", "off", "--html", &paper]);
    let [record, swept] = ["sweep.json", "sweep.html"].map(|name| path(&folder, name));
    fs::write(&record, serde_json::to_string(&crate::sweeps::example()).unwrap()).unwrap();
    good(&["report", &record, "--html", &swept]);
    // Distributions, and their marks.
    good(&["bench", "kronecker:8", "--device", "cpu", "--threads", "1", "--html", &run]);
    for html in [&swept, &graphs, &paper, &run] {
        let page = fs::read_to_string(html).unwrap();
        // The page forbids scripts, so the copy to be measured leaves that out.
        let (before, rest) = page.split_once("<meta http-equiv").unwrap();
        let (_, after) = rest.split_once('>').unwrap();
        fs::write(&probe, format!("{before}{}", after.replace("</body>", LAYOUT))).unwrap();
        for width in [400, 800, 1280] {
            // A browser window is at least 500 pixels wide, so the page is shown in a frame.
            let inside = format!("<iframe src=probe.html width={width} height=900></iframe>");
            let wait = "<script>onload=()=>{document.title=frames[0].document.title}</script>";
            fs::write(&frame, format!("<body>{inside}{wait}</body>")).unwrap();
            for scheme in [0, 1] {
                let output = std::process::Command::new("chromium")
                    .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"])
                    .args(["--allow-file-access-from-files", "--window-size=1400,1000"])
                    .args([
                        format!("--blink-settings=preferredColorScheme={scheme}"),
                        format!("--user-data-dir={}", path(&folder, "profile")),
                    ])
                    .arg(format!("file://{frame}"))
                    .output()
                    .unwrap();
                let (dom, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
                let title = dom.split_once("<title>RESULT ").and_then(|(_, rest)| rest.split_once("</title>")).map(|(title, _)| title);
                assert_eq!(title, Some("none"), "{html} at {width} pixels: {said}");
                assert!(!said.contains("CONSOLE"), "{said}");
            }
        }
    }
}

#[test]
fn a_heat_map_has_room_for_every_strategy() {
    use socbfs_tools::report::{
        figures::{Chart, Figure, Heat, Table},
        html::picture,
    };
    let mut columns: Vec<String> = (0..12).map(|column| format!("td {column} %")).collect();
    columns.push("bu BGC 12.5 %".into());
    let heat = Heat {
        rows: vec!["level 3: |F| 126,205,388, E 1,073,741,824".into()],
        unit: "ms".into(),
        cells: vec![vec![Some(0.0123); columns.len()]],
        framed: vec![Some(3)],
        dotted: vec![Some(4)],
        legend: ["oracle".into(), "auto".into()],
        columns,
    };
    let figure = Figure {
        id: "heat",
        title: "heat".into(),
        source: "",
        sentence: String::new(),
        chart: Some(Chart::Heat(heat)),
        table: Table::default(),
    };
    let drawn = picture(&figure).unwrap();
    // The names of columns are centred, and 68 pixels apart: no number or name is wider.
    let places: Vec<f64> = drawn
        .split("<text ")
        .filter(|text| text.contains(">td "))
        .map(|text| text.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(places.len(), 12);
    assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 68.0), "{places:?}");
    let width: f64 = drawn.split("viewBox=\"0 0 ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(places[11] + 102.0 <= width, "{places:?} in {width}");
    // A name that is too long for its column takes two lines.
    assert!(drawn.contains(">bu<") && drawn.contains(">BGC 12.5 %<"), "{drawn}");
}
