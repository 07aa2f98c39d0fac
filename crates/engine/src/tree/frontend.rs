//! The front end: turns operations into paths, one round of paths per level of recursion, the data
//! round last (Freecursive §4.2.4).

mod data_round;
mod upkeep;

pub use upkeep::AHEAD_BYTES;

use super::backend::{Backend, PathAccess};
use super::batch::{Batch, Intent, Target};
use super::config::{Recursion, TreeConfig};
use super::eviction::reverse_lexicographic;
use super::geometry::{EMPTY, Shape};
use super::keys::TreeKeys;
use super::plb::Plb;
use super::position_map::{Counts, MapFormat};
use super::verifier::Verifier;
use crate::{BlockAnswer, BlockOp, Engine, EngineError, Level, Result, Step, TreeId};
use oblivio_crypto::{Entropy, Mac, Prf};
use std::collections::BTreeMap;

/// Bytes of buckets sealed in one step of a flush.
const FLUSH_BYTES: usize = 8 << 20;
/// Address bits below the level of recursion.
pub(super) const LEVEL_SHIFT: u32 = 56;

/// The next phase.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// Plan the round of this level.
    Start(usize),
    /// Reading the round's paths.
    Reading(usize),
    /// Writing the round's paths.
    Writing(usize),
    /// Writing dirty cached buckets of this tree.
    Flushing(usize, Vec<u64>),
    /// An error closed the engine.
    Closed,
}

/// The next duty of the caller.
enum Due {
    Read(usize),
    Write(usize),
    Nothing,
}

/// Path ORAM with recursion, PLB, compressed position map, PMMAC and tag tree, as configured.
pub struct TreeOram {
    pub(super) config: TreeConfig,
    /// Levels of recursion (the paper's H).
    pub(super) levels: usize,
    /// Data blocks addressable now.
    pub(super) blocks: u64,
    /// Data blocks for which the tree is sized.
    pub(super) size_class: u64,
    /// The shape for the size class. A larger data tree is shrinking.
    pub(super) floor: Shape,
    /// Turns of the schedule since the leaves began to be dropped or to lose slots.
    pub(super) swept: u64,
    /// Data blocks with wanted content.
    pub(super) live_blocks: u64,
    /// One tree, or with [`Recursion::Separate`] one per level.
    pub(super) trees: Vec<Backend>,
    pub(super) on_chip: Vec<u8>,
    pub(super) plb: Plb,
    /// Blocks whose group rolled over and that still have their old label.
    pub(super) pending: BTreeMap<u64, Counts>,
    pub(super) prf: Prf,
    pub(super) mac: Mac,
    /// Paths read so far in each tree, without scheduled ones.
    pub(super) accesses: Vec<u64>,
    /// Turns of the eviction schedule so far in each tree.
    pub(super) turns: Vec<u64>,
    pub(super) requests: u64,
    pub(super) pmmac_bytes: u64,
    pub(super) map_paths: u64,
    pub(super) map_bytes: u64,
    pub(super) group_remaps: u64,
    pub(super) backlog_peak: u64,
    pub(super) plb_hits: u64,
    pub(super) plb_misses: u64,
    pub(super) batch: Batch,
    accesses_plan: Vec<PathAccess>,
    phase: Phase,
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
            blocks: 0,
            size_class: blocks,
            floor: Shape { depth: Level(0), leaf_slots: config.blocks_per_bucket },
            swept: 0,
            live_blocks: 0,
            trees: trees.collect(),
            on_chip: Vec::new(),
            plb,
            pending: BTreeMap::new(),
            prf: keys.prf,
            mac: keys.mac,
            accesses: vec![0; tree_count],
            turns: vec![0; tree_count],
            requests: 0,
            pmmac_bytes: 0,
            map_paths: 0,
            map_bytes: 0,
            group_remaps: 0,
            backlog_peak: 0,
            plb_hits: 0,
            plb_misses: 0,
            batch: Batch::new(Vec::new(), 0),
            accesses_plan: Vec::new(),
            phase: Phase::Idle,
            entropy: keys.entropy,
        };
        engine.grow(blocks)?;
        Ok(engine)
    }

    /// The configuration.
    pub fn config(&self) -> &TreeConfig {
        &self.config
    }

    /// The depth of the (data) tree's leaves.
    pub fn depth(&self) -> Level {
        self.trees[0].depth
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
        let limit = self.config.cached_buckets(self.floor.depth);
        self.trees[0].set_cached_buckets(limit);
        Ok(())
    }

    /// Checks stored buckets. Everything in memory must be flushed first.
    pub fn verifier(&mut self) -> Verifier<'_> {
        Verifier::new(&mut self.trees[0])
    }

    /// The intent of the last submitted batch. Make it durable before the batch's first read.
    pub fn intent(&self) -> &Intent {
        &self.batch.intent
    }

    /// The number of a tree's buckets in `bytes` bytes, at least one.
    fn buckets_of(&self, tree: usize, bytes: usize) -> usize {
        (bytes / self.trees[tree].geometry.bucket_bytes()).max(1)
    }

    pub(super) fn expect_idle(&self) -> Result<()> {
        match self.phase {
            Phase::Idle => Ok(()),
            Phase::Closed => Err(EngineError::Closed),
            _ => Err(EngineError::Invalid("a batch is under way".into())),
        }
    }

    fn draw_seed(&mut self) -> u64 {
        let mut seed = [0; 8];
        self.entropy.fill(&mut seed);
        u64::from_le_bytes(seed)
    }

    /// A random number that a replay of the same intent repeats.
    pub(super) fn draw(&mut self) -> u64 {
        self.batch.draws += 1;
        self.prf.label(0xff << LEVEL_SHIFT | self.batch.draws, self.batch.intent.seed)
    }

    /// The label of a block's count.
    pub(super) fn label(&mut self, id: u64, count: u64) -> u64 {
        match self.config.map_format {
            // A block that was never mapped is nowhere; any path will do.
            MapFormat::Label32 if count == 0 => self.draw(),
            MapFormat::Label32 => count << 32,
            _ => self.prf.label(id, count),
        }
    }

    /// The tree that serves a level of the recursion.
    fn tree_of(&self, level: usize) -> usize {
        if self.trees.len() > 1 { level } else { 0 }
    }

    fn advance(&mut self) -> Result<Due> {
        loop {
            match self.phase.clone() {
                Phase::Idle => return Ok(Due::Nothing),
                Phase::Closed => return Err(EngineError::Closed),
                Phase::Start(level) => {
                    if level > 0 && !self.plan_map_round(level) {
                        self.phase = Phase::Start(level - 1);
                        continue;
                    }
                    if level == 0 {
                        self.plan_data_round();
                    }
                    self.begin_round(level);
                    self.phase = Phase::Reading(level);
                    return Ok(Due::Read(self.tree_of(level)));
                }
                Phase::Reading(level) => {
                    self.finish_round(level)?;
                    self.phase = Phase::Writing(level);
                    let tree = self.tree_of(level);
                    if !self.trees[tree].write_step().0.is_empty() {
                        return Ok(Due::Write(tree));
                    }
                }
                Phase::Writing(0) => self.phase = Phase::Idle,
                Phase::Writing(level) => self.phase = Phase::Start(level - 1),
                Phase::Flushing(tree, mut dirty) => {
                    if dirty.is_empty() {
                        self.phase = Phase::Idle;
                        continue;
                    }
                    let most = self.buckets_of(tree, FLUSH_BYTES);
                    self.trees[tree].flush(&mut dirty, most)?;
                    self.phase = Phase::Flushing(tree, dirty);
                    return Ok(Due::Write(tree));
                }
            }
        }
    }

    /// Adds the scheduled paths and hands the round to its tree.
    fn begin_round(&mut self, level: usize) {
        let tree = self.tree_of(level);
        let before = self.accesses[tree];
        let after = before + self.accesses_plan.len() as u64;
        self.accesses[tree] = after;
        let extra = if level == 0 { self.batch.extra } else { 0 };
        let scheduled = self.config.eviction.due(before, after) + extra;
        self.sweep(tree, scheduled);
        let depth = self.trees[tree].depth;
        for _ in 0..scheduled {
            let leaf = reverse_lexicographic(self.turns[tree], depth);
            self.turns[tree] += 1;
            let label = leaf.0.checked_shl(64 - depth.0).unwrap_or(0);
            self.plan(Target::Idle, PathAccess { label, want: EMPTY, scheduled: true });
        }
        self.trees[tree].turns = self.turns[tree];
        let moved = self.trees[tree].meters.bytes_moved;
        self.trees[tree].begin(&self.accesses_plan);
        if level > 0 {
            self.map_paths += self.accesses_plan.len() as u64;
            self.map_bytes += self.trees[tree].meters.bytes_moved - moved;
        }
    }

    pub(super) fn clear_plan(&mut self) {
        self.accesses_plan.clear();
        self.batch.targets.clear();
    }

    pub(super) fn plan(&mut self, target: Target, access: PathAccess) {
        self.batch.targets.push(target);
        self.accesses_plan.push(access);
    }

    pub(super) fn plan_block(&mut self, target: Target, id: u64, counts: Counts) {
        let label = self.label(id, counts.old);
        self.plan(target, PathAccess { label, want: id, scheduled: false });
    }

    pub(super) fn plan_idle(&mut self) {
        let label = self.draw();
        self.plan(Target::Idle, PathAccess { label, want: EMPTY, scheduled: false });
    }

    fn finish_round(&mut self, level: usize) -> Result<()> {
        let tree = self.tree_of(level);
        let moved = self.trees[tree].meters.bytes_moved;
        self.trees[tree].absorb()?;
        for index in 0..self.batch.targets.len() {
            match self.batch.targets[index] {
                Target::MapFetch { id, counts } => self.fetch_map_block(index, id, counts)?,
                Target::MapInPlace { id, counts } => {
                    self.use_map_block(tree, index, id, counts);
                }
                Target::Data { id, counts, .. } => self.check_data(index, id, counts)?,
                Target::Remap { id, counts } => self.check_data(index, id, counts)?,
                Target::Idle => {}
            }
        }
        if level == 0 {
            self.serve_operations();
            self.settle_targets();
            self.refill_plb();
        }
        self.trees[tree].evict()?;
        self.end_sweep(tree);
        if level > 0 {
            self.map_bytes += self.trees[tree].meters.bytes_moved - moved;
        }
        Ok(())
    }

    fn check_op(&self, op: &BlockOp) -> Result<()> {
        if op.id.0 >= self.blocks {
            let why = format!("block {} of {}", op.id.0, self.blocks);
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

impl Engine for TreeOram {
    fn block_bytes(&self) -> usize {
        self.config.block_bytes
    }

    fn capacity(&self) -> u64 {
        self.blocks
    }

    fn submit(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        self.expect_idle()?;
        for op in &ops {
            self.check_op(op)?;
        }
        let seed = self.draw_seed();
        self.batch = Batch::new(ops, seed);
        self.trees[0].changes.requests += self.batch.ops.len() as u64;
        self.take_from_plb();
        self.phase = Phase::Start(self.levels - 1);
        Ok(())
    }

    fn begin_flush(&mut self) -> Result<()> {
        self.expect_idle()?;
        // Only the data tree is cached.
        self.phase = Phase::Flushing(0, self.trees[0].cache.dirty());
        Ok(())
    }

    fn step(&mut self) -> Result<Step<'_>> {
        let due = self.advance();
        if due.is_err() {
            self.phase = Phase::Closed;
        }
        Ok(match due? {
            Due::Nothing => Step::Done,
            Due::Read(tree) => {
                let id = TreeId(tree as u8);
                let scheduled = self.trees[tree].scheduled();
                let (shown, buckets, lens, into) = self.trees[tree].read_step();
                Step::Read { tree: id, shown, scheduled, buckets, lens, into }
            }
            Due::Write(tree) => {
                let (buckets, from) = self.trees[tree].write_step();
                Step::Write { tree: TreeId(tree as u8), buckets, from }
            }
        })
    }

    fn take_answers(&mut self) -> Vec<BlockAnswer> {
        std::mem::take(&mut self.batch.answers)
    }
}
