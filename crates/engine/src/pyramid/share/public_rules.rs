//! What a shared volume does by public numbers only: what is remembered, and for how long.

use crate::pyramid::config::PyramidConfig;

/// The most sessions that may live at a time, and the most ended ones that are remembered.
pub const MOST_SESSIONS: usize = 4096;
/// Lists in a checkpoint are padded to a multiple of this.
pub(super) const LIST_STEP: usize = 256;
/// Bytes of a checkpoint in each of its objects, before sealing.
pub const PIECE_BYTES: usize = 1 << 18;
/// The most asks of one batch.
pub const MOST_OF_BATCH: usize = 64;
/// Asks that came before an earlier one of their session, and wait for it.
pub(super) const MOST_EARLY: usize = 1024;

impl PyramidConfig {
    /// Records whose tags a scribe remembers: 65,536 from a stash of 4,096 blocks on. A client that
    /// names an older head is refused.
    pub fn remembered_records(&self) -> usize {
        (16 << self.log_stash).clamp(1 << 10, 1 << 16)
    }

    /// Asks after which the scribe writes its state: 4 q. The server must keep the records since
    /// the last state but two: those of 8 q asks and more, and their answers.
    pub fn checkpoint_asks(&self) -> u64 {
        4 << self.log_stash
    }
}
