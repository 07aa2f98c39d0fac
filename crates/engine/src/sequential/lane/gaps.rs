//! The flushes that a lane missed: which outer flush each of its own was made beside.

use crate::sequential::ids::Flush;
use crate::wire::{Reader, Writer};
use crate::{EngineError, Result};

/// The lane missed flushes before one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    /// The lane's flush after them.
    before: u64,
    /// How many outer ones it missed.
    missed: u64,
}

/// The gaps of a lane, as far back as anything that it needs was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps {
    /// Outer flushes that it missed before all of them.
    forgotten: u64,
    gaps: Vec<Gap>,
}

/// Beyond any real count: a larger number could overflow in additions.
const MOST: u64 = 1 << 56;

impl Gaps {
    /// The outer flush beside which the lane makes this one of its own.
    pub fn outer(&self, own: Flush) -> Flush {
        let gaps = self.gaps.iter().filter(|gap| gap.before <= own.0);
        Flush(own.0 + self.forgotten + gaps.map(|gap| gap.missed).sum::<u64>())
    }

    /// How many outer flushes it missed since one of its own.
    pub fn missed_since(&self, own: Flush) -> u64 {
        self.gaps.iter().filter(|gap| gap.before > own.0).map(|gap| gap.missed).sum()
    }

    /// It missed this many before its next flush, of which nothing is written yet.
    pub fn add(&mut self, next: Flush, missed: u64) {
        match self.gaps.last_mut().filter(|gap| gap.before == next.0) {
            Some(gap) => gap.missed += missed,
            None => self.gaps.push(Gap { before: next.0, missed }),
        }
    }

    /// Forgets those before one of its own flushes, and the oldest beyond `room`: nobody finds any
    /// more what it wrote before them.
    pub fn forget(&mut self, own: Flush, room: usize) {
        let old = self.gaps.iter().take_while(|gap| gap.before <= own.0).count();
        let old = old.max(self.gaps.len().saturating_sub(room));
        self.forgotten += self.gaps.drain(..old).map(|gap| gap.missed).sum::<u64>();
    }

    /// Bytes with room for this many.
    pub fn bytes(room: usize) -> usize {
        16 + room * 16
    }

    /// Writes them, padded to their room.
    pub fn save(&self, out: &mut Writer<'_>, room: usize) {
        out.words(&[self.forgotten, self.gaps.len() as u64]);
        self.gaps.iter().for_each(|gap| out.words(&[gap.before, gap.missed]));
        out.zeros((room - self.gaps.len()) * 16);
    }

    /// Reads what [`Self::save`] wrote.
    ///
    /// # Errors
    /// `State` for what it did not write.
    pub fn load(input: &mut Reader<'_>, room: usize) -> Result<Self> {
        let broken = || EngineError::State("a lane's gaps make no sense");
        let (forgotten, count) = (input.u64()?, input.u64()?);
        let mut gaps = Vec::new();
        for _ in 0..room {
            gaps.push(Gap { before: input.u64()?, missed: input.u64()? });
        }
        let count =
            usize::try_from(count).ok().filter(|count| *count <= room).ok_or_else(broken)?;
        gaps.truncate(count);
        let ordered = gaps.is_sorted_by(|one, two| one.before < two.before);
        let small = gaps.iter().all(|gap| gap.before < MOST && gap.missed < MOST);
        match ordered && small && forgotten < MOST {
            true => Ok(Self { forgotten, gaps }),
            false => Err(broken()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_shift_what_comes_after_them() {
        let mut gaps = Gaps::default();
        gaps.add(Flush(0), 7);
        gaps.add(Flush(4), 3);
        gaps.add(Flush(4), 2);
        gaps.add(Flush(9), 10);
        let outer: Vec<u64> = [0, 3, 4, 8, 9, 20].map(|own| gaps.outer(Flush(own)).0).into();
        assert_eq!(outer, [7, 10, 16, 20, 31, 42]);
        let missed: Vec<u64> = [0, 3, 4, 8, 9].map(|own| gaps.missed_since(Flush(own))).into();
        assert_eq!(missed, [15, 15, 10, 10, 0]);
        let mut bytes = Vec::new();
        gaps.save(&mut Writer(&mut bytes), 5);
        assert_eq!(bytes.len(), Gaps::bytes(5));
        assert_eq!(Gaps::load(&mut Reader(&bytes), 5).expect("its own"), gaps);
        gaps.forget(Flush(4), 5);
        assert_eq!((gaps.gaps.len(), gaps.outer(Flush(20)).0, gaps.outer(Flush(8)).0), (1, 42, 20));
        gaps.add(Flush(12), 1);
        gaps.forget(Flush(4), 1);
        assert_eq!((gaps.gaps.len(), gaps.outer(Flush(20)).0), (1, 43));
    }
}
