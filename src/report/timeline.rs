//! A benchmark run as a timeline in Chrome's trace format, which Perfetto and chrome://tracing open.

use serde_json::{Value, json};

use crate::{
    bench::Record,
    bfs::{Direction, LevelRecord, Placement},
    graph::Vertex,
};

/// Tracks of a timeline.
const TRACKS: [&str; 4] = ["levels", "handover, conversion, deciding", "CPU", "device"];
const LEVELS: usize = 0;
const OVERHEAD: usize = 1;
const CPU: usize = 2;
const DEVICE: usize = 3;

/// The searches of `record` from `roots` (all of them if there is none), one after the other. It is made of what the record holds, so that
/// nothing is kept during a search for it: lengths are as measured; the parts of a level stand in their usual order, handover,
/// deciding, conversion, search.
pub fn timeline(record: &Record, roots: &[Vertex]) -> Value {
    let mut events = vec![json!({ "name": "process_name", "ph": "M", "pid": 1, "args": { "name": record.search.board } })];
    for (track, name) in TRACKS.iter().enumerate() {
        let name = if track == CPU { format!("{name} ({} threads)", record.search.threads) } else { (*name).to_owned() };
        events.push(json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": track, "args": { "name": name } }));
    }
    let mut now = 0.0;
    for root in record.roots.iter().filter(|root| roots.is_empty() || roots.contains(&root.root)) {
        let Some(seconds) = root.seconds else { continue };
        let all = 1e9 * seconds;
        let arguments = json!({ "reached": root.reached, "levels": root.levels, "edges": root.edges });
        events.push(event(&format!("root {}", root.root), LEVELS, now, all, arguments));
        let mut at = now;
        for level in &root.level_records {
            levels(&mut events, level, at);
            at += level.elapsed_ns as f64;
        }
        let mapping = 1e9 * root.mapping_seconds.unwrap_or(0.0);
        events.push(event("map back", CPU, now + all - mapping, mapping, json!({})));
        now += all;
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ns" })
}

/// A stretch of a track; times in nanoseconds, which the format has as microseconds.
fn event(name: &str, track: usize, at: f64, length: f64, arguments: Value) -> Value {
    json!({ "name": name, "ph": "X", "pid": 1, "tid": track, "ts": at / 1e3, "dur": length / 1e3, "args": arguments })
}

fn levels(events: &mut Vec<Value>, level: &LevelRecord, begin: f64) {
    let stats = &level.stats;
    let direction = match level.plan.direction {
        Direction::TopDown => "top-down",
        Direction::BottomUp => "bottom-up",
    };
    let name = format!("level {} {direction}", stats.level);
    let seen = json!({ "frontier": stats.frontier_vertices, "arcs": stats.frontier_edges, "found": level.found, "levels": level.levels, "plan": level.plan });
    events.push(event(&name, LEVELS, begin, level.elapsed_ns as f64, seen));
    let count = json!({ "vertices": stats.frontier_vertices });
    events.push(json!({ "name": "frontier", "ph": "C", "pid": 1, "ts": begin / 1e3, "args": count }));
    let mut at = begin;
    for (part, ns) in [("hand over", level.handover_ns), ("decide", level.decision_ns), ("convert", level.conversion_ns)] {
        if ns > 0 {
            events.push(event(part, OVERHEAD, at, ns as f64, json!({})));
        }
        at += ns as f64;
    }
    let rest = (level.elapsed_ns as f64 - (at - begin)).max(0.0);
    let threads = json!({ "threads": level.threads });
    match level.plan.placement {
        Placement::Cpu => events.push(event(&name, CPU, at, rest, threads)),
        Placement::Gpu(kernel) => events.push(event(kernel.name(), DEVICE, at, rest, json!({}))),
        Placement::Split { gpu_permille, .. } | Placement::Apart { gpu_permille } => {
            let share = json!({ "gpu_permille": gpu_permille });
            events.push(event(&name, CPU, at, (level.cpu_ns as f64).min(rest), threads));
            events.push(event(&name, DEVICE, at, (level.gpu_ns as f64).min(rest), share));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{level, record};

    #[test]
    fn a_timeline_has_every_level_and_events_of_a_track_nest() {
        let mut run = record(&[0.004, 0.002]);
        for root in &mut run.roots {
            root.level_records = vec![level(0), level(1)];
            root.mapping_seconds = Some(1e-6);
        }
        run.roots[0].seconds = Some(0.004);
        run.roots[1].seconds = Some(0.0031);
        let trace = timeline(&run, &[]);
        let events = trace["traceEvents"].as_array().unwrap();
        let named = |word: &str| events.iter().filter(|event| event["name"].as_str().unwrap().contains(word)).count();
        assert_eq!((named("level 0 top-down"), named("level 1 bottom-up"), named("root "), named("frontier")), (4, 4, 2, 4));
        for track in 0..TRACKS.len() {
            let mut open: Vec<f64> = Vec::new();
            let of = events.iter().filter(|event| event["ph"] == "X" && event["tid"] == track);
            for event in of {
                let (begin, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
                while open.last().is_some_and(|&end| end <= begin + 1e-6) {
                    open.pop();
                }
                assert!(open.last().is_none_or(|&end| begin + length <= end + 1e-6), "{event}");
                open.push(begin + length);
            }
        }
        assert_eq!(timeline(&run, &[1])["traceEvents"].as_array().unwrap().iter().filter(|event| event["name"] == "root 1").count(), 1);
        assert!(timeline(&run, &[77]).to_string().len() < 800);
    }
}
