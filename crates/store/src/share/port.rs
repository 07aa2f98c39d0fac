//! The port: all that a shared volume's clients can ask of its server.

use super::call::{ShareCall, ShareReply};
use super::error::Result;
use super::ids::{Arrival, AskNumber, ClientSession, Number, Object, ScribeTerm, ServerSpot};
use super::records::{
    Checkpoint, HistoryEntry, SealedAnswer, SealedAsk, SealedNotice, ShareParameters, Status,
    StoredEntry,
};
use std::sync::Arc;
use std::time::Duration;

/// How long a scribe that says nothing stays the scribe.
pub const LEASE: Duration = Duration::from_secs(2);

/// Tells the time since some moment before.
pub type ShareClock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A volume of many clients.
///
/// A call that was carried out, but whose result was lost, may be made again with the same
/// arguments, except [`Share::put_parameters`] and [`Share::claim`], which then say which version
/// or term there is. What waits returns early once there is something, and else an empty list.
///
/// Calls with a term are the scribe's. Those of older terms are refused, others renew the lease.
/// All methods are one function from calls to replies, so a layer is one function too.
pub trait Share: Send + Sync {
    /// Carries out a call.
    ///
    /// # Errors
    /// See [`ShareError`](super::ShareError).
    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply>;

    /// The number by which the server knows this client's device: its [sessions](ClientSession)
    /// begin with it. A layer has that of what it stands on.
    fn device(&self) -> u16;

    /// The volume's parameters; none before somebody has made the volume.
    fn parameters(&self) -> Result<Option<ShareParameters>> {
        self.call(ShareCall::Parameters)?.parameters()
    }
    /// Stores parameters durably in the place of those of the version `after` (0 for none), and
    /// returns the new version.
    fn put_parameters(&self, after: u64, slot_bytes: u32, header: &[u8]) -> Result<u64> {
        self.call(ShareCall::PutParameters { after, slot_bytes, header })?.version()
    }

    /// Hands in asks. They are durable with their batch; a client repeats them until then. An
    /// implementation on a network may return before the server has them: then a later call has
    /// the error, be it of no asks.
    fn ask(&self, asks: &[SealedAsk]) -> Result<()> {
        self.call(ShareCall::Ask(asks))?.done()
    }
    /// Answers to a session's asks from this one on, in order, as far as they are kept.
    fn answers(
        &self,
        session: ClientSession,
        from: AskNumber,
        wait: Duration,
    ) -> Result<Vec<SealedAnswer>> {
        self.call(ShareCall::Answers { session, from, wait })?.answers()
    }
    /// What batches changed, of the durable records from this one on, in order. Only the newest
    /// ones are kept, in memory: who misses one must take everything for changed.
    fn notices(&self, from: Number, wait: Duration) -> Result<Vec<SealedNotice>> {
        self.call(ShareCall::Notices { from, wait })?.notices()
    }

    /// Becomes the scribe after the one of the term `previous`. The new term is durable.
    fn claim(&self, previous: ScribeTerm) -> Result<ScribeTerm> {
        self.call(ShareCall::Claim { previous })?.term()
    }
    /// Stays the scribe.
    fn renew(&self, term: ScribeTerm) -> Result<()> {
        self.call(ShareCall::Renew(term))?.done()
    }
    /// Lets another client become the scribe at once.
    fn release(&self, term: ScribeTerm) -> Result<()> {
        self.call(ShareCall::Release(term))?.done()
    }
    /// Asks in no batch that came at `from` or later, in that order, and where to go on. A new
    /// scribe begins with 0.
    /// Waiting does not renew the lease: wait for less than [`LEASE`](super::LEASE).
    fn asks(
        &self,
        term: ScribeTerm,
        from: Arrival,
        wait: Duration,
    ) -> Result<(Vec<SealedAsk>, Arrival)> {
        self.call(ShareCall::Asks { term, from, wait })?.asks()
    }

    /// Adds a record to the history, or accepts it again if it is the same. Records are appended
    /// in the order of their numbers, and become durable in that order. A `SealedTell` delivers its
    /// answers. An implementation on a network may return before the server has it: then
    /// [`Share::durable`] or [`Share::sums`] of the record has the error.
    fn append(&self, term: ScribeTerm, number: Number, entry: &HistoryEntry) -> Result<()> {
        self.call(ShareCall::Append { term, number, entry })?.done()
    }
    /// Waits until a record, and all before it, are durable.
    fn durable(&self, term: ScribeTerm, number: Number) -> Result<()> {
        self.call(ShareCall::Durable { term, number })?.done()
    }
    /// Waits until a batch is durable, and returns the sum of each ask's slots, one after the
    /// other. It may be asked again until the batch's answers are durable.
    fn sums(&self, term: ScribeTerm, number: Number) -> Result<Vec<u8>> {
        self.call(ShareCall::Sums { term, number })?.bytes()
    }
    /// Delivers answers to asks that stand in no batch and never will. They are kept for a while,
    /// in memory: a client that misses one asks again.
    fn refuse(&self, term: ScribeTerm, answers: &[SealedAnswer]) -> Result<()> {
        self.call(ShareCall::Refuse { term, answers })?.done()
    }
    /// Reads slots for a merge, one after the other, once all records before `after` are durable.
    /// At most [`MOST_READ_BYTES`](super::MOST_READ_BYTES) at once.
    fn slots(&self, term: ScribeTerm, after: Number, spots: &[ServerSpot]) -> Result<Vec<u8>> {
        self.call(ShareCall::Slots { term, after, spots })?.bytes()
    }

    /// Stores the next piece of an object, or accepts it again if it is the same. An implementation
    /// on a network may return before the server has it: then [`Share::finish`] has the error.
    fn upload(&self, term: ScribeTerm, object: Object, offset: u64, piece: &[u8]) -> Result<()> {
        self.call(ShareCall::Upload { term, object, offset, piece })?.done()
    }
    /// Makes an object of this length durable. It stays until it is named, or a new scribe comes.
    fn finish(&self, term: ScribeTerm, object: Object, len: u64) -> Result<()> {
        self.call(ShareCall::Finish { term, object, len })?.done()
    }
    /// Names a finished checkpoint as the newest one. Records before `keep_from` go, with their
    /// asks and answers; all batches before it must have answers.
    fn save(&self, term: ScribeTerm, at: Number, keep_from: Number) -> Result<()> {
        self.call(ShareCall::Save { term, at, keep_from })?.done()
    }

    /// Records of the history from this one on, at least one and at most about this many bytes.
    fn records(&self, from: Number, most_bytes: usize, wait: Duration) -> Result<Vec<StoredEntry>> {
        self.call(ShareCall::Records { from, most_bytes, wait })?.records()
    }
    /// The newest checkpoint.
    fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        self.call(ShareCall::Checkpoint)?.checkpoint()
    }
    /// A part of the newest checkpoint, which must still be that of `at`.
    fn read_checkpoint(&self, at: Number, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.call(ShareCall::ReadCheckpoint { at, offset, len })?.bytes()
    }

    /// What the server knows.
    fn status(&self) -> Result<Status> {
        self.call(ShareCall::Status)?.status()
    }

    /// Appends a batch, and returns the sum of each ask's slots.
    fn show(&self, term: ScribeTerm, number: Number, entry: &HistoryEntry) -> Result<Vec<u8>> {
        self.append(term, number, entry)?;
        self.sums(term, number)
    }
}

impl<S: Share + ?Sized> Share for &S {
    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        (**self).call(call)
    }

    fn device(&self) -> u16 {
        (**self).device()
    }
}

impl<S: Share + ?Sized> Share for Box<S> {
    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        (**self).call(call)
    }

    fn device(&self) -> u16 {
        (**self).device()
    }
}

impl<S: Share + ?Sized> Share for Arc<S> {
    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        (**self).call(call)
    }

    fn device(&self) -> u16 {
        (**self).device()
    }
}
