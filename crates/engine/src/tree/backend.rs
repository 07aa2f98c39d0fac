//! Path ORAM's back end (Freecursive §3.1): it reads the union of some paths, hands out the wanted
//! blocks, and writes the union back with every block as deep as possible.
//!
//! A round: [`Backend::begin`], the read, [`Backend::absorb`], the front end's changes to its
//! targets, [`Backend::evict`], the write.

mod absorb;
mod entries;
mod lengths;
mod write_back;

pub(super) use entries::{met_lost, open as open_entry, open_bucket};

use super::bitset::{BitSet, SlotId};
use super::block_pool::{BlockPool, Payload};
use super::bucket_cache::{BucketCache, Resident};
use super::buffer_pool::SpareBuffers;
use super::changes::DeltaChanges;
use super::eviction::Eviction;
use super::geometry::{Geometry, Shape, SlotHeader};
use super::meters::Meters;
use super::paths::{NONE, PathUnion};
use super::short_leaves::Missing;
use super::top_log::Top;
use crate::{
    Address, BlockId, BucketId, Data, Extent, Label, Leaf, Level, Read, SealedBucket, Step, Write,
};
use oblivio_crypto::{Kind, Place, Sealer, Tag, VolumeId};

/// One path that a round reads.
#[derive(Clone, Copy, Debug)]
pub struct PathAccess {
    /// The label whose path is read: the old one, if it is about to change.
    pub label: Label,
    /// The block wanted from it.
    pub want: Option<Address>,
    /// Written back even if the schedule does not rewrite the paths that accesses read.
    pub scheduled: bool,
}

/// The place of a block's payload during a round.
#[derive(Clone, Copy, Debug)]
enum Held {
    /// At this offset of the read buffer.
    Read(usize),
    /// In the pool.
    Pool(Payload),
}

/// A block that this round may move.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    header: SlotHeader,
    held: Held,
    /// Whether it comes from the top of the tree that buckets do not make durable.
    of_top: bool,
    /// As in [`Resident`].
    home: u64,
    next: u32,
}

impl Candidate {
    /// A block that is in no bucket of the top.
    fn new(header: SlotHeader, held: Held) -> Self {
        Self { header, held, of_top: false, home: 0, next: NONE }
    }
}

/// The leaves of a tree.
pub struct Leaves {
    pub depth: Level,
    /// The most slots of a stored leaf bucket. It bounds every bucket written before.
    pub leaf_slots: usize,
    /// The slots of leaf buckets rewritten now. Fewer than `leaf_slots` while the tree shrinks.
    /// With none, leaf buckets are emptied and dropped.
    pub leaf_room: usize,
}

/// What is known of stored buckets and of blocks.
#[derive(Default)]
pub struct Marks {
    /// Buckets that were stored at least once.
    pub present: BitSet<BucketId>,
    /// Slots that the stored versions of buckets lack.
    pub missing: Missing,
    /// Slots whose block was removed without rewriting the bucket.
    pub removed: BitSet<SlotId>,
    /// Data blocks with wanted content. The tree drops other blocks where that costs nothing: on a
    /// path being rewritten, or at an access that asks for the block.
    pub live: BitSet<BlockId>,
    /// Whether damage was met, ever: a block may be an old one until its label says otherwise, and
    /// one that is missing is lost.
    pub met_damage: bool,
}

/// The schedule's turns.
pub struct TurnClock {
    /// So far, the current round's included.
    pub turns: u64,
    /// The turn before which the next flush is due.
    pub flush_at: u64,
}

/// One Path ORAM tree with its stash and bucket cache.
pub struct Backend {
    pub(super) geometry: Geometry,
    pub(super) leaves: Leaves,
    pub(super) rewrites_reads: bool,
    /// What of it buckets do not make durable.
    pub(super) top: Top,
    pub(super) stash: Vec<Resident>,
    pub(super) pool: BlockPool,
    pub(super) cache: BucketCache,
    pub(super) marks: Marks,
    pub(super) clock: TurnClock,
    pub(super) root_tag: Tag,
    pub(super) meters: Meters,
    pub(super) changes: DeltaChanges,
    /// Whether a round met damage since somebody asked.
    damaged_now: bool,
    volume: VolumeId,
    sealer: Sealer,
    round: Round,
}

/// The state of one round, kept for its allocations.
#[derive(Default)]
pub struct Round {
    union: PathUnion,
    paths: Vec<(Leaf, bool)>,
    shown: Vec<Leaf>,
    /// How many of them follow the schedule.
    scheduled: usize,
    reads: Vec<Extent>,
    /// The node of each of them.
    read_nodes: Vec<u32>,
    read_buf: Vec<u8>,
    writes: Vec<Extent>,
    /// One per entry of `writes`.
    written: Vec<SealedBucket>,
    /// For the next rounds.
    spare: SpareBuffers,
    node_tags: Vec<[Tag; 2]>,
    heads: Vec<u32>,
    /// With a pool: the lists of blocks from memory, which come after those just read.
    last_heads: Vec<u32>,
    candidates: Vec<Candidate>,
    /// Wanted blocks, ascending, each with the index of its access.
    wants: Vec<(Address, Label, u32)>,
    /// The candidate of each access, or [`NONE`].
    found: Vec<u32>,
}

impl Round {
    /// Its read.
    pub fn as_read(&mut self) -> Step<'_> {
        let bytes: u64 = self.reads.iter().map(|extent| extent.bytes).sum();
        Step::Read(Read {
            extents: &self.reads,
            into: &mut self.read_buf[..bytes as usize],
            shown: &self.shown,
            scheduled: self.scheduled,
        })
    }

    /// How many accesses it has.
    fn accesses(&self) -> u64 {
        (self.shown.len() - self.scheduled) as u64
    }

    /// Adds a write.
    fn append(&mut self, extent: Extent, sealed: SealedBucket) {
        self.writes.push(extent);
        self.written.push(sealed);
    }

    /// Its write.
    pub fn as_write(&self) -> Step<'_> {
        Step::Write(Write { extents: &self.writes, data: Data::Apart(&self.written) })
    }
}

impl Backend {
    /// An empty tree of this shape, with the first `cached_buckets` buckets in memory.
    pub fn new(
        geometry: Geometry,
        shape: Shape,
        cached_buckets: u64,
        eviction: Eviction,
        volume: VolumeId,
        sealer: Sealer,
    ) -> Self {
        Self {
            geometry,
            leaves: Leaves {
                depth: shape.depth,
                leaf_slots: shape.leaf_slots,
                leaf_room: shape.leaf_slots,
            },
            rewrites_reads: eviction.rewrites_reads(),
            top: Top { is_pool: eviction.windows().is_some(), ..Top::default() },
            stash: Vec::new(),
            pool: BlockPool::new(geometry.block_bytes),
            cache: BucketCache::new(geometry.blocks_per_bucket, cached_buckets),
            marks: Marks::default(),
            clock: TurnClock { turns: 0, flush_at: u64::MAX },
            root_tag: Tag::default(),
            meters: Meters::default(),
            changes: DeltaChanges::default(),
            damaged_now: false,
            volume,
            sealer,
            round: Round::default(),
        }
    }

    /// Plans a round. Then [`Round::as_read`] names the reads.
    pub fn begin(&mut self, accesses: &[PathAccess]) {
        let round = &mut self.round;
        round.paths.clear();
        round.shown.clear();
        round.scheduled = 0;
        round.wants.clear();
        for (index, access) in accesses.iter().enumerate() {
            let leaf = access.label.leaf(self.leaves.depth);
            round.paths.push((leaf, access.scheduled || self.rewrites_reads));
            round.shown.push(leaf);
            round.scheduled += usize::from(access.scheduled);
            if let Some(want) = access.want {
                round.wants.push((want, access.label, index as u32));
            }
        }
        round.wants.sort_unstable();
        round.found.clear();
        round.found.resize(accesses.len(), NONE);
        round.union.build(&mut round.paths, self.leaves.depth);
        round.reads.clear();
        round.read_nodes.clear();
        let mut moved = 0;
        for (index, node) in round.union.nodes().iter().enumerate() {
            let in_memory = self.cache.holds(node.bucket) && self.cache.is_loaded(node.bucket);
            if self.marks.present.get(node.bucket) && !in_memory {
                round.read_nodes.push(index as u32);
                let slots = self.geometry.blocks_per_bucket - self.marks.missing.get(node.bucket);
                let bytes = self.geometry.bucket_bytes_with(slots) as u64;
                round.reads.push(Extent { offset: node.bucket.0, bytes });
                moved += bytes;
            }
        }
        if round.read_buf.len() < moved as usize {
            round.read_buf.resize(moved as usize, 0);
        }
        self.meters.paths += accesses.len() as u64;
        self.changes.paths += accesses.len() as u64;
        self.meters.buckets_read += round.reads.len() as u64;
        self.meters.bytes_moved += moved;
    }

    /// Hands the round out while its job's step is carried out.
    pub fn lend_round(&mut self) -> Round {
        std::mem::take(&mut self.round)
    }

    /// Takes it back.
    pub fn take_back(&mut self, round: Round) {
        self.round = round;
    }

    /// Whether the round writes anything.
    pub fn writes_any(&self) -> bool {
        !self.round.writes.is_empty()
    }

    /// The header of the block that access `index` wanted, if it exists.
    pub fn target(&self, index: usize) -> Option<SlotHeader> {
        let found = self.round.found[index];
        (found != NONE).then(|| self.round.candidates[found as usize].header)
    }

    /// The content of the block that access `index` wanted; it must exist.
    pub fn content(&self, index: usize) -> &[u8] {
        match self.round.candidates[self.round.found[index] as usize].held {
            Held::Read(at) => &self.round.read_buf[at..at + self.geometry.block_bytes],
            Held::Pool(payload) => self.pool.get(payload),
        }
    }

    /// As [`Self::content`], to change.
    pub fn content_mut(&mut self, index: usize) -> &mut [u8] {
        match self.round.candidates[self.round.found[index] as usize].held {
            Held::Read(at) => &mut self.round.read_buf[at..at + self.geometry.block_bytes],
            Held::Pool(payload) => self.pool.get_mut(payload),
        }
    }

    /// Gives the wanted block its new label and PMMAC tag, and says whether it is lost.
    pub fn relabel(&mut self, index: usize, label: Label, mac: Tag, lost: bool) {
        let block = &mut self.round.candidates[self.round.found[index] as usize];
        block.header = SlotHeader { id: block.header.id, label, mac, lost };
        block.home = 0;
    }

    /// Adds the wanted block, which did not exist, with zeros as content.
    pub fn insert(&mut self, index: usize, id: Address) {
        let held = Held::Pool(self.pool.store(&[]));
        self.round.found[index] = self.round.candidates.len() as u32;
        let header = SlotHeader { id, ..SlotHeader::VACANT };
        self.round.candidates.push(Candidate::new(header, held));
    }

    /// Removes the wanted block (`readrmv`, Freecursive §4.2.2).
    pub fn remove(&mut self, index: usize) -> Option<Payload> {
        let found = self.round.found[index];
        if found == NONE {
            return None;
        }
        self.round.found[index] = NONE;
        let candidate = &mut self.round.candidates[found as usize];
        candidate.header.id = Address::NONE;
        Some(match candidate.held {
            Held::Pool(payload) => payload,
            Held::Read(at) => {
                self.pool.store(&self.round.read_buf[at..at + self.geometry.block_bytes])
            }
        })
    }

    /// Adds a block from outside the tree to the current round (`append`, Freecursive §4.2.2).
    pub fn append(&mut self, block: Resident) {
        let (header, held) = (block.header, Held::Pool(block.payload));
        self.round.candidates.push(Candidate::new(header, held));
    }

    /// The counters so far.
    pub fn meters(&self) -> Meters {
        self.meters
    }

    /// Whether a round met a damaged bucket since the last call.
    pub fn take_damage(&mut self) -> bool {
        std::mem::take(&mut self.damaged_now)
    }

    /// Changes the number of cached buckets; must follow a flush. The slots of removed blocks are
    /// known, so the stored bucket can replace a dropped one.
    pub fn set_cached_buckets(&mut self, limit: u64) {
        for block in self.cache.set_limit(limit) {
            self.pool.release(block.payload);
        }
    }

    /// Bytes of memory held: payloads, buffers, and the records of each bucket.
    pub fn memory_bytes(&self) -> usize {
        self.pool.bytes()
            + self.cache.known_bytes()
            + self.round.read_buf.capacity()
            + self.round.spare.bytes()
            + self.round.written.iter().map(|bytes| bytes.capacity()).sum::<usize>()
            + self.marks.present.bytes()
            + self.marks.missing.bytes()
            + self.marks.removed.bytes()
            + self.marks.live.bytes()
    }

    fn place(&self, bucket: BucketId) -> Place {
        Place { volume: self.volume, kind: Kind::Bucket, index: bucket.0, version: 0 }
    }
}

fn resident(header: SlotHeader, payload: Payload) -> Resident {
    Resident { header, payload, slot: 0, home: 0 }
}
