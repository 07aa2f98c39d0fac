//! Which block holds which chunk of the metadata file: runs of blocks, with gaps between them.
//!
//! The database doubles its file, then takes the best fitting free pages, often the last ones, with
//! all before them unused. Mapping everything up to there would take twice the needed blocks, and a
//! full volume has none. So chunks never written have no block.
//!
//! In a run with twins each chunk has two blocks, one behind the other: its own and its twin's.

use crate::ROOT_BYTES;
use std::collections::HashSet;
use std::ops::Range;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

/// A run as stored: its first block and its number of chunks.
type StoredRun = [U64; 2];

pub(super) const ROOT_HEADER: usize = 32;
pub(super) const MOST_RUNS: usize = (ROOT_BYTES - ROOT_HEADER) / size_of::<StoredRun>() - 2;
/// Runs left to deletions.
const SPARE_RUNS: usize = 8;
const LEAST_RUN: u64 = 4;
/// Stands for a run's first block: its chunks have none.
const GAP: u64 = u64::MAX;
/// In the stored number of chunks: each of them has a twin.
const TWINS: u64 = 1 << 63;

/// Chunks in a row, and where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Its first block, or [`GAP`].
    pub(super) start: u64,
    /// How many chunks.
    pub(super) chunks: u64,
    pub(super) twins: bool,
}

/// Where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    pub(super) own: u64,
    pub(super) twin: Option<u64>,
}

/// What a root may hold, by its version.
#[derive(Clone, Copy)]
pub(super) struct MapForm {
    pub(super) gaps: bool,
    pub(super) twins: bool,
}

/// The runs in order of the chunks; never a gap at the end.
#[derive(Default)]
pub(super) struct ChunkMap {
    runs: Vec<Run>,
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

impl Run {
    fn gap(chunks: u64) -> Self {
        Run { start: GAP, chunks, twins: false }
    }

    fn is_gap(&self) -> bool {
        self.start == GAP
    }

    /// Blocks for each chunk.
    fn copies(&self) -> u64 {
        1 + u64::from(self.twins)
    }

    /// One above its last block.
    pub(super) fn end(&self) -> u64 {
        self.start + self.chunks * self.copies()
    }

    /// Its chunk number `at`.
    fn blocks_of(&self, at: u64) -> Blocks {
        let own = self.start + at * self.copies();
        Blocks { own, twin: self.twins.then_some(own + 1) }
    }

    /// A run as stored, if it makes sense.
    fn load(stored: StoredRun, capacity: u64, form: MapForm) -> Option<Self> {
        let [start, word] = stored.map(U64::get);
        let twins = form.twins && word & TWINS != 0;
        let run = Run { start, chunks: if twins { word & !TWINS } else { word }, twins };
        if form.gaps && run.is_gap() {
            return Some(run).filter(|run| !run.twins);
        }
        let blocks = run.chunks.checked_mul(run.copies())?;
        (start.checked_add(blocks)? <= capacity).then_some(run)
    }

    fn stored(&self) -> StoredRun {
        let word = self.chunks | if self.twins { TWINS } else { 0 };
        [self.start, word].map(U64::new)
    }
}

impl ChunkMap {
    /// The map that a root lists, in a volume of `capacity` blocks and for a file of `chunks`.
    pub(super) fn load(list: &[u8], capacity: u64, chunks: u64, form: MapForm) -> Option<Self> {
        let mut map = Self::default();
        let mut end = 0_u64;
        for &stored in <[StoredRun]>::ref_from_bytes(list).ok()? {
            let run = Run::load(stored, capacity, form)?;
            end = end.checked_add(run.chunks)?;
            match form.gaps && run.is_gap() {
                true if end > chunks => return None,
                true => {}
                false => map.mapped += run.chunks,
            }
            map.runs.push(run);
        }
        Some(map)
    }

    /// As it stands in the root.
    pub(super) fn list(&self) -> Vec<u8> {
        self.runs.iter().map(Run::stored).collect::<Vec<StoredRun>>().as_bytes().to_vec()
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn has_gaps(&self) -> bool {
        self.runs.iter().any(Run::is_gap)
    }

    pub(super) fn has_twins(&self) -> bool {
        self.runs.iter().any(|run| run.twins)
    }

    /// Whether the list has so few runs left that nothing should grow.
    pub(super) fn is_scattered(&self) -> bool {
        self.runs.len() + SPARE_RUNS > MOST_RUNS
    }

    /// The number of chunks with a block.
    pub(super) fn mapped(&self) -> u64 {
        self.mapped
    }

    /// The number of their blocks, twins included.
    pub(super) fn mapped_blocks(&self) -> u64 {
        self.placed().map(|(_, run)| run.chunks * run.copies()).sum()
    }

    /// One above the last chunk with a block.
    pub(super) fn end(&self) -> u64 {
        self.runs.iter().map(|run| run.chunks).sum()
    }

    /// The runs that are no gaps, each with its first chunk.
    fn placed(&self) -> impl Iterator<Item = (u64, Run)> {
        let mut before = 0;
        let each = self.runs.iter().map(move |&run| {
            before += run.chunks;
            (before - run.chunks, run)
        });
        each.filter(|(_, run)| !run.is_gap())
    }

    /// All chunks that have blocks, in order, with these.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (u64, Blocks)> + use<> {
        let placed: Vec<_> = self.placed().collect();
        let each = |(first, run): (u64, Run)| {
            (0..run.chunks).map(move |at| (first + at, run.blocks_of(at)))
        };
        placed.into_iter().flat_map(each)
    }

    /// All blocks.
    pub(super) fn block_ids(&self) -> impl Iterator<Item = u64> + use<> {
        let runs: Vec<_> = self.placed().map(|(_, run)| run.start..run.end()).collect();
        runs.into_iter().flatten()
    }

    /// Whether a block is one of a chunk, or of its twin.
    pub(super) fn has_block(&self, block: u64) -> bool {
        self.placed().any(|(_, run)| (run.start..run.end()).contains(&block))
    }

    /// The chunk whose own block this is.
    pub(super) fn chunk_of(&self, block: u64) -> Option<u64> {
        let (first, run) =
            self.placed().find(|(_, run)| (run.start..run.end()).contains(&block))?;
        let at = block - run.start;
        at.is_multiple_of(run.copies()).then(|| first + at / run.copies())
    }

    pub(super) fn blocks_of(&self, chunk: u64) -> Option<Blocks> {
        let within = |(first, run): &(u64, Run)| (*first..first + run.chunks).contains(&chunk);
        self.placed().find(within).map(|(first, run)| run.blocks_of(chunk - first))
    }

    pub(super) fn block_of(&self, chunk: u64) -> Option<u64> {
        self.blocks_of(chunk).map(|blocks| blocks.own)
    }

    /// The block of a chunk that may hold something.
    pub(super) fn written(&self, chunk: u64) -> Option<u64> {
        self.block_of(chunk).filter(|_| !self.blank.contains(&chunk))
    }

    /// Notes that a chunk is written; says whether for the first time.
    pub(super) fn write(&mut self, chunk: u64) -> bool {
        self.blank.remove(&chunk)
    }

    /// Whether a chunk got its blocks in this session and is still unwritten.
    pub(super) fn is_blank(&self, chunk: u64) -> bool {
        self.blank.contains(&chunk)
    }

    /// Forgets the chunks from `end` on; gives their blocks.
    pub(super) fn cut(&mut self, end: u64) -> Vec<u64> {
        let cut = self.chunks().filter(|&(chunk, _)| chunk >= end);
        let freed = cut.flat_map(|(_, at)| [Some(at.own), at.twin]).flatten().collect();
        let mut left = end;
        for run in &mut self.runs {
            run.chunks = run.chunks.min(left);
            left -= run.chunks;
        }
        self.blank.retain(|&chunk| chunk < end);
        self.tidy();
        freed
    }

    /// The gap around a chunk.
    fn gap(&self, chunk: u64) -> Gap {
        let mut first = 0;
        for (at, run) in self.runs.iter().enumerate() {
            if chunk < first + run.chunks {
                return Gap { at, first, end: first + run.chunks };
            }
            first += run.chunks;
        }
        Gap { at: self.runs.len(), first, end: u64::MAX }
    }

    /// The most chunks that get blocks at once, in a volume with `free` blocks. Runs grow with the
    /// file, so that the root can list them all. They are small when few blocks are free, so that
    /// one run does not take the whole metadata reserve.
    pub(super) fn growth(&self, free: u64) -> u64 {
        (self.mapped / 2).min(free / 8).max(LEAST_RUN)
    }

    /// Which chunks get blocks when `chunk` has none, in a file of `chunks` and a volume with
    /// `free` blocks.
    pub(super) fn window(&self, chunk: u64, chunks: u64, free: u64) -> (u64, u64) {
        let gap = self.gap(chunk);
        let run = self.growth(free);
        if chunk - gap.first < run || self.runs.len() + 2 > MOST_RUNS {
            return (gap.first, gap.end.min((chunk + 1).max(gap.first + run)));
        }
        // Some on both sides: neighbouring pages fit as well.
        let around = (self.mapped / 16).min(free / 32);
        (chunk - around, gap.end.min((chunk + 1).max(chunks.min(chunk + 1 + around))))
    }

    /// Gives blocks to the chunks from `first` on, in a gap.
    pub(super) fn insert(&mut self, first: u64, run: Run) {
        let gap = self.gap(first);
        let mut placed = vec![Run::gap(first - gap.first), run];
        if gap.at < self.runs.len() {
            placed.push(Run::gap(gap.end - first - run.chunks));
        }
        let replaced = gap.at..self.runs.len().min(gap.at + 1);
        self.runs.splice(replaced, placed);
        self.blank.extend(first..first + run.chunks);
        self.tidy();
    }

    /// The first chunks without twins that follow each other, `most` of them.
    pub(super) fn without_twins(&self, most: u64) -> Option<Range<u64>> {
        let (first, run) = self.placed().find(|(_, run)| !run.twins)?;
        Some(first..first + run.chunks.min(most))
    }

    /// Moves the first chunks of a run to another; gives the blocks that they had.
    pub(super) fn replace(&mut self, first: u64, run: Run) -> Vec<u64> {
        let Gap { at, first: begin, .. } = self.gap(first);
        debug_assert!(begin == first && run.chunks <= self.runs[at].chunks, "the front of a run");
        let old = self.runs[at];
        let rest = Run {
            start: old.start + run.chunks * old.copies(),
            chunks: old.chunks - run.chunks,
            twins: old.twins,
        };
        self.runs.splice(at..=at, [run, rest]);
        self.tidy();
        (old.start..rest.start).collect()
    }

    /// Joins adjacent runs and drops empty ones.
    fn tidy(&mut self) {
        let mut tidy: Vec<Run> = Vec::with_capacity(self.runs.len());
        for &run in self.runs.iter().filter(|run| run.chunks > 0) {
            match tidy.last_mut() {
                Some(last) if last.is_gap() && run.is_gap() => last.chunks += run.chunks,
                Some(last)
                    if !last.is_gap() && last.twins == run.twins && last.end() == run.start =>
                {
                    last.chunks += run.chunks;
                }
                _ => tidy.push(run),
            }
        }
        tidy.pop_if(|last| last.is_gap());
        self.mapped = tidy.iter().filter(|run| !run.is_gap()).map(|run| run.chunks).sum();
        self.runs = tidy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAPS: MapForm = MapForm { gaps: true, twins: false };
    const BOTH: MapForm = MapForm { gaps: true, twins: true };

    fn single(start: u64, chunks: u64) -> Run {
        Run { start, chunks, twins: false }
    }

    fn double(start: u64, chunks: u64) -> Run {
        Run { start, chunks, twins: true }
    }

    /// The chunks that have blocks.
    fn chunks(map: &ChunkMap) -> Vec<u64> {
        map.chunks().map(|(chunk, _)| chunk).collect()
    }

    #[test]
    fn gaps_are_split_filled_and_stored() {
        let mut map = ChunkMap::default();
        map.insert(0, single(100, 2));
        map.insert(9, single(200, 1));
        assert_eq!((map.mapped(), map.end(), map.runs()), (3, 10, 3));
        map.insert(5, single(300, 2));
        assert_eq!(chunks(&map), [0, 1, 5, 6, 9]);
        assert_eq!((map.block_of(6), map.block_of(7), map.block_of(10)), (Some(301), None, None));
        let loaded = ChunkMap::load(&map.list(), 302, 10, GAPS).expect("as stored");
        assert_eq!((loaded.list(), loaded.mapped()), (map.list(), 5));
        assert!(ChunkMap::load(&map.list(), 302, 8, GAPS).is_none(), "a gap beyond the file");
        let first = MapForm { gaps: false, twins: false };
        assert!(ChunkMap::load(&map.list(), 302, 10, first).is_none(), "version 1 has no gaps");
        assert!(ChunkMap::load(&map.list(), 301, 10, GAPS).is_none(), "a block beyond the volume");
        map.insert(2, single(102, 3));
        map.insert(7, single(302, 2));
        assert_eq!(chunks(&map), (0..10).collect::<Vec<_>>());
        assert_eq!((map.runs(), map.has_gaps()), (3, false), "what goes on is joined");
    }

    #[test]
    fn what_is_cut_off_gives_its_blocks_back() {
        let mut map = ChunkMap::default();
        map.insert(0, single(100, 2));
        map.insert(8, single(200, 4));
        assert!(map.written(9).is_none() && map.write(9) && !map.write(9));
        assert_eq!(map.written(9), Some(201));
        assert_eq!(map.cut(10), [202, 203]);
        assert_eq!(map.cut(7), [200, 201]);
        assert_eq!((map.end(), map.runs()), (2, 1), "no gap at the end");
    }

    #[test]
    fn twins_stand_behind_their_chunks() {
        let mut map = ChunkMap::default();
        map.insert(0, double(100, 3));
        map.insert(3, double(106, 2));
        map.insert(7, single(200, 2));
        assert_eq!((map.runs(), map.mapped(), map.mapped_blocks()), (3, 7, 12), "joined");
        assert_eq!(map.blocks_of(4), Some(Blocks { own: 108, twin: Some(109) }));
        assert_eq!(map.blocks_of(8), Some(Blocks { own: 201, twin: None }));
        assert_eq!([108, 109, 110, 201].map(|id| map.chunk_of(id)), [Some(4), None, None, Some(8)]);
        let ids: Vec<u64> = map.block_ids().collect();
        assert_eq!(ids, (100..110).chain(200..202).collect::<Vec<_>>());
        let loaded = ChunkMap::load(&map.list(), 202, 9, BOTH).expect("as stored");
        assert_eq!((loaded.list(), loaded.mapped_blocks()), (map.list(), 12));
        assert!(ChunkMap::load(&map.list(), 202, 9, GAPS).is_none(), "version 2 has no twins");
        let mut end = ChunkMap::default();
        end.insert(0, double(100, 3));
        assert!(ChunkMap::load(&end.list(), 105, 3, BOTH).is_none(), "a twin beyond the volume");
        assert_eq!(map.cut(4), [108, 109, 200, 201]);
    }

    #[test]
    fn runs_take_twins_one_by_one() {
        let mut map = ChunkMap::default();
        map.insert(2, single(100, 5));
        assert_eq!(map.without_twins(3), Some(2..5));
        assert_eq!(map.replace(2, double(300, 3)), [100, 101, 102]);
        assert_eq!(map.without_twins(9), Some(5..7));
        assert_eq!(map.replace(5, double(306, 2)), [103, 104]);
        assert_eq!((map.without_twins(9), map.runs(), map.mapped()), (None, 2, 5));
        assert_eq!(map.blocks_of(6), Some(Blocks { own: 308, twin: Some(309) }));
    }
}
