//! The parameters of a pyramid engine, and the sizes that follow. All of them are public.

use super::ids::Height;
use crate::{EngineError, Result};
use oblivio_crypto::SLOT_OVERHEAD;

/// Bytes of a slot before its block: name 24, label 8, stamp 8.
pub(super) const SLOT_HEAD: usize = 40;
/// The most turns whose merges may be open.
const MOST_OPEN: u32 = 16;
/// The fewest asks between two turns of one partition, times partitions: below, the bounds of stash
/// and tables do not hold.
const LEAST_TURN: u32 = 4;

/// The parameters. Blocks, asks in the stash, and partitions are powers of two, given as their
/// logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PyramidConfig {
    /// Bytes in a block.
    pub block_bytes: usize,
    /// Blocks that may exist (n).
    pub log_blocks: u32,
    /// Asks whose blocks the stash holds (q): the asks between two turns of a partition.
    pub log_stash: u32,
    /// Partitions (P).
    pub log_partitions: u32,
}

impl PyramidConfig {
    /// The parameters for at most `blocks` blocks and a stash of about `stash_bytes`.
    ///
    /// There are as few partitions as the variance of a base's reads allows: (n/P)/2P is at most
    /// the square root of r.
    pub fn new(block_bytes: usize, blocks: u64, stash_bytes: usize) -> Self {
        let log_blocks = blocks.max(1).next_power_of_two().ilog2().max(LEAST_TURN + 2);
        let fits = (stash_bytes / block_bytes).max(1).ilog2();
        let log_stash = fits.clamp(LEAST_TURN, log_blocks - 2);
        let enough = |p: &u32| 2 * (log_blocks.saturating_sub(1 + 2 * p)) <= log_stash - p;
        let log_partitions = (0..=log_stash - LEAST_TURN).find(enough);
        let log_partitions = log_partitions.unwrap_or(log_stash - LEAST_TURN);
        Self { block_bytes, log_blocks, log_stash, log_partitions }
    }

    /// Refuses parameters that cannot work.
    ///
    /// # Errors
    /// `Invalid` with the reason.
    pub fn validate(&self) -> Result<()> {
        let refuse = |why: &str| Err(EngineError::Invalid(why.into()));
        if !(64..=1 << 20).contains(&self.block_bytes) {
            return refuse("a block has 64 bytes to 1 MiB");
        }
        if self.log_blocks > 32 || self.log_stash + 2 > self.log_blocks {
            return refuse("a pyramid has at most 2^32 blocks, four times its stash at least");
        }
        if self.log_partitions + LEAST_TURN > self.log_stash {
            return refuse("a partition must have a turn after 16 asks or more");
        }
        Ok(())
    }

    /// Blocks that may exist (n).
    pub fn blocks(&self) -> u64 {
        1 << self.log_blocks
    }

    /// The number of partitions (P).
    pub fn partitions(&self) -> u32 {
        1 << self.log_partitions
    }

    /// Asks between two turns, of any partitions (r).
    pub fn turn_asks(&self) -> u32 {
        1 << (self.log_stash - self.log_partitions)
    }

    /// The number of levels above a base (H).
    pub fn levels(&self) -> u32 {
        self.log_blocks - 1 - self.log_stash
    }

    /// The most blocks that a turn takes from the stash (u). It exceeds the asks of a turn, so that
    /// the stash drains.
    pub fn taken(&self) -> u32 {
        let r = self.turn_asks();
        match r {
            0..32 => r * 3 / 2,
            32..64 => r * 5 / 4,
            _ => r * 9 / 8,
        }
    }

    /// The places for blocks in a table (C).
    pub fn capacity(&self, height: Height) -> u32 {
        match height {
            Height::Level(level) => self.taken() << level,
            Height::Base => {
                let mean = 1u32 << (self.log_blocks - self.log_partitions);
                mean + deviations(10, mean)
            }
        }
    }

    /// The reads of a table that its schedule expects.
    fn expected_reads(&self, height: Height) -> u32 {
        let level = match height {
            Height::Level(level) => level,
            Height::Base => self.levels(),
        };
        self.turn_asks() << level
    }

    /// The reads of a table after which its partition is merged before its turn.
    pub fn early_reads(&self, height: Height) -> u32 {
        let expected = self.expected_reads(height);
        expected + deviations(4, expected)
    }

    /// The turns whose merges may be open (K). No ask is shown while an older one is.
    pub fn open_turns(&self) -> u32 {
        (self.partitions() / 4).clamp(1, MOST_OPEN)
    }

    /// The asks that may come between the place of a merge and its switch.
    pub fn open_asks(&self) -> u64 {
        u64::from(self.open_turns()) * u64::from(self.turn_asks())
    }

    /// The reads of a table that are expected while its merge is open (m).
    fn reads_beside(&self) -> u32 {
        let of_one = self.open_asks().div_ceil(u64::from(self.partitions())) as u32;
        of_one.max(self.turn_asks() / 4)
    }

    /// The reads that a table has slots for (D).
    pub fn most_reads(&self, height: Height) -> u32 {
        let expected = self.expected_reads(height) + self.reads_beside();
        expected + deviations(6, expected)
    }

    /// Removals of whole owners that may be open.
    pub fn most_forgets(&self) -> u64 {
        // A base cycle has n/2 asks, and such a removal comes with two others.
        self.blocks() / 4
    }

    /// The slots of a table: places for blocks, and for each read.
    pub fn slots(&self, height: Height) -> u32 {
        self.capacity(height) + self.most_reads(height)
    }

    /// Bytes of a slot in the store.
    pub fn slot_bytes(&self) -> usize {
        SLOT_HEAD + self.block_bytes + SLOT_OVERHEAD
    }

    /// Bytes of all tables of a full pyramid at most, with those of open merges, which stay beside
    /// what replaces them until that is durable. They come to be that long with the number of asks,
    /// whatever is stored.
    pub fn most_table_bytes(&self) -> u64 {
        let of_partition = self.most_slots() / u64::from(self.partitions());
        let merged = 2 * u64::from(self.open_turns()) * of_partition;
        (self.most_slots() + merged) * self.slot_bytes() as u64
    }

    /// Slots of all tables of a full pyramid at most.
    pub fn most_slots(&self) -> u64 {
        let levels = (0..self.levels()).map(Height::Level).chain([Height::Base]);
        let each: u64 = levels.map(|height| u64::from(self.slots(height))).sum();
        each * u64::from(self.partitions())
    }
}

/// `many` standard deviations of a number of rare events with this mean, rounded up.
fn deviations(many: u32, mean: u32) -> u32 {
    // The root of many^2 * mean, in whole numbers: the same on every computer.
    let square = u64::from(many * many) * u64::from(mean);
    let root = square.isqrt();
    (root + u64::from(root * root < square)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_designs_sizes() {
        // n = 2^20 blocks of 4 KiB, a stash of 64 MiB.
        let config = PyramidConfig::new(4096, 1 << 20, 64 << 20);
        assert_eq!((config.log_stash, config.log_partitions), (14, 8));
        assert_eq!((config.levels(), config.turn_asks(), config.taken()), (5, 64, 72));
        assert_eq!(config.capacity(Height::Base), 4096 + 640);
        assert_eq!(config.capacity(Height::Level(3)), 72 << 3);
        // D = x + 6 sqrt(x) with x = r*2^z + r/4.
        assert_eq!(config.most_reads(Height::Level(0)), 80 + 54);
        assert_eq!(config.early_reads(Height::Level(0)), 64 + 32);
        assert_eq!(config.most_reads(Height::Base), 2064 + 273);
        config.validate().expect("it works");
    }

    #[test]
    fn whatever_is_asked_for_works() {
        for log in 0..=32 {
            for stash in [0, 1 << 16, 1 << 20, 1 << 26, 1 << 34] {
                for block_bytes in [64, 4096, 1 << 20] {
                    let config = PyramidConfig::new(block_bytes, 1 << log, stash);
                    config.validate().expect("it works");
                    assert!(config.blocks() >= 1 << log);
                    let heights = (0..config.levels()).map(Height::Level).chain([Height::Base]);
                    for height in heights {
                        // A transaction fits into a table that is not merged early.
                        assert!(config.most_reads(height) >= config.early_reads(height) + 8);
                    }
                }
            }
        }
    }

    /// A table has slots for the reads up to an early merge, and for those beside it: those of K
    /// turns, with six standard deviations. So a round seldom has to wait.
    #[test]
    fn a_table_lasts_until_its_merge_is_switched() {
        for log in [6, 8, 12, 16, 20, 24] {
            for log_stash in [4, 6, 10, 14] {
                let config = PyramidConfig::new(64, 1 << log, 64 << log_stash);
                let partitions = u64::from(config.partitions());
                let beside = config.open_asks().div_ceil(partitions);
                assert!(u64::from(config.reads_beside()) >= beside);
                assert!(
                    config.open_asks() * 4 <= u64::from(config.turn_asks()) * partitions.max(4)
                );
                for height in (0..config.levels()).map(Height::Level).chain([Height::Base]) {
                    let most = config.most_reads(height);
                    let expected = config.expected_reads(height) + beside as u32;
                    assert!(most >= expected + deviations(6, expected));
                    // After an early merge was begun, two deviations above what is expected.
                    let left = u64::from(most - config.early_reads(height));
                    assert!(left >= beside, "{left} of {beside}");
                }
            }
        }
    }

    #[test]
    fn deviations_round_up() {
        assert_eq!([deviations(4, 64), deviations(6, 80), deviations(1, 0)], [32, 54, 0]);
    }
}
