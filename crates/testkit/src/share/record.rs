//! [`RecordShare`]: keeps what the server sees, as data.

use oblivio_store::share::{
    AskId, ClientSession, Fetch, HistoryEntry, Number, Object, Result, ScribeTerm, ServerSpot,
    ServerTable, Share, ShareCall, ShareReply,
};
use std::sync::{Mutex, PoisonError};

/// One thing that a server saw: all of a call but the sealed bytes, of which it is the length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are those of the calls")]
pub enum Seen {
    /// An ask came, of this length.
    Ask(AskId, usize),
    /// A client asked for answers of this session; these were the asks and lengths.
    Answers(ClientSession, Vec<(AskId, usize)>),
    /// A client asked for notices; these were the records and lengths.
    Notices(Vec<(Number, usize)>),
    /// A client became the scribe.
    Claim(ScribeTerm),
    /// A batch: the record's length, and what each ask shows.
    Show { number: Number, intent: usize, own: Vec<(AskId, usize)>, fetches: Vec<Fetch> },
    /// The answers of a batch, with their lengths.
    Tell {
        number: Number,
        batch: Number,
        settle: usize,
        notice: usize,
        answers: Vec<(AskId, usize)>,
    },
    /// A table took the place of others.
    Switch { number: Number, merged: usize, table: ServerTable, replaced: Vec<ServerTable> },
    /// Another record.
    Note { number: Number, sealed: usize },
    /// The slots of a batch were added up.
    Sums(Number),
    /// Answers to asks that are in no batch, with their lengths.
    Refuse(Vec<(AskId, usize)>),
    /// A merge read slots.
    Slots { after: Number, spots: Vec<ServerSpot> },
    /// A piece of an object.
    Upload { object: Object, offset: u64, len: usize },
    /// An object was complete.
    Finish(Object, u64),
    /// A checkpoint was named.
    Save { at: Number, keep_from: Number },
    /// Something else was asked for: its name.
    Other(&'static str),
    /// The call before failed.
    Failed,
}

/// A layer that records every call.
pub struct RecordShare<S> {
    inner: S,
    seen: Mutex<Vec<Seen>>,
}

impl<S> RecordShare<S> {
    /// Records the calls to `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner, seen: Mutex::default() }
    }

    /// What was seen since the last `take`, in order.
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The volume below.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: Share> Share for RecordShare<S> {
    fn device(&self) -> u16 {
        self.inner.device()
    }

    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        // What waits is seen when it returns, else before.
        let before = what_comes(&call);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.extend(before);
        drop(seen);
        let done = self.inner.call(call);
        let after = what_goes(&call, &done);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).extend(after);
        done
    }
}

fn what_comes(call: &ShareCall<'_>) -> Vec<Seen> {
    let one = |seen| vec![seen];
    match *call {
        ShareCall::Ask(asks) => {
            asks.iter().map(|ask| Seen::Ask(ask.id, ask.sealed.len())).collect()
        }
        ShareCall::Append { number, entry, .. } => one(appended(number, entry)),
        ShareCall::Sums { number, .. } => one(Seen::Sums(number)),
        ShareCall::Slots { after, spots, .. } => one(Seen::Slots { after, spots: spots.to_vec() }),
        ShareCall::Upload { object, offset, piece, .. } => {
            one(Seen::Upload { object, offset, len: piece.len() })
        }
        ShareCall::Refuse { answers, .. } => {
            one(Seen::Refuse(answers.iter().map(|it| (it.id, it.sealed.len())).collect()))
        }
        ShareCall::Finish { object, len, .. } => one(Seen::Finish(object, len)),
        ShareCall::Save { at, keep_from, .. } => one(Seen::Save { at, keep_from }),
        ShareCall::Parameters => one(Seen::Other("parameters")),
        ShareCall::PutParameters { .. } => one(Seen::Other("put parameters")),
        ShareCall::Renew(_) => one(Seen::Other("renew")),
        ShareCall::Release(_) => one(Seen::Other("release")),
        ShareCall::Durable { .. } => one(Seen::Other("durable")),
        ShareCall::Checkpoint => one(Seen::Other("checkpoint")),
        ShareCall::ReadCheckpoint { .. } => one(Seen::Other("read checkpoint")),
        ShareCall::Status => one(Seen::Other("status")),
        ShareCall::Answers { .. }
        | ShareCall::Notices { .. }
        | ShareCall::Claim { .. }
        | ShareCall::Asks { .. }
        | ShareCall::Records { .. } => Vec::new(),
    }
}

fn appended(number: Number, entry: &HistoryEntry) -> Seen {
    match entry {
        HistoryEntry::Show(show) => Seen::Show {
            number,
            intent: show.intent.len(),
            own: show.own.iter().map(|ask| (ask.id, ask.sealed.len())).collect(),
            fetches: show.fetches.clone(),
        },
        HistoryEntry::Tell(tell) => Seen::Tell {
            number,
            batch: tell.batch,
            settle: tell.settle.len(),
            notice: tell.notice.len(),
            answers: tell.answers.iter().map(|it| (it.id, it.sealed.len())).collect(),
        },
        HistoryEntry::Switch(switch) => Seen::Switch {
            number,
            merged: switch.merged.len(),
            table: switch.table,
            replaced: switch.replaced.clone(),
        },
        HistoryEntry::Note(sealed) => Seen::Note { number, sealed: sealed.len() },
    }
}

fn what_goes(call: &ShareCall<'_>, done: &Result<ShareReply>) -> Option<Seen> {
    match (call, done) {
        (_, Err(_)) => Some(Seen::Failed),
        (ShareCall::Answers { session, .. }, Ok(ShareReply::Answers(answers))) => {
            let answers = answers.iter().map(|it| (it.id, it.sealed.len())).collect();
            Some(Seen::Answers(*session, answers))
        }
        (ShareCall::Notices { .. }, Ok(ShareReply::Notices(notices))) => {
            Some(Seen::Notices(notices.iter().map(|it| (it.number, it.sealed.len())).collect()))
        }
        (ShareCall::Claim { .. }, Ok(ShareReply::Term(term))) => Some(Seen::Claim(*term)),
        (ShareCall::Asks { .. }, Ok(_)) => Some(Seen::Other("asks")),
        (ShareCall::Records { .. }, Ok(_)) => Some(Seen::Other("records")),
        _ => None,
    }
}
