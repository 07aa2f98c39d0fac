//! Which block holds which segment of a file, kept as runs.

use super::tables::{Meta, SEGMENTS};
use super::types::Ino;
use crate::Result;
use redb::{ReadableTable, Table};

/// A run: segments from `segment` on lie in blocks from `block` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub segment: u64,
    pub block: u64,
    pub count: u64,
}

impl Extent {
    fn end(self) -> u64 {
        self.segment + self.count
    }
}

type SegmentTable<'a> = Table<'a, (u64, u64), (u64, u64)>;

/// The run that begins before `segment`.
fn before(table: &SegmentTable<'_>, ino: Ino, segment: u64) -> Result<Option<Extent>> {
    let mut range = table.range((ino, 0)..(ino, segment))?;
    let Some(entry) = range.next_back() else {
        return Ok(None);
    };
    let (key, value) = entry?;
    let (block, count) = value.value();
    Ok(Some(Extent { segment: key.value().1, block, count }))
}

impl Meta {
    /// All runs with segments in `first..end`, cut to that range.
    pub(super) fn extents(&self, ino: Ino, first: u64, end: u64) -> Result<Vec<Extent>> {
        let table = self.open(SEGMENTS)?;
        let mut runs = Vec::new();
        runs.extend(before(&table, ino, first)?);
        for entry in table.range((ino, first)..(ino, end.max(first)))? {
            let (key, value) = entry?;
            let (block, count) = value.value();
            runs.push(Extent { segment: key.value().1, block, count });
        }
        Ok(runs.into_iter().filter_map(|run| cut(run, first, end)).collect())
    }

    /// Records blocks for segments that have none; `placed` is sorted by segment.
    pub(super) fn map_segments(&self, ino: Ino, placed: &[(u64, u64)]) -> Result<()> {
        let mut table = self.open(SEGMENTS)?;
        let mut at = 0;
        while at < placed.len() {
            let (segment, block) = placed[at];
            let count = (0u64..)
                .zip(&placed[at..])
                .take_while(|&(step, &(s, b))| s == segment + step && b == block + step)
                .count();
            let run = Extent { segment, block, count: count as u64 };
            insert_run(&mut table, ino, run)?;
            at += count;
        }
        Ok(())
    }

    /// Forgets all segments from `first` on, and gives their blocks.
    pub(super) fn unmap_from(&self, ino: Ino, first: u64) -> Result<Vec<u64>> {
        let runs = self.extents(ino, first, u64::MAX)?;
        let mut table = self.open(SEGMENTS)?;
        let mut freed = Vec::new();
        if let Some(run) = before(&table, ino, first)?.filter(|run| run.end() > first) {
            let kept = first - run.segment;
            table.insert((ino, run.segment), (run.block, kept))?;
        }
        for run in runs {
            freed.extend(run.block..run.block + run.count);
            table.remove((ino, run.segment))?;
        }
        Ok(freed)
    }
}

/// The part of a run in `first..end`.
fn cut(run: Extent, first: u64, end: u64) -> Option<Extent> {
    let (start, stop) = (run.segment.max(first), run.end().min(end));
    (start < stop).then(|| Extent {
        segment: start,
        block: run.block + (start - run.segment),
        count: stop - start,
    })
}

/// Puts a run in, joined with its neighbours where segments and blocks both go on.
fn insert_run(table: &mut SegmentTable<'_>, ino: Ino, mut run: Extent) -> Result<()> {
    let previous = before(table, ino, run.segment)?;
    if let Some(previous) =
        previous.filter(|p| p.end() == run.segment && p.block + p.count == run.block)
    {
        run = Extent { count: previous.count + run.count, ..previous };
    }
    let next = table
        .get((ino, run.end()))?
        .map(|value| value.value())
        .filter(|&(block, _)| block == run.block + run.count);
    if let Some((_, count)) = next {
        table.remove((ino, run.end()))?;
        run.count += count;
    }
    table.insert((ino, run.segment), (run.block, run.count))?;
    Ok(())
}
