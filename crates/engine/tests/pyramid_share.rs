//! Several clients, a scribe and a server in one process: answers against a plain map in the order
//! of the batches, and what the server saw, as data.

use oblivio_crypto::{SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_engine::pyramid::share::{
    Ask, Duty, Follower, MemoryServer, Recorded, Reply, Scribe, Seq, Session,
};
use oblivio_engine::pyramid::{
    Home, Name, Operation, PyramidConfig, PyramidKeys, PyramidOram, Slot,
};
use oblivio_engine::{Action, BlockAnswer, BlockId, EngineError, Result};
use oblivio_testkit::SplitMix64;
use std::collections::{BTreeMap, BTreeSet};

const BYTES: usize = 64;
const VOLUME: VolumeId = VolumeId([7; 16]);

fn sealer(seed: u64) -> Sealer {
    Sealer::new(SealRoot::from_seed(5), Box::new(SeededEntropy::new(seed)))
}

/// A volume with its clients.
struct World {
    scribe: Scribe,
    server: MemoryServer,
    clients: Vec<Follower>,
    /// Each client's open asks.
    open: BTreeMap<(Session, Seq), Ask>,
    /// Each client's answers, in order.
    answers: BTreeMap<Session, Vec<(Seq, BlockAnswer)>>,
}

impl World {
    fn new(log_blocks: u32, clients: u64, seed: u64) -> Self {
        let config = PyramidConfig::new(BYTES, 1 << log_blocks, BYTES << (log_blocks - 2));
        let oram = PyramidOram::new(config, PyramidKeys::from_seed(seed)).expect("sound");
        let client = |n| Follower::new(Session(n), VOLUME, BYTES, sealer(100 + n));
        Self {
            scribe: Scribe::new(oram, sealer(1)),
            server: MemoryServer::new(config.slot_bytes()),
            clients: (0..clients).map(client).collect(),
            open: BTreeMap::new(),
            answers: BTreeMap::new(),
        }
    }

    fn ask(&mut self, client: usize, ask: Ask) {
        let record = self.clients[client].ask(&ask).expect("it fits");
        self.open.insert((record.session, record.seq), ask);
        self.server.ask(record);
    }

    /// One duty of the scribe; false when it waits.
    fn step(&mut self) -> Result<bool> {
        for record in self.server.asks() {
            self.scribe.take(&record)?;
        }
        let duty = self.scribe.duty()?;
        if duty == Duty::Wait {
            return Ok(false);
        }
        match self.server.carry_out(duty)? {
            Reply::Done => {}
            Reply::Sums(sums) => self.scribe.shown(sums)?,
            Reply::Slots(slots) => self.scribe.gathered(slots)?,
        }
        Ok(true)
    }

    fn settle(&mut self) -> Result<()> {
        while self.step()? {}
        for (number, client) in self.clients.iter_mut().enumerate() {
            let session = Session(number as u64);
            while let Some(record) = self.server.answer(session) {
                let answer = client.answer(&record)?.expect("each comes once");
                assert_eq!(client.answer(&record)?, None, "a repeated one is no answer");
                self.answers.entry(session).or_default().push(answer);
            }
        }
        Ok(())
    }
}

fn name(id: u64) -> Name {
    Name::from(BlockId(id))
}

fn ask(id: u64, action: Action, and_read: bool) -> Ask {
    Ask { name: name(id), operation: Operation { action, and_read } }
}

fn any_ask(rng: &mut SplitMix64, blocks: u64) -> Ask {
    // Half of the asks are for few blocks, so that clients collide.
    let id = if rng.below(2) == 0 { rng.below(4) } else { rng.below(blocks) };
    let byte = rng.below(256) as u8;
    match rng.below(6) {
        0 | 1 => ask(id, Action::Read, true),
        2 => ask(id, Action::Write(vec![byte; BYTES]), false),
        3 => ask(id, Action::Write(vec![byte; BYTES]), true),
        4 => ask(id, Action::Patch { offset: 3, bytes: vec![byte; 5] }, true),
        _ => ask(id, Action::Remove, true),
    }
}

/// The answer of a plain map.
fn expected(model: &mut BTreeMap<Name, Vec<u8>>, ask: &Ask) -> BlockAnswer {
    let before = model.get(&ask.name).cloned();
    match &ask.operation.action {
        Action::Read => return before,
        Action::Remove => drop(model.remove(&ask.name)),
        action => action.write_to(model.entry(ask.name).or_insert_with(|| vec![0; BYTES])),
    }
    before.filter(|_| ask.operation.and_read)
}

/// Answers of a plain map to all asks, in the order in which the server was told them.
fn replay(world: &World) -> BTreeMap<Session, Vec<(Seq, BlockAnswer)>> {
    let (mut model, mut answers) = (BTreeMap::new(), BTreeMap::new());
    for recorded in &world.server.trace {
        let Recorded::Show(asks) = recorded else { continue };
        for (session, seq, _) in asks {
            let answer = expected(&mut model, &world.open[&(*session, *seq)]);
            answers.entry(*session).or_insert_with(Vec::new).push((*seq, answer));
        }
    }
    answers
}

/// What must hold of every list of records: S1, S2 and S7 of the design.
fn check(trace: &[Recorded], config: &PyramidConfig) {
    let mut read: BTreeMap<Home, BTreeSet<Slot>> = BTreeMap::new();
    // Of each table that lives, the partition, once an ask or a merge showed it.
    let mut shown = Vec::new();
    let lengths = trace.iter().filter_map(|recorded| match recorded {
        Recorded::Ask(_, _, bytes) => Some(*bytes),
        _ => None,
    });
    assert!(lengths.collect::<BTreeSet<_>>().len() <= 1, "asks of one length");
    for recorded in trace {
        match recorded {
            Recorded::Show(asks) => {
                for (_, _, spots) in asks {
                    let homes: BTreeSet<_> = spots.iter().map(|spot| spot.home).collect();
                    assert_eq!(homes.len(), spots.len(), "one slot of a table");
                    for spot in spots {
                        assert!(read.entry(spot.home).or_default().insert(spot.slot), "S1");
                    }
                }
                shown = asks.iter().map(|(session, seq, _)| (*session, *seq)).collect();
            }
            Recorded::Tell(answers) => {
                let told: Vec<_> =
                    answers.iter().map(|&(session, seq, _)| (session, seq)).collect();
                assert_eq!(told, shown, "in the batch's order, and right after it");
                assert!(answers.iter().all(|answer| answer.2 == answers[0].2), "of one length");
            }
            Recorded::Turn(spots) => {
                for spot in spots {
                    assert!(read.entry(spot.home).or_default().insert(spot.slot), "S1 in a merge");
                }
            }
            Recorded::Build(home, bytes) => {
                assert!(bytes.is_multiple_of(config.slot_bytes()), "whole slots");
                read.remove(home);
            }
            Recorded::Switch(home, replaced) => {
                assert!(!replaced.contains(home));
                replaced.iter().for_each(|home| drop(read.remove(home)));
            }
            Recorded::Ask(..) => {}
        }
    }
}

#[test]
fn clients_are_answered_in_one_order_and_the_records_say_nothing_else() {
    for seed in 0..40 {
        let mut world = World::new(8, 4, seed);
        let mut rng = SplitMix64::new(seed);
        for _ in 0..60 {
            for _ in 0..rng.below(20) {
                let (client, ask) = (rng.below(4) as usize, any_ask(&mut rng, 200));
                world.ask(client, ask);
                // Asks come at any time: between a merge's records too.
                if rng.below(3) == 0 {
                    world.step().expect("an honest server");
                }
            }
            world.settle().expect("an honest server");
        }
        assert_eq!(world.answers, replay(&world), "seed {seed}");
        check(&world.server.trace, world.scribe.oram().config());
    }
}

/// Two clients on one block, and each on many: the records differ in the slots only (S6).
#[test]
fn whether_clients_meet_on_a_block_does_not_show() {
    let shape = |meet: bool| {
        let mut world = World::new(9, 2, 3);
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
            Recorded::Tell(told) => (1, told.into_iter().map(|(s, n, _)| (s, n)).collect()),
            Recorded::Turn(spots) => (2 + spots.len(), Vec::new()),
            Recorded::Build(_, bytes) => (bytes, Vec::new()),
            Recorded::Switch(_, replaced) => (replaced.len(), Vec::new()),
            Recorded::Ask(session, seq, bytes) => (bytes, vec![(session, seq)]),
        });
        counted.collect::<Vec<(usize, Vec<(Session, Seq)>)>>()
    };
    assert!(shape(true) == shape(false), "the schedule differs");
}

/// Whatever the server changes is found before any answer of that batch is given.
#[test]
fn a_changed_slot_is_found_whether_it_holds_the_block_or_not() {
    let mut found = 0;
    for seed in 0..200u64 {
        let mut world = World::new(7, 2, seed);
        let mut rng = SplitMix64::new(seed);
        for id in 0..128 {
            world.ask(0, ask(id, Action::Write(vec![id as u8; BYTES]), false));
            world.settle().expect("honest");
        }
        let told = |world: &World| {
            world.server.trace.iter().filter(|seen| matches!(seen, Recorded::Tell(_))).count()
        };
        let before = told(&world);
        // One bit of every slot, so also of those that the next ask shows.
        let slot_bytes = world.scribe.oram().config().slot_bytes();
        for table in world.server.tables.values_mut() {
            for slot in table.chunks_exact_mut(slot_bytes) {
                slot[rng.below(slot_bytes as u64) as usize] ^= 1 << rng.below(8);
            }
        }
        world.ask(1, ask(rng.below(128), Action::Read, true));
        match world.settle() {
            Err(EngineError::TamperedTable { .. }) => {
                found += 1;
                assert_eq!(told(&world), before, "no answer was given");
            }
            // A partition without tables shows nothing.
            Ok(()) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(found > 150, "{found} of 200");
}

#[test]
fn a_server_cannot_repeat_drop_swap_or_change_records() {
    let mut world = World::new(7, 2, 1);
    let write = |id| ask(id, Action::Write(vec![9; BYTES]), true);
    let records: Vec<_> =
        (0..3).map(|id| world.clients[0].ask(&write(id)).expect("it fits")).collect();
    world.scribe.take(&records[0]).expect("the first");
    world.scribe.take(&records[0]).expect("again: nothing happens");
    assert!(world.scribe.take(&records[2]).is_err(), "the second is missing");
    let mut other = records[1].clone();
    other.session = Session(1);
    other.seq = Seq(0);
    assert!(world.scribe.take(&other).is_err(), "of another session");
    for at in 0..records[1].sealed.len() {
        let mut changed = records[1].clone();
        changed.sealed[at] ^= 1;
        assert!(world.scribe.take(&changed).is_err(), "byte {at}");
    }
    world.scribe.take(&records[1]).expect("as it was sent");
    world.settle_only_server();
    let first = world.server.answer(Session(0)).expect("answered");
    let second = world.server.answer(Session(0)).expect("answered");
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
