//! Newtypes of the sequential engine's numbers.

use crate::Level;

/// A number of flushes: the paper's global access counter g (§6.1), in flushes of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flush(pub u64);

/// A turn of the queue: as many flushes as the queue has buckets. A block's access time is the turn
/// of its write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn(pub u64);

/// A generation of a level, counted from the first that the level ever had. In the last level it is
/// a sweep. Numbers are never reused; places are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation {
    /// The level; 0 is the top.
    pub level: Level,
    /// Its number within the level.
    pub number: u64,
}

/// A bucket of a generation, counted from the lowest address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GenerationBucket {
    /// The generation.
    pub generation: Generation,
    /// Its number within the generation.
    pub index: u64,
}

/// A place for one block in a generation; in the last level, the block's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GenerationSlot {
    /// The generation.
    pub generation: Generation,
    /// Its number within the generation.
    pub index: u64,
}
