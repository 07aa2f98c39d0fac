//! S2: an ask shows one partition and one slot of each of its tables; a merge reads C slots of
//! each table that it replaces; each ask has one answer; all asks and answers have one length.

use super::record::{AskId, Merge, ShareTrace, Shown, What};
use super::view::{Broken, Seen, named};
use oblivio_audit::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// What was counted.
#[derive(Default)]
pub(super) struct Counts {
    broken: Broken,
    /// The length of the first ask, and of the first answer.
    ask: Option<u64>,
    answer: Option<u64>,
}

impl Counts {
    pub fn see(&mut self, trace: &ShareTrace, seen: &Seen<'_>) {
        match &seen.event.what {
            What::Ask(id) => {
                let same = *self.ask.get_or_insert(seen.event.bytes) == seen.event.bytes;
                self.broken.must(same, seen, || format!("{} has another length", named(id)));
            }
            What::Show(_, asks) if !seen.again => {
                let some = !asks.is_empty() && asks.len() <= trace.sizes.batch;
                self.broken.must(some, seen, || "a batch of another size".into());
                asks.iter().for_each(|shown| self.ask(trace, shown, seen));
            }
            What::Turn(merge) if !seen.again => self.merge(trace, merge, seen),
            What::Tell(number, answers) => {
                let batch = seen.view.batches.get(number);
                let asked = batch.map_or(0, |batch| batch.asks.len());
                self.broken.must(answers.len() == asked, seen, || "one answer for each ask".into());
                answers.iter().for_each(|(id, bytes)| self.answer(id, *bytes, seen));
            }
            What::Refuse(answers) => {
                answers.iter().for_each(|(id, bytes)| self.answer(id, *bytes, seen));
            }
            _ => {}
        }
    }

    fn answer(&mut self, id: &AskId, bytes: u64, seen: &Seen<'_>) {
        let same = *self.answer.get_or_insert(bytes) == bytes;
        self.broken
            .must(same, seen, || format!("the answer to {} is shorter or longer", named(id)));
    }

    fn ask(&mut self, trace: &ShareTrace, shown: &Shown, seen: &Seen<'_>) {
        let Some(partition) = seen.view.partition_of(&shown.spots) else {
            // Of a partition without tables. Once all have some, there is none.
            let all = seen.view.with_tables.len() == trace.sizes.partitions() as usize;
            let known = shown.spots.is_empty() && !all;
            self.broken
                .must(known, seen, || format!("{} reads an unknown table", named(&shown.ask)));
            return;
        };
        let read: BTreeSet<u64> = shown.spots.iter().map(|spot| spot.table).collect();
        let live = seen.view.tables.iter().filter(|(_, table)| table.partition == partition);
        let whole = read.len() == shown.spots.len() && live.map(|(name, _)| name).eq(&read);
        let why = || format!("{} does not read one slot of each table", named(&shown.ask));
        self.broken.must(whole, seen, why);
    }

    fn merge(&mut self, trace: &ShareTrace, merge: &Merge, seen: &Seen<'_>) {
        let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
        for spot in &merge.spots {
            *counts.entry(spot.table).or_default() += 1;
        }
        let base = merge.height == trace.sizes.base();
        let replaced = seen.view.tables.iter().filter(|(_, table)| {
            table.partition == merge.partition && (table.height < merge.height || base)
        });
        let capacity = |height| trace.sizes.of(height).map_or(0, |sizes| sizes.capacity);
        let due: BTreeMap<u64, u32> =
            replaced.map(|(name, table)| (*name, capacity(table.height))).collect();
        let why =
            || format!("a merge of partition {} reads {counts:?}, not {due:?}", merge.partition);
        self.broken.must(counts == due, seen, why);
    }

    pub fn finding(self) -> Finding {
        let Broken { count, first } = self.broken;
        let text =
            if count == 0 { "one slot of each table, C of each at merges".into() } else { first };
        Finding::exact("S2 counts", count, text)
    }
}
