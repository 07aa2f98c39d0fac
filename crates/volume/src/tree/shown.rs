//! Reports to a listener what the store saw, and by which public rule.

use crate::Result;
use crate::core::{rule_of, runs};
use crate::options::{LogRule, OnShown, Rule, Shown, ShownKind};
use crate::records::writes::Writes;
use crate::tree::slab::Slab;
use crate::tree::volume::TreeVolume;
use oblivio_engine::tree::{LOG_ENTRIES, TopView};
use oblivio_engine::{BucketId, Extent, Read, Write};

impl Shown {
    /// Begins another round of paths; the one before it, if any, was of the position map.
    pub(crate) fn next_round(&mut self, report: &mut OnShown) {
        if !self.leaves.is_empty() {
            self.kind = ShownKind::Map;
            report(&std::mem::take(self));
        }
    }

    /// Adds a round's reads, before they happen.
    pub(crate) fn read(&mut self, read: &Read<'_>, slab: &Slab) {
        self.leaves.extend(read.shown.iter().map(|leaf| leaf.0));
        self.scheduled = read.scheduled;
        self.reads += read.extents.len() as u32;
        self.bytes_read += bytes(read.extents);
        self.places_read.extend(places(read.extents, slab));
    }

    /// Adds writes.
    pub(crate) fn wrote(&mut self, write: &Write<'_>, slab: &Slab) {
        // Entries come last.
        let is_bucket = |extent: &Extent| extent.offset < LOG_ENTRIES;
        let buckets = write.extents.partition_point(is_bucket);
        self.entries += (write.extents.len() - buckets) as u32;
        let written = &write.extents[..buckets];
        self.writes += written.len() as u32;
        self.bytes_written += bytes(written);
        self.places_written.extend(places(written, slab));
    }
}

fn bytes(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.bytes).sum()
}

fn places(extents: &[Extent], slab: &Slab) -> impl Iterator<Item = u64> {
    extents.iter().filter_map(|extent| slab.place_in_all(BucketId(extent.offset)))
}

impl TreeVolume {
    /// Records writes and the root, in the size class of `least` bytes or a larger one.
    pub(crate) fn record_sync(&mut self, writes: &Writes, least: usize) -> Result<()> {
        let bytes_written = self.ledger.record_sync(writes, least)?;
        self.report(Shown { kind: ShownKind::Sync, bytes_written, ..Shown::default() });
        Ok(())
    }

    /// Reports the rule of the next requests: after a commit and after a change of size.
    pub(crate) fn report_now(&mut self) {
        if self.options.on_shown.is_some() {
            let rule = Some(self.rule());
            self.report(Shown { kind: ShownKind::Rule, rule, ..Shown::default() });
        }
    }

    /// As [`Self::report_now`] with an empty memory, and with the stored buckets.
    pub(crate) fn report_start(&mut self) {
        if self.options.on_shown.is_some() {
            let mut rule = self.rule();
            rule.swept = self.ledger.engine.swept();
            rule.stored = Some(runs(self.ledger.slab.stored().map(|bucket| bucket.0)));
            let lacking = |missing| {
                let lacks =
                    |bucket: &BucketId| self.ledger.engine.missing_slots(*bucket) == missing;
                runs(self.ledger.slab.stored().filter(lacks).map(|bucket| bucket.0))
            };
            rule.lacking = (1..rule.slots as usize).map(lacking).collect();
            let place = |bucket| self.ledger.slab.place(bucket).map(|(_, offset)| offset);
            rule.places = self.ledger.slab.stored().filter_map(place).collect();
            if let Some(log) = &mut rule.log {
                let changed = TopView::of(&self.ledger.engine).buckets();
                log.changed = runs(changed.into_iter().rev().map(|bucket| bucket.0));
            }
            self.report(Shown { kind: ShownKind::Rule, rule: Some(rule), ..Shown::default() });
        }
    }

    /// The next report, still empty.
    pub(crate) fn shown(&self, kind: ShownKind) -> Shown {
        let (depth, sweep) = (self.ledger.engine.depth().0, self.ledger.engine.is_shrinking());
        Shown { kind, depth, sweep, ..Shown::default() }
    }

    fn rule(&self) -> Rule {
        let engine = &self.ledger.engine;
        let ahead = self.ledger.records.ahead_of().is_some();
        let log = TopView::of(engine).rule().map(|(rule, entries)| LogRule {
            buckets: rule.buckets,
            places: rule.places,
            next: entries.end,
            owed: TopView::of(engine).owed(),
            entry_bytes: TopView::of(engine).entry_bytes() as u64,
            slot_bytes: self.ledger.slab.top.slot_bytes(),
            changed: Vec::new(),
        });
        Rule { flush_at: engine.flush_at(), ahead, log, ..rule_of(engine) }
    }

    pub(crate) fn report(&mut self, shown: Shown) {
        let (depth, sweep) = (self.ledger.engine.depth().0, self.ledger.engine.is_shrinking());
        if let Some(report) = &mut self.options.on_shown {
            report(&Shown { depth, sweep, ..shown });
        }
    }
}
