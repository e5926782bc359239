//! One search over several ranks (Zhou et al. 2021, figure 6).

use crate::record::{RankScaling, RankTimes};

use socbfs::{EdgeList, Order, Vertex, stats::median};
use socbfs_cluster::{ClusterError, ClusterOptions, ClusterSearch, Exchange, Part, ThreadRanks};

/// The result of one rank.
struct OfRank {
    seconds: Vec<f64>,
    received: u64,
    levels: u32,
    reached: u64,
}

/// Searches `edges` from `root` over each number of ranks in `sizes`, by both exchanges, `turns` times each after one search that does not
/// count, with the vector instructions and the batch of `options`. Ranks are threads of this process, so the times include the cost of
/// exchanges within one machine, not of a network.
///
/// # Errors
/// [`ClusterError`] where the graph does not fit.
pub fn rank_scaling(
    edges: &EdgeList,
    root: Vertex,
    sizes: &[usize],
    turns: usize,
    options: &ClusterOptions,
) -> Result<RankScaling, ClusterError> {
    let mut times: Vec<RankTimes> = Vec::new();
    for (exchange, name) in [(Exchange::Pairs, "pairs"), (Exchange::Found, "found")] {
        let options = ClusterOptions { exchange, ..options.clone() };
        for &ranks in sizes {
            let all: Result<Vec<OfRank>, ClusterError> =
                ThreadRanks::run(ranks, |ranks| of_rank(edges, root, turns, ranks, &options)).into_iter().collect();
            let all = all?;
            let slowest = |turn: usize| all.iter().map(|rank| rank.seconds[turn]).fold(0.0, f64::max);
            let seconds = median(&(0..turns.max(1)).map(slowest).collect::<Vec<_>>());
            let one = times.iter().find(|times| times.exchange == name && times.ranks == 1).map_or(seconds, |times| times.seconds);
            times.push(RankTimes {
                exchange: name.to_owned(),
                ranks,
                seconds,
                speedup: one / seconds.max(1e-12),
                received: all.iter().map(|rank| rank.received).sum(),
                levels: all[0].levels,
                reached: all[0].reached,
            });
        }
    }
    Ok(RankScaling { root, turns, times })
}

fn of_rank(
    edges: &EdgeList,
    root: Vertex,
    turns: usize,
    ranks: &ThreadRanks<'_>,
    options: &ClusterOptions,
) -> Result<OfRank, ClusterError> {
    let part = Part::build(edges, Order::Auto, ranks)?;
    let mut search = ClusterSearch::new(&part, ranks, options)?;
    let outcome = search.run(root)?;
    let received = search.traffic().iter().map(|level| level.received).sum();
    let mut seconds = Vec::with_capacity(turns);
    for _ in 0..turns.max(1) {
        seconds.push(search.run_uncounted(&[root])?.elapsed.as_secs_f64());
    }
    Ok(OfRank { seconds, received, levels: outcome.levels, reached: outcome.reached })
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs_io::generate::Generator;

    #[test]
    fn every_number_of_ranks_finds_the_same_and_one_rank_receives_nothing() {
        let edges = Generator::graph500(8).generate(&|_| ()).unwrap();
        let scaling = rank_scaling(&edges, 5, &[1, 2, 3], 1, &ClusterOptions::default()).unwrap();
        assert_eq!(scaling.times.len(), 6);
        for times in &scaling.times {
            assert_eq!((times.reached, times.levels), (scaling.times[0].reached, scaling.times[0].levels), "{times:?}");
            assert!(times.reached > 100 && times.seconds > 0.0, "{times:?}");
            assert_eq!(times.received > 0, times.ranks > 1, "{times:?}");
            assert!(times.ranks > 1 || times.speedup == 1.0, "{times:?}");
        }
    }
}
