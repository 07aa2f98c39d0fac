//! Repairs a disk. It has no names: its lost bytes are read as errors until they are written.

use super::backup::{Backup, FromBackup};
use super::consent::Talk;
use super::metadata::volume_in;
use super::outcome::{not_done, nothing, say_same, show, summary};
use crate::args::RepairArgs;
use crate::check;
use anyhow::Result;
use oblivio_volume::Volume;
use oblivio_volume::disk::Disk;
use oblivio_volume::fs::CheckReport;
use std::ops::Range;

/// Repairs it; `blocks` are those that are lost.
pub fn repair(
    args: &RepairArgs,
    mut volume: Volume,
    mut talk: Talk<'_>,
    (blocks, backup): (Vec<Range<u64>>, Option<Backup>),
) -> Result<()> {
    let mut backup = backup.filter(|_| talk.parts.damaged > 0 || !blocks.is_empty());
    let found_without = |volume: &Volume, ids: &[u64]| -> Result<CheckReport> {
        let lost = check::of_disk(volume, &without(&blocks, ids))?;
        Ok(CheckReport { lost, ..CheckReport::default() })
    };
    if let Some(backup) = &mut backup {
        backup.find_blocks(&mut volume, args.open.quiet)?;
    }
    let mut found = found_without(&volume, backup.as_ref().map_or(&[][..], Backup::same))?;
    show(args, &mut talk, &found, false)?;
    if backup.is_none() && talk.parts.damaged == 0 && (found.lost.is_empty() || !args.zeros) {
        drop(volume);
        return nothing(args, talk.parts);
    }
    if let Some(backup) = &backup {
        say_same(args, backup.same())?;
    }
    if !talk.goes_on(found.lost.is_empty())? {
        drop(volume);
        return not_done(args, talk.parts, &found, None);
    }
    let mut taken = FromBackup::default();
    if let Some(backup) = &mut backup {
        taken.put_back(backup, &mut volume, args.open.quiet)?;
        found = found_without(&volume, &taken.blocks)?;
    }
    let mut disk = Disk::open(Box::new(volume))?;
    for range in found.lost.iter().filter(|_| args.zeros).flat_map(|lost| &lost.ranges) {
        disk.write_zeroes(range.start, range.end - range.start, true)?;
    }
    taken.rewrite(volume_in(disk.into_blocks()?)?, args.open.quiet)?;
    summary(args, talk.parts, (&found, None), &taken)
}

/// What is left of ranges without these numbers, which are ascending.
fn without(ranges: &[Range<u64>], ids: &[u64]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut ids = ids.iter().copied().peekable();
    for Range { mut start, end } in ranges.iter().cloned() {
        while let Some(id) = ids.next_if(|id| *id < end) {
            left.extend((start < id).then_some(start..id));
            start = start.max(id + 1);
        }
        left.extend((start < end).then_some(start..end));
    }
    left
}
