//! Plain Recursive ORAM (Freecursive §3.2), the baseline of Figure 7: a tree for the data, a tree
//! for each level of its position map, and no PLB. It stands on the same back end as the product's
//! engine, and exists in the lab only.

use crate::buckets::LabBuckets;
use oblivio_crypto::{SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_engine::tree::{Backend, Eviction, Geometry, PathAccess, Round, shape_for};
use oblivio_engine::{Address, Job, Label, Level, Result, Step, carry_out};
use oblivio_testkit::SplitMix64;

/// The papers' Z, and the fill of a volume's tree.
const SLOTS: usize = 4;
const FILL_PERCENT: u32 = 52;
/// Bytes of a label in the map. Its bits are the top ones of the engine's labels.
const LABEL_BYTES: usize = 4;
/// Path ORAM: the read paths are written back.
const PATHS: Eviction = Eviction::ReadPaths { extra_every: 0 };

/// Sizes of a recursive ORAM.
#[derive(Clone, Copy, Debug)]
pub struct RecursiveConfig {
    /// Bytes of a data block.
    pub block_bytes: usize,
    /// Bytes of a position-map block.
    pub map_block_bytes: usize,
    /// Data blocks.
    pub blocks: u64,
    /// The most bytes of the last level's map, which is on-chip.
    pub on_chip_bytes: usize,
}

impl RecursiveConfig {
    /// R_X8 (§7.1.4): 64-byte blocks, and map blocks with 8 labels.
    pub fn r_x8(blocks: u64, on_chip_bytes: usize) -> Self {
        Self { block_bytes: 64, map_block_bytes: 32, blocks, on_chip_bytes }
    }

    fn labels_per_block(&self) -> u64 {
        (self.map_block_bytes / LABEL_BYTES) as u64
    }

    /// Blocks in each tree, data first. There are as many as the paper's H.
    pub fn blocks_by_level(&self) -> Vec<u64> {
        let mut counts = vec![self.blocks];
        while let last = counts[counts.len() - 1]
            && last as usize * LABEL_BYTES > self.on_chip_bytes
        {
            counts.push(last.div_ceil(self.labels_per_block()));
        }
        counts
    }

    fn geometry(&self, level: usize) -> Geometry {
        let block_bytes = if level == 0 { self.block_bytes } else { self.map_block_bytes };
        Geometry { block_bytes, blocks_per_bucket: SLOTS, tag_tree: false, pmmac: false }
    }
}

/// A tree and its buckets.
struct Tree {
    backend: Backend,
    store: LabBuckets,
    depth: Level,
    bucket_bytes: usize,
}

/// The ORAM, with its buckets.
pub struct RecursiveOram {
    config: RecursiveConfig,
    trees: Vec<Tree>,
    /// The last level's labels; 0 for a block that was never accessed.
    on_chip: Vec<u32>,
    rng: SplitMix64,
}

impl RecursiveOram {
    /// An empty one.
    pub fn new(config: RecursiveConfig) -> Self {
        let counts = config.blocks_by_level();
        let trees = counts.iter().enumerate().map(|(level, &blocks)| {
            let shape = shape_for(blocks, SLOTS, FILL_PERCENT, false);
            let (seed, geometry) = (level as u64, config.geometry(level));
            let entropy = Box::new(SeededEntropy::new(seed));
            let sealer = Sealer::new(SealRoot::from_seed(seed), entropy);
            Tree {
                backend: Backend::new(geometry, shape, 0, PATHS, VolumeId([7; 16]), sealer),
                store: LabBuckets::new(),
                depth: shape.depth,
                bucket_bytes: geometry.bucket_bytes(),
            }
        });
        let on_chip = vec![0; counts[counts.len() - 1] as usize];
        Self { config, trees: trees.collect(), on_chip, rng: SplitMix64::new(1) }
    }

    /// The number of trees (the paper's H).
    pub fn levels(&self) -> usize {
        self.trees.len()
    }

    /// The depth of a level's tree, and the bytes of its buckets.
    pub fn size_of(&self, level: usize) -> (Level, usize) {
        (self.trees[level].depth, self.trees[level].bucket_bytes)
    }

    /// Paths read so far in a level's tree.
    pub fn paths(&self, level: usize) -> u64 {
        self.trees[level].backend.meters().paths
    }

    /// Reads a data block, or writes to it: `serve` gets its content, zeros at first. Reads and
    /// writes one path in each tree.
    ///
    /// # Errors
    /// Those of the back end.
    pub fn access(&mut self, block: u64, serve: impl FnOnce(&mut [u8])) -> Result<()> {
        let each = self.config.labels_per_block();
        let index = |level: usize| block / each.pow(level as u32);
        let last = self.levels() - 1;
        let mut new = self.draw();
        let mut old = std::mem::replace(&mut self.on_chip[index(last) as usize], new);
        for level in (1..=last).rev() {
            let (next, entry) = (self.draw(), (index(level - 1) % each) as usize);
            let mut found = 0;
            self.path(level, index(level), [old, new], |content| {
                let label = &mut content[entry * LABEL_BYTES..][..LABEL_BYTES];
                found = u32::from_le_bytes([label[0], label[1], label[2], label[3]]);
                label.copy_from_slice(&next.to_le_bytes());
            })?;
            (old, new) = (found, next);
        }
        self.path(0, block, [old, new], serve)
    }

    /// Accesses a block of one tree and moves it from the old label to the new one.
    fn path(
        &mut self,
        level: usize,
        index: u64,
        [old, new]: [u32; 2],
        serve: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        // A block that was never accessed is nowhere; any path will do.
        let shown = if old == 0 { self.draw() } else { old };
        let Tree { backend, store, .. } = &mut self.trees[level];
        // The back end lets go of data blocks that are not marked as live. These are not.
        let id = Address::new(1, index);
        let mut path = Path { shown, new, id, serve: Some(serve), at: Phase::Start, round: None };
        carry_out(&mut path, backend, store)
    }

    /// A label that is not 0.
    fn draw(&mut self) -> u32 {
        (self.rng.next_u64() as u32).max(1)
    }
}

/// One access to one tree.
struct Path<F> {
    shown: u32,
    new: u32,
    id: Address,
    serve: Option<F>,
    at: Phase,
    round: Option<Round>,
}

enum Phase {
    Start,
    Read,
    Written,
}

fn label(bits: u32) -> Label {
    Label(u64::from(bits) << 32)
}

impl<F: FnOnce(&mut [u8])> Job for Path<F> {
    type Engine = Backend;

    fn step<'j>(&'j mut self, tree: &mut Backend) -> Result<Step<'j>> {
        if let Some(round) = self.round.take() {
            tree.take_back(round);
        }
        match self.at {
            Phase::Start => {
                let want = Some(self.id);
                tree.begin(&[PathAccess { label: label(self.shown), want, scheduled: false }]);
                self.at = Phase::Read;
                Ok(self.round.insert(tree.lend_round()).as_read())
            }
            Phase::Read => {
                tree.absorb(None, &[])?;
                if tree.target(0).is_none() {
                    tree.insert(0, self.id);
                }
                if let Some(serve) = self.serve.take() {
                    serve(tree.content_mut(0));
                }
                tree.relabel(0, label(self.new), oblivio_crypto::Tag::default(), false);
                tree.evict()?;
                self.at = Phase::Written;
                Ok(self.round.insert(tree.lend_round()).as_write())
            }
            Phase::Written => Ok(Step::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn it_answers_like_a_plain_map_and_shows_one_path_in_each_tree() {
        let mut oram = RecursiveOram::new(RecursiveConfig::r_x8(1000, 64));
        assert_eq!(oram.config.blocks_by_level(), [1000, 125, 16]);
        let (mut model, mut rng) = (HashMap::new(), SplitMix64::new(7));
        for access in 0..4000u64 {
            let block = rng.below(1000);
            let mut found = 0;
            oram.access(block, |content| {
                found = content[0];
                content.fill(access as u8);
            })
            .expect("nothing was tampered with");
            let expected = model.insert(block, access as u8).unwrap_or(0);
            assert_eq!(found, expected, "block {block} at access {access}");
        }
        assert!((0..3).all(|level| oram.paths(level) == 4000));
    }
}
