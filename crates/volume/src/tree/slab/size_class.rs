//! One object of equal slots: which are free, and which go back to the store.
//!
//! A write takes the lowest free slot (except in a growing object), so an object whose tree shrinks
//! moves to its front. Free space at its end is cut off; free space in between is given back.

use crate::{Error, Result};
use oblivio_store::Slots;
use std::collections::BTreeSet;

/// The alignment where it costs little space: a system that keeps pages then need not read the rest
/// of a page from the disk before it writes a part of it.
pub const PAGE: usize = 4096;
/// The least alignment of slots: a torn write touches no other slot's sector.
pub const SECTOR: usize = 512;
/// The least run of free slots to give back, in bytes; with slots of whole pages, one slot. Less is
/// not worth a hole.
const LEAST_HOLE: u64 = 64 << 10;
/// The least free end to cut off, in bytes; it must also be an eighth of the slab.
const LEAST_CUT: u64 = 1 << 20;
/// The longest hole made at once, and the most cut off at a time: a disk takes its time over a
/// discard.
pub(super) const MOST_HOLE: u64 = 256 << 10;
pub(super) const MOST_CUT: u64 = 16 << 20;

/// How far the next commit is.
#[derive(Clone, Copy, Default)]
pub struct Interval {
    /// Scheduled paths since the last one.
    pub done: u64,
    /// The count at which the next one is due.
    pub planned: u64,
}

impl Interval {
    /// From `1 / EARLY` of the interval on, the past predicts the rest.
    const EARLY: u64 = 16;

    /// The expected rest, given `so_far`.
    fn to_come(self, so_far: u64) -> u64 {
        let left = self.planned.saturating_sub(self.done);
        if self.done * Self::EARLY < self.planned { 0 } else { so_far * left / self.done.max(1) }
    }
}

/// Slots for buckets of one length.
pub(super) struct SizeClass {
    /// The object that holds them.
    pub object: &'static str,
    /// Bytes of a bucket.
    pub bucket_bytes: usize,
    /// Bytes from one slot to the next.
    pub slot_bytes: u64,
    /// Writable slots.
    pub free: BTreeSet<u32>,
    /// Further writable slots, whose space was given back.
    pub holes: BTreeSet<u32>,
    /// Slots written before each of the last commits. Commits come at several rhythms, so the last
    /// alone says little. The shelf keeps as many free slots as the busiest interval took.
    lately: [u64; 4],
    /// Whether a part of the free end was cut off, and the rest is to follow.
    cutting: bool,
    /// Slots of versions that the next commit makes old.
    retired: Vec<u32>,
    /// Slots written since the last commit.
    fresh: u64,
    /// Slots of the object.
    pub end: u32,
    /// The part due so far of the slots to be added until the commit.
    owed: u64,
}

impl SizeClass {
    /// No slots, for buckets of `bucket_bytes`, each at a multiple of `align`.
    pub fn new(object: &'static str, bucket_bytes: usize, align: usize) -> Self {
        Self {
            object,
            bucket_bytes,
            slot_bytes: bucket_bytes.next_multiple_of(align) as u64,
            free: BTreeSet::new(),
            holes: BTreeSet::new(),
            lately: [0; 4],
            cutting: false,
            retired: Vec::new(),
            fresh: 0,
            end: 0,
            owed: 0,
        }
    }

    /// Loads the used slots; the others are free. What lies beyond the object's `bytes` is lost.
    ///
    /// # Errors
    /// `Tampered` if two buckets share a slot, or the whole object is gone: it may be elsewhere
    /// yet.
    pub fn restore(&mut self, used: impl Iterator<Item = u32> + Clone, bytes: u64) -> Result<()> {
        let end = used.clone().max().map_or(0, |slot| slot + 1);
        if end > 0 && bytes == 0 {
            return Err(Error::Tampered(format!("{:?} is missing, or empty", self.object)));
        }
        let mut taken = vec![false; end as usize];
        for slot in used {
            if std::mem::replace(&mut taken[slot as usize], true) {
                return Err(Error::Tampered("two buckets share a slot".into()));
            }
        }
        self.free = (0..end).filter(|&slot| !taken[slot as usize]).collect();
        self.end = end;
        Ok(())
    }

    /// Cuts off everything beyond the slots of an object of `len` bytes.
    ///
    /// # Errors
    /// Those of the store.
    pub fn trim(&self, store: &dyn Slots, len: u64) -> Result<()> {
        let used = self.bytes();
        if len > used { Ok(store.truncate(self.object, used)?) } else { Ok(()) }
    }

    /// A slot's byte offset.
    pub fn offset(&self, slot: u32) -> u64 {
        u64::from(slot) * self.slot_bytes
    }

    /// Bytes of all slots.
    pub fn bytes(&self) -> u64 {
        u64::from(self.end) * self.slot_bytes
    }

    /// Whether any slot was written since the last commit.
    pub fn has_fresh(&self) -> bool {
        self.fresh > 0
    }

    /// How many buckets it holds.
    pub fn buckets(&self) -> u64 {
        self.held() - self.retired.len() as u64
    }

    /// How many versions it holds that are current, or were at the last commit.
    pub fn held(&self) -> u64 {
        u64::from(self.end) - (self.free.len() + self.holes.len()) as u64
    }

    /// Bytes of current versions.
    pub fn current_bytes(&self) -> u64 {
        self.held() * self.slot_bytes
    }

    /// Bytes of free slots that still take space in the store.
    pub fn free_bytes(&self) -> u64 {
        self.free.len() as u64 * self.slot_bytes
    }

    /// Those among them that the next commits will hardly use.
    pub fn idle_bytes(&self) -> u64 {
        self.free.len().saturating_sub(self.spare()) as u64 * self.slot_bytes
    }

    /// Free slots to keep. A shelf without buckets was left by leaves that now have another number
    /// of slots.
    fn spare(&self) -> usize {
        if self.held() == 0 { 0 } else { self.busiest() as usize }
    }

    fn busiest(&self) -> u64 {
        self.lately.into_iter().fold(0, u64::max)
    }

    /// A slot for a new version, below `limit`.
    pub fn take(&mut self, limit: u32, interval: Interval) -> Option<u32> {
        let longer = self.end < limit && self.owes_a_slot(interval);
        let slot = match if longer { None } else { self.take_lowest() } {
            Some(slot) => slot,
            None if self.end == limit => return None,
            None => {
                self.end += 1;
                self.end - 1
            }
        };
        self.fresh += 1;
        Some(slot)
    }

    /// Whether a slot beyond the end is due. Writes to new space cost most. So if the free slots
    /// will not last until the commit, the rest is added evenly, and not after all free slots are
    /// used. The busiest of the last intervals predicts the need, or this one if it is busier: a
    /// tree of another size has more buckets of some length.
    fn owes_a_slot(&mut self, interval: Interval) -> bool {
        let left = self.busiest().saturating_sub(self.fresh).max(interval.to_come(self.fresh));
        self.owed += left.saturating_sub((self.free.len() + self.holes.len()) as u64);
        let owes = left > 0 && self.owed >= left;
        if owes {
            self.owed -= left;
        }
        owes
    }

    fn take_lowest(&mut self) -> Option<u32> {
        match (self.free.first(), self.holes.first()) {
            (Some(free), Some(hole)) if hole < free => self.holes.pop_first(),
            (Some(_), _) => self.free.pop_first(),
            (None, _) => self.holes.pop_first(),
        }
    }

    /// Retires a slot's content with the next commit.
    pub fn retire(&mut self, slot: u32) {
        self.retired.push(slot);
    }

    /// Notes that the commit is durable: old versions are free.
    pub fn committed(&mut self) {
        self.owed = 0;
        self.free.extend(self.retired.drain(..));
        self.lately.rotate_right(1);
        self.lately[0] = std::mem::take(&mut self.fresh);
    }

    /// Gives back space that the next commits will not need, in at most `most_holes` holes; says
    /// whether there may be more. No durable commit refers to free space.
    ///
    /// # Errors
    /// Those of the store.
    pub fn reclaim(&mut self, store: &dyn Slots, most_holes: usize) -> Result<bool> {
        let spare = self.spare();
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
            (self.object, offset, u64::from(end - first) * self.slot_bytes)
        };
        store.discard(&ranges.iter().map(bytes).collect::<Vec<_>>())?;
        for slot in ranges.into_iter().flat_map(|(first, end)| first..end) {
            self.free.remove(&slot);
            self.holes.insert(slot);
        }
        Ok(true)
    }

    /// Cuts off the end if enough of it is free, beyond `spare` free slots; of much it leaves the
    /// rest for later.
    fn cut_end(&mut self, store: &dyn Slots, spare: usize) -> Result<()> {
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
        store.truncate(self.object, u64::from(end) * self.slot_bytes)?;
        self.free.split_off(&end);
        self.holes.split_off(&end);
        self.end = end;
        Ok(())
    }

    /// Runs of free slots beyond the first `spare`.
    fn new_holes(&self, spare: usize, most: usize) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let bytes = |run: &(u32, u32)| u64::from(run.1 - run.0) * self.slot_bytes;
        let pages = self.slot_bytes.is_multiple_of(PAGE as u64);
        let least = if pages { LEAST_HOLE.min(self.slot_bytes) } else { LEAST_HOLE };
        let long = |run: &(u32, u32)| bytes(run) >= least;
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
