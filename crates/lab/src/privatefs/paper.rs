//! The paper's construction in virtual time: clients, their queries, and the constructions that
//! they make beside them. Every message is the engine's.

use super::net::AT_ONCE;
use super::net::{Class, Net, Setting, Time};
use super::work::{Fill, Served, Side, Wish, Work};
use anyhow::{Context, Result, ensure};
use oblivio_crypto::{Prf, SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_lab::pyramid_paper::{
    Answer, ClientId, Construct, Handled, ITEM_ID_BYTES, ItemId, LevelId, Lifetime, Member,
    Operation, PaperConfig, Period, PeriodEnd, Query, Record, Reply, Request, Server, Ticket,
};
use std::collections::BTreeMap;

/// Elements of a request of a construction: 4 MiB of slots.
const CHUNK: usize = 1024;

/// A volume's numbers: room for `2^log_blocks` blocks, and `log` queries a period.
///
/// # Errors
/// Those of the engine.
pub fn config(block_bytes: usize, log_blocks: u32, log: u64) -> Result<PaperConfig> {
    let heights = log_blocks.checked_sub(log.ilog2()).context("fewer blocks than queries")? + 1;
    let mut config = PaperConfig::new(VolumeId([3; 16]), log, heights, block_bytes)?;
    config.sorting.chunk = CHUNK;
    Ok(config)
}

/// Whose request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Query(usize),
    Construct(LevelId),
    End,
}

impl Origin {
    fn class(self) -> Class {
        if matches!(self, Self::Construct(_)) { Class::Background } else { Class::Query }
    }
}

enum Message {
    ToServer(Origin, Request),
    ToClient(Origin, Reply),
}

struct Running {
    query: Query,
    wish: Wish,
}

struct Making {
    construct: Construct,
    /// Whether a request is under way.
    waits: bool,
}

/// Clients and their server.
pub struct Paper {
    config: PaperConfig,
    server: Server,
    members: Vec<Member>,
    /// Clients so far. Each has a number of its own, and salts of its own for its seals.
    joined: u64,
    net: Net<Message>,
    /// Requests that may be under way, one client's after the other's; and since when each lane
    /// has wanted to ask.
    lanes: Vec<(Time, Option<Running>)>,
    lanes_of_each: usize,
    making: BTreeMap<LevelId, Making>,
    end: Option<PeriodEnd>,
    /// Queries whose results wait for earlier ones.
    tickets: Vec<(usize, Ticket)>,
    /// Queries begun, also those that have no number yet.
    begun: u64,
    served: Vec<Served>,
}

fn item(block: u64) -> ItemId {
    let mut id = [0; ITEM_ID_BYTES];
    id[..8].copy_from_slice(&block.to_le_bytes());
    ItemId(id)
}

fn content(block: u64, block_bytes: usize) -> Vec<u8> {
    let mut content = block.to_le_bytes().to_vec();
    content.resize(block_bytes, block as u8);
    content
}

fn member(config: PaperConfig, number: u64) -> Result<Member> {
    let sealer = Sealer::new(SealRoot::from_seed(7), Box::new(SeededEntropy::new(number)));
    Ok(Member::new(config, ClientId(number), Prf::from_seed(7), sealer)?)
}

impl Paper {
    /// An empty volume with one client.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn new(config: PaperConfig) -> Result<Self> {
        let mut paper = Self {
            config,
            server: Server::new(config.schedule),
            members: Vec::new(),
            joined: 0,
            net: Net::new(AT_ONCE),
            lanes: Vec::new(),
            lanes_of_each: 1,
            making: BTreeMap::new(),
            end: None,
            tickets: Vec::new(),
            begun: 0,
            served: Vec::new(),
        };
        paper.arrange(1, 1, AT_ONCE)?;
        Ok(paper)
    }

    /// Writes every block and goes on until every level is there.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn fill(&mut self) -> Result<()> {
        let schedule = &self.config.schedule;
        let blocks = schedule.items(schedule.bottom());
        self.run(&mut Fill::of(blocks), (3 * blocks) as usize)?;
        Ok(())
    }

    /// Of the construction that takes longest: the share of its queries that began, and the share
    /// of its bytes that were moved.
    pub fn progress(&self) -> Option<(f64, f64)> {
        let (target, making) =
            self.making.iter().max_by_key(|it| it.1.construct.meter().total())?;
        let (life, meter) = (self.lifetime(*target), making.construct.meter());
        Some((life.asked as f64 / life.all as f64, meter.done() as f64 / meter.total() as f64))
    }

    /// Makes the level that takes longest once more, without queries and without a throttle: its
    /// progress after each reply, as seconds and share.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn alone(&mut self, setting: Setting) -> Result<Vec<(f64, f64)>> {
        self.arrange(1, 1, setting)?;
        let longest = self.making.iter().max_by_key(|it| it.1.construct.meter().total());
        let (&target, _) = longest.context("no level is made")?;
        let mut construct = Construct::new(&self.config, target)?;
        let mut points = Vec::new();
        while let Some(request) = construct.request(&mut self.members[0])? {
            self.send(Origin::Construct(target), request);
            let reply = loop {
                match self.net.next().context("nothing is under way")? {
                    Message::ToServer(origin, request) => self.at_server(origin, request),
                    Message::ToClient(_, reply) => break reply,
                }
            };
            construct.reply(&mut self.members[0], reply)?;
            let meter = construct.meter();
            let share = meter.done() as f64 / meter.total() as f64;
            points.push((self.net.now().seconds(), share));
        }
        self.making.insert(target, Making { construct, waits: false });
        Ok(points)
    }

    fn lifetime(&self, target: LevelId) -> Lifetime {
        let schedule = &self.config.schedule;
        let sources = schedule.sources(target);
        let (born, all) = sources.first().map_or((0, 1), |fresh| {
            (schedule.birth(*fresh).0 * schedule.log(), schedule.items(fresh.height))
        });
        Lifetime { asked: self.begun - born, all }
    }

    /// Begins the constructions of this period that are not under way.
    fn plan(&mut self) -> Result<()> {
        let (schedule, period) = (self.config.schedule, self.server.period());
        for live in schedule.heights().filter_map(|height| schedule.live(height, period)) {
            if !self.making.contains_key(&live.target) {
                let construct = Construct::new(&self.config, live.target)?;
                self.making.insert(live.target, Making { construct, waits: false });
            }
        }
        Ok(())
    }

    fn whose(&self, origin: Origin) -> usize {
        match origin {
            Origin::Query(lane) => lane / self.lanes_of_each,
            Origin::Construct(target) => target.height.0 as usize % self.members.len(),
            Origin::End => 0,
        }
    }

    /// One message; then everything that may go on does. False if nothing is under way.
    fn step(&mut self, work: &mut dyn Work) -> Result<bool> {
        match self.net.next() {
            None => return Ok(false),
            Some(Message::ToServer(origin, request)) => self.at_server(origin, request),
            Some(Message::ToClient(origin, reply)) => self.at_client(origin, reply, work)?,
        }
        self.go_on(work)?;
        Ok(true)
    }

    fn at_server(&mut self, origin: Origin, request: Request) {
        let (up, results) = (request.bytes() as u64, matches!(request, Request::Finish { .. }));
        let from = self.members[self.whose(origin)].me();
        match (self.server.handle(from, request), origin) {
            (Handled::Now(reply), _) => self.reply(origin, up, reply),
            (Handled::Later(ticket), Origin::Query(lane)) => self.tickets.push((lane, ticket)),
            (Handled::Later(_), _) => {}
        }
        if results {
            for (lane, ticket) in std::mem::take(&mut self.tickets) {
                match self.server.redeem(ticket) {
                    Some(reply) => self.reply(Origin::Query(lane), 0, reply),
                    None => self.tickets.push((lane, ticket)),
                }
            }
        }
    }

    fn reply(&mut self, origin: Origin, up: u64, reply: Reply) {
        let down = reply.bytes() as u64;
        self.net.serve(up + down, down, origin.class(), Message::ToClient(origin, reply));
    }

    fn send(&mut self, origin: Origin, request: Request) {
        let bytes = request.bytes() as u64;
        self.net.send(bytes, origin.class(), Message::ToServer(origin, request));
    }

    fn at_client(&mut self, origin: Origin, reply: Reply, work: &mut dyn Work) -> Result<()> {
        let whose = self.whose(origin);
        let member = &mut self.members[whose];
        match origin {
            Origin::Query(lane) => {
                let running = self.lanes[lane].1.as_mut().context("no query is under way")?;
                let answer = running.query.reply(member, reply)?;
                match answer {
                    Some(answer) => self.answer(lane, &answer, work),
                    None => {
                        let request = running.query.request(member)?.context("a query ended")?;
                        self.send(origin, request);
                        Ok(())
                    }
                }
            }
            Origin::Construct(target) => {
                let making = self.making.get_mut(&target).context("no such construction")?;
                making.waits = false;
                Ok(making.construct.reply(member, reply)?)
            }
            Origin::End => {
                let end = self.end.as_mut().context("no period ends")?;
                end.reply(member, reply)?;
                match end.request(member)? {
                    Some(request) => self.send(origin, request),
                    None => self.next_period()?,
                }
                Ok(())
            }
        }
    }

    fn answer(&mut self, lane: usize, answer: &Answer, work: &mut dyn Work) -> Result<()> {
        let (since, running) = &mut self.lanes[lane];
        let running = running.take().context("no query is under way")?;
        let began = std::mem::replace(since, self.net.now());
        let (block, bytes) = (running.wish.block, self.config.block_bytes);
        let right = answer.before.as_ref().is_none_or(|before| *before == content(block, bytes));
        ensure!(right, "block {block} is not what it was");
        self.served.push(Served { began, ended: self.net.now() });
        work.answered(running.wish);
        Ok(())
    }

    fn next_period(&mut self) -> Result<()> {
        self.end = None;
        let (schedule, period) = (self.config.schedule, self.server.period());
        self.making.retain(|target, _| schedule.birth(*target) != period);
        self.plan()
    }

    fn go_on(&mut self, work: &mut dyn Work) -> Result<()> {
        self.begin_queries(work)?;
        let targets: Vec<LevelId> = self.making.keys().copied().collect();
        for target in targets {
            self.construct(target)?;
        }
        if self.end.is_none() && self.server.period_is_over() {
            let next = Period(self.server.period().0 + 1);
            let due = |target: &LevelId| self.config.schedule.birth(*target) == next;
            if self.making.iter().all(|(target, it)| !due(target) || it.construct.is_over()) {
                let mut end = PeriodEnd::new(self.server.period());
                let request = end.request(&mut self.members[0])?.context("it just began")?;
                self.end = Some(end);
                self.send(Origin::End, request);
            }
        }
        Ok(())
    }

    /// Begins as many queries as there are lanes for, and as the throttle lets.
    fn begin_queries(&mut self, work: &mut dyn Work) -> Result<()> {
        let last = (self.server.period().0 + 1) * self.config.schedule.log();
        while let Some(lane) = self.lanes.iter().position(|lane| lane.1.is_none()) {
            let may = |(target, it): (&LevelId, &Making)| {
                self.lifetime(*target).query_may_begin(it.construct.meter())
            };
            if self.begun == last || !self.making.iter().all(may) {
                break;
            }
            let Some(wish) = work.next() else { break };
            let operation = match wish.writes {
                true => Operation::Write(content(wish.block, self.config.block_bytes)),
                false => Operation::Read,
            };
            let whose = self.whose(Origin::Query(lane));
            let member = &mut self.members[whose];
            let mut query = Query::new(member, item(wish.block), operation)?;
            let request = query.request(member)?.context("it just began")?;
            self.begun += 1;
            self.lanes[lane].1 = Some(Running { query, wish });
            self.send(Origin::Query(lane), request);
        }
        Ok(())
    }

    fn construct(&mut self, target: LevelId) -> Result<()> {
        let (life, whose) = (self.lifetime(target), self.whose(Origin::Construct(target)));
        let making = self.making.get_mut(&target).context("no such construction")?;
        if making.waits || !life.construction_may_go_on(making.construct.meter()) {
            return Ok(());
        }
        if let Some(request) = making.construct.request(&mut self.members[whose])? {
            making.waits = true;
            self.send(Origin::Construct(target), request);
        }
        Ok(())
    }
}

/// No asks: what is under way comes to its end.
struct Nothing;

impl Work for Nothing {
    fn next(&mut self) -> Option<Wish> {
        None
    }
}

impl Paper {
    /// As [`Side::run`], and what the server saw meanwhile.
    ///
    /// # Errors
    /// Those of [`Side::run`].
    pub fn traced(&mut self, work: &mut dyn Work, asks: usize) -> Result<Vec<Record>> {
        self.server.take_trace();
        self.go_on(work)?;
        while self.served.len() < asks {
            ensure!(self.step(work)?, "nothing is under way");
        }
        self.served.clear();
        Ok(self.server.take_trace())
    }
}

impl Side for Paper {
    fn run(&mut self, work: &mut dyn Work, asks: usize) -> Result<Vec<Served>> {
        self.go_on(work)?;
        while self.served.len() < asks && !work.is_over() {
            ensure!(self.step(work)?, "nothing is under way");
            // What the server saw is for the audit, and takes memory.
            self.server.take_trace();
        }
        Ok(std::mem::take(&mut self.served))
    }

    fn arrange(&mut self, clients: usize, requests: usize, setting: Setting) -> Result<()> {
        while self.step(&mut Nothing)? {}
        self.served.clear();
        let numbers = self.joined..self.joined + clients as u64;
        self.joined = numbers.end;
        self.members = numbers.map(|number| member(self.config, number)).collect::<Result<_>>()?;
        self.lanes = (0..clients * requests).map(|_| (Time::default(), None)).collect();
        self.lanes_of_each = requests;
        self.net = Net::new(setting);
        Ok(())
    }

    fn carried(&self) -> u64 {
        self.net.carried()
    }
}
