//! Counts of the traffic between ranks from the roots of the benchmark.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use socbfs::graph::{EdgeList, Order};
use socbfs_cluster::{ClusterOptions, ClusterSearch, Exchange, LevelTraffic, Part, ThreadRanks};
use socbfs_io::generate::Generator;
use socbfs_tools::bench::{RootSource, roots};

/// Traffic between ranks, as the mean over some roots.
struct Counted {
    /// Bytes received by the rank that received most.
    received: u64,
    /// Bytes that all ranks sent.
    sent: u64,
    /// Number of collective operations.
    messages: f64,
}

fn counted(edges: &EdgeList, size: usize, exchange: Exchange, count: usize) -> Counted {
    let options = ClusterOptions { exchange, ..ClusterOptions::default() };
    let of_ranks: Vec<Vec<LevelTraffic>> = ThreadRanks::run(size, |ranks| {
        let part = Part::build(edges, Order::Auto, ranks).unwrap();
        let mut search = ClusterSearch::new(&part, ranks, &options).unwrap();
        let drawn = roots(part.vertices(), |v| u32::from(part.has_edge(v)), count, RootSource::GRAPH500);
        assert_eq!(drawn.len(), count);
        let mut sum_of = |root| {
            search.run_uncounted(&[root]).unwrap();
            search.traffic().iter().fold(LevelTraffic::default(), |mut sum, &level| {
                sum.add(level);
                sum
            })
        };
        drawn.into_iter().map(&mut sum_of).collect()
    });
    let (roots, of_root) = (count as u64, |root: usize| of_ranks.iter().map(move |rank| rank[root]));
    Counted {
        received: (0..count).map(|root| of_root(root).map(|t| t.received).max().unwrap()).sum::<u64>() / roots,
        sent: (0..count).map(|root| of_root(root).map(|t| t.sent).sum::<u64>()).sum::<u64>() / roots,
        messages: of_ranks[0].iter().map(|t| f64::from(t.messages)).sum::<f64>() / roots as f64,
    }
}

/// The received bytes determine the cost on a network. The counts are exact and the same on every machine.
#[test]
fn ranks_receive_few_bytes() {
    let edges = Generator::graph500(14).generate(&|_| ()).unwrap();
    let received = |size, exchange| counted(&edges, size, exchange, 8).received;
    for (size, most) in [(2, 4_000), (4, 6_000), (16, 16_000)] {
        let found = received(size, Exchange::Found);
        println!("Kronecker 14, {size} ranks: {found} bytes a rank and search");
        assert!(found <= most, "{size} ranks: {found} bytes a search");
    }
    // The traffic of the plain scheme grows with the number of arcs.
    let pairs = received(2, Exchange::Pairs);
    assert!(pairs > 100 * received(2, Exchange::Found), "{pairs}");
}

/// Prints a line of the table in docs/measurements, and returns the bytes received.
fn line(edges: &EdgeList, scale: u8, size: usize, exchange: Exchange) -> u64 {
    let (roots, name) = if exchange == Exchange::Found { (16, "found") } else { (2, "pairs") };
    let Counted { received, sent, messages } = counted(edges, size, exchange, roots);
    println!("{scale},{size},{name},{roots},{received},{sent},{messages:.1}");
    received
}

/// The columns of [`line`].
const COLUMNS: &str = "scale,ranks,exchange,roots,received_by_the_rank_that_received_most,sent_by_all,collective_operations";

/// [`ranks_receive_few_bytes`] at scale 20, for the table in docs/measurements.
#[test]
#[ignore = "minutes: up to 64 ranks of Kronecker 20"]
fn ranks_receive_few_bytes_at_scale_20() {
    println!("{COLUMNS}");
    let edges = Generator::graph500(20).generate(&|_| ()).unwrap();
    for (size, most) in [(1, 0), (2, 21_000), (4, 32_500), (16, 52_500), (8, 42_000), (32, 65_000), (64, 73_000)] {
        let received = line(&edges, 20, size, Exchange::Found);
        assert!(received <= most, "{size} ranks: {received} bytes a search");
    }
}

#[test]
#[ignore = "minutes: 16 ranks of Kronecker 22"]
fn ranks_receive_few_bytes_at_scale_22() {
    println!("{COLUMNS}");
    let edges = Generator::graph500(22).generate(&|_| ()).unwrap();
    let received = line(&edges, 22, 16, Exchange::Found);
    assert!(received <= 158_000, "{received} bytes a search");
}

/// The plain scheme at scale 20: hundreds of times as many bytes, in proportion to the arcs.
#[test]
#[ignore = "minutes: 16 ranks of Kronecker 20 by pairs"]
fn pairs_receive_many_bytes_at_scale_20() {
    println!("{COLUMNS}");
    let edges = Generator::graph500(20).generate(&|_| ()).unwrap();
    for size in [2, 4, 16] {
        let received = line(&edges, 20, size, Exchange::Pairs);
        // Each arc takes 8 bytes; over P ranks, a share of (P - 1) / P of them is sent.
        assert!(received > 100_000_000 / size as u64, "{size} ranks: {received} bytes a search");
    }
}
