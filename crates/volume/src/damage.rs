//! A stored place that is not what was written. It has a second copy, so nothing is lost with it.

use std::fmt;
use std::ops::Range;

/// A stored place that is not what was written last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPlace {
    /// Its object.
    pub object: String,
    /// Its bytes in that object; none where the whole object is meant.
    pub bytes: Range<u64>,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for DamagedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, bytes, why } = self;
        match bytes.is_empty() {
            true => write!(f, "{object}: {why}"),
            false => write!(f, "{object}, bytes {} to {}: {why}", bytes.start, bytes.end - 1),
        }
    }
}
