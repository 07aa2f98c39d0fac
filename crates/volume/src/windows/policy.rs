//! Every number that was tuned, and what follows from public numbers.

use crate::core::MOST_OPS;

/// The most bytes that a batch reads, as a share of the memory: enough for as many requests as a
/// line takes at once.
pub(super) const BATCH_SHARE: usize = 8;
/// The most bytes of writes that wait to be carried out.
pub(super) const MOST_DEFERRED: usize = 4 << 20;
/// Batches whose intents go into one entry. Before the next entry of intents, the one before is
/// acknowledged: if this computer is lost, twice as many batches may be shown again.
pub(super) const GROUP: u64 = 4;
/// Checkpoints whose objects may be on their way while the volume goes on. The buckets of as many
/// windows are kept in memory.
pub(super) const MOST_PENDING: usize = 2;
/// A look at least so often while something is read, in seconds: a computer that slept must not go
/// on where another one began.
pub(super) const LOOK_SECONDS: u64 = 60;
/// Whether another computer asks for the volume is looked up so often, in seconds, whatever the
/// user does.
pub(super) const HEED_SECONDS: u64 = 15;
/// An intent is acknowledged within about a second.
pub(super) const SETTLE_SECONDS: u64 = 1;
/// Records, and their bytes, after which a sync commits: an opening replays them.
pub(super) const MOST_RECORDS: u64 = 2048;
pub(super) const MOST_RECORD_BYTES: u64 = 64 << 20;
/// Bytes read at a time to check all.
pub(super) const VERIFIED_AT_ONCE: usize = 16 << 20;

/// Operations in a batch whose paths have this many bytes.
pub(super) fn batch_limit(memory_bytes: usize, path_bytes: usize) -> usize {
    (memory_bytes / BATCH_SHARE / path_bytes.max(1)).clamp(1, MOST_OPS)
}
