//! Lists of parts of the disk.

use crate::{Extent, Read, Step};

/// A read of these parts.
pub(super) fn read<'j>(extents: &'j [Extent], into: &'j mut [u8]) -> Step<'j> {
    Step::Read(Read { extents, into, shown: &[], scheduled: 0 })
}

/// The same parts, with adjacent ones joined. They must be ascending.
pub(super) fn joined(extents: impl IntoIterator<Item = Extent>) -> Vec<Extent> {
    let mut joined: Vec<Extent> = Vec::new();
    for extent in extents {
        match joined.last_mut() {
            Some(last) if last.end() == extent.offset => last.bytes += extent.bytes,
            _ => joined.push(extent),
        }
    }
    joined
}

/// Total bytes of the parts.
pub(super) fn total(extents: &[Extent]) -> usize {
    extents.iter().map(|extent| extent.bytes as usize).sum()
}
