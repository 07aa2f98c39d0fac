//! [`CrashStore`]: a disk with a volatile cache, and its possible states after a power cut.
//!
//! It keeps two memories: the view of a running program, and the state that survives every crash.
//! Between them are the pending writes of each object. A crash keeps any part of them, in any
//! order. `put`, `delete` and `truncate` are durable on return, so they go to both; one in flight
//! may have happened or not. A test runs a program once to count its operations. It runs it again
//! for each of them with [`CrashStore::crash_after`], and opens the states of
//! [`CrashStore::survivors`] and [`CrashStore::extremes`].

mod cached;
mod survive;

use cached::{Disk, InFlight, missing};
use oblivio_store::{
    Capabilities, Held, Lease, Log, MemoryStore, Objects, PutMode, ReadAt, Result, Slots,
    StoreAnswer, StoreCall, StoreError, WriteAt, begin_by_writes, check_name,
};
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

impl Held for CrashStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::OVER
    }

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        let object = reads.first().map_or("", |read| read.object);
        self.powered(object)?.view.read(reads)
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        self.powered(object)?.view.len(object)
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        self.powered("")?.view.list()
    }
}

impl Log for CrashStore {
    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        self.write(&[WriteAt::new(object, offset, data)])?;
        self.sync(&[object])
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        let mut disk = self.powered(object)?;
        if !disk.present(object)? {
            return Err(missing(object));
        }
        if disk.begin() {
            disk.in_flight = Some(InFlight::Truncate(object.to_owned(), len));
            return Err(crashed(object));
        }
        disk.truncate(object, len)
    }
}

impl Slots for CrashStore {
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
                return Err(missing(object));
            }
        }
        if disk.begin() {
            return Err(crashed(objects.first().unwrap_or(&"")));
        }
        objects.iter().try_for_each(|object| disk.sync(object))
    }

    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        let object = ranges.first().map_or("", |range| range.0);
        let mut disk = self.powered(object)?;
        let cut = disk.begin();
        ranges.iter().try_for_each(|range| disk.discard(range))?;
        if cut { Err(crashed(object)) } else { Ok(()) }
    }
}

impl Objects for CrashStore {
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

    fn begin(&self, objects: &[(&str, &[u8])]) -> Result<()> {
        begin_by_writes(self, objects)
    }

    fn settle(&self, objects: &[&str]) -> Result<()> {
        self.sync(objects)
    }

    fn answer(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        call.on_store(self)
    }
}

impl Lease for CrashStore {
    fn lock(&self) -> Result<()> {
        self.powered("").map(drop)
    }
}

fn crashed(object: &str) -> StoreError {
    StoreError::io(object, io::Error::other("crashed"))
}
