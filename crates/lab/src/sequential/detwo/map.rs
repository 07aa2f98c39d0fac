//! The map of block places: its interface, and the variant in memory.

use super::clock::{ABSENT, MAIN};
use oblivio_volume::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The place of a block's newest version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the holding area, [`MAIN`] or [`ABSENT`].
    pub place: u32,
    /// A bit that distinguishes it from the main area's earlier content: its number times two, plus
    /// the bit. Only where reads compare.
    pub bit: u16,
}

impl Entry {
    /// The entry of an absent block.
    pub const ABSENT: Self = Self { place: ABSENT, bit: 0 };
}

/// The entries of all blocks.
pub trait Map: Send {
    /// The entries of some blocks.
    ///
    /// # Errors
    /// Those of the storage, if the map is on one.
    fn entries(&mut self, ids: &[u64]) -> Result<Vec<Entry>>;

    /// Whether a block was written.
    fn exists(&self, id: u64) -> bool;

    /// Notes entries made by writes, the oldest first, after `before` earlier writes. The main
    /// area's blocks `renewed` now hold their newest versions at that time.
    ///
    /// # Errors
    /// As [`Self::entries`].
    fn note(&mut self, before: u64, made: &[(u64, Entry)], renewed: &[u64]) -> Result<()>;

    /// Makes the map's part on a storage durable.
    ///
    /// # Errors
    /// As [`Self::entries`].
    fn sync(&mut self) -> Result<()>;

    /// The places of all blocks, for other threads, if they are in memory.
    fn in_memory(&self) -> Option<Arc<[AtomicU32]>> {
        None
    }
}

/// All in memory, four bytes a block, for reads that need not compare.
pub struct Memory(Arc<[AtomicU32]>);

impl Memory {
    /// Absent blocks, `blocks` of them.
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
