//! The slab: objects of equal slots, one for each bucket length, with copy-on-write buckets.
//!
//! A bucket is never overwritten: its new version goes to a free slot, and the old slot becomes
//! free once the commit of the new one is durable. A write takes the lowest free slot (except in a
//! growing slab), so a slab whose tree shrinks moves to its front. Free space at its end is cut
//! off; free space in between is given back to the store. All of it follows from earlier writes and
//! drops alone, so the places reveal no more than the bucket numbers do.

mod reads;
mod size_class;
mod top;

use crate::around::Repeats;
use crate::damage::DamagedPlace;
use crate::{Error, Result};
use oblivio_engine::tree::{Shape, TreeOram, buckets_in};
use oblivio_engine::{BucketId, Write};
use oblivio_store::{Hint, Slots, WriteAt};
pub use reads::read_top;
use size_class::SizeClass;
pub use size_class::{Interval, PAGE, SECTOR};
pub use top::TopPlaces;
use top::{TOP_OBJECT, entry_write};

/// The object that holds the slots.
pub const SLAB_OBJECT: &str = "slab";
/// "Not stored" in the slot table.
const NOWHERE: u32 = u32::MAX;

/// The slot of each bucket, by heap index, while a stored state is loaded.
#[derive(Default)]
pub struct SlotTable(Vec<u32>);

impl SlotTable {
    /// Adds stored entries of a tree with this many buckets.
    ///
    /// # Errors
    /// `Tampered` for a bucket or slot out of any range.
    pub fn apply(&mut self, entries: &[(u64, u32)], buckets: u64) -> Result<()> {
        for &(bucket, slot) in entries {
            if slot == NOWHERE {
                if let Some(dropped) = self.0.get_mut(bucket as usize) {
                    *dropped = NOWHERE;
                }
                continue;
            }
            if bucket > buckets {
                return Err(Error::Tampered("a slot table entry is out of range".into()));
            }
            if bucket as usize >= self.0.len() {
                self.0.resize(bucket as usize + 1, NOWHERE);
            }
            self.0[bucket as usize] = slot;
        }
        Ok(())
    }
}

/// In memory an entry's highest bits hold its shelf: the number of slots that the bucket lacks.
const SHELF_SHIFT: u32 = 30;
/// The objects of shorter buckets: of 1, 2 and 3 slots.
const SHORT_OBJECTS: [&str; 3] = ["slab-1", "slab-2", "slab-3"];

/// The place of each bucket.
pub struct Slab {
    /// The slot of each bucket, by heap index; in a slab with several shelves, with its shelf.
    slots: Vec<u32>,
    /// Slots for buckets that lack none, one, and so on.
    shelves: Vec<SizeClass>,
    /// Buckets written since the last commit, with repeats.
    changed: Vec<u64>,
    interval: Interval,
    repeats: Repeats,
    /// Of the log of the tree's top.
    pub(super) top: TopPlaces,
}

impl Slab {
    /// An empty slab for buckets of `bucket_bytes`, each at a multiple of `align`.
    pub fn new(bucket_bytes: usize, align: usize) -> Self {
        let shelves = vec![SizeClass::new(SLAB_OBJECT, bucket_bytes, align)];
        let (interval, repeats) = (Interval::default(), Repeats::default());
        let (slots, changed, top) = (Vec::new(), Vec::new(), TopPlaces::default());
        Self { slots, shelves, changed, interval, repeats, top }
    }

    /// An empty slab for this engine's buckets.
    pub fn of(engine: &TreeOram, align: usize) -> Self {
        let (config, geometry) = (engine.config(), engine.config().geometry());
        let mut slab = Self::new(geometry.bucket_bytes(), align);
        if config.leaf_steps {
            for slots in (1..config.blocks_per_bucket).rev() {
                let (object, bytes) = (SHORT_OBJECTS[slots - 1], geometry.bucket_bytes_with(slots));
                slab.shelves.push(SizeClass::new(object, bytes, align));
            }
        }
        slab
    }

    /// Whether the layer below may repeat reads; others of the same disk follow it.
    pub fn repeats(&self) -> &Repeats {
        &self.repeats
    }

    /// Allows the store to round a bucket's write up to the end of its slot: nothing is there.
    pub fn tell_slots(&self, store: &dyn Slots) {
        for shelf in &self.shelves {
            let (object, align) = (shelf.object, shelf.slot_bytes as usize);
            store.hint(Hint::RoundUp { object, align });
        }
    }

    /// Loads a slot table into an empty slab; slots that it does not name are free. `missing` gives
    /// the slots that a stored bucket lacks, `there` the length of each object.
    ///
    /// # Errors
    /// `Tampered` if two buckets share a slot, or one lies beyond the end of its object.
    pub fn restore(
        &mut self,
        table: SlotTable,
        missing: impl Fn(BucketId) -> usize,
        there: &[(String, u64)],
    ) -> Result<()> {
        let mut slots = table.0;
        cut_tail(&mut slots);
        for (bucket, entry) in slots.iter_mut().enumerate().filter(|entry| *entry.1 != NOWHERE) {
            let shelf = missing(BucketId(bucket as u64));
            if *entry >= self.limit() || shelf >= self.shelves.len() {
                return Err(Error::Tampered("a slot table entry is out of range".into()));
            }
            *entry |= (shelf as u32) << SHELF_SHIFT;
        }
        for at in 0..self.shelves.len() {
            let split = |&entry: &u32| self.split(entry);
            let used = slots.iter().filter(|&&entry| entry != NOWHERE).map(split);
            let used: Vec<u32> =
                used.filter(|&(shelf, _)| shelf == at).map(|(_, slot)| slot).collect();
            let bytes = len_of(there, self.shelves[at].object);
            self.shelves[at].restore(used.into_iter(), bytes)?;
        }
        self.slots = slots;
        Ok(())
    }

    /// The most slots of a shelf: below them no entry equals [`NOWHERE`].
    fn limit(&self) -> u32 {
        if self.shelves.len() > 1 { (1 << SHELF_SHIFT) - 1 } else { NOWHERE - 1 }
    }

    /// An entry's shelf and slot.
    fn split(&self, entry: u32) -> (usize, u32) {
        match self.shelves.len() {
            1 => (0, entry),
            _ => ((entry >> SHELF_SHIFT) as usize, entry & ((1 << SHELF_SHIFT) - 1)),
        }
    }

    fn find(&self, bucket: BucketId) -> Option<(&SizeClass, u32)> {
        let entry = self.slots.get(bucket.0 as usize).copied().filter(|&slot| slot != NOWHERE)?;
        let (shelf, slot) = self.split(entry);
        Some((&self.shelves[shelf], slot))
    }

    /// Gives back what an uncommitted session added to the objects; a full disk would have no room
    /// to go on otherwise.
    ///
    /// # Errors
    /// Those of the store.
    pub fn trim(&self, store: &dyn Slots) -> Result<()> {
        // One trip, where asking for each would take four.
        let there = store.list()?;
        let trim = |shelf: &SizeClass| shelf.trim(store, len_of(&there, shelf.object));
        self.shelves.iter().try_for_each(trim)?;
        // A session that broke off before its first commit with a log.
        match self.top.is_kept() || len_of(&there, TOP_OBJECT) == 0 {
            true => Ok(()),
            false => Ok(store.truncate(TOP_OBJECT, 0)?),
        }
    }

    /// The slot of every bucket, by heap index.
    pub fn table(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.slots.iter().map(|&entry| self.slot(entry))
    }

    /// An entry as stored, without its shelf: the engine's state says how many slots a bucket
    /// lacks.
    fn slot(&self, entry: u32) -> u32 {
        if entry == NOWHERE { NOWHERE } else { self.split(entry).1 }
    }

    /// The buckets with new slots since the last commit.
    pub fn changes(&self) -> Vec<(u64, u32)> {
        let mut changed = self.changed.clone();
        changed.sort_unstable();
        changed.dedup();
        let slot = |bucket| self.slots.get(bucket as usize).map_or(NOWHERE, |&at| self.slot(at));
        changed.into_iter().map(|bucket| (bucket, slot(bucket))).collect()
    }

    /// A bucket's object, and its byte offset there.
    pub fn place(&self, bucket: BucketId) -> Option<(&'static str, u64)> {
        self.find(bucket).map(|(shelf, slot)| (shelf.object, shelf.offset(slot)))
    }

    /// A bucket that is not what was written.
    pub fn damaged_place(&self, bucket: BucketId, why: &str) -> DamagedPlace {
        let (object, offset) = self.place(bucket).unwrap_or((SLAB_OBJECT, 0));
        let bytes = offset..offset + self.len_of(bucket).unwrap_or(0) as u64;
        let why = format!("bucket {}: {why}", bucket.0);
        DamagedPlace { object: object.into(), bytes, why }
    }

    /// A bucket's offset in all objects laid end to end, for a picture.
    pub fn place_in_all(&self, bucket: BucketId) -> Option<u64> {
        let (object, offset) = self.place(bucket)?;
        let before = self.shelves.iter().take_while(|shelf| shelf.object != object);
        Some(before.map(SizeClass::bytes).sum::<u64>() + offset)
    }

    /// Bytes of a stored bucket.
    pub fn len_of(&self, bucket: BucketId) -> Option<usize> {
        self.find(bucket).map(|(shelf, _)| shelf.bucket_bytes)
    }

    /// All stored buckets.
    pub fn stored(&self) -> impl Iterator<Item = BucketId> + '_ {
        self.stored_from(0)
    }

    /// Those from this heap index on.
    pub fn stored_from(&self, first: u64) -> impl Iterator<Item = BucketId> + '_ {
        let rest = self.slots.get(usize::try_from(first).unwrap_or(usize::MAX)..);
        let stored = |(&slot, at): (&u32, u64)| (slot != NOWHERE).then_some(BucketId(at));
        rest.unwrap_or_default().iter().zip(first..).filter_map(stored)
    }

    /// Heap indices, of stored buckets and of others.
    pub fn indices(&self) -> u64 {
        self.slots.len() as u64
    }

    /// The objects that were written to since the last commit. They are to be durable before the
    /// next one.
    pub fn fresh_objects(&self) -> Vec<&'static str> {
        let written = self.shelves.iter().filter(|shelf| shelf.has_fresh());
        let buckets = written.map(|shelf| shelf.object);
        buckets.chain(self.top.fresh.then_some(TOP_OBJECT)).collect()
    }

    /// Makes all writes and discards durable.
    ///
    /// # Errors
    /// Those of the store.
    pub fn settle(&self, store: &dyn Slots) -> Result<()> {
        Ok(store.sync(&self.objects())?)
    }

    /// The objects with slots.
    fn objects(&self) -> Vec<&'static str> {
        let there = self.shelves.iter().filter(|shelf| shelf.bytes() > 0);
        there.map(|shelf| shelf.object).collect()
    }

    /// The most bytes that `buckets` buckets take.
    pub fn most_bytes(&self, buckets: u64) -> u64 {
        buckets * self.shelves[0].slot_bytes
    }

    /// Whether buckets of several lengths have objects of their own.
    pub fn has_short(&self) -> bool {
        self.shelves.len() > 1
    }

    /// Bytes of a whole tree of this shape.
    pub fn tree_bytes(&self, shape: Shape) -> u64 {
        let leaves = shape.leaves();
        let slots = |shelf: usize| self.shelves.len() - shelf == shape.leaf_slots;
        let short = (1..self.shelves.len()).find(|&shelf| slots(shelf)).unwrap_or(0);
        (buckets_in(shape.depth) - leaves) * self.shelves[0].slot_bytes
            + leaves * self.shelves[short].slot_bytes
    }

    /// Bytes that leaves of this shape may leave free, in runs too short to be given back, while
    /// they change to another shape.
    pub fn stuck_bytes(&self, shape: Shape) -> u64 {
        let whole_pages = self.shelves[0].slot_bytes.is_multiple_of(PAGE as u64);
        if whole_pages || !self.has_short() {
            return 0;
        }
        shape.leaves() * self.shelves[self.shelves.len() - shape.leaf_slots].slot_bytes
    }

    /// Bytes of current versions.
    pub fn current_bytes(&self) -> u64 {
        self.shelves.iter().map(SizeClass::current_bytes).sum()
    }

    /// Slots for blocks in all stored buckets; a bucket has at most `full`.
    pub fn stored_slots(&self, full: usize) -> u64 {
        let slots =
            |(missing, shelf): (usize, &SizeClass)| shelf.buckets() * (full - missing) as u64;
        self.shelves.iter().enumerate().map(slots).sum()
    }

    /// Bytes of free slots that still take space in the store.
    pub fn free_bytes(&self) -> u64 {
        self.shelves.iter().map(SizeClass::free_bytes).sum()
    }

    /// Those among them that the next commits will hardly use.
    pub fn idle_bytes(&self) -> u64 {
        self.shelves.iter().map(SizeClass::idle_bytes).sum()
    }

    /// Writes new versions of buckets.
    ///
    /// # Errors
    /// Those of the store; `Full` if a shelf has the most slots it can have.
    pub fn write(&mut self, store: &dyn Slots, write: &Write<'_>) -> Result<()> {
        let mut writes = Vec::with_capacity(write.extents.len());
        for piece in write.parts() {
            if let Some(offset) = self.top.place(piece.extent.offset) {
                writes.push(entry_write(offset, &piece));
                continue;
            }
            let (object, offset) = self.take(BucketId(piece.extent.offset), piece.data.len())?;
            writes.push(match piece.shared {
                Some(sealed) => WriteAt::shared(object, offset, sealed),
                None => WriteAt::new(object, offset, piece.data),
            });
        }
        Ok(store.write(&writes)?)
    }

    /// Notes how far the next commit is.
    pub fn expect(&mut self, interval: Interval) {
        self.interval = interval;
    }

    /// Takes a slot for a new version of a bucket.
    fn take(&mut self, bucket: BucketId, len: usize) -> Result<(&'static str, u64)> {
        let at = bucket.0 as usize;
        if at >= self.slots.len() {
            self.slots.resize(at + 1, NOWHERE);
        }
        let fits = |shelf: &SizeClass| shelf.bucket_bytes == len;
        let unknown = || Error::Invalid("no bucket has this length".into());
        let number = self.shelves.iter().position(fits).ok_or_else(unknown)?;
        let limit = self.limit();
        let shelf = &mut self.shelves[number];
        let full = || Error::Full("the slab has all the slots it can have".into());
        let slot = shelf.take(limit, self.interval).ok_or_else(full)?;
        let place = (shelf.object, shelf.offset(slot));
        let entry = slot | (number as u32) << SHELF_SHIFT;
        let old = std::mem::replace(&mut self.slots[at], entry);
        self.retire(old);
        self.changed.push(bucket.0);
        Ok(place)
    }

    /// Retires an entry's slot with the next commit; says whether it named one.
    fn retire(&mut self, entry: u32) -> bool {
        if entry == NOWHERE {
            return false;
        }
        let (shelf, slot) = self.split(entry);
        self.shelves[shelf].retire(slot);
        true
    }

    /// Notes that the tree dropped these buckets; their slots are free after the next commit.
    pub fn forget(&mut self, buckets: &[BucketId]) {
        for bucket in buckets {
            let Some(slot) = self.slots.get_mut(bucket.0 as usize) else { continue };
            let old = std::mem::replace(slot, NOWHERE);
            if self.retire(old) {
                self.changed.push(bucket.0);
            }
        }
        cut_tail(&mut self.slots);
    }

    /// Notes that the commit is durable: old versions are free.
    pub fn committed(&mut self) {
        self.shelves.iter_mut().for_each(SizeClass::committed);
        self.changed.clear();
    }

    /// Gives back space that the next commits will not need, in at most `most_holes` holes; says
    /// whether there may be more. No durable commit refers to free space.
    ///
    /// # Errors
    /// Those of the store.
    pub fn reclaim(&mut self, store: &dyn Slots, most_holes: usize) -> Result<bool> {
        // One shelf at a time, or it would take four times as long.
        for shelf in &mut self.shelves {
            if shelf.reclaim(store, most_holes)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// An object's length; a missing one is empty.
fn len_of(there: &[(String, u64)], object: &str) -> u64 {
    there.iter().find(|(name, _)| name == object).map_or(0, |&(_, len)| len)
}

/// Cuts off unstored buckets at the end.
fn cut_tail(slots: &mut Vec<u32>) {
    let stored = slots.iter().rposition(|&slot| slot != NOWHERE);
    slots.truncate(stored.map_or(0, |last| last + 1));
}

#[cfg(test)]
mod tests;
