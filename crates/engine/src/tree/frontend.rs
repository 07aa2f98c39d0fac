//! The front end: turns operations into paths, one round of paths per level of recursion, the data
//! round last (Freecursive §4.2.4).

mod data_round;
mod job;

pub use job::{AHEAD_BYTES, TreeJob};

use super::backend::{Backend, PathAccess};
use super::batch::{Batch, PathReason};
use super::config::TreeConfig;
use super::doubt::CurrentLabels;
use super::eviction::reverse_lexicographic;
use super::geometry::Shape;
use super::keys::TreeKeys;
use super::plb::Plb;
use super::pmmac::Pmmac;
use super::position_map::CountChange;
use super::window_records::WindowState;
use crate::{Address, BlockOp, EngineError, Label, Level, Result};
use oblivio_crypto::{Entropy, Prf};
use std::collections::BTreeMap;

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

/// The eviction schedule so far.
#[derive(Default)]
pub(super) struct Schedule {
    /// Paths read, without scheduled ones.
    pub accesses: u64,
    /// Scheduled paths.
    pub turns: u64,
    /// Those that came before they were due.
    pub ahead: u64,
}

/// Path ORAM with recursion, PLB, compressed position map, PMMAC and tag tree, as configured.
pub struct TreeOram {
    pub(super) config: TreeConfig,
    /// Levels of recursion (the paper's H).
    pub(super) levels: usize,
    pub(super) size: Size,
    pub(super) tree: Backend,
    pub(super) on_chip: Vec<u8>,
    pub(super) plb: Plb,
    /// Blocks whose group rolled over and that still have their old label.
    pub(super) pending: BTreeMap<Address, CountChange>,
    pub(super) prf: Prf,
    pub(super) pmmac: Pmmac,
    pub(super) schedule: Schedule,
    /// Of a schedule with windows.
    pub(super) windows: WindowState,
    condition: Condition,
    entropy: Box<dyn Entropy>,
}

impl TreeOram {
    /// An empty engine with `blocks` blocks addressable.
    ///
    /// # Errors
    /// `Invalid` for a configuration that cannot work.
    pub fn new(config: TreeConfig, blocks: u64, keys: TreeKeys) -> Result<Self> {
        config.validate()?;
        let blocks = blocks.clamp(1, config.capacity);
        let levels = config.levels_of_recursion();
        let shape = config.shape_for_live(blocks, blocks);
        let plb = match levels {
            1 => Plb::new(1, 1),
            _ => Plb::new(config.plb_bytes / config.block_bytes, config.plb_ways),
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
            tree: Backend::new(
                config.geometry(),
                shape,
                config.cached_buckets(shape, shape),
                config.eviction,
                keys.volume,
                keys.sealer,
            ),
            on_chip: Vec::new(),
            plb,
            pending: BTreeMap::new(),
            prf: keys.prf,
            pmmac: Pmmac::new(keys.pmmac.filter(|_| config.pmmac)),
            schedule: Schedule::default(),
            windows: WindowState::default(),
            condition: Condition::Idle,
            entropy: keys.entropy,
        };
        if engine.pmmac.is_on() != config.pmmac {
            return Err(EngineError::Invalid("a volume has no key for PMMAC".into()));
        }
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

    /// The depth of the tree's leaves.
    pub fn depth(&self) -> Level {
        self.tree.leaves.depth
    }

    /// Bytes of a full bucket, as the store sees it.
    pub fn bucket_bytes(&self) -> usize {
        self.tree.geometry.bucket_bytes()
    }

    /// The number of buckets kept in memory.
    pub fn cached_buckets(&self) -> u64 {
        self.tree.cache.limit()
    }

    /// Changes the memory for the top of the tree. Everything must be flushed first.
    ///
    /// # Errors
    /// `Invalid` while a batch is under way.
    pub fn set_cache_bytes(&mut self, bytes: usize) -> Result<()> {
        self.expect_idle()?;
        self.config.cache_bytes = bytes;
        let limit = self.config.cached_buckets(self.shape(), self.size.floor);
        self.tree.set_cached_buckets(limit);
        Ok(())
    }

    /// Whether a batch or a round of maintenance met a damaged bucket since the last call.
    pub fn take_damage(&mut self) -> bool {
        self.tree.take_damage()
    }

    /// The number of buckets in `bytes` bytes, at least one.
    fn buckets_of(&self, bytes: usize) -> usize {
        (bytes / self.bucket_bytes()).max(1)
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

    /// A random label that a replay of the same intent repeats.
    fn draw(&self, batch: &mut Batch) -> Label {
        batch.draws += 1;
        // No block has an address in this level.
        Label(self.prf.label(Address::new(0xff, batch.draws).0, batch.intent.seed))
    }

    /// A block's label at this count.
    pub(super) fn label(&self, id: Address, count: u64) -> Label {
        Label(self.prf.label(id.0, count))
    }

    /// Adds the scheduled paths and hands the round to its tree.
    fn begin_round(&mut self, batch: &mut Batch, level: usize) {
        let before = self.schedule.accesses;
        let after = before + batch.plan.len() as u64;
        self.schedule.accesses = after;
        let extra = if level == 0 { batch.extra } else { 0 };
        let scheduled = self.config.eviction.due(before, after) + extra;
        self.sweep(scheduled);
        if extra > 0 && self.windows().is_some() {
            self.note_shape();
        }
        let depth = self.tree.leaves.depth;
        for _ in 0..scheduled {
            let label = reverse_lexicographic(self.schedule.turns, depth).label(depth);
            self.schedule.turns += 1;
            batch.plan(PathReason::Idle, PathAccess { label, want: None, scheduled: true });
        }
        self.tree.clock.turns = self.schedule.turns;
        let moved = self.tree.meters.bytes_moved;
        self.tree.begin(&batch.plan);
        if level > 0 {
            self.tree.meters.map_paths += batch.plan.len() as u64;
            self.tree.meters.map_bytes_moved += self.tree.meters.bytes_moved - moved;
        }
    }

    pub(super) fn plan_block(
        &self,
        batch: &mut Batch,
        target: PathReason,
        id: Address,
        counts: CountChange,
    ) {
        let label = self.label(id, counts.old);
        batch.plan(target, PathAccess { label, want: Some(id), scheduled: false });
    }

    fn plan_idle(&self, batch: &mut Batch) {
        let label = self.draw(batch);
        batch.plan(PathReason::Idle, PathAccess { label, want: None, scheduled: false });
    }

    fn finish_round(&mut self, batch: &mut Batch, level: usize) -> Result<()> {
        let moved = self.tree.meters.bytes_moved;
        let (format, map) = (self.config.map_format, (&self.on_chip[..], &self.pending));
        let labels = CurrentLabels::new((&self.prf, format), map, self.levels);
        self.tree.absorb(Some(&labels), &std::mem::take(&mut batch.back))?;
        for index in 0..batch.targets.len() {
            let (id, counts) = match batch.targets[index] {
                PathReason::MapFetch { id, counts } => {
                    self.fetch_map_block(batch, index, id, counts)?;
                    continue;
                }
                PathReason::Data { id, counts, .. } => (id, counts),
                PathReason::Remap { id, counts } => match id.data() {
                    Some(id) => (id, counts),
                    None => {
                        self.check_remapped(index, id, counts)?;
                        continue;
                    }
                },
                PathReason::Idle => continue,
            };
            let presence = self.check_data(index, id, counts)?;
            batch.targets[index] = PathReason::Data { id, counts, presence };
        }
        if level == 0 {
            self.serve_operations(batch);
            self.settle_targets(batch);
            self.refill_plb(batch);
        }
        self.tree.evict()?;
        self.end_sweep();
        if level > 0 {
            self.tree.meters.map_bytes_moved += self.tree.meters.bytes_moved - moved;
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
