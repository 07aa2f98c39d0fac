//! The slab: one object of equal slots, in which buckets are copied on write.
//!
//! A bucket is never written over: its new version goes to a free slot, and the old slot becomes
//! free once the commit that makes the new one current is durable. The lowest free slot is taken
//! (but in a slab that grows), so that one whose tree shrinks moves to its front; what is free at its end is cut off, and
//! what is free in between is given back to the store. All of it follows from what was written
//! and dropped before alone, so the places tell no more than the bucket numbers do.

use crate::{Error, Result};
use oblivio_engine::BucketId;
use oblivio_store::{ReadAt, Store, WriteAt};
use std::collections::BTreeSet;

/// The object that holds the slots.
pub const SLAB_OBJECT: &str = "slab";
/// Slots begin at multiples of this at least, so that a torn write touches no other slot's sector.
pub const SECTOR: usize = 512;
/// Where that costs little space they begin at multiples of this: a system that keeps pages need not
/// read the rest of one from the disk before it takes a part of it.
pub const PAGE: usize = 4096;
/// Free slots side by side are given back when they are at least so many bytes: less is not worth
/// a hole.
const LEAST_HOLE: u64 = 64 << 10;
/// The end is cut off when it is free by at least so many bytes, and by an eighth of the slab.
const LEAST_CUT: u64 = 1 << 20;
/// The longest hole that is made at once, and the most that is cut off at a time: a disk that is
/// told of what is free takes its time.
const MOST_HOLE: u64 = 256 << 10;
const MOST_CUT: u64 = 16 << 20;
/// "Not stored" in the slot table.
const NOWHERE: u32 = u32::MAX;

/// The slot of each bucket, by heap index, while a stored state is put together.
#[derive(Default)]
pub struct SlotTable(Vec<u32>);

impl SlotTable {
    /// Takes up stored entries of a tree that has so many buckets.
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

/// Where each bucket is.
pub struct Slab {
    bucket_bytes: usize,
    slot_bytes: u64,
    /// The slot of each bucket, by heap index.
    slots: Vec<u32>,
    /// Slots that may be written.
    free: BTreeSet<u32>,
    /// Others that may be written, whose space was given back.
    holes: BTreeSet<u32>,
    /// About the most slots that a commit wrote lately; as many free ones are kept.
    busiest: u64,
    /// A part of the free end was cut off, and the rest is to follow.
    cutting: bool,
    /// Slots of versions that the next commit makes old.
    retired: Vec<u32>,
    /// Slots written since the last commit.
    fresh: u64,
    /// Buckets written since the last commit, with repeats.
    changed: Vec<u64>,
    /// Slots that the object has.
    end: u32,
    /// Slots by which it became longer since the last commit, and by which it will until the next
    /// if that is like the last. Space that was never written costs most, so it is taken evenly
    /// and not when all that is free was used.
    grown: u64,
    expected: u64,
    spans: Vec<(u64, usize)>,
}

impl Slab {
    /// An empty slab for buckets of `bucket_bytes`, each at a multiple of `align`.
    pub fn new(bucket_bytes: usize, align: usize) -> Self {
        Self {
            bucket_bytes,
            slot_bytes: bucket_bytes.next_multiple_of(align) as u64,
            slots: Vec::new(),
            free: BTreeSet::new(),
            holes: BTreeSet::new(),
            busiest: 0,
            cutting: false,
            retired: Vec::new(),
            fresh: 0,
            changed: Vec::new(),
            end: 0,
            grown: 0,
            expected: 0,
            spans: Vec::new(),
        }
    }

    /// Takes up a slot table while the slab is empty; slots that it does not name are free.
    ///
    /// # Errors
    /// `Tampered` when two buckets share a slot, or one lies beyond the slab's `slab_bytes`.
    pub fn restore(&mut self, table: SlotTable, slab_bytes: u64) -> Result<()> {
        let mut slots = table.0;
        cut_tail(&mut slots);
        let used = slots.iter().filter(|&&slot| slot != NOWHERE);
        let end = used.clone().max().map_or(0, |&slot| slot + 1);
        if u64::from(end) * self.slot_bytes > slab_bytes.next_multiple_of(self.slot_bytes) {
            return Err(Error::Tampered("a bucket lies beyond the end of the slab".into()));
        }
        let mut taken = vec![false; end as usize];
        for &slot in used {
            if std::mem::replace(&mut taken[slot as usize], true) {
                return Err(Error::Tampered("two buckets share a slot".into()));
            }
        }
        self.free = (0..end).filter(|&slot| !taken[slot as usize]).collect();
        (self.slots, self.end) = (slots, end);
        Ok(())
    }

    /// Gives back what a session that did not commit had added to the object; on a full disk there
    /// would be no room to go on otherwise.
    ///
    /// # Errors
    /// Those of the store.
    pub fn trim(&self, store: &dyn Store) -> Result<()> {
        let used = u64::from(self.end) * self.slot_bytes;
        match store.len(SLAB_OBJECT)? {
            Some(len) if len > used => Ok(store.truncate(SLAB_OBJECT, used)?),
            _ => Ok(()),
        }
    }

    /// The slot of every bucket, by heap index.
    pub fn table(&self) -> &[u32] {
        &self.slots
    }

    /// The buckets that changed their slots since the last commit.
    pub fn changes(&self) -> Vec<(u64, u32)> {
        let mut changed = self.changed.clone();
        changed.sort_unstable();
        changed.dedup();
        let slot = |bucket| self.slots.get(bucket as usize).copied().unwrap_or(NOWHERE);
        changed.into_iter().map(|bucket| (bucket, slot(bucket))).collect()
    }

    /// Where a bucket is, as a byte offset.
    pub fn place(&self, bucket: BucketId) -> Option<u64> {
        let slot = self.slots.get(bucket.0 as usize).copied().filter(|&slot| slot != NOWHERE)?;
        Some(u64::from(slot) * self.slot_bytes)
    }

    /// All stored buckets.
    pub fn stored(&self) -> impl Iterator<Item = BucketId> + '_ {
        let stored = |(at, &slot): (usize, &u32)| (slot != NOWHERE).then_some(BucketId(at as u64));
        self.slots.iter().enumerate().filter_map(stored)
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sync(&self, store: &dyn Store) -> Result<()> {
        if self.fresh > 0 {
            store.sync(&[SLAB_OBJECT])?;
        }
        Ok(())
    }

    /// What so many bytes of buckets take.
    pub fn rounded_up(&self, bucket_bytes: u64) -> u64 {
        bucket_bytes / self.bucket_bytes as u64 * self.slot_bytes
    }

    /// Bytes of current versions.
    pub fn current_bytes(&self) -> u64 {
        (u64::from(self.end) - (self.free.len() + self.holes.len()) as u64) * self.slot_bytes
    }

    /// Bytes of slots that are free and still take space in the store.
    pub fn free_bytes(&self) -> u64 {
        self.free.len() as u64 * self.slot_bytes
    }

    /// Reads buckets; `into` is cut into equal parts.
    ///
    /// # Errors
    /// Those of the store; `Tampered` for a bucket that was never stored.
    pub fn read(&self, store: &dyn Store, buckets: &[BucketId], into: &mut [u8]) -> Result<()> {
        let mut reads = Vec::with_capacity(buckets.len());
        for (bucket, buf) in buckets.iter().zip(into.chunks_mut(self.bucket_bytes)) {
            let missing = || Error::Tampered(format!("bucket {} has no place", bucket.0));
            let offset = self.place(*bucket).ok_or_else(missing)?;
            reads.push(ReadAt { object: SLAB_OBJECT, offset, buf });
        }
        Ok(store.read(&mut reads)?)
    }

    /// Writes new versions of buckets; `from` is cut into equal parts. Gives their places.
    ///
    /// # Errors
    /// Those of the store; `Full` when the slab has 2^32 slots.
    pub fn write(&mut self, store: &dyn Store, buckets: &[BucketId], from: &[u8]) -> Result<()> {
        self.spans.clear();
        for (index, bucket) in buckets.iter().enumerate() {
            let slot = self.take(*bucket)?;
            let offset = u64::from(slot) * self.slot_bytes;
            self.spans.push((offset, index));
        }
        let data = |index: usize| &from[index * self.bucket_bytes..(index + 1) * self.bucket_bytes];
        let write = |&(offset, index): &(u64, usize)| WriteAt {
            object: SLAB_OBJECT,
            offset,
            data: data(index),
        };
        let writes: Vec<_> = self.spans.iter().map(write).collect();
        Ok(store.write(&writes)?)
    }

    /// Finds a slot for a new version of a bucket and notes it.
    fn take(&mut self, bucket: BucketId) -> Result<u32> {
        let at = bucket.0 as usize;
        if at >= self.slots.len() {
            self.slots.resize(at + 1, NOWHERE);
        }
        let lags = self.grown * self.busiest < self.expected * self.fresh;
        let slot = match if lags { None } else { self.take_lowest() } {
            Some(slot) => slot,
            None if self.end == NOWHERE - 1 => {
                return Err(Error::Full("the slab has all the slots it can have".into()));
            }
            None => {
                self.end += 1;
                self.grown += 1;
                self.end - 1
            }
        };
        let old = std::mem::replace(&mut self.slots[at], slot);
        if old != NOWHERE {
            self.retired.push(old);
        }
        self.fresh += 1;
        self.changed.push(bucket.0);
        Ok(slot)
    }

    fn take_lowest(&mut self) -> Option<u32> {
        match (self.free.first(), self.holes.first()) {
            (Some(free), Some(hole)) if hole < free => self.holes.pop_first(),
            (Some(_), _) => self.free.pop_first(),
            (None, _) => self.holes.pop_first(),
        }
    }

    /// The tree dropped these buckets; what is stored of them is free after the next commit.
    pub fn forget(&mut self, buckets: &[BucketId]) {
        for bucket in buckets {
            let Some(slot) = self.slots.get_mut(bucket.0 as usize) else { continue };
            let old = std::mem::replace(slot, NOWHERE);
            if old != NOWHERE {
                self.retired.push(old);
                self.changed.push(bucket.0);
            }
        }
        cut_tail(&mut self.slots);
    }

    /// The commit is durable: old versions are free.
    pub fn committed(&mut self) {
        let unused = (self.free.len() + self.holes.len()) as u64;
        (self.expected, self.grown) = (self.grown.saturating_sub(unused), 0);
        self.free.extend(self.retired.drain(..));
        self.busiest = self.fresh.max(self.busiest - self.busiest / 8);
        self.fresh = 0;
        self.changed.clear();
    }

    /// Gives space back that the next commits will not need, making at most so many holes; says
    /// whether there may be more. What is free, no durable commit refers to.
    ///
    /// # Errors
    /// Those of the store.
    pub fn reclaim(&mut self, store: &dyn Store, most_holes: usize) -> Result<bool> {
        let spare = self.busiest as usize;
        self.cut_end(store, spare)?;
        if self.cutting {
            return Ok(true);
        }
        let ranges = self.new_holes(spare, most_holes);
        if ranges.is_empty() {
            return Ok(false);
        }
        let bytes = |&(first, end): &(u32, u32)| {
            let offset = u64::from(first) * self.slot_bytes;
            (SLAB_OBJECT, offset, u64::from(end - first) * self.slot_bytes)
        };
        store.discard(&ranges.iter().map(bytes).collect::<Vec<_>>())?;
        let more = ranges.len() == most_holes;
        for slot in ranges.into_iter().flat_map(|(first, end)| first..end) {
            self.free.remove(&slot);
            self.holes.insert(slot);
        }
        Ok(more)
    }

    /// Cuts off the end when enough of it is free, beyond `spare` free slots; the rest is
    /// to follow when that is much.
    fn cut_end(&mut self, store: &dyn Store, spare: usize) -> Result<()> {
        let mut beyond = (self.free.len() + self.holes.len()).saturating_sub(spare);
        let mut end = self.end;
        while beyond > 0 && (self.free.contains(&(end - 1)) || self.holes.contains(&(end - 1))) {
            (end, beyond) = (end - 1, beyond - 1);
        }
        let free = self.end - end;
        let enough = self.cutting || free >= self.end / 8;
        if !enough || u64::from(free) * self.slot_bytes < LEAST_CUT {
            self.cutting = false;
            return Ok(());
        }
        let cut = (MOST_CUT / self.slot_bytes).clamp(1, u64::from(free)) as u32;
        self.cutting = cut < free;
        end = self.end - cut;
        store.truncate(SLAB_OBJECT, u64::from(end) * self.slot_bytes)?;
        self.free.split_off(&end);
        self.holes.split_off(&end);
        self.end = end;
        Ok(())
    }

    /// Runs of free slots beyond the first `spare`.
    fn new_holes(&self, spare: usize, most: usize) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let bytes = |run: &(u32, u32)| u64::from(run.1 - run.0) * self.slot_bytes;
        let long = |run: &(u32, u32)| bytes(run) >= LEAST_HOLE;
        for &slot in self.free.iter().skip(spare) {
            let full = runs.len() == most;
            match runs.last_mut() {
                Some(last) if last.1 == slot && bytes(last) < MOST_HOLE => last.1 += 1,
                Some(last) if !long(last) => *last = (slot, slot + 1),
                _ if full => break,
                _ => runs.push((slot, slot + 1)),
            }
        }
        runs.retain(long);
        runs
    }
}

/// Forgets buckets at the end that are not stored.
fn cut_tail(slots: &mut Vec<u32>) {
    let stored = slots.iter().rposition(|&slot| slot != NOWHERE);
    slots.truncate(stored.map_or(0, |last| last + 1));
}

#[cfg(test)]
mod tests;
