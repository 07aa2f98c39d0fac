//! A sequential engine's requests, as plain data. The adversary sees only the writes.

use super::layout::Extent;

/// A request to carry out before the next call of the engine.
#[derive(Debug)]
pub enum Step<'a> {
    /// Fill `into` with these parts of the disk, one after the other.
    Read {
        /// The parts, ascending.
        extents: &'a [Extent],
        /// The buffer, of their total length.
        into: &'a mut [u8],
    },
    /// Write these parts of the disk.
    Write {
        /// The parts, in the schedule's order.
        extents: &'a [Extent],
        /// Their bytes, of the same total length.
        from: &'a [u8],
    },
    /// No I/O: run [`super::Flushing::parts`].
    Work,
    /// Nothing is left to do.
    Done,
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
