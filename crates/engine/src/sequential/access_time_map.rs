//! The access time map (§6.3): the time of each block's last write. The time alone gives the
//! block's place.
//!
//! This map is in memory and takes two bytes per block (`time_pages` keeps it in the ORAM). It
//! keeps times modulo a number above every age that matters: a block in the last level is marked as
//! settled when the next sweep passes it. The map need not be stored. The buffer maps list every
//! generation's blocks, so one pass over them rebuilds it (§4.3).

use super::ids::Turn;
use crate::{BlockId, EngineError, Result};

/// The known access time of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accessed {
    /// Never written or discarded.
    Never,
    /// Old enough to be in the last level, if anywhere.
    Settled,
    /// In this turn.
    At(Turn),
    /// Nobody knows: its page was lost to damage.
    Unknown,
}

/// The access time of every block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessTimeMap(Codes);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Codes {
    Short(Vec<u16>),
    /// For sweeps of more than about 2^14 turns.
    Long(Vec<u32>),
}

pub(super) const NEVER: u32 = 0;
pub(super) const SETTLED: u32 = 1;
pub(super) const FIRST: u32 = 2;

impl AccessTimeMap {
    /// A map of blocks that were never written. `oldest` is the greatest age, in turns, of a block
    /// that is not settled.
    pub fn new(blocks: u64, oldest: u64) -> Self {
        let blocks = blocks as usize;
        let short = Self::code_bytes(oldest) == 2;
        Self(if short { Codes::Short(vec![0; blocks]) } else { Codes::Long(vec![0; blocks]) })
    }

    /// Bytes per block.
    pub fn code_bytes(oldest: u64) -> u64 {
        if oldest < u64::from(u16::MAX) - u64::from(FIRST) { 2 } else { 4 }
    }

    /// A map in which every block may be in the last level; nothing else is known.
    pub fn settled(blocks: u64, oldest: u64) -> Self {
        let mut map = Self::new(blocks, oldest);
        (0..blocks).for_each(|block| map.settle(BlockId(block)));
        map
    }

    /// The number of distinct times.
    fn modulus(&self) -> u64 {
        let codes = match &self.0 {
            Codes::Short(_) => u64::from(u16::MAX),
            Codes::Long(_) => u64::from(u32::MAX),
        };
        codes + 1 - u64::from(FIRST)
    }

    /// The access time of a block, seen from `now`.
    pub fn get(&self, block: BlockId, now: Turn) -> Accessed {
        let code = match &self.0 {
            Codes::Short(codes) => u32::from(codes[block.0 as usize]),
            Codes::Long(codes) => codes[block.0 as usize],
        };
        match code {
            NEVER => Accessed::Never,
            SETTLED => Accessed::Settled,
            time => {
                let (modulus, time) = (self.modulus(), u64::from(time - FIRST));
                let age = (now.0 % modulus + modulus - time) % modulus;
                Accessed::At(Turn(now.0.saturating_sub(age)))
            }
        }
    }

    /// Records a write of a block.
    pub fn set(&mut self, block: BlockId, time: Turn) {
        let code = (time.0 % self.modulus()) as u32 + FIRST;
        self.put(block, code);
    }

    /// Records that a block reached the last level.
    pub fn settle(&mut self, block: BlockId) {
        self.put(block, SETTLED);
    }

    fn put(&mut self, block: BlockId, code: u32) {
        match &mut self.0 {
            Codes::Short(codes) => codes[block.0 as usize] = code as u16,
            Codes::Long(codes) => codes[block.0 as usize] = code,
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Codes::Short(codes) => size_of_val(&codes[..]),
            Codes::Long(codes) => size_of_val(&codes[..]),
        }
    }

    /// The serialized map, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            Codes::Short(codes) => codes.iter().flat_map(|code| code.to_le_bytes()).collect(),
            Codes::Long(codes) => codes.iter().flat_map(|code| code.to_le_bytes()).collect(),
        }
    }

    /// Loads the bytes of [`Self::to_bytes`] from a map of the same size.
    ///
    /// # Errors
    /// `State` for another size.
    pub fn load(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.bytes() {
            return Err(EngineError::State("an access time map of another size"));
        }
        match &mut self.0 {
            Codes::Short(codes) => {
                let bytes = bytes.as_chunks().0.iter();
                *codes = bytes.map(|code| u16::from_le_bytes(*code)).collect();
            }
            Codes::Long(codes) => {
                let bytes = bytes.as_chunks().0.iter();
                *codes = bytes.map(|code| u32::from_le_bytes(*code)).collect();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_while_they_matter_and_survive_rest() {
        for (oldest, bytes) in [(1000, 2), (65_532, 2), (65_533, 4), (1 << 31, 4)] {
            for now in [0, 5, oldest, 65_535, 65_536, 1 << 32, (1 << 40) + 7] {
                let mut map = AccessTimeMap::new(4, oldest);
                assert_eq!(map.bytes(), 4 * bytes);
                let first = now.saturating_sub(oldest);
                map.set(BlockId(1), Turn(now));
                map.set(BlockId(2), Turn(first));
                map.settle(BlockId(3));
                let mut again = AccessTimeMap::new(4, oldest);
                again.load(&map.to_bytes()).expect("its own bytes");
                let known = |block| again.get(BlockId(block), Turn(now));
                assert_eq!(known(0), Accessed::Never);
                assert_eq!(known(1), Accessed::At(Turn(now)));
                assert_eq!(known(2), Accessed::At(Turn(first)), "{now} less {oldest}");
                assert_eq!(known(3), Accessed::Settled);
                assert!(again.load(&map.to_bytes()[1..]).is_err());
            }
        }
    }
}
