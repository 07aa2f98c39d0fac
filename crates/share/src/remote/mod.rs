//! [`RemoteShare`]: a shared volume at a server, over lines that may break.
//!
//! Asks, answers and batches have one line, what is long another one. A line that breaks is made
//! again, and calls are made again on it: what a call may do twice it does once. Records that were
//! sent and not accepted are sent again before all else, in their order. Records, asks and pieces
//! of objects go out without waiting for the reply to those before. With a call for asks, answers
//! or notices the server goes on until its wait is over: they come as they are there.

mod link;
mod posts;
mod streams;
mod unacknowledged;

use crate::address::Token;
use crate::devices::{number, secret_hash};
use crate::error::Result as ServerResult;
use crate::identity;
use crate::message::Lane;
use crate::stream::Stream;
#[cfg(test)]
pub(crate) use link::greet;
use link::{Dialing, Link};
use oblivio_store::share::{Result, SealedAsk, Share, ShareCall, ShareError, ShareReply};
use posts::{Post, PostedPiece, PostedRecord, Posts};
use rustls::ClientConfig;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use streams::Streams;
use unacknowledged::Unacknowledged;

/// The first pause before another attempt. Each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long a connection may take to be made.
const CONNECTING: Duration = Duration::from_secs(10);
/// How often a waiting client looks whether its line is broken.
const LOOKING: Duration = Duration::from_millis(50);

/// How patient a client is.
#[derive(Clone, Copy, Debug)]
pub struct LinePatience {
    /// How long a reply may take, beyond what the call waits for.
    pub reply: Duration,
    /// How long a call is tried again while the server cannot be reached.
    pub outage: Duration,
}

impl Default for LinePatience {
    fn default() -> Self {
        Self { reply: Duration::from_secs(20), outage: Duration::from_secs(30) }
    }
}

/// Makes a connection to a server.
pub type Dial = Box<dyn Fn() -> io::Result<UnixStream> + Send + Sync>;

/// A shared volume at a server.
pub struct RemoteShare {
    token: Token,
    config: Arc<ClientConfig>,
    dial: Dialing,
    patience: LinePatience,
    lines: [Mutex<Option<Arc<Link>>>; 2],
    posts: Arc<Posts>,
    streams: Streams,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lane_of(call: &ShareCall<'_>) -> Lane {
    match call {
        ShareCall::Slots { .. }
        | ShareCall::Upload { .. }
        | ShareCall::Finish { .. }
        | ShareCall::Save { .. }
        | ShareCall::Records { .. }
        | ShareCall::ReadCheckpoint { .. } => Lane::Bulk,
        _ => Lane::Foreground,
    }
}

impl RemoteShare {
    /// The volume of a token. Connects at the first call.
    ///
    /// # Errors
    /// When TLS cannot be used.
    pub fn new(token: Token, patience: LinePatience) -> ServerResult<Self> {
        Self::by(token, patience, Box::new(link::dial))
    }

    /// As [`Self::new`]; `dial` makes its connections, such as pairs of sockets whose other ends a
    /// [`ServerDoor`](crate::ServerDoor) admits.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn over(token: Token, patience: LinePatience, dial: Dial) -> ServerResult<Self> {
        Self::by(token, patience, Box::new(move |_, _| dial().map(Stream::from)))
    }

    fn by(token: Token, patience: LinePatience, dial: Dialing) -> ServerResult<Self> {
        let config = identity::pinned(token.fingerprint)?;
        let (lines, posts) = (Default::default(), Arc::new(Posts::new()));
        let streams = Streams::default();
        Ok(Self { token, config, dial, patience, lines, posts, streams })
    }

    /// The line of a lane, which is made if there is none.
    fn link(&self, lane: Lane) -> Result<Arc<Link>> {
        let mut slot = lock(&self.lines[lane as usize]);
        if let Some(link) = slot.as_ref().filter(|link| link.lives()) {
            return Ok(Arc::clone(link));
        }
        let posts = &self.posts;
        let link = Link::connect(&self.token, &self.config, &self.dial, (lane, posts), CONNECTING)?;
        match lane {
            Lane::Foreground => {
                post_again(&link, &posts.records)?;
                post_again(&link, &posts.asks)?;
            }
            Lane::Bulk => post_again(&link, &posts.pieces)?,
        }
        let link = Arc::new(link);
        *slot = Some(Arc::clone(&link));
        Ok(link)
    }

    /// Sends something, and does not wait until the server has it.
    fn send<K: Ord, T: Post>(
        &self,
        lane: Lane,
        sent: &Unacknowledged<K, T>,
        key: (K, usize),
        what: T,
    ) -> Result<ShareReply> {
        let number = self.posts.number();
        let what = sent.begin(number, key, what);
        // On a line that is made now, it has been sent already; once more changes nothing.
        match self.link(lane).and_then(|link| link.post(number, &what.call())) {
            Ok(()) | Err(ShareError::Line(_)) => Ok(ShareReply::Done),
            Err(error) => {
                sent.end(number, &mut None);
                Err(error)
            }
        }
    }

    /// Waits until there is room for what is to be sent. A line that broke is made again, which
    /// sends again what was not acknowledged.
    fn wait_for_room<K: Ord, T>(
        &self,
        lane: Lane,
        sent: &Unacknowledged<K, T>,
        size: usize,
    ) -> Result<()> {
        let begin = Instant::now();
        while !sent.wait_for_room(size, LOOKING) {
            match self.link(lane) {
                Err(ShareError::Line(error)) if begin.elapsed() > self.patience.outage => {
                    return Err(ShareError::Line(error));
                }
                Ok(_) | Err(ShareError::Line(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends asks. If the server refuses them, the next call says so.
    fn ask(&self, asks: &[SealedAsk]) -> Result<ShareReply> {
        if let Some(error) = self.posts.asks.refusal(&()) {
            return Err(error);
        }
        if asks.is_empty() {
            return Ok(ShareReply::Done);
        }
        if !self.posts.asks.has_room(asks.len()) {
            return self.persist(&ShareCall::Ask(asks));
        }
        // While the server is away, a caller gets that error, and asks again.
        self.link(Lane::Foreground)?;
        self.send(Lane::Foreground, &self.posts.asks, ((), asks.len()), asks.to_vec())
    }

    /// Sends a record. The wait for its durability ends with the reason if it is refused.
    fn append(&self, record: PostedRecord) -> Result<ShareReply> {
        let number = record.number;
        self.wait_for_room(Lane::Foreground, &self.posts.records, 1)?;
        // What was said of an earlier one of this number does not count any more.
        self.posts.records.forget(|other| *other == number);
        self.send(Lane::Foreground, &self.posts.records, (number, 1), record)
    }

    /// Sends a piece. The end of its object says whether it is stored.
    fn upload(&self, piece: PostedPiece) -> Result<ShareReply> {
        let (object, size) = (piece.object, piece.bytes.len());
        self.wait_for_room(Lane::Bulk, &self.posts.pieces, size)?;
        self.send(Lane::Bulk, &self.posts.pieces, (object, size), piece)
    }

    /// Makes a call until it is made.
    fn persist(&self, call: &ShareCall<'_>) -> Result<ShareReply> {
        let begin = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let within = self.patience.reply + call.wait();
            let link = || self.link(lane_of(call));
            let done = match self.streams.call(call, self.patience.reply, &link) {
                Some(done) => done,
                None => link().and_then(|link| link.call(call, within)),
            };
            // These do something else when they are made twice: the caller looks what became of
            // them.
            let once = matches!(call, ShareCall::PutParameters { .. } | ShareCall::Claim { .. });
            match done {
                Err(ShareError::Line(error)) => {
                    if once || begin.elapsed() + pause > self.patience.outage {
                        return Err(ShareError::Line(error));
                    }
                    thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                done => return done,
            }
        }
    }
}

/// Sends on a new line what was not acknowledged on the one before.
fn post_again<K: Ord, T: Post>(link: &Link, sent: &Unacknowledged<K, T>) -> Result<()> {
    sent.again().into_iter().try_for_each(|(number, what)| link.post(number, &what.call()))
}

impl Share for RemoteShare {
    fn device(&self) -> u16 {
        number(&secret_hash(&self.token.secret))
    }

    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        match call {
            ShareCall::Ask(asks) => self.ask(asks),
            ShareCall::Append { term, number, entry } => {
                self.append(PostedRecord { term, number, entry: entry.clone() })
            }
            ShareCall::Durable { number, .. } | ShareCall::Sums { number, .. } => {
                // Its record's reply came first.
                let done = self.persist(&call);
                self.posts.records.refusal(&number).map_or(done, Err)
            }
            ShareCall::Upload { term, object, offset, piece } => {
                self.upload(PostedPiece { term, object, offset, bytes: piece.into() })
            }
            ShareCall::Finish { object, .. } => {
                // The replies of its pieces came first.
                let done = self.persist(&call);
                self.posts.pieces.refusal(&object).map_or(done, Err)
            }
            ShareCall::Claim { .. } => {
                // Another scribe's are of no use.
                self.posts.records.forget(|_| true);
                self.posts.pieces.forget(|_| true);
                self.persist(&call)
            }
            _ => self.persist(&call),
        }
    }
}

impl Drop for RemoteShare {
    fn drop(&mut self) {
        for line in &self.lines {
            if let Some(link) = lock(line).take() {
                link.cut();
            }
        }
    }
}
