//! A file of time-stamped watts that the program of any meter writes, before, during or shortly after the run. The first line must be there
//! when the measurement starts, or come within 3 s; else the meter counts as silent. Every line holds the time in seconds and
//! the watts, separated by comma, semicolon or blanks. Times count from the Unix epoch, or are those of CLOCK_MONOTONIC after a line
//! `# clock: monotonic`. Other lines that begin with `#`, and a first line without numbers, are skipped.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::Duration,
};

use nix::{
    fcntl::OFlag,
    time::{ClockId, clock_gettime},
};

use crate::{Channel, Component, Family, Lost, Pace, Reading, Scope, Sensor, Sink, Source, Unusable, Watts, monotonic};

/// Interval at which the file is read for new lines.
const INTERVAL: Duration = Duration::from_millis(100);

/// Meters write about once a second. The time that a window waits for a reading after its end follows from this.
const REFRESH: Duration = Duration::from_secs(1);

/// Length of the longest line, in bytes; a longer one is cut.
const LINE: u64 = 200;
/// Nanoseconds after which a reading of lines ends; the next one goes on.
const LONGEST: u64 = 50_000_000;

/// The file, read line by line.
#[derive(Debug)]
struct Log {
    file: BufReader<File>,
    line: Vec<u8>,
    /// Number of lines read.
    number: u64,
    clock: Clock,
}

/// The clock of the times in the file.
#[derive(Debug, Clone, Copy)]
enum Clock {
    /// Time since the Unix epoch. It is `ahead` nanoseconds ahead of CLOCK_MONOTONIC, as measured when the file was opened.
    Real { ahead: i128 },
    /// CLOCK_MONOTONIC.
    Monotonic,
}

/// The content of a line.
#[derive(Debug, PartialEq)]
enum Entry {
    Nothing,
    MonotonicClock,
    Sample { seconds: f64, watts: f64 },
}

fn parse(line: &str, number: u64) -> Option<Entry> {
    let line = line.trim();
    if let Some(comment) = line.strip_prefix('#') {
        let is_clock = comment.split_once(':').is_some_and(|(key, value)| key.trim() == "clock" && value.trim() == "monotonic");
        return Some(if is_clock { Entry::MonotonicClock } else { Entry::Nothing });
    }
    if line.is_empty() {
        return Some(Entry::Nothing);
    }
    let mut fields = line.split([',', ';', ' ', '\t']).filter(|field| !field.is_empty()).map(|field| field.parse::<f64>().ok());
    match (fields.next().flatten(), fields.next().flatten(), fields.next()) {
        (Some(seconds), Some(watts), None) if seconds.is_finite() && seconds >= 0.0 && watts.is_finite() => {
            Some(Entry::Sample { seconds, watts })
        }
        // Names of columns.
        _ if number == 1 => Some(Entry::Nothing),
        _ => None,
    }
}

impl Log {
    fn open(path: &Path) -> io::Result<Self> {
        let real = clock_gettime(ClockId::CLOCK_REALTIME)?;
        let real = i128::from(real.tv_sec()) * 1_000_000_000 + i128::from(real.tv_nsec());
        let clock = Clock::Real { ahead: real - i128::from(monotonic()) };
        // A read of a pipe whose writer is silent must not block.
        let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
        if file.metadata()?.is_dir() {
            return Err(nix::Error::EISDIR.into());
        }
        Ok(Self { file: BufReader::new(file), line: Vec::with_capacity(LINE as usize + 1), number: 0, clock })
    }

    /// Reads more bytes into `line`, and returns whether it now holds a complete line.
    fn next(&mut self) -> io::Result<bool> {
        // A line that is still being written stays in `line` until the next call.
        let room = LINE.saturating_sub(self.line.len() as u64);
        let read = match (&mut self.file).take(room).read_until(b'\n', &mut self.line) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            read => read?,
        };
        Ok(self.line.ends_with(b"\n") || (read as u64 == room))
    }

    fn moment(&self, seconds: f64) -> Option<u64> {
        let nanoseconds = (seconds * 1e9) as i128;
        let moment = match self.clock {
            Clock::Real { ahead } => nanoseconds - ahead,
            Clock::Monotonic => nanoseconds,
        };
        // A time before the machine was switched on lies in no window.
        u64::try_from(moment).ok()
    }
}

impl Sensor for Log {
    fn pace(&self) -> Pace {
        Pace::Every(INTERVAL)
    }

    fn sample(&mut self, sink: &mut dyn Sink) {
        // A source that never ends must not keep the meter from its limits, nor from its end.
        let begin = monotonic();
        while monotonic() - begin < LONGEST {
            match self.next() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return sink.put(0, monotonic(), Reading::Unavailable(Lost::from(&error))),
            }
            self.number += 1;
            let entry = std::str::from_utf8(&self.line).ok().and_then(|line| parse(line, self.number));
            self.line.clear();
            match entry {
                Some(Entry::Nothing) => {}
                Some(Entry::MonotonicClock) => self.clock = Clock::Monotonic,
                Some(Entry::Sample { seconds, watts }) => {
                    if let Some(at) = self.moment(seconds) {
                        sink.put(0, at, Reading::Power(Watts(watts)));
                    }
                }
                None => sink.put(0, monotonic(), Reading::Unavailable(Lost::Malformed)),
            }
        }
    }
}

/// The sensor that reads the file `path`.
pub fn open(path: &str) -> Source {
    let channel = Channel::meter(Family::External, path, Scope::Wall, Component::wall(), REFRESH);
    let sensor = Log::open(Path::new(path)).map_err(|error| Unusable::io(Path::new(path), &error));
    Source::new(vec![channel], sensor.map(|log| Box::new(log) as Box<dyn Sensor>))
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, io::Write};

    use super::*;
    use crate::families::tests::fixture::sample;

    #[test]
    fn lines_are_parsed_as_times_and_watts() {
        let one = Some(Entry::Sample { seconds: 1.5, watts: 20.25 });
        for (line, number, entry) in [
            ("1.5,20.25\n", 2, &one),
            ("1.5 20.25", 2, &one),
            ("  1.5;\t20.25\r\n", 2, &one),
            ("time,watts", 1, &Some(Entry::Nothing)),
            ("time,watts", 2, &None),
            ("# clock: monotonic", 1, &Some(Entry::MonotonicClock)),
            ("# meter of the lab", 9, &Some(Entry::Nothing)),
            ("", 4, &Some(Entry::Nothing)),
            ("1.5,20,3", 4, &None),
            ("1.5,nan", 4, &None),
            ("-1,20", 4, &None),
        ] {
            assert_eq!(&parse(line, number), entry, "{line:?}");
        }
    }

    #[test]
    fn lines_appended_to_a_file_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watts.csv");
        std::fs::write(&path, "# clock: monotonic\n1.0,10\n2.0,2").unwrap();
        let mut source = open(path.to_str().unwrap());
        assert_eq!(sample(&mut source), [(0, Reading::Power(Watts(10.0)))]);
        assert!(sample(&mut source).is_empty());
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"0.5\n3.0 oops\n4.0,5.0\n").unwrap();
        let expected = [Reading::Power(Watts(20.5)), Reading::Unavailable(Lost::Malformed), Reading::Power(Watts(5.0))];
        assert_eq!(sample(&mut source).iter().map(|r| r.1).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_endless_source_is_left_in_time() {
        let mut source = open("/dev/zero");
        let begin = std::time::Instant::now();
        assert!(sample(&mut source).iter().all(|reading| reading.1 == Reading::Unavailable(Lost::Malformed)));
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    }

    #[test]
    fn times_of_the_wall_clock_are_converted_to_monotonic_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watts.txt");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        std::fs::write(&path, format!("time watts\n{now:.6} 7\n1.0 3\n")).unwrap();
        let mut source = open(path.to_str().unwrap());
        let mut moments = Vec::new();
        source.sensor.as_mut().unwrap().sample(&mut |_: usize, at: u64, _: Reading| moments.push(at));
        // The second line is of 1970, before this machine was switched on.
        assert_eq!(moments.len(), 1);
        assert!(moments[0].abs_diff(monotonic()) < 2_000_000_000, "{moments:?}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(open(folder.path().to_str().unwrap()).sensor.unwrap_err().to_string().contains("directory"), "a folder");
        assert!(open("/nowhere/watts.csv").sensor.unwrap_err().to_string().contains("/nowhere/watts.csv"));
    }
}
