//! What a session changed in the end. A file system that is only read writes marks and takes them
//! back; that is no reason for an epoch.

use crate::Result;
use crate::block::BlockSpace;
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp};
use std::collections::BTreeMap;

/// Blocks whose first content is kept to be compared: more were not written by mistake.
const MOST: usize = 64;

/// The changes since an epoch or an opening.
pub struct Changes {
    /// What was in the blocks that were written.
    first: BTreeMap<u64, BlockAnswer>,
    root: Vec<u8>,
    many: bool,
}

fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

impl Changes {
    /// None yet, of a volume with this root.
    pub fn none(root: &[u8]) -> Self {
        Self { first: BTreeMap::new(), root: root.to_vec(), many: false }
    }

    /// Notes operations before they are carried out. Whether any of them writes.
    ///
    /// # Errors
    /// Those of the volume.
    pub fn note(&mut self, volume: &mut dyn BlockSpace, ops: &[BlockOp]) -> Result<bool> {
        let writes = || ops.iter().filter(|op| op.action != Action::Read).map(|op| op.id.0);
        if !self.many {
            let mut new: Vec<u64> = writes().filter(|id| !self.first.contains_key(id)).collect();
            new.sort_unstable();
            new.dedup();
            self.many = self.first.len() + new.len() > MOST;
            if !self.many {
                let found = volume.access(new.iter().copied().map(read).collect())?;
                self.first.extend(new.into_iter().zip(found));
            }
        }
        Ok(writes().next().is_some())
    }

    /// Whether the volume is another one now.
    ///
    /// # Errors
    /// Those of the volume.
    pub fn any(&mut self, volume: &mut dyn BlockSpace) -> Result<bool> {
        if self.many || volume.root() != self.root {
            return Ok(true);
        }
        let found = volume.access(self.first.keys().copied().map(read).collect())?;
        // Once changed, it stays so until the next epoch: an epoch may be on its way.
        self.many = found.iter().ne(self.first.values());
        Ok(self.many)
    }
}
