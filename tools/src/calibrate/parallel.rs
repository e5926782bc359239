//! Measures how much work a level needs for it to be faster if threads share it.

use std::time::Instant;

use super::comparison::ComparisonError;
use socbfs::{
    ParallelThresholds, Run,
    graph::{BuildOptions, Layout, Vertex},
    policy::{LevelDevice, Policy},
    search::{Search, SearchOptions},
};
use socbfs_boards::measure::{ParallelKey, ParallelTimes};
use socbfs_io::generate::Generator;

/// Rounds of a comparison. Each round has a search with each of the two values; the fastest search from each root counts.
const ROUNDS: usize = 5;
/// log2 of the number of vertices of the graphs.
const SCALE: u32 = 17;
/// Number of roots of each graph.
const ROOTS: usize = 8;

/// Factors of the usual value that give the values to compare with it, as (numerator, denominator).
const fn factors(key: ParallelKey) -> &'static [(u64, u64)] {
    match key {
        ParallelKey::ParallelArcs => &[(1, 4), (4, 1), (32, 1)],
        ParallelKey::ParallelHubArcs => &[(1, 32), (1, 8), (4, 1)],
        // A wave over a grid is narrow: threads share it only with a value far below the usual one.
        ParallelKey::ParallelRowArcs => &[(1, 64), (1, 8), (4, 1)],
        ParallelKey::Piece => &[(1, 4), (4, 1)],
    }
}

/// A graph whose searches depend on this threshold.
const fn graph(key: ParallelKey, scale: u32) -> Generator {
    match key {
        ParallelKey::ParallelArcs => Generator::Uniform { vertices: 1 << scale, edges: 4 << scale, seed: 1 },
        ParallelKey::ParallelHubArcs | ParallelKey::Piece => Generator::Kronecker { scale, edge_factor: 16, seed1: 1, seed2: 2 },
        ParallelKey::ParallelRowArcs => Generator::Grid { width: 2 << (scale / 2), height: 2 << (scale / 2), deletion: 0.0, seed: 1 },
    }
}

/// Measures searches on the CPU with several values of each threshold, each in turn with `usual`. Empty if only one thread searches.
///
/// # Errors
/// [`ComparisonError`]: a graph can't be generated or built, or a search can't be set up.
pub fn measure_parallel(options: &SearchOptions, usual: ParallelThresholds) -> Result<Vec<ParallelTimes>, ComparisonError> {
    measure(options, usual, SCALE, ROUNDS)
}

fn measure(options: &SearchOptions, usual: ParallelThresholds, scale: u32, rounds: usize) -> Result<Vec<ParallelTimes>, ComparisonError> {
    let mut all = Vec::new();
    let mut built: Option<(Generator, Layout)> = None;
    for key in ParallelKey::ALL {
        let generator = graph(key, scale);
        if built.as_ref().is_none_or(|(of, _)| *of != generator) {
            let layout = Layout::build(&generator.generate(&|_| ())?, &BuildOptions::default())?;
            built = Some((generator, layout));
        }
        let Some((_, layout)) = &built else { continue };
        let with = |parallel| {
            let options = SearchOptions {
                policy: Policy::default(),
                devices: Vec::new(),
                runs: LevelDevice::Cpu,
                every_policy: false,
                parallel: Some(parallel),
                ..options.clone()
            };
            Search::new(layout, &options)
        };
        let mut by_usual = with(usual)?;
        if by_usual.threads() == 1 {
            return Ok(Vec::new());
        }
        all.push(ParallelTimes { key, value: key.of(&usual), relative: 1.0 });
        for (numerator, denominator) in factors(key) {
            let mut other = usual;
            key.set(&mut other, key.of(&usual) / denominator * numerator);
            let value = key.of(&other);
            if other == usual {
                continue;
            }
            let [of_usual, of_other] = total_ns([&mut by_usual, &mut with(other)?], rounds)?;
            all.push(ParallelTimes { key, value, relative: (1e3 * of_other / of_usual.max(1.0)).round() / 1e3 });
        }
    }
    Ok(all)
}

/// Nanoseconds of the fastest searches from some roots, summed, for each of `searches`, which take turns.
fn total_ns(mut searches: [&mut Search<'_>; 2], rounds: usize) -> Result<[f64; 2], ComparisonError> {
    let layout = searches[0].layout();
    let searched = layout.csr().vertices().max(1);
    let mut totals = [0.0; 2];
    for place in 0..ROOTS {
        let root = layout.to_original((place * searched / ROOTS) as Vertex);
        let mut fastest = [f64::INFINITY; 2];
        for round in 0..=rounds {
            for (search, fastest) in searches.iter_mut().zip(&mut fastest) {
                let begin = Instant::now();
                search.run(Run { uncounted: true, ..root.into() })?;
                // The first round brings memory and threads to where they are needed.
                if round > 0 {
                    *fastest = fastest.min(begin.elapsed().as_nanos() as f64);
                }
            }
        }
        totals.iter_mut().zip(fastest).for_each(|(total, fastest)| *total += fastest);
    }
    Ok(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_threshold_is_compared() {
        let options = SearchOptions { threads: 2, ..SearchOptions::default() };
        let measured = measure(&options, ParallelThresholds::default(), 10, 1).unwrap();
        for key in ParallelKey::ALL {
            let of_key: Vec<_> = measured.iter().filter(|times| times.key == key).collect();
            assert_eq!(of_key.len(), 1 + factors(key).len(), "{key:?}");
            assert_eq!((of_key[0].value, of_key[0].relative), (key.of(&ParallelThresholds::default()), 1.0));
            assert!(of_key.iter().all(|times| times.relative > 0.0 && times.relative.is_finite()), "{of_key:?}");
            assert!(of_key[1..].iter().all(|times| times.value != of_key[0].value));
        }
        assert_eq!(measure_parallel(&SearchOptions { threads: 1, ..options }, ParallelThresholds::default()).unwrap(), []);
    }
}
