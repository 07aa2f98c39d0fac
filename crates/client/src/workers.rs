//! What a scribe's threads do beside its own: they wait for the server. What they bring goes to the
//! scribe as events, in one line.

use crate::inner::{Inner, Own};
use crate::queue::JobQueue;
use oblivio_engine::pyramid::TableHome;
use oblivio_engine::pyramid::share::{BatchNumber, Build, Save};
use oblivio_store::share::{
    Arrival, MOST_READ_BYTES, Number, Object, Result, ScribeTerm, SealedAsk, ServerSpot,
    ServerTable, ShareError,
};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread::{Builder, Scope};
use std::time::Duration;

/// How long a call waits for asks at the server: a part of the lease, which it renews.
const LISTEN: Duration = Duration::from_millis(300);
/// Bytes of a piece of a table that is stored.
const PIECE_BYTES: usize = 1 << 20;
/// Jobs that may wait for a thread; the scribe waits with more.
const MOST_JOBS: usize = 64;
/// Batches whose sums are fetched at the same time: as many as may be without answers.
const SUMS: usize = 8;
/// Merges whose slots are fetched at the same time, and tables that are stored at the same time. A
/// turn comes after 64 asks, so several do within a round trip.
const MERGES: usize = 4;

/// What came from the server.
pub enum ServerEvent {
    /// New asks. None tells that the server is there.
    Asks(Vec<SealedAsk>),
    /// Asks of this client, which the server does not have.
    Own(Vec<SealedAsk>),
    /// The sums of a batch.
    Sums(BatchNumber, Vec<u8>),
    /// Slots, one after the other.
    Slots(SlotReader, Vec<u8>),
    /// A table is stored.
    Built(TableHome),
    /// Something failed.
    Failed(ShareError),
}

/// The sums of a batch that was shown.
pub struct Sums(pub BatchNumber, pub Number);

/// Who reads slots one by one.
#[derive(Clone, Copy, Debug)]
pub enum SlotReader {
    /// A merge into this place.
    Merge(TableHome),
    /// This batch, of which a sum is not what was stored.
    Batch(BatchNumber),
}

/// Slots, once the records before this one are durable.
pub struct SlotRead(pub SlotReader, pub Number, pub Vec<ServerSpot>);

/// Something to store.
pub enum PendingPut {
    /// A table.
    Build(Build),
    /// A piece of the scribe's state.
    Save(Save),
}

/// The threads' jobs.
pub struct Workers {
    /// Sums of batches, in order.
    pub sums: SyncSender<Sums>,
    /// Slots of merges and batches, in order.
    pub slots: SyncSender<SlotRead>,
    /// What is stored, in order.
    pub puts: SyncSender<PendingPut>,
}

/// The way of a thread to the scribe of a term.
struct Way<'i> {
    inner: &'i Inner,
    term: ScribeTerm,
    to: Sender<ServerEvent>,
}

impl Way<'_> {
    /// Hands on what came. Whether the thread goes on.
    fn send(&self, came: Result<Option<ServerEvent>>) -> bool {
        let failed = came.is_err();
        match came.map_err(ServerEvent::Failed) {
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
#[expect(clippy::disallowed_methods, reason = "the threads of a scribe's term")]
pub fn start<'s, 'i: 's>(
    scope: &'s Scope<'s, 'i>,
    inner: &'i Inner,
    term: ScribeTerm,
) -> std::io::Result<(Workers, Receiver<ServerEvent>, Own)> {
    let (to, events) = channel();
    let way = || Way { inner, term, to: to.clone() };
    let thread = |name: &str| Builder::new().name(format!("share {name}"));
    let listening = way();
    thread("listen").spawn_scoped(scope, move || listen(&listening))?;
    let (sums, queue) = JobQueue::new(MOST_JOBS);
    let queue = Arc::new(queue);
    for _ in 0..SUMS {
        let (way, queue) = (way(), Arc::clone(&queue));
        thread("sums").spawn_scoped(scope, move || add_up(&way, &queue))?;
    }
    let (slots, queue) = JobQueue::new(MOST_JOBS);
    let queue = Arc::new(queue);
    for _ in 0..MERGES {
        let (way, queue) = (way(), Arc::clone(&queue));
        thread("slots").spawn_scoped(scope, move || gather_all(&way, &queue))?;
    }
    let puts = start_puts(scope, &way)?;
    let own = move |asks: &[SealedAsk]| to.send(ServerEvent::Own(asks.to_vec())).is_ok();
    Ok((Workers { sums, slots, puts }, events, Box::new(own)))
}

/// Starts the threads that store: tables at the same time, pieces of a state one after the other.
#[expect(clippy::disallowed_methods, reason = "the threads of a scribe's term")]
fn start_puts<'s, 'i: 's>(
    scope: &'s Scope<'s, 'i>,
    way: &dyn Fn() -> Way<'i>,
) -> std::io::Result<SyncSender<PendingPut>> {
    let thread = |name: &str| Builder::new().name(format!("share {name}"));
    let (builds, tables) = JobQueue::new(MOST_JOBS);
    let tables = Arc::new(tables);
    for _ in 0..MERGES {
        let (way, tables) = (way(), Arc::clone(&tables));
        thread("tables").spawn_scoped(scope, move || {
            while let Some((_, build)) = tables.take()
                && way.send(store(&way, &build).map(Some))
            {}
        })?;
    }
    let (saves, pieces) = JobQueue::new(MOST_JOBS);
    let saving = way();
    thread("state").spawn_scoped(scope, move || {
        let mut saved = 0;
        while let Some((_, save)) = pieces.take()
            && saving.send(save_piece(&saving, &save, &mut saved).map(|()| None))
        {}
    })?;
    let (puts, jobs) = JobQueue::new(MOST_JOBS);
    thread("puts").spawn_scoped(scope, move || {
        while let Some((_, put)) = jobs.take() {
            let gone = match put {
                PendingPut::Build(build) => builds.send(build).is_err(),
                PendingPut::Save(save) => saves.send(save).is_err(),
            };
            if gone {
                return;
            }
        }
    })?;
    Ok(puts)
}

/// Fetches the sums of batches. The scribe takes them in the order of the batches.
fn add_up(way: &Way<'_>, queue: &JobQueue<Sums>) {
    while let Some((place, Sums(batch, number))) = queue.take() {
        let sums = way.inner.share.sums(way.term, number);
        if !queue.in_turn(place, || way.send(sums.map(|sums| Some(ServerEvent::Sums(batch, sums)))))
        {
            return;
        }
    }
}

/// Fetches the slots of merges.
fn gather_all(way: &Way<'_>, queue: &JobQueue<SlotRead>) {
    while let Some((_, job)) = queue.take() {
        let slots = gather(way, &job);
        if !way.send(slots.map(|slots| Some(ServerEvent::Slots(job.0, slots)))) {
            return;
        }
    }
}

/// Hands on the asks that come at the server.
fn listen(way: &Way<'_>) {
    let mut from = Arrival(0);
    loop {
        let came = way.inner.share.asks(way.term, from, LISTEN);
        let asks = came.map(|(asks, next)| {
            from = next;
            Some(ServerEvent::Asks(asks))
        });
        if !way.send(asks) {
            return;
        }
    }
}

fn gather(way: &Way<'_>, SlotRead(_, after, spots): &SlotRead) -> Result<Vec<u8>> {
    let most = (MOST_READ_BYTES / way.inner.keyed.config().slot_bytes()).max(1);
    let mut slots = Vec::new();
    for part in spots.chunks(most) {
        let read = || way.inner.share.slots(way.term, *after, part);
        let read = match read() {
            // The records before it go another way, and are still on it.
            Err(ShareError::Gap(_)) => wait_for(way, *after).and_then(|()| read()),
            done => done,
        };
        slots.extend(read?);
    }
    Ok(slots)
}

fn store(way: &Way<'_>, build: &Build) -> Result<ServerEvent> {
    let object = Object::Table(ServerTable(build.table.0));
    let mut offset = 0;
    for piece in build.sealed.chunks(PIECE_BYTES) {
        way.inner.share.upload(way.term, object, offset, piece)?;
        offset += piece.len() as u64;
    }
    way.inner.share.finish(way.term, object, offset)?;
    Ok(ServerEvent::Built(build.home))
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
