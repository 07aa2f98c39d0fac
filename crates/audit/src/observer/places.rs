//! The place of each bucket, as an observer of the store knows it: the place of its last write.
//!
//! A session begins with a table that the volume states. From then on, every write that the rule
//! demands moves one bucket to the place that the store saw. A new version goes to the lowest free
//! place of its object or to a new one at the end, so the choice of a place reveals nothing.

use crate::trace::TraceRule;
use std::collections::{BTreeMap, HashMap, HashSet};

/// An object and an offset in it.
pub(super) type Place = (String, u64);

/// The object of buckets with `slots` of `most` slots.
pub(crate) fn object_of(slots: u32, most: u32) -> String {
    if slots >= most { "slab".into() } else { format!("slab-{slots}") }
}

/// Whether an object holds buckets.
pub(super) fn is_slab(object: &str) -> bool {
    object == "slab" || object.starts_with("slab-")
}

/// Free places, as runs: the first of each, and one beyond its last. A record with distant places
/// costs no more than one without.
#[derive(Clone, Debug, Default)]
struct Free(BTreeMap<u64, u64>);

impl Free {
    /// All places below the last taken one that are not taken (ascending).
    fn between(taken: &[u64]) -> Self {
        let mut runs = BTreeMap::new();
        let mut next = 0;
        for &slot in taken {
            if next < slot {
                runs.insert(next, slot);
            }
            next = slot.saturating_add(1);
        }
        Free(runs)
    }

    fn first(&self) -> Option<u64> {
        self.0.first_key_value().map(|(&first, _)| first)
    }

    fn run_of(&self, slot: u64) -> Option<(u64, u64)> {
        let (&first, &end) = self.0.range(..=slot).next_back()?;
        (slot < end).then_some((first, end))
    }

    fn add(&mut self, slot: u64) {
        self.0.insert(slot, slot.saturating_add(1));
    }

    fn remove(&mut self, slot: u64) {
        let Some((first, end)) = self.run_of(slot) else { return };
        self.0.remove(&first);
        for (first, end) in [(first, slot), (slot.saturating_add(1), end)] {
            if first < end {
                self.0.insert(first, end);
            }
        }
    }

    /// The first place from `slot` on that is not free.
    fn end_of_run(&self, mut slot: u64) -> u64 {
        while let Some((_, end)) = self.run_of(slot) {
            slot = end;
        }
        slot
    }

    fn cut(&mut self, end: u64) {
        self.0.split_off(&end);
        if let Some(mut last) = self.0.last_entry() {
            *last.get_mut() = (*last.get()).min(end);
        }
    }
}

/// The places of one object.
#[derive(Clone, Debug, Default)]
struct Shelf {
    /// The distance of two places; 0 while unknown.
    stride: u64,
    free: Free,
    /// Free after the next commit.
    retired: Vec<u64>,
    /// Its number of places.
    end: u64,
}

/// The places of all buckets.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    at: HashMap<u64, Place>,
    shelves: HashMap<String, Shelf>,
    /// The table's entry before each change since the last commit.
    undo: Vec<(u64, Option<Place>)>,
    /// Buckets that the tree dropped since then.
    dropped: Vec<u64>,
}

impl Places {
    /// Sets the distance of two places, from a hint to the store.
    pub(super) fn round_up(&mut self, object: &str, stride: u64) {
        self.shelves.entry(object.into()).or_default().stride = stride;
    }

    /// Undoes the writes since the last commit: the session broke off.
    pub(super) fn revert(&mut self) {
        while let Some((bucket, before)) = self.undo.pop() {
            match before {
                Some(place) => self.at.insert(bucket, place),
                None => self.at.remove(&bucket),
            };
        }
        self.dropped.clear();
    }

    /// Whether the table equals this one.
    pub(super) fn is(&self, table: &HashMap<u64, Place>) -> bool {
        &self.at == table
    }

    /// The table that a rule states at the start of a session; `None` when it makes no sense.
    pub(super) fn named(
        rule: &TraceRule,
        slots_of: impl Fn(u64) -> u32,
    ) -> Option<HashMap<u64, Place>> {
        let runs = rule.stored.iter().flatten();
        let count = runs.clone().fold(0u64, |sum, run| sum.saturating_add(run.1));
        if count != rule.places.len() as u64 {
            return None;
        }
        let buckets = runs.flat_map(|&(first, count)| first..first.saturating_add(count));
        let place = |(bucket, &offset)| (bucket, (object_of(slots_of(bucket), rule.slots), offset));
        Some(buckets.zip(&rule.places).map(place).collect())
    }

    /// Begins a session with this table. Every other place is free.
    pub(super) fn begin(&mut self, table: HashMap<u64, Place>) -> Option<String> {
        self.undo.clear();
        self.dropped.clear();
        let mut used: HashMap<&str, HashSet<u64>> = HashMap::new();
        let mut twice = None;
        for (object, offset) in table.values() {
            if !used.entry(object).or_default().insert(*offset) {
                twice = Some(format!("two buckets lie at {offset} of {object}"));
            }
        }
        for (object, shelf) in &mut self.shelves {
            let taken = used.remove(object.as_str()).unwrap_or_default();
            let mut taken: Vec<u64> =
                taken.iter().map(|offset| offset / shelf.stride.max(1)).collect();
            taken.sort_unstable();
            shelf.end = taken.last().map_or(0, |last| last + 1);
            shelf.free = Free::between(&taken);
            shelf.retired.clear();
        }
        self.at = table;
        twice
    }

    /// The place of a bucket.
    pub(super) fn of(&self, bucket: u64) -> Option<&Place> {
        self.at.get(&bucket)
    }

    /// Records a new version of a bucket at this place. Returns its fault, if any.
    pub(super) fn write(&mut self, bucket: u64, object: &str, offset: u64) -> Option<String> {
        let before = self.at.insert(bucket, (object.into(), offset));
        if let Some((object, offset)) = &before {
            self.retire(object.clone(), *offset);
        }
        self.undo.push((bucket, before));
        let shelf = self.shelves.entry(object.into()).or_default();
        if shelf.stride == 0 {
            return Some(format!("nobody said how far apart places of {object} are"));
        }
        let slot = offset / shelf.stride;
        let lowest = shelf.free.first();
        if slot == shelf.end && offset.is_multiple_of(shelf.stride) {
            shelf.end += 1;
            return None;
        }
        shelf.free.remove(slot);
        (lowest != Some(slot) || !offset.is_multiple_of(shelf.stride)).then(|| {
            let lowest = lowest.unwrap_or(shelf.end) * shelf.stride;
            format!(
                "bucket {bucket} went to {offset} of {object}, where {lowest} was the next place"
            )
        })
    }

    fn retire(&mut self, object: String, offset: u64) {
        let shelf = self.shelves.entry(object).or_default();
        shelf.retired.push(offset / shelf.stride.max(1));
    }

    /// Records that the tree dropped these buckets; the next commit forgets them.
    pub(super) fn drop_all(&mut self, buckets: &[u64]) {
        self.dropped.extend(buckets);
    }

    /// Forgets dropped buckets, except those written again.
    pub(super) fn forget_dropped(&mut self, is_stored: impl Fn(u64) -> bool) {
        for bucket in std::mem::take(&mut self.dropped) {
            if is_stored(bucket) {
                continue;
            }
            if let Some((object, offset)) = self.at.remove(&bucket) {
                self.undo.push((bucket, Some((object.clone(), offset))));
                self.retire(object, offset);
            }
        }
    }

    /// Records a durable commit: old versions are free.
    pub(super) fn committed(&mut self) {
        self.undo.clear();
        for shelf in self.shelves.values_mut() {
            for slot in shelf.retired.drain(..) {
                shelf.free.add(slot);
            }
        }
    }

    /// Records a cut of an object. Returns its fault, if any.
    pub(super) fn cut(&mut self, object: &str, len: u64) -> Option<String> {
        let shelf = self.shelves.get_mut(object)?;
        let end = len / shelf.stride.max(1);
        let lost = shelf.free.end_of_run(end);
        let wrong = (lost < shelf.end)
            .then(|| format!("{object} was cut to {len} bytes, with a bucket in place {lost}"));
        shelf.free.cut(end);
        shelf.end = shelf.end.min(end);
        wrong
    }

    /// Checks a discard of a range. Returns its fault, if any.
    pub(super) fn discard(&self, object: &str, offset: u64, len: u64) -> Option<String> {
        let shelf = self.shelves.get(object)?;
        let stride = shelf.stride.max(1);
        let end = offset.saturating_add(len).div_ceil(stride).min(shelf.end);
        (shelf.free.end_of_run(offset / stride) < end).then(|| {
            format!("{len} bytes at {offset} of {object} were given back, with a bucket there")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        let mut places = Places::default();
        places.round_up("slab", 100);
        let table = [(1, 0), (2, 200), (3, 400)];
        let table = table.map(|(bucket, offset)| (bucket, ("slab".to_owned(), offset)));
        assert!(places.begin(table.into()).is_none());
        places
    }

    #[test]
    fn the_lowest_free_place_or_the_end_is_right() {
        let mut places = places();
        assert!(places.write(1, "slab", 100).is_none(), "the lowest");
        assert!(places.write(2, "slab", 500).is_none(), "at the end");
        assert!(places.write(3, "slab", 500).is_some(), "taken");
        let mut places = self::places();
        assert!(places.write(1, "slab", 300).is_some(), "not the lowest");
        assert!(places.write(1, "slab", 150).is_some(), "between two");
        assert!(places.write(1, "slab", 900).is_some(), "beyond the end");
    }

    #[test]
    fn places_are_free_after_a_commit_and_come_back_without() {
        let mut places = places();
        assert!(places.write(1, "slab", 100).is_none());
        assert!(places.discard("slab", 0, 100).is_some(), "not yet");
        let before = places.clone();
        places.committed();
        assert!(places.discard("slab", 0, 100).is_none());
        assert!(places.write(2, "slab", 0).is_none(), "it is the lowest now");
        let mut broken = before;
        broken.revert();
        assert_eq!(broken.of(1), Some(&("slab".into(), 0)));
        assert!(places.cut("slab", 400).is_some(), "a bucket is at the end");
    }

    #[test]
    fn free_places_are_runs_that_split() {
        let mut free = Free::between(&[2, 5, 1 << 60]);
        let has = |free: &Free, slot| free.run_of(slot).is_some();
        assert_eq!((free.first(), has(&free, 1), has(&free, 2)), (Some(0), true, false));
        free.remove(0);
        free.remove(1000);
        assert!(has(&free, 999) && has(&free, 1001) && !has(&free, 1000));
        assert_eq!((free.first(), free.end_of_run(6)), (Some(1), 1000));
        free.add(2);
        assert_eq!(free.end_of_run(1), 5);
        free.cut(4);
        assert!(has(&free, 3) && !has(&free, 4) && !has(&free, 999));
    }

    #[test]
    fn two_buckets_in_one_place_are_no_table() {
        let table = [1, 2].map(|bucket| (bucket, ("slab".to_owned(), 0)));
        assert!(places().begin(table.into()).is_some());
    }
}
