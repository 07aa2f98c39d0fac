//! The sealed disk: opens and seals blocks and map nodes. Each is tied to its place and its
//! generation.
//!
//! A stored block has the length of its content. Its nonce follows from its bucket's mark and its
//! slot. Its tag is in the bucket's leaf, the leaf's tag in the node above, and the root's in the
//! engine's state. So stored bytes are those of the last write, or they do not open.

use super::SequentialConfig;
use super::buffer_map::BufferMaps;
use super::ids::{Generation, GenerationBucket, GenerationSlot};
use super::layout::Layout;
use super::map_cache::{MapCache, NodeKey};
use super::map_node::{Line, MapNode, SealedAt};
use super::map_shape::NodeAt;
use crate::{EngineError, Extent, Level, Result};
use oblivio_crypto::{Group, Kind, Opener, Place, Sealer, Tag, VolumeId, tag_of};
use std::sync::Arc;

pub(super) struct Vault {
    pub layout: Layout,
    pub maps: Vec<BufferMaps>,
    pub block_bytes: usize,
    /// Opens blocks without a vault.
    pub opener: Opener,
    sealer: Sealer,
    volume: VolumeId,
    inner: MapCache,
    leaves: MapCache,
}

/// A block to read.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Its place on the disk, and its owner.
    pub place: Place,
    /// Its number in its bucket.
    pub index: u64,
    pub sealed: SealedAt,
}

/// The empty maps of a level.
pub(super) fn maps_of(layout: &Layout, level: Level) -> BufferMaps {
    BufferMaps::new(level, layout.shape(level).clone(), layout.schedule().ring(level))
}

/// A part of the disk that is not what was written, and the check that failed.
pub type DamagedExtent = (Extent, &'static str);

pub(super) fn tampered(extent: Extent, reason: &'static str) -> EngineError {
    EngineError::TamperedExtent { offset: extent.offset, bytes: extent.bytes, reason }
}

impl Vault {
    pub fn new(
        config: &SequentialConfig,
        layout: Layout,
        volume: VolumeId,
        sealer: Sealer,
    ) -> Self {
        let maps = layout.schedule().levels().map(|level| maps_of(&layout, level)).collect();
        let (inner, leaves) =
            (MapCache::new(config.cached_nodes), MapCache::new(config.cached_leaves));
        let (block_bytes, opener) = (config.block_bytes, sealer.opener());
        Self { layout, maps, block_bytes, opener, sealer, volume, inner, leaves }
    }

    pub fn maps(&mut self, level: Level) -> &mut BufferMaps {
        &mut self.maps[level.0 as usize]
    }

    fn place(&self, kind: Kind, generation: Generation, extent: Extent) -> Place {
        Place { volume: self.volume, kind, index: extent.offset, version: generation.number }
    }

    /// A recently read node.
    pub fn cached(&mut self, key: &NodeKey) -> Option<Arc<MapNode>> {
        if key.1.height == 0 { self.leaves.get(key) } else { self.inner.get(key) }
    }

    /// Opens a node with a known tag and caches it; a leaf only if `keep_leaf` is set.
    pub fn open_node(
        &mut self,
        key: NodeKey,
        tag: Tag,
        bytes: &mut [u8],
        keep_leaf: bool,
    ) -> Result<Arc<MapNode>> {
        let (generation, node) = key;
        let extent = self.layout.node(generation, node);
        if tag_of(bytes) != Some(tag) {
            return Err(tampered(extent, "it is not the version written last"));
        }
        let place = self.place(Kind::MapNode, generation, extent);
        let forged = |_| tampered(extent, "it is not authentic");
        let plain = self.sealer.open(&place, bytes).map_err(forged)?;
        let leaf = node.height == 0;
        let lines = match leaf {
            true => self.layout.schedule().bucket_blocks(generation.level),
            false => self.layout.shape(generation.level).children(node),
        };
        let decoded = MapNode::decode(plain, leaf, lines as usize);
        let decoded = Arc::new(decoded.ok_or(EngineError::State("a map node does not parse"))?);
        if !leaf {
            self.inner.insert(key, decoded.clone());
        } else if keep_leaf {
            self.leaves.insert(key, decoded.clone());
        }
        Ok(decoded)
    }

    /// The place of a block at this offset.
    pub fn block_place(&self, generation: Generation, offset: u64) -> Place {
        let extent = Extent { offset, bytes: self.block_bytes as u64 };
        self.place(Kind::Slot, generation, extent)
    }

    /// Everything needed to read a block.
    pub fn wanted(&self, slot: GenerationSlot, sealed: SealedAt) -> Wanted {
        let place = self.block_place(slot.generation, self.layout.slot(slot).offset);
        let index = slot.index % self.layout.schedule().bucket_blocks(slot.generation.level);
        Wanted { place, index, sealed }
    }

    /// Takes the nonces for the blocks of a bucket.
    pub fn begin_bucket(&mut self, blocks: u64) -> Result<Group> {
        Ok(self.sealer.begin_group(blocks, self.block_bytes as u64)?)
    }

    /// Seals the leaf of a bucket whose blocks are sealed. Caches it: a read of recent writes, or a
    /// merge, needs it soon.
    pub fn seal_leaf(
        &mut self,
        bucket: GenerationBucket,
        leaf: MapNode,
        bytes: &mut [u8],
    ) -> Result<()> {
        let generation = bucket.generation;
        if bucket.index == 0 {
            self.maps(generation.level).begin(generation.number);
        }
        let node = NodeAt { height: 0, index: bucket.index };
        self.seal_node(generation, node, &leaf, bytes)?;
        self.leaves.insert((generation, node), Arc::new(leaf));
        Ok(())
    }

    /// Seals an inner node that is now complete.
    pub fn seal_closed(
        &mut self,
        generation: Generation,
        node: NodeAt,
        bytes: &mut [u8],
    ) -> Result<()> {
        let lines = self.maps(generation.level).close(node);
        self.seal_node(generation, node, &MapNode::inner(lines), bytes)
    }

    /// Seals an inner node anew that nothing on the disk names yet. `tags` has the old and the new
    /// tags of its children, if they were sealed anew too, and gets its own.
    ///
    /// # Errors
    /// `State` if it is not that node.
    pub fn seal_again(
        &mut self,
        (generation, node): NodeKey,
        bytes: &mut [u8],
        tags: &mut Vec<(Tag, Tag)>,
    ) -> Result<()> {
        let other = || EngineError::State("a node that waits is another one");
        let place = self.place(Kind::MapNode, generation, self.layout.node(generation, node));
        let before = tag_of(bytes).ok_or_else(other)?;
        let plain = self.sealer.open(&place, bytes).map_err(|_| other())?;
        let children = self.layout.shape(generation.level).children(node);
        let content = MapNode::decode(plain, false, children as usize).ok_or_else(other)?;
        let renamed = content.lines().iter().map(|line| {
            let new = tags.iter().find(|(before, _)| *before == line.tag);
            Line::from_word(line.word(), new.map_or(line.tag, |(_, tag)| *tag))
        });
        MapNode::inner(renamed.collect()).encode(bytes);
        let tag = self.sealer.seal(&place, bytes)?;
        self.maps(generation.level).rename(before, tag);
        tags.push((before, tag));
        Ok(())
    }

    fn seal_node(
        &mut self,
        generation: Generation,
        node: NodeAt,
        content: &MapNode,
        bytes: &mut [u8],
    ) -> Result<()> {
        content.encode(bytes);
        let extent = self.layout.node(generation, node);
        let tag = self.sealer.seal(&self.place(Kind::MapNode, generation, extent), bytes)?;
        self.maps(generation.level).add(node, Line::child(content.lowest(), tag));
        Ok(())
    }
}
