//! Operations on blocks, carried out in order: for a volume, and for a lane.

use crate::Result;
use oblivio_engine::{Action, BlockId, BlockOp, BlockOutcome, Lost};
use std::collections::HashMap;

/// Operations served together: their blocks may be in memory twice.
const TOGETHER: usize = 256;

/// Where operations on blocks are carried out.
pub(super) trait Serves {
    /// Bytes of a block.
    fn block_len(&self) -> usize;

    /// Reads blocks. A lost one fails by itself.
    fn read(&mut self, blocks: &[BlockId]) -> Result<Vec<BlockOutcome>>;

    /// Writes a block, or makes it absent.
    fn write(&mut self, block: BlockId, content: Option<Vec<u8>>) -> Result<()>;

    /// Does what an observer cannot tell from a write.
    fn write_nothing(&mut self) -> Result<()>;
}

/// Carries out operations in order.
pub(super) fn serve(space: &mut impl Serves, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
    let mut answers = Vec::with_capacity(ops.len());
    let mut ops = ops.into_iter().peekable();
    while ops.peek().is_some() {
        answers.extend(serve_together(space, ops.by_ref().take(TOGETHER).collect())?);
    }
    Ok(answers)
}

/// Reads the blocks that these operations need.
fn read_for(space: &mut impl Serves, ops: &[BlockOp]) -> Result<HashMap<BlockId, BlockOutcome>> {
    let mut seen = HashMap::new();
    for op in ops {
        let needed = !matches!(op.action, Action::Write(_) | Action::Remove);
        seen.entry(op.id).or_insert(needed);
    }
    let mut wanted: Vec<BlockId> =
        seen.into_iter().filter_map(|(id, needed)| needed.then_some(id)).collect();
    // By address, so that adjacent blocks are read in one piece.
    wanted.sort_unstable();
    let outcomes = space.read(&wanted)?;
    Ok(wanted.into_iter().zip(outcomes).collect())
}

fn serve_together(space: &mut impl Serves, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
    let block_bytes = space.block_len();
    let mut blocks = read_for(space, &ops)?;
    let last = last_uses(&ops);
    let mut outcomes = Vec::with_capacity(ops.len());
    for (at, BlockOp { id, action }) in ops.into_iter().enumerate() {
        let again = last[&id] != at;
        if action == Action::Read {
            let outcome = match again {
                true => blocks.get(&id).cloned(),
                false => blocks.remove(&id),
            };
            outcomes.push(outcome.unwrap_or(Ok(None)));
            continue;
        }
        let content = changed(blocks.remove(&id).unwrap_or(Ok(None)), action, block_bytes);
        if again {
            blocks.insert(id, content.clone());
        }
        outcomes.push(match content {
            Ok(content) => {
                space.write(id, content)?;
                Ok(None)
            }
            Err(Lost) => {
                // It stays lost, and the store sees a write as ever.
                space.write_nothing()?;
                Err(Lost)
            }
        });
    }
    Ok(outcomes)
}

/// Each block's last use in a list.
fn last_uses(ops: &[BlockOp]) -> HashMap<BlockId, usize> {
    ops.iter().enumerate().map(|(at, op)| (op.id, at)).collect()
}

/// The block after an operation. A lost one stays lost, unless all of it is written.
fn changed(block: BlockOutcome, action: Action, block_bytes: usize) -> BlockOutcome {
    match action {
        Action::Remove => Ok(None),
        Action::Write(mut bytes) => {
            bytes.resize(block_bytes, 0);
            Ok(Some(bytes))
        }
        patches => {
            let mut block = block?.unwrap_or_else(|| vec![0; block_bytes]);
            patches.write_to(&mut block);
            Ok(Some(block))
        }
    }
}
