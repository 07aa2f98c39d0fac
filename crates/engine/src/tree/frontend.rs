//! The front end: turns operations into paths, one round of paths per level of recursion, the data
//! round last (Freecursive §4.2.4).

mod data_round;
mod job;

pub use job::{AHEAD_BYTES, TreeJob};

use super::backend::{Backend, PathAccess};
use super::batch::{Batch, Target};
use super::config::{Recursion, TreeConfig};
use super::eviction::reverse_lexicographic;
use super::geometry::{EMPTY, Shape};
use super::keys::TreeKeys;
use super::meters::Meters;
use super::plb::Plb;
use super::position_map::{Counts, MapFormat};
use super::verifier::Verifier;
use crate::{BlockOp, EngineError, Level, Result, TreeId};
use oblivio_crypto::{Entropy, Mac, Prf};
use std::collections::BTreeMap;

/// Address bits below the level of recursion.
pub(super) const LEVEL_SHIFT: u32 = 56;

/// Whether a job may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Idle,
    UnderWay,
    /// An error closed the engine.
    Closed,
}

/// How large the tree is, and should be.
pub(super) struct Size {
    /// Data blocks addressable now.
    pub blocks: u64,
    /// Data blocks for which the tree is sized.
    pub class: u64,
    /// The shape for the size class. A larger data tree is shrinking.
    pub floor: Shape,
    /// Turns of the schedule since the leaves began to be dropped or to lose slots.
    pub swept: u64,
    /// Data blocks with wanted content.
    pub live: u64,
}

/// The eviction schedule so far, in each tree.
pub(super) struct Schedule {
    /// Paths read, without scheduled ones.
    pub accesses: Vec<u64>,
    /// Scheduled paths.
    pub turns: Vec<u64>,
}

/// Path ORAM with recursion, PLB, compressed position map, PMMAC and tag tree, as configured.
pub struct TreeOram {
    pub(super) config: TreeConfig,
    /// Levels of recursion (the paper's H).
    pub(super) levels: usize,
    pub(super) size: Size,
    /// One tree, or with [`Recursion::Separate`] one per level.
    pub(super) trees: Vec<Backend>,
    pub(super) on_chip: Vec<u8>,
    pub(super) plb: Plb,
    /// Blocks whose group rolled over and that still have their old label.
    pub(super) pending: BTreeMap<u64, Counts>,
    pub(super) prf: Prf,
    pub(super) mac: Mac,
    pub(super) schedule: Schedule,
    /// Those of the front end.
    pub(super) meters: Meters,
    condition: Condition,
    entropy: Box<dyn Entropy>,
}

impl TreeOram {
    /// An empty engine with `blocks` blocks addressable.
    ///
    /// # Errors
    /// `Invalid` for a configuration that cannot work.
    pub fn new(config: TreeConfig, blocks: u64, mut keys: TreeKeys) -> Result<Self> {
        config.validate()?;
        let blocks = blocks.clamp(1, config.capacity);
        let levels = config.levels_of_recursion();
        let tree_count = match config.recursion {
            Recursion::Unified { .. } => 1,
            Recursion::Separate { .. } => levels,
        };
        let rewrites = config.eviction.rewrites_reads();
        let trees = (0..tree_count).map(|level| {
            let shape = config.shape_for_live(level, blocks, blocks);
            let cached = if level == 0 { config.cached_buckets(shape.depth) } else { 0 };
            let sealer = (keys.sealers)();
            let tree = TreeId(level as u8);
            let geometry = config.geometry(level);
            Backend::new(tree, geometry, shape, cached, rewrites, keys.volume, sealer)
        });
        let plb = match config.recursion {
            Recursion::Unified { plb_bytes, plb_ways } if levels > 1 => {
                Plb::new(plb_bytes / config.block_bytes, plb_ways)
            }
            _ => Plb::new(1, 1),
        };
        let mut engine = Self {
            config,
            levels,
            size: Size {
                blocks: 0,
                class: blocks,
                floor: Shape { depth: Level(0), leaf_slots: config.blocks_per_bucket },
                swept: 0,
                live: 0,
            },
            trees: trees.collect(),
            on_chip: Vec::new(),
            plb,
            pending: BTreeMap::new(),
            prf: keys.prf,
            mac: keys.mac,
            schedule: Schedule { accesses: vec![0; tree_count], turns: vec![0; tree_count] },
            meters: Meters::default(),
            condition: Condition::Idle,
            entropy: keys.entropy,
        };
        engine.grow(blocks)?;
        Ok(engine)
    }

    /// Bytes in a block.
    pub fn block_bytes(&self) -> usize {
        self.config.block_bytes
    }

    /// Blocks addressable now.
    pub fn capacity(&self) -> u64 {
        self.size.blocks
    }

    /// The configuration.
    pub fn config(&self) -> &TreeConfig {
        &self.config
    }

    /// The depth of the (data) tree's leaves.
    pub fn depth(&self) -> Level {
        self.trees[0].leaves.depth
    }

    /// Bytes of a full bucket of tree `tree`, as the store sees it.
    pub fn bucket_bytes(&self, tree: TreeId) -> usize {
        self.trees[tree.0 as usize].geometry.bucket_bytes()
    }

    /// The number of buckets kept in memory.
    pub fn cached_buckets(&self) -> u64 {
        self.trees[0].cache.limit()
    }

    /// Changes the memory for the top of the tree. Everything must be flushed first.
    ///
    /// # Errors
    /// `Invalid` while a batch is under way.
    pub fn set_cache_bytes(&mut self, bytes: usize) -> Result<()> {
        self.expect_idle()?;
        self.config.cache_bytes = bytes;
        // While the tree shrinks, use its final shape: its lower levels fill.
        let limit = self.config.cached_buckets(self.size.floor.depth);
        self.trees[0].set_cached_buckets(limit);
        Ok(())
    }

    /// Checks stored buckets. Everything in memory must be flushed first.
    pub fn verifier(&mut self) -> Verifier<'_> {
        Verifier::new(&mut self.trees[0])
    }

    /// The number of a tree's buckets in `bytes` bytes, at least one.
    fn buckets_of(&self, tree: usize, bytes: usize) -> usize {
        (bytes / self.trees[tree].geometry.bucket_bytes()).max(1)
    }

    pub(super) fn expect_idle(&self) -> Result<()> {
        match self.condition {
            Condition::Idle => Ok(()),
            Condition::Closed => Err(EngineError::Closed),
            Condition::UnderWay => Err(EngineError::Invalid("a batch is under way".into())),
        }
    }

    fn draw_seed(&mut self) -> u64 {
        let mut seed = [0; 8];
        self.entropy.fill(&mut seed);
        u64::from_le_bytes(seed)
    }

    /// A random number that a replay of the same intent repeats.
    pub(super) fn draw(&self, batch: &mut Batch) -> u64 {
        batch.draws += 1;
        self.prf.label(0xff << LEVEL_SHIFT | batch.draws, batch.intent.seed)
    }

    /// The label of a block's count.
    pub(super) fn label(&self, batch: &mut Batch, id: u64, count: u64) -> u64 {
        match self.config.map_format {
            // A block that was never mapped is nowhere; any path will do.
            MapFormat::Label32 if count == 0 => self.draw(batch),
            MapFormat::Label32 => count << 32,
            _ => self.prf.label(id, count),
        }
    }

    /// The tree that serves a level of the recursion.
    fn tree_of(&self, level: usize) -> usize {
        if self.trees.len() > 1 { level } else { 0 }
    }

    /// Adds the scheduled paths and hands the round to its tree.
    fn begin_round(&mut self, batch: &mut Batch, level: usize) {
        let tree = self.tree_of(level);
        let before = self.schedule.accesses[tree];
        let after = before + batch.plan.len() as u64;
        self.schedule.accesses[tree] = after;
        let extra = if level == 0 { batch.extra } else { 0 };
        let scheduled = self.config.eviction.due(before, after) + extra;
        self.sweep(tree, scheduled);
        let depth = self.trees[tree].leaves.depth;
        for _ in 0..scheduled {
            let leaf = reverse_lexicographic(self.schedule.turns[tree], depth);
            self.schedule.turns[tree] += 1;
            let label = leaf.0.checked_shl(64 - depth.0).unwrap_or(0);
            batch.plan(Target::Idle, PathAccess { label, want: EMPTY, scheduled: true });
        }
        self.trees[tree].clock.turns = self.schedule.turns[tree];
        let moved = self.trees[tree].meters.bytes_moved;
        self.trees[tree].begin(&batch.plan);
        if level > 0 {
            self.meters.map_paths += batch.plan.len() as u64;
            self.meters.map_bytes_moved += self.trees[tree].meters.bytes_moved - moved;
        }
    }

    pub(super) fn plan_block(&self, batch: &mut Batch, target: Target, id: u64, counts: Counts) {
        let label = self.label(batch, id, counts.old);
        batch.plan(target, PathAccess { label, want: id, scheduled: false });
    }

    pub(super) fn plan_idle(&self, batch: &mut Batch) {
        let label = self.draw(batch);
        batch.plan(Target::Idle, PathAccess { label, want: EMPTY, scheduled: false });
    }

    fn finish_round(&mut self, batch: &mut Batch, level: usize) -> Result<()> {
        let tree = self.tree_of(level);
        let moved = self.trees[tree].meters.bytes_moved;
        self.trees[tree].absorb()?;
        for index in 0..batch.targets.len() {
            match batch.targets[index] {
                Target::MapFetch { id, counts } => {
                    self.fetch_map_block(batch, index, id, counts)?
                }
                Target::MapInPlace { id, counts } => {
                    self.use_map_block(batch, tree, index, id, counts);
                }
                Target::Data { id, counts, .. } => self.check_data(batch, index, id, counts)?,
                Target::Remap { id, counts } => self.check_data(batch, index, id, counts)?,
                Target::Idle => {}
            }
        }
        if level == 0 {
            self.serve_operations(batch);
            self.settle_targets(batch);
            self.refill_plb(batch);
        }
        self.trees[tree].evict()?;
        self.end_sweep(tree);
        if level > 0 {
            self.meters.map_bytes_moved += self.trees[tree].meters.bytes_moved - moved;
        }
        Ok(())
    }

    fn check_op(&self, op: &BlockOp) -> Result<()> {
        if op.id.0 >= self.size.blocks {
            let why = format!("block {} of {}", op.id.0, self.size.blocks);
            return Err(EngineError::Invalid(why));
        }
        let end = op.action.end();
        if end > self.config.block_bytes {
            let why = format!("{end} bytes do not fit a block of {}", self.config.block_bytes);
            return Err(EngineError::Invalid(why));
        }
        Ok(())
    }
}
