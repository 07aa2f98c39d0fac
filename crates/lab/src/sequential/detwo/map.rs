//! Where each block is: the map as it is asked, and the one that is all in memory.

use super::clock::{ABSENT, MAIN};
use oblivio_volume::Result;

/// Where the newest version of a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the holding area, [`MAIN`] or [`ABSENT`].
    pub place: u32,
    /// A bit that tells it from what the main area held before: its number times two, plus the bit.
    /// Only where reads compare.
    pub bit: u16,
}

impl Entry {
    /// Of a block that is nowhere.
    pub const ABSENT: Self = Self { place: ABSENT, bit: 0 };
}

/// The entries of all blocks.
pub trait Map: Send {
    /// The entries of some blocks.
    ///
    /// # Errors
    /// Those of the storage, where it is on one.
    fn entries(&mut self, ids: &[u64]) -> Result<Vec<Entry>>;

    /// Whether a block was written.
    fn exists(&self, id: u64) -> bool;

    /// Writes made these entries, the oldest first, after so many before them; and these blocks
    /// of the main area were renewed, so that what they were written with by then is there.
    ///
    /// # Errors
    /// As [`Self::entries`].
    fn note(&mut self, before: u64, made: &[(u64, Entry)], renewed: &[u64]) -> Result<()>;

    /// Makes durable what of it is on a storage.
    ///
    /// # Errors
    /// As [`Self::entries`].
    fn sync(&mut self) -> Result<()>;
}

/// All in memory, four bytes a block, for reads that need not compare.
pub struct Memory(Vec<u32>);

impl Memory {
    /// So many absent blocks.
    pub fn new(blocks: u64) -> Self {
        Self(vec![ABSENT; blocks as usize])
    }
}

impl Map for Memory {
    fn entries(&mut self, ids: &[u64]) -> Result<Vec<Entry>> {
        Ok(ids.iter().map(|&id| Entry { place: self.0[id as usize], bit: 0 }).collect())
    }

    fn exists(&self, id: u64) -> bool {
        self.0[id as usize] != ABSENT
    }

    fn note(&mut self, _before: u64, made: &[(u64, Entry)], renewed: &[u64]) -> Result<()> {
        for (id, entry) in made {
            self.0[*id as usize] = entry.place;
        }
        for &id in renewed {
            let place = &mut self.0[id as usize];
            if *place != ABSENT {
                *place = MAIN;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}
