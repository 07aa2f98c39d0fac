//! The access time map (§6.3): when each block was written last, which is all it takes to know
//! where it is.
//!
//! It is kept in memory, four bytes for a block. It need not be stored: the buffer maps list what
//! is in every generation, so it is found again in one pass over them (§4.3).

use super::ids::Turn;
use crate::{BlockId, EngineError, Result};

/// What is known of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accessed {
    /// It was never written, nor discarded.
    Never,
    /// So long ago that it is in the last level, if anywhere.
    Settled,
    /// In this turn.
    At(Turn),
}

/// The access time of every block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessTimeMap(Vec<u32>);

const NEVER: u32 = 0;
const SETTLED: u32 = 1;
const FIRST: u32 = 2;

impl AccessTimeMap {
    /// The map of blocks that were never written.
    pub fn new(blocks: u64) -> Self {
        Self(vec![NEVER; blocks as usize])
    }

    /// The map of blocks of which nothing is known but that they may be in the last level.
    pub fn settled(blocks: u64) -> Self {
        Self(vec![SETTLED; blocks as usize])
    }

    /// What is known of a block.
    pub fn get(&self, block: BlockId) -> Accessed {
        match self.0[block.0 as usize] {
            NEVER => Accessed::Never,
            SETTLED => Accessed::Settled,
            time => Accessed::At(Turn(u64::from(time - FIRST))),
        }
    }

    /// Notes that a block was written.
    ///
    /// # Errors
    /// `Invalid` after 2^32 turns: at the default queue, more than an exbibyte written.
    pub fn set(&mut self, block: BlockId, time: Turn) -> Result<()> {
        let time = u32::try_from(time.0).ok().and_then(|time| time.checked_add(FIRST));
        let Some(time) = time else {
            return Err(EngineError::Invalid("the access times are used up".into()));
        };
        self.0[block.0 as usize] = time;
        Ok(())
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.0.len() * size_of::<u32>()
    }

    /// The map at rest, four bytes for a block, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|time| time.to_le_bytes()).collect()
    }

    /// The map that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// `State` when it is not for so many blocks.
    pub fn from_bytes(blocks: u64, bytes: &[u8]) -> Result<Self> {
        let (times, rest) = bytes.as_chunks::<4>();
        if times.len() as u64 != blocks || !rest.is_empty() {
            return Err(EngineError::State("an access time map of another size"));
        }
        Ok(Self(times.iter().map(|time| u32::from_le_bytes(*time)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_and_survive_rest() {
        let mut map = AccessTimeMap::new(3);
        map.set(BlockId(1), Turn(0)).expect("in range");
        map.set(BlockId(2), Turn(u64::from(u32::MAX) - 2)).expect("in range");
        assert!(map.set(BlockId(2), Turn(u64::from(u32::MAX) - 1)).is_err());
        let map = AccessTimeMap::from_bytes(3, &map.to_bytes()).expect("its own bytes");
        assert_eq!(map.get(BlockId(0)), Accessed::Never);
        assert_eq!(map.get(BlockId(1)), Accessed::At(Turn(0)));
        assert_eq!(map.get(BlockId(2)), Accessed::At(Turn(u64::from(u32::MAX) - 2)));
        assert!(AccessTimeMap::from_bytes(2, &map.to_bytes()).is_err());
        assert_eq!(AccessTimeMap::settled(1).get(BlockId(0)), Accessed::Settled);
    }
}
