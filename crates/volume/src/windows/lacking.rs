//! What the store lacks, as far as this session noticed.

use crate::damage::DamagedPlace;
use std::collections::BTreeMap;

/// Current objects that are gone or cut in the store, as it said itself.
#[derive(Default)]
pub(super) struct Lacking {
    /// With the bytes that are left of each.
    left: BTreeMap<String, u64>,
    /// Those that nobody was told of.
    new: Vec<DamagedPlace>,
}

impl Lacking {
    /// The bytes that are left of an object; `None` if nothing is known to be lacking.
    pub fn left(&self, object: &str) -> Option<u64> {
        self.left.get(object).copied()
    }

    /// Notes an object of `whole` bytes that has this length, or is not there.
    pub fn note(&mut self, object: &str, len: Option<u64>, whole: u64) {
        if self.left.insert(object.to_owned(), len.unwrap_or(0)).is_none() {
            self.new.push(DamagedPlace::cut(object, len, whole));
        }
    }

    /// Forgets an object that is no longer current.
    pub fn forget(&mut self, object: &str) {
        self.left.remove(object);
    }

    /// Notes any other damage.
    pub fn tell(&mut self, place: DamagedPlace) {
        self.new.push(place);
    }

    /// Those that were noted since the last call.
    pub fn take(&mut self) -> Vec<DamagedPlace> {
        std::mem::take(&mut self.new)
    }
}
