//! Operations on blocks.

use oblivio_engine::{Action, BlockId, BlockOp};

/// An operation that reads a block.
pub(super) fn read_op(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

/// An operation that replaces a block.
pub(super) fn write_op(id: u64, bytes: Vec<u8>) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(bytes) }
}

/// An operation that replaces parts of a block.
pub(super) fn patches_op(id: u64, mut parts: Vec<(usize, Vec<u8>)>) -> BlockOp {
    match parts.pop() {
        Some((offset, bytes)) if parts.is_empty() => patch_op(id, offset, bytes),
        last => {
            parts.extend(last);
            BlockOp { id: BlockId(id), action: Action::Patches(parts) }
        }
    }
}

/// An operation that replaces a part of a block.
pub(super) fn patch_op(id: u64, offset: usize, bytes: Vec<u8>) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Patch { offset, bytes } }
}
