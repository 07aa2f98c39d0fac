//! A volume in another place: its objects as they are, or its files in a new volume.
//!
//! Both can be interrupted at any time and run again. What is there already is read and compared,
//! not trusted. Before the end nothing at the new place passes for the whole.

mod files;
mod objects;

pub use files::{FileCounts, Files, MARK, unfinished};
pub use objects::{Claims, ObjectCounts, Objects};

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
