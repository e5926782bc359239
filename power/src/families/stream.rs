//! Lines of meters that send without a request, from a serial port, a TCP connection or UDP packets.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read},
    net::{TcpStream, ToSocketAddrs, UdpSocket},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
    time::Duration,
};

use nix::{
    fcntl::OFlag,
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::termios::{ControlFlags, FlushArg, SetArg, cfmakeraw, tcflush, tcgetattr, tcsetattr},
};

use crate::{Channel, Lost, Pace, Reading, Sensor, Sink, Source, Unusable, monotonic};

/// Longest wait for a line, so that a thread can end even if its meter is silent.
const PATIENCE_MS: u8 = 100;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(3);

/// Size of the buffer in bytes: more than twice the longest line.
const BUFFER: usize = 512;

/// Splits the received bytes into lines, in a buffer of fixed size.
#[derive(Debug)]
pub(super) struct Lines {
    /// A serial port or a socket.
    port: File,
    /// Whether each read gives a UDP packet.
    has_packets: bool,
    buffer: [u8; BUFFER],
    length: usize,
}

/// Opens the meter at `place`: `/dev/ttyUSB0`, `tcp:HOST:PORT` or `udp:PORT`.
pub(super) fn open(place: &str) -> Result<Lines, Unusable> {
    let unreadable = |error: io::Error| Unusable::Unreadable { place: place.to_owned(), reason: Lost::from(&error) };
    let port: File = if let Some(address) = place.strip_prefix("tcp:") {
        let refused = |error: io::Error| Unusable::Protocol { place: place.to_owned(), reason: error.to_string() };
        OwnedFd::from(connect(address).map_err(refused)?).into()
    } else if let Some(port) = place.strip_prefix("udp:") {
        let port: u16 = port.parse().map_err(|_| Unusable::Protocol {
            place: place.to_owned(),
            reason: format!("{port:?} is not a port number: udp:6000 listens on port 6000"),
        })?;
        OwnedFd::from(UdpSocket::bind(("0.0.0.0", port)).map_err(unreadable)?).into()
    } else {
        serial(Path::new(place))?
    };
    Ok(Lines { port, has_packets: place.starts_with("udp:"), buffer: [0; BUFFER], length: 0 })
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no such host; tcp:HOST:PORT is expected");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Opens a serial port with 115200 baud, 8 bits, no parity and no translation.
fn serial(path: &Path) -> Result<File, Unusable> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        // Without O_NONBLOCK, opening may wait for a modem's carrier.
        .custom_flags((OFlag::O_NOCTTY | OFlag::O_NONBLOCK).bits())
        .open(path)
        .map_err(|error| Unusable::io(path, &error))?;
    let set = || {
        let mut settings = tcgetattr(&file)?;
        cfmakeraw(&mut settings);
        // Sets the speed. (`cfsetspeed` is bound to a symbol version of glibc that a static program does not have.)
        settings.control_flags.remove(ControlFlags::CBAUD);
        settings.control_flags.insert(ControlFlags::from_bits_retain(libc::B115200));
        tcsetattr(&file, SetArg::TCSANOW, &settings)?;
        tcflush(&file, FlushArg::TCIFLUSH)
    };
    set().map_err(|error| Unusable::Protocol {
        place: path.display().to_string(),
        reason: format!("is not a serial port ({})", error.desc()),
    })?;
    Ok(file)
}

impl Lines {
    /// Waits for bytes (at most 100 ms) and passes every complete line to `take`, with the time at which its bytes were read.
    pub(super) fn wait(&mut self, mut take: impl FnMut(u64, &str)) -> Result<(), Lost> {
        let mut descriptors = [PollFd::new(self.port.as_fd(), PollFlags::POLLIN)];
        match poll(&mut descriptors, PollTimeout::from(PATIENCE_MS)) {
            Ok(0) | Err(nix::Error::EINTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(Lost::System(error as i32)),
        }
        if self.length == BUFFER {
            // The buffer is full without an end of line: this is not a line, so its bytes are dropped.
            self.length = 0;
        }
        let read = match self.port.read(&mut self.buffer[self.length..]) {
            Ok(0) => return Err(Lost::Gone),
            Ok(read) => read,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => return Ok(()),
            Err(error) => return Err(Lost::from(&error)),
        };
        let at = monotonic();
        self.length += read;
        let mut start = 0;
        while let Some(end) = self.buffer[start..self.length].iter().position(|&byte| byte == b'\n') {
            // Bytes that are not text are noise and become an empty line, which the meter's parser rejects.
            let line = std::str::from_utf8(&self.buffer[start..start + end]).unwrap_or_default();
            take(at, line.trim_end_matches('\r'));
            start += end + 1;
        }
        // A UDP packet holds whole lines only; in a stream the rest is the beginning of the next line.
        let rest = if self.has_packets { self.length } else { start };
        self.buffer.copy_within(rest..self.length, 0);
        self.length -= rest;
        Ok(())
    }
}

/// A meter that sends lines. `take` passes on the readings of a line, and returns `None` if the line is malformed.
struct Meter<F> {
    lines: Lines,
    /// Whether the first line is over; it is dropped, since it may be an old one, or have lost its beginning.
    begun: bool,
    channels: usize,
    take: F,
}

/// The source of the meter at `place`; for `take` see [`Meter`].
pub(super) fn source<F>(channels: Vec<Channel>, place: &str, take: F) -> Source
where
    F: FnMut(u64, &str, &mut dyn Sink) -> Option<()> + Send + 'static,
{
    let meter = |lines| Meter { lines, begun: false, channels: channels.len(), take };
    let sensor = open(place).map(|lines| Box::new(meter(lines)) as Box<dyn Sensor>);
    Source::new(channels, sensor)
}

impl<F> fmt::Debug for Meter<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl<F: FnMut(u64, &str, &mut dyn Sink) -> Option<()> + Send> Sensor for Meter<F> {
    fn pace(&self) -> Pace {
        Pace::Waits(Duration::ZERO)
    }

    fn sample(&mut self, sink: &mut dyn Sink) {
        let Self { lines, begun, channels, take } = self;
        let lost = |sink: &mut dyn Sink, at, reason| (0..*channels).for_each(|channel| sink.put(channel, at, Reading::Unavailable(reason)));
        let result = lines.wait(|at, line| {
            if std::mem::replace(begun, true) && take(at, line, sink).is_none() {
                lost(sink, at, Lost::Malformed);
            }
        });
        if let Err(reason) = result {
            lost(sink, monotonic(), reason);
            // The connection has ended, so `wait` returns at once; without this pause the thread would spin.
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Pseudo terminals that act as a meter.
#[cfg(test)]
pub(super) mod pty {
    use std::{fs::File, path::PathBuf};

    use nix::{
        fcntl::OFlag,
        pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt},
    };

    /// Opens a pseudo terminal: the meter's end, and the path of the port.
    pub(crate) fn open() -> (PtyMaster, PathBuf) {
        let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = PathBuf::from(ptsname_r(&master).unwrap());
        (master, path)
    }

    /// Another handle of the meter's end, for use in another thread.
    pub(crate) fn handle(master: &PtyMaster) -> File {
        use std::os::fd::AsFd;
        File::from(master.as_fd().try_clone_to_owned().unwrap())
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, net::TcpListener};

    use super::*;

    fn collect(lines: &mut Lines, wanted: usize) -> Vec<String> {
        let mut found = Vec::new();
        for _ in 0..50 {
            lines.wait(|_, line| found.push(line.to_owned())).unwrap();
            if found.len() >= wanted {
                break;
            }
        }
        found
    }

    #[test]
    fn lines_are_assembled_from_pieces() {
        let (master, path) = pty::open();
        let mut lines = open(path.to_str().unwrap()).unwrap();
        let mut meter = pty::handle(&master);
        meter.write_all(b"5.0,1").unwrap();
        meter.flush().unwrap();
        assert!(collect(&mut lines, 0).is_empty());
        meter.write_all(b".2\r\nsecond\nthi").unwrap();
        assert_eq!(collect(&mut lines, 2), ["5.0,1.2", "second"]);
        meter.write_all(&[b'x'; 700]).unwrap();
        meter.write_all(b"\nafter\n").unwrap();
        assert_eq!(collect(&mut lines, 2).last().unwrap(), "after");
    }

    #[test]
    fn a_closed_connection_is_reported_as_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut lines = open(&format!("tcp:{}", listener.local_addr().unwrap())).unwrap();
        let (mut meter, _) = listener.accept().unwrap();
        meter.write_all(b"a line\n").unwrap();
        assert_eq!(collect(&mut lines, 1), ["a line"]);
        drop(meter);
        let ended = (0..50).find_map(|_| lines.wait(|_, _| ()).err());
        assert_eq!(ended, Some(Lost::Gone));
    }

    #[test]
    fn places_without_a_meter_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for (place, word) in [
            (file.to_str().unwrap(), "not a serial port"),
            ("/dev/nothing-there", "No such file"),
            ("udp:meter", "not a port number"),
            ("tcp:nowhere", "tcp:nowhere"),
        ] {
            let error = open(place).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
