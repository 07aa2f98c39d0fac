//! Damage: what is stored and is not what was written, and what was lost with it.
//!
//! The store may damage what it holds. So nothing here is trusted more than before: a damaged
//! place gives nothing, and what it carried is lost.

use oblivio_store::StoreError;
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

impl DamagedPlace {
    /// Whether a second copy is read in its place. Of a lane there is none.
    pub fn has_copy(&self) -> bool {
        !self.object.starts_with("lane-")
    }
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

/// What was asked for and is lost to damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostBytes {
    /// What they belong to.
    pub what: String,
    /// Their places in it, ascending; none where all of it is lost.
    pub ranges: Vec<Range<u64>>,
}

const METADATA: &str = "the volume's metadata";

impl LostBytes {
    /// All of something.
    pub fn all(what: impl Into<String>) -> Self {
        Self { what: what.into(), ranges: Vec::new() }
    }

    /// Bytes of a file, without its path.
    pub fn of_file(ranges: Vec<Range<u64>>) -> Self {
        Self { what: "the file".into(), ranges: joined(ranges) }
    }

    /// What says where the blocks of files are, and what they are called.
    pub(crate) fn metadata() -> Self {
        Self::all(METADATA)
    }

    /// Whether it is the metadata of files that is lost.
    #[must_use]
    pub fn is_metadata(&self) -> bool {
        self.what == METADATA
    }

    /// How many bytes of a file these are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// A block of a space.
    pub(crate) fn block(id: u64) -> Self {
        Self::all(format!("block {id}"))
    }
}

impl fmt::Display for LostBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        for (index, range) in self.ranges.iter().enumerate() {
            let before = if index == 0 { ", bytes" } else { "," };
            write!(f, "{before} {} to {}", range.start, range.end - 1)?;
        }
        f.write_str(": lost to damage")
    }
}

/// What an inspection of a whole volume found, beside the damaged places that it named one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    /// Units read and authenticated, those of [`VolumeInfo::verified`](crate::VolumeInfo), damaged
    /// ones included.
    pub count: u64,
    /// Stored bytes of them.
    pub bytes: u64,
    /// How many places are damaged.
    pub damaged: u64,
    /// The blocks that exist and are lost, ascending. A part of an inspection does not know them
    /// all.
    pub lost: Vec<Range<u64>>,
}

/// The same ranges, ascending and apart.
pub(crate) fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
    ranges
}

/// Whether a read that failed so may have met a damaged place, and is no outage.
pub(crate) fn may_be_damage(error: &StoreError) -> bool {
    match error {
        StoreError::Short { .. } => true,
        StoreError::Io { .. } => !error.is_offline() && !error.is_refused(),
        _ => false,
    }
}

/// Adds a number to ascending ranges.
pub(crate) fn push(ranges: &mut Vec<Range<u64>>, number: u64) {
    match ranges.last_mut() {
        Some(last) if last.end == number => last.end += 1,
        _ => ranges.push(number..number + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_named_with_its_places() {
        assert_eq!(LostBytes::block(7).to_string(), "block 7: lost to damage");
        let mut ranges = Vec::new();
        [4, 5, 6, 9].into_iter().for_each(|number| push(&mut ranges, number));
        let lost = LostBytes { what: "a file".into(), ranges };
        assert_eq!(lost.to_string(), "a file, bytes 4 to 6, 9 to 9: lost to damage");
        assert_eq!(joined(vec![7..9, 1..3, 2..2, 9..12, 14..15]), [1..3, 7..12, 14..15]);
    }
}
