//! Several clients of the `paper` construction on one server, in an order that a seed draws.

pub mod audit;
pub mod faults;

use faults::Fault;
use oblivio_crypto::{Prf, SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_lab::pyramid_paper::{
    Answer, Block, ClientId, Construct, Handled, ITEM_ID_BYTES, ItemId, LevelId, Lifetime, Member,
    Operation, PaperConfig, PaperError, Period, PeriodEnd, Query, QueryNumber, Reply, Request,
    Server, Ticket,
};
use oblivio_testkit::Dice;
use std::collections::BTreeMap;

pub const BYTES: usize = 16;
pub const KEY: u64 = 7;

pub fn config(log: u64, heights: u32, block_bytes: usize) -> PaperConfig {
    let volume = VolumeId([3; 16]);
    let mut config = PaperConfig::new(volume, log, heights, block_bytes).expect("valid");
    // Small runs, so that small levels need several passes.
    (config.sorting.run, config.sorting.chunk) = (16, 8);
    config
}

pub fn item(number: u64) -> ItemId {
    let mut id = [0; ITEM_ID_BYTES];
    id[..8].copy_from_slice(&number.to_le_bytes());
    ItemId(id)
}

pub fn member(config: PaperConfig, number: u64) -> Member {
    let entropy = Box::new(SeededEntropy::new(1000 + number));
    let sealer = Sealer::new(SealRoot::from_seed(KEY), entropy);
    Member::new(config, ClientId(number), Prf::from_seed(KEY), sealer).expect("valid")
}

/// A query under way.
pub struct Running {
    pub member: usize,
    pub query: Query,
    /// What its client wants, if that client still lives.
    pub asked: Option<(ItemId, Operation)>,
    ticket: Option<Ticket>,
}

/// What is known of a query that has a result.
#[derive(Clone, Debug)]
pub struct Done {
    pub id: ItemId,
    /// What it wrote, if it wrote.
    pub wrote: Option<Vec<u8>>,
    /// Its answer, if its client lived to get one.
    pub before: Option<Block>,
}

/// How clients behave.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Different ids that they ask for.
    pub ids: u64,
    /// Percent of queries for one of two ids.
    pub hot: u64,
    /// Percent of queries that only read.
    pub reads: u64,
    /// Percent of steps at which a client dies, before its request is sent or after.
    pub deaths: u64,
    pub fault: Fault,
}

pub struct World {
    pub config: PaperConfig,
    pub server: Server,
    pub members: Vec<Member>,
    pub running: Vec<Running>,
    pub constructs: BTreeMap<LevelId, (usize, Construct)>,
    /// Clients that began each construction.
    pub leases: BTreeMap<LevelId, u64>,
    /// By number: the order of all queries.
    pub done: BTreeMap<QueryNumber, Done>,
    pub asked: BTreeMap<QueryNumber, ItemId>,
    pub dice: Dice,
    pub habits: Habits,
    pub deaths: u64,
    /// Clients whose query another one finished first.
    pub overtaken: u64,
    pub most_slots: u64,
    pub line: faults::Line,
    writes: u64,
}

impl World {
    pub fn new(config: PaperConfig, members: u64, habits: Habits, seed: u64) -> Self {
        Self {
            config,
            server: Server::new(config.schedule),
            members: (0..members).map(|number| member(config, number)).collect(),
            running: Vec::new(),
            constructs: BTreeMap::new(),
            leases: BTreeMap::new(),
            done: BTreeMap::new(),
            asked: BTreeMap::new(),
            dice: Dice::new(seed),
            habits,
            deaths: 0,
            overtaken: 0,
            most_slots: 0,
            line: faults::Line::new(habits.fault),
            writes: 0,
        }
    }

    /// Runs until this many queries have begun and all are over.
    pub fn run(&mut self, queries: u64) {
        let mut turns = 0;
        let idle = |world: &Self| world.running.is_empty() && world.server.unfinished().is_empty();
        while self.server.queries() < queries || !idle(self) {
            self.turn(queries);
            turns += 1;
            assert!(
                turns < 100_000 + 10_000 * queries,
                "it goes on for ever: {:?}",
                self.server.period()
            );
        }
    }

    fn turn(&mut self, queries: u64) {
        let full = self.running.len() >= 2 * self.members.len();
        match self.dice.below(4) {
            0 if self.server.queries() < queries && !full => self.begin(),
            0 | 1 if !self.running.is_empty() => {
                let at = self.dice.index(self.running.len());
                self.step(at);
            }
            2 => self.adopt_orphan(),
            _ => self.construct(),
        }
        if self.server.period_is_over() {
            self.end_period();
        }
        self.most_slots = self.most_slots.max(self.server.stored_slots());
    }

    /// Begins a query if the throttle lets it.
    fn begin(&mut self) {
        let may = self.constructs.values().all(|(_, construct)| {
            self.lifetime(construct.target()).query_may_begin(construct.meter())
        });
        // One at a time is on its way to its number, so that the throttle has counted the others.
        let waits = self.running.iter().any(|it| it.query.number().is_none());
        if !may || waits || !self.server.has_room() {
            return;
        }
        let hot = self.dice.percent(self.habits.hot);
        let ids = if hot { self.habits.ids.min(2) } else { self.habits.ids };
        let id = item(self.dice.below(ids));
        self.writes += 1;
        let mut content = self.writes.to_le_bytes().to_vec();
        content.resize(self.config.block_bytes, 0x55);
        let operation = match (self.dice.percent(self.habits.reads), self.dice.percent(50)) {
            (true, _) => Operation::Read,
            (false, true) => Operation::Write(content),
            (false, false) => Operation::TestAndSet(content),
        };
        let member = self.dice.index(self.members.len());
        self.start(member, id, operation);
    }

    pub fn start(&mut self, member: usize, id: ItemId, operation: Operation) {
        let query = Query::new(&mut self.members[member], id, operation.clone()).expect("valid");
        self.running.push(Running { member, query, asked: Some((id, operation)), ticket: None });
    }

    /// One step of a running query, whose client may die at it.
    fn step(&mut self, at: usize) {
        let dies = self.dice.percent(self.habits.deaths);
        match (dies, self.dice.percent(50)) {
            (true, true) => self.die(at),
            (dies, _) => self.trip(at, dies),
        }
    }

    /// A trip of a running query, or a look whether its reply has come. A client that dies at it
    /// has sent its request and reads no reply.
    pub fn trip(&mut self, at: usize, dies: bool) {
        let Running { member, query, asked, ticket } = &mut self.running[at];
        let member = &mut self.members[*member];
        let handled = if let Some(ticket) = *ticket {
            match self.server.redeem(ticket) {
                Some(reply) => Handled::Now(reply),
                None => return,
            }
        } else {
            let request = query.request(member).expect("seals").expect("not over");
            let id = asked.as_ref().map(|(id, _)| *id);
            let id = id.or_else(|| query.number().and_then(|it| self.asked.get(&it).copied()));
            let result = matches!(request, Request::Finish { .. });
            let handled = self.line.exchange(&mut self.server, member, id, request);
            if let (true, Some(number), Some(id)) = (result, query.number(), id) {
                let wrote = match asked {
                    Some((_, Operation::Write(new) | Operation::TestAndSet(new))) => {
                        Some(new.clone())
                    }
                    _ => None,
                };
                self.done.entry(number).or_insert(Done { id, wrote, before: None });
            }
            if let (Handled::Now(Reply::Log(number, _)), Some(id)) = (&handled, id) {
                self.asked.insert(*number, id);
            }
            handled
        };
        if dies {
            return self.die(at);
        }
        match handled {
            Handled::Now(reply) => match query.reply(member, reply) {
                Ok(Some(answer)) => self.answer(at, answer),
                Ok(None) => {}
                Err(PaperError::Overtaken) => {
                    self.running.swap_remove(at);
                    self.overtaken += 1;
                }
                Err(error) => panic!("{error}"),
            },
            Handled::Later(later) => *ticket = Some(later),
        }
    }

    pub fn die(&mut self, at: usize) {
        self.running.swap_remove(at);
        self.deaths += 1;
    }

    fn answer(&mut self, at: usize, Answer { number, id, before }: Answer) {
        let running = self.running.swap_remove(at);
        assert!(running.asked.is_none_or(|(asked, _)| asked == id));
        let done = self.done.get_mut(&number).expect("it has a result");
        assert_eq!(done.id, id);
        if let Some(other) = &done.before {
            assert_eq!(*other, before, "two clients that finish one query agree");
        }
        done.before = Some(before);
    }

    /// A client takes over a query.
    pub fn adopt(&mut self, member: usize, number: QueryNumber) {
        let query = Query::adopt(number);
        self.running.push(Running { member, query, asked: None, ticket: None });
    }

    /// Some client takes over a query that has no result and no living client. Sometimes it takes
    /// one whose client lives and is only slow.
    fn adopt_orphan(&mut self) {
        let slow = self.habits.deaths > 0 && self.dice.percent(3);
        for number in self.server.unfinished() {
            let lives = self.running.iter().any(|it| it.query.number() == Some(number));
            if !lives || slow {
                let member = self.dice.index(self.members.len());
                return self.adopt(member, number);
            }
        }
    }

    fn lifetime(&self, target: LevelId) -> Lifetime {
        let schedule = &self.config.schedule;
        let fresh = schedule.sources(target)[0];
        let born = schedule.birth(fresh).0 * schedule.log();
        Lifetime { asked: self.server.queries() - born, all: schedule.items(fresh.height) }
    }

    /// One request of some construction, if the throttle lets it.
    fn construct(&mut self) {
        let targets: Vec<LevelId> = self.constructs.keys().copied().collect();
        if targets.is_empty() {
            return;
        }
        let target = targets[self.dice.index(targets.len())];
        let dies = self.habits.deaths > 0 && self.dice.below(400) == 0;
        // The lease goes to another client, which begins anew: not too often, or none would end.
        if dies && self.leases.get(&target).is_none_or(|&leases| leases < 3) {
            self.deaths += 1;
            self.plan(target);
        }
        let life = self.lifetime(target);
        let (member, construct) = self.constructs.get_mut(&target).expect("it is planned");
        if !life.construction_may_go_on(construct.meter()) {
            return;
        }
        let member = &mut self.members[*member];
        let Some(request) = construct.request(member).expect("it goes on") else { return };
        match self.server.handle(member.me(), request) {
            Handled::Now(reply) => construct.reply(member, reply).expect("it fits"),
            Handled::Later(_) => panic!("constructions do not wait"),
        }
    }

    fn plan(&mut self, target: LevelId) {
        *self.leases.entry(target).or_default() += 1;
        let member = self.dice.index(self.members.len());
        let construct = Construct::new(&self.config, target).expect("not the top");
        self.constructs.insert(target, (member, construct));
    }

    /// All constructions that are due finish, the top level is built, and the period changes.
    fn end_period(&mut self) {
        let next = Period(self.server.period().0 + 1);
        let schedule = self.config.schedule;
        let due = |target: &LevelId| schedule.birth(*target) == next;
        while self.constructs.iter().any(|(target, (_, it))| due(target) && !it.is_over()) {
            self.construct();
        }
        for (_, (_, construct)) in self.constructs.iter().filter(|(target, _)| due(target)) {
            let meter = construct.meter();
            assert_eq!(meter.done(), meter.total(), "the weight of {:?}", construct.target());
        }
        self.constructs.retain(|target, _| !due(target));
        let member = self.dice.index(self.members.len());
        let (mut end, member) = (PeriodEnd::new(self.server.period()), &mut self.members[member]);
        while let Some(request) = end.request(member).expect("it goes on") {
            match self.server.handle(member.me(), request) {
                Handled::Now(reply) => end.reply(member, reply).expect("it fits"),
                Handled::Later(_) => panic!("the end of a period does not wait"),
            }
        }
        for live in schedule.heights().filter_map(|height| schedule.live(height, next)) {
            if !self.constructs.contains_key(&live.target) {
                self.plan(live.target);
            }
        }
    }

    /// What a block holds after all queries.
    pub fn value(&self, id: ItemId) -> Block {
        let of_id = self.done.values().filter(|done| done.id == id);
        of_id.filter_map(|done| done.wrote.clone()).next_back()
    }

    /// Every answer is that of a plain map that takes the queries in the order of their numbers.
    pub fn check_answers(&self) {
        let mut map: BTreeMap<ItemId, Vec<u8>> = BTreeMap::new();
        let all = (0..self.server.queries()).map(QueryNumber);
        assert!(self.done.keys().copied().eq(all), "every query has a result");
        for (number, done) in &self.done {
            if let Some(before) = &done.before {
                assert_eq!(before.as_ref(), map.get(&done.id), "query {}", number.0);
            }
            if let Some(wrote) = &done.wrote {
                map.insert(done.id, wrote.clone());
            }
        }
    }
}
