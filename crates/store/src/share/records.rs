//! What clients and server exchange. The server sees all of it, but for what is sealed.

use super::ids::{AskId, Number, ScribeTerm, ServerSpot, ServerTable};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An ask, sealed for the scribe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedAsk {
    /// Whose it is.
    pub id: AskId,
    /// What it asks.
    pub sealed: Vec<u8>,
}

/// An answer, sealed for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedAnswer {
    /// The ask.
    pub id: AskId,
    /// What it says.
    pub sealed: Vec<u8>,
}

/// The slots that an ask shows. The server gives their sum (exclusive or) back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fetch {
    /// The ask.
    pub ask: AskId,
    /// Its slots.
    pub spots: Vec<ServerSpot>,
}

/// The order of a batch of asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedShow {
    /// The record of the history.
    pub intent: Vec<u8>,
    /// Asks whose bytes come along: the scribe's own, and those that the server does not have any
    /// more. All others wait at the server. A batch that is shown again may leave them out.
    pub own: Vec<SealedAsk>,
    /// All asks in order.
    pub fetches: Vec<Fetch>,
}

/// The answers of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedTell {
    /// The record that showed the batch.
    pub batch: Number,
    /// The record of the history.
    pub settle: Vec<u8>,
    /// What the batch changed, for all clients.
    pub notice: Vec<u8>,
    /// One for each ask of the batch.
    pub answers: Vec<SealedAnswer>,
}

/// A new table takes the place of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSwitch {
    /// The record of the history.
    pub merged: Vec<u8>,
    /// The new one. It is stored as a whole before.
    pub table: ServerTable,
    /// Those that go.
    pub replaced: Vec<ServerTable>,
}

/// An entry of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryEntry {
    /// Some asks in order.
    Show(SealedShow),
    /// The answers of a batch.
    Tell(SealedTell),
    /// A new table.
    Switch(SealedSwitch),
    /// A record that concerns clients only.
    Note(Vec<u8>),
}

impl HistoryEntry {
    /// The record of the history, sealed.
    pub fn sealed(&self) -> &[u8] {
        match self {
            Self::Show(show) => &show.intent,
            Self::Tell(tell) => &tell.settle,
            Self::Switch(switch) => &switch.merged,
            Self::Note(sealed) => sealed,
        }
    }
}

/// A record of the history, as a later scribe reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// Its number.
    pub number: Number,
    /// The record.
    pub sealed: Vec<u8>,
    /// The asks of a batch in order, if it shows one.
    pub asks: Vec<SealedAsk>,
}

/// What the batch changed whose answers this record has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedNotice {
    /// The number of the record.
    pub number: Number,
    /// What it says.
    pub sealed: Vec<u8>,
}

/// What a volume's clients must know before they have anything else. Not secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareParameters {
    /// The version; 1 for the first.
    pub version: u64,
    /// Bytes of a slot. It never changes.
    pub slot_bytes: u32,
    /// What the server need not understand.
    pub header: Vec<u8>,
}

/// A scribe's state that is stored as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The first record that it does not know.
    pub at: Number,
    /// Its bytes.
    pub len: u64,
}

/// What a server knows of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The newest scribe.
    pub term: ScribeTerm,
    /// How long its lease lasts; none if it ended.
    pub lease_left: Option<Duration>,
    /// Asks that wait for their batch.
    pub pending: u64,
    /// Batches without answers.
    pub unanswered: u64,
    /// The first record that is kept.
    pub first: Number,
    /// The number of the next record.
    pub next: Number,
    /// Tables that are in use.
    pub tables: u64,
    /// Bytes of tables, finished or not, of the history and of checkpoints.
    pub used_bytes: u64,
    /// The most of them, if there is a quota.
    pub quota_bytes: Option<u64>,
}
