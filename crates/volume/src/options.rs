//! A caller's choices when it creates or opens a volume, and what it can learn of one.

use crate::environment::Environment;
use crate::trust::Keeper;
use oblivio_crypto::{KdfParams, VolumeId};
use oblivio_engine::sequential::SequentialConfig;
use std::time::Duration;

/// The choices fixed at creation.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// Bytes of user data in a block.
    pub block_bytes: usize,
    /// The most bytes that the volume may ever hold; it takes space as it fills.
    pub capacity_bytes: u64,
    /// The cost of guessing the passphrase.
    pub kdf: KdfParams,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self { block_bytes: 16 << 10, capacity_bytes: 256 << 30, kdf: KdfParams::default() }
    }
}

/// The cause of a trace. The store can tell these apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShownKind {
    /// A batch of accesses, with the scheduled paths that were due.
    #[default]
    Batch,
    /// Before a batch, the paths of position-map blocks that were not in memory; only of volumes
    /// whose map recurses.
    Map,
    /// Scheduled paths alone, which shrink the tree.
    Maintenance,
    /// A record of written bytes in the journal.
    Sync,
    /// A part of the buckets that the next commit would flush, ahead of it.
    Flush,
    /// A commit, with the buckets that it flushes.
    Commit,
    /// Nothing of its own: the public rule of the next requests.
    Rule,
}

/// The public rule that, with the shown leaves, fixes which buckets are read and written. It
/// changes only with a commit or the size class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Addressable blocks.
    pub blocks: u64,
    /// Slots of an inner bucket.
    pub slots: u32,
    /// Slots of a leaf's bucket; in a shrinking tree, the most of any.
    pub leaf_slots: u32,
    /// The leaf level of the size class; a deeper tree is shrinking.
    pub floor: u32,
    /// Slots of a leaf's bucket in the size class; a tree of the same depth with more is shrinking.
    pub floor_slots: u32,
    /// How many buckets, the first in heap order, stay in memory once read.
    pub cached: u64,
    /// Bytes of a bucket with all its slots.
    pub bucket_bytes: u64,
    /// Bytes saved for each slot that a bucket lacks.
    pub slot_bytes: u64,
    /// Scheduled paths so far.
    pub turn: u64,
    /// The count of scheduled paths at which a commit is due. Cached buckets whose path has no
    /// other turn before are written at once, the others with the commit.
    pub flush_at: u64,
    /// At the start of a session: scheduled paths since the drop of the leaf level began.
    pub swept: u64,
    /// At the start of a session: the stored buckets, as runs of heap indices (first, count).
    pub stored: Option<Vec<(u64, u64)>>,
    /// Then too: those of them that lack one slot, two and three, as runs.
    pub lacking: Vec<Vec<(u64, u64)>>,
    /// Then too: each stored bucket's offset in its object, in heap order.
    pub places: Vec<u64>,
    /// Operations so far; every 256 of them draw one more path.
    pub requests: u64,
}

/// One event that the store saw; the material of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Its cause.
    pub kind: ShownKind,
    /// The leaves of the paths read: the random ones in their order, then the scheduled ones in
    /// theirs.
    pub leaves: Vec<u64>,
    /// How many of them, the last, follow the schedule.
    pub scheduled: usize,
    /// Whether the tree is shrinking: the scheduled leaves are then dropped, not written.
    pub sweep: bool,
    /// The level of the tree's leaves.
    pub depth: u32,
    /// Buckets read.
    pub reads: u32,
    /// Buckets written.
    pub writes: u32,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// With [`ShownKind::Rule`], the rule.
    pub rule: Option<Rule>,
    /// Byte offsets read, in order, in the slab's objects laid end to end.
    pub places_read: Vec<u64>,
    /// Byte offsets written there, in order.
    pub places_written: Vec<u64>,
}

/// Called after each batch, round of maintenance, sync, commit and change of the public rule.
pub type OnShown = Box<dyn FnMut(&Shown) + Send>;

/// A constant rate of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The time between two ticks.
    pub interval: Duration,
    /// Block operations in each.
    pub batch: usize,
}

/// Options of an opening.
#[derive(Default)]
pub struct OpenOptions {
    /// The memory that the volume may use, in bytes; 0 for [`DEFAULT_MEMORY`].
    pub memory_bytes: usize,
    /// Where this computer keeps its knowledge of volumes. Without it, any past state passes for
    /// the newest.
    pub keeper: Option<Box<dyn Keeper>>,
    /// Open the volume even if it is older than, or parted from, what this computer knows: the user
    /// says that a backup was restored.
    pub accept_rollback: bool,
    /// Make the accesses of each operation of the caller in batches of one size, and a power of two
    /// of them.
    pub pad: bool,
    /// Make accesses at a constant rate, needed or not.
    pub pace: Option<Pace>,
    /// A caller waits for every operation: do deferrable work in small parts.
    pub short_pauses: bool,
    /// Called after each trace.
    pub on_shown: Option<OnShown>,
    /// The clock and the randomness.
    pub environment: Environment,
}

/// The default memory budget: 448 MiB.
pub const DEFAULT_MEMORY: usize = 448 << 20;

/// Information about an open volume.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeInfo {
    /// Its identity.
    pub volume: VolumeId,
    /// The format's version.
    pub format: u32,
    /// Bytes of user data in a block.
    pub block_bytes: usize,
    /// The most blocks that the volume may hold.
    pub capacity_blocks: u64,
    /// The number of the last commit; of a sequential volume, of its last state.
    pub epoch: u64,
    /// Passphrases that open the volume.
    pub passphrases: usize,
    /// Bytes in the store, all objects together.
    pub bytes_stored: u64,
    /// The memory budget.
    pub memory_bytes: usize,
    /// What the opening replayed of a session that did not end well: batches, or writes of a
    /// sequential volume.
    pub replayed: u64,
    /// Information about its engine.
    pub engine: EngineInfo,
}

/// Information about an engine.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineInfo {
    /// The store sees every read and every write.
    Tree(TreeInfo),
    /// An observer sees writes only.
    Sequential(SequentialInfo),
}

impl VolumeInfo {
    /// The engine's name.
    pub fn engine_name(&self) -> &'static str {
        match self.engine {
            EngineInfo::Tree(_) => "tree",
            EngineInfo::Sequential(_) => "sequential",
        }
    }

    /// The tree, if there is one.
    pub fn tree(&self) -> Option<&TreeInfo> {
        match &self.engine {
            EngineInfo::Tree(tree) => Some(tree),
            EngineInfo::Sequential(_) => None,
        }
    }
}

/// Information about a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeInfo {
    /// Slots in a bucket.
    pub blocks_per_bucket: usize,
    /// Bytes of a bucket in the store.
    pub bucket_bytes: usize,
    /// Blocks addressable now (the size class that the store can see).
    pub addressable_blocks: u64,
    /// Blocks that the tree is sized for now.
    pub size_class: u64,
    /// Blocks that exist.
    pub live_blocks: u64,
    /// The level of the tree's leaves.
    pub depth: u32,
    /// Slots of the leaves' buckets; all others have [`Self::blocks_per_bucket`].
    pub leaf_slots: usize,
    /// Slots of all stored buckets.
    pub stored_slots: u64,
    /// Levels of recursion of the position map; 1 when it is all in memory.
    pub recursion_levels: usize,
}

/// Information about a sequential engine. Only the two counts at the end ever change.
#[derive(Clone, Debug, PartialEq)]
pub struct SequentialInfo {
    /// The engine's parameters, from the header.
    pub parameters: SequentialConfig,
    /// The fan-outs of the levels, from the top.
    pub fan_outs: Vec<u64>,
    /// Bytes of one half of the write queue.
    pub queue_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of all levels.
    pub disk_bytes: u64,
    /// Bytes written to the levels for each byte of user data, once all are in use.
    pub written_per_byte: f64,
    /// Whether the access time map is in the ORAM.
    pub map_on_disk: bool,
    /// Flushes so far; an observer of the disk can count them.
    pub flushes: u64,
    /// Writes so far, padding included.
    pub writes: u64,
}
