//! The operations of an engine. Every kind costs the same accesses.

use crate::BlockId;
pub use oblivio_privatefs::Action;

/// One block operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockOp {
    /// Its block.
    pub id: BlockId,
    /// The action on that block.
    pub action: Action,
}

/// The answer to one operation. [`Action::Read`] gets the content, or `None` for an absent block;
/// every other action gets `None`.
pub type BlockAnswer = Option<Vec<u8>>;

/// The block exists, and its content is lost: what carried it was damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("lost to damage")]
pub struct Lost;

/// The outcome of one operation. A [`Action::Patch`] of a lost block is lost as well, and so is the
/// block still.
pub type BlockOutcome = Result<BlockAnswer, Lost>;
