//! Hardkernel SmartPower3: a power supply that measures its input and two outputs. It sends a line of 81 bytes every 10 ms to 1 s, on a
//! serial line or over UDP: milliseconds since it was switched on; mV, mA, mW, on of the input; mV, mA, mW, on, interrupts of each output;
//! two checksums of the bytes before them. The times are those of its own clock, since lines arrive in bursts.

use std::time::Duration;

use super::stream;
use crate::{Channel, Component, Family, Reading, Scope, Source, Watts};

/// Shortest interval between lines (the user sets 10 ms to 1 s). A window waits long enough after its end for a slower meter too.
const REFRESH: Duration = Duration::from_millis(10);

/// Number of bytes of a line before its checksums.
const CHECKED: usize = 74;

/// Input and two outputs.
const CHANNELS: usize = 3;

/// The content of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    milliseconds: u64,
    watts: [Watts; CHANNELS],
}

/// Turns the meter's milliseconds into nanoseconds of CLOCK_MONOTONIC. The offset of the two clocks is taken from the line that has arrived
/// with the least delay so far.
#[derive(Debug, Default)]
struct Clock {
    offset: Option<i128>,
    last: u64,
}

impl Clock {
    /// The time of measurement of the line with `milliseconds`, which was read at `arrival`.
    fn at(&mut self, milliseconds: u64, arrival: u64) -> u64 {
        let meter = i128::from(milliseconds) * 1_000_000;
        let offset = i128::from(arrival) - meter;
        // The meter's clock goes backward if the meter was switched off and on.
        if milliseconds < self.last {
            self.offset = None;
        }
        self.last = milliseconds;
        let known = self.offset.map_or(offset, |known| known.min(offset));
        self.offset = Some(known);
        u64::try_from(meter + known).unwrap_or(arrival)
    }
}

/// Parses a line, whose length, checksums and numbers must all be right.
pub(super) fn parse(line: &str) -> Option<Line> {
    let (checked, sums) = line.split_at_checked(CHECKED)?;
    let (complement, xor) = sums.split_once(',')?;
    let (sum, exclusive) = checked.bytes().fold((0_u8, 0_u8), |(sum, exclusive), byte| (sum.wrapping_add(byte), exclusive ^ byte));
    let same = |text: &str, value: u8| text.len() == 2 && u8::from_str_radix(text, 16) == Ok(value);
    if !same(complement, sum.wrapping_neg()) || !same(xor, exclusive) {
        return None;
    }
    let mut fields = checked.trim_end_matches(',').split(',').map(|field| field.parse::<u64>().ok());
    let milliseconds = fields.next()??;
    let mut watts = [Watts::default(); CHANNELS];
    for (channel, watts) in watts.iter_mut().enumerate() {
        let (_millivolts, _milliamperes, milliwatts, _on) = (fields.next()??, fields.next()??, fields.next()??, fields.next()??);
        if channel > 0 {
            // The interrupts, in hexadecimal, must be present; their value is ignored.
            fields.next()?;
        }
        *watts = Watts(milliwatts as f64 * 1e-3);
    }
    fields.next().is_none().then_some(Line { milliseconds, watts })
}

/// The meter at `place`: `/dev/ttyUSB0` or `udp:6000`. Its channels are the outputs `PLACE:1` and `PLACE:2`, both named by `PLACE` alone,
/// and the input `PLACE/input`, which includes the consumption of the meter.
pub fn open(place: &str) -> Source {
    let channel = |id: String, label: &str, part: Component| {
        let meter = Channel::meter(Family::Smartpower3, place, Scope::BoardInput, part, REFRESH);
        Channel { id, label: Some(label.to_owned()), ..meter }
    };
    let output = |number: u32| {
        let id = format!("{place}:{number}");
        channel(id.clone(), &format!("output {number}"), Component::supply(&id))
    };
    let channels = vec![channel(format!("{place}/input"), "input", Component::board()), output(1), output(2)];
    let mut clock = Clock::default();
    stream::source(channels, place, move |arrival, line, sink| {
        let line = parse(line)?;
        let at = clock.at(line.milliseconds, arrival);
        for (channel, watts) in line.watts.into_iter().enumerate() {
            sink.put(channel, at, Reading::Power(watts));
        }
        Some(())
    })
}

#[cfg(test)]
mod tests {
    use std::{io::Write, net::UdpSocket};

    use super::*;
    use crate::families::{stream::pty, tests::fixture::sample};

    /// A line of the meter's documentation.
    const RECORDED: &str = "0000815169,15296,0036,00550,0,00000,0000,00000,0,00,00000,0000,00000,0,00,14,12";

    /// A line in the meter's format.
    fn line(milliseconds: u64, milliwatts: [u32; 3]) -> String {
        let [input, one, two] = milliwatts;
        let text = format!(
            "{milliseconds:010},15296,{:04},{input:05},1,05000,{:04},{one:05},1,00,05000,{:04},{two:05},1,10,",
            input / 15,
            one / 5,
            two / 5
        );
        let (sum, xor) = text.bytes().fold((0_u8, 0_u8), |(sum, xor), byte| (sum.wrapping_add(byte), xor ^ byte));
        format!("{text}{:02x},{xor:02x}\r\n", sum.wrapping_neg())
    }

    #[test]
    fn recorded_lines_are_read_and_corrupt_ones_are_refused() {
        let expected = Line { milliseconds: 815_169, watts: [Watts(0.55), Watts(0.0), Watts(0.0)] };
        assert_eq!(parse(RECORDED), Some(expected));
        assert_eq!(line(1, [0; 3]).len(), 81);
        for position in 0..RECORDED.len() {
            let mut bytes = RECORDED.as_bytes().to_vec();
            bytes[position] = if bytes[position] == b'7' { b'8' } else { b'7' };
            assert_eq!(parse(std::str::from_utf8(&bytes).unwrap()), None, "byte {position}");
        }
        assert_eq!(parse(&RECORDED[5..]), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn the_meters_own_clock_gives_the_times() {
        let mut clock = Clock::default();
        let ms = 1_000_000;
        assert_eq!(clock.at(1000, 5000 * ms), 5000 * ms);
        // A burst: two lines read together that were measured 10 ms apart.
        assert_eq!(clock.at(1010, 5030 * ms), 5010 * ms);
        assert_eq!(clock.at(1020, 5030 * ms), 5020 * ms);
        // A line with less delay than the first moves all later times back.
        assert_eq!(clock.at(1030, 5025 * ms), 5025 * ms);
        assert_eq!(clock.at(1040, 5060 * ms), 5035 * ms);
        // The meter was switched off and on.
        assert_eq!(clock.at(5, 9000 * ms), 9000 * ms);
    }

    fn collect(source: &mut Source, wanted: usize) -> Vec<(usize, u64, Reading)> {
        let mut readings = Vec::new();
        for _ in 0..30 {
            let mut sink = |channel: usize, at: u64, reading: Reading| readings.push((channel, at, reading));
            source.sensor.as_mut().unwrap().sample(&mut sink);
            if readings.len() >= wanted {
                break;
            }
        }
        readings
    }

    #[test]
    fn a_meter_on_a_serial_line_is_read() {
        let (master, path) = pty::open();
        let mut source = open(path.to_str().unwrap());
        let place = path.to_str().unwrap();
        assert!(source.channels[1].answers_to(place) && source.channels[2].answers_to(place));
        assert!(!source.channels[0].answers_to(place));
        assert!(source.channels[0].part.overlaps(&source.channels[1].part));
        let mut meter = pty::handle(&master);
        for (milliseconds, watts) in [(100, 1), (110, 2), (120, 3)] {
            meter.write_all(line(milliseconds, [8000 * watts, 5000 * watts, 1000]).as_bytes()).unwrap();
        }
        let readings = collect(&mut source, 6);
        assert_eq!(readings.len(), 6, "{readings:?}");
        assert_eq!(readings[1].2, Reading::Power(Watts(10.0)));
        assert_eq!(readings[3].2, Reading::Power(Watts(24.0)));
        assert!(readings[4].1 >= readings[1].1);
    }

    #[test]
    fn a_meter_on_the_network_is_read() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut source = open(&format!("udp:{free}"));
        let meter = UdpSocket::bind("127.0.0.1:0").unwrap();
        for milliseconds in [10, 20] {
            meter.send_to(line(milliseconds, [9000, 5000, 0]).as_bytes(), ("127.0.0.1", free)).unwrap();
        }
        let readings = collect(&mut source, 3);
        assert_eq!(readings.iter().map(|r| r.2).collect::<Vec<_>>(), [9.0, 5.0, 0.0].map(|w| Reading::Power(Watts(w))));
        assert!(sample(&mut source).is_empty());
    }
}
