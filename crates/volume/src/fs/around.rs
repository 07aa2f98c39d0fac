//! What a read gives where a part of its range is lost.

use crate::damage::LostBytes;
use crate::{Error, Result};
use std::ops::Range;

/// A range of a file, read around what is lost of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadAround {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes, with zeros for those that are lost.
    pub bytes: Vec<u8>,
    /// The file's bytes among them that are lost, ascending and apart.
    pub lost: Vec<Range<u64>>,
}

impl ReadAround {
    /// All of it.
    ///
    /// # Errors
    /// `Lost` names what is not there.
    pub fn whole(self) -> Result<Vec<u8>> {
        if self.lost.is_empty() { Ok(self.bytes) } else { Err(of_file(self.lost)) }
    }

    /// What stands before the first lost byte.
    ///
    /// # Errors
    /// `Lost` if that is the first one of all.
    pub fn front(mut self) -> Result<Vec<u8>> {
        match self.lost.first() {
            Some(lost) if lost.start <= self.offset => Err(of_file(self.lost)),
            Some(lost) => {
                self.bytes.truncate((lost.start - self.offset) as usize);
                Ok(self.bytes)
            }
            None => Ok(self.bytes),
        }
    }
}

/// Bytes of a file are lost; a caller that knows its path says it.
pub(super) fn of_file(ranges: Vec<Range<u64>>) -> Error {
    LostBytes::of_file(ranges).into()
}

/// The same for a caller that met a lost block of a file: it names these bytes, not the block.
pub(super) fn named(error: Error, ranges: impl FnOnce() -> Vec<Range<u64>>) -> Error {
    match error {
        Error::Lost(_) => of_file(ranges()),
        other => other,
    }
}
