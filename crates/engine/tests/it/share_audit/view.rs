//! The public state that follows from the events so far.

use super::record::{AskId, Event, Merge, ShareTrace, Shown, Spot, What};
use std::collections::{BTreeMap, BTreeSet};

/// The newest batches that are kept. No scribe shows more than a few that are not answered.
const KEPT: usize = 64;

/// A table that lives.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub partition: u32,
    pub height: u32,
    /// Asks that read it.
    pub reads: u32,
}

/// A merge that was begun and has not switched.
#[derive(Clone, Debug)]
pub(super) struct Open {
    /// The running number of the merge.
    pub id: u64,
    pub merge: Merge,
    /// Its slots, to look up.
    pub set: BTreeSet<Spot>,
    /// The asks shown before it.
    pub asks: u64,
    /// Whether its last slot left the server, to this scribe.
    pub read: bool,
}

/// A batch that was shown.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub seal: u64,
    pub bytes: u64,
    pub asks: Vec<Shown>,
    /// The merges, open when it was shown, of partitions that it shows.
    pub meets: BTreeSet<u64>,
    /// Those of them whose slots did not all leave the server, to this scribe.
    pub waits: BTreeSet<u64>,
    /// Whether its sums left the server, to this scribe.
    pub read: bool,
    /// When the last of what it waits for left.
    pub ready: u64,
    pub answered: bool,
}

/// What everybody at the server can know before an event.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub tables: BTreeMap<u64, Table>,
    /// In the order of their turns.
    pub open: Vec<Open>,
    /// The newest ones.
    pub batches: BTreeMap<u64, Batch>,
    /// The number of the next one.
    pub next_batch: u64,
    merges: u64,
    /// Asks shown, without repeats.
    pub asks: u64,
    /// The partition of each table that is being made.
    pub building: BTreeMap<u64, u32>,
    /// Scribes so far.
    pub claims: u64,
    /// The partitions that have tables. None ever loses its last one.
    pub with_tables: BTreeSet<u32>,
}

/// An event beside the public state before it.
#[derive(Clone, Copy)]
pub(super) struct Seen<'t> {
    /// Its number in the trace.
    pub number: usize,
    pub event: &'t Event,
    pub view: &'t View,
    /// Whether it is a batch or a merge that the server saw before. Whether it is the same is for
    /// the check of repeats.
    pub again: bool,
}

impl View {
    /// The partition whose tables an ask reads; none if it reads none.
    pub fn partition_of(&self, spots: &[Spot]) -> Option<u32> {
        Some(self.tables.get(&spots.first()?.table)?.partition)
    }

    /// The merge of a partition that was begun and has not switched.
    pub fn open_of(&self, partition: u32) -> Option<&Open> {
        self.open.iter().find(|open| open.merge.partition == partition)
    }

    /// Whether a batch or a merge of this name is known: then the event repeats it.
    fn repeats(&self, what: &What) -> bool {
        match what {
            What::Show(number, _) => *number < self.next_batch,
            What::Tell(number, _) => self.batches.get(number).is_some_and(|it| it.answered),
            What::Turn(merge) => self.open_of(merge.partition).is_some(),
            _ => false,
        }
    }

    fn follow(&mut self, event: &Event, again: bool) {
        match &event.what {
            What::Show(number, asks) if !again => self.show(*number, asks, event),
            What::Sums(number) => {
                if let Some(batch) = self.batches.get_mut(number) {
                    batch.read = true;
                    batch.ready = event.at;
                }
            }
            What::Tell(number, _) => {
                if let Some(batch) = self.batches.get_mut(number) {
                    batch.answered = true;
                }
            }
            What::Turn(merge) if !again => {
                let set = merge.spots.iter().copied().collect();
                let (id, merge, asks) = (self.merges, merge.clone(), self.asks);
                self.open.push(Open { id, merge, set, asks, read: false });
                self.merges += 1;
            }
            What::Slots(partition) => {
                let open = self.open.iter_mut().find(|open| open.merge.partition == *partition);
                let Some(open) = open else { return };
                open.read = true;
                for batch in self.batches.values_mut().filter(|batch| !batch.answered) {
                    if batch.waits.remove(&open.id) {
                        batch.ready = batch.ready.max(event.at);
                    }
                }
            }
            What::Build { partition, table } => drop(self.building.insert(*table, *partition)),
            What::Switch { table, replaced } => self.switch(*table, replaced),
            What::Claim => self.claim(),
            _ => {}
        }
    }

    /// What the last scribe had read is gone with it.
    fn claim(&mut self) {
        self.claims += 1;
        self.open.iter_mut().for_each(|open| open.read = false);
        let open: BTreeSet<u64> = self.open.iter().map(|open| open.id).collect();
        for batch in self.batches.values_mut().filter(|batch| !batch.answered) {
            batch.read = false;
            batch.waits = &batch.meets & &open;
        }
    }

    fn show(&mut self, number: u64, asks: &[Shown], event: &Event) {
        let (mut meets, mut waits) = (BTreeSet::new(), BTreeSet::new());
        for shown in asks {
            let partition = self.partition_of(&shown.spots);
            if let Some(open) = partition.and_then(|partition| self.open_of(partition)) {
                meets.insert(open.id);
                waits.extend((!open.read).then_some(open.id));
            }
            for spot in &shown.spots {
                if let Some(table) = self.tables.get_mut(&spot.table) {
                    table.reads += 1;
                }
            }
        }
        self.asks += asks.len() as u64;
        self.next_batch = number + 1;
        let (asks, seal, bytes) = (asks.to_vec(), event.seal, event.bytes);
        let batch =
            Batch { seal, bytes, asks, meets, waits, read: false, ready: 0, answered: false };
        self.batches.insert(number, batch);
        while self.batches.len() > KEPT {
            self.batches.pop_first();
        }
    }

    fn switch(&mut self, table: u64, replaced: &[u64]) {
        let Some(partition) = self.building.remove(&table) else { return };
        let Some(at) = self.open.iter().position(|open| open.merge.partition == partition) else {
            return;
        };
        let open = self.open.remove(at);
        self.tables.retain(|name, _| !replaced.contains(name));
        let height = open.merge.height;
        self.with_tables.insert(partition);
        self.tables.insert(table, Table { partition, height, reads: 0 });
    }
}

/// Goes through a trace. `look` gets each event with the public state before it.
pub(super) fn walk(trace: &ShareTrace, mut look: impl FnMut(Seen<'_>)) {
    let mut view = View::default();
    for (number, event) in trace.events.iter().enumerate() {
        let again = view.repeats(&event.what);
        look(Seen { number, event, view: &view, again });
        view.follow(event, again);
    }
}

/// Counts what breaks a rule, and keeps the first of it.
#[derive(Default)]
pub(super) struct Broken {
    pub count: usize,
    pub first: String,
}

impl Broken {
    /// Whether the rule holds for this event; `why` says what is wrong.
    pub fn must(&mut self, holds: bool, seen: &Seen<'_>, why: impl FnOnce() -> String) {
        if holds {
            return;
        }
        if self.count == 0 {
            self.first = format!("event {}: {}", seen.number, why());
        }
        self.count += 1;
    }
}

/// An ask in words.
pub(super) fn named(ask: &AskId) -> String {
    format!("ask {} of session {:x}", ask.seq, ask.session)
}
