//! Newtypes of the pyramid engine's numbers.

pub use oblivio_privatefs::Name;

/// The running number of an ask, in the order of all batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u64);

/// A partition: the blocks whose labels begin with its number. The store sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub u32);

/// Where a table lies. The next table may take the place of one that is gone. The store sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableHome(pub u32);

/// A slot of a table, counted from its begin. The store sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableSlot(pub u32);

/// A slot of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableSpot {
    /// The table's place.
    pub home: TableHome,
    /// Its slot.
    pub slot: TableSlot,
}

/// The height of a table in its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Height {
    /// A level: 0 is renewed most often, each further one half as often.
    Level(u32),
    /// The largest table, below all levels.
    Base,
}

impl From<crate::BlockId> for Name {
    fn from(id: crate::BlockId) -> Self {
        Self { owner: [0; 16], index: id.0 }
    }
}
