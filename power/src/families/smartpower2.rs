//! Hardkernel SmartPower2: a power supply that measures its output. It sends a line `volt,ampere,watt,Wh` once a second, on a serial line
//! or over TCP.

use std::time::Duration;

use super::stream;
use crate::{Channel, Component, Family, Reading, Scope, Source, Watts};

/// Interval between two lines.
const REFRESH: Duration = Duration::from_secs(1);

/// The watts of a line (`None` if they disagree with its volts and amperes, or the line is malformed).
pub(super) fn parse(line: &str) -> Option<Watts> {
    let mut fields = line.split(',').map(|field| field.trim().parse::<f64>().ok().filter(|value| value.is_finite()));
    let (volts, amperes, watts) = (fields.next()??, fields.next()??, fields.next()??);
    fields.next()??;
    let agrees = (volts * amperes - watts).abs() <= 0.05 * watts.abs() + 0.05;
    (fields.next().is_none() && watts >= 0.0 && agrees).then_some(Watts(watts))
}

/// The meter at `place`: `/dev/ttyUSB0` or `tcp:HOST:PORT`.
pub fn open(place: &str) -> Source {
    let channel = Channel::meter(Family::Smartpower2, place, Scope::BoardInput, Component::supply(place), REFRESH);
    stream::source(vec![channel], place, |at, line, sink| parse(line).map(|watts| sink.put(0, at, Reading::Power(watts))))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::{
        channel::Lost,
        families::{stream::pty, tests::fixture::sample},
    };

    #[test]
    fn lines_are_parsed_as_watts() {
        assert_eq!(parse("5.294,0.461,2.436,0.002"), Some(Watts(2.436)));
        assert_eq!(parse("5.0, 0.0, 0.0, 0.0"), Some(Watts(0.0)));
        for bad in ["", "5.294,0.461,2.436", "5.294,0.461,24.36,0.002", "5.2,0.4,nan,0", "a,b,c,d", "5,1,5,0,7", "5.0,1.0,-5.0,0"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_meter_on_a_serial_line_is_read() {
        let (master, path) = pty::open();
        let mut source = open(path.to_str().unwrap());
        let mut meter = pty::handle(&master);
        // The first line has lost its beginning, and the third is corrupt.
        meter.write_all(b"0.461,2.436,0.002\r\n5.294,0.461,2.436,0.002\r\n5.2?4,0.461,2.4\r\n5.294,0.500,2.647,0.003\r\n").unwrap();
        let mut readings = Vec::new();
        for _ in 0..20 {
            readings.extend(sample(&mut source));
            if readings.len() >= 3 {
                break;
            }
        }
        let expected = [Reading::Power(Watts(2.436)), Reading::Unavailable(Lost::Malformed), Reading::Power(Watts(2.647))];
        assert_eq!(readings.iter().map(|r| r.1).collect::<Vec<_>>(), expected);
        drop((meter, master));
        let gone = (0..20).flat_map(|_| sample(&mut source)).next().unwrap();
        assert!(matches!(gone.1, Reading::Unavailable(Lost::Gone | Lost::System(_))), "{gone:?}");
    }
}
