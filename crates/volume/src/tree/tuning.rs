//! Every number of a tree volume that was tuned, in one table. Each is public: no decision that
//! uses one sees a secret.

use crate::block::Least;

// Batches and deferred writes

/// The most bytes that a batch may read: more would leave the processor's caches before they are
/// opened.
pub(crate) const MOST_BATCH: usize = 8 << 20;
/// The most deferred bytes, and those that may be deferred always.
pub(crate) const MOST_DEFERRED: usize = 2 << 20;
pub(crate) const LEAST_DEFERRED: usize = 256 << 10;
/// The most deferred blocks: many may have few bytes written.
pub(crate) const MOST_WAITING: usize = 128;
/// Further ids beyond the limit, when more blocks exist than it allows.
pub(crate) const SPARE_BLOCKS: u64 = 1024;

// When a commit is due

/// The bytes that set the interval of commits: the scheduled paths between two, each with two
/// buckets left in the cache and written before the commit, come to this. More paths save more
/// writes of cached buckets. But the writes between two commits take space twice, and after a crash
/// the next opening serves as much again. Public numbers only.
pub(crate) const LEAST_FLUSH: u64 = 16 << 20;
pub(crate) const MOST_FLUSH: u64 = 128 << 20;
/// The interval doubles if the store has room for this many times its writes: up to four times the
/// writes between two commits may be free for a while, and must not make a small disk smaller.
pub(crate) const ROOMY: u64 = 16;

/// Bytes of journal after which a commit is due: a sixteenth of the volume between these. After a
/// crash the next opening serves up to as much again.
pub(crate) const LEAST_JOURNAL: u64 = 4 << 20;
pub(crate) const MOST_JOURNAL: u64 = 256 << 20;
/// When a caller waits for each operation, a commit may come early: as soon as an operation with
/// this many bytes, and half as much deferred, would go beyond the due point.
pub(crate) const OPERATION: usize = 1 << 20;
/// How many times earlier the store starts to keep less undurable data, down to this.
pub(crate) const NEARING: u64 = 8;
pub(crate) const LITTLE_KEPT: usize = 3 << 20;
/// The store keeps at most this much of an object, or an eighth of the budget, while the disk falls
/// behind. Two objects are written heavily at the same time.
pub(crate) const MOST_KEPT: usize = 96 << 20;

// The log of the top

/// The most bytes of blocks in a top that is in a log.
pub(crate) const MOST_TOP: usize = 512 << 20;

// A shrinking tree

/// The most holes made at a time: in general, and when a caller waits. Each takes 0.06 ms, but 4 on
/// a busy computer.
pub(crate) const MOST_HOLES: usize = 1024;
pub(crate) const FEW_HOLES: usize = 16;
/// Scheduled paths that follow each batch while the tree shrinks.
pub(crate) const SWEEP_BATCH: u64 = 2;
/// Scheduled paths at a time when idle, and at the end of a session.
pub(crate) const SWEEP_IDLE: u64 = 32;
pub(crate) const SWEEP_LAST: u64 = 4096;

// Padding and pace

/// Operations in each batch of a padded operation.
pub(crate) const PAD_BATCH: usize = Least::BATCH;
/// A commit that becomes due within an operation waits for its end, but for at most this many
/// paths. Else it would fall between other batches if the same number came in other parts.
pub(crate) const PATHS_WITHIN: u64 = 512;
/// And for at most this much journal.
pub(crate) const JOURNAL_WITHIN: u64 = 2 << 20;

/// The least bytes that one tick makes durable.
pub(crate) const TICK_BYTES: usize = 64 << 10;
/// Ticks before a commit that carry out deferred writes, even if there are none.
pub(crate) const TICKS_BEFORE_COMMIT: usize = 4;

// The rest

/// Commit records, header, lock, and the rounding of file systems.
pub(crate) const BESIDE_SLAB: u64 = 1 << 20;

/// Buckets read at a time, in bytes, at most.
pub(crate) const VERIFIED_AT_ONCE: usize = 8 << 20;

/// What the store may keep of an object, for this budget.
pub(crate) fn most_kept(memory_bytes: usize) -> usize {
    MOST_KEPT.min(memory_bytes / 8)
}
