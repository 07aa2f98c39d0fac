//! Stores whole tables in a new metadata file, beside the damaged one.
//!
//! The root names the old file until the commit at the end, and nothing that it names is written
//! over before. So a crash leaves the damaged volume as it was, or the new one.

use super::mend::Mended;
use super::records::Records;
use crate::fs::holes::HOLES;
use crate::fs::metadata_file::MetadataFile;
use crate::fs::pool::Pool;
use crate::fs::state::State;
use crate::fs::tables::{DIRENTS, ORPHANS, SEGMENTS, XATTRS, encode};
use crate::{BlockSpace, Error, Result};
use std::collections::BTreeSet;
use std::ops::Range;

/// The blocks that records name. Each has one owner.
///
/// # Errors
/// `Tampered` if two name the same one, or one that the volume cannot have.
pub(super) fn owned(records: &Records, old: &BTreeSet<u64>, ids: u64) -> Result<BTreeSet<u64>> {
    let mut owned = BTreeSet::new();
    let runs = records.segments.values().map(|run| run.blocks());
    let packs = records.packs.values().map(|pack| pack.block..pack.block.saturating_add(1));
    for range in runs.chain(packs) {
        for block in range {
            if block >= ids || old.contains(&block) || !owned.insert(block) {
                return Err(Error::Tampered(format!("block {block} has two owners, or none")));
            }
        }
    }
    Ok(owned)
}

/// Up to `most` blocks that nobody has and that do not exist. They can stand for lost ones.
pub(super) fn absent(pool: &mut Pool, taken: &BTreeSet<u64>, most: u64) -> Result<Vec<Range<u64>>> {
    let ids = pool.ids;
    let blocks = pool.blocks()?;
    let (mut absent, mut left) = (Vec::new(), most);
    for id in 0..ids {
        if left == 0 {
            break;
        }
        if !taken.contains(&id) && !blocks.exists(id) {
            crate::damage::push(&mut absent, id);
            left -= 1;
        }
    }
    Ok(absent)
}

/// Stores these tables, in place of those of the old file.
pub(super) fn rebuild(
    mut pool: Pool,
    mended: Mended,
    absent: Vec<Range<u64>>,
) -> Result<Box<dyn BlockSpace>> {
    let old: BTreeSet<u64> = pool.metadata.block_ids().collect();
    let blocks = pool.take_blocks();
    let blocks = blocks.ok_or_else(|| Error::Closed("the volume was closed".into()))?;
    let file = MetadataFile::new(blocks.block_bytes(), blocks.cache_budget() / 4);
    let mut pool = Pool::new(blocks, file);
    // What is stored already may exceed a limit that was lowered.
    pool.allocator.set_capacity(pool.ids);
    for id in owned(&mended.records, &old, pool.ids)?.into_iter().chain(old.iter().copied()) {
        pool.allocator.claim(id);
    }
    let mut free = absent.into_iter().flatten();
    let mut voids = Vec::new();
    for (ino, segments) in &mended.voids {
        let placed: Vec<(u64, u64)> = segments.iter().cloned().flatten().zip(&mut free).collect();
        placed.iter().for_each(|(_, block)| pool.allocator.claim(*block));
        voids.push((*ino, placed));
    }
    pool.allocator.hold_all();
    old.iter().for_each(|id| pool.allocator.release(*id));
    let highest = pool.allocator.high_water().max(old.last().map_or(0, |last| last + 1));
    pool.reserve_for(highest.checked_sub(1))?;
    let mut state = State::over(pool)?;
    state.counters = mended.counters;
    state.begin()?;
    let filled = fill(&mut state, &mended.records, &voids);
    state.settle(filled)?;
    let finished = state.finish();
    state.settle(finished)
}

fn fill(state: &mut State, records: &Records, voids: &[(u64, Vec<(u64, u64)>)]) -> Result<()> {
    if !state.has_room_for_metadata() {
        return Err(state.pool.lock().full());
    }
    let meta = &state.meta;
    meta.create_tables()?;
    for (ino, inode) in &records.inodes {
        meta.put_inode(*ino, inode)?;
    }
    {
        let mut orphans = meta.open(ORPHANS)?;
        for (ino, _) in records.inodes.iter().filter(|(_, inode)| inode.nlink == 0) {
            orphans.insert(*ino, ())?;
        }
    }
    {
        let mut names = meta.open(DIRENTS)?;
        for ((parent, name), dirent) in &records.dirents {
            names.insert((*parent, name.as_slice()), encode(dirent)?.as_slice())?;
        }
    }
    {
        let mut segments = meta.open(SEGMENTS)?;
        for (key, run) in &records.segments {
            segments.insert(*key, run.stored())?;
        }
    }
    {
        let mut xattrs = meta.open(XATTRS)?;
        for ((ino, name), value) in &records.xattrs {
            xattrs.insert((*ino, name.as_slice()), encode(value)?.as_slice())?;
        }
    }
    for (id, pack) in &records.packs {
        meta.put_pack(*id, None, pack, state.block_bytes)?;
    }
    for (ino, placed) in voids {
        meta.map_segments(*ino, placed, false)?;
    }
    {
        let mut holes = meta.open(HOLES)?;
        let voids = voids.iter().flat_map(|(_, placed)| placed.iter().map(|(_, block)| block));
        for block in records.holes.iter().chain(voids) {
            holes.insert(*block, ())?;
        }
    }
    state.progress.operations += 1;
    state.commit()
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
        let old = BTreeSet::from([1]);
        assert_eq!(owned(&records, &old, 8).unwrap(), BTreeSet::from([5, 6, 7]));
        assert!(owned(&records, &old, 7).is_err(), "beyond the volume");
        records.segments.insert((3, 0), run(7, 1));
        assert!(owned(&records, &old, 8).is_err(), "a file's");
        records.segments.insert((3, 0), run(1, 1));
        assert!(owned(&records, &old, 8).is_err(), "the metadata's");
    }
}
