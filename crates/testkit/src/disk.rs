//! [`CrashDisk`]: a raw disk that loses power.
//!
//! It speaks in bytes and offsets, not in the types of the store crate. So that crate's unit tests
//! can use it, for which those types are not the ones this crate was built with.

use crate::crash::CrashStore;
use oblivio_store::{Held, MemoryStore, Objects, PutMode, ReadAt, Slots, StoreError, WriteAt};
use std::io;

const DISK: &str = "disk";

/// A disk that is one object of a [`CrashStore`], which has the rules of what survives.
#[derive(Debug)]
pub struct CrashDisk {
    store: CrashStore,
}

impl CrashDisk {
    /// A disk on which `content` is durable, as after a restart.
    ///
    /// # Panics
    /// Never: memory takes any content.
    #[must_use]
    pub fn holding(content: &[u8]) -> Self {
        let memory = MemoryStore::new();
        memory.put(DISK, content, PutMode::Replace).expect("memory takes any content");
        Self { store: CrashStore::holding(&memory) }
    }

    /// Fills the buffers from their offsets.
    ///
    /// # Errors
    /// Without power, or beyond the disk's end.
    pub fn read_at(&self, reads: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let reads = reads.iter_mut();
        let mut reads: Vec<_> =
            reads.map(|(offset, buf)| ReadAt { object: DISK, offset: *offset, buf }).collect();
        self.store.read(&mut reads).map_err(plain)
    }

    /// Writes `data`, not yet durable.
    ///
    /// # Errors
    /// Without power.
    pub fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.store.write(&[WriteAt::new(DISK, offset, data)]).map_err(plain)
    }

    /// Makes all that was written durable.
    ///
    /// # Errors
    /// Without power.
    pub fn sync(&self) -> io::Result<()> {
        self.store.sync(&[DISK]).map_err(plain)
    }

    /// As [`CrashStore::operations`].
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.store.operations()
    }

    /// As [`CrashStore::crash_after`].
    pub fn crash_after(&self, operations: u64) {
        self.store.crash_after(operations);
    }

    /// As [`CrashStore::crashed`].
    #[must_use]
    pub fn crashed(&self) -> bool {
        self.store.crashed()
    }

    /// The content of the disk in [`CrashStore::survivors`].
    #[must_use]
    pub fn survivors(&self, seed: u64) -> Vec<u8> {
        content(&self.store.survivors(seed))
    }

    /// The contents of the disk in [`CrashStore::extremes`], with their names.
    #[must_use]
    pub fn extremes(&self) -> Vec<(&'static str, Vec<u8>)> {
        let states = self.store.extremes().into_iter();
        states.map(|(name, state)| (name, content(&state))).collect()
    }
}

/// The disk was durable from the beginning, so it is in every state.
fn content(state: &MemoryStore) -> Vec<u8> {
    let len = state.len(DISK).expect("a valid name").expect("a disk is never deleted");
    let mut bytes = vec![0; len as usize];
    state.read(&mut [ReadAt { object: DISK, offset: 0, buf: &mut bytes }]).expect("it has them");
    bytes
}

fn plain(error: StoreError) -> io::Error {
    io::Error::other(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_synced_may_be_lost() -> io::Result<()> {
        let disk = CrashDisk::holding(b"....");
        disk.write_at(b"1", 0)?;
        disk.sync()?;
        disk.crash_after(disk.operations());
        assert!(disk.write_at(b"2", 3).is_err() && disk.crashed());
        assert!(disk.read_at(&mut [(0, &mut [0])]).is_err());
        let left: Vec<_> = (0..50).map(|seed| disk.survivors(seed)).collect();
        assert!(left.contains(&b"1...".to_vec()) && left.contains(&b"1..2".to_vec()));
        assert_eq!(disk.extremes()[0].1, b"1...");
        Ok(())
    }
}
