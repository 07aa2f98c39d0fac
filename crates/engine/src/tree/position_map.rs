//! Position-map entries, on-chip and in position-map blocks (Freecursive §3.2, §5, §6.2).
//!
//! A map is a byte string of entries. The compressed format is the paper's, and that of volumes:
//! 64-byte groups of a 64-bit group counter and 32 individual counters of up to 14 bits. A block's
//! count is both counters together; its label is `PRF(block, count)`.

use super::geometry::read_u64;
use crate::Address;
use oblivio_crypto::Prf;

/// The encoding of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapFormat {
    /// A counter of its own (the flat counters of §6.2.2), for comparisons.
    Flat {
        /// Its bytes, 4 or 8. A volume outlives a counter of 4.
        bytes: usize,
    },
    /// Group and individual counters (§5.2).
    Compressed {
        /// Bits of an individual counter (the paper's β), 1 to 14.
        individual_bits: u32,
    },
}

/// Entries in a group (the paper's X′ for 64-byte blocks).
pub const GROUP_ENTRIES: usize = 32;
/// Bytes of a group.
pub const GROUP_BYTES: usize = 64;

/// The old and new value of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountChange {
    /// The value before: the block's current place.
    pub old: u64,
    /// The value after: the block's next place.
    pub new: u64,
}

/// The outcome of remapping one entry.
#[derive(Debug, PartialEq, Eq)]
pub struct Advance {
    /// The entry itself.
    pub counts: CountChange,
    /// After a roll-over of the group's counters (§5.2.2): index and counts of its other entries.
    pub siblings: Vec<(usize, CountChange)>,
}

impl MapFormat {
    /// Entries that fit in `bytes`, as a power of two (the paper's X).
    pub fn entries_in(self, bytes: usize) -> u64 {
        let entries = match self {
            MapFormat::Flat { bytes: each } => bytes / each,
            MapFormat::Compressed { .. } => bytes / GROUP_BYTES * GROUP_ENTRIES,
        };
        if entries == 0 { 0 } else { 1 << entries.ilog2() }
    }

    /// Bytes of `entries` entries.
    pub fn bytes_for(self, entries: u64) -> usize {
        let entries = entries as usize;
        match self {
            MapFormat::Flat { bytes } => entries * bytes,
            MapFormat::Compressed { .. } => entries.div_ceil(GROUP_ENTRIES) * GROUP_BYTES,
        }
    }

    /// Fills fresh entries from byte `from` on. Groups start at scattered counts, so that a
    /// sequential workload does not make all of them roll over together.
    pub fn fill_fresh(self, bytes: &mut [u8], from: usize, first: Address, prf: &Prf) {
        bytes[from..].fill(0);
        if let MapFormat::Compressed { .. } = self {
            for group in from / GROUP_BYTES..bytes.len() / GROUP_BYTES {
                let start = self.initial_count(first.plus(group * GROUP_ENTRIES), prf);
                for entry in 0..GROUP_ENTRIES {
                    self.set_individual(bytes, group * GROUP_ENTRIES + entry, start);
                }
            }
        }
    }

    /// The first count of block `id`.
    pub fn initial_count(self, id: Address, prf: &Prf) -> u64 {
        match self {
            MapFormat::Compressed { individual_bits } => {
                let group = id.0 & !(GROUP_ENTRIES as u64 - 1);
                prf.draw(STAGGER, group) & ((1 << individual_bits) - 1)
            }
            MapFormat::Flat { .. } => 0,
        }
    }

    /// Reads an entry.
    pub fn get(self, bytes: &[u8], index: usize) -> u64 {
        match self {
            MapFormat::Flat { bytes: each } => {
                let mut word = [0; 8];
                word[..each].copy_from_slice(&bytes[index * each..][..each]);
                u64::from_le_bytes(word)
            }
            MapFormat::Compressed { individual_bits } => {
                self.group(bytes, index) << individual_bits | self.individual(bytes, index)
            }
        }
    }

    /// Advances an entry to a value it never had.
    pub fn advance(self, bytes: &mut [u8], index: usize) -> Advance {
        let old = self.get(bytes, index);
        let mut siblings = Vec::new();
        match self {
            MapFormat::Flat { .. } => self.set(bytes, index, old.wrapping_add(1)),
            MapFormat::Compressed { individual_bits } => {
                let individual = self.individual(bytes, index) + 1;
                if individual >> individual_bits == 0 {
                    self.set_individual(bytes, index, individual);
                } else {
                    siblings = self.roll_over(bytes, index);
                }
            }
        }
        Advance { counts: CountChange { old, new: self.get(bytes, index) }, siblings }
    }

    /// Sets an entry to a count that it reached before; for the replay of a delta.
    pub fn set(self, bytes: &mut [u8], index: usize, count: u64) {
        match self {
            MapFormat::Flat { bytes: each } => {
                bytes[index * each..][..each].copy_from_slice(&count.to_le_bytes()[..each]);
            }
            MapFormat::Compressed { individual_bits } => {
                let at = index / GROUP_ENTRIES * GROUP_BYTES;
                let group = count >> individual_bits;
                if group != read_u64(bytes, at) {
                    bytes[at..at + 8].copy_from_slice(&group.to_le_bytes());
                    bytes[at + 8..at + GROUP_BYTES].fill(0);
                }
                self.set_individual(bytes, index, count & ((1 << individual_bits) - 1));
            }
        }
    }

    /// Increments the group counter and resets all individual counters.
    fn roll_over(self, bytes: &mut [u8], index: usize) -> Vec<(usize, CountChange)> {
        let first = index / GROUP_ENTRIES * GROUP_ENTRIES;
        let entries = first..(first + GROUP_ENTRIES);
        let olds: Vec<u64> = entries.clone().map(|entry| self.get(bytes, entry)).collect();
        let at = index / GROUP_ENTRIES * GROUP_BYTES;
        let group = read_u64(bytes, at).wrapping_add(1);
        bytes[at..at + 8].copy_from_slice(&group.to_le_bytes());
        bytes[at + 8..at + GROUP_BYTES].fill(0);
        let moved = entries.zip(olds).filter(|(entry, _)| *entry != index);
        moved
            .map(|(entry, old)| (entry, CountChange { old, new: self.get(bytes, entry) }))
            .collect()
    }

    fn group(self, bytes: &[u8], index: usize) -> u64 {
        read_u64(bytes, index / GROUP_ENTRIES * GROUP_BYTES)
    }

    fn bit_place(index: usize) -> (usize, u32) {
        let bit = index % GROUP_ENTRIES * 14;
        (index / GROUP_ENTRIES * GROUP_BYTES + 8 + bit / 8, (bit % 8) as u32)
    }

    fn individual(self, bytes: &[u8], index: usize) -> u64 {
        let (at, shift) = Self::bit_place(index);
        // 14 bits at an even bit offset lie in at most three bytes; the group has them.
        let mut word = u32::from(bytes[at]) | u32::from(bytes[at + 1]) << 8;
        if shift > 2 {
            word |= u32::from(bytes[at + 2]) << 16;
        }
        u64::from(word >> shift & 0x3fff)
    }

    fn set_individual(self, bytes: &mut [u8], index: usize, value: u64) {
        let (at, shift) = Self::bit_place(index);
        let mask = 0x3fffu32 << shift;
        let value = (value as u32) << shift;
        for byte in 0..if shift > 2 { 3 } else { 2 } {
            let kept = bytes[at + byte] & !((mask >> (8 * byte)) as u8);
            bytes[at + byte] = kept | (value >> (8 * byte)) as u8;
        }
    }
}

/// The PRF purpose under which groups draw their first count.
const STAGGER: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        /// Neither the entry nor its siblings ever repeat a count, and other groups do not change.
        #[test]
        fn counts_never_repeat(
            bits in 1u32..5,
            picks in proptest::collection::vec(0usize..64, 1..400),
        ) {
            let format = MapFormat::Compressed { individual_bits: bits };
            let mut bytes = vec![0; format.bytes_for(96)];
            format.fill_fresh(&mut bytes, 0, Address(0), &Prf::from_seed(1));
            let untouched = bytes[128..].to_vec();
            let mut seen: HashSet<(usize, u64)> = (0..96).map(|i| (i, format.get(&bytes, i))).collect();
            for pick in picks {
                let before: Vec<u64> = (0..96).map(|i| format.get(&bytes, i)).collect();
                let advance = format.advance(&mut bytes, pick);
                prop_assert_eq!(advance.counts.old, before[pick]);
                prop_assert!(seen.insert((pick, advance.counts.new)));
                for (entry, counts) in advance.siblings {
                    prop_assert_eq!(counts.old, before[entry]);
                    prop_assert_eq!(counts.new, format.get(&bytes, entry));
                    prop_assert!(seen.insert((entry, counts.new)));
                }
            }
            prop_assert_eq!(&bytes[128..], &untouched[..]);
        }
    }

    #[test]
    fn the_papers_sizes() {
        let compressed = MapFormat::Compressed { individual_bits: 14 };
        assert_eq!(compressed.entries_in(64), 32);
        assert_eq!(MapFormat::Flat { bytes: 4 }.entries_in(64), 16);
        assert_eq!(MapFormat::Flat { bytes: 8 }.entries_in(64), 8);
        assert_eq!(compressed.bytes_for(1 << 24), 32 << 20, "1 TiB of 64 KiB blocks in 32 MiB");
    }
}
