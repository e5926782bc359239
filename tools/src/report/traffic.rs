//! What ranks sent each other, level by level.

use super::cells::{Cell, Table, aligned_by, written};
use socbfs_cluster::LevelTraffic;

/// A table with one line for each level, from the traffic of every rank: the most bytes that a rank received, the bytes that all ranks
/// sent, the number of collective operations, the mean time that a rank waited, and the time of the slowest rank's own work over the mean.
pub fn traffic(ranks: &[Vec<LevelTraffic>]) -> String {
    let count = ranks.len().max(1) as f64;
    let of = |level: usize, field: fn(&LevelTraffic) -> u64| ranks.iter().map(move |rank| field(&rank[level]));
    let imbalance = |level: usize| match of(level, |t| t.compute_ns).sum::<u64>() {
        0 => 1.0,
        sum => of(level, |t| t.compute_ns).max().unwrap_or(0) as f64 * count / sum as f64,
    };
    let table = Table::of(
        0..ranks.first().map_or(0, Vec::len),
        &[
            ("level", &|&level| Cell::word(level.to_string())),
            ("received", &|&level| Cell::count(of(level, |t| t.received).max().unwrap_or(0))),
            ("sent by all", &|&level| Cell::count(of(level, |t| t.sent).sum())),
            ("messages", &|&level| Cell::word(ranks[0][level].messages.to_string())),
            ("wait", &|&level| Cell::ns(of(level, |t| t.wait_ns).sum::<u64>() as f64 / count)),
            ("imbalance", &|&level| Cell::word(format!("{:.2}", imbalance(level)))),
        ],
    );
    written(|out| aligned_by(out, "", &table, &|_| false))
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
