//! Speed of searches of a Kronecker graph: always top-down (TC), always bottom-up (BC), and with policies that choose a direction at
//! each level (`auto`, `alpha-beta`), on one thread and on all, with every available kind of vector instructions.
//!
//! `SOCBFS_BENCH_SCALE` sets the scale (default 16: 2^16 vertices, 16 times as many edges). Roots are drawn by the rule of
//! Graph500 and take turns; those outside the largest component are left out, so that each search has the same work. The time is
//! [`Outcome::elapsed`], from the root to the parents in original numbers. Throughput is in edges of the component.
//!
//! [`Outcome::elapsed`]: socbfs::search::Outcome::elapsed
#![allow(clippy::expect_used, missing_docs)] // a benchmark that can't be set up may stop; criterion's macros have no docs

use std::{env, thread, time::Duration};

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use socbfs::{
    Simd,
    bfs::Strategy,
    graph::{BuildOptions, Layout, Vertex},
    search::{Search, SearchOptions},
};
use socbfs_io::generate::Generator;
use socbfs_policy::{Policy, Published};
use socbfs_tools::bench::{RootSource, roots};

/// Number of roots that are drawn.
const ROOTS: usize = 16;

/// The drawn roots that are in the largest component, and its number of edges.
fn component(layout: &Layout) -> (Vec<Vertex>, u64) {
    let mut search = Search::new(layout, &SearchOptions::default()).expect("a search");
    let drawn = roots(layout.vertices(), |v| layout.input_degree(v), ROOTS, RootSource::GRAPH500);
    let edges: Vec<u64> = drawn.iter().map(|&root| search.run(root).expect("a vertex").edges).collect();
    let most = edges.iter().copied().max().expect("a graph with edges");
    (drawn.into_iter().zip(edges).filter(|&(_, edges)| edges == most).map(|(root, _)| root).collect(), most)
}

fn search(criterion: &mut Criterion) {
    let scale = env::var("SOCBFS_BENCH_SCALE").map_or(16, |text| text.parse().expect("SOCBFS_BENCH_SCALE is a number"));
    let edges = Generator::graph500(scale).generate(&|_| ()).expect("SOCBFS_BENCH_SCALE is a scale that fits this machine");
    let layout = Layout::build(&edges, &BuildOptions::default()).expect("builds");
    drop(edges);
    let (roots, component_edges) = component(&layout);

    let mut threads = vec![1, thread::available_parallelism().map_or(1, usize::from)];
    threads.dedup();
    let policies =
        [Policy::Fixed(Strategy::Tc), Policy::Fixed(Strategy::Bc), Policy::default(), Policy::Published(Published::alpha_beta())];
    let mut group = criterion.benchmark_group(format!("search kronecker {scale}"));
    group.sample_size(20).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Elements(component_edges));
    for policy in policies {
        for &threads in &threads {
            for simd in Simd::ALL.into_iter().filter(|simd| simd.available()) {
                let options = SearchOptions { planner: policy.clone().into(), threads, simd: Some(simd), ..SearchOptions::default() };
                let mut search = Search::new(&layout, &options).expect("a search");
                let mut turns = roots.iter().cycle();
                group.bench_function(BenchmarkId::new(policy.kind(), format!("{threads} threads {simd}")), |bencher| {
                    bencher.iter_custom(|searches| {
                        let mut elapsed = Duration::ZERO;
                        for (_, &root) in (0..searches).zip(&mut turns) {
                            let outcome = search.run(root).expect("a vertex");
                            assert_eq!(outcome.edges, component_edges, "not the whole component from root {root}");
                            elapsed += outcome.elapsed;
                        }
                        elapsed
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, search);
criterion_main!(benches);
