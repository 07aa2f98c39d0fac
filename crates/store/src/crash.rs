//! [`CrashStore`]: a disk with a volatile cache, and its possible states after a power cut.
//!
//! It keeps two memories: the view of a running program, and the state that survives every crash.
//! Between them are the pending writes of each object. A crash keeps any part of them, in any
//! order. `put`, `delete` and `truncate` are durable on return, so they go to both; one in flight
//! may have happened or not. A test runs a program once to count its operations. It runs it again
//! for each of them with [`CrashStore::crash_after`], and opens the states of
//! [`CrashStore::survivors`] and [`CrashStore::extremes`].

mod survive;

use crate::{MemoryStore, PutMode, ReadAt, Result, Store, StoreError, WriteAt, check_name};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A disk in memory that loses, tears and reorders unsynced writes.
///
/// Every call that changes anything (a write or discard of many ranges, a sync, put, truncate or
/// delete) is one operation. It promises no order within itself, so a cut inside it leaves every
/// state that a cut between its parts leaves.
#[derive(Debug, Default)]
pub struct CrashStore {
    disk: Mutex<Disk>,
}

#[derive(Debug, Default)]
struct Disk {
    /// The view of a running program.
    view: MemoryStore,
    /// The state that survives every crash.
    durable: MemoryStore,
    /// The writes since the last sync. A never-synced object has an entry, even if only its
    /// creation is pending.
    pending: BTreeMap<String, Vec<Pending>>,
    /// The atomic operation that the crash interrupted.
    in_flight: Option<InFlight>,
    operations: u64,
    crash_at: Option<u64>,
    crashed: bool,
}

/// A write that is not durable yet.
#[derive(Clone, Debug)]
struct Pending {
    offset: u64,
    data: Vec<u8>,
}

/// An atomic operation that may have happened or not.
#[derive(Clone, Debug)]
enum InFlight {
    Put(String, Vec<u8>),
    Truncate(String, u64),
    /// Each object independently.
    Delete(Vec<String>),
}

impl CrashStore {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A disk on which all of `content` is durable, as after a restart.
    #[must_use]
    pub fn holding(content: &MemoryStore) -> Self {
        let (view, durable) = (content.snapshot(), content.snapshot());
        Self { disk: Mutex::new(Disk { view, durable, ..Disk::default() }) }
    }

    /// Mutating operations begun since the disk was made.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.disk().operations
    }

    /// Fails the power after `operations` mutating operations (counted since the disk was made), in
    /// the next one. From then on every call fails.
    pub fn crash_after(&self, operations: u64) {
        self.disk().crash_at = Some(operations);
    }

    /// Fails the power now, between two operations.
    pub fn crash(&self) {
        self.disk().crashed = true;
    }

    /// Whether the power has failed.
    #[must_use]
    pub fn crashed(&self) -> bool {
        self.disk().crashed
    }

    /// A state that a crash may leave now, chosen by `seed`: the same seed and history give the
    /// same state.
    #[must_use]
    pub fn survivors(&self, seed: u64) -> MemoryStore {
        survive::by_chance(&self.disk(), seed)
    }

    /// The extreme states that a crash may leave now, with their names: nothing pending survived,
    /// everything did, lengths without data, the oldest write over the newest.
    #[must_use]
    pub fn extremes(&self) -> Vec<(&'static str, MemoryStore)> {
        survive::extremes(&self.disk())
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk, if it has power.
    fn powered(&self, object: &str) -> Result<MutexGuard<'_, Disk>> {
        let disk = self.disk();
        if disk.crashed { Err(crashed(object)) } else { Ok(disk) }
    }
}

impl Disk {
    /// Counts an operation. True if the power fails in it.
    fn begin(&mut self) -> bool {
        self.crashed = self.crash_at.is_some_and(|at| self.operations >= at);
        self.operations += 1;
        self.crashed
    }

    fn present(&self, object: &str) -> Result<bool> {
        Ok(self.view.len(object)?.is_some())
    }

    fn write(&mut self, write: &WriteAt<'_>) -> Result<()> {
        self.view.write(std::slice::from_ref(write))?;
        let pending = self.pending.entry(write.object.to_owned()).or_default();
        if !write.data.is_empty() {
            pending.push(Pending { offset: write.offset, data: write.data.to_vec() });
        }
        Ok(())
    }

    /// Writes zeros. Like any write they may be lost, torn or late.
    fn discard(&mut self, &(object, offset, len): &(&str, u64, u64)) -> Result<()> {
        let held = self.view.len(object)?.ok_or_else(|| StoreError::missing(object))?;
        let len = len.min(held.saturating_sub(offset));
        let zeros = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        self.write(&WriteAt::new(object, offset, &zeros))
    }

    fn sync(&mut self, object: &str) -> Result<()> {
        if let Some(pending) = self.pending.remove(object) {
            create(&self.durable, object)?;
            pending.iter().try_for_each(|write| write.apply(&self.durable, object))?;
        }
        Ok(())
    }

    fn truncate(&mut self, object: &str, len: u64) -> Result<()> {
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
    fn apply(&self, to: &MemoryStore, object: &str) -> Result<()> {
        to.write(&[WriteAt::new(object, self.offset, &self.data)])
    }

    fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }
}

impl Store for CrashStore {
    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        let object = reads.first().map_or("", |read| read.object);
        self.powered(object)?.view.read(reads)
    }

    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        let object = writes.first().map_or("", |write| write.object);
        let mut disk = self.powered(object)?;
        let cut = disk.begin();
        // The writes of an interrupted call are pending like others: any part of them may survive.
        writes.iter().try_for_each(|write| disk.write(write))?;
        if cut { Err(crashed(object)) } else { Ok(()) }
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        let mut disk = self.powered("")?;
        for object in objects {
            if !disk.present(object)? {
                return Err(StoreError::missing(object));
            }
        }
        if disk.begin() {
            return Err(crashed(objects.first().unwrap_or(&"")));
        }
        objects.iter().try_for_each(|object| disk.sync(object))
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        self.powered(object)?.view.len(object)
    }

    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        let mut disk = self.powered(object)?;
        if disk.present(object)? && mode == PutMode::IfAbsent {
            return Err(StoreError::Exists { object: object.to_owned() });
        }
        if disk.begin() {
            disk.in_flight = Some(InFlight::Put(object.to_owned(), data.to_vec()));
            return Err(crashed(object));
        }
        disk.pending.remove(object);
        disk.view.put(object, data, PutMode::Replace)?;
        disk.durable.put(object, data, PutMode::Replace)
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        let mut disk = self.powered(object)?;
        if !disk.present(object)? {
            return Err(StoreError::missing(object));
        }
        if disk.begin() {
            disk.in_flight = Some(InFlight::Truncate(object.to_owned(), len));
            return Err(crashed(object));
        }
        disk.truncate(object, len)
    }

    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        let object = ranges.first().map_or("", |range| range.0);
        let mut disk = self.powered(object)?;
        let cut = disk.begin();
        ranges.iter().try_for_each(|range| disk.discard(range))?;
        if cut { Err(crashed(object)) } else { Ok(()) }
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        objects.iter().try_for_each(|object| check_name(object))?;
        let first = objects.first().unwrap_or(&"");
        let mut disk = self.powered(first)?;
        if disk.begin() {
            let names = objects.iter().map(|object| (*object).to_owned()).collect();
            disk.in_flight = Some(InFlight::Delete(names));
            return Err(crashed(first));
        }
        for object in objects {
            disk.pending.remove(*object);
        }
        disk.view.delete(objects)?;
        disk.durable.delete(objects)
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        self.powered("")?.view.list()
    }

    fn lock(&self) -> Result<()> {
        self.powered("").map(drop)
    }
}

/// Creates an empty object, unless it exists.
fn create(store: &MemoryStore, object: &str) -> Result<()> {
    store.write(&[WriteAt::new(object, 0, &[])])
}

fn crashed(object: &str) -> StoreError {
    StoreError::io(object, io::Error::other("crashed"))
}
