//! Result files that ranks write together, and counts of the traffic between ranks from the roots of the benchmark.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use socbfs::{
    graph::{EdgeList, Order},
    input::generate::Generator,
};
use socbfs_cluster::{ClusterOptions, ClusterSearch, Exchange, LevelTraffic, Part, SharedFile, Sources, ThreadRanks, write_together};
use socbfs_tools::{
    bench::{RootSource, roots},
    report::{ArrayFormat, ArrayWriter, Column, write_array},
};

use crate::gathered::whole;

/// Ranks that write one file together write the same bytes as one process, with runs and blocks of any length.
#[test]
fn ranks_write_one_file_together() {
    let folder = tempfile::tempdir().unwrap();
    let formats = [ArrayFormat::Text, ArrayFormat::Csv, ArrayFormat::Npy];
    // Files of several blocks of 64 KiB and of less than one, with runs of each of these lengths.
    for (vertices, slices) in [(40_000, [1000, 1 << 20]), (60, [10, 1 << 20])] {
        let list = Generator::Uniform { vertices, edges: vertices / 2, seed: 3 }.generate(&|_| ()).unwrap();
        let files: Vec<_> = formats
            .into_iter()
            .flat_map(|format| slices.map(|slice| (format, slice)))
            .map(|(format, slice)| (format, slice, folder.path().join(format!("{format:?}-{slice}"))))
            .collect();
        // The root may have no edge: then no rank holds its parent.
        for order in [Order::Degree, Order::Original] {
            for size in [1, 2, 3, 5] {
                for (_, _, path) in &files {
                    std::fs::write(path, "").unwrap();
                }
                let sources: Sources<'_> = (&[1], |root| root);
                let trees = ThreadRanks::run(size, |ranks| {
                    let part = Part::build(&list, order, ranks).unwrap();
                    let values: Vec<u32> =
                        part.own_vertices().map(|(_, vertex)| vertex.wrapping_mul(0x9e37_79b9) >> (vertex % 32)).collect();
                    for &(format, slice, ref path) in &files {
                        let file = SharedFile::open(ranks, Some(path)).unwrap().expect("the same file on all ranks");
                        let mut head = Vec::new();
                        ArrayWriter::begin(&mut head, format, Column::Parent, part.vertices()).unwrap();
                        write_together(ranks, &part, &values, sources, slice, (&file, &head), |vertex: u32, values: &[u32]| {
                            let mut bytes = Vec::new();
                            ArrayWriter::from_vertex(&mut bytes, format, vertex).write(values)?;
                            Ok(bytes)
                        })
                        .unwrap();
                    }
                    whole(ranks, &part, &values, sources, 1 << 16)
                });
                for (format, slice, path) in &files {
                    let mut expected = Vec::new();
                    write_array(&mut expected, *format, Column::Parent, &trees[0]).unwrap();
                    let found = std::fs::read(path).unwrap();
                    assert!(found == expected, "{format:?} of {vertices}, {order:?}, {size} ranks, runs of {slice}: {} bytes", found.len());
                }
            }
        }
    }
}

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
    for (size, most) in [(1, 0), (2, 18_000), (4, 28_000), (16, 45_000), (8, 36_000), (32, 53_000), (64, 60_000)] {
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
    assert!(received <= 135_000, "{received} bytes a search");
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
