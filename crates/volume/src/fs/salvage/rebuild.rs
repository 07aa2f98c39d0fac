//! Stores whole tables in a new metadata file, beside the damaged one.
//!
//! The root names the old file until the commit at the end, and nothing that it names is written
//! over before. So a crash leaves the damaged volume as it was, or the new one.

use super::mend::Mended;
use super::places::{Spare, owned, ranges};
use super::records::Records;
use crate::fs::holes::HOLES;
use crate::fs::metadata_file::MetadataFile;
use crate::fs::pool::Pool;
use crate::fs::state::State;
use crate::fs::tables::{DIRENTS, ORPHANS, SEGMENTS, XATTRS, encode};
use crate::{BlockSpace, Error, Result};

/// A file's segments, with the blocks that stand for lost ones.
type Voids = Vec<(u64, Vec<(u64, u64)>)>;

/// Stores these tables, in place of those of the old file.
pub(super) fn rebuild(mut pool: Pool, mended: Mended, spare: Spare) -> Result<Box<dyn BlockSpace>> {
    let old = ranges(pool.metadata.block_ids());
    let blocks = pool.take_blocks();
    let blocks = blocks.ok_or_else(|| Error::Closed("the volume was closed".into()))?;
    let file = MetadataFile::new(blocks.block_bytes(), blocks.cache_budget() / 4);
    let mut pool = Pool::new(blocks, file);
    // What is stored already may exceed a limit that was lowered.
    pool.allocator.set_capacity(pool.ids);
    let owned = owned(&mended.records, &old, pool.ids)?;
    owned.into_iter().chain(old.iter().cloned()).flatten().for_each(|id| pool.allocator.claim(id));
    let (mut free, mut left_over) = (spare.blocks(), Vec::new());
    let mut voids = Voids::new();
    for (ino, segments) in &mended.voids {
        let mut placed = Vec::new();
        for (segment, (block, exists)) in segments.iter().cloned().flatten().zip(&mut free) {
            pool.allocator.claim(block);
            left_over.extend(exists.then_some(block));
            placed.push((segment, block));
        }
        voids.push((*ino, placed));
    }
    pool.allocator.hold_all();
    old.iter().cloned().flatten().for_each(|id| pool.allocator.release(id));
    let highest = pool.allocator.high_water().max(old.last().map_or(0, |last| last.end));
    pool.reserve_for(highest.checked_sub(1))?;
    let mut state = State::over(pool)?;
    state.counters = mended.counters;
    state.begin()?;
    let filled = fill(&mut state, &mended.records, &voids, &left_over);
    state.settle(filled)?;
    let finished = state.finish();
    state.settle(finished)
}

fn fill(state: &mut State, records: &Records, voids: &Voids, left_over: &[u64]) -> Result<()> {
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
    // Before the commit: what stands for lost bytes must not exist once it does.
    if !left_over.is_empty() {
        state.pool.lock().blocks()?.erase(left_over)?;
    }
    state.progress.operations += 1;
    state.commit()
}
