//! Speed of `Layout::build`, which turns an edge list into the structure that is searched.
//!
//! The graphs are a Kronecker graph (renumbered by degree) and a uniform random graph (order kept) of 2^scale vertices and 16 times as many
//! edges; `SOCBFS_BENCH_SCALE` sets the scale (default 16). Each is built on one thread and on all. Throughput is in listed edges.
#![allow(clippy::expect_used, missing_docs)] // a benchmark that can't be set up may stop; criterion's macros have no docs

use std::{env, time::Duration};

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use socbfs::graph::{BuildOptions, EdgeList, Layout};
use socbfs_io::generate::Generator;

fn build(criterion: &mut Criterion) {
    let scale = env::var("SOCBFS_BENCH_SCALE").map_or(16, |text| text.parse().expect("SOCBFS_BENCH_SCALE is a number"));
    let kronecker = Generator::graph500(scale);
    kronecker.validate().expect("SOCBFS_BENCH_SCALE is a scale");
    let uniform = Generator::Uniform { vertices: 1 << scale, edges: 16 << scale, seed: 1 };
    let mut group = criterion.benchmark_group("build");
    group.sample_size(10).sampling_mode(SamplingMode::Flat).warm_up_time(Duration::from_secs(1));
    let mut threads = vec![1, rayon::current_num_threads()];
    threads.dedup();
    for (name, generator) in [("kronecker", kronecker), ("uniform", uniform)] {
        let edges = generator.generate(&|_| ()).expect("generated");
        group.throughput(Throughput::Elements(edges.len() as u64));
        for &threads in &threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let id = BenchmarkId::new(format!("{name} {scale}"), format!("{threads} threads"));
            group.bench_with_input(id, &edges, |bencher, edges: &EdgeList| {
                bencher.iter_with_large_drop(|| pool.install(|| Layout::build(edges, &BuildOptions::default()).expect("builds")));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, build);
criterion_main!(benches);
