//! Opening what was read, and the effect of an ask on its block.

use super::ids::{Home, Name, Slot};
use super::operation::Operation;
use super::oram::{PyramidOram, Shown};
use super::slot::Held;
use super::table::Table;
use crate::{Action, BlockAnswer, Result};

impl PyramidOram {
    /// Opens a slot that holds this block; one that holds nothing must be as it was written.
    pub(super) fn open_slot(
        &self,
        table: &Table,
        slot: Slot,
        name: Option<Name>,
        bytes: &mut [u8],
    ) -> Result<Option<Held>> {
        let tampered = |reason| Self::tampered(table.home, reason);
        let Some(name) = name else {
            let checked = table.keys.check_empty(slot.0, bytes);
            return checked.map(|()| None).map_err(|_| tampered("an empty slot was changed"));
        };
        let plain = table.keys.open(slot.0, bytes);
        let plain = plain.map_err(|_| tampered("a slot does not open"))?;
        let held = Held::read(plain).filter(|held| held.name == name);
        held.map(Some).ok_or_else(|| tampered("a slot holds another block"))
    }

    /// Checks all slots that an ask showed and gives the block that was among them, if one was.
    ///
    /// # Errors
    /// `TamperedTable` if a slot is not what was sealed there, whether it holds the block or not.
    pub(super) fn open_shown<'b>(
        &self,
        name: Name,
        shown: &Shown,
        slots: impl Iterator<Item = &'b mut [u8]>,
    ) -> Result<Option<Held>> {
        let tables = &self.tables[shown.partition.0 as usize];
        let mut found = None;
        for (index, (spot, bytes)) in shown.spots.iter().zip(slots).enumerate() {
            let Some(table) = tables.iter().find(|table| table.home == spot.home) else { continue };
            let wanted = (shown.real == Some(index)).then_some(name);
            found = self.open_slot(table, spot.slot, wanted, bytes)?.or(found);
        }
        Ok(found)
    }

    /// As [`Self::open_shown`], for the sum (exclusive or) of all slots that an ask showed. What
    /// the empty ones hold is known, so any changed bit of any of them is found. Changes that
    /// cancel out do no harm.
    ///
    /// # Errors
    /// As [`Self::open_shown`].
    pub(super) fn open_sum(
        &self,
        name: Name,
        shown: &Shown,
        sum: &mut [u8],
    ) -> Result<Option<Held>> {
        let tables = &self.tables[shown.partition.0 as usize];
        let mut real = None;
        let mut empty = vec![0; sum.len()];
        for (index, spot) in shown.spots.iter().enumerate() {
            let Some(table) = tables.iter().find(|table| table.home == spot.home) else { continue };
            if shown.real == Some(index) {
                real = Some((table, spot.slot));
                continue;
            }
            table.keys.empty(spot.slot.0, &mut empty)?;
            sum.iter_mut().zip(&empty).for_each(|(sum, byte)| *sum ^= byte);
        }
        match real {
            Some((table, slot)) => self.open_slot(table, slot, Some(name), sum),
            None if sum.iter().all(|&byte| byte == 0) => Ok(None),
            None => {
                let home = shown.spots.first().map_or(Home(0), |spot| spot.home);
                Err(Self::tampered(home, "a slot of its partition was changed"))
            }
        }
    }

    /// Puts a block that an ask read from a table into the stash.
    pub(super) fn keep(&mut self, found: Option<Held>) {
        if let Some(held) = found {
            self.stash.put(held.name, held.content);
        }
    }

    /// Carries out an ask, after all earlier ones and after [`Self::keep`].
    pub(super) fn serve(&mut self, name: Name, action: &Action) -> BlockAnswer {
        if *action == Action::Read {
            return self.stash.content(name).cloned();
        }
        if *action == Action::Remove {
            self.stash.drop_content(name);
            return None;
        }
        if self.stash.content(name).is_none() {
            self.stash.put(name, vec![0; self.config.block_bytes]);
        }
        if let Some(content) = self.stash.content_mut(name) {
            action.write_to(content);
        }
        None
    }

    /// The same; with `and_read`, the answer is the content before.
    pub(super) fn serve_operation(&mut self, name: Name, operation: &Operation) -> BlockAnswer {
        let before = match operation.and_read {
            true => self.stash.content(name).cloned(),
            false => None,
        };
        self.serve(name, &operation.action).or(before)
    }
}
