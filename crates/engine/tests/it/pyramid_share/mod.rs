//! Several clients, a scribe and a server in one process: answers against a plain map in the order
//! of the batches, and what the server saw, as data.

mod flips;
mod lost;
mod rules;
mod sessions;
mod states;
mod takeover;

use crate::seeds;
use oblivio_crypto::{SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_engine::pyramid::share::{
    Admitted, Answer, Ask, AskRefusal, Compare, Does, Duty, Follower, Head, MemoryServer, Outcome,
    Recorded, Scribe, Seq, Session, StoredRecord, TakeOver, Term,
};
use oblivio_engine::pyramid::{
    Name, Operation, PyramidConfig, PyramidKeys, PyramidOram, TableHome, TableSpot,
};
use oblivio_engine::{Action, EngineError};
use oblivio_testkit::SplitMix64;
use rules::broken;
use std::collections::{BTreeMap, BTreeSet};

const BYTES: usize = 64;
const VOLUME: VolumeId = VolumeId([7; 16]);

fn sealer(seed: u64) -> Sealer {
    Sealer::new(SealRoot::from_seed(5), Box::new(SeededEntropy::new(seed)))
}

/// An engine with the volume's keys. Its randomness differs from scribe to scribe.
fn oram(config: PyramidConfig, seed: u64, scribe: u64) -> PyramidOram {
    let keys = PyramidKeys::from_seed(seed).with_entropy(seed << 20 | scribe);
    PyramidOram::new(config, keys).expect("sound")
}

/// A volume with its clients.
struct World {
    scribe: Scribe,
    term: Term,
    seed: u64,
    /// Scribes so far.
    scribes: u64,
    config: PyramidConfig,
    server: MemoryServer,
    clients: Vec<Follower>,
    /// Each client's open asks.
    open: BTreeMap<(Session, Seq), Ask>,
    /// Each client's answers, in order.
    answers: BTreeMap<Session, Vec<(Seq, Outcome)>>,
    /// The asks of each transaction, by its first.
    groups: BTreeMap<(Session, Seq), usize>,
    /// Replies of the server are late, by these numbers; none if they come at once.
    late: Option<SplitMix64>,
    /// All records, those that the server forgot too.
    records: Vec<StoredRecord>,
    /// Blocks that existed at the last answer.
    live_blocks: u64,
}

impl World {
    fn new(log_blocks: u32, clients: u64, seed: u64) -> Self {
        let config = PyramidConfig::new(BYTES, 1 << log_blocks, BYTES << (log_blocks - 2));
        let client = |n| Follower::new(Session(n), VOLUME, BYTES, sealer(100 + n));
        let mut server = MemoryServer::new(config.slot_bytes());
        let term = server.claim();
        Self {
            scribe: Scribe::new(oram(config, seed, 0), sealer(1), term).expect("a new term"),
            term,
            server,
            seed,
            scribes: 1,
            config,
            clients: (0..clients).map(client).collect(),
            open: BTreeMap::new(),
            answers: BTreeMap::new(),
            groups: BTreeMap::new(),
            late: Some(SplitMix64::new(seed)),
            records: Vec::new(),
            live_blocks: 0,
        }
    }

    /// The scribe is gone, and another client takes its place.
    fn kill(&mut self) -> Result<(), EngineError> {
        let known = self.clients[0].head();
        let taking = self.begin_take_over(known)?;
        self.take_over(taking)
    }

    /// From the newest state that the server has.
    fn begin_take_over(&mut self, known: Head) -> Result<TakeOver, EngineError> {
        self.scribes += 1;
        let oram = oram(self.config, self.seed, self.scribes);
        let (sealer, saved) = (sealer(1000 + self.scribes), &self.server.saved);
        if saved.pieces.is_empty() {
            return Ok(TakeOver::new(oram, sealer, known));
        }
        let pieces = saved.pieces.iter().map(Vec::as_slice);
        TakeOver::from_checkpoint(oram, sealer, known, saved.number, pieces)
    }

    fn take_over(&mut self, mut taking: TakeOver) -> Result<(), EngineError> {
        self.note_records();
        let first = taking.head().number - self.server.forgotten;
        for stored in &self.server.history[first as usize..] {
            taking.record(stored)?;
        }
        self.term = self.server.claim();
        self.scribe = taking.finish(self.term)?;
        Ok(())
    }

    /// Notes the records that are new.
    fn note_records(&mut self) {
        let known = self.records.len() as u64 - self.server.forgotten;
        let new = self.server.history.get(known as usize..).unwrap_or_default();
        self.records.extend(new.iter().cloned());
    }

    /// The server's replies arrive.
    fn give_replies(&mut self) {
        while let Some(reply) = self.server.reply(0) {
            reply.give(&mut self.scribe).expect("honest");
        }
    }

    /// Hands a duty to the server.
    fn carry_out(&mut self, duty: Duty) -> Result<(), EngineError> {
        self.server.carry_out(self.term, duty)?;
        self.note_records();
        Ok(())
    }

    fn ask(&mut self, client: usize, ask: Ask) {
        self.transaction(client, vec![ask]);
    }

    fn transaction(&mut self, client: usize, asks: Vec<Ask>) {
        let records = self.clients[client].transaction(&asks).expect("it fits");
        let first = (records[0].session, records[0].seq);
        self.groups.insert(first, asks.len());
        for (record, ask) in records.into_iter().zip(asks) {
            self.open.insert((record.session, record.seq), ask);
            self.server.ask(record);
        }
    }

    /// One duty of the scribe, or a reply of the server; false when both wait for asks.
    fn step(&mut self) -> Result<bool, EngineError> {
        for record in self.server.asks() {
            self.scribe.take(&record)?;
        }
        let waiting = self.server.waiting() as u64;
        let duty_first = self.late.as_mut().map_or(waiting == 0, |late| late.below(3) > 0);
        if duty_first || waiting == 0 {
            let duty = self.scribe.duty()?;
            if duty != Duty::Wait {
                self.carry_out(duty)?;
                return Ok(true);
            }
        }
        let number = self.late.as_mut().map_or(0, |late| late.below(waiting.max(1)));
        match self.server.reply(number as usize) {
            Some(reply) => reply.give(&mut self.scribe).map(|()| true),
            None => Ok(false),
        }
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        while self.step()? {}
        self.fetch()
    }

    /// All clients fetch their answers.
    fn fetch(&mut self) -> Result<(), EngineError> {
        for (number, client) in self.clients.iter_mut().enumerate() {
            let session = Session(number as u64);
            while let Some(record) = self.server.answer(session) {
                let mut answer = client.answer(&record)?.expect("each comes once");
                self.live_blocks = std::mem::take(&mut answer.1.live_blocks);
                assert_eq!(client.answer(&record)?, None, "a repeated one is no answer");
                self.answers.entry(session).or_default().push(answer);
            }
        }
        Ok(())
    }
}

/// Four owners, each with every fourth block.
fn name(id: u64) -> Name {
    Name { owner: [id as u8 % 4; 16], index: id / 4 }
}

fn ask(id: u64, action: Action, and_read: bool) -> Ask {
    Ask::new(name(id), Operation { action, and_read })
}

fn any_ask(rng: &mut SplitMix64, blocks: u64) -> Ask {
    // Half of the asks are for few blocks, so that clients collide.
    let id = if rng.below(2) == 0 { rng.below(4) } else { rng.below(blocks) };
    let byte = rng.below(256) as u8;
    match rng.below(14) {
        0 | 1 => ask(id, Action::Read, false),
        // Few are near the begin, so that blocks remain.
        2 => Ask::forget(name(blocks - 1 - rng.below(blocks).pow(2) / blocks)),
        3..=5 => ask(id, Action::Read, true),
        6 | 7 => ask(id, Action::Write(vec![byte; BYTES]), false),
        8 | 9 => ask(id, Action::Write(vec![byte; BYTES]), true),
        10 | 11 => ask(id, Action::Patch { offset: 3, bytes: vec![byte; 5] }, true),
        12 => ask(id, Action::Patches(vec![(1, vec![byte; 2]), (60, vec![byte; 4])]), true),
        _ => ask(id, Action::Remove, true),
    }
}

/// One ask, or a transaction.
fn any_group(rng: &mut SplitMix64, blocks: u64) -> Vec<Ask> {
    let count = if rng.below(3) == 0 { 1 + rng.below(8) } else { 1 };
    let compare = |rng: &mut SplitMix64, ask: Ask| match rng.below(6) {
        0 if count > 1 => ask.only_if(Compare::Absent),
        1 if count > 1 => ask.only_if(Compare::Exists),
        2 => ask.only_if(Compare::Bytes(3, vec![rng.below(256) as u8; rng.below(3) as usize])),
        _ => ask,
    };
    let one = |_| {
        let ask = any_ask(rng, blocks);
        compare(rng, ask)
    };
    (0..count).map(one).collect()
}

type Model = BTreeMap<Name, Vec<u8>>;

/// The answers of a plain map to a transaction.
fn expected(model: &mut Model, asks: &[&Ask]) -> Vec<Outcome> {
    let done = asks.iter().all(|ask| match (&ask.compare, model.get(&ask.name)) {
        (Compare::Always, _) | (Compare::Absent, None) | (Compare::Exists, Some(_)) => true,
        (Compare::Bytes(at, bytes), Some(block)) => block[*at..*at + bytes.len()] == bytes[..],
        _ => false,
    });
    let serve = |ask: &&Ask| {
        let before = model.get(&ask.name).cloned();
        let reads = matches!(&ask.does, Does::Block(operation) if operation.and_read
            || done && operation.action == Action::Read);
        match &ask.does {
            _ if !done => {}
            Does::Block(Operation { action, .. }) => match action {
                Action::Read => {}
                Action::Remove => drop(model.remove(&ask.name)),
                action => action.write_to(model.entry(ask.name).or_insert_with(|| vec![0; BYTES])),
            },
            Does::Forget => {
                let Name { owner, index } = ask.name;
                model.retain(|name, _| name.owner != owner || name.index < index);
            }
            Does::End(_) => {}
        }
        // How many blocks exist is known when all forgotten ones are gone: tests look at it apart.
        let answer = Answer { done, content: before.filter(|_| reads) };
        Outcome { answer, refusal: None, live_blocks: 0 }
    };
    asks.iter().map(serve).collect()
}

/// Answers of a plain map to all asks, in the order of their batches.
fn replay(world: &World) -> BTreeMap<Session, Vec<(Seq, Outcome)>> {
    let (mut model, mut answers) = (Model::new(), BTreeMap::new());
    let mut carried_out = BTreeSet::new();
    for recorded in &world.server.trace {
        let Recorded::Show(asks) = recorded else { continue };
        let mut rest = &asks[..];
        while let Some((session, seq, _)) = rest.first() {
            // A transaction stands side by side in one batch.
            let (group, after) = rest.split_at(world.groups[&(*session, *seq)]);
            rest = after;
            if !carried_out.insert((*session, *seq)) {
                continue;
            }
            let asks: Vec<_> = group.iter().map(|ask| &world.open[&(ask.0, ask.1)]).collect();
            for (ask, answer) in group.iter().zip(expected(&mut model, &asks)) {
                answers.entry(ask.0).or_insert_with(Vec::new).push((ask.1, answer));
            }
        }
    }
    answers
}

#[test]
fn clients_are_answered_in_one_order_and_the_records_say_nothing_else() {
    for seed in seeds(10) {
        let mut world = World::new(8, 4, seed);
        let mut rng = SplitMix64::new(seed);
        for _ in 0..60 {
            for _ in 0..rng.below(20) {
                let (client, asks) = (rng.below(4) as usize, any_group(&mut rng, 200));
                world.transaction(client, asks);
                // Asks come at any time: between a merge's records too.
                if rng.below(3) == 0 {
                    world.step().expect("an honest server");
                }
            }
            world.settle().expect("an honest server");
        }
        assert!(world.answers == replay(&world), "seed {seed}");
        assert_eq!(broken(&world.server.trace, world.scribe.oram().config()), None, "seed {seed}");
    }
}

/// Changes in the records that the rules must find.
#[test]
fn planted_records_are_found() {
    let mut world = World::new(8, 2, 1);
    let mut rng = SplitMix64::new(1);
    for _ in 0..40 {
        for _ in 0..20 {
            let (client, ask) = (rng.below(2) as usize, any_ask(&mut rng, 200));
            world.ask(client, ask);
        }
        world.settle().expect("honest");
    }
    let config = *world.scribe.oram().config();
    let trace = &world.server.trace;
    assert_eq!(broken(trace, &config), None);
    let plant = |change: &dyn Fn(&mut Recorded) -> bool| {
        let mut trace = trace.clone();
        // Late, so that many tables live.
        let half = trace.len() / 2;
        let changed = trace[half..].iter_mut().any(change);
        assert!(changed, "there is such a record");
        broken(&trace, &config).map(|(_, rule)| &rule[..2])
    };
    let in_show = |change: fn(&mut Vec<TableSpot>)| {
        move |recorded: &mut Recorded| match recorded {
            Recorded::Show(asks) => {
                asks.iter_mut().find(|ask| ask.2.len() > 1).map(|ask| change(&mut ask.2)).is_some()
            }
            _ => false,
        }
    };
    assert_eq!(plant(&in_show(|spots| spots.truncate(1))), Some("S2"), "a table is left out");
    assert_eq!(plant(&in_show(|spots| spots[1] = spots[0])), Some("S2"), "one is shown twice");
    let other = in_show(|spots| spots[0].home = TableHome(spots[0].home.0 ^ 1));
    assert!(plant(&other).is_some(), "a table of another partition");
    let merge = |recorded: &mut Recorded| match recorded {
        Recorded::Turn(_, _, _, spots) => spots.pop().is_some(),
        _ => false,
    };
    assert_eq!(plant(&merge), Some("S2"), "blocks only");
    let twice = |recorded: &mut Recorded| match recorded {
        Recorded::Turn(_, _, _, spots) if spots.len() > 1 => {
            spots[1] = spots[0];
            true
        }
        _ => false,
    };
    assert_eq!(plant(&twice), Some("S1"), "a slot is read twice");
    let late = |recorded: &mut Recorded| match recorded {
        Recorded::Tell(_, answers) if answers.len() > 1 => {
            answers.swap(0, 1);
            true
        }
        _ => false,
    };
    assert_eq!(plant(&late), Some("S7"), "an answer out of order");
    let short = |recorded: &mut Recorded| match recorded {
        Recorded::Tell(_, answers) if answers.len() > 1 => {
            answers[1].2 -= 1;
            true
        }
        _ => false,
    };
    assert_eq!(plant(&short), Some("S7"), "a shorter answer for an absent block");
    let fewer = |recorded: &mut Recorded| match recorded {
        Recorded::Tell(notice, _) => {
            *notice -= 40;
            true
        }
        _ => false,
    };
    assert_eq!(plant(&fewer), Some("S3"), "a notice of changes only");
    assert_eq!(plant_in_merges(trace, &config), ["S5", "S7"]);
}

/// Traps of merges beside asks: an ask that reads a slot of an open merge, and answers that do not
/// wait for the slots of one.
fn plant_in_merges(trace: &[Recorded], config: &PyramidConfig) -> Vec<&'static str> {
    let rule = |trace: &[Recorded]| broken(trace, config).map_or("", |(_, rule)| &rule[..2]);
    let mut rules = BTreeSet::new();
    for (at, turn) in trace.iter().enumerate() {
        let Recorded::Turn(home, _, _, set) = turn else { continue };
        let end = |recorded: &Recorded| matches!(recorded, Recorded::Switch(to, _) if to == home);
        let until = at + trace[at..].iter().position(end).unwrap_or(trace.len() - at);
        let mut inside = trace.to_vec();
        let shown = inside[at..until].iter_mut().find_map(|recorded| match recorded {
            Recorded::Show(asks) => asks
                .iter_mut()
                .flat_map(|ask| &mut ask.2)
                .find(|spot| set.iter().any(|merged| merged.home == spot.home)),
            _ => None,
        });
        if let Some(spot) = shown {
            *spot = *set.iter().find(|merged| merged.home == spot.home).expect("it was found");
            rules.insert(rule(&inside));
        }
        let mut early = trace.to_vec();
        let slots = trace[at..until].iter().position(|seen| *seen == Recorded::Slots(*home));
        if let Some(slots) = slots {
            // As if they came right before the table.
            let slots = early.remove(at + slots);
            early.insert(until - 1, slots);
            if !rule(&early).is_empty() {
                rules.insert(rule(&early));
            }
        }
    }
    rules.into_iter().collect()
}

/// Two clients on one block, and each on many: the records differ in the slots only (S6).
#[test]
fn whether_clients_meet_on_a_block_does_not_show() {
    let shape = |meet: bool| {
        let mut world = World::new(9, 2, 3);
        world.late = None;
        for id in 0..512 {
            world.ask(0, ask(id, Action::Write(vec![1; BYTES]), false));
        }
        world.settle().expect("honest");
        world.server.trace.clear();
        for round in 0..2000u64 {
            for client in 0..2 {
                let id = if meet { 7 } else { (round * 13 + client * 251) % 512 };
                world.ask(client as usize, ask(id, Action::Read, true));
            }
            world.settle().expect("honest");
        }
        let trace = world.server.trace.into_iter();
        let counted = trace.map(|recorded| match recorded {
            Recorded::Show(asks) => (0, asks.into_iter().map(|(s, n, _)| (s, n)).collect()),
            Recorded::Tell(_, told) => (1, told.into_iter().map(|(s, n, _)| (s, n)).collect()),
            Recorded::Turn(_, _, _, spots) => (2 + spots.len(), Vec::new()),
            Recorded::Slots(_) => (3, Vec::new()),
            Recorded::Build(_, bytes) => (bytes, Vec::new()),
            Recorded::Switch(_, replaced) => (replaced.len(), Vec::new()),
            Recorded::Ask(session, seq, bytes) => (bytes, vec![(session, seq)]),
            Recorded::Save(number, piece, bytes) => {
                (bytes, vec![(Session(number), Seq(u64::from(piece)))])
            }
            Recorded::Refuse(_) | Recorded::Look(..) => panic!("nothing was refused or damaged"),
        });
        counted.collect::<Vec<(usize, Vec<(Session, Seq)>)>>()
    };
    assert!(shape(true) == shape(false), "the schedule differs");
}

/// Whatever the server changes is found before any answer of that batch is given, and nobody gets
/// wrong data.
#[test]
fn a_changed_slot_is_found_whether_it_holds_the_block_or_not() {
    let (mut found, seeds) = (0, seeds(60));
    for seed in seeds.clone() {
        let mut world = World::new(7, 2, seed);
        let mut rng = SplitMix64::new(seed);
        for id in 0..128 {
            world.ask(0, ask(id, Action::Write(vec![id as u8; BYTES]), false));
            world.settle().expect("honest");
        }
        let before = world.server.trace.len();
        // One bit of every slot, so also of those that the next ask shows.
        let slot_bytes = world.scribe.oram().config().slot_bytes();
        for table in world.server.tables.values_mut() {
            for slot in table.chunks_exact_mut(slot_bytes) {
                slot[rng.below(slot_bytes as u64) as usize] ^= 1 << rng.below(8);
            }
        }
        let id = rng.below(128);
        world.ask(1, ask(id, Action::Read, true));
        world.settle().expect("damage stops nobody");
        let seen = &world.server.trace[before..];
        let told = seen.iter().position(|seen| matches!(seen, Recorded::Tell(..)));
        let looked = seen.iter().position(|seen| matches!(seen, Recorded::Look(..)));
        // A partition without tables shows nothing.
        found += u64::from(looked.is_some());
        assert!(looked.is_none_or(|at| Some(at) < told), "no answer was given before");
        let (_, outcome) = &world.answers[&Session(1)][0];
        let lost = outcome.refusal == Some(AskRefusal::Lost);
        assert!(lost || outcome.answer.content == Some(vec![id as u8; BYTES]), "{outcome:?}");
    }
    let tried = seeds.end - seeds.start;
    assert!(found * 4 > tried * 3, "{found} of {tried}");
}

#[test]
fn a_server_cannot_repeat_drop_swap_or_change_records() {
    let mut world = World::new(7, 2, 1);
    let write = |id| ask(id, Action::Write(vec![9; BYTES]), true);
    let records: Vec<_> =
        (0..3).map(|id| world.clients[0].ask(&write(id)).expect("it fits")).collect();
    world.scribe.take(&records[0]).expect("the first");
    world.scribe.take(&records[0]).expect("again: nothing happens");
    let early = world.scribe.take(&records[2]).expect("a gap waits");
    assert_eq!(early, Admitted::Early, "the second is missing");
    let mut other = records[1].clone();
    other.session = Session(1);
    other.seq = Seq(0);
    assert!(world.scribe.take(&other).is_err(), "of another session");
    for at in 0..records[1].sealed.len() {
        let mut changed = records[1].clone();
        changed.sealed[at] ^= 1;
        assert!(world.scribe.take(&changed).is_err(), "byte {at}");
        let mut cut = records[1].clone();
        cut.sealed.truncate(at);
        assert!(world.scribe.take(&cut).is_err(), "cut at {at}");
    }
    world.scribe.take(&records[1]).expect("as it was sent");
    world.settle_only_server();
    let first = world.server.answer(Session(0)).expect("answered");
    let second = world.server.answer(Session(0)).expect("answered");
    assert!(world.server.answer(Session(0)).is_some(), "the third waited for the second");
    assert!(world.server.answer(Session(0)).is_none(), "the first was carried out once");
    let client = &mut world.clients[0];
    assert!(client.answer(&second).is_err(), "out of order");
    let mut changed = first.clone();
    changed.sealed[40] ^= 1;
    assert!(client.answer(&changed).is_err());
    assert!(client.answer(&first).expect("as it was told").is_some());
}

impl World {
    /// Without fetching answers.
    fn settle_only_server(&mut self) {
        while self.step().expect("honest") {}
    }
}
