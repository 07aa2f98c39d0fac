//! Damage: what is stored and is not what was written, and what was lost with it.
//!
//! Whoever has the store may damage it. So nothing here is trusted more than before: a damaged
//! place gives nothing, and what it carried is lost ([decision 0040](crate)).

use crate::{Error, Result};
use std::collections::HashSet;
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
    /// An object of `whole` bytes that has this length, or is not there.
    pub(crate) fn cut(object: &str, len: Option<u64>, whole: u64) -> Self {
        let (bytes, why) = match len {
            None => (0..0, "it is gone".to_owned()),
            Some(len) => (len..whole, format!("it ends after {len} bytes")),
        };
        Self { object: object.to_owned(), bytes, why }
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

impl LostBytes {
    /// All of something.
    pub fn all(what: impl Into<String>) -> Self {
        Self { what: what.into(), ranges: Vec::new() }
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

impl From<LostBytes> for Error {
    fn from(lost: LostBytes) -> Self {
        Error::Lost(lost)
    }
}

/// What an inspection of a whole volume found, beside the damaged places that it named one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    /// Units read and authenticated, those of [`VolumeInfo::verified`](crate::VolumeInfo), damaged
    /// ones included.
    pub count: u64,
    /// How many places are damaged.
    pub damaged: u64,
    /// The blocks that exist and are lost, ascending.
    pub lost: Vec<Range<u64>>,
}

/// The most places that a session remembers and names.
const MOST_NAMED: usize = 1 << 16;

/// The damaged places that a session met.
#[derive(Debug, Default)]
pub(crate) struct DamageLog {
    known: HashSet<(String, u64)>,
    new: Vec<DamagedPlace>,
}

impl DamageLog {
    /// Notes a place, unless it is known.
    pub fn note(&mut self, place: DamagedPlace) {
        let key = (place.object.clone(), place.bytes.start);
        if self.known.len() < MOST_NAMED && self.known.insert(key) {
            self.new.push(place);
        }
    }

    /// What was noted since the last call.
    pub fn take(&mut self) -> Vec<DamagedPlace> {
        std::mem::take(&mut self.new)
    }
}

/// The inspection of a volume that stops at the first damaged place.
///
/// # Errors
/// Those of `verified` that are not damage.
pub(crate) fn inspected(
    verified: Result<u64>,
    damaged: &mut dyn FnMut(DamagedPlace),
) -> Result<Inspected> {
    match verified {
        Ok(count) => Ok(Inspected { count, ..Inspected::default() }),
        Err(Error::Tampered(why)) => {
            damaged(DamagedPlace { object: "the volume".into(), bytes: 0..0, why });
            Ok(Inspected { damaged: 1, ..Inspected::default() })
        }
        Err(error) => Err(error),
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
    }
}
