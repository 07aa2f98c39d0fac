//! [`RemoteShare`]: a shared volume at a server, over lines that may break.
//!
//! Asks, answers and batches have one line, what is long another one. A line that breaks is made
//! again, and calls are made again on it: what a call may do twice it does once. Records that were
//! sent and not accepted are sent again before all else, in their order. Records, asks and pieces
//! of objects go out without waiting for the reply to those before.

mod asks;
mod link;
mod uploads;

use crate::address::Token;
use crate::devices::{number, secret_hash};
use crate::error::Result as ServerResult;
use crate::identity;
use crate::message::Lane;
use crate::stream::Stream;
use asks::Asks;
#[cfg(test)]
pub(crate) use link::greet;
use link::{Dialing, Link};
use oblivio_store::share::{Ask, Call, Entry, Number, Reply, Result, Share, ShareError, Term};
use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use uploads::{Piece, Uploads};

/// The first pause before another attempt. Each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long a connection may take to be made.
const CONNECTING: Duration = Duration::from_secs(10);
/// How often a waiting client looks whether its line is broken.
const LOOKING: Duration = Duration::from_millis(50);
/// The most records that are sent and not accepted yet.
const MOST_SENT: usize = 64;
/// The most bytes of pieces that are sent and not stored yet; a longer piece goes alone.
const MOST_UPLOADED: usize = 8 << 20;

/// How patient a client is.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long a reply may take, beyond what the call waits for.
    pub reply: Duration,
    /// How long a call is tried again while the server cannot be reached.
    pub outage: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { reply: Duration::from_secs(20), outage: Duration::from_secs(30) }
    }
}

/// Makes a connection to a server.
pub type Dial = Box<dyn Fn() -> io::Result<UnixStream> + Send + Sync>;

/// A record that was sent.
struct Sent {
    term: Term,
    entry: Arc<Entry>,
}

/// Records that were sent and not accepted, and those that were refused.
#[derive(Default)]
struct Outbox {
    sent: BTreeMap<Number, Sent>,
    refused: BTreeMap<Number, ShareError>,
}

#[derive(Default)]
struct Shared {
    outbox: Mutex<Outbox>,
    accepted: Condvar,
    asks: Mutex<Asks>,
    uploads: Mutex<Uploads>,
    stored: Condvar,
}

/// A shared volume at a server.
pub struct RemoteShare {
    token: Token,
    config: Arc<ClientConfig>,
    dial: Dialing,
    patience: Patience,
    lines: [Mutex<Option<Arc<Link>>>; 2],
    shared: Arc<Shared>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lane_of(call: &Call<'_>) -> Lane {
    match call {
        Call::Slots { .. }
        | Call::Upload { .. }
        | Call::Finish { .. }
        | Call::Save { .. }
        | Call::Records { .. }
        | Call::ReadCheckpoint { .. } => Lane::Bulk,
        _ => Lane::Foreground,
    }
}

impl RemoteShare {
    /// The volume of a token. Connects at the first call.
    ///
    /// # Errors
    /// When TLS cannot be used.
    pub fn new(token: Token, patience: Patience) -> ServerResult<Self> {
        Self::by(token, patience, Box::new(link::dial))
    }

    /// As [`Self::new`]; `dial` makes its connections, such as pairs of sockets whose other ends a
    /// [`Door`](crate::Door) admits.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn over(token: Token, patience: Patience, dial: Dial) -> ServerResult<Self> {
        Self::by(token, patience, Box::new(move |_, _| dial().map(Stream::from)))
    }

    fn by(token: Token, patience: Patience, dial: Dialing) -> ServerResult<Self> {
        let config = identity::pinned(token.fingerprint)?;
        let (lines, shared) = (Default::default(), Arc::default());
        Ok(Self { token, config, dial, patience, lines, shared })
    }

    /// The line of a lane, which is made if there is none.
    fn link(&self, lane: Lane) -> Result<Arc<Link>> {
        let mut slot = lock(&self.lines[lane as usize]);
        if let Some(link) = slot.as_ref().filter(|link| link.lives()) {
            return Ok(Arc::clone(link));
        }
        let link = Link::connect(&self.token, &self.config, &self.dial, lane, CONNECTING)?;
        match lane {
            Lane::Foreground => self.send_again(&link)?,
            Lane::Bulk => self.upload_again(&link)?,
        }
        let link = Arc::new(link);
        *slot = Some(Arc::clone(&link));
        Ok(link)
    }

    /// Sends what was not accepted on the line before.
    fn send_again(&self, link: &Link) -> Result<()> {
        let sent: Vec<(Number, Term, Arc<Entry>)> = {
            let outbox = lock(&self.shared.outbox);
            outbox.sent.iter().map(|(n, it)| (*n, it.term, Arc::clone(&it.entry))).collect()
        };
        sent.into_iter()
            .try_for_each(|(number, term, entry)| self.post(link, term, number, &entry))?;
        let asks = lock(&self.shared.asks).again();
        asks.into_iter().try_for_each(|(number, asks)| self.post_asks(link, number, &asks))
    }

    fn post_asks(&self, link: &Link, number: u64, asks: &[Ask]) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        link.post(&Call::Ask(asks), move |done| match done {
            // They are sent again on the next line.
            Err(ShareError::Line(_)) => {}
            done => lock(&shared.asks).ended(number, done.err()),
        })
    }

    /// Sends asks, and does not wait until the server has them. If it refuses them, the next call
    /// says so.
    fn ask(&self, asks: &[Ask]) -> Result<Reply> {
        if let Some(error) = lock(&self.shared.asks).refusal() {
            return Err(error);
        }
        if asks.is_empty() {
            return Ok(Reply::Done);
        }
        if !lock(&self.shared.asks).has_room(asks.len()) {
            return self.persist(&Call::Ask(asks));
        }
        let link = self.link(Lane::Foreground)?;
        let number = lock(&self.shared.asks).begin(asks);
        match self.post_asks(&link, number, asks) {
            Ok(()) | Err(ShareError::Line(_)) => Ok(Reply::Done),
            Err(error) => {
                lock(&self.shared.asks).ended(number, None);
                Err(error)
            }
        }
    }

    fn post(&self, link: &Link, term: Term, number: Number, entry: &Entry) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        link.post(&Call::Append { term, number, entry }, move |done| {
            let mut outbox = lock(&shared.outbox);
            match done {
                // It is sent again on the next line.
                Err(ShareError::Line(_)) => {}
                Err(error) => {
                    outbox.sent.remove(&number);
                    outbox.refused.insert(number, error);
                }
                Ok(_) => drop(outbox.sent.remove(&number)),
            }
            shared.accepted.notify_all();
        })
    }

    /// Waits until there is room for what is to be sent. A line that broke is made again, which
    /// sends again what was not accepted.
    fn wait_for_room<T>(
        &self,
        lane: Lane,
        (sent, changed): (&Mutex<T>, &Condvar),
        has_room: impl Fn(&T) -> bool,
    ) -> Result<()> {
        let begin = Instant::now();
        loop {
            let sent = lock(sent);
            if has_room(&sent) {
                return Ok(());
            }
            drop(changed.wait_timeout(sent, LOOKING));
            match self.link(lane) {
                Err(ShareError::Line(error)) if begin.elapsed() > self.patience.outage => {
                    return Err(ShareError::Line(error));
                }
                Ok(_) | Err(ShareError::Line(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a record, and does not wait until the server has it.
    fn append(&self, term: Term, number: Number, entry: &Entry) -> Result<Reply> {
        let shared = &self.shared;
        let has_room = |outbox: &Outbox| outbox.sent.len() < MOST_SENT;
        self.wait_for_room(Lane::Foreground, (&shared.outbox, &shared.accepted), has_room)?;
        {
            let mut outbox = lock(&self.shared.outbox);
            outbox.refused.remove(&number);
            outbox.sent.insert(number, Sent { term, entry: Arc::new(entry.clone()) });
        }
        // On a line that is made now, it has been sent already; once more changes nothing.
        let posted =
            self.link(Lane::Foreground).and_then(|link| self.post(&link, term, number, entry));
        match posted {
            Ok(()) | Err(ShareError::Line(_)) => Ok(Reply::Done),
            Err(error) => {
                lock(&self.shared.outbox).sent.remove(&number);
                Err(error)
            }
        }
    }

    /// Sends what is not stored on the line before.
    fn upload_again(&self, link: &Link) -> Result<()> {
        let again = lock(&self.shared.uploads).again();
        again.into_iter().try_for_each(|(number, piece)| self.post_piece(link, number, &piece))
    }

    fn post_piece(&self, link: &Link, number: u64, piece: &Piece) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let Piece { term, object, offset, ref bytes } = *piece;
        link.post(&Call::Upload { term, object, offset, piece: bytes }, move |done| {
            match done {
                // It is sent again on the next line.
                Err(ShareError::Line(_)) => {}
                done => lock(&shared.uploads).ended(number, done.err()),
            }
            shared.stored.notify_all();
        })
    }

    /// Sends a piece, and does not wait until it is stored. The end of its object says whether it
    /// is.
    fn upload(&self, piece: Piece) -> Result<Reply> {
        let shared = &self.shared;
        let has_room = |uploads: &Uploads| uploads.has_room(piece.bytes.len(), MOST_UPLOADED);
        self.wait_for_room(Lane::Bulk, (&shared.uploads, &shared.stored), has_room)?;
        let number = lock(&self.shared.uploads).begin(piece.clone());
        let posted = self.link(Lane::Bulk).and_then(|link| self.post_piece(&link, number, &piece));
        match posted {
            Ok(()) | Err(ShareError::Line(_)) => Ok(Reply::Done),
            Err(error) => {
                lock(&self.shared.uploads).ended(number, None);
                Err(error)
            }
        }
    }

    /// Why a record was refused, if it was.
    fn refusal(&self, number: Number) -> Option<ShareError> {
        lock(&self.shared.outbox).refused.remove(&number)
    }

    /// Makes a call until it is made.
    fn persist(&self, call: &Call<'_>) -> Result<Reply> {
        let begin = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let within = self.patience.reply + call.wait();
            let done = self.link(lane_of(call)).and_then(|link| link.call(call, within));
            // These do something else when they are made twice: the caller looks what became of
            // them.
            let once = matches!(call, Call::PutParameters { .. } | Call::Claim { .. });
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

impl Share for RemoteShare {
    fn device(&self) -> u16 {
        number(&secret_hash(&self.token.secret))
    }

    fn call(&self, call: Call<'_>) -> Result<Reply> {
        match call {
            Call::Ask(asks) => self.ask(asks),
            Call::Append { term, number, entry } => self.append(term, number, entry),
            Call::Durable { number, .. } | Call::Sums { number, .. } => {
                // Its record's reply came first.
                let done = self.persist(&call);
                self.refusal(number).map_or(done, Err)
            }
            Call::Upload { term, object, offset, piece } => {
                self.upload(Piece { term, object, offset, bytes: piece.into() })
            }
            Call::Finish { object, .. } => {
                // The replies of its pieces came first.
                let done = self.persist(&call);
                lock(&self.shared.uploads).refusal(object).map_or(done, Err)
            }
            Call::Claim { .. } => {
                *lock(&self.shared.outbox) = Outbox::default();
                lock(&self.shared.uploads).forget();
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
