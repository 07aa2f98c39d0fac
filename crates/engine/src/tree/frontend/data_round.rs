//! The last round of a batch: one path for each operation, maintenance, and what the operations do
//! to their blocks.

use super::TreeOram;
use crate::tree::batch::Target;
use crate::tree::position_map::{Counts, GROUP_ENTRIES, MapFormat};
use crate::{Action, BlockAnswer, EngineError, Result};
use oblivio_crypto::Tag;
use std::collections::BTreeMap;

impl TreeOram {
    /// One path for each operation, then maintenance on its public schedule.
    pub(super) fn plan_data_round(&mut self) {
        self.clear_plan();
        let mut first: BTreeMap<u64, u32> = BTreeMap::new();
        for index in 0..self.batch.ops.len() {
            let id = self.batch.ops[index].id.0;
            if let Some(&access) = first.get(&id) {
                self.batch.access_of_op.push(access);
                self.plan_idle();
                continue;
            }
            first.insert(id, index as u32);
            self.batch.access_of_op.push(index as u32);
            let counts = self.remap(id);
            self.plan_block(Target::Data { id, counts, absent: false }, id, counts);
        }
        for _ in 0..self.maintenance_due(self.batch.ops.len() as u64) {
            // A block that this batch moves already may be waiting for a later roll-over.
            let waiting = self.pending.keys().find(|id| !first.contains_key(id)).copied();
            match waiting.and_then(|id| self.pending.remove_entry(&id)) {
                Some((id, counts)) => self.plan_block(Target::Remap { id, counts }, id, counts),
                None => self.plan_idle(),
            }
        }
    }

    /// Paths that this many requests owe to group remaps: twice what a roll-over after every
    /// 2^β accesses can ask for, whether or not one happened.
    fn maintenance_due(&mut self, requests: u64) -> u64 {
        let before = self.requests;
        self.requests += requests;
        match self.config.map_format {
            MapFormat::Compressed { individual_bits } => {
                let share = |n: u64| (n * 2 * GROUP_ENTRIES as u64) >> individual_bits;
                share(self.requests) - share(before)
            }
            _ => 0,
        }
    }

    /// Checks a block against its count (Freecursive §6.2.1) and tells whether it is absent.
    /// With PMMAC a block that was ever accessed exists; one that is absent for the caller is
    /// stored as a tombstone, whose tag covers no content.
    pub(in crate::tree) fn is_absent(
        &mut self,
        index: usize,
        id: u64,
        counts: Counts,
    ) -> Result<bool> {
        let header = self.trees[0].target(index);
        if !self.config.pmmac {
            return Ok(header.is_none());
        }
        let Some(header) = header else {
            let fresh = self.config.map_format.initial_count(id, &self.prf) == counts.old;
            return if fresh { Ok(true) } else { Err(EngineError::TamperedBlock(id)) };
        };
        let content = self.trees[0].content(index);
        self.pmmac_bytes += 16 + content.len() as u64;
        if self.mac.block(counts.old, id, content) == header.mac {
            return Ok(false);
        }
        if self.mac.block(counts.old, id, &[]) == header.mac {
            return Ok(true);
        }
        Err(EngineError::TamperedBlock(id))
    }

    pub(super) fn check_data(&mut self, index: usize, id: u64, counts: Counts) -> Result<()> {
        let is_absent = self.is_absent(index, id, counts)?;
        if let Target::Data { absent, .. } = &mut self.batch.targets[index] {
            *absent = is_absent;
        } else if is_absent && self.config.pmmac {
            // A tombstone moves with its group as well.
            self.batch.targets[index] = Target::Data { id, counts, absent: true };
        }
        Ok(())
    }

    pub(super) fn serve_operations(&mut self) {
        for op_index in 0..self.batch.ops.len() {
            let index = self.batch.access_of_op[op_index] as usize;
            let Target::Data { id, absent, .. } = self.batch.targets[index] else { continue };
            let action = std::mem::replace(&mut self.batch.ops[op_index].action, Action::Read);
            let (answer, now_absent) = self.serve(index, id, absent, &action);
            self.batch.answers.push(answer);
            if let Target::Data { absent, .. } = &mut self.batch.targets[index] {
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
    pub(super) fn settle_targets(&mut self) {
        for index in 0..self.batch.targets.len() {
            let (id, counts, absent) = match self.batch.targets[index] {
                Target::Data { id, counts, absent } => (id, counts, absent),
                Target::Remap { id, counts } => (id, counts, false),
                _ => continue,
            };
            if self.trees[0].target(index).is_none() {
                if !self.config.pmmac {
                    continue;
                }
                self.trees[0].insert(index, id);
            }
            let label = self.label(id, counts.new);
            let mut mac = Tag::default();
            if self.config.pmmac {
                if absent {
                    self.trees[0].content_mut(index).fill(0);
                    mac = self.block_mac(counts.new, id, &[]);
                } else {
                    let content = self.trees[0].content(index);
                    self.pmmac_bytes += 16 + content.len() as u64;
                    mac = self.mac.block(counts.new, id, content);
                }
            }
            self.trees[0].relabel(index, label, mac);
        }
    }
}
