//! Reads of buckets, around places that the disk cannot read.

use super::{SECTOR, Slab};
use crate::around::{answers, read as read_around};
use crate::{Error, Result};
use oblivio_engine::{BucketId, Extent, Read};
use oblivio_store::{ReadAt, Slots};

/// The most buckets that are tried to tell an outage from damage.
const MOST_TRIED: usize = 8;

impl Slab {
    /// Reads buckets. One that the disk cannot read while it reads others, or that lies beyond the
    /// end of its object, is zeros, which no seal opens.
    ///
    /// # Errors
    /// Those of the store; `Tampered` for a bucket that was never stored.
    pub fn read(&self, store: &dyn Slots, read: &mut Read<'_>) -> Result<()> {
        let mut reads = Vec::with_capacity(read.extents.len());
        for (extent, buf) in read.parts() {
            let missing = || Error::Tampered(format!("bucket {} has no place", extent.offset));
            let (shelf, slot) = self.find(BucketId(extent.offset)).ok_or_else(missing)?;
            reads.push(ReadAt { object: shelf.object, offset: shelf.offset(slot), buf });
        }
        let other = || self.reads_any(store);
        read_around(store, &mut reads, (&self.repeats, usize::MAX), other).map(drop)
    }

    /// Whether any of some buckets can be read.
    pub fn reads_any(&self, store: &dyn Slots) -> bool {
        let step = (self.slots.len() / MOST_TRIED).max(1);
        self.stored().step_by(step).any(|bucket| {
            let Some((object, offset)) = self.place(bucket) else { return false };
            let mut sector = [0; SECTOR];
            let mut read = [ReadAt { object, offset, buf: &mut sector }];
            answers(&store.read(&mut read))
        })
    }

    /// Reads buckets, each by itself.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn fetch(&self, store: &dyn Slots, buckets: &[BucketId]) -> Result<Vec<Vec<u8>>> {
        let extent = |bucket: &BucketId| {
            let bytes = self.len_of(*bucket).unwrap_or(0) as u64;
            Extent { offset: bucket.0, bytes }
        };
        let extents: Vec<_> = buckets.iter().map(extent).collect();
        let mut bytes = vec![0; extents.iter().map(|extent| extent.bytes as usize).sum()];
        let into = &mut bytes[..];
        let mut read = Read { extents: &extents, into, shown: &[], scheduled: 0 };
        self.read(store, &mut read)?;
        Ok(read.parts().map(|(_, part)| part.to_vec()).collect())
    }
}
