//! The nodes of a buffer map (§4.1): their meaning and their encoding.
//!
//! A leaf lists the blocks of its bucket in slot order: the tag of each, and the mark under which
//! all of them were sealed. An inner node lists its children's lowest addresses and tags. So the
//! root's tag authenticates every byte of the generation.

use super::merge_buffer::{LeafEntry, LeafRead};
use crate::BlockId;
use oblivio_crypto::{GROUP_MARK_BYTES, GroupMark, SEAL_HEADER, SEAL_OVERHEAD, TAG_BYTES, Tag};

/// Bytes of an entry: an address and a tag.
pub(super) const NODE_ENTRY: usize = 8 + TAG_BYTES;
/// Bytes of an inner node besides its entries.
pub(super) const NODE_FIXED: usize = SEAL_OVERHEAD;
/// Bytes of a leaf besides its entries.
pub(super) const LEAF_FIXED: usize = SEAL_OVERHEAD + GROUP_MARK_BYTES;

/// The address of a fake: above all others, so that fakes come last.
const FAKE: u64 = u64::MAX;
/// Set in the address of a discarded block.
const DISCARDED: u64 = 1 << 63;
/// Set in the address of a block whose content was lost to damage.
const LOST: u64 = 1 << 62;
/// Changed in a leaf's first line, if it may lack blocks.
const GAPS: u64 = 1 << 61;

/// What a listed block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Its content.
    Content,
    /// It is discarded.
    Nothing,
    /// Its content was lost to damage.
    Lost,
}

/// A slot of a bucket, or a child of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The address, or the child's lowest, with [`DISCARDED`], [`LOST`] and [`FAKE`].
    word: u64,
    /// The tag of the block, or of the child.
    pub tag: Tag,
}

impl Line {
    /// A fake, or a child with only fakes.
    pub fn fake(tag: Tag) -> Self {
        Self { word: FAKE, tag }
    }

    /// A block.
    pub fn block(block: BlockId, held: Held, tag: Tag) -> Self {
        let flag = match held {
            Held::Content => 0,
            Held::Nothing => DISCARDED,
            Held::Lost => LOST,
        };
        Self { word: block.0 | flag, tag }
    }

    /// A child with this lowest address.
    pub fn child(lowest: Option<BlockId>, tag: Tag) -> Self {
        lowest.map_or(Self::fake(tag), |block| Self::block(block, Held::Content, tag))
    }

    /// The address; none for a fake.
    pub fn address(&self) -> Option<BlockId> {
        (self.word != FAKE).then_some(BlockId(self.word & !(DISCARDED | LOST)))
    }

    fn is_present(&self) -> bool {
        self.word & DISCARDED == 0
    }

    fn is_lost(&self) -> bool {
        self.word != FAKE && self.word & LOST != 0
    }

    /// Whether [`GAPS`] is changed; changes it back.
    fn take_gaps(&mut self) -> bool {
        let changed = (self.word & GAPS != 0) != (self.word | GAPS == FAKE);
        if changed {
            self.word ^= GAPS;
        }
        changed
    }

    pub fn word(&self) -> u64 {
        self.word
    }

    pub fn from_word(word: u64, tag: Tag) -> Self {
        Self { word, tag }
    }
}

/// What opens a stored block, besides its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedAt {
    /// The mark of its bucket.
    pub(super) mark: GroupMark,
    /// Its own tag.
    pub(super) tag: Tag,
}

/// A node in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MapNode {
    /// The mark of the bucket's blocks; leaves only.
    mark: Option<GroupMark>,
    /// Whether blocks between those listed may be missing ([`LeafRead::gaps`]).
    gaps: bool,
    lines: Vec<Line>,
}

impl MapNode {
    pub fn leaf(mark: GroupMark, gaps: bool, lines: Vec<Line>) -> Self {
        Self { mark: Some(mark), gaps, lines }
    }

    pub fn inner(lines: Vec<Line>) -> Self {
        Self { mark: None, gaps: false, lines }
    }

    /// Writes the node into the plaintext part of a sealed one.
    pub fn encode(&self, sealed: &mut [u8]) {
        let mut at = SEAL_HEADER;
        let mut put = |bytes: &[u8]| {
            sealed[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        self.mark.iter().for_each(|mark| put(&mark.0));
        let mut flag = if self.gaps { GAPS } else { 0 };
        for line in &self.lines {
            put(&(line.word ^ std::mem::take(&mut flag)).to_le_bytes());
            put(&line.tag.0);
        }
        let end = sealed.len() - TAG_BYTES;
        sealed[at..end].fill(0);
    }

    /// Decodes a node of `lines` lines from [`Self::encode`].
    pub fn decode(plain: &[u8], leaf: bool, lines: usize) -> Option<Self> {
        let (mark, rest) = if leaf {
            let (mark, rest) = plain.split_first_chunk()?;
            (Some(GroupMark(*mark)), rest)
        } else {
            (None, plain)
        };
        let entries = rest.as_chunks::<NODE_ENTRY>().0.get(..lines)?;
        // Caches keep thousands of nodes: allocate no more than they need.
        let mut read = Vec::with_capacity(lines);
        for entry in entries {
            let (word, tag) = entry.split_first_chunk()?;
            let tag = Tag(*tag.first_chunk()?);
            read.push(Line { word: u64::from_le_bytes(*word), tag });
        }
        let gaps = leaf && read.first_mut().is_some_and(Line::take_gaps);
        Some(Self { mark, gaps, lines: read })
    }

    /// The lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The lowest address in it; none when every line is a fake.
    pub fn lowest(&self) -> Option<BlockId> {
        self.lines.iter().find_map(Line::address)
    }

    /// Whether this leaf lists the block, if the buffer has it at all.
    pub fn spans(&self, block: BlockId) -> bool {
        // Fakes come last.
        let highest = || self.lines.iter().rev().find_map(Line::address);
        self.lowest().is_some_and(|lowest| lowest <= block) && highest() >= Some(block)
    }

    /// The line whose address range includes this block: the last that does not begin beyond it.
    pub fn find(&self, block: BlockId) -> Option<usize> {
        let up_to = |line: &Line| line.address().is_some_and(|lowest| lowest <= block);
        self.lines.partition_point(up_to).checked_sub(1)
    }

    /// A leaf's entry for a slot; none for a fake.
    pub fn entry(&self, at: usize) -> Option<LeafEntry<SealedAt>> {
        let (line, mark) = (self.lines.get(at)?, self.mark?);
        let sealed = SealedAt { mark, tag: line.tag };
        let (present, lost) = (line.is_present(), line.is_lost());
        line.address().map(|block| LeafEntry { block, present, lost, sealed })
    }

    /// A leaf's entries for all its slots.
    pub fn entries(&self) -> Vec<Option<LeafEntry<SealedAt>>> {
        (0..self.lines.len()).map(|at| self.entry(at)).collect()
    }

    /// The same, with its gaps.
    pub fn as_read(&self) -> LeafRead<SealedAt> {
        LeafRead { entries: self.entries(), gaps: self.gaps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf() -> MapNode {
        let line = |(at, block)| {
            let held = [Held::Content, Held::Nothing, Held::Lost][at];
            Line::block(BlockId(block), held, Tag([at as u8; 16]))
        };
        let mut lines: Vec<_> = [3, 5, 9].into_iter().enumerate().map(line).collect();
        lines.push(Line::fake(Tag([9; 16])));
        MapNode::leaf(GroupMark([4; 24]), false, lines)
    }

    #[test]
    fn nodes_come_back_from_their_bytes() {
        let empty = MapNode::leaf(GroupMark([4; 24]), true, vec![Line::fake(Tag([9; 16])); 4]);
        let gaps = MapNode { gaps: true, ..leaf() };
        let inner = MapNode::inner(leaf().lines);
        for (node, is_leaf) in [(leaf(), true), (gaps, true), (empty, true), (inner, false)] {
            let mut sealed = vec![0xff; 256];
            node.encode(&mut sealed);
            let plain = &sealed[SEAL_HEADER..256 - TAG_BYTES];
            assert_eq!(MapNode::decode(plain, is_leaf, 4), Some(node));
            assert_eq!(MapNode::decode(&plain[..80], is_leaf, 4), None);
        }
    }

    #[test]
    fn blocks_are_found_by_address() {
        let leaf = leaf();
        let found: Vec<_> = (0..11).map(|block| leaf.find(BlockId(block))).collect();
        let expected = [None, None, None, Some(0), Some(0), Some(1), Some(1), Some(1), Some(1)];
        assert_eq!(found[..9], expected);
        assert_eq!(found[9..], [Some(2), Some(2)]);
        let spanned: Vec<_> = (0..11).filter(|block| leaf.spans(BlockId(*block))).collect();
        assert_eq!(spanned, (3..=9).collect::<Vec<_>>());
        let empty = MapNode::leaf(GroupMark([4; 24]), false, vec![Line::fake(Tag([9; 16]))]);
        assert!(!empty.spans(BlockId(0)));
        assert_eq!(leaf.lowest(), Some(BlockId(3)));
        let present: Vec<_> = leaf.entries().iter().map(|it| it.map(|it| it.present)).collect();
        assert_eq!(present, [Some(true), Some(false), Some(true), None]);
        let lost: Vec<_> = leaf.entries().iter().map(|it| it.map(|it| it.lost)).collect();
        assert_eq!(lost, [Some(false), Some(false), Some(true), None]);
    }
}
