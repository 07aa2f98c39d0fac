//! What the server of a shared volume sees, as data.

use std::collections::BTreeMap;

/// What only a test knows: whether an ask's block was in one of the tables that it read.
pub type Truth = BTreeMap<AskId, bool>;

/// The public numbers of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The logarithm of the number of partitions (P).
    pub log_partitions: u32,
    /// Asks between two turns (r).
    pub turn_asks: u32,
    /// For each level, and last for the base.
    pub tables: Vec<TableSizes>,
    /// Bytes of a slot.
    pub slot_bytes: u64,
    /// Turns after which a merge must be over: until then no further ask is shown.
    pub open_turns: u64,
    /// The most asks that may be shown together.
    pub batch: usize,
}

/// The public numbers of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// Places for blocks, and the slots that a merge reads (C).
    pub capacity: u32,
    /// All slots.
    pub slots: u32,
    /// The reads after which its partition is merged before its turn.
    pub early_reads: u32,
}

/// A slot of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The table's name at the server.
    pub table: u64,
    /// Counted from its begin.
    pub slot: u32,
}

/// Whose ask, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskId {
    /// The client's session.
    pub session: u64,
    /// The running number in it.
    pub seq: u64,
}

/// What an ask shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Which ask.
    pub ask: AskId,
    /// The slots whose sum the server gives.
    pub spots: Vec<Spot>,
}

/// One event at the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A client's ask comes.
    Ask(AskId),
    /// Another client becomes the scribe.
    Claim,
    /// A batch, in its order. It is durable, and its slots are read.
    Show(u64, Vec<Shown>),
    /// The sums of a batch leave.
    Sums(u64),
    /// The answers of a batch: each one's ask and its bytes.
    Tell(u64, Vec<(AskId, u64)>),
    /// A merge reads these slots.
    Turn(Merge),
    /// The last slot of a partition's merge leaves.
    Slots(u32),
    /// A new table of a partition.
    Build {
        /// Whose.
        partition: u32,
        /// Its name.
        table: u64,
    },
    /// It takes the place of others.
    Switch {
        /// The new one.
        table: u64,
        /// Those that are gone.
        replaced: Vec<u64>,
    },
    /// Answers that refuse asks which stand in no batch, as long as others.
    Refuse(Vec<(AskId, u64)>),
    /// A part of the scribe's state is stored: its number.
    Save(u32),
}

/// A merge, as it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// Whose turn it is.
    pub partition: u32,
    /// How high: the number of its [`Sizes::tables`].
    pub height: u32,
    /// The slots, those of a table together.
    pub spots: Vec<Spot>,
}

/// An event with what every event has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in microseconds of a virtual clock; 0 where there is none.
    pub at: u64,
    /// Bytes of its record, sealed parts and tables included.
    pub bytes: u64,
    /// A digest of the sealed parts of a batch's or a merge's record; 0 for others. A repeat has
    /// the same.
    pub seal: u64,
    /// What it is.
    pub what: What,
}

/// A recorded run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareTrace {
    /// The volume's public numbers.
    pub sizes: Sizes,
    /// On a line of constant speed: microseconds from when the last slot that an answer waits for
    /// leaves the server to when the answer is there.
    pub delay: Option<u64>,
    /// In the order in which the server saw them.
    pub events: Vec<Event>,
}

impl Sizes {
    /// The number of partitions (P).
    pub fn partitions(&self) -> u32 {
        1 << self.log_partitions
    }

    /// The height of a base, which is the number of levels (H).
    pub fn base(&self) -> u32 {
        self.tables.len() as u32 - 1
    }

    /// The numbers of a table of this height; none for one that cannot be.
    pub fn of(&self, height: u32) -> Option<&TableSizes> {
        self.tables.get(height as usize)
    }

    /// The partition and the height of a turn, by its running number: partitions follow each
    /// other, and each counts its own turns in binary, one ahead of its neighbour.
    pub fn turn(&self, turn: u64) -> (u32, u32) {
        let partition = turn % u64::from(self.partitions());
        let own = (turn >> self.log_partitions) + partition;
        (partition as u32, own.trailing_zeros().min(self.base()))
    }
}

impl ShareTrace {
    /// Asks that were shown, repeats too.
    pub fn asks(&self) -> usize {
        let shown = |event: &Event| match &event.what {
            What::Show(_, asks) => asks.len(),
            _ => 0,
        };
        self.events.iter().map(shown).sum()
    }
}
