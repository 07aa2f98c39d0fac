//! Sealing of a flush: first the blocks of all its buckets, which several threads may share, then
//! the nodes of the maps, which name the blocks' tags.

use super::extents::total;
use super::ids::GenerationBucket;
use super::map_node::{Held, Line, MapNode};
use super::map_shape::NodeAt;
use super::vault::Vault;
use crate::work::{Outcome, WorkPart};
use crate::{BlockId, Extent, Result};
use oblivio_crypto::{Group, GroupMark, Place, Tag};

/// The content of a slot: none for a fake.
pub(super) type Content = Option<(BlockId, Held)>;

/// A bucket being sealed.
struct Open {
    bucket: GenerationBucket,
    slots: Vec<Content>,
    /// Whether blocks may be missing between them.
    gaps: bool,
    /// The place of its first block.
    place: Place,
    mark: GroupMark,
    /// The nonces of its blocks, until the work is handed out.
    group: Option<Group>,
    tags: Vec<Tag>,
    /// Inner nodes of the map that this bucket completes.
    closes: Vec<NodeAt>,
    /// Its bytes, its leaf and those nodes included.
    bytes: usize,
}

/// A flush's writes during sealing.
pub(super) struct Sealing {
    buckets: Vec<Open>,
    extents: Vec<Extent>,
    bytes: Vec<u8>,
    /// Bytes of the buckets so far.
    filled: usize,
    block_bytes: usize,
    outcomes: Vec<Outcome>,
}

impl Sealing {
    /// No bucket yet. Sealing overwrites the whole buffer.
    pub fn new(vault: &Vault, extents: Vec<Extent>, mut bytes: Vec<u8>) -> Self {
        bytes.resize(total(&extents), 0);
        let (buckets, outcomes) = (Vec::new(), Vec::new());
        let block_bytes = vault.block_bytes;
        Self { buckets, extents, bytes, filled: 0, block_bytes, outcomes }
    }

    /// Adds the next bucket, in the order of the extents, and takes the nonces of its blocks.
    /// Returns the buffer for their contents.
    pub fn add(
        &mut self,
        vault: &mut Vault,
        bucket: GenerationBucket,
        (slots, gaps): (Vec<Content>, bool),
    ) -> Result<&mut [u8]> {
        let layout = &vault.layout;
        let place = vault.block_place(bucket.generation, layout.bucket(bucket).offset);
        let shape = layout.shape(bucket.generation.level);
        let closes: Vec<NodeAt> = shape.closed_by(bucket.index).collect();
        let bytes = layout.bucket(bucket).bytes as usize + closes.len() * layout.node_bytes();
        let group = vault.begin_bucket(slots.len() as u64)?;
        let (mark, tags) = (group.mark(), vec![Tag::default(); slots.len()]);
        let data = self.filled..self.filled + slots.len() * self.block_bytes;
        self.filled += bytes;
        let group = Some(group);
        self.buckets.push(Open { bucket, slots, gaps, place, mark, group, tags, closes, bytes });
        Ok(&mut self.bytes[data])
    }

    /// The work of sealing the blocks, in `count` parts; empty if it was handed out before.
    pub fn parts(&mut self, count: usize) -> Vec<WorkPart<'_>> {
        if !self.outcomes.is_empty() {
            return Vec::new();
        }
        let count = count.max(1);
        let mut works: Vec<Vec<Seals<'_>>> = (0..count).map(|_| Vec::new()).collect();
        let (mut rest, block_bytes) = (&mut self.bytes[..], self.block_bytes);
        for open in &mut self.buckets {
            let (bytes, behind) = std::mem::take(&mut rest).split_at_mut(open.bytes);
            rest = behind;
            let Some(mut group) = open.group.take() else { continue };
            let each = open.tags.len().div_ceil(count).max(1);
            let data = bytes[..open.tags.len() * block_bytes].chunks_mut(each * block_bytes);
            let mut place = open.place;
            for ((data, tags), work) in data.zip(open.tags.chunks_mut(each)).zip(&mut works) {
                let group = group.split_off_front(tags.len() as u64);
                let bytes = data.len() as u64;
                work.push(Seals { group, place, data, tags });
                place.index += bytes;
            }
        }
        self.outcomes.resize_with(count, Outcome::default);
        let parts = works.into_iter().zip(&mut self.outcomes);
        parts.map(|(work, outcome)| WorkPart::new(|| seal_all(work), outcome)).collect()
    }

    /// Seals the blocks unless that is done, then the nodes. Returns everything to write.
    pub fn finish(mut self, vault: &mut Vault) -> Result<(Vec<Extent>, Vec<u8>)> {
        self.parts(1).into_iter().for_each(WorkPart::run);
        Outcome::of_all(self.outcomes)?;
        let mut rest = &mut self.bytes[..];
        for Open { bucket, slots, gaps, mark, tags, closes, bytes, .. } in self.buckets {
            let (out, behind) = std::mem::take(&mut rest).split_at_mut(bytes);
            rest = behind;
            let (leaf, nodes) = out[slots.len() * self.block_bytes..]
                .split_at_mut(vault.layout.leaf_bytes(bucket.generation.level));
            let line = |(slot, tag): (&Content, Tag)| match *slot {
                Some((block, held)) => Line::block(block, held, tag),
                None => Line::fake(tag),
            };
            let lines = slots.iter().zip(tags).map(line).collect();
            vault.seal_leaf(bucket, MapNode::leaf(mark, gaps, lines), leaf)?;
            let node_bytes = vault.layout.node_bytes();
            for (node, out) in closes.into_iter().zip(nodes.chunks_mut(node_bytes)) {
                vault.seal_closed(bucket.generation, node, out)?;
            }
        }
        Ok((self.extents, self.bytes))
    }
}

fn seal_all(blocks: Vec<Seals<'_>>) -> Result<()> {
    blocks.into_iter().try_for_each(Seals::run)
}

/// Adjacent blocks of a bucket, to seal in place.
struct Seals<'a> {
    group: Group,
    /// The place of the first.
    place: Place,
    data: &'a mut [u8],
    tags: &'a mut [Tag],
}

impl Seals<'_> {
    fn run(mut self) -> Result<()> {
        let block_bytes = self.data.len() / self.tags.len();
        for (data, tag) in self.data.chunks_mut(block_bytes).zip(self.tags) {
            *tag = self.group.seal(&self.place, data)?;
            self.place.index += block_bytes as u64;
        }
        Ok(())
    }
}
