//! The records that clients and server exchange. The server sees all of them.

use super::tables::TableId;
use crate::pyramid::ids::{Height, Partition, TableHome, TableSpot};
pub use oblivio_privatefs::Session;

/// The running number of an ask in its session, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

/// The running number of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchNumber(pub u64);

/// An ask: sealed for the scribe, of one length whatever it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskRecord {
    /// Whose it is.
    pub session: Session,
    /// Its number there.
    pub seq: Seq,
    /// What it asks.
    pub sealed: Vec<u8>,
}

/// An answer: sealed for its client, of one length whatever it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRecord {
    /// To whom.
    pub session: Session,
    /// To which ask.
    pub seq: Seq,
    /// What it says.
    pub sealed: Vec<u8>,
}

/// The order of some asks, and the slots that each shows. The server gives the sum of each ask's
/// slots back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Show {
    /// Its number.
    pub batch: BatchNumber,
    /// Its record in the history, sealed.
    pub intent: Vec<u8>,
    /// The tables that it shows, by their places.
    pub tables: Vec<(TableHome, TableId)>,
    /// The asks in order, each with a slot of every table of one partition.
    pub asks: Vec<(Session, Seq, Vec<TableSpot>)>,
}

/// The answers of a batch, in its order. The server delivers them together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tell {
    /// The batch.
    pub batch: BatchNumber,
    /// Its record in the history, sealed.
    pub settle: Vec<u8>,
    /// What it changed, sealed for all clients.
    pub notice: Vec<u8>,
    /// One for each ask.
    pub answers: Vec<AnswerRecord>,
}

/// The slots that a merge reads. The server gives them back one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRecord {
    /// The place of the table that it makes.
    pub home: TableHome,
    /// Whose turn it is.
    pub partition: Partition,
    /// How high it merges.
    pub height: Height,
    /// Records of the history that must be durable before the server reads for it.
    pub after: u64,
    /// The tables that it reads, by their places.
    pub tables: Vec<(TableHome, TableId)>,
    /// As many of each table as it has places for blocks.
    pub spots: Vec<TableSpot>,
}

/// The slots of asks of a batch whose sums are not what was stored. The server gives them back one
/// after the other. It has shown them, and which sums are wrong follows from which slots are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotLook {
    /// The batch.
    pub batch: BatchNumber,
    /// The tables that these asks show, by their places.
    pub tables: Vec<(TableHome, TableId)>,
    /// All slots of each of these asks, in the batch's order.
    pub spots: Vec<TableSpot>,
}

/// A slot that is not what was stored there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DamagedSlot {
    /// Its table at the server.
    pub table: TableId,
    /// Its number there, from 0.
    pub slot: u32,
}

/// A new table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// Its name.
    pub table: TableId,
    /// Its place.
    pub home: TableHome,
    /// Its slots, one after the other.
    pub sealed: Vec<u8>,
}

/// A new table takes the place of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The new one.
    pub table: TableId,
    /// Its place.
    pub home: TableHome,
    /// Its record in the history, sealed.
    pub merged: Vec<u8>,
    /// Those that are gone, once all batches that were shown before are answered: a scribe that
    /// takes over shows them again.
    pub replaced: Vec<TableHome>,
    /// The names of those, in the same order.
    pub gone: Vec<TableId>,
}

/// A record of the history, as the server keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The record.
    pub sealed: Vec<u8>,
    /// The asks of a batch, if it shows one.
    pub asks: Vec<AskRecord>,
}

/// A part of the scribe's state. Once the server has all parts, it may forget older records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Save {
    /// The number of the newest record before the state. A later scribe reads those after it.
    pub number: u64,
    /// The number of this part.
    pub piece: u32,
    /// How many parts there are.
    pub of: u32,
    /// Records up to this number, and their answers, may be forgotten once all parts are stored.
    pub forget: u64,
    /// What it says.
    pub sealed: Vec<u8>,
}

/// The running number of a scribe. The server refuses the duties of all but the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// What the scribe wants of the server next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Nothing until an ask or a reply comes.
    Wait,
    /// Store this, and give the sum of each ask's slots to [`super::Scribe::shown`].
    Show(Show),
    /// Deliver these answers.
    Tell(Tell),
    /// Give these slots to [`super::Scribe::gathered`].
    Turn(TurnRecord),
    /// Give these slots to [`super::Scribe::looked`].
    Look(SlotLook),
    /// Store this table; then call [`super::Scribe::built`].
    Build(Build),
    /// Use it instead of the tables that it replaces.
    Switch(Switch),
    /// Deliver these answers to asks that stand in no batch.
    Refuse(Vec<AnswerRecord>),
    /// Store this part of the scribe's state.
    Save(Save),
}
