//! Reads of a volume's objects, around what a disk cannot read.

use super::PAGE;
use crate::Result;
use crate::around::{LostPiece, Repeats, answers, read, read_place};
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
        read(store, reads, (&self.repeats, PAGE as usize), || self.reads_anything(store))
    }

    /// Does `work`, which reads what has a second copy.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn of_copies<T>(&self, work: impl FnMut() -> Result<T>) -> Result<T> {
        self.repeats.at_first(work)
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
        match read_place(once, || self.reads_anything(store)) {
            Err(missing @ StoreError::Missing { .. }) => Ok(Some(missing)),
            read => read,
        }
    }

    /// Whether the store reads any object.
    fn reads_anything(&self, store: &dyn Slots) -> bool {
        let mut page = vec![0; PAGE as usize];
        let mut reads =
            |object| answers(&store.read(&mut [ReadAt { object, offset: 0, buf: &mut page }]));
        self.objects.iter().any(|object| reads(object))
    }
}
