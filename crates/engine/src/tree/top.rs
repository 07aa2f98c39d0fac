//! A log of the top of a tree, as its owner handles it: it begins, it ends, it is found again.

use super::backend::{met_lost, open_bucket, open_entry};
use super::bounds::STASH_BOUND;
use super::bucket_cache::Resident;
use super::frontend::TreeOram;
use super::geometry::SlotHeader;
use super::top_index;
use super::top_log::{Entry, FoundTop, STORED, TopLog, TopRule};
use crate::{BucketId, EngineError, Result};
use oblivio_crypto::{Tag, tag_of};
use std::ops::Range;

/// The log of an engine's top, to look at.
pub struct TopView<'e>(&'e TreeOram);

impl<'e> TopView<'e> {
    /// Of this engine.
    pub fn of(engine: &'e TreeOram) -> Self {
        Self(engine)
    }

    /// The rule of the log, and the numbers of the entries that may be needed. `None` without one.
    pub fn rule(&self) -> Option<(TopRule, Range<u64>)> {
        self.0.tree.top.log.as_ref().map(|log| (log.rule, log.first..log.next))
    }

    /// Quarters of an entry that the log owes.
    pub fn owed(&self) -> u64 {
        self.0.tree.top.log.as_ref().map_or(0, |log| log.quarters)
    }

    /// The buckets that only the log makes durable, descending.
    pub fn buckets(&self) -> Vec<BucketId> {
        top_index::logged(&self.0.tree)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.buckets().is_empty()
    }

    /// Bytes of an entry, as the store sees it.
    pub fn entry_bytes(&self) -> usize {
        self.0.tree.geometry.entry_bytes()
    }
}

/// The log of an engine's top, to change.
pub struct TopControl<'e>(&'e mut TreeOram);

impl<'e> TopControl<'e> {
    /// Of this engine.
    pub fn of(engine: &'e mut TreeOram) -> Self {
        Self(engine)
    }

    /// Keeps the first buckets, in heap order, in memory alone from now on: a commit need not flush
    /// them, and its state names their homes. Everything is flushed.
    ///
    /// # Errors
    /// `Invalid` for a tree that cannot have a log, and while a job is under way.
    pub fn begin(&mut self, rule: TopRule) -> Result<()> {
        self.expect_flushed()?;
        let engine = &mut *self.0;
        let can = engine.levels == 1 && !engine.config.pmmac && engine.config.tag_tree;
        if !can || engine.windows().is_some() || rule.buckets > engine.tree.cache.limit() {
            return Err(EngineError::Invalid("this tree cannot have a log".into()));
        }
        let tree = &mut engine.tree;
        tree.stash.iter_mut().for_each(|block| block.home = 0);
        let mut log = TopLog::new(rule, tree.top.next.max(1));
        // Blocks of the stash get into the top without an access, and how many is secret.
        log.quarters = 4 * STASH_BOUND as u64;
        tree.top.log = Some(log);
        Ok(())
    }

    /// Ends the log, if there is one, after a flush.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn end(&mut self) -> Result<()> {
        self.expect_flushed()?;
        let top = &mut self.0.tree.top;
        if let Some(log) = top.log.take() {
            top.next = log.next;
        }
        Ok(())
    }

    fn expect_flushed(&self) -> Result<()> {
        self.0.expect_idle()?;
        match self.0.tree.cache.dirty().is_empty() {
            true => Ok(()),
            false => Err(EngineError::Invalid("cached buckets wait for a flush".into())),
        }
    }

    /// After the newest state was loaded: puts the blocks of a logged top where they were, without
    /// their content, which [`Self::take`] brings. `None` if there is no log.
    ///
    /// # Errors
    /// `State` if two buckets of the index are one.
    pub fn find(&mut self) -> Result<Option<FoundTop>> {
        let tree = &mut self.0.tree;
        let Some(mut found) = tree.top.found.take() else { return Ok(None) };
        if tree.cache.limit() < found.rule.buckets {
            tree.cache.set_limit(found.rule.buckets);
        }
        let mut log = TopLog::new(found.rule, found.entries.start);
        log.entries.resize((found.entries.end - found.entries.start) as usize, Entry::NONE);
        log.next = found.entries.end;
        for it in &found.buckets {
            let meta = tree.cache.meta_mut(it.bucket);
            if std::mem::replace(&mut meta.dirty, true) {
                return Err(EngineError::State("a bucket of the top is listed twice"));
            }
            (meta.loaded, meta.child_tags, meta.slots) = (true, it.child_tags, it.slots);
            for block in &it.blocks {
                let (header, home) = (block.header, block.home);
                let payload = tree.pool.allocate();
                note(&mut log, &header, (home, block.tag));
                if found.wanted.insert(home, (header, payload)).is_some() {
                    return Err(EngineError::State("two blocks of the top have one home"));
                }
                tree.cache.push(it.bucket, Resident { header, payload, slot: 0, home });
            }
        }
        for (block, &(number, tag)) in tree.stash.iter_mut().zip(&found.stash) {
            if number & STORED != 0 || found.entries.contains(&number) {
                block.home = number;
                note(&mut log, &block.header, (number, tag));
            }
        }
        tree.top.log = Some(log);
        Ok(Some(found))
    }

    /// Opens an entry in place and takes its content, if a block needs it. Says whether it is as it
    /// was written; of one that nothing needs nobody knows.
    pub fn take(&mut self, found: &mut FoundTop, number: u64, sealed: &mut [u8]) -> bool {
        let Some((_, payload)) = found.wanted.get(&number).copied() else { return true };
        let tree = &mut self.0.tree;
        let entry = tree.top.log.as_ref().and_then(|log| log.entry(number));
        if sealed.len() != tree.geometry.entry_bytes() || entry.map(|it| it.tag) != tag_of(sealed) {
            return false;
        }
        let Some(content) = open_entry(tree, number, sealed) else { return false };
        tree.pool.get_mut(payload).copy_from_slice(content);
        found.wanted.remove(&number);
        true
    }

    /// Opens the stored version of a bucket in place and takes the blocks that have their home
    /// there. Says whether it is as it was written.
    pub fn take_bucket(
        &mut self,
        found: &mut FoundTop,
        bucket: BucketId,
        sealed: &mut [u8],
    ) -> bool {
        let tree = &mut self.0.tree;
        // Descending.
        let at = found.buckets.binary_search_by(|it| bucket.cmp(&it.bucket));
        let is_newest = at.is_ok_and(|at| Some(found.buckets[at].stored) == tag_of(sealed));
        let slots = tree.stored_slots(bucket);
        if !open_bucket(tree, bucket, sealed) {
            return false;
        }
        for slot in 0..slots {
            let home = STORED | tree.geometry.slot_id(bucket, slot).0;
            let Some((header, payload)) = found.wanted.get(&home).copied() else { continue };
            // Of an older version as well: a label is that of one version of a block.
            let there = tree.geometry.slot(sealed, slot);
            if (there.id, there.label) == (header.id, header.label) {
                let from = tree.geometry.payload_at(slots, slot);
                let content = &sealed[from..from + tree.geometry.block_bytes];
                tree.pool.get_mut(payload).copy_from_slice(content);
                found.wanted.remove(&home);
            }
        }
        is_newest
    }

    /// Ends the reading: blocks whose home did not come are lost.
    pub fn end_reading(&mut self, found: FoundTop) {
        let lost: Vec<u64> = found.wanted.into_keys().collect();
        if lost.is_empty() {
            return;
        }
        let tree = &mut self.0.tree;
        met_lost(tree);
        for it in &found.buckets {
            let is_lost = |block: &Resident| lost.binary_search(&block.home).is_ok();
            while let Some(at) = tree.cache.blocks(it.bucket).iter().position(is_lost) {
                let block = tree.cache.remove(it.bucket, at);
                tree.pool.release(block.payload);
            }
        }
    }
}

/// Notes which entry holds a block, if one does.
fn note(log: &mut TopLog, header: &SlotHeader, (home, tag): (u64, Tag)) {
    let at = home.checked_sub(log.first).and_then(|at| usize::try_from(at).ok());
    if let Some(entry) = at.and_then(|at| log.entries.get_mut(at)) {
        *entry = Entry { id: header.id, label: header.label, tag };
    }
}
