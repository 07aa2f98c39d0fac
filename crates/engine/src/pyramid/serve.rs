//! Opening what was read, and the effect of an ask on its block.

use super::history::{Left, Settle};
use super::ids::{Name, TableHome, TableSpot};
use super::operation::Operation;
use super::oram::PyramidOram;
use super::shown::{Round, Shown, Source};
use super::slot::Held;
use super::table::Holds;
use crate::{Action, BlockAnswer, EngineError, Result};
use oblivio_crypto::TableKeys;

impl PyramidOram {
    /// Opens a slot. It must be as it was sealed, whatever it holds.
    pub(super) fn open_slot(
        keys: &TableKeys,
        spot: TableSpot,
        holds: Holds,
        bytes: &mut [u8],
    ) -> Result<Option<Held>> {
        let tampered = |reason| Self::tampered(spot.home, reason);
        if holds == Holds::Nothing {
            let checked = keys.check_empty(spot.slot.0, bytes);
            return checked.map(|()| None).map_err(|_| tampered("an empty slot was changed"));
        }
        let plain = keys.open(spot.slot.0, bytes);
        let plain = plain.map_err(|_| tampered("a slot does not open"))?;
        let Holds::Block(name) = holds else { return Ok(None) };
        let held = Held::read(name, plain);
        held.map(Some).ok_or_else(|| tampered("a slot holds another block"))
    }

    /// Checks all slots that an ask showed, and keeps the block that was among them, if one was.
    ///
    /// # Errors
    /// `TamperedTable` if a slot is not what was sealed there, whether it holds the block or not.
    pub(super) fn open_shown<'b>(
        &mut self,
        name: Name,
        shown: &Shown,
        slots: impl Iterator<Item = &'b mut [u8]>,
    ) -> Result<()> {
        let mut found = None;
        let spots = shown.spots.iter().zip(&shown.keys).zip(slots);
        for (index, ((&spot, keys), bytes)) in spots.enumerate() {
            let real = shown.source == Source::Slot(index);
            let holds = if real { Holds::Block(name) } else { Holds::Nothing };
            found = Self::open_slot(keys, spot, holds, bytes)?.or(found);
        }
        self.keep(found);
        Ok(())
    }

    /// As [`Self::open_shown`], for the sum (exclusive or) of all slots that an ask showed. What
    /// the empty ones hold is known, so any changed bit of any of them is found. Changes that
    /// cancel out do no harm. It gives the block that was among them, if one was.
    ///
    /// # Errors
    /// As [`Self::open_shown`].
    pub(super) fn open_sum(
        &self,
        name: Name,
        shown: &Shown,
        sum: &mut [u8],
    ) -> Result<Option<Held>> {
        if sum.len() != self.config.slot_bytes() {
            return Err(EngineError::State("a sum has another length"));
        }
        let mut real = None;
        let mut empty = vec![0; sum.len()];
        for (index, (&spot, keys)) in shown.spots.iter().zip(&shown.keys).enumerate() {
            if shown.source == Source::Slot(index) {
                real = Some((keys, spot));
                continue;
            }
            keys.empty(spot.slot.0, &mut empty)?;
            sum.iter_mut().zip(&empty).for_each(|(sum, byte)| *sum ^= byte);
        }
        if let Some((keys, spot)) = real {
            return Self::open_slot(keys, spot, Holds::Block(name), sum);
        }
        if sum.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        let home = shown.spots.first().map_or(TableHome(0), |spot| spot.home);
        Err(Self::tampered(home, "a slot of its partition was changed"))
    }

    /// Puts a block that an ask read from a table into the stash.
    pub(super) fn keep(&mut self, found: Option<Held>) {
        if let Some(held) = found {
            self.stash.keep(held.name, held.content);
        }
    }

    /// Drops what an earlier removal of its owner took away. It comes before anything that an ask
    /// does to its block.
    pub(super) fn age(&mut self, name: Name, shown: &Shown) {
        let applies = |before| self.forgets.applies(name, before);
        if shown.aged || shown.before.is_some_and(applies) {
            self.stash.remove(name);
        }
    }

    /// A block that nobody knows needs no note that it is absent; it would count as one less.
    fn remove(&mut self, name: Name) {
        if self.index.contains_key(&name) {
            self.stash.remove(name);
        }
    }

    /// Carries out an ask, after all earlier ones and after the round's slots were opened.
    pub(super) fn serve(&mut self, name: Name, shown: &Shown, action: &Action) -> BlockAnswer {
        self.age(name, shown);
        if *action == Action::Read {
            return self.stash.content(name).cloned();
        }
        if *action == Action::Remove {
            self.remove(name);
            return None;
        }
        // What is left of a lost block is nothing that a part could be written into.
        if self.stash.is_lost(name) && !matches!(action, Action::Write(_)) {
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
    pub(super) fn serve_operation(
        &mut self,
        name: Name,
        shown: &Shown,
        operation: &Operation,
    ) -> BlockAnswer {
        self.age(name, shown);
        let before = match operation.and_read {
            true => self.stash.content(name).cloned(),
            false => None,
        };
        self.serve(name, shown, &operation.action).or(before)
    }

    /// Whether this many removals of owners may be carried out: only a bounded number can be open.
    pub(super) fn may_forget(&self, more: usize) -> bool {
        more == 0 || self.forgets.len() + more as u64 <= self.config.most_forgets()
    }

    /// Removes a block and all later ones of its owner that were asked for before.
    pub(super) fn serve_forget(&mut self, first: Name, shown: &Shown) {
        self.remove(first);
        self.forgets.add(first, shown.stamp);
    }

    /// Ends the first round under way, which was served. `forgot` tells which of its asks removed
    /// an owner.
    ///
    /// # Errors
    /// `State` if none is under way.
    pub(super) fn settle(&mut self, forgot: impl Fn(usize) -> bool) -> Result<(Round, Settle)> {
        let round = self.rounds.first().ok_or(EngineError::State("no such round was shown"))?;
        // A later ask of the same round may have written the first block of a removed owner again.
        let left = |(at, (name, _)): (usize, &(Name, _))| match self.stash.content(*name) {
            _ if forgot(at) => Left::Forgot,
            Some(content) => Left::Block(content.clone()),
            None if self.stash.is_lost(*name) => Left::Lost,
            None => Left::Absent,
        };
        let settle = Settle(round.asks.iter().enumerate().map(left).collect());
        self.end_round().map(|round| (round, settle))
    }

    /// Ends the first round under way.
    pub(super) fn end_round(&mut self) -> Result<Round> {
        let round = self.rounds.pop().ok_or(EngineError::State("no such round was shown"))?;
        for ((name, _), shown) in round.asks.iter().zip(&round.shown) {
            if let Source::Merge(number) = shown.source
                && let Some(merge) = self.merges.get_mut(number)
            {
                merge.blocks.coming.remove(name);
            }
            if !self.index.contains_key(name) {
                self.stash.clear(*name);
            }
        }
        self.homes.served(self.rounds.served());
        Ok(round)
    }
}
