//! A short list of numbers in a block.
//!
//! ```text
//! stamp 16 | count 2 | { id 16 } ...
//! ```

use crate::error::Result;
use crate::layout::BlockCursor;
use crate::transactions::{Action, Compare, Owner};

/// A list and the stamp that it was read with.
pub struct StampedList {
    pub stamp: Option<[u8; 16]>,
    pub ids: Vec<Owner>,
}

impl StampedList {
    pub fn decode(block: Option<&[u8]>) -> Result<Self> {
        let Some(block) = block else { return Ok(Self { stamp: None, ids: Vec::new() }) };
        let mut at = BlockCursor(block);
        let (stamp, count) = (Some(at.array()?), at.u16()?);
        let ids = (0..count).map(|_| at.array()).collect::<Result<_>>()?;
        Ok(Self { stamp, ids })
    }

    pub fn write(&self, stamp: [u8; 16]) -> Action {
        let mut block = stamp.to_vec();
        block.extend((self.ids.len() as u16).to_le_bytes());
        self.ids.iter().for_each(|id| block.extend(id));
        Action::Write(block)
    }

    pub fn unchanged(&self) -> Compare {
        match self.stamp {
            Some(stamp) => Compare::Bytes(0, stamp.to_vec()),
            None => Compare::Absent,
        }
    }

    pub fn has_room(&self, block_bytes: usize) -> bool {
        18 + 16 * (self.ids.len() + 1) <= block_bytes
    }
}
