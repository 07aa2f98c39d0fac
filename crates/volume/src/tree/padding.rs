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
use crate::core::{Policy, SYNC_BYTES};
use crate::records::writes::WriteEntry;
use crate::tree::account::Padding;
use crate::tree::policy::Flush;
use crate::tree::tuning::{JOURNAL_WITHIN, PAD_BATCH, PATHS_WITHIN};
use crate::tree::volume::TreeVolume;
use oblivio_engine::{Action, BlockId, BlockOp};

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
        if self.waiting.unsynced.is_some() {
            let written = ops.iter().filter(|op| op.action != Action::Read);
            let turns = written.clone().count();
            self.waiting.note(written.flat_map(|op| WriteEntry::of(op.clone())));
            self.noted(turns, self.ledger.engine.block_bytes());
        }
    }

    /// Keeps room for entries in the next record, of at most these bytes each. What is too long for
    /// a record is left to a commit.
    pub(crate) fn noted(&mut self, entries: usize, bytes: usize) {
        if self.waiting.unsynced.is_none() {
            return;
        }
        self.account.padding.noted += entries * (WriteEntry::HEAD + bytes);
        if self.sync_bytes() > SYNC_BYTES && self.account.pacer.is_none() {
            self.waiting.unsynced = None;
        }
    }

    /// Bytes of writes that the next record must have room for.
    pub(crate) fn sync_bytes(&self) -> usize {
        let bytes = self.waiting.unsynced_bytes();
        if self.takes_turns() { bytes.max(self.account.padding.noted) } else { bytes }
    }

    /// Accepts an operation and defers it.
    pub(crate) fn take_up(&mut self, op: BlockOp) {
        let turn = op.action != Action::Read || self.takes_turns();
        match op.action {
            // A replay has the empty turn as well.
            Action::Read if turn => {
                self.waiting.deferred.add(&[]);
                self.waiting.note([WriteEntry::Discarded(0, 0)]);
            }
            _ => self.waiting.accept(op),
        }
        self.account.padding.turns += 1;
        self.noted(usize::from(turn), self.ledger.engine.block_bytes());
    }

    /// Counts a batch that answered reads.
    pub(crate) fn answered_reads(&mut self) {
        self.account.padding.reads += 1;
    }

    /// Pads everything accepted since the last call to public numbers. Each operation has a turn.
    pub(crate) fn bring_up_to(&mut self, least: Least) -> Result<()> {
        let missing =
            brought_up(self.account.padding.turns, least.writes) - self.account.padding.turns;
        let given_back = brought_up(self.account.padding.discards, least.discards);
        let unseen = given_back - self.account.padding.discards;
        self.ledger.engine.expect_discarded(unseen);
        self.note_discards(&[], unseen);
        let reads =
            brought_up(self.account.padding.reads, least.reads) - self.account.padding.reads;
        self.show_batches(reads)?;
        let empty = BlockOp { id: BlockId(0), action: Action::Read };
        self.take_turns(std::iter::repeat_n(empty, missing as usize))?;
        self.account.padding = Padding { noted: self.account.padding.noted, ..Padding::default() };
        Ok(())
    }

    /// Ends the caller's operation: shows everything that it must show.
    pub(crate) fn show_operation(&mut self) -> Result<()> {
        let padding = std::mem::take(&mut self.account.padding);
        self.account.padding.noted = padding.noted;
        if !self.options.pad || self.account.pacer.is_some() {
            self.account.accesses = 0;
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
            let batches = self.account.accesses / PAD_BATCH as u64;
            if batches > 0 {
                self.show_batches(batches.next_power_of_two() - batches)?;
            }
            if due || !self.is_commit_due() {
                break;
            }
        }
        if due {
            self.checkpoint(Flush::Due)?;
        }
        self.account.accesses = 0;
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
