//! Measures whether a device that is a processor claims vertices faster by bins than by atomics on this graph.

use std::time::{Duration, Instant};

use super::{GAIN, searched::roots};
use crate::{
    bfs::GpuKernel,
    graph::Vertex,
    policy::{LevelDevice, Policy},
    search::{Search, SearchError},
};

/// Timed turns from a root. Each turn has a search with atomics and one with bins. The fastest search of each counts: other load makes a
/// search slower, never faster.
const TURNS: usize = 4;

/// Number of roots that are measured.
const ROOTS: usize = 2;

/// After this time no further turn begins: the search that follows the measurement may take less.
const ENOUGH: Duration = Duration::from_millis(500);

/// Searches by TG with bins and with atomics in turn, and makes the search use the faster one. Chooses atomics if the search was not set up
/// for levels on the device alone. The search's policy is left changed.
///
/// # Errors
/// [`SearchError`] if the device fails.
pub fn choose_claims(search: &mut Search<'_>) -> Result<(), SearchError> {
    let tg = search.set_policy(Policy::Fixed(GpuKernel::Tg.into()), LevelDevice::Gpu(GpuKernel::Tg));
    if matches!(tg, Err(SearchError::NoDevice { .. })) {
        search.set_bins(false);
        return Ok(());
    }
    tg?;
    let [mut atomics, mut bins] = [Duration::ZERO; 2];
    let begin = Instant::now();
    let mut roots = roots(search);
    // A root that reaches next to nothing gives no information.
    roots.sort_by_key(|&root| std::cmp::Reverse(search.layout().input_degree(root)));
    for root in roots.into_iter().take(ROOTS) {
        if atomics > Duration::ZERO && begin.elapsed() > ENOUGH {
            break;
        }
        let fastest = fastest(search, root, begin)?;
        atomics += fastest[0];
        bins += fastest[1];
    }
    let pays = pays(atomics, bins);
    log::debug!("claims by bins {bins:?}, by atomics {atomics:?}: {}", if pays { "bins" } else { "atomics" });
    search.set_bins(pays);
    Ok(())
}

/// Times of the fastest search from `root` by atomics and by bins. The first search by each is a warm-up.
fn fastest(search: &mut Search<'_>, root: Vertex, begin: Instant) -> Result<[Duration; 2], SearchError> {
    let mut fastest = [Duration::MAX; 2];
    for turn in 0..=TURNS {
        if turn > 1 && begin.elapsed() > ENOUGH {
            break;
        }
        for (bins, fastest) in [false, true].into_iter().zip(&mut fastest) {
            search.set_bins(bins);
            let elapsed = search.run(root)?.elapsed;
            if turn > 0 {
                *fastest = elapsed.min(*fastest);
            }
        }
    }
    Ok(fastest)
}

fn pays(atomics: Duration, bins: Duration) -> bool {
    bins.as_secs_f64() <= GAIN * atomics.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_must_gain_more_than_noise() {
        let ms = Duration::from_millis;
        assert!(pays(ms(100), ms(90)) && pays(ms(100), ms(95)));
        assert!(!pays(ms(100), ms(96)) && !pays(ms(100), ms(120)));
    }
}
