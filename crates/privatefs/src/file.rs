//! A file that this client has open.

use crate::dirty::Dirty;
use crate::types::Timestamp;

/// A file that this client has open.
#[derive(Default)]
pub struct OpenFile {
    pub opens: u64,
    /// Whether the inode names this session as a holder.
    pub held: bool,
    /// It left the table of open files; look there again.
    pub gone: bool,
    pub dirty: Dirty,
    /// When data was written last.
    pub written: Timestamp,
    /// Whether this client may have locks on it.
    pub locks: bool,
}
