//! The places of a new partition.

/// Objects with at most this capacity are meant to be replaced whole: 64 KiB.
pub const SMALL: u64 = 64 << 10;

/// The allowed changes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Once it exists, its length is its capacity. Unwritten bytes read as the partition's previous
    /// content. A write into it never changes the table of contents.
    Fixed,
    /// Any length up to its capacity. A sync after growth writes the table of contents, and waits
    /// for the disk a second time.
    Growing,
    /// As `Growing`, with two alternating places of that capacity, so that
    /// [`Objects::put`](crate::Objects::put) can replace it.
    Twice,
}

/// The place of an object in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionPlace<'a> {
    /// The object's name.
    pub name: &'a str,
    /// Its most bytes, at least one.
    pub capacity: u64,
    /// The allowed changes.
    pub kind: ChangeKind,
}

impl<'a> PartitionPlace<'a> {
    /// A place for an object of any length up to `capacity` bytes; two alternating ones if it is
    /// [`SMALL`].
    #[must_use]
    pub fn new(name: &'a str, capacity: u64) -> Self {
        let kind = if capacity <= SMALL { ChangeKind::Twice } else { ChangeKind::Growing };
        Self { name, capacity, kind }
    }

    /// A place for an object of exactly `capacity` bytes.
    #[must_use]
    pub fn fixed(name: &'a str, capacity: u64) -> Self {
        Self { name, capacity, kind: ChangeKind::Fixed }
    }
}

/// The treatment of existing content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep it and fail.
    Refuse,
    /// It may be lost.
    Overwrite,
}
