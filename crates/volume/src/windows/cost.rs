//! What a tree in windows asks of its store: requests and bytes, on the average.

use super::header::WindowOptions;
use super::parity;
use super::policy::GROUP;
use super::state::Commit;
use crate::core::LEAST_SYNC;
use crate::records::journal::{PAGE, size_class};
use oblivio_crypto::SEAL_OVERHEAD;
use oblivio_engine::Level;
use oblivio_engine::tree::{Shape, TreeConfig, Windows};

/// Bytes of an entry around its payload: the seal, the entry before, and four numbers.
const ENTRY: usize = SEAL_OVERHEAD + 16 + 4 * 8;
/// Bytes of an act in an entry, and of a pointer.
const ACT: usize = 24;
const POINTER: usize = SEAL_OVERHEAD + 40;

/// Requests, and the bytes that they carry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Reads of objects or parts of them.
    pub gets: f64,
    /// Questions for a length; where sessions begin with a list, lists.
    pub looks: f64,
    /// Stores of objects.
    pub puts: f64,
    /// Deleted objects.
    pub deletes: f64,
    /// Bytes from the store.
    pub down: f64,
    /// Bytes to it.
    pub up: f64,
}

impl Traffic {
    fn get(&mut self, count: f64, bytes: f64) {
        self.gets += count;
        self.down += count * bytes;
    }

    fn put(&mut self, count: f64, bytes: f64) {
        self.puts += count;
        self.up += count * bytes;
    }

    /// So many times this.
    #[must_use]
    pub fn times(self, count: f64) -> Self {
        let Self { gets, looks, puts, deletes, down, up } = self;
        let [gets, looks, puts] = [gets, looks, puts].map(|it| it * count);
        let [deletes, down, up] = [deletes, down, up].map(|it| it * count);
        Self { gets, looks, puts, deletes, down, up }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            gets: self.gets + other.gets,
            looks: self.looks + other.looks,
            puts: self.puts + other.puts,
            deletes: self.deletes + other.deletes,
            down: self.down + other.down,
            up: self.up + other.up,
        }
    }
}

/// The costs of a volume of one size.
#[derive(Clone, Copy, Debug)]
pub struct WindowCost {
    config: TreeConfig,
    rule: Windows,
    shape: Shape,
    /// Addressable blocks.
    blocks: u64,
    /// The first level that is in no disk cache.
    uncached: Level,
}

impl WindowCost {
    /// Of a volume that holds `stored` bytes, with a disk cache of `cache` bytes that is full.
    pub fn of(options: &WindowOptions, stored: u64, cache: u64) -> Self {
        let config = options.config();
        let blocks = stored.div_ceil(config.block_bytes as u64).clamp(1, config.capacity);
        let rule = options.windows();
        let bucket = config.geometry().bucket_bytes();
        let uncached = super::cache::end(Level(rule.pool_levels), bucket, cache);
        let (live, blocks) = (blocks, blocks.next_power_of_two());
        let shape = config.shape_for_live(live, blocks);
        Self { config, rule, shape, blocks, uncached }
    }

    /// Bytes of a bucket of a level.
    fn bucket(&self, level: u32) -> f64 {
        let geometry = self.config.geometry();
        match Level(level) == self.shape.depth {
            true => geometry.bucket_bytes_with(self.shape.leaf_slots) as f64,
            false => geometry.bucket_bytes() as f64,
        }
    }

    fn levels(&self) -> impl Iterator<Item = u32> {
        self.rule.pool_levels..=self.shape.depth.0
    }

    /// Bytes in the store.
    pub fn stored(&self) -> f64 {
        let buckets: f64 = self.levels().map(|it| self.bucket(it) * (1u64 << it) as f64).sum();
        let kept = self.rule.kept(self.config.blocks_per_bucket);
        // Half a group that is to go with the rest of its own, and the parities.
        let group = kept.clamp(1, parity::GROUP) as f64;
        buckets + self.part() * (kept as f64 + (group - 1.0) / 2.0 + kept as f64 / group + 0.5)
    }

    /// Bytes of a part (docs/format.md §"Parts").
    fn part(&self) -> f64 {
        let (rule, slots) = (self.rule, self.config.blocks_per_bucket);
        let (kept, accesses) = (rule.kept(slots), rule.accesses());
        let listed = kept * accesses + accesses + 64;
        let tags = 16u64 << rule.pool_levels;
        let bits = (self.blocks + (2u64 << self.shape.depth.0) * slots as u64) / 8;
        // About two bytes of map for a block.
        let map = 2 * self.blocks;
        let live = 16 * (accesses + 1024) + 24 * 512;
        let changes = accesses * 16 + (accesses + rule.turns()) * 8 + live;
        let contents = 2 * accesses * self.config.block_bytes as u64;
        (contents + listed * 40 + tags + (bits + map) / kept + changes + 512) as f64
    }

    /// Of an access, when batches have `batch` of them.
    pub fn access(&self, batch: u64) -> Traffic {
        let (mut each, batch) = (Traffic::default(), batch.max(1) as f64);
        for level in self.levels().filter(|level| Level(*level) >= self.uncached) {
            let buckets = (1u64 << level) as f64;
            // Those of the last two windows are in memory; paths of a batch meet.
            let recent = (2.0 * self.rule.turns() as f64 / buckets).min(1.0);
            let met = buckets * (1.0 - (1.0 - 1.0 / buckets).powf(batch));
            each.get(met * (1.0 - recent) / batch, self.bucket(level));
        }
        // A batch ends with its window, so there is one more if they do not fit by chance. A group
        // ends with it too.
        let accesses = self.rule.accesses() as f64;
        let (least, fits) = ((accesses / batch).ceil(), 1.0 / batch);
        let mean = |of: &dyn Fn(f64) -> f64| fits * of(least) + (1.0 - fits) * of(least + 1.0);
        let batches = mean(&|count| count);
        let groups = mean(&|count| (count / GROUP as f64).ceil());
        let ids = accesses / groups;
        let intents = size_class(ENTRY + ACT + (8.0 * ids + 16.0 * batches / groups) as usize);
        each.put(groups / accesses, intents as f64);
        // Before each group of a window but the first, or once for its checkpoint.
        each.looks += (groups - 1.0).max(1.0) / accesses;
        each.and(self.window().times(1.0 / accesses))
    }

    /// Of a window and its checkpoint, but for its look.
    fn window(&self) -> Traffic {
        let (mut each, turns) = (Traffic::default(), self.rule.turns() as f64);
        for level in self.levels() {
            let bytes = self.bucket(level) * turns;
            let recent = level <= self.rule.log_turns + 1;
            if !recent && Level(level) >= self.uncached {
                each.get(1.0, bytes);
            }
            each.put(1.0, bytes);
        }
        each.put(1.0, self.part());
        let kept = self.rule.kept(self.config.blocks_per_bucket);
        let groups = (kept.div_ceil(parity::GROUP) + 1) as usize;
        let commit = Commit::bytes(1, (kept as usize, groups), self.levels().count());
        let entry = size_class(ENTRY + commit) as f64;
        each.put(1.0, entry);
        // For each group of parts, a parity and a second copy of the entry.
        let share = 1.0 / kept.clamp(1, parity::GROUP) as f64;
        each.put(share, self.part());
        each.put(share, entry);
        each.put(1.0, POINTER as f64);
        // Objects, a part, and the entries of the window.
        each.deletes += self.levels().count() as f64 + 1.0 + 2.0 * share;
        each
    }

    /// Of a sync of this number of bytes.
    pub fn sync(&self, bytes: u64) -> Traffic {
        let mut each = Traffic::default();
        let least = LEAST_SYNC.max(bytes as usize) + PAGE;
        each.put(1.0, size_class(least) as f64);
        each.looks += 1.0;
        each
    }
}
