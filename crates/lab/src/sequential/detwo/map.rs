//! Where each block is: the map as it is asked, and the one that is all in memory.

use super::clock::{ABSENT, MAIN};
use oblivio_volume::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

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

    /// The places of all blocks, for other threads, where they are in memory.
    fn in_memory(&self) -> Option<Arc<[AtomicU32]>> {
        None
    }
}

/// All in memory, four bytes a block, for reads that need not compare.
pub struct Memory(Arc<[AtomicU32]>);

impl Memory {
    /// So many absent blocks.
    pub fn new(blocks: u64) -> Self {
        Self((0..blocks).map(|_| AtomicU32::new(ABSENT)).collect())
    }
}

impl Map for Memory {
    fn entries(&mut self, ids: &[u64]) -> Result<Vec<Entry>> {
        let place = |id: u64| self.0[id as usize].load(Ordering::Relaxed);
        Ok(ids.iter().map(|&id| Entry { place: place(id), bit: 0 }).collect())
    }

    fn exists(&self, id: u64) -> bool {
        self.0[id as usize].load(Ordering::Relaxed) != ABSENT
    }

    fn note(&mut self, _before: u64, made: &[(u64, Entry)], renewed: &[u64]) -> Result<()> {
        for (id, entry) in made {
            self.0[*id as usize].store(entry.place, Ordering::Release);
        }
        for &id in renewed {
            let place = &self.0[id as usize];
            if place.load(Ordering::Relaxed) != ABSENT {
                place.store(MAIN, Ordering::Release);
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn in_memory(&self) -> Option<Arc<[AtomicU32]>> {
        Some(Arc::clone(&self.0))
    }
}
