//! One connection to a server, from its greeting to its end: calls go out, replies come in any
//! order.

use super::posts::Posts;
use crate::address::Token;
use crate::frame::{Frame, FrameKind, MOST_FIRST_FRAME, MOST_FRAME};
use crate::identity;
use crate::line::{self, LineReader, LineWriter};
use crate::message::{Hello, Lane, VERSION, call_frame, pack, read_failure, read_reply};
use crate::stream::Stream;
use oblivio_store::share::{Result, ShareCall, ShareError, ShareReply};
use rustls::ClientConfig;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How a connection is made, within a time.
pub type Dialing = Box<dyn Fn(&Token, Duration) -> io::Result<Stream> + Send + Sync>;

/// A reply to a call, and whether it is the last one.
pub type Came = (Result<ShareReply>, bool);

struct Replies {
    /// Who waits for replies, by the number of the call.
    waiting: BTreeMap<u64, SyncSender<Came>>,
    /// Why the line ended.
    ended: Option<ErrorKind>,
}

impl Replies {
    fn expect_line(&self) -> Result<()> {
        self.ended.map_or(Ok(()), |kind| Err(broken(kind.into())))
    }
}

/// A connection.
pub struct Link {
    line: LineWriter,
    replies: Arc<Mutex<Replies>>,
    posts: Arc<Posts>,
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
) -> Result<(LineReader, LineWriter)> {
    let made = line::connect(stream, config, identity::server_name(), until);
    let (mut reader, line) = made.map_err(|error| match error.kind() {
        ErrorKind::InvalidData => {
            ShareError::Denied(format!("the server is not the one that made the token ({error})"))
        }
        _ => broken(error),
    })?;
    let volume = token.address.volume.clone();
    let hello = Hello { version: VERSION, volume, secret: *token.secret, lane };
    let hello =
        Frame { kind: FrameKind::Hello, number: 0, head: pack(&hello), body: Cow::default() };
    hello.send(&line).map_err(broken)?;
    let frame = Frame::read(&mut reader, MOST_FIRST_FRAME).map_err(broken)?;
    match frame.ok_or_else(|| broken(ErrorKind::UnexpectedEof.into()))? {
        Frame { kind: FrameKind::Welcome, .. } => {}
        Frame { kind: FrameKind::Failure, head, .. } => return Err(read_failure(&head)),
        _ => return Err(ShareError::Denied("it does not greet as a server does".into())),
    }
    reader.take_your_time().map_err(broken)?;
    Ok((reader, line))
}

impl Link {
    /// Connects, and is admitted, within a time. Replies for which nobody waits go to the posts.
    ///
    /// # Errors
    /// `Denied` for a server with another certificate, and for a device that it does not admit;
    /// `Line` for all that may pass.
    pub fn connect(
        token: &Token,
        config: &Arc<ClientConfig>,
        dial: &Dialing,
        (lane, posts): (Lane, &Arc<Posts>),
        within: Duration,
    ) -> Result<Self> {
        let until = Instant::now() + within;
        let stream = dial(token, within).map_err(broken)?;
        let (reader, line) = greet(stream, token, config, lane, until)?;
        let replies = Arc::new(Mutex::new(Replies { waiting: BTreeMap::new(), ended: None }));
        let link = Self { line: line.clone(), replies, posts: Arc::clone(posts) };
        let (replies, posts) = (Arc::clone(&link.replies), Arc::clone(posts));
        let read = move || take_replies(&replies, &posts, reader, &line);
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

    fn send(&self, number: u64, call: &ShareCall<'_>) -> Result<()> {
        call_frame(number, call).send(&self.line).map_err(|error| {
            self.line.cut();
            broken(error)
        })
    }

    /// Makes a call, and returns its number and where its replies come. Of those that nobody takes
    /// this many are kept: with more, the rest is lost, and the end of the channel says so.
    pub fn begin(&self, call: &ShareCall<'_>, most: usize) -> Result<(u64, Receiver<Came>)> {
        let (sender, receiver) = sync_channel(most);
        let number = self.posts.number();
        {
            let mut replies = lock(&self.replies);
            replies.expect_line()?;
            replies.waiting.insert(number, sender);
        }
        self.send(number, call)?;
        Ok((number, receiver))
    }

    /// Nobody waits for replies to this call any more.
    pub fn forget(&self, number: u64) {
        lock(&self.replies).waiting.remove(&number);
    }

    /// Makes a call, and waits for its only reply at most this long. What takes longer ends the
    /// line.
    pub fn call(&self, call: &ShareCall<'_>, within: Duration) -> Result<ShareReply> {
        match self.begin(call, 1)?.1.recv_timeout(within) {
            Ok((done, true)) => done,
            Ok((_, false)) => Err(self.give_up(ErrorKind::InvalidData)),
            Err(_) => Err(self.give_up(ErrorKind::TimedOut)),
        }
    }

    /// Ends the line, for this reason.
    pub fn give_up(&self, why: ErrorKind) -> ShareError {
        self.line.cut();
        broken(why.into())
    }

    /// Makes a call of the posts: nobody waits for its reply.
    pub fn post(&self, number: u64, call: &ShareCall<'_>) -> Result<()> {
        lock(&self.replies).expect_line()?;
        self.send(number, call)
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

/// Hands replies to those who wait, and others to the posts, until the line ends.
fn take_replies(
    replies: &Mutex<Replies>,
    posts: &Posts,
    mut reader: LineReader,
    line: &LineWriter,
) {
    let why = loop {
        match Frame::read(&mut reader, MOST_FRAME) {
            Ok(Some(frame)) => {
                let (number, is_last) = (frame.number, frame.kind != FrameKind::Part);
                let done = read_reply(frame);
                let mut held = lock(replies);
                if let Some(caller) = held.waiting.get(&number) {
                    // Never a wait here: others have replies on this line.
                    let is_taken = caller.try_send((done, is_last)).is_ok();
                    if is_last || !is_taken {
                        held.waiting.remove(&number);
                    }
                    continue;
                }
                drop(held);
                // What failed with its line is sent again on the next one. Else it is a post's, or
                // of a call that nobody made.
                let is_of_line = matches!(done, Err(ShareError::Line(_)));
                if !is_of_line && !posts.end(number, done.err()) {
                    break ErrorKind::InvalidData;
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
    for (_, caller) in waiting {
        drop(caller.try_send((Err(ShareError::Line(why.into())), true)));
    }
    posts.lost();
}
