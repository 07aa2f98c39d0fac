//! The shape of a tree and the bytes of a bucket.
//!
//! A sealed bucket is `seal header | [left tag, right tag] | z slot headers | z payloads | tag`. A
//! slot header is `block id | label | [PMMAC tag]`; an empty slot has [`Address::NONE`]. Buckets
//! have Z slots. With leaf steps, buckets written as leaves may have fewer and are shorter
//! accordingly (docs/decisions/0010-leaf-slots.md).

use super::bitset::SlotId;
use crate::{Address, BucketId, Label, Level};
use oblivio_crypto::{SEAL_HEADER, SEAL_OVERHEAD, TAG_BYTES, Tag};

/// The size of a tree: the depth of its leaves, and the slots of a leaf bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// The level of the leaves.
    pub depth: Level,
    /// Slots of each leaf bucket. All buckets above have the full number.
    pub leaf_slots: usize,
}

impl Shape {
    /// Slots of the whole tree when the other buckets have `full`.
    pub fn slots(&self, full: usize) -> u64 {
        (buckets_in(self.depth) - self.leaves()) * full as u64
            + self.leaves() * self.leaf_slots as u64
    }

    /// The number of leaves.
    pub fn leaves(&self) -> u64 {
        1 << self.depth.0
    }
}

/// Sizes of one tree, all public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes in a block (the paper's B).
    pub block_bytes: usize,
    /// Slots in a bucket (the paper's Z).
    pub blocks_per_bucket: usize,
    /// Whether a bucket carries its children's tags.
    pub tag_tree: bool,
    /// Whether a slot carries a PMMAC tag.
    pub pmmac: bool,
}

impl Geometry {
    /// Whether one damaged bucket ends everything: where only some of a bucket's blocks are
    /// checked, as in comparisons with the tag tree.
    pub(super) fn is_strict(&self) -> bool {
        !self.tag_tree || self.pmmac
    }

    /// Bytes of a slot header.
    pub fn slot_header_bytes(&self) -> usize {
        16 + if self.pmmac { TAG_BYTES } else { 0 }
    }

    fn child_tag_bytes(&self) -> usize {
        if self.tag_tree { 2 * TAG_BYTES } else { 0 }
    }

    /// Bytes of a full bucket, as the store sees it.
    pub fn bucket_bytes(&self) -> usize {
        self.bucket_bytes_with(self.blocks_per_bucket)
    }

    /// Bytes of a bucket with this many slots.
    pub fn bucket_bytes_with(&self, slots: usize) -> usize {
        SEAL_OVERHEAD
            + self.child_tag_bytes()
            + slots * (self.slot_header_bytes() + self.block_bytes)
    }

    /// Bytes of a sealed entry of the top's log: an id, a label, a block.
    pub(super) fn entry_bytes(&self) -> usize {
        SEAL_OVERHEAD + 16 + self.block_bytes
    }

    /// Offset of slot `slot`'s header in a sealed bucket's buffer.
    pub fn header_at(&self, slot: usize) -> usize {
        SEAL_HEADER + self.child_tag_bytes() + slot * self.slot_header_bytes()
    }

    /// Offset of slot `slot`'s payload in the buffer of a sealed bucket of `slots` slots.
    pub fn payload_at(&self, slots: usize, slot: usize) -> usize {
        self.header_at(slots) + slot * self.block_bytes
    }

    /// Bytes of all buckets of a tree.
    pub fn tree_bytes(&self, shape: Shape) -> u64 {
        (buckets_in(shape.depth) - shape.leaves()) * self.bucket_bytes() as u64
            + shape.leaves() * self.bucket_bytes_with(shape.leaf_slots) as u64
    }

    /// The children's tags of an opened bucket.
    pub fn child_tags(&self, bucket: &[u8]) -> [Tag; 2] {
        let mut tags = [Tag::default(); 2];
        if self.tag_tree {
            for (side, tag) in tags.iter_mut().enumerate() {
                let at = SEAL_HEADER + side * TAG_BYTES;
                tag.0.copy_from_slice(&bucket[at..at + TAG_BYTES]);
            }
        }
        tags
    }

    /// Writes the children's tags into a bucket before sealing.
    pub fn set_child_tags(&self, bucket: &mut [u8], tags: &[Tag; 2]) {
        if self.tag_tree {
            for (side, tag) in tags.iter().enumerate() {
                let at = SEAL_HEADER + side * TAG_BYTES;
                bucket[at..at + TAG_BYTES].copy_from_slice(&tag.0);
            }
        }
    }

    /// One slot's header: id, label, PMMAC tag (zeros without PMMAC).
    pub fn slot(&self, bucket: &[u8], slot: usize) -> SlotHeader {
        let header = &bucket[self.header_at(slot)..][..self.slot_header_bytes()];
        let mut mac = Tag::default();
        if self.pmmac {
            mac.0.copy_from_slice(&header[16..32]);
        }
        SlotHeader::of(read_u64(header, 0), Label(read_u64(header, 8)), mac)
    }

    /// Writes one slot's header.
    pub fn set_slot(&self, bucket: &mut [u8], slot: usize, header: &SlotHeader) {
        let at = self.header_at(slot);
        bucket[at..at + 8].copy_from_slice(&header.stored_id().to_le_bytes());
        bucket[at + 8..at + 16].copy_from_slice(&header.label.0.to_le_bytes());
        if self.pmmac {
            bucket[at + 16..at + 32].copy_from_slice(&header.mac.0);
        }
    }

    /// A slot of a bucket.
    pub fn slot_id(&self, bucket: BucketId, slot: usize) -> SlotId {
        SlotId(bucket.0 * self.blocks_per_bucket as u64 + slot as u64)
    }

    /// Bytes of one whole path in a tree with leaves at `depth`.
    pub fn path_bytes(&self, depth: Level) -> usize {
        (depth.0 as usize + 1) * self.bucket_bytes()
    }
}

/// A slot's description of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotHeader {
    /// The block, or [`Address::NONE`].
    pub id: Address,
    /// Its label.
    pub label: Label,
    /// Its PMMAC tag.
    pub mac: Tag,
    /// Whether it only stands in the place of a lost block, and says which version was lost.
    pub lost: bool,
}

/// In a stored id: see [`SlotHeader::lost`].
const LOST: u64 = 1 << 55;

impl SlotHeader {
    /// The header of an empty slot.
    pub const VACANT: SlotHeader =
        SlotHeader { id: Address::NONE, label: Label(0), mac: Tag([0; TAG_BYTES]), lost: false };

    /// Of an id as stored.
    pub fn of(stored: u64, label: Label, mac: Tag) -> Self {
        let lost = stored != Address::NONE.0 && stored & LOST != 0;
        let id = Address(if lost { stored & !LOST } else { stored });
        Self { id, label, mac, lost }
    }

    /// The id as stored.
    pub fn stored_id(&self) -> u64 {
        self.id.0 | if self.lost { LOST } else { 0 }
    }
}

/// The number of buckets of a tree with leaves at `depth`. Heap indices run from 1 to this number.
pub fn buckets_in(depth: Level) -> u64 {
    (2 << depth.0) - 1
}

/// The least depth at which `blocks` blocks fill at most `percent` % of the slots.
pub fn depth_for(blocks: u64, blocks_per_bucket: usize, percent: u32) -> Level {
    let mut depth = Level(0);
    while (blocks as u128) * 100
        > buckets_in(depth) as u128 * blocks_per_bucket as u128 * percent as u128
    {
        depth.0 += 1;
    }
    depth
}

/// As [`depth_for`], with leaf steps: the least depth that suffices with full leaves, and the
/// fewest leaf slots that suffice at it.
pub fn shape_for(blocks: u64, blocks_per_bucket: usize, percent: u32, steps: bool) -> Shape {
    let depth = depth_for(blocks, blocks_per_bucket, percent);
    let fits = |leaf_slots: &usize| {
        let slots = Shape { depth, leaf_slots: *leaf_slots }.slots(blocks_per_bucket);
        blocks as u128 * 100 <= u128::from(slots) * u128::from(percent)
    };
    let fewest = if steps { (1..blocks_per_bucket).find(fits) } else { None };
    Shape { depth, leaf_slots: fewest.unwrap_or(blocks_per_bucket) }
}

/// Reads a little-endian number at `at`; the caller ensures that it is in bounds.
pub fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
