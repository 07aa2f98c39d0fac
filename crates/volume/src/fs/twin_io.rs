//! Writes twins of the metadata file's chunks, and reads them where chunks are lost.

use super::chunk_map::Blocks;
use super::ops::{read_op, write_op};
use super::pool::Pool;
use crate::Result;
use oblivio_engine::{BlockAnswer, BlockOutcome};

/// Chunks whose copies are written together.
pub(super) const BATCH: usize = 64;
/// The least capacity with twins, in blocks: a smaller volume keeps its room for what it holds.
const LEAST_CAPACITY: u64 = 4096;
/// Twins are taken while at least one part of the capacity in this many is free.
const LEAST_FREE: u64 = 4;

impl Pool {
    /// After a batch of accesses: if damage was met, then or before, as many reads follow. A lost
    /// chunk of metadata gets its outcome from its twin.
    pub(super) fn follow(&mut self, ids: &[u64], outcomes: &mut [BlockOutcome]) -> Result<()> {
        self.note_damage()?;
        let file = &self.metadata;
        let all = file.twins.is_suspect() && file.map.has_twins();
        if !all && outcomes.iter().all(|outcome| outcome.is_ok()) {
            return Ok(());
        }
        // In a space that shows its reads, whatever is lost was met as damage.
        let mut reads = Vec::with_capacity(ids.len());
        for (at, (&id, outcome)) in ids.iter().zip(outcomes.iter()).enumerate() {
            let twin = if outcome.is_err() { file.readable_twin(id) } else { None };
            if all || twin.is_some() {
                reads.push((at, twin, read_op(twin.unwrap_or(id))));
            }
        }
        if reads.is_empty() {
            return Ok(());
        }
        let ops = reads.iter().map(|(_, _, op)| op.clone()).collect();
        for ((at, twin, _), found) in reads.into_iter().zip(self.access_once(ops)?) {
            if twin.is_some() {
                outcomes[at] = found;
            }
        }
        self.note_damage()
    }

    /// Asks the block space for damage, and has the root say so: as early as any loss that came
    /// with it can be durable.
    pub(super) fn note_damage(&mut self) -> Result<()> {
        if self.blocks()?.met_damage() {
            self.metadata.twins.suspect();
            self.mark_root()?;
        }
        Ok(())
    }

    /// Has the root say what is known of the twins.
    fn mark_root(&mut self) -> Result<()> {
        let marked = self.metadata.marked(self.blocks.as_deref().map_or(&[], |it| it.root()));
        if let Some(root) = marked {
            self.blocks()?.set_root(&root);
        }
        Ok(())
    }

    /// Before these chunks are stored: their twins become stale, and the root says so. Of a chunk
    /// with a readable twin all must be known then. If only parts of it were stored, and the rest
    /// is lost already, that would be lost with the twin.
    pub(super) fn outdate_twins(&mut self, chunks: &[u64]) -> Result<()> {
        let file = &self.metadata;
        let fresh = |&chunk: &u64| {
            let twin = file.map.blocks_of(chunk).and_then(|at| at.twin);
            (twin.is_some() && !file.twins.is_stale(chunk)).then_some(chunk)
        };
        let fresh: Vec<u64> = chunks.iter().filter_map(fresh).collect();
        if !self.blocks()?.pads() {
            let parts: Vec<_> = fresh.iter().map(|&chunk| (chunk, 0, self.block_bytes)).collect();
            self.metadata_fetch(&parts)?;
        }
        fresh.iter().for_each(|&chunk| self.metadata.twins.outdate(chunk));
        self.mark_root()
    }

    /// Whether `blocks` can go to chunks with twins, beside everything that is promised. Where
    /// metadata takes much of a volume, the rest of it has no twins.
    pub(super) fn has_spare(&mut self, blocks: u64) -> Result<bool> {
        let wanted = self.kept.saturating_add(blocks);
        let capacity = self.allocator.capacity();
        let much = self.metadata.mapped_blocks() + blocks > capacity / 8;
        // What a mount accepted is not counted here: nothing is taken where it may need the rest.
        let roomy = self.allocator.free() >= wanted.max(capacity / LEAST_FREE);
        let fits = capacity >= LEAST_CAPACITY && !much && roomy;
        if !self.metadata.pairs || !fits {
            return Ok(false);
        }
        let blocks = self.blocks()?;
        Ok(!blocks.pads() && blocks.room()?.is_none_or(|room| room >= wanted))
    }
}

/// Keeps the twins of a pool's metadata.
pub(super) struct TwinIo<'a>(pub(super) &'a mut Pool);

impl TwinIo<'_> {
    /// Writes stale twins of stored chunks, `most` of them. Says whether that is all.
    pub(super) fn renew_twins(&mut self, most: usize) -> Result<bool> {
        if self.0.blocks()?.pads() {
            return Ok(true);
        }
        let file = &self.0.metadata;
        let stored = |chunk: &u64| !file.cache.get(chunk).is_some_and(|entry| entry.dirty);
        let chunks: Vec<u64> = file.twins.stale().filter(stored).take(most).collect();
        for batch in chunks.chunks(BATCH) {
            self.renew_batch(batch)?;
        }
        self.0.mark_root()?;
        Ok(chunks.len() < most)
    }

    fn renew_batch(&mut self, chunks: &[u64]) -> Result<()> {
        let file = &self.0.metadata;
        let known = |chunk| file.cache.get(&chunk).filter(|entry| file.is_whole(entry));
        let unknown: Vec<u64> = chunks.iter().copied().filter(|&it| known(it).is_none()).collect();
        let read = self.existing(&unknown)?;
        let ops = read.iter().map(|(_, at)| read_op(at.own)).collect();
        let mut found =
            read.iter().map(|(chunk, _)| *chunk).zip(self.0.access_each(ops)?).peekable();
        let mut ops = Vec::new();
        let mut renewed = Vec::new();
        for &chunk in chunks {
            let outcome = found.next_if(|(next, _)| *next == chunk).map(|(_, outcome)| outcome);
            let file = &self.0.metadata;
            let content = match (file.cache.get(&chunk).filter(|it| file.is_whole(it)), outcome) {
                (Some(entry), _) => Some(entry.data.clone()),
                (None, Some(Ok(content))) => content,
                (None, None) => None,
                (None, Some(Err(_))) => continue,
            };
            let twin = file.map.blocks_of(chunk).and_then(|at| at.twin);
            ops.extend(twin.zip(content).map(|(twin, content)| write_op(twin, content)));
            renewed.push(chunk);
        }
        self.0.access(ops)?;
        renewed.into_iter().for_each(|chunk| self.0.metadata.twins.renew(chunk));
        Ok(())
    }

    /// Those of these chunks that may hold something, with their blocks.
    fn existing(&mut self, chunks: &[u64]) -> Result<Vec<(u64, Blocks)>> {
        let mut found = Vec::with_capacity(chunks.len());
        for &chunk in chunks {
            let file = &self.0.metadata;
            if let Some(at) = file.map.blocks_of(chunk).filter(|_| !file.map.is_blank(chunk))
                && self.0.blocks()?.exists(at.own)
            {
                found.push((chunk, at));
            }
        }
        Ok(found)
    }

    /// Reads both copies of up to `most` chunks, from where the last call ended, and writes both
    /// anew: as many operations whatever is lost of them. Says whether that was the last.
    pub(super) fn heal_some(&mut self, most: usize) -> Result<bool> {
        let from = self.0.metadata.twins.healed();
        let chunks = self.0.metadata.map.chunks().skip_while(|&(chunk, _)| chunk < from);
        let batch: Vec<u64> = chunks.map(|(chunk, _)| chunk).take(most).collect();
        let Some(last) = batch.last() else {
            self.0.metadata.twins.trust();
            self.0.mark_root()?;
            return Ok(true);
        };
        self.0.metadata.twins.heal_to(last + 1);
        let paired = self.existing(&batch)?;
        let paired = paired.iter().filter_map(|&(chunk, at)| Some((chunk, at.own, at.twin?)));
        let paired: Vec<_> = paired.collect();
        if paired.is_empty() {
            return Ok(false);
        }
        let own = self.0.access_once(paired.iter().map(|it| read_op(it.1)).collect())?;
        let stale = |chunk| self.0.metadata.twins.is_stale(chunk);
        let second =
            paired.iter().map(|it| if stale(it.0) { read_op(it.1) } else { read_op(it.2) });
        let second = self.0.access_once(second.collect())?;
        let mut ops = Vec::new();
        for ((&(chunk, own_block, twin_block), own), second) in paired.iter().zip(own).zip(second) {
            if let Ok(Some(content)) = own.or(second) {
                ops.push(write_op(own_block, content.clone()));
                ops.push(write_op(twin_block, content));
                self.0.metadata.twins.renew(chunk);
            }
        }
        self.0.access(ops)?;
        self.0.note_damage()?;
        self.0.mark_root()?;
        Ok(false)
    }

    /// Writes both copies of all metadata anew, from whichever is there; again if that met damage.
    pub(super) fn heal_all(&mut self) -> Result<()> {
        self.0.metadata.twins.heal_to(0);
        let chunks = self.0.metadata.map.mapped() as usize;
        for _ in 0..2 * (chunks.div_ceil(BATCH) + 1) {
            if self.heal_some(BATCH)? {
                break;
            }
        }
        Ok(())
    }

    /// Gives twins to chunks that have none, `most` of them, if there is room. A chunk moves for
    /// that: until the root names its new blocks, nobody looks at them.
    pub(super) fn pair_chunks(&mut self, mut most: u64) -> Result<()> {
        let mut freed = Vec::new();
        while most > 0
            && let Some(chunks) = self.0.metadata.map.without_twins(most.min(BATCH as u64))
        {
            let wanted = chunks.end - chunks.start;
            let fits = self.0.has_spare(2 * wanted)? && !self.0.metadata.map.is_scattered();
            if !fits || !self.pair(chunks.start, wanted, &mut freed)? {
                break;
            }
            most -= wanted;
        }
        if freed.is_empty() {
            return Ok(());
        }
        let root = self.0.metadata.root(self.0.metadata.root_len);
        self.0.blocks()?.set_root(&root);
        self.0.blocks()?.commit()?;
        freed.iter().for_each(|&id| self.0.allocator.release_at_once(id));
        self.0.blocks()?.discard(&freed)
    }

    /// Moves up to `wanted` chunks to blocks with twins. Says whether it did: not if one is lost.
    fn pair(&mut self, first: u64, wanted: u64, freed: &mut Vec<u64>) -> Result<bool> {
        let Some(run) = self.0.take_run(wanted, true) else { return Ok(false) };
        self.0.reserve_for(Some(run.end() - 1))?;
        let chunks: Vec<u64> = (first..first + run.chunks).collect();
        let there = self.existing(&chunks)?;
        let outcomes = self.0.access_each(there.iter().map(|(_, at)| read_op(at.own)).collect())?;
        let contents: std::result::Result<Vec<BlockAnswer>, _> = outcomes.into_iter().collect();
        let Ok(contents) = contents else {
            (run.start..run.end()).for_each(|id| self.0.allocator.release(id));
            return Ok(false);
        };
        let mut ops = Vec::new();
        for ((chunk, _), content) in there.iter().zip(contents) {
            let own = run.start + 2 * (chunk - first);
            if let Some(content) = content {
                ops.push(write_op(own, content.clone()));
                ops.push(write_op(own + 1, content));
            }
        }
        self.0.access(ops)?;
        freed.extend(self.0.metadata.map.replace(first, run));
        Ok(true)
    }
}
