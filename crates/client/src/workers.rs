//! What a scribe's threads do beside its own: they wait for the server. What they bring goes to the
//! scribe as events, in one line.

use crate::inner::{Inner, Own};
use oblivio_engine::pyramid::Home;
use oblivio_engine::pyramid::share::{Batch, Build, Save};
use oblivio_store::share::{
    Arrival, Ask, MOST_READ_BYTES, Number, Object, Result, ShareError, Spot, TableId, Term,
};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, Scope};
use std::time::Duration;

/// How long a call waits for asks at the server: a part of the lease, which it renews.
const LISTEN: Duration = Duration::from_millis(300);
/// Bytes of a piece of a table that is stored.
const PIECE_BYTES: usize = 1 << 20;
/// Jobs that may wait for a thread; the scribe waits with more.
const MOST_JOBS: usize = 64;

/// What came from the server.
pub enum Event {
    /// New asks. None tells that the server is there.
    Asks(Vec<Ask>),
    /// Asks of this client, which the server does not have.
    Own(Vec<Ask>),
    /// The sums of a batch.
    Sums(Batch, Vec<u8>),
    /// The slots of a merge.
    Slots(Home, Vec<u8>),
    /// A table is stored.
    Built(Home),
    /// Something failed.
    Failed(ShareError),
}

/// The sums of a batch that was shown.
pub struct Sums(pub Batch, pub Number);

/// The slots of a merge, once the records before this one are durable.
pub struct Gather(pub Home, pub Number, pub Vec<Spot>);

/// Something to store.
pub enum Put {
    /// A table.
    Build(Build),
    /// A piece of the scribe's state.
    Save(Save),
}

/// The threads' jobs.
pub struct Workers {
    /// Sums of batches, in order.
    pub sums: SyncSender<Sums>,
    /// Slots of merges, in order.
    pub slots: SyncSender<Gather>,
    /// What is stored, in order.
    pub puts: SyncSender<Put>,
}

/// The way of a thread to the scribe of a term.
struct Way<'i> {
    inner: &'i Inner,
    term: Term,
    to: Sender<Event>,
}

impl Way<'_> {
    /// Hands on what came. Whether the thread goes on.
    fn send(&self, came: Result<Option<Event>>) -> bool {
        let failed = came.is_err();
        match came.map_err(Event::Failed) {
            Ok(None) => true,
            Ok(Some(event)) | Err(event) => self.to.send(event).is_ok() && !failed,
        }
    }
}

/// Starts them. They end once the scribe drops what it has here. The last is the way for the
/// client's own asks.
///
/// # Errors
/// When the system has no more threads.
pub fn start<'s, 'i: 's>(
    scope: &'s Scope<'s, 'i>,
    inner: &'i Inner,
    term: Term,
) -> std::io::Result<(Workers, Receiver<Event>, Own)> {
    let (to, events) = channel();
    let way = || Way { inner, term, to: to.clone() };
    let thread = |name: &str| Builder::new().name(format!("share {name}"));
    let listening = way();
    thread("listen").spawn_scoped(scope, move || listen(&listening))?;
    let (sums, jobs) = sync_channel::<Sums>(MOST_JOBS);
    let summing = way();
    thread("sums").spawn_scoped(scope, move || {
        for Sums(batch, number) in jobs {
            let sums = summing.inner.share.sums(summing.term, number);
            if !summing.send(sums.map(|sums| Some(Event::Sums(batch, sums)))) {
                return;
            }
        }
    })?;
    let (slots, jobs) = sync_channel::<Gather>(MOST_JOBS);
    let gathering = way();
    thread("slots").spawn_scoped(scope, move || {
        for job in jobs {
            let home = job.0;
            let slots = gather(&gathering, &job);
            if !gathering.send(slots.map(|slots| Some(Event::Slots(home, slots)))) {
                return;
            }
        }
    })?;
    let (puts, jobs) = sync_channel::<Put>(MOST_JOBS);
    let putting = way();
    thread("tables").spawn_scoped(scope, move || {
        let mut saved = 0;
        for job in jobs {
            let done = match job {
                Put::Build(build) => store(&putting, &build).map(Some),
                Put::Save(save) => save_piece(&putting, &save, &mut saved).map(|()| None),
            };
            if !putting.send(done) {
                return;
            }
        }
    })?;
    let own = move |asks: &[Ask]| to.send(Event::Own(asks.to_vec())).is_ok();
    Ok((Workers { sums, slots, puts }, events, Box::new(own)))
}

/// Hands on the asks that come at the server.
fn listen(way: &Way<'_>) {
    let mut from = Arrival(0);
    loop {
        let came = way.inner.share.asks(way.term, from, LISTEN);
        let asks = came.map(|(asks, next)| {
            from = next;
            Some(Event::Asks(asks))
        });
        if !way.send(asks) {
            return;
        }
    }
}

fn gather(way: &Way<'_>, Gather(_, after, spots): &Gather) -> Result<Vec<u8>> {
    wait_for(way, *after)?;
    let most = (MOST_READ_BYTES / way.inner.keyed.config().slot_bytes()).max(1);
    let mut slots = Vec::new();
    for part in spots.chunks(most) {
        slots.extend(way.inner.share.slots(way.term, *after, part)?);
    }
    Ok(slots)
}

fn store(way: &Way<'_>, build: &Build) -> Result<Event> {
    let object = Object::Table(TableId(build.table.0));
    let mut offset = 0;
    for piece in build.sealed.chunks(PIECE_BYTES) {
        way.inner.share.upload(way.term, object, offset, piece)?;
        offset += piece.len() as u64;
    }
    way.inner.share.finish(way.term, object, offset)?;
    Ok(Event::Built(build.home))
}

/// Waits until the records before this one are durable: they may take another way to the server.
fn wait_for(way: &Way<'_>, after: Number) -> Result<()> {
    let last = after.0.checked_sub(1).map(Number);
    last.map_or(Ok(()), |last| way.inner.share.durable(way.term, last))
}

/// Stores a piece of a state; `saved` are its bytes so far.
fn save_piece(way: &Way<'_>, save: &Save, saved: &mut u64) -> Result<()> {
    let (share, at) = (&way.inner.share, Number(save.number));
    let object = Object::Checkpoint(at);
    if save.piece == 0 {
        *saved = 0;
    }
    let piece = frame(&save.sealed);
    share.upload(way.term, object, *saved, &piece)?;
    *saved += piece.len() as u64;
    if save.piece + 1 < save.of {
        return Ok(());
    }
    share.finish(way.term, object, *saved)?;
    wait_for(way, at)?;
    // Older ones may be kept already, if a scribe before this one named them.
    let first = share.status()?.first;
    share.save(way.term, at, Number(save.forget).max(first))
}

/// A piece with its length before it.
pub fn frame(piece: &[u8]) -> Vec<u8> {
    [&(piece.len() as u32).to_le_bytes()[..], piece].concat()
}
