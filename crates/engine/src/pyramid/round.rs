//! The jobs of one writer: a round of asks, and a merge. Several may be under way. A round is shown
//! when it is begun, before earlier ones are served; a merge when the ask before it is shown.

use super::history::{Merged, RoundIntent, Settle};
use super::ids::{Name, TableHome, TableSlot, TableSpot};
use super::merge::Gathered;
use super::operation::Effect;
use super::oram::PyramidOram;
use super::shown::Round;
use crate::{
    BlockAnswer, BlockOp, Carrier, Data, EngineError, Extent, Job, Read, Result, Step, Write,
    carry_out,
};
use std::collections::VecDeque;

/// Bits of an offset within a table. Above them is the table's place.
pub const WITHIN_TABLE: u32 = 40;

/// A round of asks: one read.
pub struct RoundJob {
    number: u64,
    intent: RoundIntent,
    ops: Vec<BlockOp>,
    answers: Vec<BlockAnswer>,
    settle: Option<Settle>,
    done: bool,
    /// The slots in the order of their places: each one's number among those shown.
    order: Vec<usize>,
    extents: Vec<Extent>,
    buffer: Vec<u8>,
    read: bool,
}

/// A merge: one read, and one write.
pub struct MergeJob {
    number: u64,
    phase: Phase,
    merged: Option<Merged>,
    extents: Vec<Extent>,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begun,
    Read,
    Gathered,
    Written,
    Done,
}

impl PyramidOram {
    /// Begins a round with the first of these operations, and takes them: as many as may be shown
    /// now. None if none may be: a merge must be done first, or a round; or a round of an earlier
    /// session waits to be resumed. It depends on public numbers only.
    ///
    /// # Errors
    /// `Invalid` for an id or data that does not fit.
    pub fn begin_round(&mut self, ops: &mut VecDeque<BlockOp>) -> Result<Option<RoundJob>> {
        self.expect_open()?;
        self.expect_fits(ops.iter())?;
        if self.rounds.has_waiting() {
            return Ok(None);
        }
        let first = ops.iter().take(self.asks_allowed() as usize);
        let asks: Vec<_> = first.map(|op| (Name::from(op.id), Effect::of(&op.action))).collect();
        let groups = vec![1; asks.len()];
        let Some(round) = self.show_round(asks, &groups) else { return Ok(None) };
        let round = round.clone();
        let ops = ops.drain(..round.asks.len()).collect();
        Ok(Some(self.round(ops, &round)))
    }

    /// Begins to read the next round again that an earlier session was cut off in, if there is one.
    ///
    /// # Errors
    /// `Closed` after an error.
    pub fn resume(&mut self) -> Result<Option<RoundJob>> {
        self.expect_open()?;
        let round = self.rounds.take_waiting().cloned();
        Ok(round.map(|round| self.round(Vec::new(), &round)))
    }

    /// Refuses ids and data that do not fit.
    fn expect_fits<'o>(&self, ops: impl IntoIterator<Item = &'o BlockOp>) -> Result<()> {
        for op in ops {
            if op.id.0 >= self.config.blocks() || op.action.end() > self.config.block_bytes {
                let why = format!("block {} or its data does not fit", op.id.0);
                return Err(EngineError::Invalid(why));
            }
        }
        Ok(())
    }

    fn round(&self, ops: Vec<BlockOp>, round: &Round) -> RoundJob {
        let spots = round.shown.iter().flat_map(|shown| &shown.spots);
        let extents: Vec<_> = spots.map(|&spot| self.extent(spot)).collect();
        let mut order: Vec<usize> = (0..extents.len()).collect();
        order.sort_unstable_by_key(|&at| extents[at].offset);
        let extents: Vec<_> = order.iter().map(|&at| extents[at]).collect();
        RoundJob {
            number: round.number,
            intent: round.intent(),
            buffer: vec![0; extents.len() * self.config.slot_bytes()],
            answers: Vec::with_capacity(ops.len()),
            settle: None,
            done: false,
            read: false,
            ops,
            order,
            extents,
        }
    }

    /// Begins the next merge that is open and has no job yet, if there is one. Its slots should be
    /// read soon: rounds wait for them.
    ///
    /// # Errors
    /// `Closed` after an error.
    pub fn begin_merge(&mut self) -> Result<Option<MergeJob>> {
        self.expect_open()?;
        let Some(merge) = self.merges.take_open() else { return Ok(None) };
        let (number, spots) = (merge.number, merge.spots().collect::<Vec<_>>());
        let extents: Vec<_> = spots.into_iter().map(|spot| self.extent(spot)).collect();
        let buffer = vec![0; extents.len() * self.config.slot_bytes()];
        Ok(Some(MergeJob { number, phase: Phase::Begun, merged: None, extents, buffer }))
    }

    /// Serves a batch: rounds, and the merges that are due between them. For callers that keep no
    /// history.
    ///
    /// # Errors
    /// Those of the engine and of the store.
    pub fn access<C: Carrier>(
        &mut self,
        store: &mut C,
        ops: Vec<BlockOp>,
    ) -> std::result::Result<Vec<BlockAnswer>, C::Error> {
        let (mut ops, mut answers) = (VecDeque::from(ops), Vec::new());
        loop {
            while let Some(mut merge) = self.begin_merge()? {
                carry_out(&mut merge, self, store)?;
            }
            if ops.is_empty() {
                return Ok(answers);
            }
            let round = self.begin_round(&mut ops)?;
            let mut round = round.ok_or(EngineError::State("no round can be shown"))?;
            carry_out(&mut round, self, store)?;
            answers.append(&mut round.into_answers());
        }
    }

    fn extent(&self, TableSpot { home, slot }: TableSpot) -> Extent {
        let slot_bytes = self.config.slot_bytes() as u64;
        let offset = (u64::from(home.0) << WITHIN_TABLE) + u64::from(slot.0) * slot_bytes;
        Extent { offset, bytes: slot_bytes }
    }
}

impl RoundJob {
    /// Make it durable before the first step. That of a resumed round is.
    pub fn intent(&self) -> &RoundIntent {
        &self.intent
    }

    /// Whether the next step may be taken. The answers of a round wait for earlier rounds, and for
    /// the reads of merges of the partitions that it shows.
    pub fn is_ready(&self, engine: &PyramidOram) -> bool {
        !self.read || self.done || engine.may_serve(self.number)
    }

    /// Of a finished round, once: make it durable before its answers are given.
    pub fn settle(&mut self) -> Option<Settle> {
        self.settle.take()
    }

    /// The answers of a finished round, in the order of its operations.
    pub fn into_answers(self) -> Vec<BlockAnswer> {
        self.answers
    }

    fn serve(&mut self, engine: &mut PyramidOram) -> Result<()> {
        let slot_bytes = engine.config.slot_bytes();
        let mut slots: Vec<Option<&mut [u8]>> = self.order.iter().map(|_| None).collect();
        for (&at, bytes) in self.order.iter().zip(self.buffer.chunks_exact_mut(slot_bytes)) {
            slots[at] = Some(bytes);
        }
        let mut slots = slots.into_iter().flatten();
        let round = engine.rounds.first().cloned();
        let round = round.ok_or(EngineError::State("no such round was shown"))?;
        for (&(name, _), shown) in round.asks.iter().zip(&round.shown) {
            let mine = slots.by_ref().take(shown.spots.len());
            engine.open_shown(name, shown, mine)?;
        }
        for (op, shown) in self.ops.iter().zip(&round.shown) {
            self.answers.push(engine.serve(Name::from(op.id), shown, &op.action));
        }
        self.settle = Some(engine.settle(|_| false)?.1);
        self.done = true;
        Ok(())
    }
}

impl Job for RoundJob {
    type Engine = PyramidOram;

    fn step<'j>(&'j mut self, engine: &mut PyramidOram) -> Result<Step<'j>> {
        engine.expect_open()?;
        if !self.is_ready(engine) {
            return Err(EngineError::Invalid("a round or a merge must come first".into()));
        }
        if !std::mem::replace(&mut self.read, true) {
            let (extents, into) = (&self.extents[..], &mut self.buffer[..]);
            return Ok(Step::Read(Read { extents, into, shown: &[], scheduled: 0 }));
        }
        if !self.done {
            let served = self.serve(engine);
            engine.close_on_error(served)?;
        }
        Ok(Step::Done)
    }
}

impl MergeJob {
    /// Of a finished merge: make it durable before anything else is stored.
    pub fn merged(&self) -> Option<&Merged> {
        self.merged.as_ref()
    }

    /// Whether the next step may be taken: the table is made once all rounds before the merge are
    /// served. After the first step, the one that takes up what was read, rounds may be served that
    /// wait for it.
    pub fn is_ready(&self, engine: &PyramidOram) -> bool {
        self.phase != Phase::Gathered || engine.may_make(self.number)
    }

    fn make(&mut self, engine: &mut PyramidOram) -> Result<()> {
        self.buffer = engine.make(self.number)?;
        let home = engine.merges.get(self.number).map(|merge| merge.home);
        let home = home.unwrap_or(TableHome(0));
        let first = engine.extent(TableSpot { home, slot: TableSlot(0) });
        self.extents = vec![Extent { bytes: self.buffer.len() as u64, ..first }];
        self.phase = Phase::Written;
        Ok(())
    }

    fn advance(&mut self, engine: &mut PyramidOram) -> Result<()> {
        match self.phase {
            Phase::Begun => self.phase = Phase::Read,
            Phase::Read => {
                let gathered = Gathered::open(engine, self.number, &mut self.buffer)?;
                // One writer has nobody to serve beside what is lost.
                if let Some(spot) = gathered.damaged.first() {
                    return Err(PyramidOram::tampered(spot.home, "a slot was changed"));
                }
                engine.gather(self.number, gathered.found);
                self.buffer = Vec::new();
                self.phase = Phase::Gathered;
            }
            Phase::Gathered => self.make(engine)?,
            Phase::Written => {
                self.merged = Some(engine.switch(self.number)?);
                self.phase = Phase::Done;
            }
            Phase::Done => {}
        }
        Ok(())
    }
}

impl Job for MergeJob {
    type Engine = PyramidOram;

    fn step<'j>(&'j mut self, engine: &mut PyramidOram) -> Result<Step<'j>> {
        engine.expect_open()?;
        if !self.is_ready(engine) {
            return Err(EngineError::Invalid("a round before the merge comes first".into()));
        }
        let done = self.advance(engine);
        engine.close_on_error(done)?;
        let extents = &self.extents[..];
        Ok(match self.phase {
            Phase::Read => {
                let into = &mut self.buffer[..];
                Step::Read(Read { extents, into, shown: &[], scheduled: 0 })
            }
            // The blocks are there. The table follows once the rounds before it are served.
            Phase::Begun | Phase::Gathered => Step::Work { expected: &[] },
            Phase::Written => {
                let data = Data::Together(&self.buffer);
                Step::Write(Write { extents, data })
            }
            Phase::Done => Step::Done,
        })
    }
}
