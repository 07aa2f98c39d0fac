//! A connection within TLS: one thread reads from it while others write.
//!
//! The state of TLS stands behind a lock that is held only for work in memory, never during a wait
//! for the network. A second lock keeps the order of sent bytes, and only writers wait for it.

use crate::stream::Stream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Limit of the bytes read from the network at once.
const RAW_BYTES: usize = 64 << 10;
/// How long a peer may take to read what is sent to it.
const SENDING: Duration = Duration::from_secs(30);

struct Shared {
    tls: Mutex<Connection>,
    /// Ciphertext to send.
    sending: Mutex<Vec<u8>>,
    stream: Stream,
}

/// The receiving direction.
pub struct LineReader {
    shared: Arc<Shared>,
    raw: Box<[u8]>,
    /// The part of `raw` that TLS has not seen.
    left: std::ops::Range<usize>,
    /// When the peer's time is up, however it divides it.
    until: Option<Instant>,
    /// The stream has time limits for that.
    is_limited: bool,
}

/// The sending direction. Clones are of one line.
#[derive(Clone)]
pub struct LineWriter(Arc<Shared>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("no TLS with it: {why}"))
}

/// Makes the server's side of TLS, until a deadline.
///
/// # Errors
/// Those of the line; `TimedOut` if it takes too long; `InvalidData` for no TLS.
pub fn accept(
    stream: Stream,
    config: &Arc<ServerConfig>,
    until: Instant,
) -> io::Result<(LineReader, LineWriter)> {
    let tls = ServerConnection::new(Arc::clone(config)).map_err(refused)?;
    begin(stream, tls.into(), until)
}

/// Makes the client's side of TLS, until a deadline.
///
/// # Errors
/// As for [`accept`]; `InvalidData` also for a server with another certificate.
pub fn connect(
    stream: Stream,
    config: &Arc<ClientConfig>,
    name: ServerName<'static>,
    until: Instant,
) -> io::Result<(LineReader, LineWriter)> {
    let tls = ClientConnection::new(Arc::clone(config), name).map_err(refused)?;
    begin(stream, tls.into(), until)
}

fn begin(
    stream: Stream,
    mut tls: Connection,
    until: Instant,
) -> io::Result<(LineReader, LineWriter)> {
    stream.prepare()?;
    while tls.is_handshaking() {
        tls.complete_io(&mut Hurried(&stream, until)).map_err(|error| match error.kind() {
            ErrorKind::InvalidData => refused(error),
            ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
            _ => error,
        })?;
    }
    let shared = Arc::new(Shared { tls: Mutex::new(tls), sending: Mutex::default(), stream });
    let raw = vec![0; RAW_BYTES].into_boxed_slice();
    let reader = LineReader {
        shared: Arc::clone(&shared),
        raw,
        left: 0..0,
        until: Some(until),
        is_limited: true,
    };
    Ok((reader, LineWriter(shared)))
}

fn limit(stream: &Stream, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))?;
    stream.set_write_timeout(Some(left))
}

/// Takes out the bytes to send.
fn encrypted(tls: &mut Connection, out: &mut Vec<u8>) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(out)?;
    }
    Ok(())
}

impl LineReader {
    /// Removes the deadline.
    ///
    /// # Errors
    /// Those of the system.
    pub fn take_your_time(&mut self) -> io::Result<()> {
        self.until = None;
        if std::mem::take(&mut self.is_limited) {
            self.shared.stream.set_read_timeout(None)?;
            self.shared.stream.set_write_timeout(Some(SENDING))?;
        }
        Ok(())
    }

    /// Gives the peer a deadline, however it divides its time.
    pub fn hurry(&mut self, until: Instant) {
        self.until = Some(until);
    }
}

/// A connection whose peer has until then, however it divides its time.
struct Hurried<'s>(&'s Stream, Instant);

impl Read for Hurried<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        limit(self.0, self.1)?;
        self.0.read(into)
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        limit(self.0, self.1)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for LineReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut tls = lock(&self.shared.tls);
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            if self.left.is_empty() {
                drop(tls);
                if let Some(until) = self.until {
                    self.is_limited = true;
                    limit(&self.shared.stream, until)?;
                }
                let came = (&self.shared.stream).read(&mut self.raw)?;
                self.left = 0..came;
                if came == 0 {
                    // TLS knows whether this is an end or a cut.
                    lock(&self.shared.tls).read_tls(&mut io::empty())?;
                }
                continue;
            }
            self.left.start += tls.read_tls(&mut &self.raw[self.left.clone()])?;
            tls.process_new_packets().map_err(refused)?;
        }
    }
}

impl Shared {
    /// Sends some of these bytes; the system has them on return.
    fn send(&self, out: &mut Vec<u8>, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut tls = lock(&self.tls);
        let taken = tls.writer().write_vectored(parts)?;
        encrypted(&mut tls, out)?;
        drop(tls);
        let sent = (&self.stream).write_all(out);
        out.clear();
        sent.map(|()| taken)
    }
}

impl LineWriter {
    /// Sends these bytes together, whatever other threads send.
    ///
    /// # Errors
    /// Those of the system.
    pub fn send<const N: usize>(&self, parts: [&[u8]; N]) -> io::Result<()> {
        let mut sending = lock(&self.0.sending);
        let mut parts = parts.map(IoSlice::new);
        let mut left = &mut parts[..];
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            let sent = self.0.send(&mut sending, left)?;
            IoSlice::advance_slices(&mut left, sent);
        }
        Ok(())
    }

    /// Ends the line for both directions at once.
    pub fn cut(&self) {
        self.0.stream.cut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    #[test]
    fn who_sends_a_byte_now_and_then_has_no_more_time() {
        let dir = tempfile::tempdir().unwrap();
        let (config, _) = crate::identity::load(dir.path()).unwrap();
        let (mut slow, stream) = UnixStream::pair().unwrap();
        // The begin of a long message of TLS, byte by byte, until nobody takes more: it would take
        // some minutes.
        let trickle = thread::spawn(move || {
            let message = [22, 3, 1, 0x20, 0].into_iter().chain([0; 0x2000]);
            let pause = Duration::from_millis(20);
            message.into_iter().any(|byte| {
                thread::sleep(pause);
                slow.write_all(&[byte]).is_err()
            })
        });
        let until = Instant::now() + Duration::from_millis(200);
        let done = accept(stream.into(), &config, until);
        assert_eq!(done.err().map(|error| error.kind()), Some(ErrorKind::TimedOut));
        assert!(trickle.join().unwrap(), "it was given up before its end");
    }
}
