//! Reads of a volume's objects, around what a disk cannot read.

use super::PAGE;
use crate::Result;
use crate::around::{LostPiece, Repeats, read, read_place, reads_any};
use crate::damage::DamagedPlace;
use oblivio_store::{ReadAt, Slots, StoreError};
use std::slice;

/// How a volume reads. Clones are the same.
#[derive(Clone, Default)]
pub struct DiskReads {
    repeats: Repeats,
    /// The objects of which any is read to tell damage from an outage.
    objects: &'static [&'static str],
}

impl DiskReads {
    /// For a volume with these objects in a store.
    pub fn of(store: &dyn Slots, objects: &'static [&'static str]) -> Self {
        let repeats = Repeats::default();
        repeats.tell(store);
        Self { repeats, objects }
    }

    /// Reads; what a disk cannot read while it reads other places, or lacks, is zeros. Gives the
    /// pieces that are.
    ///
    /// # Errors
    /// Those of the store.
    pub fn read(&self, store: &dyn Slots, reads: &mut [ReadAt<'_>]) -> Result<Vec<LostPiece>> {
        read(store, reads, (&self.repeats, PAGE as usize), || reads_any(store, self.objects))
    }

    /// Does `work`, which reads what has a second copy.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn of_copies<T>(&self, store: &dyn Slots, work: impl FnMut() -> Result<T>) -> Result<T> {
        self.repeats.at_first(|| reads_any(store, self.objects), work)
    }

    /// Reads a place that has a second copy, or that the volume can do without. Gives what the
    /// store said if it is damaged, or its object is gone.
    ///
    /// # Errors
    /// Those of the store that the place cannot be blamed for: an outage is one.
    pub fn read_copy(
        &self,
        store: &dyn Slots,
        mut read: ReadAt<'_>,
    ) -> std::result::Result<Option<StoreError>, StoreError> {
        let once = || store.read(slice::from_mut(&mut read));
        match read_place(once, || reads_any(store, self.objects)) {
            Err(missing @ StoreError::Missing { .. }) => Ok(Some(missing)),
            read => read,
        }
    }

    /// Inspects the copies of an object.
    ///
    /// # Errors
    /// Those of `work` that are not damage.
    pub fn inspect(
        &self,
        store: &dyn Slots,
        object: &str,
        work: impl FnMut() -> Result<Vec<DamagedPlace>>,
    ) -> Result<Vec<DamagedPlace>> {
        self.repeats.inspect(object, || reads_any(store, self.objects), work)
    }

    /// Whether the layer below may repeat reads.
    pub fn repeats(&self) -> &Repeats {
        &self.repeats
    }
}
