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
    /// Make the block absent; it reads as absent from then on.
    Remove,
}

/// The answer to one operation: for [`Action::Read`] the content, `None` when the block is
/// absent; for all others `None`.
pub type BlockAnswer = Option<Vec<u8>>;
