//! What windows add to an engine: the shapes at its windows, and which part has which block.

use super::windows::Shapes;
use crate::{Address, Label};
use std::collections::BTreeMap;

/// The part that holds a block's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The block's label then. An access changes both.
    pub label: Label,
    /// The number of the commit.
    pub commit: u64,
    /// Which of its contents.
    pub slot: u64,
}

/// What windows add to an engine.
#[derive(Default)]
pub(super) struct WindowState {
    pub shapes: Shapes,
    /// The newest content of each block in memory that has not changed since.
    pub records: BTreeMap<Address, Record>,
    /// Accesses up to the last part.
    pub accesses: u64,
}
