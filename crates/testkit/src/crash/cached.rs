//! A disk with a volatile cache: what a program sees, what is durable, and what is between them.

use oblivio_store::{Held, Log, MemoryStore, Result, Slots, StoreError, WriteAt};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Disk {
    /// The view of a running program.
    pub(super) view: MemoryStore,
    /// The state that survives every crash.
    pub(super) durable: MemoryStore,
    /// The writes since the last sync. A never-synced object has an entry, even if only its
    /// creation is pending.
    pub(super) pending: BTreeMap<String, Vec<Pending>>,
    /// The atomic operation that the crash interrupted.
    pub(super) in_flight: Option<InFlight>,
    pub(super) operations: u64,
    pub(super) crash_at: Option<u64>,
    pub(super) crashed: bool,
}

/// A write that is not durable yet.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) offset: u64,
    pub(super) data: Vec<u8>,
}

/// An atomic operation that may have happened or not.
#[derive(Clone, Debug)]
pub(super) enum InFlight {
    Put(String, Vec<u8>),
    Truncate(String, u64),
    /// Each object independently.
    Delete(Vec<String>),
}

impl Disk {
    /// Counts an operation. True if the power fails in it.
    pub(super) fn begin(&mut self) -> bool {
        self.crashed = self.crash_at.is_some_and(|at| self.operations >= at);
        self.operations += 1;
        self.crashed
    }

    pub(super) fn present(&self, object: &str) -> Result<bool> {
        Ok(self.view.len(object)?.is_some())
    }

    pub(super) fn write(&mut self, write: &WriteAt<'_>) -> Result<()> {
        self.view.write(std::slice::from_ref(write))?;
        let pending = self.pending.entry(write.object.to_owned()).or_default();
        if !write.data.is_empty() {
            pending.push(Pending { offset: write.offset, data: write.data.to_vec() });
        }
        Ok(())
    }

    /// Writes zeros. Like any write they may be lost, torn or late.
    pub(super) fn discard(&mut self, &(object, offset, len): &(&str, u64, u64)) -> Result<()> {
        let held = self.view.len(object)?.ok_or_else(|| missing(object))?;
        let len = len.min(held.saturating_sub(offset));
        let zeros = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        self.write(&WriteAt::new(object, offset, &zeros))
    }

    pub(super) fn sync(&mut self, object: &str) -> Result<()> {
        if let Some(pending) = self.pending.remove(object) {
            create(&self.durable, object)?;
            pending.iter().try_for_each(|write| write.apply(&self.durable, object))?;
        }
        Ok(())
    }

    pub(super) fn truncate(&mut self, object: &str, len: u64) -> Result<()> {
        self.view.truncate(object, len)?;
        create(&self.durable, object)?;
        self.durable.truncate(object, len)?;
        let Some(pending) = self.pending.get_mut(object) else { return Ok(()) };
        // Bytes beyond the new end never come back. The rest is as little durable as before.
        pending.retain(|write| write.offset < len);
        for write in pending {
            let room = usize::try_from(len - write.offset).unwrap_or(usize::MAX);
            write.data.truncate(room);
        }
        Ok(())
    }
}

impl Pending {
    pub(super) fn apply(&self, to: &MemoryStore, object: &str) -> Result<()> {
        to.write(&[WriteAt::new(object, self.offset, &self.data)])
    }

    pub(super) fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }
}

/// Creates an empty object, unless it exists.
pub(super) fn create(store: &MemoryStore, object: &str) -> Result<()> {
    store.write(&[WriteAt::new(object, 0, &[])])
}

pub(super) fn missing(object: &str) -> StoreError {
    StoreError::Missing { object: object.to_owned() }
}
