//! Searches as a timeline in Chrome's trace format, which Perfetto and chrome://tracing open.

use serde_json::{Value, json};

use super::trace::{direction, levels_of};
use socbfs::{
    bfs::{LevelRecord, Placement},
    search::{Stretch, Traced},
};

// Tracks of a timeline. The tracks of further threads and of devices follow.
const LEVELS: usize = 0;
const OVERHEAD: usize = 1;
const FIRST_THREAD: usize = 2;

/// Draws `searches` on the machine `board`, one after the other: the levels, their overhead, each thread, each device.
///
/// Levels, decisions, and the spans that threads and kernels recorded are drawn at their times. Handover and conversion have their measured
/// lengths, and follow the decision in this order. A level that the calling thread ran alone begins on the track of that thread after
/// these.
pub fn timeline(board: &str, searches: &[Traced]) -> Value {
    let mut tracks = Tracks::default();
    tracks.name("process_name", LEVELS, "name", format!("socbfs on {board}").into());
    tracks.named(LEVELS, "levels");
    tracks.named(OVERHEAD, "deciding, handover, conversion");
    let threads = searches.iter().map(|search| search.threads.len()).max().unwrap_or(0);
    for thread in 0..threads {
        tracks.named(FIRST_THREAD + thread, &if thread == 0 { "CPU, calling thread".to_owned() } else { format!("CPU, thread {thread}") });
    }
    let first_device = FIRST_THREAD + threads;
    if let Some(search) = searches.first() {
        for (place, device) in search.devices.iter().enumerate() {
            tracks.named(first_device + place, &format!("queue of {}", device.name));
        }
    }
    let mut now = 0.0;
    for search in searches {
        let end = search.outcome.elapsed.as_nanos() as f64;
        let about = json!({ "levels": search.outcome.levels });
        tracks.add(LEVELS, &format!("root {}", search.outcome.root), now, end, about);
        one(&mut tracks, search, now, first_device);
        now += end;
    }
    json!({
        "traceEvents": tracks.0,
        "displayTimeUnit": "ns",
        "otherData": { "about": "searches after the measured ones, in which threads and devices note what they do" },
    })
}

/// The events so far. Their times are in microseconds, as the format requires.
#[derive(Default)]
struct Tracks(Vec<Value>);

impl Tracks {
    /// Adds what is said about a track, or about the process.
    fn name(&mut self, event: &str, track: usize, key: &str, value: Value) {
        self.0.push(json!({ "name": event, "ph": "M", "pid": 1, "tid": track, "args": { key: value } }));
    }

    fn named(&mut self, track: usize, name: &str) {
        self.name("thread_name", track, "name", name.into());
        self.name("thread_sort_index", track, "sort_index", track.into());
    }

    /// Adds a stretch to a track; times are in nanoseconds.
    fn add(&mut self, track: usize, name: &str, begin: f64, length: f64, arguments: Value) {
        self.0.push(
            json!({ "name": name, "cat": "socbfs", "ph": "X", "pid": 1, "tid": track, "ts": begin / 1e3, "dur": length / 1e3, "args": arguments }),
        );
    }

    /// Adds the value of a counter.
    fn counter(&mut self, name: &str, at: f64, value: u64) {
        self.0.push(json!({ "name": name, "ph": "C", "pid": 1, "tid": 0, "ts": at / 1e3, "args": { "vertices": value } }));
    }
}

/// Draws one search, which begins at `begin`.
fn one(tracks: &mut Tracks, search: &Traced, begin: f64, first_device: usize) {
    let mut at = search.levels_begin_ns;
    // The end and the name of each level.
    let mut levels: Vec<(u64, String)> = Vec::with_capacity(search.records.len());
    for level in &search.records {
        let name = level_name(level);
        let alone = overhead(tracks, level, begin, at);
        let end = at + level.elapsed_ns;
        let stats = &level.stats;
        let seen = json!({
            "frontier": stats.frontier_vertices, "arcs": stats.frontier_edges, "found": level.found, "levels": level.levels, "plan": level.plan,
        });
        tracks.add(LEVELS, &name, begin + at as f64, level.elapsed_ns as f64, seen);
        tracks.counter("frontier", begin + at as f64, stats.frontier_vertices);
        let noted = |of: &[Stretch]| of.iter().any(|stretch| stretch.end_ns > alone && stretch.begin_ns < end);
        let (from, length) = (begin + alone as f64, end.saturating_sub(alone) as f64);
        let on_cpu = !matches!(level.plan.placement, Placement::Gpu(_));
        if on_cpu && !search.threads.first().is_some_and(|of| noted(of)) {
            tracks.add(FIRST_THREAD, &name, from, length, json!({ "alone": true }));
        }
        // A device that recorded no times is drawn by the host's clock.
        let is_silent = search.devices.first().is_some_and(|device| device.kernels.is_empty());
        if level.plan.placement != Placement::Cpu && is_silent {
            tracks.add(first_device, &name, from, length, json!({ "by": "the host's clock" }));
        }
        levels.push((end, name));
        at = end;
    }
    let within = |stretch: &Stretch| levels.iter().find(|(end, _)| stretch.begin_ns < *end).map_or("map back", |(_, name)| name.as_str());
    for (thread, stretches) in search.threads.iter().enumerate() {
        for stretch in stretches {
            add(tracks, FIRST_THREAD + thread, within(stretch), begin, *stretch, json!({}));
        }
    }
    for (place, device) in search.devices.iter().enumerate() {
        for (kernel, stretch) in &device.kernels {
            add(tracks, first_device + place, kernel, begin, *stretch, json!({ "during": within(stretch) }));
        }
    }
}

fn add(tracks: &mut Tracks, track: usize, name: &str, begin: f64, stretch: Stretch, arguments: Value) {
    tracks.add(track, name, begin + stretch.begin_ns as f64, stretch.end_ns.saturating_sub(stretch.begin_ns) as f64, arguments);
}

fn level_name(level: &LevelRecord) -> String {
    let levels = if level.levels > 1 { "levels" } else { "level" };
    format!("{levels} {} {}", levels_of(level), direction(level.plan.direction))
}

/// Draws the overhead of the level that begins at `at`: decision, handover, conversion. Returns the time at which its work began. Level 0
/// begins with a reset of the state, whose handover precedes the decision.
fn overhead(tracks: &mut Tracks, level: &LevelRecord, begin: f64, at: u64) -> u64 {
    let mut parts = [("decide", level.decision_ns), ("hand over", level.handover_ns), ("convert", level.conversion_ns)];
    if level.stats.level == 0 {
        parts.swap(0, 1);
    }
    let (mut now, end) = (at, at + level.elapsed_ns);
    for (name, ns) in parts {
        let ns = ns.min(end - now);
        if ns > 0 {
            tracks.add(OVERHEAD, name, begin + now as f64, ns as f64, json!({ "level": level.stats.level }));
        }
        now += ns;
    }
    now
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::report::tests::level;
    use socbfs::search::{Outcome, TracedDevice};

    #[test]
    fn levels_follow_each_other_and_threads_and_kernels_keep_their_times() {
        let stretch = |begin_ns, end_ns| Stretch { begin_ns, end_ns };
        let records = vec![level(0), level(1)];
        let first = records[0].elapsed_ns;
        // The first level begins a while after the search, as if the thread was interrupted in between.
        let late = 700;
        let whole = late + records.iter().map(|level| level.elapsed_ns).sum::<u64>();
        let first = late + first;
        let search = |root| Traced {
            outcome: Outcome {
                root,
                sources: 1,
                elapsed: Duration::from_nanos(whole + 500),
                mapping: Duration::from_nanos(500),
                reached: 0,
                levels: 2,
                edges: 0,
            },
            levels_begin_ns: late,
            records: records.clone(),
            // Two threads run the second level; the calling thread runs the first one alone.
            threads: vec![
                vec![stretch(first + 1001, first + 1009), stretch(whole + 1, whole + 400)],
                vec![stretch(first + 1002, first + 1007)],
            ],
            devices: vec![TracedDevice {
                name: "a device".into(),
                kernels: vec![("bottom_up".into(), stretch(first + 1003, first + 1005))],
            }],
        };
        let trace = timeline("a board", &[search(4), search(9)]);
        let events = trace["traceEvents"].as_array().unwrap();
        let of = |track: u64| -> Vec<(String, f64)> {
            let on = events.iter().filter(|event| event["ph"] == "X" && event["tid"] == track);
            on.map(|event| (event["name"].as_str().unwrap().to_owned(), 1e3 * event["ts"].as_f64().unwrap())).collect()
        };
        let near = |found: Vec<(String, f64)>, wanted: &[(&str, u64)]| {
            assert_eq!(found.len(), wanted.len(), "{found:?}");
            for ((name, at), (wanted, begin)) in found.iter().zip(wanted) {
                assert!(name == wanted && (at - *begin as f64).abs() < 1e-3, "{found:?}");
            }
        };
        let again = whole + 500;
        near(
            of(0),
            &[
                ("root 4", 0),
                ("level 0 top-down", late),
                ("levels 1-10 bottom-up", first),
                ("root 9", again),
                ("level 0 top-down", again + late),
                ("levels 1-10 bottom-up", again + first),
            ],
        );
        let caller = of(2);
        assert_eq!(caller[0].0, "level 0 top-down", "alone: {caller:?}");
        near(caller[1..3].to_vec(), &[("levels 1-10 bottom-up", first + 1001), ("map back", whole + 1)]);
        near(of(3), &[("levels 1-10 bottom-up", first + 1002), ("levels 1-10 bottom-up", again + first + 1002)]);
        near(of(4), &[("bottom_up", first + 1003), ("bottom_up", again + first + 1003)]);
        assert!(timeline("a board", &[]).to_string().len() < 800);
    }
}
