//! Finds and moves position-map entries: the PLB and recursion side of the front end.

use super::batch::{Batch, PathReason};
use super::bucket_cache::Resident;
use super::frontend::TreeOram;
use super::geometry::SlotHeader;
use super::plb::PlbEntry;
use super::position_map::{Advance, CountChange};
use crate::{Address, BlockId, Result};
use std::collections::BTreeSet;

impl TreeOram {
    /// The map block of `level` that leads to a data block.
    fn map_block(&self, data: BlockId, level: usize) -> Address {
        let entries = self.config.map_entries_per_block();
        (0..level).fold(data.into(), |id: Address, _| id.holder(entries))
    }

    /// The first data block of each map block that is not in the PLB. Empty unless the map recurses
    /// once and the PLB has room for all map blocks. After access to these data blocks, no map
    /// block needs a fetch.
    pub fn beyond_plb(&self) -> impl Iterator<Item = BlockId> {
        let of_each = self.config.map_entries_per_block();
        let there_are = self.size.blocks.div_ceil(of_each);
        // Consecutive map blocks are spread evenly over all sets.
        let fit = there_are <= self.plb.capacity() as u64 && self.levels == 2;
        let all = if fit { 0..there_are } else { 0..0 };
        all.map(move |map_block| BlockId(map_block * of_each))
            .filter(|&first| !self.plb.holds(self.map_block(first, 1)))
    }

    /// Takes this batch's map blocks out of the PLB (Freecursive §4.2.4, step 1).
    pub(super) fn take_from_plb(&mut self, batch: &mut Batch) {
        for op in &batch.ops {
            for level in 1..self.levels {
                let id = self.map_block(op.id, level);
                if batch.working.contains_key(&id) {
                    self.tree.meters.plb_hits += 1;
                    break;
                }
                if let Some(entry) = self.plb.take(id) {
                    self.tree.meters.plb_hits += 1;
                    batch.working.insert(id, entry);
                    break;
                }
                self.tree.meters.plb_misses += 1;
            }
        }
    }

    /// Plans the round that fetches the missing map blocks of `level`. False when none is missing.
    pub(super) fn plan_map_round(&mut self, batch: &mut Batch, level: usize) -> bool {
        batch.clear_plan();
        let mut planned = BTreeSet::new();
        for op in 0..batch.ops.len() {
            let data = batch.ops[op].id;
            let id = self.map_block(data, level);
            if !self.leads_from_working(batch, data, level) && planned.insert(id) {
                let counts = self.remap(batch, id);
                self.plan_block(batch, PathReason::MapFetch { id, counts }, id, counts);
            }
        }
        !batch.targets.is_empty()
    }

    /// Whether the batch already has a map block of `level` or below for this data block.
    fn leads_from_working(&self, batch: &Batch, data: BlockId, level: usize) -> bool {
        (1..=level).any(|at| batch.working.contains_key(&self.map_block(data, at)))
    }

    /// Advances a block to its next count, wherever its entry is.
    pub(super) fn remap(&mut self, batch: &mut Batch, id: Address) -> CountChange {
        if let Some(counts) = self.pending.remove(&id) {
            return counts;
        }
        let format = self.config.map_format;
        let (advance, index) = if id.level() + 1 == self.levels {
            let index = id.index() as usize;
            self.tree.changes.entries.push(index as u64);
            (format.advance(&mut self.on_chip, index), index)
        } else {
            let per_block = self.config.map_entries_per_block();
            let payload = batch.working[&id.holder(per_block)].payload;
            let index = (id.index() % per_block) as usize;
            (format.advance(self.tree.pool.get_mut(payload), index), index)
        };
        self.note_group_remap(batch, id.minus(index), &advance);
        advance.counts
    }

    /// Handles a group roll-over (Freecursive §5.2.2): its other blocks wait for maintenance to
    /// move them, except those in the PLB, which are in no bucket.
    fn note_group_remap(&mut self, batch: &mut Batch, first: Address, advance: &Advance) {
        if advance.siblings.is_empty() {
            return;
        }
        self.tree.meters.group_remaps += 1;
        for &(index, counts) in &advance.siblings {
            let id = first.plus(index);
            if let Some(entry) = batch.working.get_mut(&id) {
                entry.count = counts.new;
            } else if let Some(entry) = self.plb.get_mut(id) {
                entry.count = counts.new;
            } else {
                self.pending.entry(id).or_insert(counts).new = counts.new;
            }
        }
        self.tree.meters.remap_backlog_peak =
            self.tree.meters.remap_backlog_peak.max(self.pending.len() as u64);
    }

    /// Read-removes a map block (Freecursive §4.2.2) and checks it.
    pub(super) fn fetch_map_block(
        &mut self,
        batch: &mut Batch,
        index: usize,
        id: Address,
        counts: CountChange,
    ) -> Result<()> {
        let absent = self.is_absent(index, id, counts)?;
        let payload = match self.tree.remove(index) {
            Some(payload) => payload,
            None => self.tree.pool.allocate(),
        };
        if absent {
            let first = self.first_entry(id);
            let bytes = self.tree.pool.get_mut(payload);
            self.config.map_format.fill_fresh(bytes, 0, first, &self.prf);
        }
        // A sibling of the same round may have rolled the group over since the plan.
        let count = self.pending.remove(&id).map_or(counts.new, |later| later.new);
        batch.working.insert(id, PlbEntry::new(id, count, payload));
        Ok(())
    }

    /// The block of the first entry in map block `id`.
    pub(super) fn first_entry(&self, id: Address) -> Address {
        id.first_entry(self.config.map_entries_per_block())
    }

    /// Puts the batch's map blocks into the PLB. Displaced blocks go to the stash before the data
    /// round evicts, so the net occupancy is unchanged (Observation 2).
    pub(super) fn refill_plb(&mut self, batch: &mut Batch) {
        while let Some((_, entry)) = batch.working.pop_first() {
            if let Some(PlbEntry { id, count, payload, .. }) = self.plb.insert(entry) {
                let label = self.label(id, count);
                let mac = self.pmmac.tag(id, count, self.tree.pool.get(payload));
                let header = SlotHeader::of(id.0, label, mac);
                self.tree.append(Resident { header, payload, slot: 0, home: 0 });
            }
        }
    }
}
