//! Time to plan one level, without taking a sample, by `alpha-beta`, a rule of a user, `sampled` and the networks.
#![allow(clippy::expect_used, missing_docs)] // a benchmark that can't be set up may stop; criterion's macros have no docs

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use socbfs::bfs::{Direction, LevelStats, Planner};
use socbfs_policy::{LevelDevice, Policy, PolicyPlanner};

fn decide(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    for name in ["alpha-beta", "rule:frontier_edges > unvisited_edges / 14 and level > 1", "sampled", "surf", "mlp"] {
        let policy: Policy = name.parse().expect("a policy");
        let mut planner = PolicyPlanner::new(policy, LevelDevice::Cpu);
        let stats = LevelStats {
            level: 2,
            vertices: 646_203,
            arcs: 31_400_738,
            frontier_vertices: 14_010,
            frontier_edges: 11_534_115,
            unvisited_vertices: 632_154,
            unvisited_edges: 19_862_340,
            previous_frontier_vertices: 38,
            previous_direction: Some(Direction::TopDown),
            sampled_probes: Some(1.4),
            hub_share: 0.17,
            ..LevelStats::default()
        };
        planner.begin();
        group.bench_function(name, |bencher| bencher.iter(|| planner.plan(black_box(&stats))));
    }
    group.finish();
}

criterion_group!(benches, decide);
criterion_main!(benches);
