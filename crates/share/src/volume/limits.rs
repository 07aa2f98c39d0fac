//! Bounds of the server's own, which no client need know.

/// Bytes of asks that wait for their batch.
pub const MOST_PENDING_BYTES: usize = 256 << 20;
/// Those of one device, by their number.
pub const MOST_OF_DEVICE: usize = 8192;
/// Their bytes.
pub const MOST_BYTES_OF_DEVICE: usize = 64 << 20;
/// Answers to asks that are in no batch.
pub const MOST_REFUSED: usize = 1024;
/// Bytes of a batch's notice.
pub const MOST_NOTICE_BYTES: usize = 8 << 10;
/// Notices that are kept, in memory.
pub const MOST_NOTICES: usize = 1024;
/// Objects whose pieces come at the same time.
pub const MOST_PARTIAL: usize = 64;
/// Batches without durable answers.
pub const MOST_UNANSWERED: usize = 64;
/// What tables, answers and checkpoints may take beyond a quota, so that what was shown before it
/// was used up can be ended in order.
pub const BEYOND_QUOTA: u64 = 64 << 20;
/// What stays free of the disk, for the catalog.
pub const LEAST_FREE: u64 = 8 << 20;
