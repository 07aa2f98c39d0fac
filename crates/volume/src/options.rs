//! A caller's choices when it creates or opens a volume, and what it can learn of one.

use crate::Result;
use crate::environment::Environment;
use crate::trust::Keeper;
use oblivio_crypto::{KdfParams, VolumeId};
use oblivio_store::Store;
use std::sync::Arc;
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
    /// Scheduled paths alone, of a repair: in all as many as the tree has leaves.
    Repair,
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
    /// Whether reads may begin before the record that announces them is durable.
    pub ahead: bool,
    /// Operations so far; every 256 of them draw one more path.
    pub requests: u64,
    /// The log of the top, if one is kept.
    pub log: Option<LogRule>,
    /// Of a tree in windows, what its counters say.
    pub windows: Option<WindowRule>,
}

/// The log of the top of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRule {
    /// The buckets, in heap order, that a commit need not write.
    pub buckets: u64,
    /// Entries that have a place at a time.
    pub places: u64,
    /// The number of the next entry.
    pub next: u64,
    /// Quarters of an entry that the next round has besides its own.
    pub owed: u64,
    /// Bytes of an entry.
    pub entry_bytes: u64,
    /// The distance of two places in bytes.
    pub slot_bytes: u64,
    /// At the start of a session: the buckets that differ from their stored version, as runs.
    pub changed: Vec<(u64, u64)>,
}

/// The public counters of a tree in windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowRule {
    /// The number of the session.
    pub session: u64,
    /// Accesses for each turn.
    pub every: u32,
    /// The binary logarithm of the turns in a window.
    pub log_turns: u32,
    /// Levels that are in memory only.
    pub pool_levels: u32,
    /// Whether the store creates objects exclusively: then nothing is listed.
    pub exclusive: bool,
    /// The first level that no disk cache of this computer keeps.
    pub uncached: u32,
    /// Windows so far.
    pub windows: u64,
    /// Accesses left to the next one.
    pub left: u64,
    /// Checkpoints so far.
    pub commits: u64,
    /// Parts that a checkpoint keeps.
    pub kept: u64,
    /// From which window on the tree had which depth, and slots in its leaves.
    pub shapes: Vec<(u64, u32, u32)>,
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
    /// Whether the tree is shrinking: the scheduled leaves are then dropped, not written. Of a tree
    /// in windows, whether a window came ahead of its turn, or a session before showed the batch.
    pub sweep: bool,
    /// The level of the tree's leaves.
    pub depth: u32,
    /// Buckets read.
    pub reads: u32,
    /// Buckets written.
    pub writes: u32,
    /// Entries written to the log of the top.
    pub entries: u32,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written, without those of entries.
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

/// Somebody waits for the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderNotice {
    /// What the owner of the computer that has it calls that one.
    pub host: String,
    /// For how long.
    pub waited: Duration,
    /// For how long that computer has not answered.
    pub silent: Duration,
}

/// Is called while somebody waits; says whether to go on.
pub type OnWait = Box<dyn FnMut(&HolderNotice) -> bool + Send>;

/// Called when another computer asks for the volume, with what its owner calls it.
pub type OnWanted = Box<dyn FnMut(&str) + Send>;

/// A constant rate of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The time between two ticks.
    pub interval: Duration,
    /// Block operations in each.
    pub batch: usize,
}

/// When the record that announces reads is durable, of a tree in a store that writes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Records {
    /// Before those reads.
    #[default]
    First,
    /// Soon: at most 256 accesses, all within 50 ms, are ahead of it. A power cut may lose their
    /// records, and then they may be shown once more. Not with a pace or padding, and not before a
    /// session ended well on this computer.
    Ahead,
}

/// Where a volume may keep sealed buckets on this computer.
#[derive(Clone)]
pub struct CacheOptions {
    /// A folder of its own, on a local disk.
    pub store: Arc<dyn Store>,
    /// The most bytes that it takes.
    pub bytes: u64,
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
    /// Of a volume that hides writes: make a quantum of its log durable in each interval of this
    /// length, needed or not. The caller's idle calls keep the times.
    pub cover: Option<Duration>,
    /// Where a volume on the tree in windows may keep sealed buckets on this computer; others take
    /// no notice.
    pub cache: Option<CacheOptions>,
    /// When records are durable.
    pub records: Records,
    /// When the top of a tree is kept in a log.
    pub top_logs: TopLogs,
    /// A caller waits for every operation: do deferrable work in small parts.
    pub short_pauses: bool,
    /// Called after each trace.
    pub on_shown: Option<OnShown>,
    /// What this computer's owner calls it: other computers show it, where several use a volume.
    pub host: String,
    /// Called while another computer has the volume in an online store; says whether to go on
    /// waiting. Without it, the volume is taken over at once.
    pub on_wait: Option<OnWait>,
    /// Called once when another computer asks for the volume, with its name: the caller then ends
    /// the session when it can.
    pub on_wanted: Option<OnWanted>,
    /// This computer's own place for a volume in a folder that a sync client copies. Without it,
    /// each commit is an epoch.
    pub beside: Option<Arc<dyn Beside>>,
    /// Which history of such a volume.
    pub history: Which,
    /// Only look at such a volume, although files of it are missing or damaged: what is in those is
    /// lost, and all else can be read. With [`Which::Older`] also although the entry of an epoch
    /// that may be newer cannot be read.
    pub incomplete: bool,
    /// The clock and the randomness.
    pub environment: Environment,
}

impl OpenOptions {
    /// Whether the volume is only looked at, if it is in a folder that a sync client copies.
    pub fn only_looks(&self) -> bool {
        self.incomplete || matches!(self.history, Which::View(_))
    }
}

/// When the top of a tree stays in memory from one commit to the next, and a log makes it durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopLogs {
    /// Never: each commit writes what changed.
    Never,
    /// Once a session is busy, if it saves writes.
    #[default]
    Busy,
    /// From the first commit on.
    Always,
}

/// Which history of a volume in a folder that a sync client copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// The newest, all of which must be there.
    #[default]
    Newest,
    /// The newest of which all is there: the user accepts that something newer is on its way, and
    /// that there will be two histories then.
    Older,
    /// The one whose name begins so, to look at: nothing that is written in it is kept.
    View(String),
}

/// This computer's own place for a volume in a folder that a sync client copies: outside of that
/// folder.
pub trait Beside: Send + Sync {
    /// A store in that place, for this volume.
    ///
    /// # Errors
    /// `Forgotten` if there is no such place.
    fn store(&self, volume: VolumeId) -> Result<Arc<dyn Store>>;

    /// Gives a file of the folder a second name in that store: the same one. False if it cannot,
    /// and a copy is needed.
    fn link(&self, volume: VolumeId, object: &str) -> bool;

    /// A number that differs as soon as a file of the folder was written or replaced. `None` where
    /// nothing tells: then the file is read again each time.
    fn fingerprint(&self, _object: &str) -> Option<u64> {
        None
    }
}

/// The default memory budget: 448 MiB.
pub const DEFAULT_MEMORY: usize = 448 << 20;
