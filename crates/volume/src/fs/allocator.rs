//! Which blocks are taken: two bitmaps over dense ids, lowest free id first.
//!
//! `used` is the present truth, `committed` that of the last metadata commit. The volume below may
//! commit blocks on its own at any access, without our newer metadata. So after a crash the
//! committed metadata can meet newer blocks. Hence a block that the committed metadata names is not
//! reused before the next commit, even when it is freed. Only then are its contents known to be
//! unwanted.

use crate::{Error, Result};
use std::collections::BTreeSet;

/// Ids in one stored piece of the bitmap.
const PAGE_IDS: u64 = 4096;
const PAGE_WORDS: usize = PAGE_IDS as usize / 64;
/// Bytes of such a piece.
pub(super) const PAGE_BYTES: usize = PAGE_WORDS * 8;

/// The block allocator.
#[derive(Debug, Default)]
pub(super) struct Allocator {
    capacity: u64,
    used: Vec<u64>,
    committed: Vec<u64>,
    /// No id below this one can be handed out.
    lowest: u64,
    used_count: u64,
    /// Ids set in either bitmap: none of them can be handed out.
    held_count: u64,
    /// Pieces of the bitmap changed since they were last stored.
    dirty: BTreeSet<u64>,
    /// Ids given back since the last commit; some may be taken again.
    released: Vec<u64>,
}

impl Allocator {
    pub(super) fn new(capacity: u64) -> Self {
        Allocator { capacity, ..Allocator::default() }
    }

    /// Free blocks, for use now.
    pub(super) fn free(&self) -> u64 {
        self.capacity - self.held_count.min(self.capacity)
    }

    /// Blocks that a commit would free.
    pub(super) fn deferred(&self) -> u64 {
        self.held_count - self.used_count
    }

    /// How many blocks may be in use. After that was lowered, some used ones have higher ids; new
    /// ones get lower ids.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn set_capacity(&mut self, blocks: u64) {
        self.capacity = blocks;
        self.lowest = 0;
    }

    /// Counts an id in use, wherever it is.
    pub(super) fn claim(&mut self, id: u64) {
        if !self.is_used(id) {
            self.mark(id);
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used_count
    }

    pub(super) fn is_used(&self, id: u64) -> bool {
        bit(&self.used, id)
    }

    /// Whether the last committed metadata counts this block as taken.
    pub(super) fn is_committed(&self, id: u64) -> bool {
        bit(&self.committed, id)
    }

    /// Takes the lowest free id.
    pub(super) fn take(&mut self) -> Option<u64> {
        let id = self.next_free(self.lowest)?;
        self.mark(id);
        self.lowest = id + 1;
        Some(id)
    }

    /// Takes up to `wanted` ids in a row: the lowest run that is long enough, else the longest.
    pub(super) fn take_run(&mut self, wanted: u64) -> Option<(u64, u64)> {
        let mut best: Option<(u64, u64)> = None;
        let mut at = self.lowest;
        while let Some(start) = self.next_free(at) {
            let len = self.free_len(start, wanted);
            if best.is_none_or(|(_, longest)| len > longest) {
                best = Some((start, len));
            }
            if len >= wanted {
                break;
            }
            at = start + len;
        }
        let (start, len) = best?;
        (start..start + len).for_each(|id| self.mark(id));
        Some((start, len))
    }

    /// Takes exactly these ids if all are free (to lengthen a run).
    pub(super) fn take_exact(&mut self, first: u64, count: u64) -> bool {
        let free = self.free_len(first, count) == count;
        if free {
            (first..first + count).for_each(|id| self.mark(id));
        }
        free
    }

    /// Gives an id back: at once if it was taken since the last commit, else with the next commit.
    pub(super) fn release(&mut self, id: u64) {
        debug_assert!(bit(&self.used, id), "block {id} is released twice");
        clear(&mut self.used, id);
        self.used_count -= 1;
        if !bit(&self.committed, id) {
            self.held_count -= 1;
            self.lowest = self.lowest.min(id);
        }
        self.dirty.insert(id / PAGE_IDS);
        self.released.push(id);
    }

    /// Gives back an id that no committed metadata names, whatever `committed` says.
    pub(super) fn release_at_once(&mut self, id: u64) {
        clear(&mut self.committed, id);
        self.release(id);
    }

    /// The pieces of the bitmap to store, as `(number, bytes)`, without the ids of `except`: the
    /// metadata file keeps account of its own blocks, and still takes some while this bitmap is
    /// being stored.
    pub(super) fn dirty_pages(&self, except: impl Iterator<Item = u64>) -> Vec<(u64, Vec<u8>)> {
        let mut used = self.used.clone();
        except.for_each(|id| clear(&mut used, id));
        let page = |&page: &u64| (page, page_bytes(&used, page));
        self.dirty.iter().map(page).collect()
    }

    /// The metadata with this state is durable: `used` becomes `committed`. Gives the blocks that
    /// nothing refers to any more.
    pub(super) fn committed(&mut self) -> Vec<u64> {
        self.committed.resize(self.used.len(), 0);
        for page in std::mem::take(&mut self.dirty) {
            let start = (page as usize * PAGE_WORDS).min(self.used.len());
            let end = (start + PAGE_WORDS).min(self.used.len());
            self.committed[start..end].copy_from_slice(&self.used[start..end]);
        }
        self.held_count = self.used_count;
        self.lowest = 0;
        let unwanted = self.unwanted();
        self.released.clear();
        unwanted
    }

    /// Takes all that is in use for committed, though it is to be stored still: what is given back
    /// stays untouched until the next commit.
    pub(super) fn hold_all(&mut self) {
        self.committed = self.used.clone();
        self.held_count = self.used_count;
    }

    /// The blocks that nothing refers to after the next commit.
    pub(super) fn unwanted(&self) -> Vec<u64> {
        let mut released = self.released.clone();
        released.sort_unstable();
        released.dedup();
        released.retain(|&id| !self.is_used(id));
        released
    }

    /// Forgets all changes since the last commit.
    pub(super) fn go_back(&mut self) {
        self.used = self.committed.clone();
        self.used_count = self.used.iter().map(|word| u64::from(word.count_ones())).sum();
        self.held_count = self.used_count;
        self.lowest = 0;
        self.dirty.clear();
        self.released.clear();
    }

    /// Loads one stored piece, for a volume with `ids` addressable ids.
    pub(super) fn load_page(&mut self, page: u64, bytes: &[u8], ids: u64) -> Result<()> {
        for (index, word) in bytes.as_chunks().0.iter().enumerate().take(PAGE_WORDS) {
            let word = u64::from_le_bytes(*word);
            for bit in (0..64).filter(|bit| word >> bit & 1 == 1) {
                let id = page * PAGE_IDS + index as u64 * 64 + bit;
                if id >= ids {
                    return Err(Error::Tampered(format!(
                        "block {id} is in use beyond the volume's capacity"
                    )));
                }
                self.claim(id);
            }
        }
        Ok(())
    }

    /// One above the highest id in use.
    pub(super) fn high_water(&self) -> u64 {
        self.used
            .iter()
            .rposition(|&word| word != 0)
            .map_or(0, |at| at as u64 * 64 + 64 - u64::from(self.used[at].leading_zeros()))
    }

    fn mark(&mut self, id: u64) {
        set(&mut self.used, id);
        self.used_count += 1;
        if !bit(&self.committed, id) {
            self.held_count += 1;
        }
        self.dirty.insert(id / PAGE_IDS);
    }

    fn next_free(&self, from: u64) -> Option<u64> {
        let mut at = from;
        while at < self.capacity {
            let held = word(&self.used, at) | word(&self.committed, at) | ((1 << (at % 64)) - 1);
            if held != u64::MAX {
                let id = at / 64 * 64 + u64::from(held.trailing_ones());
                return (id < self.capacity).then_some(id);
            }
            at = at / 64 * 64 + 64;
        }
        None
    }

    /// How many ids from `start` on are free, up to `most`.
    fn free_len(&self, start: u64, most: u64) -> u64 {
        (start..self.capacity.min(start.saturating_add(most)))
            .take_while(|&id| !bit(&self.used, id) && !bit(&self.committed, id))
            .count() as u64
    }
}

fn page_bytes(words: &[u64], page: u64) -> Vec<u8> {
    let start = page as usize * PAGE_WORDS;
    let words = (start..start + PAGE_WORDS).map(|at| words.get(at).copied().unwrap_or(0));
    words.flat_map(u64::to_le_bytes).collect()
}

fn word(words: &[u64], id: u64) -> u64 {
    words.get((id / 64) as usize).copied().unwrap_or(0)
}

fn bit(words: &[u64], id: u64) -> bool {
    word(words, id) >> (id % 64) & 1 == 1
}

fn set(words: &mut Vec<u64>, id: u64) {
    let at = (id / 64) as usize;
    if at >= words.len() {
        words.resize((at + 1).next_multiple_of(PAGE_WORDS), 0);
    }
    words[at] |= 1 << (id % 64);
}

fn clear(words: &mut [u64], id: u64) {
    words[(id / 64) as usize] &= !(1 << (id % 64));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_first_and_no_reuse_before_commit() {
        let mut allocator = Allocator::new(200);
        let ids: Vec<_> = (0..130).map(|_| allocator.take()).collect();
        assert_eq!(ids, (0..130).map(Some).collect::<Vec<_>>());
        allocator.release(5);
        assert_eq!(allocator.take(), Some(5), "never committed: free at once");
        allocator.committed();
        allocator.release(7);
        assert_eq!(allocator.deferred(), 1);
        assert_eq!(allocator.take(), Some(130), "7 is still named by the commit");
        assert_eq!(allocator.committed(), [7], "5 was taken again");
        assert_eq!(allocator.take(), Some(7));
        assert_eq!(allocator.free(), 200 - 131);
        assert_eq!(allocator.high_water(), 131);
    }

    #[test]
    fn going_back_undoes_what_no_commit_knows() {
        let mut allocator = Allocator::new(200);
        for _ in 0..70 {
            allocator.take();
        }
        allocator.committed();
        allocator.release(3);
        assert_eq!(allocator.take(), Some(70));
        allocator.go_back();
        assert_eq!((allocator.used(), allocator.free(), allocator.deferred()), (70, 130, 0));
        assert!(allocator.is_used(3) && !allocator.is_used(70));
        assert_eq!(allocator.committed(), [0; 0]);
        assert_eq!(allocator.take(), Some(70));
    }

    #[test]
    fn what_is_in_use_counts_where_the_capacity_was_lowered() {
        let mut allocator = Allocator::new(200);
        assert_eq!((0..150).filter_map(|_| allocator.take()).count(), 150);
        allocator.committed();
        (0..100).for_each(|id| allocator.release(id));
        allocator.committed();
        allocator.set_capacity(60);
        assert_eq!((allocator.used(), allocator.free()), (50, 10));
        assert_eq!(allocator.take_run(20), Some((0, 20)), "ids are not what is short");
        assert_eq!(allocator.free(), 0);
        allocator.set_capacity(10);
        assert_eq!((allocator.free(), allocator.take()), (0, None));
    }

    #[test]
    fn runs_and_pages() {
        let mut allocator = Allocator::new(10_000);
        for _ in 0..100 {
            allocator.take();
        }
        allocator.release(10);
        allocator.release(11);
        assert_eq!(allocator.take_run(5), Some((100, 5)));
        assert_eq!(allocator.take_run(2), Some((10, 2)));
        assert!(allocator.take_exact(5_000, 1) && !allocator.take_exact(4_999, 2));
        let mut loaded = Allocator::new(10_000);
        for (page, bytes) in allocator.dirty_pages(std::iter::empty()) {
            assert_eq!(bytes.len(), PAGE_WORDS * 8);
            assert!(Allocator::new(100).load_page(page, &bytes, 100).is_err(), "no such block");
            loaded.load_page(page, &bytes, 10_000).unwrap();
        }
        assert_eq!(loaded.used(), allocator.used());
        assert_eq!(loaded.high_water(), 5_001);
        let mut small = Allocator::new(3);
        assert_eq!(small.take_run(8), Some((0, 3)));
        assert_eq!(small.take(), None);
    }
}
