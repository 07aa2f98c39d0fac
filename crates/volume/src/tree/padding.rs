//! Hides an operation's purpose: its trace follows from its kind and size alone.
//!
//! With padding every accepted operation on a block has a *turn*: one access when the batches are
//! carried out, even for a rewrite of a block whose write is still deferred. A record has room for
//! a whole block for each turn since the last one, and commits follow from batches and records. So
//! the trace is a function of the number of operations. The caller pads to public numbers, with
//! [`Least`], what it cannot know in advance: metadata, tails, cache hits. The batches of the
//! caller's operation are then rounded up to a power of two.

use crate::Result;
use crate::block::Least;
use crate::tree::tuning::{JOURNAL_WITHIN, PAD_BATCH, PATHS_WITHIN, SYNC_BYTES};
use crate::tree::volume::TreeVolume;
use crate::tree::waiting::Padding;
use oblivio_engine::{Action, BlockId, BlockOp};

/// Before each entry of a record.
const HEAD: usize = 24;

/// `count`, or if there is more, the next power of two times `count`.
fn brought_up(there: u64, count: u64) -> u64 {
    match count {
        0 => there,
        _ => there.div_ceil(count).next_power_of_two().max(1) * count,
    }
}

impl TreeVolume {
    /// Whether each operation has a turn. At a pace none shows anything.
    pub(crate) fn takes_turns(&self) -> bool {
        self.waiting.deferred.has_turn_for_each()
    }

    /// Notes writes that a sync must make durable.
    pub(crate) fn note(&mut self, ops: &[BlockOp]) {
        let Some(writes) = &mut self.waiting.unsynced else { return };
        ops.iter().for_each(|op| writes.add(op));
        let turns = ops.iter().filter(|op| op.action != Action::Read).count();
        self.waiting.padding.noted += turns * (HEAD + self.ledger.engine.block_bytes());
        self.bound_record();
    }

    /// Notes an empty turn.
    fn note_empty(&mut self) {
        let Some(writes) = &mut self.waiting.unsynced else { return };
        writes.empty();
        self.waiting.padding.noted += HEAD + self.ledger.engine.block_bytes();
        self.bound_record();
    }

    /// Notes discarded runs of blocks, padded to `asked`.
    pub(crate) fn note_discards(&mut self, runs: &[(u64, u64)], asked: u64) {
        self.waiting.padding.discards += asked;
        let Some(writes) = &mut self.waiting.unsynced else { return };
        runs.iter().for_each(|&(first, count)| writes.discard(first, count));
        self.waiting.padding.noted += asked as usize * HEAD;
        self.bound_record();
    }

    /// Leaves what is too long for a record to a commit.
    fn bound_record(&mut self) {
        if self.sync_bytes() > SYNC_BYTES && self.pacer.is_none() {
            self.waiting.unsynced = None;
        }
    }

    /// Bytes of writes that the next record must have room for.
    pub(crate) fn sync_bytes(&self) -> usize {
        let bytes = self.waiting.unsynced.as_ref().map_or(0, |writes| writes.bytes().len());
        if self.takes_turns() { bytes.max(self.waiting.padding.noted) } else { bytes }
    }

    /// Notes that all writes are durable.
    pub(crate) fn forget_noted(&mut self) {
        self.waiting.padding.noted = 0;
    }

    /// Accepts an operation and defers it.
    pub(crate) fn take_up(&mut self, op: BlockOp) {
        match op.action {
            Action::Read if self.takes_turns() => self.note_empty(),
            _ => self.note(std::slice::from_ref(&op)),
        }
        self.waiting.padding.turns += 1;
        self.waiting.deferred.add(op);
    }

    /// Counts a batch that answered reads.
    pub(crate) fn answered_reads(&mut self) {
        self.waiting.padding.reads += 1;
    }

    /// Pads everything accepted since the last call to public numbers.
    pub(crate) fn bring_up(&mut self, least: Least) -> Result<()> {
        if !self.takes_turns() {
            return Ok(());
        }
        let missing =
            brought_up(self.waiting.padding.turns, least.writes) - self.waiting.padding.turns;
        let given_back = brought_up(self.waiting.padding.discards, least.discards);
        let unseen = given_back - self.waiting.padding.discards;
        self.ledger.engine.expect_discarded(unseen);
        self.note_discards(&[], unseen);
        let reads =
            brought_up(self.waiting.padding.reads, least.reads) - self.waiting.padding.reads;
        self.show_batches(reads)?;
        let empty = BlockOp { id: BlockId(0), action: Action::Read };
        self.take_turns(std::iter::repeat_n(empty, missing as usize))?;
        self.waiting.padding = Padding { noted: self.waiting.padding.noted, ..Padding::default() };
        Ok(())
    }

    /// Ends the caller's operation: shows everything that it must show.
    pub(crate) fn pad_operation(&mut self) -> Result<()> {
        let padding = std::mem::take(&mut self.waiting.padding);
        self.waiting.padding.noted = padding.noted;
        if !self.options.pad || self.pacer.is_some() {
            self.waiting.accesses = 0;
            return Ok(());
        }
        if padding.reads > 0 {
            self.show_batches(padding.reads.next_power_of_two() - padding.reads)?;
        }
        // A due commit carries out the deferred writes: they belong to the operation too.
        let mut due = false;
        loop {
            due |= self.is_commit_due();
            if due {
                self.carry_out_all()?;
            }
            let batches = self.waiting.accesses / PAD_BATCH as u64;
            if batches > 0 {
                self.show_batches(batches.next_power_of_two() - batches)?;
            }
            if due || !self.is_commit_due() {
                break;
            }
        }
        if due {
            self.checkpoint()?;
        }
        self.waiting.accesses = 0;
        Ok(())
    }

    fn show_batches(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            self.serve_batch(Vec::new())?;
            self.commit_within()?;
        }
        Ok(())
    }

    /// Commits within an operation if one is due. If the operation's end must not show, only when
    /// more must be written than may wait for that end.
    pub(crate) fn commit_within(&mut self) -> Result<()> {
        let due = !self.takes_turns() || self.progress().is_due_within();
        if due { self.commit_if_due().map(drop) } else { Ok(()) }
    }

    /// How many more paths, and how much more journal, there may be before a commit.
    pub(crate) fn within(&self) -> (u64, u64) {
        if self.takes_turns() { (PATHS_WITHIN, JOURNAL_WITHIN) } else { (0, 0) }
    }
}
