//! S3 of one trace: turns, tables and batches follow from the number of asks, and from how often
//! tables were read.

use super::record::{Merge, ShareTrace, What};
use super::view::{Broken, Seen};
use oblivio_audit::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// The schedule so far.
#[derive(Default)]
pub(super) struct Turns {
    broken: Broken,
    /// Scheduled turns so far.
    turns: u64,
    /// Merges before their turn.
    early: u64,
    /// Partitions that were read too often when their turn came: their next merge may be either.
    both: BTreeSet<u32>,
    /// Bytes of the first record of each kind and size.
    lengths: BTreeMap<(u8, u64), u64>,
}

impl Turns {
    pub fn see(&mut self, trace: &ShareTrace, seen: &Seen<'_>) {
        let sizes = &trace.sizes;
        match &seen.event.what {
            What::Turn(merge) if !seen.again => self.turn(trace, merge, seen),
            What::Show(_, asks) if !seen.again => {
                let first = self.due_after(trace);
                let grace = sizes.open_turns * u64::from(sizes.turn_asks);
                let why = || format!("a turn due after ask {first} was left out");
                self.broken.must(seen.view.asks < first + grace, seen, why);
                // A merge is over before that, else all wait.
                let why = || "a batch does not wait for a merge".to_owned();
                let now = seen.view.asks;
                let open = seen.view.open.iter().all(|open| now < open.asks + grace);
                self.broken.must(open, seen, why);
                self.length(0, asks.len() as u64, seen);
            }
            What::Tell(_, answers) => self.length(1, answers.len() as u64, seen),
            What::Build { partition, .. } => {
                let height = seen.view.open_of(*partition).map(|open| open.merge.height);
                let slots = height.and_then(|height| sizes.of(height)).map(|sizes| sizes.slots);
                let bytes = slots.map_or(0, |slots| u64::from(slots) * sizes.slot_bytes);
                let why = || format!("a table of {} bytes", seen.event.bytes);
                self.broken.must(seen.event.bytes == bytes, seen, why);
            }
            What::Switch { table, replaced } => self.switch(*table, replaced, seen),
            _ => {}
        }
    }

    /// The asks after which the next turn is due.
    fn due_after(&self, trace: &ShareTrace) -> u64 {
        (self.turns + 1) * u64::from(trace.sizes.turn_asks)
    }

    fn turn(&mut self, trace: &ShareTrace, merge: &Merge, seen: &Seen<'_>) {
        // Read too often: a public fact.
        let crowded = seen.view.tables.values().any(|table| {
            let most = trace.sizes.of(table.height).map_or(0, |sizes| sizes.early_reads);
            table.partition == merge.partition && table.reads >= most
        });
        let scheduled = trace.sizes.turn(self.turns) == (merge.partition, merge.height)
            && seen.view.asks >= self.due_after(trace);
        let early = merge.height == trace.sizes.base() && crowded;
        if scheduled {
            self.turns += 1;
            self.both.extend(early.then_some(merge.partition));
            return;
        }
        self.early += 1;
        let early = early || self.both.remove(&merge.partition);
        let why = || format!("partition {} merges, and it is not its turn", merge.partition);
        self.broken.must(early, seen, why);
    }

    fn switch(&mut self, table: u64, replaced: &[u64], seen: &Seen<'_>) {
        let partition = seen.view.building.get(&table);
        let open = partition.and_then(|&partition| seen.view.open_of(partition));
        let Some(open) = open else {
            self.broken.must(false, seen, || "a table that was not made".into());
            return;
        };
        let mut read: Vec<u64> = open.merge.spots.iter().map(|spot| spot.table).collect();
        read.sort_unstable();
        read.dedup();
        let mut gone = replaced.to_vec();
        gone.sort_unstable();
        self.broken.must(read == gone && open.read, seen, || "it replaces other tables".into());
        // The record has room for each ask of its partition that waits for an answer. Before a
        // partition has tables, its asks read none.
        let batches = seen.view.batches.values();
        let met = batches.filter(|batch| !batch.answered && batch.meets.contains(&open.id));
        let partition = Some(open.merge.partition);
        let asks = met.flat_map(|batch| &batch.asks);
        let asks = asks.filter(|shown| seen.view.partition_of(&shown.spots) == partition).count();
        if !replaced.is_empty() {
            self.length(2, asks as u64, seen);
        }
    }

    /// Records of one kind and size have one length.
    fn length(&mut self, kind: u8, size: u64, seen: &Seen<'_>) {
        let bytes = seen.event.bytes;
        let first = *self.lengths.entry((kind, size)).or_insert(bytes);
        self.broken.must(first == bytes, seen, || format!("{bytes} bytes, not {first}"));
    }

    pub fn finding(self) -> Finding {
        let Self { broken: Broken { count, first }, turns, early, .. } = self;
        let text = format!("{turns} turns as they were due, {early} merges early by public counts");
        Finding::exact("S3 schedule", count, if count == 0 { text } else { first })
    }
}
