//! Reads and writes of the metadata file, with the blocks of the pool.

use super::chunk_map::{MOST_RUNS, Run};
use super::ops::read_op;
use super::padding::END_DISCARDS;
use super::pool::Pool;
use crate::damage::LostBytes;
use crate::ranges::Ranges;
use crate::{Error, Least, Result};

impl Pool {
    pub(super) fn metadata_read(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        let parts = self.metadata.parts(offset, out.len());
        self.metadata_fetch(&parts)?;
        let mut at = 0;
        for (chunk, start, len) in parts {
            let out = &mut out[at..at + len];
            match self.metadata.cache.get(&chunk) {
                Some(entry) => out.copy_from_slice(&entry.data[start..start + len]),
                None => out.fill(0),
            }
            self.metadata.touch(chunk);
            at += len;
        }
        self.metadata_evict()
    }

    /// Prefetches the front of the file with one access, `most` blocks or half of the cache.
    pub(super) fn metadata_warm(&mut self, most: usize) -> Result<()> {
        let file = &self.metadata;
        let chunks = file.map.chunks().take(most.min(file.budget / 2));
        let parts: Vec<_> = chunks.map(|(chunk, _)| (chunk, 0, self.block_bytes)).collect();
        match self.metadata_fetch(&parts) {
            // A read of the lost ones fails then.
            Err(Error::Lost(_)) => Ok(()),
            fetched => fetched,
        }
    }

    /// Fetches all these parts with one access.
    ///
    /// # Errors
    /// `Lost` if one is; the others are fetched.
    pub(super) fn metadata_fetch(&mut self, parts: &[(u64, usize, usize)]) -> Result<()> {
        let file = &self.metadata;
        let missing: Vec<(u64, u64)> = parts
            .iter()
            .filter(|&&(chunk, start, len)| {
                let cached = file.cache.get(&chunk);
                cached.is_none_or(|c| !c.valid.covers(start, start + len))
            })
            .filter_map(|&(chunk, _, _)| Some((chunk, file.map.written(chunk)?)))
            .collect();
        let ops = missing.iter().map(|&(_, id)| read_op(id)).collect();
        let outcomes = self.access_each(ops)?;
        let (size, mut lost) = (self.block_bytes, false);
        for ((chunk, _), outcome) in missing.into_iter().zip(outcomes) {
            let Ok(answer) = outcome else {
                lost = true;
                continue;
            };
            let mut data = answer.unwrap_or_default();
            data.resize(size, 0);
            match self.metadata.cache.get_mut(&chunk) {
                Some(entry) => {
                    for (start, end) in entry.valid.iter() {
                        data[start..end].copy_from_slice(&entry.data[start..end]);
                    }
                    entry.data = data;
                    entry.valid = Ranges::whole(size);
                }
                None => self.metadata.insert(chunk, data, Ranges::whole(size), false),
            }
        }
        if lost { Err(LostBytes::metadata().into()) } else { Ok(()) }
    }

    /// The blocks of the file that hold something; without the twins, which a read looks at where
    /// one of these is lost.
    pub(super) fn metadata_ids(&mut self) -> Result<Vec<u64>> {
        let mut ids: Vec<u64> = self.metadata.map.chunks().map(|(_, at)| at.own).collect();
        let blocks = self.blocks()?;
        ids.retain(|&id| blocks.exists(id));
        Ok(ids)
    }

    pub(super) fn metadata_write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let size = self.block_bytes;
        self.metadata.changed |= !self.metadata.only_marks(offset, data);
        let mut rest = data;
        for (chunk, start, len) in self.metadata.parts(offset, data.len()) {
            let (bytes, after) = rest.split_at(len);
            rest = after;
            self.metadata_map(chunk)?;
            let file = &mut self.metadata;
            let fresh = file.map.write(chunk);
            if !file.cache.contains_key(&chunk) {
                // A block never written is all zeros. In any other, the rest stays unknown until it
                // is read.
                let valid = if fresh { Ranges::whole(size) } else { Ranges::default() };
                file.insert(chunk, vec![0; size], valid, true);
            }
            if let Some(entry) = file.cache.get_mut(&chunk) {
                entry.data[start..start + len].copy_from_slice(bytes);
                entry.valid.add(start, start + len);
                entry.dirty = true;
            }
            file.touch(chunk);
        }
        self.metadata.len = self.metadata.len.max(offset + data.len() as u64);
        self.metadata_evict()
    }

    /// Keeps the cache within its budget: evicts the least recently used chunks, and writes the
    /// dirty ones among them in one access.
    fn metadata_evict(&mut self) -> Result<()> {
        let file = &self.metadata;
        if file.hold || file.cache.len() <= file.budget {
            return Ok(());
        }
        let count = file.cache.len() - file.budget + file.budget / 4;
        let victims: Vec<u64> = file.recent.values().copied().filter(|&c| c != 0).collect();
        let victims = &victims[..count.min(victims.len())];
        self.metadata_store(victims)?;
        for chunk in victims {
            if let Some(entry) = self.metadata.cache.remove(chunk) {
                self.metadata.recent.remove(&entry.stamp);
            }
        }
        Ok(())
    }

    /// Writes the dirty chunks among these with one access.
    fn metadata_store(&mut self, chunks: &[u64]) -> Result<()> {
        let file = &self.metadata;
        let dirty: Vec<u64> = chunks
            .iter()
            .copied()
            .filter(|chunk| file.cache.get(chunk).is_some_and(|entry| entry.dirty))
            .collect();
        self.outdate_twins(&dirty)?;
        let file = &self.metadata;
        let ops = dirty.iter().filter_map(|&chunk| file.store_op(chunk)).collect();
        self.access(ops).map_err(of_metadata)?;
        for chunk in dirty {
            if let Some(entry) = self.metadata.cache.get_mut(&chunk) {
                entry.dirty = false;
            }
        }
        Ok(())
    }

    /// Makes the database's last commit, and all blocks with it, durable. It may be called again
    /// after a failure.
    pub(super) fn metadata_commit(&mut self) -> Result<()> {
        let mut chunks: Vec<u64> = self.metadata.cache.keys().copied().collect();
        chunks.sort_unstable();
        let body = chunks.iter().position(|&chunk| chunk != 0);
        let (header, body) = chunks.split_at(body.unwrap_or(chunks.len()));
        self.metadata_store(body)?;
        let len = self.metadata.root_len.max(self.metadata.len);
        let root = self.metadata.root(len);
        self.blocks()?.set_root(&root);
        (self.metadata.root_len, self.metadata.named) = (len, true);
        self.metadata_store(header)?;
        self.bring_up()?;
        self.blocks()?.commit()?;
        self.metadata.hold = false;
        self.metadata_evict()
    }

    /// Frees the blocks behind the end of a closed database, after its last commit. They can be
    /// reused at once: no root names them any more.
    pub(super) fn metadata_trim(&mut self) -> Result<()> {
        let needed = self.metadata.length_blocks();
        if self.blocks()?.pads() {
            return self.metadata_trim_padded(needed);
        }
        if self.metadata.root_len == self.metadata.len && self.metadata.map.end() <= needed {
            return Ok(());
        }
        let file = &mut self.metadata;
        let freed = file.cut(needed);
        file.root_len = file.len;
        let root = file.root(file.len);
        self.blocks()?.set_root(&root);
        self.blocks()?.commit()?;
        freed.iter().for_each(|&id| self.allocator.release_at_once(id));
        match freed.is_empty() {
            true => Ok(()),
            false => self.blocks()?.discard(&freed).and_then(|()| self.blocks()?.commit()),
        }
    }
}

impl Pool {
    /// As [`Self::metadata_trim`], in two records that do not show how much is freed.
    fn metadata_trim_padded(&mut self, needed: u64) -> Result<()> {
        let file = &mut self.metadata;
        let freed = file.cut(needed);
        file.root_len = file.len;
        let root = file.root(file.len);
        self.blocks()?.set_root(&root);
        self.blocks()?.bring_up(Least { writes: 1, ..Least::default() })?;
        self.blocks()?.commit()?;
        freed.iter().for_each(|&id| self.allocator.release_at_once(id));
        self.blocks()?.discard(&freed)?;
        self.least = Least { writes: 1, discards: END_DISCARDS, ..Least::default() };
        self.bring_up()?;
        self.blocks()?.commit()
    }
}

impl Pool {
    /// Gives a chunk of the metadata file a block if it has none.
    pub(super) fn metadata_map(&mut self, chunk: u64) -> Result<()> {
        while self.metadata.map.block_of(chunk).is_none() {
            let (map, chunks) = (&self.metadata.map, self.metadata.length_blocks());
            let (first, end) = map.window(chunk, chunks, self.allocator.free());
            let mut run = None;
            if self.has_spare(2 * (end - first))? {
                run = self.take_chunks(first, end - first, true);
            }
            run = run.or_else(|| self.take_chunks(first, end - first, false));
            let Some(run) = run else {
                return Err(match self.allocator.free() {
                    0 => self.full(),
                    _ => Error::Full(
                        "free space is too scattered for more metadata; delete something".into(),
                    ),
                });
            };
            self.metadata.map.insert(first, run);
            self.reserve_for(Some(run.end() - 1))?;
        }
        Ok(())
    }

    /// Takes up to `wanted` chunks with or without twins: right behind the chunk before `first`,
    /// else anywhere if the root can list another run.
    fn take_chunks(&mut self, first: u64, wanted: u64, twins: bool) -> Option<Run> {
        let copies = 1 + u64::from(twins);
        if let Some(start) = self.end_before(first, twins) {
            let mut chunks = 0;
            while chunks < wanted && self.allocator.take_exact(start + copies * chunks, copies) {
                chunks += 1;
            }
            if chunks > 0 {
                return Some(Run { start, chunks, twins });
            }
        }
        (self.metadata.map.runs() + 2 <= MOST_RUNS).then_some(())?;
        self.take_run(wanted, twins)
    }

    /// Takes up to `wanted` chunks in a row.
    pub(super) fn take_run(&mut self, wanted: u64, twins: bool) -> Option<Run> {
        let copies = 1 + u64::from(twins);
        let (start, len) = self.allocator.take_run(copies * wanted)?;
        let run = Run { start, chunks: len / copies, twins };
        (run.end()..start + len).for_each(|id| self.allocator.release(id));
        (run.chunks > 0).then_some(run)
    }

    /// One above the last block of the chunk before `first`, if a run of this kind may go on there.
    fn end_before(&self, first: u64, twins: bool) -> Option<u64> {
        let before = self.metadata.map.blocks_of(first.checked_sub(1)?)?;
        (before.twin.is_some() == twins).then(|| before.twin.unwrap_or(before.own) + 1)
    }
}

/// What a lost block of the metadata file means.
fn of_metadata(error: Error) -> Error {
    match error {
        Error::Lost(_) => LostBytes::metadata().into(),
        other => other,
    }
}
