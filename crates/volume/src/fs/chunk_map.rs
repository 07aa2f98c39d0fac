//! Which block holds which chunk of the metadata file: runs of blocks, with gaps between them.
//!
//! The database doubles its file, then takes the best fitting free pages, often the last ones, with
//! all before them unused. Mapping everything up to there would take twice the needed blocks, and a
//! full volume has none. So chunks never written have no block.

use crate::ROOT_BYTES;
use std::collections::HashSet;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

/// A run as stored: its first block and its number of blocks.
type StoredRun = [U64; 2];

pub(super) const ROOT_HEADER: usize = 32;
pub(super) const MOST_RUNS: usize = (ROOT_BYTES - ROOT_HEADER) / size_of::<StoredRun>() - 2;
/// Runs left to deletions.
const SPARE_RUNS: usize = 8;
const LEAST_RUN: u64 = 4;
/// Stands for a run's first block: its chunks have none.
const GAP: u64 = u64::MAX;

/// The runs in order of the chunks, as `(first block, blocks)`; never a gap at the end.
#[derive(Default)]
pub(super) struct ChunkMap {
    runs: Vec<(u64, u64)>,
    mapped: u64,
    /// Chunks that got a block in this session and are still unwritten: they need no read.
    blank: HashSet<u64>,
}

/// Chunks in a row without blocks, at or behind `at` in the list of runs.
struct Gap {
    at: usize,
    first: u64,
    end: u64,
}

impl ChunkMap {
    /// The map that a root lists, in a volume of `capacity` blocks and for a file of `chunks`.
    pub(super) fn load(list: &[u8], capacity: u64, chunks: u64, gaps: bool) -> Option<Self> {
        let mut map = Self::default();
        let mut end = 0_u64;
        for run in <[StoredRun]>::ref_from_bytes(list).ok()? {
            let [start, len] = run.map(U64::get);
            end = end.checked_add(len)?;
            match gaps && start == GAP {
                true if end > chunks => return None,
                true => {}
                false if start.checked_add(len).is_none_or(|end| end > capacity) => return None,
                false => map.mapped += len,
            }
            map.runs.push((start, len));
        }
        Some(map)
    }

    /// As it stands in the root.
    pub(super) fn list(&self) -> Vec<u8> {
        let run = |&(start, len): &(u64, u64)| [start, len].map(U64::new);
        self.runs.iter().map(run).collect::<Vec<StoredRun>>().as_bytes().to_vec()
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn has_gaps(&self) -> bool {
        self.runs.iter().any(|run| run.0 == GAP)
    }

    /// Whether the list has so few runs left that nothing should grow.
    pub(super) fn is_scattered(&self) -> bool {
        self.runs.len() + SPARE_RUNS > MOST_RUNS
    }

    /// The number of mapped blocks.
    pub(super) fn mapped(&self) -> u64 {
        self.mapped
    }

    /// One above the last chunk with a block.
    pub(super) fn end(&self) -> u64 {
        self.runs.iter().map(|run| run.1).sum()
    }

    /// All chunks with their blocks, in order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let mut before = 0;
        let placed = self.runs.iter().map(move |&(start, len)| {
            before += len;
            (before - len, start, len)
        });
        let placed: Vec<_> = placed.filter(|run| run.1 != GAP).collect();
        let each = |(first, start, len)| (0..len).map(move |at| (first + at, start + at));
        placed.into_iter().flat_map(each)
    }

    pub(super) fn block_of(&self, chunk: u64) -> Option<u64> {
        let mut before = 0;
        for &(start, len) in &self.runs {
            if chunk < before + len {
                return (start != GAP).then(|| start + chunk - before);
            }
            before += len;
        }
        None
    }

    /// The block of a chunk that may hold something.
    pub(super) fn written(&self, chunk: u64) -> Option<u64> {
        self.block_of(chunk).filter(|_| !self.blank.contains(&chunk))
    }

    /// Notes that a chunk is written; says whether for the first time.
    pub(super) fn write(&mut self, chunk: u64) -> bool {
        self.blank.remove(&chunk)
    }

    /// Forgets the chunks from `end` on; gives their blocks.
    pub(super) fn cut(&mut self, end: u64) -> Vec<u64> {
        let freed = self.blocks().filter(|&(chunk, _)| chunk >= end).map(|(_, id)| id).collect();
        let mut left = end;
        for run in &mut self.runs {
            run.1 = run.1.min(left);
            left -= run.1;
        }
        self.blank.retain(|&chunk| chunk < end);
        self.tidy();
        freed
    }

    /// The gap around a chunk.
    fn gap(&self, chunk: u64) -> Gap {
        let mut first = 0;
        for (at, &(_, len)) in self.runs.iter().enumerate() {
            if chunk < first + len {
                return Gap { at, first, end: first + len };
            }
            first += len;
        }
        Gap { at: self.runs.len(), first, end: u64::MAX }
    }

    /// Which chunks get blocks when `chunk` has none, in a file of `chunks` and a volume with
    /// `free` blocks. Runs grow with the file, so that the root can list them all. They are small
    /// when few blocks are free, so that one run does not take the whole metadata reserve.
    pub(super) fn window(&self, chunk: u64, chunks: u64, free: u64) -> (u64, u64) {
        let gap = self.gap(chunk);
        let run = (self.mapped / 2).min(free / 8).max(LEAST_RUN);
        if chunk - gap.first < run || self.runs.len() + 2 > MOST_RUNS {
            return (gap.first, gap.end.min((chunk + 1).max(gap.first + run)));
        }
        // Some on both sides: neighbouring pages fit as well.
        let around = (self.mapped / 16).min(free / 32);
        (chunk - around, gap.end.min((chunk + 1).max(chunks.min(chunk + 1 + around))))
    }

    /// Gives blocks to the chunks from `first` on, in a gap.
    pub(super) fn insert(&mut self, first: u64, (start, len): (u64, u64)) {
        let gap = self.gap(first);
        let mut placed = vec![(GAP, first - gap.first), (start, len)];
        if gap.at < self.runs.len() {
            placed.push((GAP, gap.end - first - len));
        }
        let replaced = gap.at..self.runs.len().min(gap.at + 1);
        self.runs.splice(replaced, placed);
        self.blank.extend(first..first + len);
        self.tidy();
    }

    /// Joins adjacent runs and drops empty ones.
    fn tidy(&mut self) {
        let mut tidy: Vec<(u64, u64)> = Vec::with_capacity(self.runs.len());
        for &(start, len) in self.runs.iter().filter(|run| run.1 > 0) {
            match tidy.last_mut() {
                Some(last) if last.0 == GAP && start == GAP => last.1 += len,
                Some(last) if last.0 != GAP && last.0 + last.1 == start => last.1 += len,
                _ => tidy.push((start, len)),
            }
        }
        tidy.pop_if(|last| last.0 == GAP);
        self.mapped = tidy.iter().filter(|run| run.0 != GAP).map(|run| run.1).sum();
        self.runs = tidy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chunks that have blocks.
    fn chunks(map: &ChunkMap) -> Vec<u64> {
        map.blocks().map(|(chunk, _)| chunk).collect()
    }

    #[test]
    fn gaps_are_split_filled_and_stored() {
        let mut map = ChunkMap::default();
        map.insert(0, (100, 2));
        map.insert(9, (200, 1));
        assert_eq!((map.mapped(), map.end(), map.runs()), (3, 10, 3));
        map.insert(5, (300, 2));
        assert_eq!(chunks(&map), [0, 1, 5, 6, 9]);
        assert_eq!((map.block_of(6), map.block_of(7), map.block_of(10)), (Some(301), None, None));
        let loaded = ChunkMap::load(&map.list(), 302, 10, true).expect("as stored");
        assert_eq!((loaded.list(), loaded.mapped()), (map.list(), 5));
        assert!(ChunkMap::load(&map.list(), 302, 8, true).is_none(), "a gap beyond the file");
        assert!(ChunkMap::load(&map.list(), 302, 10, false).is_none(), "version 1 has no gaps");
        assert!(ChunkMap::load(&map.list(), 301, 10, true).is_none(), "a block beyond the volume");
        map.insert(2, (102, 3));
        map.insert(7, (302, 2));
        assert_eq!(chunks(&map), (0..10).collect::<Vec<_>>());
        assert_eq!((map.runs(), map.has_gaps()), (3, false), "what goes on is joined");
    }

    #[test]
    fn what_is_cut_off_gives_its_blocks_back() {
        let mut map = ChunkMap::default();
        map.insert(0, (100, 2));
        map.insert(8, (200, 4));
        assert!(map.written(9).is_none() && map.write(9) && !map.write(9));
        assert_eq!(map.written(9), Some(201));
        assert_eq!(map.cut(10), [202, 203]);
        assert_eq!(map.cut(7), [200, 201]);
        assert_eq!((map.end(), map.runs()), (2, 1), "no gap at the end");
    }
}
