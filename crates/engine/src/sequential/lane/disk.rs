//! The disk that a lane's engine sees, and where it is.
//!
//! The engine reads and writes a disk of its own, without gaps. Each place of that has what was
//! written there last; so its own flush is known, and the outer flush beside which it was made, and
//! with it the place in the lane. What was overwritten since, beyond the grace, does not open.
//!
//! An inner node waits in memory until a flush has a page for it. The lane's state has those that
//! wait. Who goes on from a state a second time, after a crash, would write them as they were: no
//! burnt page comes twice. So they are sealed anew.

use super::LaneLayout;
use super::gaps::Gaps;
use super::node_turns::{most_waiting, node_turn};
use crate::sequential::engine::Sequential;
use crate::sequential::ids::{Flush, Generation, GenerationBucket};
use crate::sequential::layout::{Layout, Piece, PieceAt};
use crate::sequential::map_cache::NodeKey;
use crate::sequential::map_shape::NodeAt;
use crate::wire::{Reader, Writer};
use crate::{EngineError, Extent, Level, Result, Write};
use std::collections::VecDeque;
use std::ops::Range;

/// The most gaps that a state has room for.
const MOST_GAPS: u64 = 512;

/// A part of what the engine wants to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LanePiece {
    /// It is here in the lane.
    Stored(Extent),
    /// It waits in memory.
    Waiting(Vec<u8>),
    /// Nothing was ever written there: this many bytes of nothing.
    Nothing(u64),
}

/// An inner node that waits for its page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WaitingNode {
    level: Level,
    /// The lane's flush that has its page.
    flush: u64,
    bytes: Vec<u8>,
}

/// The disk of an open lane.
#[derive(Clone, Debug)]
pub struct LaneDisk {
    lane: LaneLayout,
    seen: Layout,
    gaps: Gaps,
    /// The lane's own flushes that are stored.
    flushes: Flush,
    waiting: VecDeque<WaitingNode>,
}

impl LaneDisk {
    /// The disk of a lane that was never open.
    pub fn new(lane: LaneLayout) -> Self {
        let (seen, gaps, waiting) = (lane.engine_layout(), Gaps::default(), VecDeque::new());
        Self { lane, seen, gaps, flushes: Flush(0), waiting }
    }

    /// The places of the lane.
    pub fn layout(&self) -> &LaneLayout {
        &self.lane
    }

    /// Whether the lane's next flush can be made beside this outer one: it has the same number in
    /// its turn.
    pub fn fits(&self, outer: Flush) -> bool {
        let turn = self.lane.schedule().queue_buckets();
        outer.0 % turn == self.flushes.0 % turn && outer >= self.gaps.outer(self.flushes)
    }

    /// How many flushes it may still miss before it loses anything, if this outer one is next.
    pub fn grace_left(&self, outer: Flush) -> u64 {
        let oldest = self.oldest();
        // Before a first flush there is nothing to lose.
        let since = if self.flushes > oldest { self.missed(outer) } else { 0 };
        self.lane.grace().saturating_sub(self.gaps.missed_since(oldest) + since)
    }

    /// How many outer flushes it missed, up to this next one, since it was open last.
    pub fn missed(&self, outer: Flush) -> u64 {
        outer.0.saturating_sub(self.gaps.outer(self.flushes).0)
    }

    /// The oldest own flush that wrote anything that is needed.
    fn oldest(&self) -> Flush {
        let schedule = self.lane.schedule();
        let turns = schedule.turn(self.flushes).0.saturating_sub(schedule.turns_of_renewal());
        Flush(turns * schedule.queue_buckets())
    }

    /// The parts of an extent that the engine wants to read, in order.
    pub fn pieces(&self, extent: Extent) -> Vec<LanePiece> {
        let (mut pieces, mut offset) = (Vec::new(), extent.offset);
        while offset < extent.end() {
            let at = self.seen.piece_at(offset);
            let part = at.within..at.within + at.left.min(extent.end() - offset);
            offset += part.end - part.start;
            match at.piece {
                Piece::Node { ring, node } => pieces.push(self.node(at, (ring, node), part)),
                Piece::Bucket { ring, index } => {
                    let newest = self.newest(at.level, ring, index);
                    let bucket = newest.map(|generation| GenerationBucket { generation, index });
                    self.bucket(bucket, part, &mut pieces);
                }
                Piece::LastBucket(place) => {
                    self.bucket(self.newest_swept(place), part, &mut pieces);
                }
            }
        }
        pieces
    }

    /// The newest generation at a place of a ring of which bucket `index` is stored.
    fn newest(&self, level: Level, ring: u64, index: u64) -> Option<Generation> {
        let (schedule, generations) = (self.lane.schedule(), self.lane.schedule().ring(level));
        let begun = schedule.generation_at(level, Flush(self.flushes.0.checked_sub(1)?))?.number;
        let number = begun.checked_sub((begun + generations - ring) % generations)?;
        let is_stored = |number: &u64| {
            let generation = Generation { level, number: *number };
            schedule.flush_of(GenerationBucket { generation, index }) < self.flushes
        };
        let mut newest = [Some(number), number.checked_sub(generations)].into_iter().flatten();
        newest.find(is_stored).map(|number| Generation { level, number })
    }

    /// The newest bucket at a place of the last level.
    fn newest_swept(&self, place: u64) -> Option<GenerationBucket> {
        let schedule = self.lane.schedule();
        let begun = Flush(self.flushes.0.checked_sub(1)?);
        let newest = schedule.generation_at(schedule.last(), begun)?;
        // A sweep leaves out as many places as a turn has flushes, the next one others.
        let sweeps = (newest.number.saturating_sub(2)..=newest.number).rev();
        let buckets =
            sweeps.map(|number| self.seen.bucket_at(place, Generation { number, ..newest }));
        buckets.flatten().find(|bucket| schedule.flush_of(*bucket) < self.flushes)
    }

    /// A part of a bucket with its leaf, which stand apart in a lane.
    fn bucket(
        &self,
        bucket: Option<GenerationBucket>,
        part: Range<u64>,
        pieces: &mut Vec<LanePiece>,
    ) {
        let Some(bucket) = bucket else {
            return pieces.push(LanePiece::Nothing(part.end - part.start));
        };
        let outer = self.gaps.outer(self.lane.schedule().flush_of(bucket));
        let blocks = self.lane.bucket(bucket.generation.level, outer);
        let leaf = self.lane.leaf(bucket.generation.level, outer);
        for (place, begin) in [(blocks, 0), (leaf, blocks.bytes)] {
            let (from, to) = (part.start.max(begin), part.end.min(begin + place.bytes));
            if from < to {
                let offset = place.offset + from - begin;
                pieces.push(LanePiece::Stored(Extent { offset, bytes: to - from }));
            }
        }
    }

    /// A part of an inner node.
    fn node(&self, at: PieceAt, (ring, node): (u64, u64), part: Range<u64>) -> LanePiece {
        let bytes = part.end - part.start;
        let shape = self.lane.shape(at.level);
        let turn = node_turn(shape, shape.node_at(node));
        let Some(generation) = self.newest(at.level, ring, turn.complete) else {
            return LanePiece::Nothing(bytes);
        };
        let written = GenerationBucket { generation, index: turn.written };
        let flush = self.lane.schedule().flush_of(written);
        if flush < self.flushes {
            let page = self.lane.node(at.level, self.gaps.outer(flush));
            return LanePiece::Stored(Extent { offset: page.offset + part.start, bytes });
        }
        let is_it = |it: &&WaitingNode| (it.level, it.flush) == (at.level, flush.0);
        match self.waiting.iter().find(is_it) {
            Some(node) => {
                LanePiece::Waiting(node.bytes[part.start as usize..part.end as usize].to_vec())
            }
            None => LanePiece::Nothing(bytes),
        }
    }

    /// Puts what the engine's next flush writes into the bytes that the lane gets beside an outer
    /// flush, which must [fit](Self::fits): those of [`LaneLayout::writes`], one after the other.
    /// The lane has missed the outer ones since its last. Gives the parts that the engine wrote
    /// nothing into, in order.
    pub fn begin_flush(
        &mut self,
        outer: Flush,
        write: &Write<'_>,
        out: &mut [u8],
    ) -> Vec<Range<usize>> {
        debug_assert!(self.fits(outer));
        match self.missed(outer) {
            0 => {}
            missed => self.gaps.add(self.flushes, missed),
        }
        let (own, schedule) = (self.flushes, self.lane.schedule());
        let (mut parts, mut at, mut left) = (write.parts(), 0, Vec::new());
        for level in schedule.levels() {
            let bytes = |extent: Extent| extent.bytes as usize;
            let blocks = bytes(self.lane.bucket(level, outer));
            let leaf = bytes(self.lane.leaf(level, outer));
            let node = bytes(self.lane.node(level, outer));
            match schedule.bucket(level, own) {
                Some(bucket) => {
                    let data = parts.next().map_or(&[][..], |part| part.data);
                    out[at..at + blocks + leaf].copy_from_slice(data);
                    let shape = self.lane.shape(level);
                    for (closed, part) in shape.closed_by(bucket.index).zip(&mut parts) {
                        let index = node_turn(shape, closed).written;
                        let flush = schedule.flush_of(GenerationBucket { index, ..bucket }).0;
                        let bytes = part.data.to_vec();
                        self.waiting.push_back(WaitingNode { level, flush, bytes });
                    }
                }
                None => left.push(at..at + blocks + leaf),
            }
            at += blocks + leaf;
            let due = self.waiting.iter().find(|it| (it.level, it.flush) == (level, own.0));
            match due {
                Some(due) => out[at..at + node].copy_from_slice(&due.bytes),
                None => left.push(at..at + node),
            }
            at += node;
        }
        left
    }

    /// The lane's part of the flush is stored.
    pub fn end_flush(&mut self) {
        let own = self.flushes.0;
        self.waiting.retain(|node| node.flush > own);
        self.flushes = Flush(own + 1);
        self.gaps.forget(self.oldest(), room(&self.lane));
    }

    /// What a state says of the disk, padded to [`LaneLayout::disk_state_bytes`].
    pub fn state(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Writer(&mut bytes);
        self.gaps.save(&mut out, room(&self.lane));
        out.u64(self.waiting.len() as u64);
        for node in &self.waiting {
            out.words(&[node.level.0.into(), node.flush]);
            out.bytes(&node.bytes);
        }
        let left = self.lane.disk_state_bytes() - out.0.len();
        out.zeros(left);
        bytes
    }

    /// The disk that a state describes, of the engine in that state. What waits there is sealed
    /// anew, and the engine takes note of it.
    ///
    /// # Errors
    /// `State` for what [`Self::state`] did not write.
    pub fn restore(lane: LaneLayout, engine: &mut Sequential, state: &[u8]) -> Result<Self> {
        let (flushes, mut input) = (engine.flushes(), Reader(state));
        let gaps = Gaps::load(&mut input, room(&lane))?;
        let (mut waiting, count) = (VecDeque::new(), input.u64()?);
        for _ in 0..count {
            let level = u32::try_from(input.u64()?).map_err(|_| broken())?;
            let flush = input.u64()?;
            let bytes = input.bytes(lane.node_bytes() as usize)?.to_vec();
            if level > lane.schedule().last().0 || flush < flushes.0 {
                return Err(broken());
            }
            waiting.push_back(WaitingNode { level: Level(level), flush, bytes });
        }
        let mut disk = Self { gaps, flushes, waiting, ..Self::new(lane) };
        disk.seal_again(engine)?;
        Ok(disk)
    }

    /// Seals what waits anew.
    fn seal_again(&mut self, engine: &mut Sequential) -> Result<()> {
        let nodes = (0..).zip(&self.waiting).map(|(at, node)| Ok((self.complete(node)?, at)));
        let mut nodes = nodes.collect::<Result<Vec<(NodeKey, usize)>>>()?;
        // A node names its children by their tags.
        nodes.sort_by_key(|((_, node), _)| node.height);
        let mut tags = Vec::new();
        for (key, at) in nodes {
            engine.vault.seal_again(key, &mut self.waiting[at].bytes, &mut tags)?;
        }
        Ok(())
    }

    /// Which node it is: one that a bucket completed shortly before.
    fn complete(&self, waiting: &WaitingNode) -> Result<NodeKey> {
        let (schedule, shape) = (self.lane.schedule(), self.lane.shape(waiting.level));
        let first = self.flushes.0.saturating_sub(most_waiting(shape) as u64);
        for flush in (first..self.flushes.0).map(Flush) {
            let Some(bucket) = schedule.bucket(waiting.level, flush) else { continue };
            let is_it = |node: &NodeAt| {
                let index = node_turn(shape, *node).written;
                schedule.flush_of(GenerationBucket { index, ..bucket }).0 == waiting.flush
            };
            if let Some(node) = shape.closed_by(bucket.index).find(is_it) {
                return Ok((bucket.generation, node));
            }
        }
        Err(broken())
    }
}

impl LaneLayout {
    /// Bytes of what a state says of the lane's disk. They never change.
    pub fn disk_state_bytes(&self) -> usize {
        let levels = self.schedule().levels();
        let nodes: usize = levels.map(|level| most_waiting(self.shape(level))).sum();
        Gaps::bytes(room(self)) + 8 + nodes * (2 * 8 + self.node_bytes() as usize)
    }
}

fn broken() -> EngineError {
    EngineError::State("a lane's disk makes no sense")
}

/// How many gaps a state has room for: within the grace there are no more, as each is a turn or
/// more.
fn room(lane: &LaneLayout) -> usize {
    (lane.grace_turns() + 2).min(MOST_GAPS) as usize
}
