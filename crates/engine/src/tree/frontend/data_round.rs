//! The last round of a batch: one path per operation, maintenance, and the operations' effect on
//! their blocks.

use super::TreeOram;
use crate::tree::batch::{Batch, PathReason, Presence};
use crate::tree::position_map::{CountChange, GROUP_ENTRIES, MapFormat};
use crate::{Action, Address, BlockId, BlockOutcome, EngineError, Lost, Result};
use std::collections::BTreeMap;

impl TreeOram {
    /// Plans one path per operation, then maintenance on its public schedule.
    pub(super) fn plan_data_round(&mut self, batch: &mut Batch) {
        batch.clear_plan();
        let mut first: BTreeMap<BlockId, u32> = BTreeMap::new();
        for index in 0..batch.ops.len() {
            let id = batch.ops[index].id;
            if let Some(&access) = first.get(&id) {
                batch.access_of_op.push(access);
                self.plan_idle(batch);
                continue;
            }
            first.insert(id, index as u32);
            batch.access_of_op.push(index as u32);
            let counts = self.remap(batch, id.into());
            self.plan_block(
                batch,
                PathReason::Data { id, counts, presence: Presence::Absent },
                id.into(),
                counts,
            );
        }
        for _ in 0..self.maintenance_due(batch.ops.len() as u64) {
            // A block that this batch already moves may be pending for a later roll-over.
            let free = |id: &Address| id.data().is_none_or(|id| !first.contains_key(&id));
            let waiting = self.pending.keys().copied().find(free);
            match waiting.and_then(|id| self.pending.remove_entry(&id)) {
                Some((id, counts)) => {
                    self.plan_block(batch, PathReason::Remap { id, counts }, id, counts);
                }
                None => self.plan_idle(batch),
            }
        }
    }

    /// Paths for group remaps that this many requests owe: twice the need of a roll-over after
    /// every 2^β accesses, whether or not one happened.
    fn maintenance_due(&mut self, requests: u64) -> u64 {
        let before = self.tree.meters.requests;
        self.tree.meters.requests += requests;
        match self.config.map_format {
            MapFormat::Compressed { individual_bits } => {
                let share = |n: u64| (n * 2 * GROUP_ENTRIES as u64) >> individual_bits;
                share(self.tree.meters.requests) - share(before)
            }
            MapFormat::Flat { .. } => 0,
        }
    }

    /// Checks a map block against its count (Freecursive §6.2.1). True when it is absent: none of
    /// its blocks was ever accessed.
    ///
    /// # Errors
    /// `TamperedBlock` for one that was accessed and is missing: counts that begin anew would
    /// repeat labels that were shown.
    pub(in crate::tree) fn is_absent(
        &mut self,
        index: usize,
        id: Address,
        counts: CountChange,
    ) -> Result<bool> {
        if self.check_present(index, id, counts)? {
            return Ok(false);
        }
        let fresh = || self.config.map_format.initial_count(id, &self.prf) == counts.old;
        if self.tree.marks.met_damage && !fresh() {
            return Err(EngineError::TamperedBlock(id));
        }
        self.pmmac.check_missing(id, fresh).map(|()| true)
    }

    /// Whether the block of access `index` exists. If so, it is the one written at its count.
    fn check_present(&mut self, index: usize, id: Address, counts: CountChange) -> Result<bool> {
        let Some(header) = self.tree.target(index) else { return Ok(false) };
        self.pmmac.check(id, counts.old, self.tree.content(index), header.mac)?;
        Ok(true)
    }

    /// Checks a data block and says what there is of it: the tree holds it if it is live, and only
    /// then (dead blocks were dropped). The tag tree ensures that nothing goes missing but with a
    /// damaged bucket. So once damage was met, a live block that is missing is lost. Before that it
    /// is one of a first-version state, which did not say which blocks were ever written. With
    /// PMMAC it is an error.
    pub(super) fn check_data(
        &mut self,
        index: usize,
        id: BlockId,
        counts: CountChange,
    ) -> Result<Presence> {
        if self.check_present(index, id.into(), counts)? {
            self.set_live(id, true);
            let lost = self.tree.target(index).is_some_and(|header| header.lost);
            return Ok(if lost { Presence::Lost } else { Presence::Found });
        }
        let live = self.tree.marks.live.get(id);
        self.pmmac.check_missing(id.into(), || !live)?;
        if live && self.tree.marks.met_damage {
            return Ok(Presence::Lost);
        }
        self.set_live(id, false);
        Ok(Presence::Absent)
    }

    /// Checks a map block that moves with its group.
    pub(super) fn check_remapped(
        &mut self,
        index: usize,
        id: Address,
        counts: CountChange,
    ) -> Result<()> {
        // With PMMAC, an unused map block is created now: its count would no longer mark it as
        // fresh.
        if self.is_absent(index, id, counts)? && self.pmmac.is_on() {
            let first = self.first_entry(id);
            self.tree.insert(index, id);
            let content = self.tree.content_mut(index);
            self.config.map_format.fill_fresh(content, 0, first, &self.prf);
        }
        Ok(())
    }

    pub(super) fn serve_operations(&mut self, batch: &mut Batch) {
        for op_index in 0..batch.ops.len() {
            let index = batch.access_of_op[op_index] as usize;
            let PathReason::Data { id, presence, .. } = batch.targets[index] else { continue };
            let action = std::mem::replace(&mut batch.ops[op_index].action, Action::Read);
            let (outcome, now) = self.serve(index, id, presence, &action);
            batch.outcomes.push(outcome);
            self.set_live(id, now != Presence::Absent);
            if let PathReason::Data { presence, .. } = &mut batch.targets[index] {
                *presence = now;
            }
        }
    }

    fn serve(
        &mut self,
        index: usize,
        id: BlockId,
        presence: Presence,
        action: &Action,
    ) -> (BlockOutcome, Presence) {
        let tree = &mut self.tree;
        match (action, presence) {
            (Action::Read, Presence::Absent) => return (Ok(None), presence),
            (Action::Read, Presence::Found) => {
                return (Ok(Some(tree.content(index).to_vec())), presence);
            }
            (Action::Remove, _) => {
                if let Some(payload) = tree.remove(index) {
                    tree.pool.release(payload);
                }
                return (Ok(None), Presence::Absent);
            }
            (_, Presence::Absent | Presence::Found) => {}
            (_, Presence::Lost) if action.replaces(tree.geometry.block_bytes) => {}
            // The rest of the block would be made up.
            (_, Presence::Lost) => return (Err(Lost), presence),
        }
        if tree.target(index).is_none() {
            tree.insert(index, id.into());
        }
        let content = tree.content_mut(index);
        if presence != Presence::Found {
            content.fill(0);
        }
        action.write_to(content);
        (Ok(None), Presence::Found)
    }

    /// Gives every block of the round its new label and tag. In the place of a lost one comes what
    /// says which version of it that was.
    pub(super) fn settle_targets(&mut self, batch: &Batch) {
        for (index, target) in batch.targets.iter().enumerate() {
            let (id, counts, lost) = match *target {
                PathReason::Data { id, counts, presence } => {
                    (Address::from(id), counts, presence == Presence::Lost)
                }
                PathReason::Remap { id, counts } => (id, counts, false),
                PathReason::MapFetch { .. } | PathReason::Idle => continue,
            };
            if lost && self.tree.target(index).is_none() {
                self.tree.insert(index, id);
                let content = self.tree.content_mut(index);
                content.fill(0);
                content[..8].copy_from_slice(&counts.old.to_le_bytes());
            }
            if self.tree.target(index).is_some() {
                let label = self.label(id, counts.new);
                let mac = self.pmmac.tag(id, counts.new, self.tree.content(index));
                self.tree.relabel(index, label, mac, lost);
            }
        }
    }
}
