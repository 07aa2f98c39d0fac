//! A run: clients, a server that records, and the planted scribe, in virtual time.

use super::flaw::Flaw;
use super::line::{
    Arrival, BATCH_WAIT, CLIENT_LINE, CLIENTS, Line, READ_BATCH, READ_SLOT, SCRIBE_LINE, WINDOW,
    Workload, pause,
};
use super::scribe::{Answered, Ask, Scribe};
use crate::share_audit::record::{AskId, Event, Merge, ShareTrace, Truth, What};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most batches that are shown and not answered.
const UNDER_WAY: usize = 8;
/// Bytes of an ask's block, and of what is around it.
const BLOCK: u64 = 4096;
const AROUND: u64 = 512;

/// A run to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub flaw: Option<Flaw>,
    pub workload: Workload,
    pub seed: u64,
    /// The asks of each client.
    pub asks: u64,
    /// Microseconds between two deaths of a scribe.
    pub kills: Option<u64>,
    /// Whether the slots of a merge leave the server before anything that is read later. Then no
    /// batch waits for one, and the times of two runs are the same.
    pub quick_merges: bool,
}

/// A batch that is not answered.
#[derive(Clone, Debug)]
struct Flight {
    asks: Vec<Answered>,
    blocks: Vec<u64>,
    read: bool,
    /// The partitions of merges, under way when it was shown, that it meets; and those of them
    /// that it waits for.
    meets: BTreeSet<u32>,
    waits: BTreeSet<u32>,
    /// Answers that were given already, and whether it was held back: flaws.
    given: BTreeSet<AskId>,
    late: bool,
}

/// The run so far.
pub(super) struct Flow {
    plan: Plan,
    line: Line,
    scribe: Scribe,
    /// An older state, for a flaw.
    old: Option<(Scribe, u64)>,
    /// Scribes so far, and whether this one is gone.
    scribes: u64,
    gone: bool,
    waiting: VecDeque<Ask>,
    batch_due: bool,
    flights: BTreeMap<u64, Flight>,
    next_batch: u64,
    /// Partitions whose merge's slots are at the scribe.
    gathered: BTreeSet<u32>,
    /// Answers that clients got.
    answered: u64,
    events: Vec<Event>,
    truth: Truth,
}

/// Makes a run; what the server saw, and the truth of it.
pub(super) fn run(plan: Plan) -> (ShareTrace, Truth) {
    let scribe = Scribe::new(plan.flaw, plan.seed);
    let sizes = scribe.sizes.clone();
    let mut flow = Flow {
        plan,
        line: Line::default(),
        scribe,
        old: None,
        scribes: 0,
        gone: false,
        waiting: VecDeque::new(),
        batch_due: false,
        flights: BTreeMap::new(),
        next_batch: 0,
        gathered: BTreeSet::new(),
        answered: 0,
        events: Vec::new(),
        truth: Truth::new(),
    };
    for session in 0..CLIENTS {
        for seq in 0..WINDOW.min(plan.asks) {
            flow.ask(AskId { session, seq });
        }
    }
    if let Some(time) = plan.kills {
        flow.line.send(time, 0, Arrival::Kill);
    }
    while let Some((scribe, arrival)) = flow.line.next() {
        flow.arrive(scribe, arrival);
    }
    (ShareTrace { sizes, delay: Some(2 * SCRIBE_LINE), events: flow.events }, flow.truth)
}

impl Flow {
    fn open(&self, id: AskId) -> Ask {
        let (block, write) = self.plan.workload.block(id, self.plan.seed);
        Ask { id, block, write }
    }

    fn ask(&mut self, id: AskId) {
        self.line.send(pause(id) + CLIENT_LINE, 0, Arrival::AskAtServer(id));
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.plan.flaw == Some(flaw)
    }

    fn record(&mut self, bytes: u64, seal: u64, what: What) {
        self.events.push(Event { at: self.line.now, bytes, seal, what });
    }

    fn tell_server(&mut self, arrival: Arrival) {
        self.line.send(SCRIBE_LINE, self.scribes, arrival);
    }

    fn arrive(&mut self, scribe: u64, arrival: Arrival) {
        let mine = scribe == self.scribes;
        match arrival {
            Arrival::AskAtServer(id) => {
                let reads = self.has(Flaw::ShortReads) && !self.open(id).write;
                let bytes = if reads { AROUND } else { AROUND + BLOCK };
                self.record(bytes, 0, What::Ask(id));
                self.line.send(SCRIBE_LINE, 0, Arrival::AskAtScribe(id));
            }
            Arrival::AskAtScribe(id) => {
                let ask = self.open(id);
                self.waiting.push_back(ask);
                self.wait_for_batch();
            }
            Arrival::Batch => {
                self.batch_due = false;
                self.show();
            }
            Arrival::AnswerAtClient(id) => {
                self.answered += 1;
                let next = AskId { seq: id.seq + WINDOW, ..id };
                if next.seq < self.plan.asks {
                    self.ask(next);
                }
            }
            Arrival::Kill => {
                self.gone = true;
                // What it had sent arrives.
                self.line.send(SCRIBE_LINE + 1, 0, Arrival::Claim);
            }
            Arrival::Claim => self.claim(),
            Arrival::SumsAtScribe(_) | Arrival::SlotsAtScribe(_) if self.gone => {}
            at_server if mine => self.at_server(at_server),
            _ => {}
        }
    }

    /// What only concerns the scribe who lives.
    fn at_server(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::ShowAtServer(batch) => self.show_at_server(batch),
            Arrival::SumsLeave(batch) => {
                self.record(0, 0, What::Sums(batch));
                self.tell_server(Arrival::SumsAtScribe(batch));
            }
            Arrival::SumsAtScribe(batch) => {
                if let Some(flight) = self.flights.get_mut(&batch) {
                    flight.read = true;
                }
                self.tell();
            }
            Arrival::TurnAtServer(merge) => {
                let slot = if self.plan.quick_merges { 0 } else { READ_SLOT };
                let time = slot * merge.spots.len() as u64;
                let leave = Arrival::SlotsLeave(merge.partition);
                self.record(AROUND, 0, What::Turn(merge));
                self.line.send(time, self.scribes, leave);
            }
            Arrival::SlotsLeave(partition) => {
                self.record(0, 0, What::Slots(partition));
                self.tell_server(Arrival::SlotsAtScribe(partition));
            }
            Arrival::SlotsAtScribe(partition) => self.gathered(partition),
            Arrival::BuildAtServer(partition, table) => self.build_at_server(partition, table),
            Arrival::SwitchAtServer(table, replaced) => {
                self.record(AROUND, 0, What::Switch { table, replaced });
                // A batch may have waited for it.
                self.show();
            }
            Arrival::TellAtServer(batch, answers) => {
                for (id, _) in &answers {
                    self.line.send(CLIENT_LINE, 0, Arrival::AnswerAtClient(*id));
                }
                let bytes = AROUND + answers.iter().map(|answer| answer.1).sum::<u64>();
                self.record(bytes, 0, What::Tell(batch, answers));
            }
            _ => {}
        }
    }

    fn wait_for_batch(&mut self) {
        if !std::mem::replace(&mut self.batch_due, true) {
            self.line.send(BATCH_WAIT, self.scribes, Arrival::Batch);
        }
    }

    /// Shows what waits: until the next turn, and while merges and batches are not behind.
    fn show(&mut self) {
        while !self.waiting.is_empty() && !self.gone {
            self.begin_merges();
            let count = (self.scribe.asks_allowed() as usize).min(self.scribe.sizes.batch);
            if count == 0 || self.flights.len() >= UNDER_WAY {
                return;
            }
            let asks: Vec<Ask> = self.waiting.drain(..count.min(self.waiting.len())).collect();
            let mut flight = Flight {
                asks: Vec::new(),
                blocks: Vec::new(),
                read: false,
                meets: BTreeSet::new(),
                waits: BTreeSet::new(),
                given: BTreeSet::new(),
                late: false,
            };
            for ask in &asks {
                let flights = self.flights.values().chain([&flight]);
                let in_flight = flights.flat_map(|it| &it.blocks).any(|it| *it == ask.block);
                let answered = self.scribe.show(ask, in_flight);
                self.truth.insert(ask.id, answered.hit);
                flight.blocks.push(ask.block);
                flight.asks.push(answered);
            }
            flight.meets = self.merges_met(&flight);
            flight.waits = &flight.meets - &self.gathered;
            let batch = self.next_batch;
            self.next_batch += 1;
            self.flights.insert(batch, flight);
            self.tell_server(Arrival::ShowAtServer(batch));
            if self.has(Flaw::AsTheyCome) {
                self.tell_at_hand(batch);
            }
            if self.has(Flaw::StaleState) && batch.is_multiple_of(64) {
                self.old = Some((self.scribe.clone(), self.next_batch));
            }
        }
        self.begin_merges();
    }

    /// The merges under way of partitions that a batch shows.
    fn merges_met(&self, flight: &Flight) -> BTreeSet<u32> {
        let open = self.scribe.open.iter().map(|open| &open.merge);
        let meets = open.filter(|merge| {
            let tables: BTreeSet<u64> = merge.spots.iter().map(|spot| spot.table).collect();
            let mut spots = flight.asks.iter().flat_map(|ask| &ask.shown.spots);
            spots.any(|spot| tables.contains(&spot.table))
        });
        meets.map(|merge| merge.partition).collect()
    }

    fn show_at_server(&mut self, batch: u64) {
        let Some(flight) = self.flights.get(&batch) else { return };
        let asks: Vec<_> = flight.asks.iter().map(|ask| ask.shown.clone()).collect();
        let bytes = AROUND + 64 * asks.len() as u64;
        let seal = asks.iter().fold(batch, |seal, shown| {
            (seal ^ shown.ask.session ^ shown.ask.seq << 8).wrapping_mul(0x0100_0000_01b3)
        });
        self.record(bytes, seal, What::Show(batch, asks));
        self.line.send(READ_BATCH, self.scribes, Arrival::SumsLeave(batch));
    }

    fn begin_merges(&mut self) {
        if self.gone {
            return;
        }
        while let Some(merge) = self.scribe.due() {
            self.gathered.remove(&merge.partition);
            self.tell_server(Arrival::TurnAtServer(merge));
        }
    }

    fn gathered(&mut self, partition: u32) {
        self.gathered.insert(partition);
        for flight in self.flights.values_mut() {
            flight.waits.remove(&partition);
        }
        let table = self.scribe.name_table();
        self.tell_server(Arrival::BuildAtServer(partition, table));
        self.tell();
    }

    fn build_at_server(&mut self, partition: u32, table: u64) {
        let mut open = self.scribe.open.iter();
        let Some(open) = open.find(|open| open.merge.partition == partition) else { return };
        let height = open.merge.height as usize;
        let sizes = &self.scribe.sizes;
        let bytes = u64::from(sizes.tables[height].slots) * sizes.slot_bytes;
        self.record(bytes, 0, What::Build { partition, table });
        if self.gone {
            return;
        }
        let replaced = self.scribe.switch(partition, table);
        self.tell_server(Arrival::SwitchAtServer(table, replaced));
    }

    /// Answers the batches that may be answered.
    fn tell(&mut self) {
        while let Some((&batch, flight)) = self.flights.first_key_value() {
            let at_once = self.has(Flaw::AnswerAtOnce) && flight.asks.iter().all(|ask| !ask.merged);
            if !flight.read || !(flight.waits.is_empty() || at_once) {
                break;
            }
            let collides = flight.asks.iter().any(|ask| ask.collides);
            if self.has(Flaw::LateDuplicate) && collides && !flight.late {
                if let Some(flight) = self.flights.get_mut(&batch) {
                    flight.late = true;
                }
                self.line.send(2 * SCRIBE_LINE, self.scribes, Arrival::SumsAtScribe(batch));
                break;
            }
            let Some(flight) = self.flights.remove(&batch) else { break };
            let rest = flight.asks.iter().filter(|ask| !flight.given.contains(&ask.shown.ask));
            let answers = rest.map(|ask| self.answer(ask)).collect();
            self.tell_server(Arrival::TellAtServer(batch, answers));
        }
        self.show();
    }

    /// What is in memory already, before anything was read.
    fn tell_at_hand(&mut self, batch: u64) {
        let Some(flight) = self.flights.get_mut(&batch) else { return };
        let at_hand = |ask: &Answered| !ask.hit && !ask.merged;
        let (now, later) = flight.asks.iter().cloned().partition::<Vec<_>, _>(at_hand);
        if now.is_empty() || later.is_empty() {
            return;
        }
        flight.given = now.iter().map(|ask| ask.shown.ask).collect();
        let answers = now.iter().map(|ask| self.answer(ask)).collect();
        self.tell_server(Arrival::TellAtServer(batch, answers));
    }

    fn answer(&self, ask: &Answered) -> (AskId, u64) {
        let short = self.has(Flaw::ShortAbsent) && !ask.exists;
        (ask.shown.ask, if short { AROUND } else { AROUND + BLOCK })
    }

    /// Another client becomes the scribe. What the last one waited for is lost.
    fn claim(&mut self) {
        self.gone = false;
        // A flawed scribe may lose asks: then no end comes.
        let done = self.answered >= CLIENTS * self.plan.asks || self.scribes > 150;
        if let Some(time) = self.plan.kills.filter(|_| !done) {
            self.line.send(time, 0, Arrival::Kill);
        }
        self.scribes += 1;
        self.record(AROUND, 0, What::Claim);
        self.gathered.clear();
        if let Some((old, batch)) = self.old.take() {
            (self.scribe, self.next_batch) = (old, batch);
            self.flights.clear();
        }
        let merges: Vec<Merge> = self.scribe.open.iter().map(|open| open.merge.clone()).collect();
        for merge in merges {
            let merge = self.scribe.begin_again(&merge);
            self.tell_server(Arrival::TurnAtServer(merge));
        }
        let open: BTreeSet<u32> =
            self.scribe.open.iter().map(|open| open.merge.partition).collect();
        let mut flights = std::mem::take(&mut self.flights);
        for (&batch, flight) in &mut flights {
            flight.read = false;
            flight.waits = &flight.meets & &open;
            self.scribe.show_again(&mut flight.asks);
            self.tell_server(Arrival::ShowAtServer(batch));
        }
        self.flights = flights;
        self.batch_due = false;
        self.wait_for_batch();
    }
}
