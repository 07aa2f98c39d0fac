//! A plain map of blocks, which every engine must answer like, and operations for both.

use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Bytes of a block.
pub const BYTES: usize = 64;

#[derive(Clone, Default)]
pub struct Plain(pub BTreeMap<u64, Vec<u8>>);

impl Plain {
    pub fn serve(&mut self, op: &BlockOp) -> BlockAnswer {
        let padded = |bytes: &[u8]| {
            let mut block = bytes.to_vec();
            block.resize(BYTES, 0);
            block
        };
        match &op.action {
            Action::Read => return self.0.get(&op.id.0).cloned(),
            Action::Write(bytes) => drop(self.0.insert(op.id.0, padded(bytes))),
            Action::Patch { offset, bytes } => {
                let block = self.0.entry(op.id.0).or_insert_with(|| padded(&[]));
                block[*offset..offset + bytes.len()].copy_from_slice(bytes);
            }
            Action::Patches(patches) => {
                let block = self.0.entry(op.id.0).or_insert_with(|| padded(&[]));
                for (offset, bytes) in patches {
                    block[*offset..offset + bytes.len()].copy_from_slice(bytes);
                }
            }
            Action::Remove => drop(self.0.remove(&op.id.0)),
        }
        None
    }
}

pub fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

pub fn write(id: u64, byte: u8) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(vec![byte; BYTES]) }
}

fn bytes_at() -> impl Strategy<Value = (usize, Vec<u8>)> {
    (0..BYTES / 2, proptest::collection::vec(any::<u8>(), 1..=BYTES / 2))
}

/// An operation on one of this many blocks. Half of them use few, so that they collide.
pub fn any_op(blocks: u64) -> impl Strategy<Value = BlockOp> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..=BYTES);
    let action = prop_oneof![
        3 => Just(Action::Read),
        3 => bytes.prop_map(Action::Write),
        2 => (0..BYTES).prop_flat_map(|offset| {
            proptest::collection::vec(any::<u8>(), 0..=BYTES - offset)
                .prop_map(move |bytes| Action::Patch { offset, bytes })
        }),
        1 => (bytes_at(), bytes_at()).prop_map(|(one, two)| Action::Patches(vec![one, two])),
        1 => Just(Action::Remove),
    ];
    (prop_oneof![0..8u64, 0..blocks], action)
        .prop_map(|(id, action)| BlockOp { id: BlockId(id), action })
}
