//! [`Posts`]: the calls for whose replies nobody waits, of both lines.

use super::unacknowledged::Unacknowledged;
use oblivio_store::share::{
    HistoryEntry, Number, Object, ScribeTerm, SealedAsk, ShareCall, ShareError,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// The most records that are sent and not accepted yet.
const MOST_RECORDS: usize = 64;
/// The most asks that the server is not known to have. With more, each call waits for its reply.
const MOST_ASKS: usize = 1024;
/// The most bytes of pieces that are sent and not stored yet; a longer piece goes alone.
const MOST_PIECE_BYTES: usize = 8 << 20;

/// What goes out without waiting for the reply to what was sent before.
pub trait Post {
    /// Its call.
    fn call(&self) -> ShareCall<'_>;
}

/// A record of the history.
pub struct PostedRecord {
    pub term: ScribeTerm,
    pub number: Number,
    pub entry: HistoryEntry,
}

impl Post for PostedRecord {
    fn call(&self) -> ShareCall<'_> {
        ShareCall::Append { term: self.term, number: self.number, entry: &self.entry }
    }
}

impl Post for Vec<SealedAsk> {
    fn call(&self) -> ShareCall<'_> {
        ShareCall::Ask(self)
    }
}

/// A piece of a table or a state.
pub struct PostedPiece {
    pub term: ScribeTerm,
    pub object: Object,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl Post for PostedPiece {
    fn call(&self) -> ShareCall<'_> {
        let Self { term, object, offset, ref bytes } = *self;
        ShareCall::Upload { term, object, offset, piece: bytes }
    }
}

/// The numbers of all calls, and those for whose replies nobody waits.
pub struct Posts {
    next: AtomicU64,
    pub records: Unacknowledged<Number, PostedRecord>,
    pub asks: Unacknowledged<(), Vec<SealedAsk>>,
    pub pieces: Unacknowledged<Object, PostedPiece>,
}

impl Posts {
    pub fn new() -> Self {
        Self {
            next: AtomicU64::new(1),
            records: Unacknowledged::new(MOST_RECORDS),
            asks: Unacknowledged::new(MOST_ASKS),
            pieces: Unacknowledged::new(MOST_PIECE_BYTES),
        }
    }

    /// The number of a new call, on any line.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The server has what the call of this number sent, or refused it. False if no call had it.
    pub fn end(&self, number: u64, mut refusal: Option<ShareError>) -> bool {
        self.records.end(number, &mut refusal);
        self.asks.end(number, &mut refusal);
        self.pieces.end(number, &mut refusal);
        number < self.next.load(Ordering::Relaxed)
    }

    /// A line ended: a caller that waits for room makes the next one.
    pub fn lost(&self) {
        self.records.lost();
        self.pieces.lost();
    }
}
