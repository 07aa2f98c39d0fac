//! Reads. The adversary does not see them, so each goes straight to its block, and several batches
//! may run during a flush.

use super::block_reads::{BlockReads, OpenBlocks, places};
use super::engine::Sequential;
use super::extents::{read, total};
use super::ids::{Flush, Generation, GenerationSlot};
use super::map_node::SealedAt;
use super::map_walk::{Found, Goal, MapWalk, NOT_LISTED};
use super::placement::Candidates;
use super::schedule::BlockHome;
use super::time_pages::Times;
use super::vault::DamagedExtent;
use crate::{BlockId, BlockOutcome, Extent, Job, Lost, Result, Step, WorkPart};
use std::collections::BTreeMap;
use std::ops::Range;

/// A batch of blocks to read.
#[derive(Default)]
pub struct ReadBatch {
    blocks: Vec<BlockId>,
    answers: Vec<Answer>,
    /// Which of them are on the disk, and the way to each.
    stored: Vec<(usize, Generation, Goal)>,
    /// The pages of access times that it read, at that version of the times.
    pages: BTreeMap<BlockId, Vec<u8>>,
    version: u64,
    /// The flush before which the blocks were located. After it, their places may be overwritten.
    located: Flush,
    phase: Phase,
    /// Find only the blocks' places and presence.
    only_places: bool,
    /// Presence of the blocks, as far as known.
    present: Vec<bool>,
    /// The read buffer for blocks. At the end it holds the contents of the stored ones.
    bytes: Vec<u8>,
    /// Damaged parts of the disk that it met.
    damage: Vec<DamagedExtent>,
}

/// The outcome of a block in a batch's buffer.
type BorrowedOutcome<'a> = std::result::Result<Option<&'a [u8]>, Lost>;
/// Blocks by their number in a batch, and their offsets on the disk.
type FoundAt = Vec<(usize, u64)>;
/// Slots to read, and what opens each.
type Wanted = Vec<(GenerationSlot, SealedAt)>;

/// The answer for a block, as far as known.
#[derive(Clone, Default)]
enum Answer {
    #[default]
    Absent,
    /// It was in the queue.
    Queued(Vec<u8>),
    /// In the batch's buffer.
    Read(Range<usize>),
    /// It exists, and its content is lost to damage.
    Lost,
}

#[derive(Default)]
enum Phase {
    #[default]
    Locate,
    /// Reading pages of access times.
    Pages(Box<ReadBatch>),
    Leaves {
        walk: MapWalk,
        extents: Vec<Extent>,
        bytes: Vec<u8>,
    },
    /// Reading blocks: the index of each in the batch, and its offset.
    Blocks {
        found: Vec<(usize, u64)>,
        reads: BlockReads,
    },
    Done,
    /// The places of the blocks.
    Places(Vec<Extent>),
}

impl ReadBatch {
    pub(super) fn new(blocks: Vec<BlockId>) -> Self {
        let (answers, present) = (vec![Answer::Absent; blocks.len()], vec![false; blocks.len()]);
        Self { blocks, answers, present, ..Self::default() }
    }

    /// The same with the buffer of an earlier batch ([`Self::into_buffer`]), which saves clearing a
    /// new one.
    #[must_use]
    pub fn with_buffer(self, bytes: Vec<u8>) -> Self {
        Self { bytes, ..self }
    }

    /// The same for [`Self::places`] or [`Self::present`] only: it ends before it reads blocks.
    #[must_use]
    pub fn only_places(self) -> Self {
        Self { only_places: true, ..self }
    }

    /// The places of the blocks to read, once known.
    pub fn places(&self) -> &[Extent] {
        match &self.phase {
            Phase::Places(extents) => extents,
            _ => &[],
        }
    }

    /// Which of the blocks are present, in their order, once the batch is done.
    pub fn present(&self) -> &[bool] {
        &self.present
    }

    /// Whether all answers are known.
    pub fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::Places(_))
    }

    fn take_in(&mut self, found: Vec<(usize, u64)>, blocks: OpenBlocks) {
        for (at, offset) in found {
            self.answers[at] = blocks.find(offset).map_or(Answer::Lost, Answer::Read);
        }
        self.damage.extend(blocks.damage());
        self.bytes = blocks.bytes;
    }

    /// Notes that a block exists and is lost.
    fn lose(&mut self, at: usize) {
        (self.present[at], self.answers[at]) = (true, Answer::Lost);
    }

    /// The damaged parts of the disk that the batch met, with repeats.
    pub fn damage(&self) -> &[DamagedExtent] {
        &self.damage
    }

    /// Takes in pages of access times.
    fn take_pages(&mut self, engine: &mut Sequential, mut inner: Self) {
        self.damage.append(&mut inner.damage);
        let pages = std::mem::take(&mut inner.blocks);
        for (page, content) in pages.into_iter().zip(inner.into_answers()) {
            if let Ok(content) = &content {
                engine.page_cache.insert(page, content.clone().unwrap_or_default());
            }
            let lost = || Some(Times::lost_page(engine.config.block_bytes));
            let content = content.unwrap_or_else(|_| lost());
            self.pages.insert(page, content.unwrap_or_default());
        }
    }

    /// Answers the blocks in memory and finds the ways to the rest. Otherwise returns the pages of
    /// access times to read first.
    fn locate(&mut self, engine: &Sequential) -> Vec<BlockId> {
        self.located = engine.flushes();
        self.stored.clear();
        let version = engine.placement.times().version();
        if std::mem::replace(&mut self.version, version) != version {
            self.pages.clear();
        }
        let mut pages = Vec::new();
        for (at, &block) in self.blocks.iter().enumerate() {
            let mut found = engine.placement.find(block);
            if let Candidates::InPage(page) = found
                && let Some(content) =
                    self.pages.get(&page).map(Vec::as_slice).or(engine.page_cache.get(page))
            {
                let now = engine.placement.now();
                let known = engine.placement.times().in_page(content, block, now);
                found = engine.placement.find_known(block, known);
            }
            self.present[at] = matches!(found, Candidates::Queued(Some(_)));
            match found {
                Candidates::InPage(page) => pages.push(page),
                Candidates::Nowhere => self.answers[at] = Answer::Absent,
                Candidates::Lost => {
                    (self.present[at], self.answers[at]) = (true, Answer::Lost);
                }
                Candidates::Queued(_) if self.only_places => {}
                Candidates::Queued(content) => {
                    let content = content.cloned();
                    self.answers[at] = content.map_or(Answer::Absent, Answer::Queued);
                }
                Candidates::Stored(home) => {
                    self.answers[at] = Answer::Absent;
                    if let Some((generation, goal)) = engine.way_to(block, home) {
                        self.stored.push((at, generation, goal));
                    }
                }
            }
        }
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// The slots of the stored blocks, once all leaves are known: the number in the batch and the
    /// offset of each, and what opens it.
    fn slots_of(&mut self, engine: &Sequential, walk: &MapWalk) -> Result<(FoundAt, Wanted)> {
        let (mut places, mut wanted) = (Vec::new(), Vec::new());
        for (&(at, generation, _), found) in self.stored.clone().iter().zip(walk.found()) {
            let block = self.blocks[at];
            let schedule = engine.placement.schedule();
            let last = generation.level == schedule.last();
            let (bucket, leaf) = match found {
                Found::Leaf(bucket, leaf) => (bucket, leaf),
                Found::Damaged => {
                    self.lose(at);
                    continue;
                }
                Found::NotListed => {
                    engine.expect_damage()?;
                    self.lose(at);
                    continue;
                }
            };
            let line =
                if last { Some(schedule.last_bucket(block).1 as usize) } else { leaf.find(block) };
            let entry = line.and_then(|line| leaf.entry(line)).filter(|it| it.block == block);
            let Some((line, entry)) = line.zip(entry) else {
                // Only the last level may have an empty address.
                if !last {
                    engine.expect_damage()?;
                    self.lose(at);
                }
                continue;
            };
            self.present[at] = entry.present;
            if entry.lost {
                self.lose(at);
            } else if entry.present {
                let index = bucket * schedule.bucket_blocks(generation.level) + line as u64;
                let slot = GenerationSlot { generation, index };
                places.push((at, engine.vault.layout.slot(slot).offset));
                wanted.push((slot, entry.sealed));
            }
        }
        Ok((places, wanted))
    }

    /// The current read.
    pub(super) fn as_step(&mut self) -> Step<'_> {
        match &mut self.phase {
            Phase::Pages(inner) => inner.as_step(),
            Phase::Leaves { extents, bytes, .. } => read(extents, bytes),
            Phase::Blocks { reads, .. } => reads.as_step(),
            Phase::Locate | Phase::Done | Phase::Places(_) => Step::Done,
        }
    }

    /// The answers, in the order of the blocks; none for an absent block.
    pub fn answers(&self) -> impl Iterator<Item = BorrowedOutcome<'_>> {
        self.answers.iter().map(|answer| match answer {
            Answer::Absent => Ok(None),
            Answer::Queued(content) => Ok(Some(&content[..])),
            Answer::Read(range) => Ok(self.bytes.get(range.clone())),
            Answer::Lost => Err(Lost),
        })
    }

    /// The answers as owned bytes.
    pub fn into_answers(self) -> Vec<BlockOutcome> {
        let owned = |answer: Option<&[u8]>| answer.map(<[u8]>::to_vec);
        self.answers().map(|answer| answer.map(owned)).collect()
    }

    /// Its buffer, for another batch.
    pub fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }
}

impl Job for ReadBatch {
    type Engine = Sequential;

    fn step<'j>(&'j mut self, engine: &mut Sequential) -> Result<Step<'j>> {
        engine.advance_batch(self)?;
        Ok(self.as_step())
    }

    fn parts(&mut self, count: usize) -> Vec<WorkPart<'_>> {
        match &mut self.phase {
            Phase::Pages(inner) => inner.parts(count),
            Phase::Blocks { reads, .. } => reads.parts(count),
            _ => Vec::new(),
        }
    }
}

impl Sequential {
    /// Whether a block may be present, by memory alone. False is certain.
    pub fn may_exist(&self, block: BlockId) -> bool {
        !matches!(self.placement.find(block), Candidates::Nowhere | Candidates::Queued(None))
    }

    /// Begins to read these blocks.
    ///
    /// # Errors
    /// `Invalid` when there is no such block.
    pub fn begin_read(&self, blocks: Vec<BlockId>) -> Result<ReadBatch> {
        self.expect_whole()?;
        blocks.iter().try_for_each(|block| self.expect_block(*block))?;
        Ok(ReadBatch::new(blocks))
    }

    /// Advances a batch as far as possible without a read.
    pub(super) fn advance_batch(&mut self, batch: &mut ReadBatch) -> Result<()> {
        let phase = std::mem::replace(&mut batch.phase, Phase::Done);
        let before = batch.damage.len();
        batch.phase = self.advance_read(batch, phase)?;
        if batch.damage.len() > before && batch.located != self.flushes() {
            // A flush came between: the place may be another block's now. Look again.
            batch.damage.truncate(before);
            batch.phase = self.advance_read(batch, Phase::Locate)?;
        }
        Ok(())
    }

    fn advance_read(&mut self, batch: &mut ReadBatch, phase: Phase) -> Result<Phase> {
        match phase {
            Phase::Done | Phase::Places(_) => Ok(phase),
            Phase::Pages(mut inner) => {
                self.advance_batch(&mut inner)?;
                if !inner.is_done() {
                    return Ok(Phase::Pages(inner));
                }
                // A page that had its turn meanwhile is old, and memory has forgotten the later
                // times.
                if batch.version == self.placement.times().version() {
                    batch.take_pages(self, *inner);
                }
                self.advance_read(batch, Phase::Locate)
            }
            Phase::Locate => {
                let pages = batch.locate(self);
                if !pages.is_empty() {
                    let inner = Box::new(ReadBatch::new(pages));
                    return self.advance_read(batch, Phase::Pages(inner));
                }
                let goals: Vec<_> = batch.stored.iter().map(|it| (it.1, it.2)).collect();
                let walk = MapWalk::new(&self.vault, &goals, true)?;
                self.go_on(batch, walk, Vec::new())
            }
            Phase::Leaves { mut walk, mut bytes, .. } => {
                let before = walk.damage().len();
                walk.supply(&mut self.vault, &mut bytes)?;
                batch.damage.extend(&walk.damage()[before..]);
                self.go_on(batch, walk, bytes)
            }
            Phase::Blocks { found, reads } => {
                batch.take_in(found, reads.opened()?);
                Ok(Phase::Done)
            }
        }
    }

    /// The way to the leaf that lists a block on the disk; none for a block that never came to the
    /// last level.
    fn way_to(&self, block: BlockId, home: BlockHome) -> Option<(Generation, Goal)> {
        let schedule = self.placement.schedule();
        match home {
            BlockHome::Stored(generation) if generation.level < schedule.last() => {
                Some((generation, Goal::Block(block)))
            }
            _ => {
                let slot = self.placement.settled_slot(block)?;
                Some((slot.generation, Goal::Leaf(schedule.last_bucket(block).0)))
            }
        }
    }

    /// Goes further down the maps, or to the blocks once all leaves are known.
    fn go_on(
        &mut self,
        batch: &mut ReadBatch,
        mut walk: MapWalk,
        mut bytes: Vec<u8>,
    ) -> Result<Phase> {
        let extents = walk.missing(&mut self.vault)?;
        if !extents.is_empty() {
            bytes.resize(total(&extents), 0);
            return Ok(Phase::Leaves { walk, extents, bytes });
        }
        let (found, wanted) = batch.slots_of(self, &walk)?;
        if wanted.is_empty() {
            return Ok(Phase::Done);
        }
        if batch.only_places {
            return Ok(Phase::Places(places(&self.vault, wanted)));
        }
        let reads =
            BlockReads::new(&self.vault, wanted.into_iter(), std::mem::take(&mut batch.bytes));
        Ok(Phase::Blocks { found, reads })
    }

    /// A block that its generation does not list is lost to damage.
    ///
    /// # Errors
    /// `State` if there never was any.
    fn expect_damage(&self) -> Result<()> {
        if self.met_damage { Ok(()) } else { Err(NOT_LISTED) }
    }
}
