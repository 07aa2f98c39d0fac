//! What a store can do: found out or stated by the store itself, never assumed.

/// What a store can do beyond its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Of several that create one object, one succeeds.
    pub creates_exclusively: bool,
    /// Parts of an object can be written over, so a crash may leave one that was
    /// [begun](crate::Objects::begin) with its length and without its bytes.
    pub writes_over: bool,
}

impl Capabilities {
    /// A disk's, and memory's.
    pub const OVER: Self = Self { creates_exclusively: true, writes_over: true };
}
