//! Where a log is read from: its own, or that of a lane.

use crate::trust::LogMark;
use oblivio_crypto::Tag;

/// A place from which the log can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// The number of a quantum.
    pub number: u64,
    /// The tag of the quantum before it.
    pub before: Tag,
}

impl From<LogPosition> for LogMark {
    fn from(mark: LogPosition) -> Self {
        Self { end: mark.number, tag: mark.before }
    }
}
