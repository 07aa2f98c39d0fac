//! Tables and checkpoints: which are being stored, which are in use, and which may go.

use super::keeper::Change;
use oblivio_store::share::{
    Number, Object, Result, SealedSwitch, ServerSpot, ServerTable, ShareError,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Pieces come.
    Partial,
    /// Whole and durable, but named by nothing.
    Finished,
    /// In use.
    Named,
    /// This record took it out of use.
    Replaced(Number),
}

#[derive(Clone, Copy, Debug)]
struct Held {
    len: u64,
    state: State,
}

/// The objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    held: BTreeMap<Object, Held>,
    bytes: u64,
    replaced: usize,
    /// Changes of the catalog that wait for their records to be durable.
    switches: Vec<Change>,
}

impl Objects {
    /// Adds one that is whole.
    pub fn add(&mut self, object: Object, len: u64, named: bool) {
        let state = if named { State::Named } else { State::Finished };
        self.held.insert(object, Held { len, state });
        self.bytes += len;
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Tables in use.
    pub fn tables(&self) -> u64 {
        let named = |(object, held): &(&Object, &Held)| {
            matches!(object, Object::Table(_)) && held.state == State::Named
        };
        self.held.iter().filter(named).count() as u64
    }

    /// Whether a slot is in a table that is in use.
    pub fn check_slot(&self, spot: ServerSpot, slot_bytes: u32) -> Result<()> {
        self.check_in(spot, slot_bytes, |state| state == State::Named)
    }

    /// Whether a slot is in a table that is in use, or that batches without answers still need.
    pub fn check_stored(&self, spot: ServerSpot, slot_bytes: u32) -> Result<()> {
        let is_read = |state| matches!(state, State::Named | State::Replaced(_));
        self.check_in(spot, slot_bytes, is_read)
    }

    fn check_in(
        &self,
        spot: ServerSpot,
        slot_bytes: u32,
        may_be: impl Fn(State) -> bool,
    ) -> Result<()> {
        let object = Object::Table(spot.table);
        let end = (u64::from(spot.slot) + 1) * u64::from(slot_bytes);
        let held = self.held.get(&object).filter(|held| may_be(held.state));
        match held.is_some_and(|held| end <= held.len) {
            true => Ok(()),
            false => Err(ShareError::NoObject(object)),
        }
    }

    /// Whether a switch may be made.
    pub fn check_switch(&self, switch: &SealedSwitch) -> Result<()> {
        let has = |table: ServerTable, state| {
            let held = self.held.get(&Object::Table(table));
            match held.is_some_and(|held| held.state == state) {
                true => Ok(()),
                false => Err(ShareError::NoObject(Object::Table(table))),
            }
        };
        has(switch.table, State::Finished)?;
        switch.replaced.iter().try_for_each(|table| has(*table, State::Named))
    }

    /// Makes a switch, which this record says.
    pub fn switch(&mut self, number: Number, switch: &SealedSwitch) {
        let mut set = |table: ServerTable, state| {
            let held = self.held.get_mut(&Object::Table(table))?;
            held.state = state;
            Some(held.len)
        };
        let len = set(switch.table, State::Named).unwrap_or(0);
        let gone = switch.replaced.iter();
        self.replaced += gone.filter_map(|table| set(*table, State::Replaced(number))).count();
        let replaced = switch.replaced.clone();
        self.switches.push(Change::Switch { number, table: switch.table, len, replaced });
    }

    /// The changes of the catalog by records before this one.
    pub fn take_switches(&mut self, before: Number) -> Vec<Change> {
        let is_before = |change: &Change| match change {
            Change::Switch { number, .. } => *number < before,
            _ => true,
        };
        let (now, later) = self.switches.drain(..).partition(is_before);
        self.switches = later;
        now
    }

    pub fn has_replaced(&self) -> bool {
        self.replaced > 0
    }

    /// Removes tables that records before this one took out of use, and that are not needed.
    pub fn take_replaced(
        &mut self,
        before: Number,
        needed: &BTreeSet<ServerTable>,
    ) -> Vec<ServerTable> {
        let is_gone = |(object, held): (&Object, &Held)| match (object, held.state) {
            (Object::Table(table), State::Replaced(number))
                if number < before && !needed.contains(table) =>
            {
                Some(*table)
            }
            _ => None,
        };
        let gone: Vec<ServerTable> = self.held.iter().filter_map(is_gone).collect();
        self.replaced -= gone.len();
        gone.iter().for_each(|table| self.remove(Object::Table(*table)));
        gone
    }

    /// Marks a table that only unanswered batches need, after a start.
    pub fn is_replaced(&mut self, table: ServerTable) {
        let held = self.held.get_mut(&Object::Table(table));
        if let Some(held) = held.filter(|held| held.state == State::Finished) {
            held.state = State::Replaced(Number(0));
            self.replaced += 1;
        }
    }

    /// The length of what is stored of an object; 0 for a new one. None if it is in use.
    pub fn partial(&self, object: Object) -> Option<u64> {
        match self.held.get(&object) {
            None => Some(0),
            Some(held) if held.state == State::Partial => Some(held.len),
            Some(_) => None,
        }
    }

    /// How many are not whole.
    pub fn partials(&self) -> usize {
        self.held.values().filter(|held| held.state == State::Partial).count()
    }

    /// The length of an object, in whatever state.
    pub fn len(&self, object: Object) -> Option<u64> {
        self.held.get(&object).map(|held| held.len)
    }

    /// A piece was added.
    pub fn grow(&mut self, object: Object, by: u64) {
        let held = self.held.entry(object).or_insert(Held { len: 0, state: State::Partial });
        held.len += by;
        self.bytes += by;
    }

    /// An object is whole and durable.
    pub fn finished(&mut self, object: Object) {
        if let Some(held) = self.held.get_mut(&object) {
            held.state = State::Finished;
        }
    }

    pub fn is_finished(&self, object: Object) -> bool {
        self.held.get(&object).is_some_and(|held| held.state == State::Finished)
    }

    /// Names a checkpoint, and returns all others.
    pub fn name_checkpoint(&mut self, at: Number) -> Vec<Object> {
        let object = Object::Checkpoint(at);
        if let Some(held) = self.held.get_mut(&object) {
            held.state = State::Named;
        }
        let others: Vec<Object> = self
            .held
            .keys()
            .filter(|it| matches!(it, Object::Checkpoint(_)) && **it != object)
            .copied()
            .collect();
        others.iter().for_each(|it| self.remove(*it));
        others
    }

    /// Removes all that nothing names: a new scribe begins anew.
    pub fn take_unnamed(&mut self) -> Vec<Object> {
        let unnamed = |held: &Held| matches!(held.state, State::Partial | State::Finished);
        let gone: Vec<Object> =
            self.held.iter().filter(|it| unnamed(it.1)).map(|it| *it.0).collect();
        gone.iter().for_each(|object| self.remove(*object));
        gone
    }

    fn remove(&mut self, object: Object) {
        if let Some(held) = self.held.remove(&object) {
            self.bytes -= held.len;
        }
    }
}
