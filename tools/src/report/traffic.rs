//! What ranks sent each other, level by level.

use std::fmt::Write;

use socbfs::words::{grouped, seconds};
use socbfs_cluster::LevelTraffic;

/// A table with one line for each level, from the traffic of every rank: the most bytes that a rank received, the bytes that all ranks
/// sent, the number of collective operations, the mean time that a rank waited, and the time of the slowest rank's own work over the mean.
pub fn traffic(ranks: &[Vec<LevelTraffic>]) -> String {
    let mut text =
        format!("{:>5}  {:>12}  {:>12}  {:>8}  {:>10}  {:>9}\n", "level", "received", "sent by all", "messages", "wait", "imbalance");
    let count = ranks.len().max(1) as f64;
    for level in 0..ranks.first().map_or(0, Vec::len) {
        let of = |field: fn(&LevelTraffic) -> u64| ranks.iter().map(move |rank| field(&rank[level]));
        let compute: u64 = of(|t| t.compute_ns).sum();
        let imbalance = if compute == 0 { 1.0 } else { of(|t| t.compute_ns).max().unwrap_or(0) as f64 * count / compute as f64 };
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "{level:>5}  {:>12}  {:>12}  {:>8}  {:>10}  {imbalance:>9.2}",
            grouped(of(|t| t.received).max().unwrap_or(0)),
            grouped(of(|t| t.sent).sum()),
            ranks[0][level].messages,
            seconds(of(|t| t.wait_ns).sum::<u64>() as f64 * 1e-9 / count),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_a_line() {
        let level = |received, compute_ns| LevelTraffic { received, sent: 10, messages: 2, wait_ns: 2000, compute_ns };
        let text = traffic(&[vec![level(1000, 100), level(5, 0)], vec![level(2000, 300), level(4, 0)]]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["0", "2,000", "20", "2", "2.000", "us", "1.50"]);
        assert_eq!(lines[2], ["1", "5", "20", "2", "2.000", "us", "1.00"]);
        assert_eq!(traffic(&[]).lines().count(), 1);
    }
}
