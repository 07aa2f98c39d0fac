//! Which block holds which segment of a file, kept as runs.
//!
//! A run may be *unwritten*: its blocks are set aside for the file but hold none of its data. They
//! read as zeros without an access, and the first write to one replaces all of it. A crash that
//! restores older metadata makes blocks unwritten again, whatever they hold by then.

use super::tables::{Meta, SEGMENTS};
use super::types::Ino;
use crate::Result;
use redb::{ReadableTable, Table};

/// Set in the stored count of an unwritten run.
const UNWRITTEN: u64 = 1 << 63;

/// A run: segments from `segment` on lie in blocks from `block` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub segment: u64,
    pub block: u64,
    pub count: u64,
    pub unwritten: bool,
}

impl Extent {
    /// Decodes a stored run.
    pub(super) fn load(segment: u64, (block, count): (u64, u64)) -> Self {
        let unwritten = count & UNWRITTEN != 0;
        Extent { segment, block, count: count & !UNWRITTEN, unwritten }
    }

    /// As stored.
    pub(super) fn stored(self) -> (u64, u64) {
        let flag = if self.unwritten { UNWRITTEN } else { 0 };
        (self.block, self.count | flag)
    }

    /// The segment behind the last one.
    pub(super) fn end(self) -> u64 {
        self.segment + self.count
    }

    /// The blocks.
    pub(super) fn blocks(self) -> std::ops::Range<u64> {
        self.block..self.block + self.count
    }

    /// The part in `first..end`.
    fn cut(self, first: u64, end: u64) -> Option<Extent> {
        let (start, stop) = (self.segment.max(first), self.end().min(end));
        (start < stop).then(|| Extent {
            segment: start,
            block: self.block + (start - self.segment),
            count: stop - start,
            ..self
        })
    }

    /// Whether `next` continues this run, in segments and in blocks.
    fn joins(self, next: Extent) -> bool {
        self.end() == next.segment
            && self.blocks().end == next.block
            && self.unwritten == next.unwritten
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
    Ok(Some(Extent::load(key.value().1, value.value())))
}

/// The runs with segments in `first..end`, uncut.
fn touching(table: &SegmentTable<'_>, ino: Ino, first: u64, end: u64) -> Result<Vec<Extent>> {
    if first >= end {
        return Ok(Vec::new());
    }
    let mut runs = Vec::new();
    runs.extend(before(table, ino, first)?.filter(|run| run.end() > first));
    for entry in table.range((ino, first)..(ino, end))? {
        let (key, value) = entry?;
        runs.push(Extent::load(key.value().1, value.value()));
    }
    Ok(runs)
}

impl Meta {
    /// All runs with segments in `first..end`, cut to that range.
    pub(super) fn extents(&self, ino: Ino, first: u64, end: u64) -> Result<Vec<Extent>> {
        let runs = touching(&self.open(SEGMENTS)?, ino, first, end)?;
        Ok(runs.into_iter().filter_map(|run| run.cut(first, end)).collect())
    }

    /// A segment's run, from that segment on.
    pub(super) fn extent_at(&self, ino: Ino, segment: u64) -> Result<Option<Extent>> {
        Ok(self.extents(ino, segment, segment + 1)?.pop())
    }

    /// Whether any segment from `first` on has a block.
    pub(super) fn maps_from(&self, ino: Ino, first: u64) -> Result<bool> {
        Ok(before(&self.open(SEGMENTS)?, ino, u64::MAX)?.is_some_and(|run| run.end() > first))
    }

    /// The first segment from `first` on that is, or is not, `written`.
    pub(super) fn next_segment(&self, ino: Ino, first: u64, written: bool) -> Result<Option<u64>> {
        let table = self.open(SEGMENTS)?;
        let mut at = first;
        let inside = before(&table, ino, first)?.filter(|run| run.end() > first);
        let rest = table.range((ino, first)..(ino, u64::MAX))?;
        let rest = rest.map(|entry| -> Result<Extent> {
            let (key, value) = entry?;
            Ok(Extent::load(key.value().1, value.value()))
        });
        for run in inside.map(Ok).into_iter().chain(rest) {
            let run = run?;
            match (written, run.unwritten) {
                (true, false) => return Ok(Some(run.segment.max(first))),
                (false, false) if run.segment <= at => at = run.end(),
                (false, _) => return Ok(Some(at)),
                (true, true) => {}
            }
        }
        Ok((!written).then_some(at))
    }

    /// Records blocks for segments that have none; `placed` is sorted by segment.
    pub(super) fn map_segments(
        &self,
        ino: Ino,
        placed: &[(u64, u64)],
        unwritten: bool,
    ) -> Result<()> {
        let mut table = self.open(SEGMENTS)?;
        let mut at = 0;
        while at < placed.len() {
            let (segment, block) = placed[at];
            let count = (0u64..)
                .zip(&placed[at..])
                .take_while(|&(step, &(s, b))| s == segment + step && b == block + step)
                .count();
            let run = Extent { segment, block, count: count as u64, unwritten };
            insert_run(&mut table, ino, run)?;
            at += count;
        }
        Ok(())
    }

    /// Forgets the segments in `first..end`; gives their runs.
    pub(super) fn unmap(&self, ino: Ino, first: u64, end: u64) -> Result<Vec<Extent>> {
        let mut table = self.open(SEGMENTS)?;
        let mut freed = Vec::new();
        for run in touching(&table, ino, first, end)? {
            table.remove((ino, run.segment))?;
            for kept in [run.cut(0, first), run.cut(end, u64::MAX)].into_iter().flatten() {
                table.insert((ino, kept.segment), kept.stored())?;
            }
            freed.extend(run.cut(first, end));
        }
        Ok(freed)
    }

    /// Marks the mapped segments in `first..end` as written or not; gives the runs that changed.
    pub(super) fn mark(
        &self,
        ino: Ino,
        first: u64,
        end: u64,
        unwritten: bool,
    ) -> Result<Vec<Extent>> {
        let mut runs = self.extents(ino, first, end)?;
        runs.retain(|run| run.unwritten != unwritten);
        for &run in &runs {
            self.unmap(ino, run.segment, run.end())?;
            insert_run(&mut self.open(SEGMENTS)?, ino, Extent { unwritten, ..run })?;
        }
        Ok(runs)
    }
}

/// Inserts a run, joined with neighbours that continue it in segments and blocks.
fn insert_run(table: &mut SegmentTable<'_>, ino: Ino, mut run: Extent) -> Result<()> {
    let previous = before(table, ino, run.segment)?;
    if let Some(previous) = previous.filter(|previous| previous.joins(run)) {
        run = Extent { count: previous.count + run.count, ..previous };
    }
    let end = run.end();
    let next = table.get((ino, end))?.map(|value| Extent::load(end, value.value()));
    if let Some(next) = next.filter(|&next| run.joins(next)) {
        table.remove((ino, end))?;
        run.count += next.count;
    }
    table.insert((ino, run.segment), run.stored())?;
    Ok(())
}
