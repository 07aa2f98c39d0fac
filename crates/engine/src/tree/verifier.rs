//! Checks stored buckets without an access: every tag from the root down, and which blocks are
//! there.

use super::bitset::BitSet;
use super::doubt::{BucketProof, CurrentLabels};
use super::frontend::TreeOram;
use crate::{BlockId, BucketId, Level, Result};
use oblivio_crypto::{Tag, tag_of};
use std::collections::BTreeMap;
use std::ops::Range;

/// Checks buckets, each before its children, and goes on at damage.
pub struct Verifier<'a> {
    engine: &'a mut TreeOram,
    /// The children's tags from the buckets so far.
    expected: BTreeMap<BucketId, Tag>,
    /// The data blocks that were found.
    found: BitSet<BlockId>,
    /// As [`Lacking::versions`].
    versions: BTreeMap<u64, u64>,
    part: Option<PartChecked>,
}

/// Where buckets are checked without all that are above them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartChecked {
    /// They begin on this level. The parents of those on it, and of some on the next, are not among
    /// them.
    From(Level),
    /// The tree changes before and after. What is stored of a bucket in memory is older than what
    /// memory knows of its children.
    Alone,
}

/// What the checked buckets lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// Buckets that should be there, and were not given.
    pub buckets: Vec<BucketId>,
    /// Blocks that exist, and are in no bucket.
    pub blocks: Vec<Range<u64>>,
    /// Of those that were asked for since they are lost: the version that is.
    pub versions: BTreeMap<u64, u64>,
}

impl<'a> Verifier<'a> {
    /// Checks stored buckets. Everything in memory must be flushed first.
    pub fn new(engine: &'a mut TreeOram) -> Self {
        let tree = &engine.tree;
        let expected = match tree.top.is_pool {
            false => BTreeMap::from([(BucketId::ROOT, tree.root_tag)]),
            true => tree.cache.tags_below().collect(),
        };
        let mut found = BitSet::default();
        let pool = (1..=if tree.top.is_pool { tree.cache.limit() } else { 0 }).map(BucketId);
        let cached = pool.flat_map(|bucket| tree.cache.blocks_if_touched(bucket));
        let mut versions = BTreeMap::new();
        for block in tree.stash.iter().chain(cached) {
            let Some(id) = block.header.id.data() else { continue };
            match block.header.lost {
                true => drop(versions.insert(id.0, lost_version(tree.pool.get(block.payload)))),
                false => found.set(id, true),
            }
        }
        Self { engine, expected, found, versions, part: None }
    }

    /// The same for a part of the buckets. One whose parent is not among them is proved by its own
    /// seal: an older version of it passes.
    pub fn of_part(engine: &'a mut TreeOram, part: PartChecked) -> Self {
        let (expected, found, versions) = (BTreeMap::new(), BitSet::default(), BTreeMap::new());
        Self { engine, expected, found, versions, part: Some(part) }
    }

    /// The tag that a bucket must have.
    fn expect(&mut self, bucket: BucketId, sealed: &[u8]) -> Tag {
        let own = || tag_of(sealed).unwrap_or_default();
        match (self.expected.remove(&bucket), self.part) {
            (Some(tag), _) => tag,
            (None, Some(PartChecked::Alone)) => own(),
            (None, Some(PartChecked::From(level))) if bucket.level().0 <= level.0 + 1 => own(),
            (None, _) => Tag::default(),
        }
    }

    /// Whether these bytes are those of a bucket that were written last. It does not count as
    /// checked by that.
    pub fn expects(&self, bucket: BucketId, sealed: &[u8]) -> bool {
        self.expected.get(&bucket).is_some_and(|tag| tag_of(sealed) == Some(*tag))
    }

    /// Checks one stored bucket; says what is wrong with it.
    ///
    /// # Errors
    /// In a strict tree, `Tampered` for a damaged one.
    pub fn check(&mut self, bucket: BucketId, sealed: &mut [u8]) -> Result<Option<&'static str>> {
        let expected = self.expect(bucket, sealed);
        let tree = &mut self.engine.tree;
        if sealed.len() != tree.stored_bytes(bucket) {
            return Ok(Some("it has another length"));
        }
        let proof = tree.prove(bucket, expected, sealed)?;
        if proof == BucketProof::Newest && self.part != Some(PartChecked::Alone) {
            for (side, tag) in tree.geometry.child_tags(sealed).into_iter().enumerate() {
                if tag != Tag::default() {
                    self.expected.insert(bucket.child(side), tag);
                }
            }
        }
        if self.part.is_none() {
            self.find_blocks(bucket, proof, sealed);
        }
        Ok(proof.why_not())
    }

    /// Notes the blocks of an opened bucket that are the newest versions of themselves.
    fn find_blocks(&mut self, bucket: BucketId, proof: BucketProof, bytes: &[u8]) {
        let engine = &*self.engine;
        let labels = current_labels(engine);
        let tree = &engine.tree;
        if !proof.is_useful(Some(&labels)) {
            return;
        }
        let slots = tree.stored_slots(bucket);
        for slot in 0..slots {
            let header = tree.geometry.slot(bytes, slot);
            let removed = tree.marks.removed.get(tree.geometry.slot_id(bucket, slot));
            let removed = removed && proof != BucketProof::Old;
            if let Some(id) = header.id.data()
                && !removed
                && !labels.refute(&header)
            {
                match header.lost {
                    true => {
                        let version = lost_version(&bytes[tree.geometry.payload_at(slots, slot)..]);
                        self.versions.insert(id.0, version);
                    }
                    false => self.found.set(id, true),
                }
            }
        }
    }

    /// Says what none of the buckets had; of a part it knows the buckets only.
    pub fn finish(mut self) -> Lacking {
        self.expected.retain(|_, tag| *tag != Tag::default());
        let buckets = self.expected.into_keys().collect();
        if self.part.is_some() {
            return Lacking { buckets, ..Lacking::default() };
        }
        let (live, mut blocks) = (&self.engine.tree.marks.live, Vec::<Range<u64>>::new());
        let exact = self.engine.tree.marks.met_damage;
        for id in (0..self.engine.size.blocks).filter(|_| exact) {
            if !live.get(BlockId(id)) || self.found.get(BlockId(id)) {
                continue;
            }
            match blocks.last_mut() {
                Some(run) if run.end == id => run.end += 1,
                _ => blocks.push(id..id + 1),
            }
        }
        Lacking { buckets, blocks, versions: self.versions }
    }
}

/// The labels of the blocks of a tree.
pub fn current_labels(engine: &TreeOram) -> CurrentLabels<'_> {
    let map = (&engine.on_chip[..], &engine.pending);
    CurrentLabels::new((&engine.prf, engine.config.map_format), map, engine.levels)
}

/// The version in what stands in the place of a lost block.
fn lost_version(content: &[u8]) -> u64 {
    content.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
