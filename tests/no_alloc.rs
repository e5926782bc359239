//! `Search::run` does not call the allocator, with any policy, order, thread count and kind of vector instructions (design rule 1).
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod counting;
mod implementations;
mod reference;
mod searches;

use counting::calls;
use socbfs::{
    Simd,
    bfs::{LevelRecord, Strategy},
    graph::{BuildOptions, EdgeList, Layout, Listing, Order},
    search::{Output, Run, Search, SearchOptions},
};
use socbfs_algo::{
    Components,
    grid::{Cell, Connectivity, Grid, GridOptions, GridSearch},
};
use socbfs_policy::{Known, Policy, Replay};

/// Searches over a grid that changes in between, and what they are asked for, call the allocator only the first time.
fn grids() {
    for connectivity in [Connectivity::Four, Connectivity::Eight, Connectivity::EightAroundCorners] {
        for threads in [1, 3] {
            let options = GridOptions { connectivity, threads, ..GridOptions::default() };
            let mut search = GridSearch::new(Grid::free(150, 900).unwrap(), &options).unwrap();
            let mut ask = |row: usize| {
                search.grid_mut().fill(row..row + 1, 0..800, false).unwrap();
                let outcome = search.run(&[Cell::new(0, 0), Cell::new(149, 3)]).unwrap();
                let (steps, sources) = (search.steps().unwrap().len(), search.sources().unwrap().len());
                let path = search.path(Cell::new(75, 450)).unwrap().count();
                outcome.reached > 100_000 && steps == sources && path > 75
            };
            assert!(ask(60));
            let mut good = false;
            let calls = calls(|| good = ask(90));
            assert!(good);
            assert_eq!(calls, 0, "{connectivity:?} {threads} threads");
        }
    }
}

// There is no test harness, since its allocations would be counted.
fn main() {
    grids();
    let (mut combinations, mut layouts) = (0, 0);
    let every_combination = std::env::var_os("SOCBFS_TEST_ALL").is_some();
    for (kind, edges) in searches::large() {
        let list = EdgeList::new(searches::LARGE as usize, edges, Listing::Once).unwrap();
        for order in [Order::Original, Order::Degree, Order::Bfs] {
            for directed in [false, true] {
                let layout = Layout::build(&list, &BuildOptions { directed, order, ..BuildOptions::default() }).unwrap();
                layouts += 1;
                // This replay samples every level of every search, and each root has its own plans.
                let record = |strategy: Strategy, levels| LevelRecord { plan: strategy.plan(), levels, ..LevelRecord::default() };
                let (there, back) =
                    ([record(Strategy::Tc, 2), record(Strategy::Bc, 1), record(Strategy::Tc, 1)], [record(Strategy::Tc, 1)]);
                let replay = Replay::of_roots([(0, &there[..]), (17, &back[..]), (19_999, &there[..])]).observing();
                // Every named policy that needs no device.
                let named = socbfs_policy::known().filter_map(Known::policy);
                let own = "rule:sampled_hubs > 0.3 or was_bottom_up and not frontier_edges < unvisited_edges / 14 or sampled_probes < 2";
                let texts = ["cost-model:zhang", own].map(|text| text.parse().unwrap());
                let named = named.filter(|policy| !policy.needs_device()).chain(texts);
                // Bands that never leave the CPU need no device.
                let adaptive: Policy = "adaptive:never,never,never,500,never,never,never,500".parse().unwrap();
                assert!(!adaptive.needs_device());
                let named = named.chain([adaptive]);
                for (number, policy) in named.chain([Policy::Replay(replay)]).enumerate() {
                    if policy == Policy::Fixed(Strategy::Bc) && kind == "path" {
                        continue; // 4,000 bottom-up levels over 20,000 vertices prove nothing more
                    }
                    for threads in [1, 2, 3] {
                        for (form, simd) in Simd::ALL.into_iter().filter(|simd| simd.available()).enumerate() {
                            // One combination in three. The sum includes the layout, so that each other choice is tried on some layouts.
                            if !every_combination && (layouts + number + threads + form) % 3 != 0 {
                                continue;
                            }
                            let options =
                                SearchOptions { planner: policy.clone().into(), threads, simd: Some(simd), ..SearchOptions::default() };
                            let mut search = Search::new(&layout, &options).unwrap();
                            let mut components = Components::default();
                            // The first search must not allocate either, and neither may later ones.
                            for root in [0, 17, 19_999] {
                                let mut good = false;
                                let calls = calls(|| good = search.run(root).is_ok());
                                assert!(good);
                                assert_eq!(calls, 0, "{kind} {order:?} directed {directed} {policy} {threads} threads {simd} root {root}");
                            }
                            // Nor does a search from a set of sources, with leaves among them and repeats.
                            let sources: Vec<u32> = (0..500).map(|i| i * 7919 % 20_000).chain([0, 17, 17]).collect();
                            let mut good = false;
                            let calls_made = calls(|| good = search.run(&sources).is_ok() && search.run(&[]).is_ok());
                            assert!(good && calls_made == 0, "{kind} {policy} {threads} threads {simd}, from sources");
                            // Nor does a search into arrays of the caller.
                            let mut arrays = [vec![0; 20_000], vec![0; 20_000], vec![0; 20_000]];
                            let mut good = false;
                            let calls_made = calls(|| {
                                let [parents, levels, labels] = &mut arrays;
                                let output = Output { parents: Some(parents), levels: Some(levels), sources: Some(labels) };
                                good = search.run(Run { output: Some(output), ..(&sources).into() }).is_ok();
                            });
                            assert!(good && calls_made == 0, "{kind} {policy} {threads} threads {simd}, into arrays");
                            // Nor does a search for components: its memory is mapped when it is first needed.
                            let mut found = 0;
                            let calls_made = calls(|| found = components.find(&search, &mut arrays[0]).unwrap_or_default());
                            assert!(found > 0 && calls_made == 0, "{kind} {threads} threads, components");
                            combinations += 1;
                        }
                    }
                }
            }
        }
    }
    // Check that the counter works.
    assert!(calls(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(100)))) >= 2);
    assert!(combinations >= 100);
    println!("a_search_allocates_nothing: {combinations} combinations\n1 passed, 0 failed");
}
