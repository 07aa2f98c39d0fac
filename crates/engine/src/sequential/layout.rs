//! The place of everything on the disk, in bytes: the levels' rings from the top down, then the
//! last level. All of it follows from the parameters.
//!
//! A bucket is its blocks, each of its own length, and the map leaf that lists and authenticates
//! them. Inner nodes follow the buckets of their generation.

use super::SequentialConfig;
use super::ids::{Flush, Generation, GenerationBucket, GenerationSlot};
use super::map_shape::{MapShape, NodeAt};
use super::schedule::Schedule;
use crate::{EngineError, Extent, Level, Result};

/// The largest disk: every offset on it, its end included, is a valid file offset.
pub const MOST_BYTES: u64 = 1 << 62;

/// One level's part of the disk.
#[derive(Clone, Debug)]
struct Region {
    offset: u64,
    /// Bytes of a bucket's blocks.
    blocks_bytes: u64,
    leaf_bytes: u64,
    shape: MapShape,
    /// From one generation of the ring to the next; in the last level, to the other node area.
    stride: u64,
}

/// A piece of the disk, whichever generation it is of: generations use places by turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A bucket with its leaf; of the generation at a place in the ring.
    Bucket {
        /// The place in the ring.
        ring: u64,
        /// Its number within the generation.
        index: u64,
    },
    /// A place for a bucket of the last level, counted from its begin.
    LastBucket(u64),
    /// A place for an inner node; of the generation at a place in the ring.
    Node {
        /// The place in the ring.
        ring: u64,
        /// Its number among the inner nodes.
        node: u64,
    },
}

/// A piece of the disk and an offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PieceAt {
    /// The level that it is of.
    pub level: Level,
    /// Which it is.
    pub piece: Piece,
    /// The offset in it.
    pub within: u64,
    /// Its bytes from there on.
    pub left: u64,
}

/// The places of an engine's disk.
#[derive(Clone, Debug)]
pub struct Layout {
    schedule: Schedule,
    block_bytes: u64,
    node_bytes: u64,
    regions: Vec<Region>,
    /// Buckets for which the last level has room.
    last_places: u64,
    bytes: u64,
}

impl Layout {
    /// The disk of an engine with these parameters.
    ///
    /// # Errors
    /// `Invalid` when they make no sense, or need a disk of more than [`MOST_BYTES`].
    pub fn new(config: &SequentialConfig) -> Result<Self> {
        let schedule = Schedule::new(config)?;
        let layout = Self::within_bounds(config, schedule);
        layout.ok_or_else(|| EngineError::Invalid("a disk has at most 2^62 bytes".into()))
    }

    /// `None` when it would be too large.
    pub(super) fn within_bounds(config: &SequentialConfig, schedule: Schedule) -> Option<Self> {
        let (block_bytes, node_bytes) = (config.block_bytes as u64, config.sector_bytes as u64);
        // The last level slides by a turn's buckets with each sweep. So a turn never overwrites
        // anything that was current when the turn began.
        let last_places = schedule.generation_buckets(schedule.last()) + schedule.queue_buckets();
        let mut regions = Vec::new();
        let mut offset = 0u64;
        for level in schedule.levels() {
            let blocks = schedule.bucket_blocks(level);
            let blocks_bytes = blocks.checked_mul(block_bytes)?;
            let leaf_bytes = config.leaf_bytes(blocks);
            let buckets = schedule.generation_buckets(level);
            let shape = MapShape::new(buckets, config.map_fan_out());
            let nodes = shape.inner_nodes().checked_mul(node_bytes)?;
            let bucket_bytes = blocks_bytes.checked_add(leaf_bytes)?;
            // The ring places a generation's buckets. The last level's buckets are in one place;
            // only its nodes alternate.
            let (places, stride) = if level == schedule.last() {
                (last_places.checked_mul(bucket_bytes)?, nodes)
            } else {
                (0, buckets.checked_mul(bucket_bytes)?.checked_add(nodes)?)
            };
            regions.push(Region { offset, blocks_bytes, leaf_bytes, shape, stride });
            let ring = schedule.ring(level).checked_mul(stride)?;
            offset = offset.checked_add(places)?.checked_add(ring)?;
        }
        let layout =
            Self { schedule, block_bytes, node_bytes, regions, last_places, bytes: offset };
        (offset <= MOST_BYTES).then_some(layout)
    }

    /// The schedule of this layout.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Bytes of the whole disk.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of a level's part of the disk.
    pub fn level_bytes(&self, level: Level) -> u64 {
        let end = self.regions.get(level.0 as usize + 1).map_or(self.bytes, |next| next.offset);
        end - self.region(level).offset
    }

    /// The form of the buffer maps of a level.
    pub fn shape(&self, level: Level) -> &MapShape {
        &self.region(level).shape
    }

    /// Bytes of a map leaf of that level.
    pub fn leaf_bytes(&self, level: Level) -> usize {
        self.region(level).leaf_bytes as usize
    }

    /// Bytes of an inner node.
    pub fn node_bytes(&self) -> usize {
        self.node_bytes as usize
    }

    fn region(&self, level: Level) -> &Region {
        &self.regions[level.0 as usize]
    }

    /// A bucket with its leaf.
    pub fn bucket(&self, bucket: GenerationBucket) -> Extent {
        let Generation { level, number } = bucket.generation;
        let region = self.region(level);
        let bytes = region.blocks_bytes + region.leaf_bytes;
        let within = if level == self.schedule.last() {
            let places = self.last_places;
            (bucket.index + places - self.slid(number)) % places * bytes
        } else {
            number % self.schedule.ring(level) * region.stride + bucket.index * bytes
        };
        Extent { offset: region.offset + within, bytes }
    }

    /// One block.
    pub fn slot(&self, slot: GenerationSlot) -> Extent {
        let per_bucket = self.schedule.bucket_blocks(slot.generation.level);
        let index = slot.index / per_bucket;
        let bucket = self.bucket(GenerationBucket { generation: slot.generation, index });
        let offset = bucket.offset + slot.index % per_bucket * self.block_bytes;
        Extent { offset, bytes: self.block_bytes }
    }

    /// A node of a generation's buffer map.
    pub fn node(&self, generation: Generation, node: NodeAt) -> Extent {
        let region = self.region(generation.level);
        if node.height == 0 {
            let bucket = self.bucket(GenerationBucket { generation, index: node.index });
            let offset = bucket.offset + region.blocks_bytes;
            return Extent { offset, bytes: region.leaf_bytes };
        }
        let bucket_bytes = region.blocks_bytes + region.leaf_bytes;
        let ring = generation.number % self.schedule.ring(generation.level) * region.stride;
        let buckets = if generation.level == self.schedule.last() {
            self.last_places
        } else {
            region.shape.leaves()
        };
        let nodes = region.offset + ring + buckets * bucket_bytes;
        let offset = nodes + region.shape.inner_place(node) * self.node_bytes;
        Extent { offset, bytes: self.node_bytes }
    }

    /// What is at an offset, which must be on the disk.
    pub(super) fn piece_at(&self, offset: u64) -> PieceAt {
        let level = self.regions.partition_point(|region| region.offset <= offset) - 1;
        let (region, level) = (&self.regions[level], Level(level as u32));
        let bucket_bytes = region.blocks_bytes + region.leaf_bytes;
        let within = offset - region.offset;
        let places = if level == self.schedule.last() { self.last_places } else { 0 };
        let (piece, bytes, within) = match within.checked_sub(places * bucket_bytes) {
            None => (Piece::LastBucket(within / bucket_bytes), bucket_bytes, within),
            Some(within) => {
                let (ring, within) = (within / region.stride, within % region.stride);
                let buckets = if places > 0 { 0 } else { region.shape.leaves() };
                match within.checked_sub(buckets * bucket_bytes) {
                    None => {
                        (Piece::Bucket { ring, index: within / bucket_bytes }, bucket_bytes, within)
                    }
                    Some(within) => {
                        let node = within / self.node_bytes;
                        (Piece::Node { ring, node }, self.node_bytes, within)
                    }
                }
            }
        };
        let within = within % bytes;
        PieceAt { level, piece, within, left: bytes - within }
    }

    /// The bucket that is at a place of the last level in a sweep; none in one that leaves the
    /// place out.
    pub(super) fn bucket_at(&self, place: u64, sweep: Generation) -> Option<GenerationBucket> {
        let places = self.last_places;
        let index = (place + self.slid(sweep.number)) % places;
        let buckets = self.schedule.generation_buckets(sweep.level);
        (index < buckets).then_some(GenerationBucket { generation: sweep, index })
    }

    /// How far the last level slid until a sweep.
    fn slid(&self, sweep: u64) -> u64 {
        let slid = u128::from(sweep) * u128::from(self.schedule.queue_buckets());
        (slid % u128::from(self.last_places)) as u64
    }

    /// Everything that a flush writes, in order. An audit compares a recorded trace with this.
    pub fn writes(&self, flush: Flush) -> Vec<Extent> {
        let mut writes = Vec::new();
        for bucket in self.schedule.buckets(flush) {
            let generation = bucket.generation;
            writes.push(self.bucket(bucket));
            let closed = self.shape(generation.level).closed_by(bucket.index);
            writes.extend(closed.map(|node| self.node(generation, node)));
        }
        writes
    }
}

/// Bytes written per byte that a user writes, once every level is in use, and bytes stored per byte
/// that a user may store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayoutCost {
    /// Bytes written per user byte.
    pub written: f64,
    /// Bytes on the disk per user byte.
    pub stored: f64,
}

impl Layout {
    /// The exact cost over a whole sweep of the last level, in closed form. A test compares it with
    /// the sum of the schedule's extents.
    pub fn cost(&self) -> LayoutCost {
        let schedule = &self.schedule;
        let mut written = 0.0;
        for level in schedule.levels() {
            let region = self.region(level);
            let buckets = region.shape.leaves() as f64;
            let bytes = buckets * (region.blocks_bytes + region.leaf_bytes) as f64
                + (region.shape.inner_nodes() * self.node_bytes) as f64;
            let user = schedule.flushes_of(level) as f64
                * (schedule.writes_per_flush() * self.block_bytes) as f64;
            written += bytes / user;
        }
        let user = schedule.blocks() as f64 * self.block_bytes as f64;
        LayoutCost { written, stored: self.bytes as f64 / user }
    }
}
