//! Finds and moves position-map entries: the PLB and recursion side of the front end.

use super::batch::{Batch, Target};
use super::bucket_cache::Resident;
use super::config::Recursion;
use super::frontend::{LEVEL_SHIFT, TreeOram};
use super::plb::PlbEntry;
use super::position_map::{Advance, Counts};
use crate::Result;
use oblivio_crypto::Tag;
use std::collections::BTreeSet;

/// The level of recursion in an address `i || a_i` (Freecursive §4.2.1).
fn level_of(id: u64) -> usize {
    (id >> LEVEL_SHIFT) as usize
}

fn index_of(id: u64) -> u64 {
    id & ((1 << LEVEL_SHIFT) - 1)
}

impl TreeOram {
    /// The address of the map block of `level` that leads to data block `data`.
    fn map_block(&self, data: u64, level: usize) -> u64 {
        let mut index = data;
        for _ in 0..level {
            index /= self.config.map_entries_per_block();
        }
        (level as u64) << LEVEL_SHIFT | index
    }

    /// The first data block of each map block that is not in the PLB. Empty unless the map recurses
    /// once and the PLB has room for all map blocks. After access to these data blocks, no map
    /// block needs a fetch.
    pub fn beyond_plb(&self) -> impl Iterator<Item = u64> {
        let of_each = self.config.map_entries_per_block();
        let there_are = self.size.blocks.div_ceil(of_each);
        // Consecutive map blocks are spread evenly over all sets.
        let fit = there_are <= self.plb.capacity() as u64 && self.levels == 2;
        let all = if fit && self.trees.len() == 1 { 0..there_are } else { 0..0 };
        all.map(move |map_block| map_block * of_each)
            .filter(|&first| !self.plb.holds(self.map_block(first, 1)))
    }

    /// Takes this batch's map blocks out of the PLB (Freecursive §4.2.4, step 1).
    pub(super) fn take_from_plb(&mut self, batch: &mut Batch) {
        if self.levels == 1 || self.trees.len() > 1 {
            return;
        }
        for op in 0..batch.ops.len() {
            let data = batch.ops[op].id.0;
            for level in 1..self.levels {
                let id = self.map_block(data, level);
                if batch.working.contains_key(&id) {
                    self.meters.plb_hits += 1;
                    break;
                }
                if let Some(entry) = self.plb.take(id) {
                    self.meters.plb_hits += 1;
                    batch.working.insert(id, entry);
                    break;
                }
                self.meters.plb_misses += 1;
            }
        }
    }

    /// Plans the round that fetches the missing map blocks of `level`. False when none is missing.
    pub(super) fn plan_map_round(&mut self, batch: &mut Batch, level: usize) -> bool {
        batch.clear_plan();
        let separate = matches!(self.config.recursion, Recursion::Separate { .. });
        let mut planned = BTreeSet::new();
        for op in 0..batch.ops.len() {
            let data = batch.ops[op].id.0;
            let id = self.map_block(data, level);
            if separate {
                if planned.insert(id) {
                    let counts = self.remap(batch, id);
                    self.plan_block(batch, Target::MapInPlace { id, counts }, id, counts);
                } else {
                    self.plan_idle(batch);
                }
            } else if !self.leads_from_working(batch, data, level) && planned.insert(id) {
                let counts = self.remap(batch, id);
                self.plan_block(batch, Target::MapFetch { id, counts }, id, counts);
            }
        }
        !batch.targets.is_empty()
    }

    /// Whether the batch already has a map block of `level` or below for this data block.
    fn leads_from_working(&self, batch: &Batch, data: u64, level: usize) -> bool {
        (1..=level).any(|at| batch.working.contains_key(&self.map_block(data, at)))
    }

    /// Advances a block to its next count, wherever its entry is.
    pub(super) fn remap(&mut self, batch: &mut Batch, id: u64) -> Counts {
        if let Some(counts) = self.pending.remove(&id) {
            return counts;
        }
        if let Some(counts) = batch.next_counts.remove(&id) {
            return counts;
        }
        let draw = self.draw_if_needed(batch);
        let level = level_of(id);
        let format = self.config.map_format;
        let (advance, index) = if level + 1 == self.levels {
            let index = index_of(id) as usize;
            self.trees[0].changes.entries.push(index as u64);
            (format.advance(&mut self.on_chip, index, draw), index)
        } else {
            let per_block = self.config.map_entries_per_block();
            let holder = (level as u64 + 1) << LEVEL_SHIFT | (index_of(id) / per_block);
            let payload = batch.working[&holder].payload;
            let index = (index_of(id) % per_block) as usize;
            (format.advance(self.trees[0].pool.get_mut(payload), index, draw), index)
        };
        self.note_group_remap(batch, id - index as u64, &advance);
        advance.counts
    }

    fn draw_if_needed(&self, batch: &mut Batch) -> u32 {
        match self.config.map_format {
            super::MapFormat::Label32 => (self.draw(batch) >> 32) as u32,
            _ => 0,
        }
    }

    /// Handles a group roll-over (Freecursive §5.2.2): its other blocks wait for maintenance to
    /// move them, except those in the PLB, which are in no bucket.
    fn note_group_remap(&mut self, batch: &mut Batch, first: u64, advance: &Advance) {
        if advance.siblings.is_empty() {
            return;
        }
        self.meters.group_remaps += 1;
        for &(index, counts) in &advance.siblings {
            let id = first + index as u64;
            if let Some(entry) = batch.working.get_mut(&id) {
                entry.count = counts.new;
            } else if let Some(entry) = self.plb.get_mut(id) {
                entry.count = counts.new;
            } else {
                self.pending.entry(id).or_insert(counts).new = counts.new;
            }
        }
        self.meters.remap_backlog_peak =
            self.meters.remap_backlog_peak.max(self.pending.len() as u64);
    }

    /// Read-removes a map block (Freecursive §4.2.2) and checks it.
    pub(super) fn fetch_map_block(
        &mut self,
        batch: &mut Batch,
        index: usize,
        id: u64,
        counts: Counts,
    ) -> Result<()> {
        let absent = self.is_absent(index, id, counts)?;
        let payload = match self.trees[0].remove(index) {
            Some(payload) => payload,
            None => self.trees[0].pool.allocate(),
        };
        if absent {
            let first = self.first_entry(id);
            let bytes = self.trees[0].pool.get_mut(payload);
            self.config.map_format.fill_fresh(bytes, 0, first, &self.prf);
        }
        // A sibling of the same round may have rolled the group over since the plan.
        let count = self.pending.remove(&id).map_or(counts.new, |later| later.new);
        batch.working.insert(id, PlbEntry::new(id, count, payload));
        Ok(())
    }

    /// The address of the block of the first entry in map block `id`.
    pub(super) fn first_entry(&self, id: u64) -> u64 {
        let level = (level_of(id) - 1) as u64;
        level << LEVEL_SHIFT | (index_of(id) * self.config.map_entries_per_block())
    }

    /// Advances the entries that this batch needs in a map block that stays in its tree.
    pub(super) fn use_map_block(
        &mut self,
        batch: &mut Batch,
        tree: usize,
        index: usize,
        id: u64,
        counts: Counts,
    ) {
        if self.trees[tree].target(index).is_none() {
            self.trees[tree].insert(index, id);
        }
        let level = level_of(id);
        let per_block = self.config.map_entries_per_block();
        for op in 0..batch.ops.len() {
            let data = batch.ops[op].id.0;
            let child = self.map_block(data, level - 1);
            if self.map_block(data, level) != id || batch.next_counts.contains_key(&child) {
                continue;
            }
            let draw = self.draw_if_needed(batch);
            let content = self.trees[tree].content_mut(index);
            let entry = (index_of(child) % per_block) as usize;
            let advance = self.config.map_format.advance(content, entry, draw);
            batch.next_counts.insert(child, advance.counts);
        }
        let label = self.label(batch, id, counts.new);
        self.trees[tree].relabel(index, label, Tag::default());
    }

    /// Puts the batch's map blocks into the PLB. Displaced blocks go to the stash before the data
    /// round evicts, so the net occupancy is unchanged (Observation 2).
    pub(super) fn refill_plb(&mut self, batch: &mut Batch) {
        while let Some((_, entry)) = batch.working.pop_first() {
            if let Some(gone) = self.plb.insert(entry) {
                let label = self.label(batch, gone.id, gone.count);
                let mut mac = Tag::default();
                if self.config.pmmac {
                    let content = self.trees[0].pool.get(gone.payload);
                    self.meters.pmmac_bytes += 16 + content.len() as u64;
                    mac = self.mac.block(gone.count, gone.id, content);
                }
                let block = Resident { id: gone.id, label, mac, payload: gone.payload, slot: 0 };
                self.trees[0].append(block);
            }
        }
    }
}
