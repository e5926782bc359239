//! Speed of searches by kind of vector instructions, with directions chosen by `auto`.
//!
//! ```text
//! cargo bench -p socbfs-benches --bench search [-- --update]
//! ```
//!
//! All kinds that this CPU has take turns from each of 16 roots on one thread; a time is the least of [`TURNS`] searches, and the figure of
//! a kind is the median over the roots of its time over that of scalar code. Figures of the five generated graphs are compared with those
//! in `search.tsv` for a CPU of the same name, and `--update` writes them there; kinds that no CPU in it has are named. Exit code 1: a
//! kind takes more than [`SLOWER`] times its stored share of scalar code's time. (`socbfs compare --a='--simd scalar' --b='--simd avx2'`
//! compares kinds on other graphs.)
#![allow(clippy::expect_used, missing_docs)] // a benchmark that can't be set up may stop

use std::{collections::BTreeMap, env, fs, io::Write as _, path::Path, process::ExitCode};

use socbfs::{
    Simd,
    files::AtomicFile,
    graph::{BuildOptions, EdgeList, Layout, Listing, Order, Vertex},
    search::{Search, SearchOptions},
    stats::median,
};
use socbfs_io::generate::Generator;
use socbfs_policy::Policy;
use socbfs_tools::bench::{RootSource, roots};

/// Searches of each kind from a root.
const TURNS: usize = 9;
/// A share of scalar code's time that grew by this factor is an error. (Runs and builds on one machine differ by up to 1.1; searches
/// that always go bottom-up differ by 1.3 between builds of the same source, and are not measured.)
const SLOWER: f64 = 1.2;

/// Groups of 20 vertices that are all neighbours, and an edge from each vertex to a hub: searched in the order `bfs`, in blocks of
/// neighbours.
fn communities(groups: u32) -> EdgeList {
    let inside = (0..groups).flat_map(|group| (0..20).flat_map(move |a| (0..a).map(move |b| [20 * group + a, 20 * group + b])));
    // The hubs are the first 64 vertices, the lowest more often than others.
    let outside = (0..20 * groups).map(|v| [v, (u64::from(v) * 2_654_435_761 % u64::from(v % 64 + 1)) as Vertex]);
    EdgeList::new(20 * groups as usize, inside.chain(outside).collect(), Listing::Unknown).expect("fits 32 bits")
}

/// The median share of scalar code's time for each kind of vector instructions.
fn shares(name: &str, edges: &EdgeList, turns: usize) -> Vec<(Simd, f64)> {
    let layout = Layout::build(edges, &BuildOptions::default()).expect("builds");
    assert!(turns < TURNS || name != "communities" || layout.order() == Order::Bfs, "searched in another order than meant");
    let roots = roots(layout.vertices(), |v| layout.input_degree(v), 16, RootSource::GRAPH500);
    let kinds: Vec<Simd> = Simd::ALL.into_iter().filter(|simd| simd.available()).collect();
    let search = |&simd: &Simd| {
        let options = SearchOptions { planner: Policy::default().into(), threads: 1, simd: Some(simd), ..SearchOptions::default() };
        Search::new(&layout, &options).expect("a search")
    };
    let mut searches: Vec<Search<'_>> = kinds.iter().map(search).collect();
    let mut shares = vec![Vec::new(); kinds.len()];
    for &root in &roots {
        let mut least = vec![f64::MAX; kinds.len()];
        for _ in 0..turns {
            for (search, least) in searches.iter_mut().zip(&mut least) {
                *least = least.min(search.run(root).expect("a vertex").elapsed.as_secs_f64());
            }
        }
        // The first kind is scalar code.
        shares.iter_mut().zip(&least).for_each(|(shares, time)| shares.push(time / least[0]));
    }
    kinds.into_iter().zip(shares).skip(1).map(|(simd, shares)| (simd, median(&shares))).collect()
}

fn main() -> ExitCode {
    let flags: Vec<String> = env::args().skip(1).collect();
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    // Without `--bench`, from `cargo test`, it is only seen whether the benchmark runs.
    let (is_timed, update) = (has("--bench"), has("--bench") && has("--update"));
    let (small, turns) = if is_timed { (0, TURNS) } else { (6, 1) };
    let generated = |generator: Generator| generator.generate(&|_| ()).expect("generated");
    let vertices = 1 << (17 - small);
    let graphs = [
        ("kronecker 16", generated(Generator::graph500(16 - small))),
        ("kronecker 18", generated(Generator::graph500(18 - small))),
        ("uniform 17", generated(Generator::Uniform { vertices, edges: 16 * vertices, seed: 1 })),
        ("rodinia 17", generated(Generator::Rodinia { vertices, seed: 1 })),
        ("communities", communities(4096 >> small)),
    ];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("search.tsv");
    let stored = fs::read_to_string(&path).expect("benches/search.tsv is read");
    let row = |(key, share): (&str, &str)| (key.to_owned(), share.parse().expect("a number"));
    let mut rows: BTreeMap<String, f64> = stored.lines().filter_map(|line| line.rsplit_once('\t').map(row)).collect();
    // Virtual machines may name all processors of a maker alike, but not their families.
    let (processor, model) = (socbfs_machine::processor(Path::new("/")), socbfs_machine::cpu_model(Path::new("/")));
    let number = |name| processor.get(name).unwrap_or("?").to_owned();
    let cpu = format!("{} ({}/{})", model.unwrap_or_else(|| "unknown".into()), number("cpu family"), number("model"));
    let mut is_slower = false;
    for (name, edges) in &graphs {
        for (simd, share) in shares(name, edges, turns).into_iter().filter(|_| is_timed) {
            let key = format!("{cpu}\t{simd}\t{name}");
            let before = if update { rows.insert(key.clone(), share) } else { rows.get(&key).copied() };
            let slower = before.is_some_and(|before| share > SLOWER * before);
            is_slower |= slower && !update;
            let stored = before.map_or("none stored".into(), |before| format!("stored: {before:.2}"));
            println!("{}: {share:.2} of scalar code's time ({stored}){}", key.replace('\t', ", "), if slower { ", SLOWER" } else { "" });
        }
    }
    if update {
        let text: String = rows.iter().map(|(key, share)| format!("{key}\t{share:.2}\n")).collect();
        let mut file = AtomicFile::create(&path).expect("benches/search.tsv is written");
        file.write_all(text.as_bytes()).and_then(|()| file.commit()).expect("benches/search.tsv is written");
    }
    let timed = |simd: &Simd| rows.keys().any(|key| key.split('\t').nth(1) == Some(&simd.to_string()));
    let not_timed: Vec<String> = Simd::ALL[1..].iter().filter(|simd| !timed(simd)).map(Simd::to_string).collect();
    println!("not timed on any CPU in {}: {}", path.display(), if not_timed.is_empty() { "none".into() } else { not_timed.join(", ") });
    ExitCode::from(u8::from(is_slower))
}
