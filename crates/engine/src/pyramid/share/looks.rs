//! The sums of a batch, opened; and what is read slot by slot where one is not what was stored.
//!
//! A sum is wrong if and only if the changes of the slots in it do not cancel out: that follows
//! from which slots were changed and which were shown, and the server knows both. So it may see
//! which asks are looked at. It sees all of their slots read, whichever held the block, and the
//! answers are of one length. What it may learn is what programs do once they learn that a block
//! is lost.

use super::groups::Open;
use super::records::{BatchNumber, DamagedSlot, SlotLook};
use super::tables::{TableId, table_ids};
use crate::pyramid::ids::Name;
use crate::pyramid::oram::PyramidOram;
use crate::pyramid::shown::{Round, Shown, Source};
use crate::pyramid::slot::Held;
use crate::pyramid::table::Holds;
use crate::{EngineError, Result};

/// What the slots of an ask hold.
enum Opened {
    /// The block that was among them, if one was; without its content if that is lost.
    Found(Option<Held>),
    /// Their sum is not what was stored.
    Unknown,
}

/// What the slots of a batch's asks hold, in order.
pub(super) struct Sums(Vec<Opened>);

impl Sums {
    /// Opens the sums of a batch.
    ///
    /// # Errors
    /// `State` for a sum of another length.
    pub fn open(
        oram: &PyramidOram,
        opens: &[Open],
        round: &Round,
        sums: Vec<Vec<u8>>,
    ) -> Result<Self> {
        let asks = opens.iter().zip(&round.shown).zip(sums);
        let opened = asks.map(|((open, shown), mut sum)| {
            match oram.open_sum(open.ask.name, shown, &mut sum) {
                Ok(found) => Ok(Opened::Found(found)),
                Err(EngineError::TamperedTable { .. }) => Ok(Opened::Unknown),
                Err(error) => Err(error),
            }
        });
        opened.collect::<Result<_>>().map(Self)
    }

    /// Whether all of them are known.
    pub fn are_known(&self) -> bool {
        self.0.iter().all(|opened| matches!(opened, Opened::Found(_)))
    }

    /// The asks whose slots are to be read one by one.
    fn unknown<'r>(&self, round: &'r Round) -> impl Iterator<Item = (usize, &'r Shown)> {
        let asks = self.0.iter().zip(&round.shown).enumerate();
        let unknown = asks.filter(|(_, (opened, _))| matches!(opened, Opened::Unknown));
        unknown.map(|(at, (_, shown))| (at, shown))
    }

    /// The slots to read one by one; none if all are known.
    pub fn look(&self, batch: BatchNumber, round: &Round) -> Option<SlotLook> {
        let shown: Vec<&Shown> = self.unknown(round).map(|(_, shown)| shown).collect();
        let mut tables: Vec<_> = shown.iter().flat_map(|shown| table_ids(shown)).collect();
        tables.sort_unstable();
        tables.dedup();
        let spots = shown.iter().flat_map(|shown| shown.spots.iter().copied()).collect();
        (!shown.is_empty()).then_some(SlotLook { batch, tables, spots })
    }

    /// Takes these slots, one after the other, and returns those that are damaged. Then all asks
    /// are known.
    ///
    /// # Errors
    /// `State` for another number of slots.
    pub fn looked(
        &mut self,
        slot_bytes: usize,
        opens: &[Open],
        round: &Round,
        mut slots: Vec<u8>,
    ) -> Result<Vec<DamagedSlot>> {
        let unknown: Vec<(usize, &Shown)> = self.unknown(round).collect();
        let count: usize = unknown.iter().map(|(_, shown)| shown.spots.len()).sum();
        if slots.len() != count * slot_bytes {
            return Err(EngineError::State("the server gave another number of slots"));
        }
        let mut slots = slots.chunks_exact_mut(slot_bytes);
        let mut damaged = Vec::new();
        for (at, shown) in unknown {
            let mine = slots.by_ref().take(shown.spots.len());
            let (found, bad) = open_each(opens[at].ask.name, shown, mine);
            self.0[at] = Opened::Found(found);
            damaged.extend(bad.into_iter().map(|index| DamagedSlot {
                table: TableId::of(shown.keys[index].attempt()),
                slot: shown.spots[index].slot.0,
            }));
        }
        Ok(damaged)
    }

    /// The blocks that were found, one for each ask.
    pub fn into_found(self) -> impl Iterator<Item = Option<Held>> {
        self.0.into_iter().map(|opened| match opened {
            Opened::Found(found) => found,
            Opened::Unknown => None,
        })
    }
}

/// Opens the slots of an ask one by one, when their sum is not what was stored: each must be as
/// it was sealed, or what it held is lost. It gives the block that was among them, if one was,
/// and the slots that are damaged.
fn open_each<'b>(
    name: Name,
    shown: &Shown,
    slots: impl Iterator<Item = &'b mut [u8]>,
) -> (Option<Held>, Vec<usize>) {
    let (mut found, mut damaged) = (None, Vec::new());
    let spots = shown.spots.iter().zip(&shown.keys).zip(slots);
    for (index, ((&spot, keys), bytes)) in spots.enumerate() {
        let real = shown.source == Source::Slot(index);
        let holds = if real { Holds::Block(name) } else { Holds::Nothing };
        match PyramidOram::open_slot(keys, spot, holds, bytes) {
            Ok(held) => found = held.or(found),
            Err(_) => {
                damaged.push(index);
                found = if real { Some(Held { name, content: None }) } else { found };
            }
        }
    }
    (found, damaged)
}
