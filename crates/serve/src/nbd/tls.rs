//! A connection within TLS: one thread reads from it while another writes.
//!
//! The state of TLS stands behind a lock that is held only for work in memory, never during a wait
//! for the network. So a client that sends without reading holds up only its replies, as without
//! TLS. A second lock keeps the order of sent bytes, and only writers wait for it. The reader sends
//! nothing: messages of TLS itself may go out before the next reply.

use super::listen::Conn;
use super::replies;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Limit of the bytes read from the network at once.
const RAW_BYTES: usize = 64 << 10;
/// How long the last message may take; the client may not read any more.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The state that both directions share.
struct Line {
    tls: Mutex<ServerConnection>,
    sending: Mutex<Sending>,
}

struct Sending {
    conn: Hurried,
    /// Ciphertext to send.
    out: Vec<u8>,
}

/// The receiving direction.
pub struct TlsReader {
    line: Arc<Line>,
    conn: Hurried,
    raw: Box<[u8]>,
    /// The part of `raw` that TLS has not seen.
    left: std::ops::Range<usize>,
}

/// The sending direction.
pub struct TlsWriter(Arc<Line>);

/// Ends TLS in order when both directions have ended.
pub struct Goodbye(Arc<Line>);

/// Both directions at once, for the negotiation.
pub struct Both<'l>(pub &'l mut TlsReader, pub &'l mut TlsWriter);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Performs the handshake with a client, until the deadline `until`, which stays in force until
/// [`Both::take_your_time`].
///
/// # Errors
/// Those of the connection; `TimedOut` if it takes too long; `InvalidData` with the reason if the
/// client does not speak TLS, has no acceptable certificate or does not accept ours.
pub fn accept(
    conn: &Conn,
    config: &Arc<ServerConfig>,
    until: Instant,
) -> io::Result<(TlsReader, TlsWriter, Goodbye)> {
    let mut tls = ServerConnection::new(Arc::clone(config)).map_err(refused)?;
    let mut hurried = Hurried::new(conn, until);
    while tls.is_handshaking() {
        tls.complete_io(&mut hurried).map_err(|error| match error.kind() {
            ErrorKind::InvalidData => refused(error),
            _ => error,
        })?;
    }
    let sending = Sending { conn: hurried.clone(), out: Vec::new() };
    let line = Arc::new(Line { tls: Mutex::new(tls), sending: Mutex::new(sending) });
    let raw = vec![0; RAW_BYTES].into_boxed_slice();
    let reader = TlsReader { line: Arc::clone(&line), conn: hurried, raw, left: 0..0 };
    Ok((reader, TlsWriter(Arc::clone(&line)), Goodbye(line)))
}

fn refused(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("no TLS with it: {why}"))
}

impl Line {
    /// Sends the last message of TLS, if the client reads.
    fn last_word(&self) {
        // A reply being sent waits for the client; nothing can overtake it.
        let Ok(mut sending) = self.sending.try_lock() else { return };
        let mut tls = lock(&self.tls);
        tls.send_close_notify();
        let encrypted = encrypted(&mut tls, &mut sending.out);
        drop(tls);
        if encrypted.is_ok() {
            sending.conn.hurry(Instant::now() + LAST_WORD);
            let _ = sending.send();
        }
    }
}

/// Takes out the bytes to send.
fn encrypted(tls: &mut ServerConnection, out: &mut Vec<u8>) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(out)?;
    }
    Ok(())
}

impl Sending {
    fn send(&mut self) -> io::Result<()> {
        let sent = self.conn.write_all(&self.out);
        self.out.clear();
        sent
    }
}

impl Read for TlsReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut tls = lock(&self.line.tls);
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            if self.left.is_empty() {
                drop(tls);
                let came = self.conn.read(&mut self.raw)?;
                self.left = 0..came;
                if came == 0 {
                    // TLS knows whether this is an end or a cut.
                    lock(&self.line.tls).read_tls(&mut io::empty())?;
                }
                continue;
            }
            self.left.start += tls.read_tls(&mut &self.raw[self.left.clone()])?;
            let understood = tls.process_new_packets();
            drop(tls);
            if let Err(error) = understood {
                self.line.last_word();
                return Err(refused(error));
            }
        }
    }
}

impl Write for TlsWriter {
    /// Sends some of these bytes; the system has them on return.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut sending = lock(&self.0.sending);
        let mut tls = lock(&self.0.tls);
        let taken = tls.writer().write(bytes)?;
        encrypted(&mut tls, &mut sending.out)?;
        drop(tls);
        sending.send()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ciphertext must be sent in order, so it may have to wait.
impl replies::ToClient for TlsWriter {}

impl Goodbye {
    /// Tells the client that nothing more comes.
    pub fn say(self) {
        self.0.last_word();
    }
}

impl TlsReader {
    /// Whether the client has shown an acceptable certificate.
    pub fn is_known(&self) -> bool {
        lock(&self.line.tls).peer_certificates().is_some()
    }
}

impl Both<'_> {
    /// Removes the client's time limit.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn take_your_time(&mut self) -> io::Result<()> {
        lock(&self.1.0.sending).conn.until = None;
        self.0.conn.take_your_time()
    }
}

impl Read for Both<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Both<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection with a deadline, however the client divides its time.
#[derive(Clone)]
pub struct Hurried {
    conn: Conn,
    until: Option<Instant>,
}

impl Hurried {
    /// A connection with this deadline.
    pub fn new(conn: &Conn, until: Instant) -> Self {
        Self { conn: conn.clone(), until: Some(until) }
    }

    /// Removes the client's time limit.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn take_your_time(&mut self) -> io::Result<()> {
        self.until = None;
        self.conn.set_patience(None)?;
        self.conn.set_write_patience(None)
    }

    /// Sets this deadline, unless an earlier one is set.
    fn hurry(&mut self, until: Instant) {
        self.until = Some(self.until.map_or(until, |before| before.min(until)));
    }

    /// The time that is left, if it is limited.
    fn left(&self) -> io::Result<Option<Duration>> {
        let Some(until) = self.until else { return Ok(None) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(late()) } else { Ok(Some(left)) }
    }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the client takes too long")
}

/// The system reports a timeout with the error of a non-blocking socket.
fn in_time(done: io::Result<usize>) -> io::Result<usize> {
    done.map_err(|error| if error.kind() == ErrorKind::WouldBlock { late() } else { error })
}

impl Read for Hurried {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.conn.set_patience(Some(left))?;
        }
        in_time(self.conn.read(into))
    }
}

impl Write for Hurried {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.conn.set_write_patience(Some(left))?;
        }
        in_time(self.conn.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
