//! [`MemoryShare`]: a shared volume in memory, for tests and simulation.

use super::keeper::{Catalog, Change, Keeper};
use super::shared::Shared;
use oblivio_store::share::{
    Number, Object, Result, Share, ShareCall, ShareClock, ShareError, ShareReply,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A shared volume in memory. All is durable at once, until it is dropped.
pub struct MemoryShare(Shared<Memory>);

impl MemoryShare {
    /// An empty one, whose leases follow this clock.
    #[must_use]
    pub fn new(clock: ShareClock) -> Self {
        Self(Shared::new(Memory::default(), Catalog::default(), clock))
    }

    /// Sets how many bytes the volume may take.
    ///
    /// # Errors
    /// None so far.
    pub fn set_quota(&self, quota: Option<u64>) -> Result<()> {
        self.0.set_quota(quota)
    }

    /// Passes the bytes of a table to `change`, as a tampering adversary would. False if there is
    /// no such table.
    pub fn tamper(
        &self,
        table: oblivio_store::share::ServerTable,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        let mut held = self.0.keeper().held();
        held.objects.get_mut(&Object::Table(table)).map(change).is_some()
    }
}

impl Share for MemoryShare {
    /// Nobody checks it here.
    fn device(&self) -> u16 {
        0
    }

    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        self.0.call(call)
    }
}

#[derive(Default)]
pub(super) struct Memory(Mutex<Held>);

#[derive(Default)]
struct Held {
    records: BTreeMap<Number, Vec<u8>>,
    record_bytes: u64,
    objects: BTreeMap<Object, Vec<u8>>,
}

impl Memory {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper for Memory {
    fn append(&self, number: Number, record: &[u8]) -> Result<()> {
        let mut held = self.held();
        held.record_bytes += record.len() as u64;
        held.records.insert(number, record.to_vec());
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn record(&self, number: Number) -> Result<Vec<u8>> {
        self.held().records.get(&number).cloned().ok_or(ShareError::Gone(number))
    }

    fn part(&self, number: Number, offset: u32, len: u32) -> Result<Vec<u8>> {
        let (held, offset) = (self.held(), offset as usize);
        let part = held.records.get(&number).and_then(|it| it.get(offset..offset + len as usize));
        part.map(<[u8]>::to_vec).ok_or(ShareError::Gone(number))
    }

    fn forget(&self, before: Number, _spare: Number) -> Result<()> {
        let mut held = self.held();
        held.records = held.records.split_off(&before);
        held.record_bytes = held.records.values().map(|record| record.len() as u64).sum();
        Ok(())
    }

    fn record_bytes(&self) -> u64 {
        self.held().record_bytes
    }

    fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()> {
        let mut held = self.held();
        let bytes = held.objects.entry(object).or_default();
        bytes.truncate(offset as usize);
        bytes.extend_from_slice(piece);
        Ok(())
    }

    fn finish(&self, _object: Object) -> Result<()> {
        Ok(())
    }

    fn read(&self, object: Object, offset: u64, into: &mut [u8]) -> Result<()> {
        let (held, offset) = (self.held(), offset as usize);
        let bytes = held.objects.get(&object).and_then(|it| it.get(offset..offset + into.len()));
        into.copy_from_slice(bytes.ok_or(ShareError::NoObject(object))?);
        Ok(())
    }

    fn delete(&self, object: Object) -> Result<()> {
        self.held().objects.remove(&object);
        Ok(())
    }

    fn commit(&self, _changes: &[Change]) -> Result<()> {
        Ok(())
    }
}
