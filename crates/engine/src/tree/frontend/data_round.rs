//! The last round of a batch: one path per operation, maintenance, and the operations' effect on
//! their blocks.

use super::{LEVEL_SHIFT, TreeOram};
use crate::tree::batch::{Batch, Target};
use crate::tree::position_map::{Counts, GROUP_ENTRIES, MapFormat};
use crate::{Action, BlockAnswer, EngineError, Result};
use oblivio_crypto::Tag;
use std::collections::BTreeMap;

impl TreeOram {
    /// Plans one path per operation, then maintenance on its public schedule.
    pub(super) fn plan_data_round(&mut self, batch: &mut Batch) {
        batch.clear_plan();
        let mut first: BTreeMap<u64, u32> = BTreeMap::new();
        for index in 0..batch.ops.len() {
            let id = batch.ops[index].id.0;
            if let Some(&access) = first.get(&id) {
                batch.access_of_op.push(access);
                self.plan_idle(batch);
                continue;
            }
            first.insert(id, index as u32);
            batch.access_of_op.push(index as u32);
            let counts = self.remap(batch, id);
            self.plan_block(batch, Target::Data { id, counts, absent: false }, id, counts);
        }
        for _ in 0..self.maintenance_due(batch.ops.len() as u64) {
            // A block that this batch already moves may be pending for a later roll-over.
            let waiting = self.pending.keys().find(|id| !first.contains_key(id)).copied();
            match waiting.and_then(|id| self.pending.remove_entry(&id)) {
                Some((id, counts)) => {
                    self.plan_block(batch, Target::Remap { id, counts }, id, counts);
                }
                None => self.plan_idle(batch),
            }
        }
    }

    /// Paths for group remaps that this many requests owe: twice the need of a roll-over after
    /// every 2^β accesses, whether or not one happened.
    fn maintenance_due(&mut self, requests: u64) -> u64 {
        let before = self.meters.requests;
        self.meters.requests += requests;
        match self.config.map_format {
            MapFormat::Compressed { individual_bits } => {
                let share = |n: u64| (n * 2 * GROUP_ENTRIES as u64) >> individual_bits;
                share(self.meters.requests) - share(before)
            }
            _ => 0,
        }
    }

    /// Checks a map block against its count (Freecursive §6.2.1). True when it is absent: none of
    /// its blocks was ever accessed.
    pub(in crate::tree) fn is_absent(
        &mut self,
        index: usize,
        id: u64,
        counts: Counts,
    ) -> Result<bool> {
        if self.trees[0].target(index).is_some() {
            return self.check_mac(index, id, counts.old).map(|()| false);
        }
        let fresh = || self.config.map_format.initial_count(id, &self.prf) == counts.old;
        if self.config.pmmac && !fresh() {
            return Err(EngineError::TamperedBlock(id));
        }
        Ok(true)
    }

    /// Checks a data block: the tree holds it if it is live, and only then (dead blocks were
    /// dropped). Without PMMAC, the tag tree ensures that nothing is missing, so a missing block
    /// does not exist.
    pub(super) fn check_data(
        &mut self,
        batch: &mut Batch,
        index: usize,
        id: u64,
        counts: Counts,
    ) -> Result<()> {
        if id >> LEVEL_SHIFT > 0 {
            return self.move_map_block(index, id, counts);
        }
        let lives = self.trees[0].target(index).is_some();
        if lives {
            self.check_mac(index, id, counts.old)?;
        } else if self.config.pmmac && self.trees[0].marks.live.get(id) {
            return Err(EngineError::TamperedBlock(id));
        }
        self.set_live(id, lives);
        if let Target::Data { absent, .. } = &mut batch.targets[index] {
            *absent = !lives;
        }
        Ok(())
    }

    /// Moves a map block with its group. With PMMAC, creates an unused one now: its count would no
    /// longer mark it as fresh.
    fn move_map_block(&mut self, index: usize, id: u64, counts: Counts) -> Result<()> {
        if self.is_absent(index, id, counts)? && self.config.pmmac {
            let first = self.first_entry(id);
            self.trees[0].insert(index, id);
            let content = self.trees[0].content_mut(index);
            self.config.map_format.fill_fresh(content, 0, first, &self.prf);
        }
        Ok(())
    }

    /// With PMMAC, checks that the block of access `index` is the one written at this count.
    fn check_mac(&mut self, index: usize, id: u64, count: u64) -> Result<()> {
        let Some(header) = self.trees[0].target(index).filter(|_| self.config.pmmac) else {
            return Ok(());
        };
        if self.target_mac(index, id, count) == header.mac {
            Ok(())
        } else {
            Err(EngineError::TamperedBlock(id))
        }
    }

    fn target_mac(&mut self, index: usize, id: u64, count: u64) -> Tag {
        let content = self.trees[0].content(index);
        self.meters.pmmac_bytes += 16 + content.len() as u64;
        self.mac.block(count, id, content)
    }

    pub(super) fn serve_operations(&mut self, batch: &mut Batch) {
        for op_index in 0..batch.ops.len() {
            let index = batch.access_of_op[op_index] as usize;
            let Target::Data { id, absent, .. } = batch.targets[index] else { continue };
            let action = std::mem::replace(&mut batch.ops[op_index].action, Action::Read);
            let (answer, now_absent) = self.serve(index, id, absent, &action);
            batch.answers.push(answer);
            self.set_live(id, !now_absent);
            if let Target::Data { absent, .. } = &mut batch.targets[index] {
                *absent = now_absent;
            }
        }
    }

    fn serve(
        &mut self,
        index: usize,
        id: u64,
        absent: bool,
        action: &Action,
    ) -> (BlockAnswer, bool) {
        let tree = &mut self.trees[0];
        match action {
            Action::Read if absent => return (None, true),
            Action::Read => return (Some(tree.content(index).to_vec()), false),
            Action::Remove => {
                if let Some(payload) = tree.remove(index) {
                    tree.pool.release(payload);
                }
                return (None, true);
            }
            Action::Write(_) | Action::Patch { .. } | Action::Patches(_) => {}
        }
        if tree.target(index).is_none() {
            tree.insert(index, id);
        }
        let content = tree.content_mut(index);
        if absent {
            content.fill(0);
        }
        action.write_to(content);
        (None, false)
    }

    /// Gives every block of the round its new label and tag.
    pub(super) fn settle_targets(&mut self, batch: &mut Batch) {
        for index in 0..batch.targets.len() {
            let (Target::Data { id, counts, .. } | Target::Remap { id, counts }) =
                batch.targets[index]
            else {
                continue;
            };
            if self.trees[0].target(index).is_none() {
                continue;
            }
            let label = self.label(batch, id, counts.new);
            let mac = match self.config.pmmac {
                true => self.target_mac(index, id, counts.new),
                false => Tag::default(),
            };
            self.trees[0].relabel(index, label, mac);
        }
    }
}
