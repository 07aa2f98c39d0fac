//! A call of a shared volume as a value, and its reply: what a layer, a recorder or a line needs.

use super::error::{Result, ShareError};
use super::ids::{Arrival, AskNumber, ClientSession, Number, Object, ScribeTerm, ServerSpot};
use super::records::{
    Checkpoint, HistoryEntry, SealedAnswer, SealedAsk, SealedNotice, ShareParameters, Status,
    StoredEntry,
};
use std::time::Duration;

/// A call; [`Share`](super::Share) has a method for each, which says what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the arguments are those of the methods")]
pub enum ShareCall<'a> {
    Parameters,
    PutParameters { after: u64, slot_bytes: u32, header: &'a [u8] },
    Ask(&'a [SealedAsk]),
    Answers { session: ClientSession, from: AskNumber, wait: Duration },
    Notices { from: Number, wait: Duration },
    Claim { previous: ScribeTerm },
    Renew(ScribeTerm),
    Release(ScribeTerm),
    Asks { term: ScribeTerm, from: Arrival, wait: Duration },
    Append { term: ScribeTerm, number: Number, entry: &'a HistoryEntry },
    Durable { term: ScribeTerm, number: Number },
    Sums { term: ScribeTerm, number: Number },
    Refuse { term: ScribeTerm, answers: &'a [SealedAnswer] },
    Slots { term: ScribeTerm, after: Number, spots: &'a [ServerSpot] },
    Upload { term: ScribeTerm, object: Object, offset: u64, piece: &'a [u8] },
    Finish { term: ScribeTerm, object: Object, len: u64 },
    Save { term: ScribeTerm, at: Number, keep_from: Number },
    Records { from: Number, most_bytes: usize, wait: Duration },
    Checkpoint,
    ReadCheckpoint { at: Number, offset: u64, len: usize },
    Status,
}

impl ShareCall<'_> {
    /// How long it may wait at the server for news, if the server is well.
    #[must_use]
    pub fn wait(&self) -> Duration {
        match *self {
            Self::Answers { wait, .. }
            | Self::Notices { wait, .. }
            | Self::Asks { wait, .. }
            | Self::Records { wait, .. } => wait,
            _ => Duration::ZERO,
        }
    }

    /// The same call with this wait, if it waits for news.
    #[must_use]
    pub fn waiting(mut self, time: Duration) -> Self {
        if let Self::Answers { wait, .. }
        | Self::Notices { wait, .. }
        | Self::Asks { wait, .. }
        | Self::Records { wait, .. } = &mut self
        {
            *wait = time;
        }
        self
    }

    /// Whether it may wait for something that others do, or for the disk.
    #[must_use]
    pub fn waits(&self) -> bool {
        let works = matches!(
            self,
            Self::PutParameters { .. }
                | Self::Claim { .. }
                | Self::Durable { .. }
                | Self::Sums { .. }
                | Self::Slots { .. }
                | Self::Finish { .. }
                | Self::Save { .. }
        );
        works || !self.wait().is_zero()
    }

    /// The call that asks for what follows this reply, of one that waits for things that come one
    /// after the other. None if nothing came, or not all up to there.
    #[must_use]
    pub fn after(&self, reply: &ShareReply) -> Option<ShareCall<'static>> {
        match (*self, reply) {
            (Self::Answers { session, from, wait }, ShareReply::Answers(came)) => {
                let next = AskNumber(came.last()?.id.seq.0.checked_add(1)?);
                let whole = next.0.checked_sub(from.0) == Some(came.len() as u64);
                whole.then_some(ShareCall::Answers { session, from: next, wait })
            }
            (Self::Notices { wait, .. }, ShareReply::Notices(came)) => {
                let from = Number(came.last()?.number.0.checked_add(1)?);
                Some(ShareCall::Notices { from, wait })
            }
            (Self::Asks { term, wait, .. }, ShareReply::Asks(came, next)) => {
                let some = !came.is_empty();
                some.then_some(ShareCall::Asks { term, from: *next, wait })
            }
            _ => None,
        }
    }
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the results are those of the methods")]
pub enum ShareReply {
    Done,
    Parameters(Option<ShareParameters>),
    Version(u64),
    Answers(Vec<SealedAnswer>),
    Notices(Vec<SealedNotice>),
    Term(ScribeTerm),
    Asks(Vec<SealedAsk>, Arrival),
    Bytes(Vec<u8>),
    Records(Vec<StoredEntry>),
    Checkpoint(Option<Checkpoint>),
    Status(Status),
}

macro_rules! takes {
    ($($name:ident: $kind:ident -> $type:ty;)*) => {
        impl ShareReply {$(
            pub(super) fn $name(self) -> Result<$type> {
                match self {
                    Self::$kind(value) => Ok(value),
                    _ => Err(WRONG),
                }
            }
        )*}
    };
}

const WRONG: ShareError = ShareError::invalid("the reply belongs to another call");

takes! {
    parameters: Parameters -> Option<ShareParameters>;
    version: Version -> u64;
    answers: Answers -> Vec<SealedAnswer>;
    notices: Notices -> Vec<SealedNotice>;
    term: Term -> ScribeTerm;
    bytes: Bytes -> Vec<u8>;
    records: Records -> Vec<StoredEntry>;
    checkpoint: Checkpoint -> Option<Checkpoint>;
    status: Status -> Status;
}

impl ShareReply {
    pub(super) fn done(self) -> Result<()> {
        if self == Self::Done { Ok(()) } else { Err(WRONG) }
    }

    pub(super) fn asks(self) -> Result<(Vec<SealedAsk>, Arrival)> {
        match self {
            Self::Asks(asks, next) => Ok((asks, next)),
            _ => Err(WRONG),
        }
    }
}
