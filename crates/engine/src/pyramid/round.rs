//! The jobs of one writer: a round of asks, and a merge.

use super::history::{Intent, Merged, Settle};
use super::ids::{Name, Slot, Spot};
use super::merge::{Made, Merge};
use super::oram::{PyramidOram, Unsettled};
use crate::{
    Action, BlockAnswer, BlockOp, Carrier, Data, EngineError, Extent, Job, Read, Result, Step,
    Write, carry_out,
};
use std::collections::VecDeque;

/// Bits of an offset within a table. Above them is the table's place.
pub const WITHIN_TABLE: u32 = 40;

/// A round of asks: one read.
pub struct RoundJob {
    ops: Vec<BlockOp>,
    round: Unsettled,
    answers: Vec<BlockAnswer>,
    done: bool,
    /// The slots in the order of their places: each one's number among those shown.
    order: Vec<usize>,
    extents: Vec<Extent>,
    buffer: Vec<u8>,
    read: bool,
}

/// A merge: one read, and one write.
pub struct MergeJob {
    phase: Merging,
    merged: Option<Merged>,
    extents: Vec<Extent>,
    buffer: Vec<u8>,
}

enum Merging {
    Begun(Merge),
    Read(Merge),
    Written(Box<Made>),
    Done,
}

impl PyramidOram {
    /// Begins a round with the first of these operations, and takes them: as many as fit before the
    /// next merge. No merge may be due.
    ///
    /// # Errors
    /// `Invalid` for an id or data that does not fit.
    pub fn begin_round(&mut self, ops: &mut VecDeque<BlockOp>) -> Result<RoundJob> {
        for op in ops.iter() {
            if op.id.0 >= self.config.blocks() || op.action.end() > self.config.block_bytes {
                let why = format!("block {} or its data does not fit", op.id.0);
                return Err(EngineError::Invalid(why));
            }
        }
        self.begin_job()?;
        let first = ops.iter().take(self.asks_left() as usize);
        let asks: Vec<_> = first.map(|op| (Name::from(op.id), op.action.creates())).collect();
        let groups = vec![1; asks.len()];
        let round = self.show_round(asks, &groups);
        let ops = ops.drain(..round.asks.len()).collect();
        Ok(self.round(ops, round))
    }

    /// Begins to read the round again that an earlier session was cut off in, if it was.
    ///
    /// # Errors
    /// `Invalid` while a job is under way.
    pub fn resume(&mut self) -> Result<Option<RoundJob>> {
        let Some(round) = self.unsettled.take() else { return Ok(None) };
        self.begin_job()?;
        Ok(Some(self.round(Vec::new(), round)))
    }

    fn round(&self, ops: Vec<BlockOp>, round: Unsettled) -> RoundJob {
        let spots = round.shown.iter().flat_map(|shown| &shown.spots);
        let extents: Vec<_> = spots.map(|&spot| self.extent(spot)).collect();
        let mut order: Vec<usize> = (0..extents.len()).collect();
        order.sort_unstable_by_key(|&at| extents[at].offset);
        let extents: Vec<_> = order.iter().map(|&at| extents[at]).collect();
        RoundJob {
            buffer: vec![0; extents.len() * self.config.slot_bytes()],
            answers: Vec::with_capacity(ops.len()),
            done: false,
            read: false,
            ops,
            round,
            order,
            extents,
        }
    }

    /// Begins the next merge, if one is due.
    ///
    /// # Errors
    /// `Invalid` while a job is under way.
    pub fn begin_merge(&mut self) -> Result<Option<MergeJob>> {
        self.expect_idle()?;
        let Some(merge) = self.due() else { return Ok(None) };
        self.begin_job()?;
        let extents: Vec<_> = merge.spots().map(|spot| self.extent(spot)).collect();
        let buffer = vec![0; extents.len() * self.config.slot_bytes()];
        Ok(Some(MergeJob { phase: Merging::Begun(merge), merged: None, extents, buffer }))
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
            let mut round = self.begin_round(&mut ops)?;
            carry_out(&mut round, self, store)?;
            answers.append(&mut round.into_answers());
        }
    }

    fn extent(&self, spot: Spot) -> Extent {
        let bytes = self.config.slot_bytes() as u64;
        let within = u64::from(spot.slot.0) * bytes;
        Extent { offset: u64::from(spot.home.0) << WITHIN_TABLE | within, bytes }
    }
}

impl RoundJob {
    /// Make it durable before the first step. That of a resumed round is.
    pub fn intent(&self) -> Intent {
        self.round.intent()
    }

    /// Of a finished round, before the next job: make it durable before its answers are given.
    pub fn settle(&self, engine: &PyramidOram) -> Option<Settle> {
        self.done.then(|| engine.settled(&self.round.asks))
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
        for (&(name, _), shown) in self.round.asks.iter().zip(&self.round.shown) {
            let mine = slots.by_ref().take(shown.spots.len());
            let found = engine.open_shown(name, shown, mine)?;
            engine.keep(found);
        }
        for op in &self.ops {
            let action: &Action = &op.action;
            self.answers.push(engine.serve(Name::from(op.id), action));
        }
        self.done = true;
        Ok(())
    }
}

impl Job for RoundJob {
    type Engine = PyramidOram;

    fn step<'j>(&'j mut self, engine: &mut PyramidOram) -> Result<Step<'j>> {
        engine.expect_open()?;
        if !std::mem::replace(&mut self.read, true) {
            let (extents, into) = (&self.extents[..], &mut self.buffer[..]);
            return Ok(Step::Read(Read { extents, into, shown: &[], scheduled: 0 }));
        }
        if !self.done {
            let served = self.serve(engine);
            engine.end_job(served.is_ok());
            served?;
        }
        Ok(Step::Done)
    }
}

impl MergeJob {
    /// Of a finished merge: make it durable before anything else is stored.
    pub fn merged(&self) -> Option<&Merged> {
        self.merged.as_ref()
    }

    fn make(&mut self, engine: &mut PyramidOram, mut merge: Merge) -> Result<()> {
        engine.gather(&mut merge, &mut self.buffer)?;
        let mut made = engine.make(merge)?;
        self.buffer = std::mem::take(&mut made.sealed);
        let bytes = self.buffer.len() as u64;
        let first = engine.extent(Spot { home: made.home(), slot: Slot(0) });
        self.extents = vec![Extent { bytes, ..first }];
        self.phase = Merging::Written(Box::new(made));
        Ok(())
    }
}

impl Job for MergeJob {
    type Engine = PyramidOram;

    fn step<'j>(&'j mut self, engine: &mut PyramidOram) -> Result<Step<'j>> {
        engine.expect_open()?;
        match std::mem::replace(&mut self.phase, Merging::Done) {
            Merging::Begun(merge) => {
                self.phase = Merging::Read(merge);
                let (extents, into) = (&self.extents[..], &mut self.buffer[..]);
                Ok(Step::Read(Read { extents, into, shown: &[], scheduled: 0 }))
            }
            Merging::Read(merge) => {
                if let Err(error) = self.make(engine, merge) {
                    engine.end_job(false);
                    return Err(error);
                }
                let (extents, data) = (&self.extents[..], Data::Together(&self.buffer));
                Ok(Step::Write(Write { extents, data }))
            }
            Merging::Written(made) => {
                self.merged = Some(made.merged());
                engine.switch(*made);
                engine.end_job(true);
                Ok(Step::Done)
            }
            Merging::Done => Ok(Step::Done),
        }
    }
}
