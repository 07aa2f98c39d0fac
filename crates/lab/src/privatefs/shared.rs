//! The default construction in virtual time: followers, the scribe, and the server between them.
//! Every record is the engine's.

use super::net::{AT_ONCE, Class, Net, Setting, Time};
use super::work::{Fill, Served, Side, Wish, Work};
use anyhow::{Context, Result, ensure};
use oblivio_crypto::{SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_engine::Action;
use oblivio_engine::BlockId;
use oblivio_engine::pyramid::share::{
    AnswerRecord, Ask, AskRecord, Duty, DutyReply, Follower, MemoryServer, Scribe, Seq, Session,
    Show, Term,
};
use oblivio_engine::pyramid::{Name, Operation, PyramidConfig, PyramidKeys, PyramidOram};
use std::collections::BTreeMap;

const VOLUME: VolumeId = VolumeId([7; 16]);
/// How long the scribe waits for more asks: 8 ms. A batch has at most 64.
const WINDOW: u64 = 8_000_000;
const MOST: usize = 64;
/// Bytes of a session and a running number, and of the place of a slot.
const WHOSE: u64 = 16;
const SPOT: u64 = 8;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Askers {
    /// Clients beside the scribe.
    Followers,
    /// The scribe itself: one mount.
    Scribe,
}

enum Message {
    AskAtServer(AskRecord),
    AskAtScribe(AskRecord),
    /// The asks that came are long enough there.
    Window,
    /// With the scribe's own asks.
    DutyAtServer(Box<Duty>, Vec<AskRecord>),
    ReplyAtScribe(DutyReply),
    AnswerAtClient(AnswerRecord),
}

/// What a lane waits for, and since when.
type Waiting = (Seq, Wish, Time);

/// Clients, the scribe among them, and their server.
pub struct Shared {
    config: PyramidConfig,
    askers: Askers,
    scribe: Scribe,
    server: MemoryServer,
    term: Term,
    net: Net<Message>,
    followers: BTreeMap<Session, Follower>,
    sessions: u64,
    /// A lane belongs to the client of its session.
    lanes: Vec<(Session, Option<Waiting>)>,
    /// Asks that the scribe has and did not yet order.
    held: Vec<AskRecord>,
    /// Its own asks that the server does not have.
    own: Vec<AskRecord>,
    window_is_open: bool,
    served: Vec<Served>,
}

fn sealer(number: u64) -> Sealer {
    Sealer::new(SealRoot::from_seed(5), Box::new(SeededEntropy::new(number)))
}

fn content(block: u64, block_bytes: usize) -> Vec<u8> {
    let mut content = block.to_le_bytes().to_vec();
    content.resize(block_bytes, block as u8);
    content
}

impl Shared {
    /// An empty volume with one client.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn new(config: PyramidConfig, askers: Askers) -> Result<Self> {
        let oram = PyramidOram::new(config, PyramidKeys::from_seed(1))?;
        let mut server = MemoryServer::new(config.slot_bytes());
        let term = server.claim();
        let mut shared = Self {
            config,
            askers,
            scribe: Scribe::new(oram, sealer(0), term)?,
            term,
            server,
            net: Net::new(AT_ONCE),
            followers: BTreeMap::new(),
            sessions: 0,
            lanes: Vec::new(),
            held: Vec::new(),
            own: Vec::new(),
            window_is_open: false,
            served: Vec::new(),
        };
        shared.arrange(1, 1, AT_ONCE)?;
        Ok(shared)
    }

    /// Writes every block and goes on for a cycle of all bases.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn fill(&mut self) -> Result<()> {
        self.arrange(1, MOST, AT_ONCE)?;
        let blocks = self.config.blocks();
        self.run(&mut Fill::of(blocks), 2 * blocks as usize)?;
        Ok(())
    }

    fn step(&mut self, work: &mut dyn Work) -> Result<bool> {
        let Some(message) = self.net.next() else { return Ok(false) };
        match message {
            Message::AskAtServer(record) => {
                let bytes = record.sealed.len() as u64 + WHOSE;
                self.server.ask(record);
                for record in self.server.asks() {
                    self.net.send(bytes, Class::Query, Message::AskAtScribe(record));
                }
            }
            Message::AskAtScribe(record) => self.hold(record)?,
            Message::Window => {
                self.window_is_open = false;
                self.order()?;
            }
            Message::DutyAtServer(duty, own) => self.at_server(*duty, own)?,
            Message::ReplyAtScribe(reply) => reply.give(&mut self.scribe)?,
            Message::AnswerAtClient(record) => self.answer(&record, work)?,
        }
        self.begin(work)?;
        self.drive(work)?;
        Ok(true)
    }

    /// Every free lane asks.
    fn begin(&mut self, work: &mut dyn Work) -> Result<()> {
        for lane in 0..self.lanes.len() {
            let (session, None) = &self.lanes[lane] else { continue };
            let Some(wish) = work.next() else { break };
            let action = match wish.writes {
                true => Action::Write(content(wish.block, self.config.block_bytes)),
                false => Action::Read,
            };
            let operation = Operation { action, and_read: true };
            let ask = Ask::new(Name::from(BlockId(wish.block)), operation);
            let follower = self.followers.get_mut(session).context("no such session")?;
            let record = follower.ask(&ask)?;
            self.lanes[lane].1 = Some((record.seq, wish, self.net.now()));
            if self.askers == Askers::Scribe {
                self.own.push(record.clone());
                self.hold(record)?;
            } else {
                let bytes = record.sealed.len() as u64 + WHOSE;
                self.net.send(bytes, Class::Query, Message::AskAtServer(record));
            }
        }
        Ok(())
    }

    fn hold(&mut self, record: AskRecord) -> Result<()> {
        self.held.push(record);
        if self.held.len() >= MOST || self.askers == Askers::Scribe {
            return self.order();
        }
        if !self.window_is_open {
            self.window_is_open = true;
            self.net.wait(WINDOW, Message::Window);
        }
        Ok(())
    }

    /// The scribe takes all asks that it has.
    fn order(&mut self) -> Result<()> {
        for record in std::mem::take(&mut self.held) {
            self.scribe.take(&record)?;
        }
        Ok(())
    }

    /// All that the scribe can do now.
    fn drive(&mut self, work: &mut dyn Work) -> Result<()> {
        loop {
            let duty = self.scribe.duty()?;
            let mut own = Vec::new();
            let (bytes, class) = match &duty {
                Duty::Wait => return Ok(()),
                Duty::Show(show) => {
                    own = std::mem::take(&mut self.own);
                    let asks: u64 = own.iter().map(|ask| ask.sealed.len() as u64 + WHOSE).sum();
                    let spots: usize = show.asks.iter().map(|(.., spots)| spots.len()).sum();
                    let places = show.asks.len() as u64 * WHOSE + spots as u64 * SPOT;
                    (show.intent.len() as u64 + places + asks, Class::Query)
                }
                Duty::Tell(tell) => {
                    let mut bytes = tell.settle.len() as u64;
                    for answer in &tell.answers {
                        match self.askers {
                            Askers::Scribe => self.answer(answer, work)?,
                            Askers::Followers => bytes += answer.sealed.len() as u64 + WHOSE,
                        }
                    }
                    (bytes, Class::Query)
                }
                Duty::Turn(turn) => (turn.spots.len() as u64 * SPOT, Class::Background),
                Duty::Look(look) => (look.spots.len() as u64 * SPOT, Class::Query),
                Duty::Build(build) => (build.sealed.len() as u64 + SPOT, Class::Background),
                Duty::Switch(switch) => {
                    // A record of the history, which keeps its place among the others.
                    let places = (1 + switch.replaced.len()) as u64 * SPOT;
                    (switch.merged.len() as u64 + places, Class::Query)
                }
                Duty::Refuse(answers) => {
                    let bytes = answers.iter().map(|answer| answer.sealed.len() as u64 + WHOSE);
                    (bytes.sum(), Class::Query)
                }
                Duty::Save(save) => (save.sealed.len() as u64 + SPOT, Class::Background),
            };
            self.net.send(bytes, class, Message::DutyAtServer(Box::new(duty), own));
        }
    }

    fn at_server(&mut self, duty: Duty, own: Vec<AskRecord>) -> Result<()> {
        for record in own {
            self.server.ask(record);
        }
        self.server.asks();
        let slot = self.config.slot_bytes() as u64;
        // A batch also stores its asks, and what it leaves.
        let stored = |show: &Show| {
            let slots: usize = show.asks.iter().map(|(.., spots)| spots.len() + 2).sum();
            slots as u64 * slot
        };
        let disk = match &duty {
            Duty::Show(show) => stored(show),
            Duty::Build(build) => build.sealed.len() as u64,
            Duty::Turn(turn) => turn.spots.len() as u64 * slot,
            Duty::Look(look) => look.spots.len() as u64 * slot,
            Duty::Save(save) => save.sealed.len() as u64,
            Duty::Tell(_) | Duty::Refuse(_) | Duty::Switch(_) | Duty::Wait => 0,
        };
        let told: Vec<(Session, usize)> = match &duty {
            Duty::Tell(tell) if self.askers == Askers::Followers => {
                tell.answers.iter().map(|answer| (answer.session, answer.sealed.len())).collect()
            }
            _ => Vec::new(),
        };
        self.server.carry_out(self.term, duty)?;
        while let Some(reply) = self.server.reply(0) {
            let (bytes, class) = match &reply {
                DutyReply::Sums(_, sums) => (sums.iter().map(Vec::len).sum(), Class::Query),
                DutyReply::Slots(_, slots) => (slots.len(), Class::Background),
                DutyReply::Looked(_, slots) => (slots.len(), Class::Query),
                DutyReply::Built(_) => (SPOT as usize, Class::Background),
            };
            self.net.serve(disk, bytes as u64, class, Message::ReplyAtScribe(reply));
        }
        for (session, bytes) in told {
            let record = self.server.answer(session).context("an answer is missing")?;
            let bytes = bytes as u64 + WHOSE;
            self.net.send(bytes, Class::Query, Message::AnswerAtClient(record));
        }
        // What it saw is for the audit, and takes memory.
        self.server.trace.clear();
        Ok(())
    }

    fn answer(&mut self, record: &AnswerRecord, work: &mut dyn Work) -> Result<()> {
        let follower = self.followers.get_mut(&record.session).context("no such session")?;
        let (seq, outcome) = follower.answer(record)?.context("an answer came twice")?;
        let mut lanes = self.lanes.iter_mut().filter(|(session, _)| *session == record.session);
        let asked = lanes.find_map(|(_, asked)| asked.take_if(|(number, ..)| *number == seq));
        let (_, wish, began) = asked.context("nobody asked")?;
        let expected = content(wish.block, self.config.block_bytes);
        let right = outcome.answer.content.as_ref().is_none_or(|before| *before == expected);
        ensure!(right, "block {} is not what it was", wish.block);
        self.served.push(Served { began, ended: self.net.now() });
        work.answered(wish);
        Ok(())
    }
}

struct Nothing;

impl Work for Nothing {
    fn next(&mut self) -> Option<Wish> {
        None
    }
}

impl Side for Shared {
    fn run(&mut self, work: &mut dyn Work, asks: usize) -> Result<Vec<Served>> {
        self.begin(work)?;
        self.drive(work)?;
        while self.served.len() < asks && !work.is_over() {
            ensure!(self.step(work)?, "nothing is under way");
        }
        Ok(std::mem::take(&mut self.served))
    }

    fn arrange(&mut self, clients: usize, requests: usize, setting: Setting) -> Result<()> {
        while self.step(&mut Nothing)? {}
        self.served.clear();
        self.followers.clear();
        self.lanes.clear();
        for _ in 0..clients {
            self.sessions += 1;
            let session = Session(self.sessions);
            let block_bytes = self.config.block_bytes;
            let follower = Follower::new(session, VOLUME, block_bytes, sealer(self.sessions));
            self.followers.insert(session, follower);
            self.lanes.extend((0..requests).map(|_| (session, None)));
        }
        self.net = Net::new(setting);
        Ok(())
    }

    fn carried(&self) -> u64 {
        self.net.carried()
    }
}
