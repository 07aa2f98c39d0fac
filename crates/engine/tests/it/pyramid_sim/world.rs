//! The simulation: one queue of messages in virtual time. The seed gives every delay and fault.

use super::client::{Bug, Client};
use super::glue::{self, BYTES, Reply};
use super::server::Server;
use crate::share_audit::record::ShareTrace;
use oblivio_engine::pyramid::PyramidConfig;
use oblivio_engine::pyramid::share::{
    Admitted, AnswerRecord, AskRecord, AskRefusal, Duty, Head, Scribe, Term,
};
use oblivio_testkit::SplitMix64;
use oblivio_testkit::linear::{Call, Change, Compare, Part};
use std::collections::{BTreeMap, BTreeSet};

/// Clients, and transactions that each has under way.
pub const CLIENTS: usize = 8;
const WINDOW: usize = 3;
/// A client asks again after this time, in microseconds.
const AGAIN: u64 = 300_000;

/// A run to be made.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    /// Transactions of each client. One has 1.8 asks in the mean.
    pub transactions: u64,
    pub faults: bool,
    pub bug: Option<Bug>,
    /// Single asks for these blocks, and merges that no batch waits for: for pairs of runs.
    pub asks: Option<Asks>,
    /// A flaw: a new scribe does not show again what was shown and not answered. It begins anew.
    pub forgets: bool,
    /// The server and the scribe crash at this record: (number, whether it is stored then).
    pub crash: Option<(u64, bool)>,
}

/// What the clients of a pair ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// All for one block.
    OneBlock,
    /// Each for others.
    Spread,
    /// Blocks that do not exist.
    Absent,
}

/// What a run left.
pub struct Run {
    pub trace: ShareTrace,
    pub history: Vec<Call>,
    /// Kills of scribes, servers and clients.
    pub kills: [u64; 3],
    /// Duties of old scribes that the server refused.
    pub refused: u64,
    /// Records that scribes sent.
    pub records: u64,
}

enum Arrival {
    Ask(AskRecord),
    /// Of a session.
    Answer(u64, AnswerRecord),
    /// From the scribe of a connection.
    Duty(u64, Term, Duty),
    /// A reply leaves the server.
    Leave(u64, Reply),
    Reply(u64, Reply),
    /// The scribe looks for asks.
    Look(u64),
    Client(usize),
    Again(usize, u64),
    KillScribe,
    /// The scribe stops for a while, and does not know it.
    Pause,
    Resume,
    KillServer,
    KillClient(usize),
    Cut,
    Claim,
}

struct World {
    plan: Plan,
    rng: SplitMix64,
    config: PyramidConfig,
    now: u64,
    sent: u64,
    queue: BTreeMap<(u64, u64), Arrival>,
    server: Server,
    /// The scribe and its term. The number of its connection is `line`.
    scribe: Option<(Scribe, Term)>,
    paused: Option<(Scribe, Term, u64)>,
    line: u64,
    claiming: bool,
    /// When the last message of each kind on the scribe's line arrives: they keep their order.
    duties: u64,
    sums: u64,
    /// When the last batch is read.
    read: u64,
    cut_until: u64,
    clients: Vec<Client>,
    sessions: u64,
    clock: u64,
    history: Vec<Call>,
    kills: [u64; 3],
    refused: u64,
    records: u64,
}

/// Makes a run.
pub fn run(plan: Plan) -> Run {
    let config = PyramidConfig::new(BYTES, 1 << 8, BYTES << 6);
    let mut world = World::new(plan, config);
    for client in 0..CLIENTS {
        world.after(client as u64, Arrival::Client(client));
    }
    world.claim();
    if plan.faults {
        world.plan_faults();
    }
    while let Some(((at, _), arrival)) = world.queue.pop_first() {
        world.now = at;
        assert!(at < 600_000_000, "seed {}: no end", plan.seed);
        world.arrive(arrival);
    }
    let World { server, history, kills, refused, records, .. } = world;
    Run { trace: server.trace, history, kills, refused, records }
}

impl Asks {
    /// Ask number `unique`: at first, all blocks are written.
    fn part(self, unique: u64) -> Part {
        let block = match self {
            _ if unique <= FILLED => unique,
            Self::OneBlock => 7,
            Self::Spread => unique % FILLED,
            Self::Absent => FILLED + 1 + unique % 50,
        };
        let write = unique <= FILLED || unique.is_multiple_of(3) && self != Self::Absent;
        let change = if write { Change::Write(vec![unique as u8; BYTES]) } else { Change::Read };
        Part { block, compare: Compare::Always, change, and_read: false }
    }
}

/// Blocks that the clients of a pair write first.
const FILLED: u64 = 200;

impl World {
    fn new(plan: Plan, config: PyramidConfig) -> Self {
        let client = |number: usize| {
            let other = plan.bug == Some(Bug::OtherSession) && number == 1;
            let bug = plan.bug.filter(|_| number < 4);
            let session = if other { 0 } else { number as u64 };
            Client::new(plan.seed, session, Head::default(), bug)
        };
        Self {
            plan,
            rng: SplitMix64::new(plan.seed),
            config,
            now: 0,
            sent: 0,
            queue: BTreeMap::new(),
            server: Server::new(config, glue::sizes(&config)),
            scribe: None,
            paused: None,
            line: 0,
            claiming: false,
            duties: 0,
            sums: 0,
            read: 0,
            cut_until: 0,
            clients: (0..CLIENTS).map(client).collect(),
            sessions: CLIENTS as u64,
            clock: 0,
            history: Vec::new(),
            kills: [0; 3],
            refused: 0,
            records: 0,
        }
    }

    fn at(&mut self, at: u64, arrival: Arrival) {
        self.sent += 1;
        self.queue.insert((at, self.sent), arrival);
    }

    fn after(&mut self, time: u64, arrival: Arrival) {
        self.at(self.now + time, arrival);
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Faults at random times of the run's first part.
    fn plan_faults(&mut self) {
        let span = self.plan.transactions * 25_000;
        for _ in 0..3 + self.rng.below(4) {
            let at = self.rng.below(span);
            self.at(at, Arrival::KillScribe);
        }
        for _ in 0..1 + self.rng.below(3) {
            let at = self.rng.below(span);
            self.at(at, Arrival::KillServer);
            let (at, client) = (self.rng.below(span), self.rng.below(CLIENTS as u64) as usize);
            self.at(at, Arrival::KillClient(client));
        }
        for _ in 0..1 + self.rng.below(3) {
            let at = self.rng.below(span);
            self.at(at, Arrival::Pause);
            let at = self.rng.below(span);
            self.at(at, Arrival::Cut);
        }
    }

    /// A message between a client and the server: late, lost or doubled.
    fn unreliable(&mut self, make: impl Fn() -> Arrival) {
        let fate = if self.plan.faults { self.rng.below(20) } else { 19 };
        let copies = match fate {
            0 => 0,
            1 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let time = 1_000 + self.rng.below(20_000);
            self.after(time, make());
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Ask(record) => {
                let session = record.session.0;
                if let Some(answer) = self.server.ask(self.now, record) {
                    self.unreliable(|| Arrival::Answer(session, answer.clone()));
                }
                let time = 500 + self.rng.below(3_000);
                self.after(time, Arrival::Look(self.line));
            }
            Arrival::Answer(session, record) => self.answer(session, record),
            Arrival::Duty(line, term, duty) => self.duty(line, term, duty),
            Arrival::Leave(line, reply) if line == self.line => self.leave(line, reply),
            Arrival::Reply(line, reply) if line == self.line => {
                if let Some((scribe, _)) = &mut self.scribe {
                    reply.give(scribe).expect("an honest server");
                    self.work();
                }
            }
            Arrival::Look(line) if line == self.line => self.look(),
            Arrival::Leave(..) | Arrival::Reply(..) | Arrival::Look(_) => {}
            Arrival::Client(client) => self.client(client),
            Arrival::Again(client, session) => self.again(client, session),
            Arrival::KillScribe => self.kill_scribe(),
            Arrival::Pause => self.pause(),
            Arrival::Resume => self.resume(),
            Arrival::KillServer => self.kill_server(),
            Arrival::KillClient(client) => self.kill_client(client),
            Arrival::Cut => self.cut_until = self.now + 100_000,
            Arrival::Claim => self.claim(),
        }
    }

    /// A reply leaves the server. Those of batches keep their order.
    fn leave(&mut self, line: u64, reply: Reply) {
        self.server.leaves(self.now, &reply);
        let mut at = self.now.max(self.cut_until) + 500 + self.rng.below(5_000);
        if self.plan.asks.is_some() || matches!(reply, Reply::Sums(..)) {
            at = at.max(self.sums + 1);
            self.sums = at;
        }
        self.at(at, Arrival::Reply(line, reply));
    }

    fn look(&mut self) {
        let Some((scribe, _)) = &mut self.scribe else { return };
        let mut late = BTreeSet::new();
        for record in self.server.new_asks() {
            match scribe.take(&record).expect("an honest server") {
                // Its asks were lost for so long that no record tells which history it knows.
                Admitted::Refused(AskRefusal::Old) if self.plan.faults => {
                    late.insert(record.session.0);
                }
                taken => assert!(!matches!(taken, Admitted::Refused(_)), "{taken:?}"),
            }
        }
        let is_late = |number: &usize| late.contains(&self.clients[*number].session);
        let numbers: Vec<usize> = (0..self.clients.len()).filter(is_late).collect();
        numbers.into_iter().for_each(|number| self.begin_anew(number));
        self.work();
    }

    /// Sends all duties of the scribe. The line keeps their order.
    fn work(&mut self) {
        let Some((scribe, term)) = &mut self.scribe else { return };
        let (term, mut duties) = (*term, Vec::new());
        loop {
            match scribe.duty().expect("an honest server") {
                Duty::Wait => break,
                duty => duties.push(duty),
            }
        }
        for duty in duties {
            let at = self.now.max(self.cut_until) + 500 + self.rng.below(5_000);
            self.duties = at.max(self.duties + 1);
            self.at(self.duties, Arrival::Duty(self.line, term, duty));
        }
    }

    fn duty(&mut self, line: u64, term: Term, duty: Duty) {
        // The server was killed since: the connection is gone with it.
        if term == self.server.term && line != self.line {
            return;
        }
        self.records += 1;
        let crash = self.plan.crash.filter(|(record, _)| record + 1 == self.records);
        if crash == Some((self.records - 1, false)) {
            return self.kill_server();
        }
        let Some((replies, answers)) = self.server.carry_out(self.now, term, duty) else {
            self.refused += 1;
            return;
        };
        if crash.is_some() {
            return self.kill_server();
        }
        for reply in replies {
            let mut at = self.now + 100;
            match reply {
                Reply::Sums(..) => {
                    at = (at + self.rng.below(2_000)).max(self.read + 1);
                    self.read = at;
                }
                Reply::Slots(..) if self.plan.asks.is_some() => {}
                // Merges are slow.
                Reply::Slots(..) => at += self.rng.below(30_000),
                Reply::Built(_) => at += self.rng.below(10_000),
            }
            self.at(at, Arrival::Leave(line, reply));
        }
        for answer in answers {
            let session = answer.session.0;
            self.unreliable(|| Arrival::Answer(session, answer.clone()));
        }
    }

    fn client(&mut self, number: usize) {
        let client = &self.clients[number];
        if client.begun >= self.plan.transactions {
            return;
        }
        if client.under_way() < WINDOW {
            let (clock, unique) = (self.tick(), self.clock);
            let client = &mut self.clients[number];
            let parts = match self.plan.asks {
                Some(asks) => vec![asks.part(unique)],
                None => client.transaction(&mut self.rng, unique),
            };
            let records = client.begin(&mut self.rng, parts, clock, &mut self.history);
            for record in records {
                self.unreliable(|| Arrival::Ask(record.clone()));
            }
            let session = self.clients[number].session;
            self.after(AGAIN, Arrival::Again(number, session));
        }
        let pause = 5_000 + self.rng.below(20_000);
        self.after(pause, Arrival::Client(number));
    }

    fn again(&mut self, number: usize, session: u64) {
        if self.clients[number].session != session || !self.clients[number].has_open() {
            return;
        }
        for record in self.clients[number].again(&self.history) {
            self.unreliable(|| Arrival::Ask(record.clone()));
        }
        let time = AGAIN + self.rng.below(AGAIN);
        self.after(time, Arrival::Again(number, session));
    }

    fn answer(&mut self, session: u64, record: AnswerRecord) {
        let clock = self.tick();
        for client in self.clients.iter_mut().filter(|client| client.session == session) {
            client.answer(record.clone(), clock, &mut self.history);
        }
    }

    /// Some client claims soon.
    fn claim_soon(&mut self) {
        if !std::mem::replace(&mut self.claiming, true) {
            let time = 1_000 + self.rng.below(50_000);
            self.after(time, Arrival::Claim);
        }
    }

    fn kill_scribe(&mut self) {
        if self.scribe.take().is_some() {
            self.kills[0] += 1;
            self.claim_soon();
        }
    }

    fn pause(&mut self) {
        if let Some((scribe, term)) = self.scribe.take() {
            self.paused = Some((scribe, term, self.line));
            self.claim_soon();
            let time = 20_000 + self.rng.below(100_000);
            self.after(time, Arrival::Resume);
        }
    }

    /// The scribe that stopped goes on, and sends what it has. Another one took its place.
    fn resume(&mut self) {
        let Some((mut scribe, term, line)) = self.paused.take() else { return };
        while let Ok(duty) = scribe.duty() {
            if duty == Duty::Wait {
                break;
            }
            let time = 500 + self.rng.below(5_000);
            self.after(time, Arrival::Duty(line, term, duty));
        }
    }

    fn kill_server(&mut self) {
        self.kills[1] += 1;
        self.scribe = None;
        self.line += 1;
        self.server.crash();
        self.claim_soon();
    }

    fn kill_client(&mut self, number: usize) {
        self.kills[2] += 1;
        self.begin_anew(number);
    }

    /// A client goes on in another session.
    fn begin_anew(&mut self, number: usize) {
        let bug = self.plan.bug.filter(|_| number < 4);
        let begun = self.clients[number].begun;
        let heads = self.clients.iter().map(Client::head);
        let head = heads.max_by_key(|head| head.number).unwrap_or_default();
        self.clients[number] = Client::new(self.plan.seed, self.sessions, head, bug);
        self.clients[number].begun = begun;
        self.sessions += 1;
    }

    fn claim(&mut self) {
        self.claiming = false;
        self.line += 1;
        let term = self.server.claim(self.now);
        if self.plan.forgets {
            self.server.forget_shown();
        }
        let scribe = glue::scribe(self.config, self.plan.seed, term, &self.server);
        self.scribe = Some((scribe.expect("an honest server"), term));
        (self.duties, self.sums) = (self.now, self.now);
        self.look();
    }
}
