//! A volume in another place: its objects as they are, or its files in a new volume.
//!
//! Both can be interrupted at any time and run again. What is there already is read and compared,
//! not trusted. Before the end nothing at the new place passes for the whole.

mod files;
mod objects;

pub use files::{FileCounts, FilesCopy, MARK, unfinished};
pub use objects::{ClaimForm, ObjectCopy, ObjectCounts};

use oblivio_store::is_of_trial;
use oblivio_volume::{is_header, is_of_session};

/// What has been moved so far, for a person who waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes that are at the new place.
    pub bytes: u64,
    /// All bytes, where that is known.
    pub total: Option<u64>,
}

/// Hears of it.
pub type Hear<'a> = &'a mut dyn FnMut(Moved);

/// The first of the objects at a new place that is neither a volume's nor left by a trial of the
/// service. Objects of a volume that did not come about, or of a copy, do no harm.
#[must_use]
pub fn stranger(listed: &[(String, u64)]) -> Option<&str> {
    let own = |name: &str| is_of_session(name) || is_of_trial(name);
    listed.iter().map(|it| it.0.as_str()).find(|name| !is_header(name) && !own(name))
}
