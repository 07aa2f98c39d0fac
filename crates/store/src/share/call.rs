//! A call of a shared volume as a value, and its reply: what a layer, a recorder or a line needs.

use super::error::{Result, ShareError};
use super::ids::{Arrival, Number, Object, Seq, Session, Spot, Term};
use super::records::{Answer, Ask, Checkpoint, Entry, Notice, Parameters, Status, Stored};
use std::time::Duration;

/// A call; [`Share`](super::Share) has a method for each, which says what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the arguments are those of the methods")]
pub enum Call<'a> {
    Parameters,
    PutParameters { after: u64, slot_bytes: u32, header: &'a [u8] },
    Ask(&'a [Ask]),
    Answers { session: Session, from: Seq, wait: Duration },
    Notices { from: Number, wait: Duration },
    Claim { previous: Term },
    Renew(Term),
    Release(Term),
    Asks { term: Term, from: Arrival, wait: Duration },
    Append { term: Term, number: Number, entry: &'a Entry },
    Durable { term: Term, number: Number },
    Sums { term: Term, number: Number },
    Refuse { term: Term, answers: &'a [Answer] },
    Slots { term: Term, after: Number, spots: &'a [Spot] },
    Upload { term: Term, object: Object, offset: u64, piece: &'a [u8] },
    Finish { term: Term, object: Object, len: u64 },
    Save { term: Term, at: Number, keep_from: Number },
    Records { from: Number, most_bytes: usize, wait: Duration },
    Checkpoint,
    ReadCheckpoint { at: Number, offset: u64, len: usize },
    Status,
}

impl Call<'_> {
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
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the results are those of the methods")]
pub enum Reply {
    Done,
    Parameters(Option<Parameters>),
    Version(u64),
    Answers(Vec<Answer>),
    Notices(Vec<Notice>),
    Term(Term),
    Asks(Vec<Ask>, Arrival),
    Bytes(Vec<u8>),
    Records(Vec<Stored>),
    Checkpoint(Option<Checkpoint>),
    Status(Status),
}

macro_rules! takes {
    ($($name:ident: $kind:ident -> $type:ty;)*) => {
        impl Reply {$(
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
    parameters: Parameters -> Option<Parameters>;
    version: Version -> u64;
    answers: Answers -> Vec<Answer>;
    notices: Notices -> Vec<Notice>;
    term: Term -> Term;
    bytes: Bytes -> Vec<u8>;
    records: Records -> Vec<Stored>;
    checkpoint: Checkpoint -> Option<Checkpoint>;
    status: Status -> Status;
}

impl Reply {
    pub(super) fn done(self) -> Result<()> {
        if self == Self::Done { Ok(()) } else { Err(WRONG) }
    }

    pub(super) fn asks(self) -> Result<(Vec<Ask>, Arrival)> {
        match self {
            Self::Asks(asks, next) => Ok((asks, next)),
            _ => Err(WRONG),
        }
    }
}
