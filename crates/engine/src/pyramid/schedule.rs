//! The turns: which partition is merged after which ask, and how high. It depends on the number of
//! asks only.

use super::config::PyramidConfig;
use super::ids::{Height, Partition};

/// A turn of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionTurn {
    /// Whose turn it is.
    pub partition: Partition,
    /// The height of the table that it makes, out of all tables above it. A base takes the old one
    /// too.
    pub height: Height,
}

impl PyramidConfig {
    /// Turn number `turn`. It is due after `(turn + 1) * r` asks.
    ///
    /// One partition follows the other. A partition's turns go like a binary counter: every second
    /// one makes a level 0, every fourth a level 1, and so on. Neighbours are a turn apart in that
    /// count, so the merges of bases, which take longest, never come close together.
    pub fn turn(&self, turn: u64) -> PartitionTurn {
        let partition = turn & u64::from(self.partitions() - 1);
        let count = (turn >> self.log_partitions).wrapping_add(partition);
        let level = count.trailing_zeros();
        let height = if level < self.levels() { Height::Level(level) } else { Height::Base };
        PartitionTurn { partition: Partition(partition as u32), height }
    }

    /// How many turns are due after `asks` asks.
    pub fn turns_due(&self, asks: u64) -> u64 {
        asks / u64::from(self.turn_asks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_gone_when_it_is_made_again() {
        let config = PyramidConfig::new(64, 1 << 12, 64 << 8);
        assert_eq!((config.partitions(), config.levels()), (16, 3));
        let mut live = [[false; 3]; 16];
        let (mut bases, mut counts) = (Vec::new(), [0; 3]);
        for turn in 0..16 * 64 {
            let PartitionTurn { partition, height } = config.turn(turn);
            assert_eq!(u64::from(partition.0), turn % 16, "one after the other");
            let live = &mut live[partition.0 as usize];
            match height {
                Height::Base => {
                    *live = [false; 3];
                    bases.push(turn);
                }
                Height::Level(level) => {
                    let level = level as usize;
                    assert!(!live[level], "level {level} lives");
                    live[..level].fill(false);
                    live[level] = true;
                    counts[level] += 1;
                }
            }
        }
        assert_eq!(counts, [512, 256, 128]);
        assert_eq!(bases.len(), 128);
        // A base in eight turns of the mean.
        let gaps: Vec<u64> = bases.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (7..=15).contains(gap)), "{gaps:?}");
    }
}
