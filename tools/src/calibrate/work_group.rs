//! The work-group size with which a device searches fastest.

use std::{sync::Arc, time::Instant};

use socbfs::{
    GpuSetup,
    bfs::GpuKernel,
    graph::{BuildOptions, GraphError, Layout, Vertex},
    opencl::{Device, OpenClError},
    search::{Search, SearchError, SearchOptions},
    words::with_causes,
};
use socbfs_boards::measure::{GAIN, GroupTimes};
use socbfs_io::generate::{GenerateError, Generator};
use socbfs_policy::{LevelDevice, Policy};

/// Why settings can't be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComparisonError {
    /// A graph to measure on can't be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A graph to measure on can't be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The device can't be opened.
    #[error(transparent)]
    Open(#[from] OpenClError),
    /// A search fails.
    #[error(transparent)]
    Search(#[from] SearchError),
}

/// Sizes compared, those next to the usual one first.
const SIZES: [usize; 3] = [64, 128, 256];

/// Rounds of a comparison. Each round has a search with each of the two sizes; the fastest search with each size counts.
const ROUNDS: usize = 3;

/// After a size that takes more than this many times as long as the usual one, no further size is tried.
const HOPELESS: f64 = 1.25;

/// Measures searches on the first device of `options` with several work-group sizes, each in turn with the usual size, on a skewed graph, a
/// random one and a grid. The usual size comes first in the result. A size whose searches meet the device's time limit is left out; if that
/// is the usual one, the next size takes its place. If that one meets the limit too, no further size is tried.
///
/// # Errors
/// [`ComparisonError`].
pub fn measure_work_groups(options: &SearchOptions) -> Result<Vec<GroupTimes>, ComparisonError> {
    let graphs: [(Generator, &[GpuKernel]); 3] = [
        (Generator::Kronecker { scale: 14, edge_factor: 16, seed1: 1, seed2: 2 }, &GpuKernel::ALL),
        (Generator::Uniform { vertices: 1 << 14, edges: 1 << 16, seed: 1 }, &[GpuKernel::Tg, GpuKernel::Bg]),
        (Generator::Grid { width: 96, height: 96, deletion: 0.0, seed: 1 }, &[GpuKernel::Tg]),
    ];
    let mut cases = Vec::with_capacity(graphs.len());
    for (generator, kernels) in graphs {
        cases.push((Layout::build(&generator.generate(&|_| ())?, &BuildOptions::default())?, kernels));
    }
    let Some(used) = options.devices.first() else { return Ok(Vec::new()) };
    let open = |size: Option<usize>| {
        // Opened for this size alone: a device that meets its time limit is lost. One that did so before is not tried again.
        let device = if used.device.is_lost() { Arc::clone(&used.device) } else { Device::open(used.device.info(), used.device.limits())? };
        let mut own = GpuSetup { device: Arc::clone(&device), ..used.clone() };
        own.options.group = size;
        let options = SearchOptions { every_planner: true, fall_back: false, devices: vec![own], ..options.clone() };
        let searches = cases.iter().map(|(layout, _)| Search::new(layout, &options)).collect::<Result<Vec<_>, _>>();
        Ok::<_, OpenClError>((device, searches))
    };
    let first = open(None)?;
    let usual_items = first.1.iter().flatten().next().map_or(0, items);
    let mut sizes = SIZES;
    sizes.sort_unstable_by_key(|size| size.abs_diff(usual_items));
    let others = sizes.into_iter().filter(|&size| size != usual_items).map(|size| (Some(size), open(Some(size))));
    let (mut all, mut usual, mut slow) = (Vec::new(), None, None);
    for (size, opened) in std::iter::once((None, Ok(first))).chain(others) {
        let (device, searches) = opened?;
        let compared = searches.and_then(|mut searches| {
            // The device uses another size if it does not support this one.
            let is_supported = size.is_none_or(|size| searches.iter().all(|search| items(search) == size));
            let relative = is_supported.then(|| compare(&cases, usual.as_deref_mut(), &mut searches)).transpose()?;
            Ok((relative, searches))
        });
        match compared {
            // A device that completes nothing with two sizes ends the comparison.
            Err(error) if device.is_lost() && (slow.is_none() || !all.is_empty()) => {
                let named = size.map_or_else(|| "of the usual size".to_owned(), |size| format!("of {size}"));
                log::warn!("work-groups {named} are left out: {}", with_causes("", &error));
                slow = Some(error);
            }
            compared => {
                let (Some(relative), searches) = compared? else { continue };
                all.push(GroupTimes { items: searches.first().map_or(0, items), relative });
                usual.get_or_insert(searches);
                if relative > HOPELESS {
                    break;
                }
            }
        }
    }
    slow.filter(|_| all.is_empty()).map_or(Ok(all), |error| Err(error.into()))
}

fn items(search: &Search<'_>) -> usize {
    search.devices().first().map_or(0, |device| device.group)
}

/// Time of `searches` of the cases divided by that of the `usual` ones (1 if there are none, and the searches are run once).
fn compare<'g>(
    cases: &[(Layout, &[GpuKernel])],
    mut usual: Option<&mut [Search<'g>]>,
    searches: &mut [Search<'g>],
) -> Result<f64, SearchError> {
    let mut ratios = Vec::new();
    for (case, ((layout, kernels), search)) in cases.iter().zip(searches).enumerate() {
        for &kernel in *kernels {
            let usual = usual.as_deref_mut().map(|usual| &mut usual[case]);
            let fastest = fastest_ns(usual.into_iter().chain([&mut *search]).collect(), kernel, layout.to_original(0))?;
            ratios.push(fastest[fastest.len() - 1] / fastest[0].max(1.0));
        }
    }
    Ok(geometric_mean(&ratios))
}

/// Nanoseconds of the fastest search from `root` by each of `searches`, which take turns.
fn fastest_ns(mut searches: Vec<&mut Search<'_>>, kernel: GpuKernel, root: Vertex) -> Result<Vec<f64>, SearchError> {
    let mut fastest = vec![f64::INFINITY; searches.len()];
    for search in &mut searches {
        search.set_planner(Policy::Fixed(kernel.into()).on(LevelDevice::Gpu(kernel)))?;
        // The first search is not timed: drivers build kernels at their first use.
        search.run(root)?;
    }
    for _ in 0..ROUNDS {
        for (search, fastest) in searches.iter_mut().zip(&mut fastest) {
            let begin = Instant::now();
            search.run(root)?;
            *fastest = fastest.min(begin.elapsed().as_nanos() as f64);
        }
    }
    Ok(fastest)
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp()
}

/// The size to use: the usual one (the first), unless another is faster by more than noise. `None` if nothing was measured.
pub fn best_work_group(measured: &[GroupTimes]) -> Option<usize> {
    let usual = measured.first()?;
    let best = measured.iter().min_by(|a, b| a.relative.total_cmp(&b.relative))?;
    Some(if best.relative <= GAIN * usual.relative { best.items } else { usual.items })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_size_must_be_faster_by_more_than_noise() {
        let with = |relative| [GroupTimes { items: 256, relative: 1.0 }, GroupTimes { items: 64, relative }];
        assert_eq!(best_work_group(&with(0.5)), Some(64));
        assert_eq!(best_work_group(&with(0.97)), Some(256));
        assert_eq!(best_work_group(&with(1.5)), Some(256));
        assert_eq!(best_work_group(&[]), None);
    }

    #[test]
    fn every_case_has_the_same_weight() {
        // One case takes twice as long, another half as long. How long they take does not matter.
        assert!((geometric_mean(&[2.0, 0.5]) - 1.0).abs() < 1e-12);
        assert!((geometric_mean(&[4.0, 1.0]) - 2.0).abs() < 1e-12);
    }
}
