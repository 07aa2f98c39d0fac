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
