//! What a leak may follow from.

/// What only the user's computer knows of the call that comes next.
#[derive(Clone, Debug, Default)]
pub(super) struct Truth {
    /// Whether the block is in memory anyway; whether it does not exist.
    pub hit: bool,
    pub absent: bool,
    /// Operations of the batch, and those of them for blocks that exist.
    pub asked: usize,
    pub real: usize,
    /// Whether something was written since the last window.
    pub changed: bool,
    /// Blocks that a part need not have; those in the stash, and when these are many.
    pub dead: u64,
    pub stash: usize,
    pub full: usize,
    pub dice: u64,
    /// Bytes of a bucket.
    pub bucket: usize,
}
