//! What a caller may ask of an engine. Every kind of operation costs the same accesses.

use crate::BlockId;

/// One block operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockOp {
    /// The block it is for.
    pub id: BlockId,
    /// What is to be done with it.
    pub action: Action,
}

/// What is to be done with a block. The store cannot tell these apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Give the block's content.
    Read,
    /// Replace the whole content; shorter data is padded with zeros to a block.
    Write(Vec<u8>),
    /// Replace a part of the content (an absent block counts as zeros).
    Patch {
        /// Where in the block the bytes go.
        offset: usize,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Replace several parts, in order.
    Patches(Vec<(usize, Vec<u8>)>),
    /// Make the block absent; it reads as absent from then on.
    Remove,
}

impl Action {
    /// Where in the block the furthest written byte ends.
    pub fn end(&self) -> usize {
        let end = |offset: usize, bytes: &[u8]| offset.saturating_add(bytes.len());
        match self {
            Action::Read | Action::Remove => 0,
            Action::Write(bytes) => bytes.len(),
            Action::Patch { offset, bytes } => end(*offset, bytes),
            Action::Patches(patches) => {
                patches.iter().map(|(offset, bytes)| end(*offset, bytes)).max().unwrap_or(0)
            }
        }
    }

    /// Does to a block what a write or patch asks for; anything else leaves it alone. The block
    /// must reach to [`Self::end`].
    pub fn write_to(&self, block: &mut [u8]) {
        let mut patch = |offset: usize, bytes: &[u8]| {
            block[offset..offset + bytes.len()].copy_from_slice(bytes);
        };
        match self {
            Action::Read | Action::Remove => {}
            Action::Write(bytes) => {
                patch(0, bytes);
                block[bytes.len()..].fill(0);
            }
            Action::Patch { offset, bytes } => patch(*offset, bytes),
            Action::Patches(patches) => {
                patches.iter().for_each(|(offset, bytes)| patch(*offset, bytes));
            }
        }
    }
}

/// The answer to one operation: for [`Action::Read`] the content, `None` when the block is
/// absent; for all others `None`.
pub type BlockAnswer = Option<Vec<u8>>;
