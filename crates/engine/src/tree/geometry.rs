//! The shape of a tree and the bytes of a bucket.
//!
//! A sealed bucket is `seal header | [left tag, right tag] | Z slot headers | Z payloads | tag`.
//! A slot header is `block id | label | [PMMAC tag]`; an empty slot has id [`EMPTY`].

use crate::Level;
use oblivio_crypto::{SEAL_HEADER, SEAL_OVERHEAD, TAG_BYTES, Tag};

/// The id that marks an empty slot.
pub const EMPTY: u64 = u64::MAX;

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
    /// Bytes of a slot header.
    pub fn slot_header_bytes(&self) -> usize {
        16 + if self.pmmac { TAG_BYTES } else { 0 }
    }

    fn child_tag_bytes(&self) -> usize {
        if self.tag_tree { 2 * TAG_BYTES } else { 0 }
    }

    /// Bytes of a bucket as the store sees it.
    pub fn bucket_bytes(&self) -> usize {
        SEAL_OVERHEAD
            + self.child_tag_bytes()
            + self.blocks_per_bucket * (self.slot_header_bytes() + self.block_bytes)
    }

    /// Where slot `slot`'s header begins in a sealed bucket's buffer.
    pub fn header_at(&self, slot: usize) -> usize {
        SEAL_HEADER + self.child_tag_bytes() + slot * self.slot_header_bytes()
    }

    /// Where slot `slot`'s payload begins in a sealed bucket's buffer.
    pub fn payload_at(&self, slot: usize) -> usize {
        self.header_at(self.blocks_per_bucket) + slot * self.block_bytes
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

    /// Writes the children's tags into a bucket that is about to be sealed.
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
        SlotHeader { id: read_u64(header, 0), label: read_u64(header, 8), mac }
    }

    /// Writes one slot's header.
    pub fn set_slot(&self, bucket: &mut [u8], slot: usize, header: &SlotHeader) {
        let at = self.header_at(slot);
        bucket[at..at + 8].copy_from_slice(&header.id.to_le_bytes());
        bucket[at + 8..at + 16].copy_from_slice(&header.label.to_le_bytes());
        if self.pmmac {
            bucket[at + 16..at + 32].copy_from_slice(&header.mac.0);
        }
    }

    /// Bytes of one whole path in a tree with leaves at `depth`.
    pub fn path_bytes(&self, depth: Level) -> usize {
        (depth.0 as usize + 1) * self.bucket_bytes()
    }
}

/// What a slot says of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotHeader {
    /// The block, or [`EMPTY`].
    pub id: u64,
    /// Its label.
    pub label: u64,
    /// Its PMMAC tag.
    pub mac: Tag,
}

impl SlotHeader {
    /// The header of an empty slot.
    pub const VACANT: SlotHeader = SlotHeader { id: EMPTY, label: 0, mac: Tag([0; TAG_BYTES]) };
}

/// How many buckets a tree with leaves at `depth` has; heap indices run from 1 to this number.
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

/// Reads a little-endian number at `at`; the caller knows that it is there.
pub fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
