//! The account of a file system that pads.

/// Padding due with the next commit.
#[derive(Default)]
pub(super) struct Owed {
    /// Whether the space pads.
    pub(super) pads: bool,
    /// Operations since tails were last placed that may have left one.
    pub(super) unplaced: u64,
    /// Blocks freed since the last commit.
    pub(super) freed: u64,
    /// Further blocks for long names and values.
    pub(super) long: u64,
}

impl Owed {
    pub(super) fn new(pads: bool) -> Self {
        Self { pads, ..Self::default() }
    }
}
