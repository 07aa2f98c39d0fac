//! What a caller chooses when a volume is created or opened, and what it is told.

use crate::environment::Environment;
use crate::tree::Pace;
use crate::trust::Keeper;
use oblivio_crypto::{KdfParams, VolumeId};
use oblivio_engine::sequential::SequentialConfig;

/// What is fixed when a volume is created.
#[derive(Clone, Copy, Debug)]
pub struct CreateOptions {
    /// Bytes of user data in a block.
    pub block_bytes: usize,
    /// The most bytes that the volume may ever hold; space is taken as it fills.
    pub capacity_bytes: u64,
    /// The price of guessing the passphrase.
    pub kdf: KdfParams,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self { block_bytes: 16 << 10, capacity_bytes: 256 << 30, kdf: KdfParams::default() }
    }
}

/// What was done when something was shown. The store can tell these apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShownKind {
    /// A batch of accesses, with the scheduled paths that were due.
    #[default]
    Batch,
    /// Before a batch, the paths of position-map blocks that were not in memory; only of volumes
    /// whose map recurses.
    Map,
    /// Scheduled paths alone, which make the tree smaller.
    Maintenance,
    /// A record of written bytes in the journal.
    Sync,
    /// A part of the buckets that the next commit would flush, ahead of it.
    Flush,
    /// A commit, with the buckets that it flushes.
    Commit,
    /// Nothing of its own: by which public rule the next requests are made.
    Rule,
}

/// What says, with the leaves that are shown, which buckets are read and written. It is public,
/// and changes with a commit or with the size class only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Addressable blocks.
    pub blocks: u64,
    /// Slots of a bucket that is no leaf's.
    pub slots: u32,
    /// Slots of a leaf's bucket; where the tree is becoming smaller, the most that one has.
    pub leaf_slots: u32,
    /// The level of the leaves that the size class asks for; a deeper tree is becoming smaller.
    pub floor: u32,
    /// Slots of a leaf's bucket that the size class asks for; a tree of the same depth with more is
    /// becoming smaller.
    pub floor_slots: u32,
    /// So many buckets, the first in heap order, are kept in memory once they were met.
    pub cached: u64,
    /// Bytes of a bucket with all its slots.
    pub bucket_bytes: u64,
    /// Bytes by which it is shorter for each slot that it lacks.
    pub slot_bytes: u64,
    /// Scheduled paths so far.
    pub turn: u64,
    /// When there were so many, a commit is due. Cached buckets whose path has no other turn before
    /// are written at once, the others with the commit.
    pub flush_at: u64,
    /// At the beginning of a session: scheduled paths since the leaf level began to be dropped.
    pub swept: u64,
    /// At the beginning of a session: the stored buckets, as runs of heap indices (the first of
    /// each, and how many).
    pub stored: Option<Vec<(u64, u64)>>,
    /// Then too: those of them that lack one slot, two and three, as runs.
    pub lacking: Vec<Vec<(u64, u64)>>,
    /// Then too: where each of the stored buckets begins in its object, in heap order.
    pub places: Vec<u64>,
    /// Operations so far; after every 256 of them one more path is drawn.
    pub requests: u64,
}

/// One thing that the store saw; the material of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// What was done.
    pub kind: ShownKind,
    /// The leaves whose paths were read: those drawn at random in their order, then those of the
    /// public schedule in theirs.
    pub leaves: Vec<u64>,
    /// How many of them, the last, follow the schedule.
    pub scheduled: usize,
    /// Whether the tree is becoming smaller: the scheduled leaves are then dropped, not written.
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
    /// Byte offsets in the slab, its objects laid end to end, that were read, in order.
    pub places_read: Vec<u64>,
    /// Byte offsets there that were written, in order.
    pub places_written: Vec<u64>,
}

/// Called after each batch, round of maintenance, sync, commit and change of the public rule.
pub type OnShown = Box<dyn FnMut(&Shown) + Send>;

/// How a volume is opened.
#[derive(Default)]
pub struct OpenOptions {
    /// The memory that the volume may use, in bytes; 0 for [`DEFAULT_MEMORY`].
    pub memory_bytes: usize,
    /// Where this computer keeps what it knows of volumes. Without it, any state that there ever
    /// was is taken for the newest.
    pub keeper: Option<Box<dyn Keeper>>,
    /// Open the volume although it is older than, or parted from, what this computer knows: the
    /// user says that a backup was restored.
    pub accept_rollback: bool,
    /// Make the accesses of each operation of the caller in batches of one size, and a power of
    /// two of them.
    pub pad: bool,
    /// Make accesses at a constant rate, needed or not.
    pub pace: Option<Pace>,
    /// Somebody waits for every operation: work that can be left for later is done in small parts.
    pub short_pauses: bool,
    /// Called after whatever the store is shown.
    pub on_shown: Option<OnShown>,
    /// The clock and the randomness.
    pub environment: Environment,
}

/// The default memory budget: 448 MiB.
pub const DEFAULT_MEMORY: usize = 448 << 20;

/// What can be told about an open volume.
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
    /// What of a session that did not end well was done again when the volume was opened: batches,
    /// or writes of a sequential volume.
    pub replayed: u64,
    /// What its engine has to say.
    pub engine: EngineInfo,
}

/// What is told of an engine.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineInfo {
    /// The store sees every read and every write.
    Tree(TreeInfo),
    /// Whoever looks sees writes only.
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

/// What can be told about a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeInfo {
    /// Slots in a bucket.
    pub blocks_per_bucket: usize,
    /// Bytes of a bucket in the store.
    pub bucket_bytes: usize,
    /// Blocks addressable now (the size class that the store can see).
    pub addressable_blocks: u64,
    /// Blocks that the tree is made for now.
    pub size_class: u64,
    /// Blocks that exist.
    pub live_blocks: u64,
    /// The level of the tree's leaves.
    pub depth: u32,
    /// Slots of the leaves' buckets; all others have [`Self::blocks_per_bucket`].
    pub leaf_slots: usize,
    /// Slots of all buckets that are stored.
    pub stored_slots: u64,
    /// Levels of recursion of the position map; 1 when it is all in memory.
    pub recursion_levels: usize,
}

/// What can be told about a sequential engine. All of it but the last line never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct SequentialInfo {
    /// The engine's parameters; they stand in the header.
    pub parameters: SequentialConfig,
    /// The fan-outs of the levels, from the top.
    pub fan_outs: Vec<u64>,
    /// Bytes of one half of the write queue.
    pub queue_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of all levels.
    pub disk_bytes: u64,
    /// Bytes written to the levels for each byte that is written, once all are in use.
    pub written_per_byte: f64,
    /// Whether the access time map is in the ORAM.
    pub map_on_disk: bool,
    /// Flushes so far; whoever looks at the disk can count them.
    pub flushes: u64,
    /// Writes so far, padding included.
    pub writes: u64,
}
