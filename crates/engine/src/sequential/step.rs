//! What a sequential engine wants done, as plain data. The adversary sees the writes only.

use super::layout::Extent;

/// What is to be done before the engine is called again.
#[derive(Debug)]
pub enum Step<'a> {
    /// Fill `into` with these parts of the disk, one after the other.
    Read {
        /// The parts, ascending.
        extents: &'a [Extent],
        /// As many bytes as they have together.
        into: &'a mut [u8],
    },
    /// Write these parts of the disk.
    Write {
        /// The parts, in the schedule's order.
        extents: &'a [Extent],
        /// As many bytes as they have together.
        from: &'a [u8],
    },
    /// Nothing: there is [`super::Flushing::parts`] to be done.
    Work,
    /// Nothing is left to do.
    Done,
}

/// The same parts in fewer pieces: neighbours become one. They must be ascending.
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

/// Bytes of all parts together.
pub(super) fn total(extents: &[Extent]) -> usize {
    extents.iter().map(|extent| extent.bytes as usize).sum()
}
