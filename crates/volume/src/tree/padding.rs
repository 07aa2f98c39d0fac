//! Hiding what an operation is for: what it shows follows from its kind and its size alone.
//!
//! With padding every operation on a block that is accepted has a *turn*, for which one access is
//! made when the batches are carried out: also one that rewrites a block whose write still waits. A
//! record has room for a whole block for each turn since the one before, and commits follow from
//! batches and records; so all that is shown is a function of how many operations there were. What
//! the caller cannot know before it has looked (metadata, tails, what was found in memory) it
//! brings to a public number with [`Least`]. The batches of the caller's operation are then rounded
//! up to a power of two.

use crate::Result;
use crate::block::Least;
use crate::tree::space::SYNC_BYTES;
use crate::tree::volume::TreeVolume;
use oblivio_engine::{Action, BlockId, BlockOp, Engine};

/// Operations in each batch of a padded operation.
pub(crate) const PAD_BATCH: usize = 4;
/// Before each entry of a record.
const HEAD: usize = 24;
/// A commit that becomes due within an operation waits for its end, for so many paths at most: else
/// it would fall between other batches where the same number comes in other parts.
pub(crate) const PATHS_WITHIN: u64 = 512;
/// And for so much journal.
const JOURNAL_WITHIN: u64 = 2 << 20;

/// What the operation under way has shown, and what was accepted since the last sync.
#[derive(Default)]
pub(crate) struct Padding {
    /// Turns, since the caller last said how many there are at least.
    turns: u64,
    /// Blocks that were given back, since then.
    discards: u64,
    /// Batches that answered reads, since then.
    reads: u64,
    /// Room that the next record has, at least.
    noted: usize,
}

/// `count`, or what there is if that is more: then the next power of two times `count`.
fn brought_up(there: u64, count: u64) -> u64 {
    match count {
        0 => there,
        _ => there.div_ceil(count).next_power_of_two().max(1) * count,
    }
}

impl TreeVolume {
    /// Whether each operation has a turn. At a pace none shows anything.
    pub(crate) fn takes_turns(&self) -> bool {
        self.deferred.has_turn_for_each()
    }

    /// Remembers what a sync must make durable.
    pub(crate) fn note(&mut self, ops: &[BlockOp]) {
        let Some(writes) = &mut self.unsynced else { return };
        ops.iter().for_each(|op| writes.add(op));
        let turns = ops.iter().filter(|op| op.action != Action::Read).count();
        self.padding.noted += turns * (HEAD + self.engine.block_bytes());
        self.bound_record();
    }

    /// Remembers a turn in which nothing is written.
    fn note_empty(&mut self) {
        let Some(writes) = &mut self.unsynced else { return };
        writes.empty();
        self.padding.noted += HEAD + self.engine.block_bytes();
        self.bound_record();
    }

    /// Remembers that runs of blocks were given back, for the caller so many things.
    pub(crate) fn note_discards(&mut self, runs: &[(u64, u64)], asked: u64) {
        self.padding.discards += asked;
        let Some(writes) = &mut self.unsynced else { return };
        runs.iter().for_each(|&(first, count)| writes.discard(first, count));
        self.padding.noted += asked as usize * HEAD;
        self.bound_record();
    }

    /// What is too long for a record is made durable by a commit.
    fn bound_record(&mut self) {
        if self.sync_bytes() > SYNC_BYTES && self.pacer.is_none() {
            self.unsynced = None;
        }
    }

    /// Bytes of writes that the next record has to have room for.
    pub(crate) fn sync_bytes(&self) -> usize {
        let bytes = self.unsynced.as_ref().map_or(0, |writes| writes.bytes().len());
        if self.takes_turns() { bytes.max(self.padding.noted) } else { bytes }
    }

    /// All that was written is durable.
    pub(crate) fn forget_noted(&mut self) {
        self.padding.noted = 0;
    }

    /// Takes an operation up that is carried out later.
    pub(crate) fn take_up(&mut self, op: BlockOp) {
        match op.action {
            Action::Read if self.takes_turns() => self.note_empty(),
            _ => self.note(std::slice::from_ref(&op)),
        }
        self.padding.turns += 1;
        self.deferred.add(op);
    }

    /// A batch answered reads.
    pub(crate) fn answered_reads(&mut self) {
        self.padding.reads += 1;
    }

    /// Brings what was accepted since the last time to public numbers.
    pub(crate) fn bring_up(&mut self, least: Least) -> Result<()> {
        if !self.takes_turns() {
            return Ok(());
        }
        let missing = brought_up(self.padding.turns, least.writes) - self.padding.turns;
        let given_back = brought_up(self.padding.discards, least.discards);
        let unseen = given_back - self.padding.discards;
        self.engine.expect_discarded(unseen);
        self.note_discards(&[], unseen);
        let reads = brought_up(self.padding.reads, least.reads) - self.padding.reads;
        self.show_batches(reads)?;
        let empty = BlockOp { id: BlockId(0), action: Action::Read };
        self.take_turns(std::iter::repeat_n(empty, missing as usize))?;
        self.padding = Padding { noted: self.padding.noted, ..Padding::default() };
        Ok(())
    }

    /// Ends the caller's operation: all that it has to show is shown.
    pub(crate) fn pad_operation(&mut self) -> Result<()> {
        let padding = std::mem::take(&mut self.padding);
        self.padding.noted = padding.noted;
        if !self.options.pad || self.pacer.is_some() {
            self.accesses = 0;
            return Ok(());
        }
        if padding.reads > 0 {
            self.show_batches(padding.reads.next_power_of_two() - padding.reads)?;
        }
        // A commit that is due carries out what waits: that belongs to the operation too.
        let mut due = false;
        loop {
            due |= self.is_commit_due(0);
            if due {
                self.carry_out_all()?;
            }
            let batches = self.accesses / PAD_BATCH as u64;
            if batches > 0 {
                self.show_batches(batches.next_power_of_two() - batches)?;
            }
            if due || !self.is_commit_due(0) {
                break;
            }
        }
        if due {
            self.checkpoint()?;
        }
        self.accesses = 0;
        Ok(())
    }

    fn show_batches(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            self.serve_batch(Vec::new())?;
            self.commit_within()?;
        }
        Ok(())
    }

    /// Commits within an operation when one is due; where its end must not be seen, only when there
    /// is more to write than may wait for that.
    pub(crate) fn commit_within(&mut self) -> Result<()> {
        let due = if self.takes_turns() { self.is_commit_due(PATHS_WITHIN) } else { true };
        if due { self.commit_if_due().map(drop) } else { Ok(()) }
    }

    /// Whether there were so many paths more, or so much journal, that a commit is due.
    pub(crate) fn is_commit_due(&self, late: u64) -> bool {
        let journal = 2 * self.journal_limit() + if late > 0 { JOURNAL_WITHIN } else { 0 };
        self.paths_since_commit() >= self.evictions_between_commits() + self.paths_late() + late
            || self.journal.bytes() > journal
    }

    /// What the journal may be longer, and how many paths more there may be, before a commit.
    pub(crate) fn within(&self) -> (u64, u64) {
        if self.takes_turns() { (PATHS_WITHIN, JOURNAL_WITHIN) } else { (0, 0) }
    }
}
