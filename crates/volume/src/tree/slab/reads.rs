//! Reads of buckets, and of the top's log, around places that the disk cannot read.

use super::top::{TOP_OBJECT, TopPlaces};
use super::{SECTOR, SLAB_OBJECT, Slab};
use crate::around::{answers, read as read_around, reads_any};
use crate::damage::DamagedPlace;
use crate::header::HEADER_OBJECTS;
use crate::{Error, Result};
use oblivio_engine::tree::{FoundTop, TopControl, TopView, TreeOram};
use oblivio_engine::{BucketId, Extent, Read};
use oblivio_store::{ReadAt, Slots};
use std::ops::Range;

/// The most buckets that are tried to tell an outage from damage.
const MOST_TRIED: usize = 8;
/// Bytes of entries of the top's log that are read at a time.
const READ_BYTES: u64 = 4 << 20;

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

/// Reads the stored versions of the buckets of a log, then all its entries, in their order, and
/// gives the engine what it needs. Gives the places of those that are damaged.
///
/// # Errors
/// Those of the store.
pub fn read_top(
    slab: &mut Slab,
    store: &dyn Slots,
    engine: &mut TreeOram,
    mut found: FoundTop,
) -> Result<Vec<DamagedPlace>> {
    slab.top = TopPlaces::of(engine);
    let mut damaged = read_homes(slab, store, engine, &mut found)?;
    damaged.extend(read_entries(slab, store, engine, &mut found)?);
    TopControl::of(engine).end_reading(found);
    Ok(damaged)
}

fn read_homes(
    slab: &Slab,
    store: &dyn Slots,
    engine: &mut TreeOram,
    found: &mut FoundTop,
) -> Result<Vec<DamagedPlace>> {
    let mut damaged = Vec::new();
    let some = (READ_BYTES / engine.config().geometry().bucket_bytes() as u64).max(1) as usize;
    for buckets in found.buckets().chunks(some) {
        for (bucket, mut sealed) in buckets.iter().zip(slab.fetch(store, buckets)?) {
            if TopControl::of(engine).take_bucket(found, *bucket, &mut sealed) {
                continue;
            }
            let (object, first) = slab.place(*bucket).unwrap_or((SLAB_OBJECT, 0));
            damaged.push(DamagedPlace {
                object: object.into(),
                bytes: first..first + sealed.len() as u64,
                why: format!("bucket {} does not open", bucket.0),
            });
        }
    }
    Ok(damaged)
}

fn read_entries(
    slab: &Slab,
    store: &dyn Slots,
    engine: &mut TreeOram,
    found: &mut FoundTop,
) -> Result<Vec<DamagedPlace>> {
    let (entry_bytes, Range { start, end }) = (TopView::of(engine).entry_bytes(), found.entries());
    let (some, mut damaged) = ((READ_BYTES / slab.top.slot_bytes()).max(1), Vec::new());
    let mut at = start;
    while at < end {
        let numbers = at..end.min(at + some);
        at = numbers.end;
        let mut bytes = vec![vec![0; entry_bytes]; (numbers.end - numbers.start) as usize];
        let mut reads: Vec<_> = (numbers.clone().zip(&mut bytes))
            .map(|(number, buf)| {
                let offset = slab.top.offset(number);
                ReadAt { object: TOP_OBJECT, offset, buf: &mut buf[..] }
            })
            .collect();
        let other = || slab.reads_any(store) || reads_any(store, &HEADER_OBJECTS);
        match read_around(store, &mut reads, (slab.repeats(), usize::MAX), other) {
            // It is gone, and all of it is lost.
            Err(Error::Tampered(why)) => {
                damaged = vec![DamagedPlace { object: TOP_OBJECT.into(), bytes: 0..0, why }];
                break;
            }
            read => drop(read?),
        }
        for (number, sealed) in numbers.zip(&mut bytes) {
            if !TopControl::of(engine).take(found, number, sealed) {
                let first = slab.top.offset(number);
                damaged.push(DamagedPlace {
                    object: TOP_OBJECT.into(),
                    bytes: first..first + entry_bytes as u64,
                    why: format!("entry {number} of the top's log does not open"),
                });
            }
        }
    }
    Ok(damaged)
}
