//! Reads of a volume's objects, around what a disk cannot read.

use super::log::LOG_OBJECT;
use super::state_places::STATE_OBJECTS;
use super::{DISK_OBJECT, PAGE};
use crate::Result;
use crate::around::{Repeats, answers, read};
use oblivio_store::{ReadAt, Slots};

/// How a volume reads. Clones are the same.
#[derive(Clone, Default)]
pub struct Reads(Repeats);

impl Reads {
    /// For a volume in this store.
    pub fn of(store: &dyn Slots) -> Self {
        let repeats = Repeats::default();
        repeats.tell(store);
        Self(repeats)
    }

    /// Reads; what a disk cannot read while it reads other places, or lacks, is zeros.
    ///
    /// # Errors
    /// Those of the store.
    pub fn read(&self, store: &dyn Slots, reads: &mut [ReadAt<'_>]) -> Result<()> {
        read(store, reads, (&self.0, PAGE as usize), || reads_anything(store))
    }

    /// Does `work`, which reads what has a second copy.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn of_copies<T>(&self, work: impl FnMut() -> Result<T>) -> Result<T> {
        self.0.at_first(work)
    }
}

/// Whether the store reads any place.
fn reads_anything(store: &dyn Slots) -> bool {
    let mut page = vec![0; PAGE as usize];
    let mut reads =
        |object| answers(&store.read(&mut [ReadAt { object, offset: 0, buf: &mut page }]));
    STATE_OBJECTS.into_iter().chain([LOG_OBJECT, DISK_OBJECT]).any(&mut reads)
}
