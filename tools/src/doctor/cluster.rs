//! Obstacles to a search over several boards: different programs, clocks that differ, a slow network.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{Diagnosis, Finding};
use socbfs_cluster::{ClusterError, Host, Link, Ranks, all_gather, measure_links};

/// The properties of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankFacts {
    /// The machine it runs on.
    pub host: Host,
    /// Version and commit of the program.
    pub program: String,
    /// The message-passing library.
    pub library: String,
}

/// Most milliseconds between clocks, so that the times in records of one run differ by a second at most.
const CLOCKS_MS: u64 = 1000;
/// Bytes per second between boards below which the network counts as slow: Gigabit Ethernet carries 117 MB/s, Fast Ethernet 12 MB/s.
const SLOW: f64 = 50e6;
/// Most pairs that are listed one by one.
const LISTED: usize = 6;

/// Runs every check over ranks. All ranks call it and get the same result.
///
/// # Errors
/// [`ClusterError::Message`].
pub fn examine_ranks(ranks: &impl Ranks, own: &RankFacts) -> Result<Diagnosis, ClusterError> {
    let all = all_gather(ranks, own)?;
    ranks.barrier();
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let clocks = all_gather(ranks, &clock)?;
    let alike = all.iter().all(|rank| rank.program == all[0].program);
    // Ranks with another version of the program might measure in another way.
    let links = if alike { measure_links(ranks) } else { Vec::new() };
    Ok(Diagnosis::of(judge(&all, &clocks, &links)))
}

/// The findings about these ranks.
fn judge(all: &[RankFacts], clocks: &[u64], links: &[Link]) -> Vec<Finding> {
    let boards = Host::distinct(all.iter().map(|rank| &rank.host));
    let names = boards.iter().map(|board| &board.name[..]).collect::<Vec<_>>().join(", ");
    let plural = if boards.len() == 1 { "" } else { "s" };
    let apart = clocks.iter().max().unwrap_or(&0) - clocks.iter().min().unwrap_or(&0);
    let clocks = if apart <= CLOCKS_MS {
        Finding::ok(format!("at most {apart} ms apart"))
    } else {
        Finding::warning(format!("{:.1} s apart", apart as f64 / 1e3), "on every board: sudo timedatectl set-ntp true")
    };
    let program = same(all, |rank| &rank.program, "copy the same program to all boards: cross/deploy --cluster does");
    let library = same(all, |rank| &rank.library, "install the same MPI on all boards: sudo apt-get install openmpi-bin");
    let mut findings = vec![
        Finding::ok(format!("{} on {} board{plural}: {names}", all.len(), boards.len())).of("ranks"),
        program.of("program"),
        library.of("mpi"),
        clocks.of("clocks"),
    ];
    findings.extend(network(all, links).map(|finding| finding.of("network")));
    findings
}

/// Checks that all ranks have the same value of `of`.
fn same(all: &[RankFacts], of: fn(&RankFacts) -> &String, cure: &str) -> Finding {
    match all.iter().position(|rank| of(rank) != of(&all[0])) {
        None => Finding::ok(format!("{} on every rank", of(&all[0]))),
        Some(rank) => {
            let (first, other) = (&all[0], &all[rank]);
            let reason = format!("rank 0 ({}) has {}, but rank {rank} ({}) has {}", first.host.name, of(first), other.host.name, of(other));
            Finding::problem(reason, cure)
        }
    }
}

fn network(all: &[RankFacts], links: &[Link]) -> Option<Finding> {
    let slowest = links.iter().min_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second))?;
    let one = |link: &Link| {
        let [a, b] = link.ranks;
        let where_ = if all[a].host == all[b].host { ", one board" } else { "" };
        format!(
            "ranks {a} and {b}{where_}: {:.0} MB/s each way, {:.0} us an exchange",
            link.bytes_per_second / 1e6,
            link.exchange_ns as f64 / 1e3
        )
    };
    let summary = if links.len() <= LISTED {
        links.iter().map(one).collect::<Vec<_>>().join("; ")
    } else {
        format!("{} pairs, the slowest of which is {}", links.len(), one(slowest))
    };
    let between_boards = |link: &&Link| all[link.ranks[0]].host != all[link.ranks[1]].host;
    Some(match links.iter().filter(between_boards).find(|link| link.bytes_per_second < SLOW) {
        Some(_) => Finding::warning(summary, "connect the boards by Gigabit Ethernet: ethtool eth0 | grep Speed"),
        None => Finding::ok(summary),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;
    use socbfs_cluster::ThreadRanks;

    fn rank(board: &str, program: &str) -> RankFacts {
        let host = Host { name: board.into(), boot: board.into() };
        RankFacts { host, program: program.into(), library: "Open MPI v4.1.4".into() }
    }

    fn link(bytes_per_second: f64) -> Link {
        Link { ranks: [0, 1], exchange_ns: 120_000, bytes_per_second }
    }

    fn verdicts(findings: &[Finding]) -> Vec<(&str, Verdict)> {
        findings.iter().map(|finding| (finding.check, finding.verdict)).collect()
    }

    #[test]
    fn boards_that_match_are_ok_and_differences_are_named() {
        let good = judge(&[rank("a", "1"), rank("b", "1")], &[5000, 5999], &[link(110e6)]);
        assert!(good.iter().all(|finding| finding.verdict == Verdict::Ok), "{good:?}");
        assert_eq!(good[0].reason, "2 on 2 boards: a, b");
        assert_eq!(good[4].reason, "ranks 0 and 1: 110 MB/s each way, 120 us an exchange");
        let bad = judge(&[rank("a", "1"), rank("b", "2")], &[5000, 9000], &[link(11e6)]);
        assert_eq!(
            verdicts(&bad),
            [
                ("ranks", Verdict::Ok),
                ("program", Verdict::Problem),
                ("mpi", Verdict::Ok),
                ("clocks", Verdict::Warning),
                ("network", Verdict::Warning)
            ]
        );
        assert_eq!(bad[1].reason, "rank 0 (a) has 1, but rank 1 (b) has 2");
        // The speed between two ranks of one board is not that of a network.
        let one = judge(&[rank("a", "1"), rank("a", "1")], &[5000, 5000], &[link(11e6)]);
        assert!(one.iter().all(|finding| finding.verdict == Verdict::Ok), "{one:?}");
    }

    #[test]
    fn ranks_examine_each_other() {
        let of_ranks = ThreadRanks::run(2, |ranks| examine_ranks(ranks, &rank("a", "1")).unwrap());
        assert_eq!(of_ranks[0], of_ranks[1]);
        assert_eq!(of_ranks[0].works, Some(true));
        let other = ThreadRanks::run(2, |ranks| examine_ranks(ranks, &rank("a", if ranks.rank() == 0 { "1" } else { "2" })).unwrap());
        assert!(other[0].works == Some(false) && other[0].findings.iter().all(|finding| finding.check != "network"));
    }
}
