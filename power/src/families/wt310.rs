//! Yokogawa WT310: a bench power meter on USB, through the kernel's USBTMC file. It is queried for the active power of its first element.
//! An answer of 9.9E37 or more means that it has no value.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::Path,
    time::Duration,
};

use crate::{Channel, Component, Family, Lost, Pace, Reading, Scope, Source, Unusable, Watts};

/// The meter's shortest update interval, to which it is set.
const REFRESH: Duration = Duration::from_millis(100);

/// Values of at least this magnitude mean "no data" or "over range".
const NO_DATA: f64 = 9.9e37;

/// Commands that set the meter up: plain text, one item, active power of element 1, a new value every 100 ms.
const SET_UP: [&str; 4] = [":NUM:FORM ASC", ":NUM:NORM:NUM 1", ":NUM:NORM:ITEM1 P,1", ":RATE 100MS"];

/// The meter.
#[derive(Debug)]
struct Meter {
    file: File,
}

impl Meter {
    fn tell(&mut self, command: &str) -> Result<(), Lost> {
        // One write is one message, whose end the kernel marks.
        let mut message = [0_u8; 64];
        let message = message.get_mut(..=command.len()).ok_or(Lost::Malformed)?;
        message[..command.len()].copy_from_slice(command.as_bytes());
        message[command.len()] = b'\n';
        self.file.write_all(message).map_err(|error| Lost::from(&error))
    }

    fn read(&mut self) -> Result<Watts, Lost> {
        self.tell(":NUM:NORM:VAL?")?;
        let mut answer = [0_u8; 64];
        let length = self.file.read(&mut answer).map_err(|error| Lost::from(&error))?;
        parse(std::str::from_utf8(&answer[..length]).map_err(|_| Lost::Malformed)?)
    }
}

pub(super) fn parse(answer: &str) -> Result<Watts, Lost> {
    // "NAN" and "INF" parse as numbers and count as no data.
    match answer.trim().parse::<f64>() {
        Ok(value) if value.abs() < NO_DATA => Ok(Watts(value)),
        Ok(_) => Err(Lost::NoData),
        Err(_) if answer.trim().is_empty() => Err(Lost::Gone),
        Err(_) => Err(Lost::Malformed),
    }
}

/// The meter at `place`: `/dev/usbtmc0`.
pub fn open(place: &str) -> Source {
    let channel = Channel::meter(Family::Wt310, place, Scope::Wall, Component::wall(), REFRESH);
    let read = set_up(Path::new(place)).map(|mut meter| move || meter.read().map(Reading::Power));
    Source::single(channel, Pace::Waits(REFRESH), read)
}

fn set_up(path: &Path) -> Result<Meter, Unusable> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|error| Unusable::io(path, &error))?;
    let mut meter = Meter { file };
    for command in SET_UP {
        meter.tell(command).map_err(|reason| Unusable::Unreadable { place: path.display().to_string(), reason })?;
    }
    Ok(meter)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        sync::{Arc, Mutex},
    };

    use super::*;
    use crate::families::{
        stream::{self, pty},
        tests::fixture::sample,
    };

    #[test]
    fn answers_are_parsed_as_watts_or_no_data() {
        assert_eq!(parse("12.345E+00\n"), Ok(Watts(12.345)));
        assert_eq!(parse("-0.0012E+03"), Ok(Watts(-1.2)));
        for (answer, lost) in [
            ("9.91E+37", Lost::NoData),
            ("9.9E37\n", Lost::NoData),
            ("NAN", Lost::NoData),
            ("INF", Lost::NoData),
            ("12,3", Lost::Malformed),
            ("\n", Lost::Gone),
        ] {
            assert_eq!(parse(answer), Err(lost), "{answer}");
        }
    }

    /// Sends commands and answers through a pseudo terminal instead of the kernel's file.
    #[test]
    fn a_meter_behind_a_device_file_is_set_up_and_queried() {
        let (master, path) = pty::open();
        // Sets the terminal to translate nothing. It must stay open until the sensor has opened it too.
        let port = stream::open(path.to_str().unwrap()).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let mut answers = vec!["9.91E+37", "17.5E+00"];
        let (commands, mut reply, log) = (BufReader::new(pty::handle(&master)), pty::handle(&master), heard.clone());
        let meter = std::thread::spawn(move || {
            for command in commands.lines() {
                let command = command.unwrap();
                if command.ends_with('?') {
                    reply.write_all(format!("{}\n", answers.pop().unwrap()).as_bytes()).unwrap();
                }
                log.lock().unwrap().push(command);
                if answers.is_empty() {
                    break;
                }
            }
        });
        let mut source = open(path.to_str().unwrap());
        drop(port);
        assert_eq!(sample(&mut source), [(0, Reading::Power(Watts(17.5)))]);
        assert_eq!(sample(&mut source), [(0, Reading::Unavailable(Lost::NoData))]);
        meter.join().unwrap();
        assert_eq!(heard.lock().unwrap()[..4], SET_UP);
        assert_eq!(source.channels[0].scope, Scope::Wall);
    }

    #[test]
    fn a_missing_meter_is_named() {
        assert!(open("/dev/usbtmc-none").sensor.unwrap_err().to_string().contains("/dev/usbtmc-none"));
    }
}
