//! One connection to a server, from its greeting to its end: calls go out, replies come in any
//! order.

use crate::address::Token;
use crate::frame::{Frame, Kind, MOST_FIRST_FRAME, MOST_FRAME};
use crate::identity;
use crate::line::{self, Reader, Writer};
use crate::message::{Hello, Lane, VERSION, call_frame, pack, read_failure, read_reply};
use crate::stream::Stream;
use oblivio_store::share::{Call, Reply, Result, ShareError};
use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How a connection is made, within a time.
pub type Dialing = Box<dyn Fn(&Token, Duration) -> io::Result<Stream> + Send + Sync>;

/// Who waits for a reply.
enum Waiting {
    Caller(Sender<Result<Reply>>),
    /// Nobody: this is called with it.
    Noted(Box<dyn FnOnce(Result<Reply>) + Send>),
}

struct Replies {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Why the line ended.
    ended: Option<ErrorKind>,
}

/// A connection.
pub struct Link {
    line: Writer,
    replies: Arc<Mutex<Replies>>,
}

fn lock(replies: &Mutex<Replies>) -> MutexGuard<'_, Replies> {
    replies.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken(error: io::Error) -> ShareError {
    ShareError::Line(error)
}

/// Says who we are, and is admitted.
pub(crate) fn greet(
    stream: Stream,
    token: &Token,
    config: &Arc<ClientConfig>,
    lane: Lane,
    until: Instant,
) -> Result<(Reader, Writer)> {
    let made = line::connect(stream, config, identity::server_name(), until);
    let (mut reader, line) = made.map_err(|error| match error.kind() {
        ErrorKind::InvalidData => {
            ShareError::Denied(format!("the server is not the one that made the token ({error})"))
        }
        _ => broken(error),
    })?;
    let volume = token.address.volume.clone();
    let hello = Hello { version: VERSION, volume, secret: *token.secret, lane };
    Frame { kind: Kind::Hello, number: 0, head: pack(&hello), body: Vec::new() }
        .write(&mut line.clone())
        .map_err(broken)?;
    let frame = Frame::read(&mut reader, MOST_FIRST_FRAME).map_err(broken)?;
    match frame.ok_or_else(|| broken(ErrorKind::UnexpectedEof.into()))? {
        Frame { kind: Kind::Welcome, .. } => {}
        Frame { kind: Kind::Failure, head, .. } => return Err(read_failure(&head)),
        _ => return Err(ShareError::Denied("it does not greet as a server does".into())),
    }
    reader.take_your_time().map_err(broken)?;
    Ok((reader, line))
}

impl Link {
    /// Connects, and is admitted, within a time.
    ///
    /// # Errors
    /// `Denied` for a server with another certificate, and for a device that it does not admit;
    /// `Line` for all that may pass.
    pub fn connect(
        token: &Token,
        config: &Arc<ClientConfig>,
        dial: &Dialing,
        lane: Lane,
        within: Duration,
    ) -> Result<Self> {
        let until = Instant::now() + within;
        let stream = dial(token, within).map_err(broken)?;
        let (reader, line) = greet(stream, token, config, lane, until)?;
        let replies = Replies { next: 1, waiting: BTreeMap::new(), ended: None };
        let link = Self { line: line.clone(), replies: Arc::new(Mutex::new(replies)) };
        let replies = Arc::clone(&link.replies);
        let read = move || take_replies(&replies, reader, &line);
        thread::Builder::new().name("share replies".into()).spawn(read).map_err(broken)?;
        Ok(link)
    }

    /// Whether it has not ended.
    pub fn lives(&self) -> bool {
        lock(&self.replies).ended.is_none()
    }

    /// Ends it.
    pub fn cut(&self) {
        self.line.cut();
    }

    fn send(&self, call: &Call<'_>, waiting: Waiting) -> Result<()> {
        let number = {
            let mut replies = lock(&self.replies);
            if let Some(kind) = replies.ended {
                return Err(broken(kind.into()));
            }
            let number = replies.next;
            replies.next += 1;
            replies.waiting.insert(number, waiting);
            number
        };
        let sent = self.line.clone().write_all(&call_frame(number, call).encode());
        sent.map_err(|error| {
            self.line.cut();
            broken(error)
        })
    }

    /// Makes a call, and waits for its reply at most this long. What takes longer ends the line.
    pub fn call(&self, call: &Call<'_>, within: Duration) -> Result<Reply> {
        let (sender, receiver): (_, Receiver<Result<Reply>>) = channel();
        self.send(call, Waiting::Caller(sender))?;
        match receiver.recv_timeout(within) {
            Ok(done) => done,
            Err(_) => {
                self.line.cut();
                Err(broken(ErrorKind::TimedOut.into()))
            }
        }
    }

    /// Makes a call, and has its result noted once it is there.
    pub fn post(
        &self,
        call: &Call<'_>,
        noted: impl FnOnce(Result<Reply>) + Send + 'static,
    ) -> Result<()> {
        self.send(call, Waiting::Noted(Box::new(noted)))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.line.cut();
    }
}

/// Connects over the network.
pub fn dial(token: &Token, within: Duration) -> io::Result<Stream> {
    let address = (&*token.address.host, token.address.port);
    let mut last = io::Error::from(ErrorKind::NotFound);
    for place in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, within) {
            Ok(stream) => return Ok(stream.into()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Hands replies to those who wait, until the line ends.
fn take_replies(replies: &Mutex<Replies>, mut reader: Reader, line: &Writer) {
    let why = loop {
        match Frame::read(&mut reader, MOST_FRAME) {
            Ok(Some(frame)) => {
                let waiting = lock(replies).waiting.remove(&frame.number);
                match waiting {
                    Some(Waiting::Caller(caller)) => drop(caller.send(read_reply(frame))),
                    Some(Waiting::Noted(noted)) => noted(read_reply(frame)),
                    // Of a call that nobody made.
                    None => break ErrorKind::InvalidData,
                }
            }
            Ok(None) => break ErrorKind::UnexpectedEof,
            Err(error) => break error.kind(),
        }
    };
    line.cut();
    let waiting = {
        let mut replies = lock(replies);
        replies.ended = Some(why);
        std::mem::take(&mut replies.waiting)
    };
    for (_, waiting) in waiting {
        let lost = Err(ShareError::Line(why.into()));
        match waiting {
            Waiting::Caller(caller) => drop(caller.send(lost)),
            Waiting::Noted(noted) => noted(lost),
        }
    }
}
