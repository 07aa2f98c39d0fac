//! The operations of an engine. Every kind costs the same accesses.

use crate::BlockId;

/// One block operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockOp {
    /// Its block.
    pub id: BlockId,
    /// The action on that block.
    pub action: Action,
}

/// An action on a block. The store cannot tell them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Return the block's content.
    Read,
    /// Replace the whole content. Zeros pad shorter data to a block.
    Write(Vec<u8>),
    /// Replace a part of the content. An absent block counts as zeros.
    Patch {
        /// Offset in the block.
        offset: usize,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Replace several parts, in order.
    Patches(Vec<(usize, Vec<u8>)>),
    /// Make the block absent. Later reads find it absent.
    Remove,
}

impl Action {
    /// End of the furthest byte written, as an offset in the block.
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

    /// Applies a write or patch to a block; other actions leave the block alone. The block must
    /// reach to [`Self::end`].
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

/// The answer to one operation. [`Action::Read`] gets the content, or `None` for an absent block;
/// every other action gets `None`.
pub type BlockAnswer = Option<Vec<u8>>;
