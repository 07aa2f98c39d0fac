//! Names and numbers that a server of shared volumes sees.

use serde::{Deserialize, Serialize};

/// A client's time with a volume. Its first 16 bits are the number of the client's device: a server
/// lets no other device use the session, and needs no memory for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClientSession(pub u64);

/// Bits of a session's number that its device chooses.
const CHOSEN: u32 = 48;

impl ClientSession {
    /// A session of a device, by random bits, of which the last 48 count.
    #[must_use]
    pub fn of(device: u16, random: u64) -> Self {
        let chosen = random & ((1 << CHOSEN) - 1);
        Self(u64::from(device) << CHOSEN | chosen)
    }

    /// The number of its device.
    #[must_use]
    pub fn device(self) -> u16 {
        (self.0 >> CHOSEN) as u16
    }
}

/// The running number of an ask in its session, from 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct AskNumber(pub u64);

/// An ask of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AskId {
    /// Whose it is.
    pub session: ClientSession,
    /// Its number there.
    pub seq: AskNumber,
}

/// The running number of a scribe; 0 before the first one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ScribeTerm(pub u64);

/// The running number of a record in the history, from 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Number(pub u64);

/// A place in the order in which asks came. It never goes back, also when the server starts anew.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Arrival(pub u64);

/// A table. Each one that is built has a new number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServerTable(pub u64);

/// A slot of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServerSpot {
    /// The table.
    pub table: ServerTable,
    /// The slot, counted from its begin.
    pub slot: u32,
}

/// What a scribe stores in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Object {
    /// A table, which a switch will name.
    Table(ServerTable),
    /// A scribe's state, as of the records before this one.
    Checkpoint(Number),
}
