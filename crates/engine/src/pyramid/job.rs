//! The job of one writer: rounds of asks, and the merges that are due between them.

use super::ids::{Name, Partition, Slot, Spot};
use super::merge::{Made, Merge};
use super::operation::Fate;
use super::oram::{Condition, PyramidOram, Shown};
use crate::memory::Batches;
use crate::{BlockAnswer, BlockOp, Data, EngineError, Extent, Job, Read, Result, Step, Write};

/// Bits of an offset within a table. Above them is the table's place.
pub const WITHIN_TABLE: u32 = 40;

/// A batch of operations on a pyramid.
pub struct PyramidJob {
    ops: Vec<BlockOp>,
    /// The first that was not shown yet.
    next: usize,
    answers: Vec<BlockAnswer>,
    round: Vec<Shown>,
    /// Partitions that asks read since the last merges.
    touched: Vec<Partition>,
    phase: Phase,
    extents: Vec<Extent>,
    buffer: Vec<u8>,
}

enum Phase {
    /// Show the next asks, or merge, or end.
    Next,
    /// The round's slots are read. They come in the order of their places: each one's number.
    Asked(Vec<usize>),
    /// The merge's slots are read.
    Gathered(Merge),
    /// The new table is written.
    Made(Made),
    Done,
}

impl PyramidOram {
    /// Begins a batch.
    ///
    /// # Errors
    /// `Invalid` for an id or data that does not fit.
    pub fn begin_batch(&mut self, ops: Vec<BlockOp>) -> Result<PyramidJob> {
        for op in &ops {
            if op.id.0 >= self.config.blocks() || op.action.end() > self.config.block_bytes {
                let why = format!("block {} or its data does not fit", op.id.0);
                return Err(EngineError::Invalid(why));
            }
        }
        self.begin_job()?;
        Ok(PyramidJob {
            answers: Vec::with_capacity(ops.len()),
            ops,
            next: 0,
            round: Vec::new(),
            touched: Vec::new(),
            phase: Phase::Next,
            extents: Vec::new(),
            buffer: Vec::new(),
        })
    }

    fn extent(&self, spot: Spot) -> Extent {
        let bytes = self.config.slot_bytes() as u64;
        let within = u64::from(spot.slot.0) * bytes;
        let offset = u64::from(spot.home.0) << WITHIN_TABLE | within;
        Extent { offset, bytes }
    }
}

impl PyramidJob {
    /// The answers of a finished batch, in the order of its operations.
    pub fn into_answers(self) -> Vec<BlockAnswer> {
        self.answers
    }

    /// Goes on to the next phase, and says what to do before the one after it.
    fn advance(&mut self, engine: &mut PyramidOram) -> Result<()> {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Next => self.begin(engine),
            Phase::Asked(order) => {
                self.serve(engine, &order)?;
                self.begin(engine)
            }
            Phase::Gathered(mut merge) => {
                engine.gather(&mut merge, &mut self.buffer)?;
                let mut made = engine.make(merge)?;
                self.buffer = std::mem::take(&mut made.sealed);
                let bytes = self.buffer.len() as u64;
                let first = engine.extent(Spot { home: made.home, slot: Slot(0) });
                self.extents = vec![Extent { bytes, ..first }];
                Phase::Made(made)
            }
            Phase::Made(made) => {
                engine.switch(made);
                self.begin(engine)
            }
            Phase::Done => Phase::Done,
        };
        Ok(())
    }

    /// A merge, if one is due, else a round of asks, if any are left.
    fn begin(&mut self, engine: &mut PyramidOram) -> Phase {
        if let Some(merge) = engine.due(&mut self.touched) {
            let extents = merge.spots().map(|spot| engine.extent(spot)).collect();
            self.expect(extents);
            return Phase::Gathered(merge);
        }
        if self.next == self.ops.len() {
            return Phase::Done;
        }
        self.show(engine);
        let spots = self.round.iter().flat_map(|shown| &shown.spots);
        let extents: Vec<_> = spots.map(|&spot| engine.extent(spot)).collect();
        let mut order: Vec<usize> = (0..extents.len()).collect();
        order.sort_unstable_by_key(|&at| extents[at].offset);
        self.expect(order.iter().map(|&at| extents[at]).collect());
        Phase::Asked(order)
    }

    /// Shows asks until the next turn is due, or a table was read too often.
    fn show(&mut self, engine: &mut PyramidOram) {
        let seed = engine.draw_seed();
        self.round.clear();
        let most = engine.asks_left() as usize;
        for (place, op) in self.ops[self.next..].iter().take(most).enumerate() {
            let (name, fate) = (Name::from(op.id), Fate::of(&op.action));
            let Some(shown) = engine.show(name, fate, seed, place as u64) else { break };
            self.touched.push(shown.partition);
            self.round.push(shown);
        }
    }

    fn expect(&mut self, extents: Vec<Extent>) {
        let bytes: u64 = extents.iter().map(|extent| extent.bytes).sum();
        self.buffer.resize(bytes as usize, 0);
        self.extents = extents;
    }

    fn serve(&mut self, engine: &mut PyramidOram, order: &[usize]) -> Result<()> {
        let slot_bytes = engine.config.slot_bytes();
        let mut slots: Vec<Option<&mut [u8]>> = order.iter().map(|_| None).collect();
        for (&at, bytes) in order.iter().zip(self.buffer.chunks_exact_mut(slot_bytes)) {
            slots[at] = Some(bytes);
        }
        let mut slots = slots.into_iter().flatten();
        for shown in self.round.drain(..) {
            let op = &self.ops[self.next];
            let (name, mine) = (Name::from(op.id), slots.by_ref().take(shown.spots.len()));
            let found = engine.open_shown(name, &shown, mine)?;
            self.answers.push(engine.serve(name, found, &op.action));
            self.next += 1;
        }
        Ok(())
    }
}

impl Job for PyramidJob {
    type Engine = PyramidOram;

    fn step<'j>(&'j mut self, engine: &mut PyramidOram) -> Result<Step<'j>> {
        engine.expect_open()?;
        let advanced = self.advance(engine);
        engine.set_condition(match (&advanced, &self.phase) {
            (Err(_), _) => Condition::Closed,
            (Ok(()), Phase::Done) => Condition::Idle,
            _ => Condition::UnderWay,
        });
        advanced?;
        let extents = &self.extents[..];
        Ok(match self.phase {
            Phase::Next | Phase::Done => Step::Done,
            Phase::Asked(_) | Phase::Gathered(_) => {
                let into = &mut self.buffer[..];
                Step::Read(Read { extents, into, shown: &[], scheduled: 0 })
            }
            Phase::Made(_) => Step::Write(Write { extents, data: Data::Together(&self.buffer) }),
        })
    }
}

impl Batches for PyramidOram {
    type Batch = PyramidJob;

    fn begin(&mut self, ops: Vec<BlockOp>) -> Result<PyramidJob> {
        self.begin_batch(ops)
    }

    fn answers(batch: PyramidJob) -> Vec<BlockAnswer> {
        batch.into_answers()
    }

    fn blocks(&self) -> u64 {
        self.config.blocks()
    }
}
