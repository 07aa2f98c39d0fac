//! Which blocks the records name, which of those are not there, and which can stand for lost ones.
//!
//! A volume may have more blocks than memory has room to list, so all of this is in ranges.

use super::records::Records;
use crate::damage::push;
use crate::fs::pool::Pool;
use crate::{BlockSpace, Error, Result};
use std::ops::Range;

/// Blocks asked for together.
const TOGETHER: u64 = 4096;

/// The blocks that records name, ascending. Each has one owner.
///
/// # Errors
/// `Tampered` if two name the same one, or one of the `old` metadata, or one that the volume cannot
/// have.
pub(super) fn owned(records: &Records, old: &[Range<u64>], ids: u64) -> Result<Vec<Range<u64>>> {
    let runs = records.segments.values().map(|run| (run.block, run.count));
    let packs = records.packs.values().map(|pack| (pack.block, 1));
    let mut owned = Vec::new();
    for (block, count) in runs.chain(packs) {
        let end = block.checked_add(count).filter(|end| *end <= ids);
        owned.push(block..end.ok_or_else(|| no_owner(block))?);
    }
    owned.sort_unstable_by_key(|range| range.start);
    let mut all: Vec<&Range<u64>> = owned.iter().chain(old).collect();
    all.sort_unstable_by_key(|range| range.start);
    match all.windows(2).find(|two| two[0].end > two[1].start) {
        Some(two) => Err(no_owner(two[1].start)),
        None => Ok(owned),
    }
}

fn no_owner(block: u64) -> Error {
    Error::Tampered(format!("block {block} has two owners, or none"))
}

/// Numbers as ranges; they ascend.
pub(super) fn ranges(numbers: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    numbers.for_each(|number| push(&mut ranges, number));
    ranges
}

pub(super) fn length(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// Blocks that nobody has, which can stand for lost ones.
#[derive(Debug, Default)]
pub(super) struct Spare {
    /// Those that do not exist: a read of one that is a hole is an error.
    absent: Vec<Range<u64>>,
    /// Those that are erased first. Most of them held what is lost now.
    left_over: Vec<Range<u64>>,
}

impl Spare {
    /// Finds `wanted` blocks that are not `taken`, or as many as there are.
    ///
    /// # Errors
    /// Those of a look at what exists.
    pub(super) fn find(pool: &mut Pool, taken: &[Range<u64>], wanted: u64) -> Result<Self> {
        let ids = pool.ids;
        let blocks = pool.blocks()?;
        let (mut spare, mut absent) = (Self::default(), 0);
        let mut taken = taken.to_vec();
        taken.sort_unstable_by_key(|range| range.start);
        let mut at = 0;
        for stop in taken.iter().cloned().chain(std::iter::once(ids..ids)) {
            while at < stop.start && absent < wanted {
                let some = at..stop.start.min(at + TOGETHER);
                at = some.end;
                for (id, is_there) in some.clone().zip(blocks.present(some)?) {
                    absent += u64::from(!is_there);
                    push(if is_there { &mut spare.left_over } else { &mut spare.absent }, id);
                }
            }
            at = at.max(stop.end);
        }
        Ok(spare)
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        length(&self.absent) + length(&self.left_over)
    }

    /// The blocks, and whether each must be erased.
    pub(super) fn blocks(self) -> impl Iterator<Item = (u64, bool)> {
        let absent = self.absent.into_iter().flatten().map(|id| (id, false));
        absent.chain(self.left_over.into_iter().flatten().map(|id| (id, true)))
    }
}

/// Takes those blocks of files for holes that do not exist: they stand for lost ones, and nothing
/// says so any more.
///
/// # Errors
/// Those of a look at what exists.
pub(super) fn find_holes(pool: &mut Pool, records: &mut Records) -> Result<()> {
    let blocks: &mut dyn BlockSpace = pool.blocks()?;
    let written = records.segments.values().filter(|run| !run.unwritten).map(|run| run.blocks());
    for Range { mut start, end } in written {
        while start < end {
            let some = start..end.min(start + TOGETHER);
            start = some.end;
            let present = some.clone().zip(blocks.present(some)?);
            records.holes.extend(present.filter(|(_, is_there)| !is_there).map(|(id, _)| id));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::segments::Extent;

    #[test]
    fn no_block_has_two_owners() {
        let run = |block, count| Extent { segment: 0, block, count, unwritten: false };
        let mut records = Records::default();
        records.segments.insert((2, 0), run(5, 3));
        let (metadata, file) = (1..2, 5..8);
        let old = [metadata];
        assert_eq!(owned(&records, &old, 8).unwrap(), [file]);
        assert!(owned(&records, &old, 7).is_err(), "beyond the volume");
        records.segments.insert((3, 0), run(7, 1));
        assert!(owned(&records, &old, 8).is_err(), "a file's");
        records.segments.insert((3, 0), run(1, 1));
        assert!(owned(&records, &old, 8).is_err(), "the metadata's");
        records.segments.insert((3, 0), run(6, u64::MAX));
        assert!(owned(&records, &old, 8).is_err(), "no volume has so many");
        // As many blocks as a volume can have take no memory.
        records.segments.insert((3, 0), run(8, u64::MAX - 8));
        assert_eq!(length(&owned(&records, &old, u64::MAX).unwrap()), u64::MAX - 5);
    }
}
