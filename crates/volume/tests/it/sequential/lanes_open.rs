//! Lanes that are open: what was acknowledged in them is there after any crash and any gap, and the
//! volume's acts are the same as without them.

use super::model::{Event, Model, act, any_event, any_op, content};
use super::{MemoryKeeper, any_options, create, on, passphrase};
use oblivio_crypto::Passphrase;
use oblivio_engine::sequential::SequentialConfig;
use oblivio_store::record::CallKind;
use oblivio_store::{Held, MemoryStore, ReadAt, RecordStore, Slots, Store, WriteAt};
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{
    BlockSpace, DamagedPlace, EngineVolume, HEADER_BYTES, HEADER_OBJECTS, LaneParameters, LaneWait,
    OpenLane, Result,
};
use std::sync::Arc;
use std::time::Duration;

/// Nobody waits: what is not durable now is said so at once.
pub(super) const AT_ONCE: LaneWait = LaneWait { time: Duration::ZERO, memory_bytes: 1 << 20 };

pub(super) fn hidden() -> Passphrase {
    Passphrase::new("battery staple")
}

/// A small volume with one lane and a long grace.
pub(super) fn with_lane(dice: &mut Dice) -> SequentialOptions {
    let options = any_options(dice);
    let engine = SequentialConfig {
        blocks: 60 + dice.below(100),
        bucket_blocks: options.engine.bucket_blocks + 2,
        sector_bytes: options.engine.sector_bytes.max(256),
        ..options.engine
    };
    let grace = 1 + dice.below(2) as u8;
    let lanes = Some(LaneParameters { count: 1, share: 2, grace, guess: 3 });
    let turn = engine.queue_blocks().div_ceil(options.quantum_writes) + 2;
    SequentialOptions { engine, lanes, log_quanta: 3 * turn, ..options }
}

pub fn open(
    store: &Arc<impl Store + 'static>,
    passphrase: &Passphrase,
    computer: &MemoryKeeper,
) -> Result<SequentialVolume> {
    SequentialVolume::open(Arc::clone(store) as Arc<dyn Store>, passphrase, on(computer))
}

/// A volume whose lane 1 has a passphrase, and was left well.
pub fn made(store: Arc<dyn Store>, options: SequentialOptions, computer: &MemoryKeeper) {
    let mut volume = create(store, options, computer).expect("a volume");
    volume.give_lane(0, &hidden()).expect("it has a lane");
    volume.finish().expect("it ends well");
}

/// What may be in the volume and in its lane.
#[derive(Clone, Debug)]
struct Possible {
    outer: Vec<Model>,
    lane: Vec<Model>,
}

/// An act of a session: in the volume, or in its lane.
#[derive(Clone, Debug)]
enum Deed {
    Outer(Event),
    Lane(Event),
}

fn any_deeds(dice: &mut Dice, outer: u64, lane: u64, count: u64) -> Vec<Deed> {
    let deed = |dice: &mut Dice| match dice.below(5) {
        0 => Deed::Lane(Event::Ops((0..1 + dice.below(4)).map(|_| any_op(dice, lane)).collect())),
        1 if dice.below(2) == 0 => Deed::Lane(any_event(dice, lane)),
        2 => Deed::Lane(Event::Commit),
        _ => Deed::Outer(any_event(dice, outer)),
    };
    (0..count).map(|_| deed(dice)).collect()
}

/// Plays a session with the lane open, which may be cut short.
fn play(
    store: &Arc<impl Store + 'static>,
    computer: &MemoryKeeper,
    at: (&Model, &Model),
    deeds: &[Deed],
) -> Possible {
    let (mut outer, mut lane) = (at.0.clone(), at.1.clone());
    let mut possible = Possible { outer: vec![outer.clone()], lane: vec![lane.clone()] };
    let Ok(mut volume) = open(store, &hidden(), computer) else { return possible };
    let Some(OpenLane { mut space, sync }) = volume.lane(0, AT_ONCE) else {
        panic!("the lane is not open: {:?}", volume.damaged())
    };
    for deed in deeds {
        let (model, event, states): (&mut Model, _, _) = match deed {
            Deed::Outer(event) => (&mut outer, event, &mut possible.outer),
            Deed::Lane(event) => (&mut lane, event, &mut possible.lane),
        };
        let mut next = model.clone();
        states.extend(next.play(event));
        let done = match deed {
            Deed::Outer(_) => act(&mut volume, model, event),
            Deed::Lane(_) => act(&mut *space, model, event),
        };
        if done.is_err() {
            return possible;
        }
        // What is in a lane waits for the volume, and is kept.
        let durable = match deed {
            Deed::Outer(_) => true,
            Deed::Lane(_) => sync.wait(sync.accepted(), Duration::ZERO).is_ok(),
        };
        if durable && matches!(event, Event::Commit | Event::Finish) {
            *states = vec![next.clone()];
        }
        *model = next;
    }
    possible
}

/// Plays a session of the volume alone.
fn play_alone(
    store: &Arc<impl Store + 'static>,
    computer: &MemoryKeeper,
    at: &Model,
    events: &[Event],
) -> Vec<Model> {
    let (mut model, mut possible) = (at.clone(), vec![at.clone()]);
    let Ok(mut volume) = open(store, &passphrase(), computer) else { return possible };
    assert!(volume.lane(0, AT_ONCE).is_none(), "the outer passphrase opens no lane");
    for event in events {
        let mut next = model.clone();
        possible.extend(next.play(event));
        if act(&mut volume, &model, event).is_err() {
            return possible;
        }
        model = next;
        if matches!(event, Event::Commit | Event::Finish) {
            possible = vec![model.clone()];
        }
    }
    possible
}

/// What is found, and what may be written to the volume alone before the lane loses anything, in
/// blocks.
fn look(store: &MemoryStore, computer: &MemoryKeeper, possible: &Possible, what: &str) -> Found {
    let store = Arc::new(store.snapshot());
    let opened = open(&store, &hidden(), &computer.twin());
    let mut volume = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
    let outer = content(&mut volume).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(possible.outer.contains(&outer), "{what}: the volume");
    // A crash may leave a torn copy of the volume's own state.
    let damaged = volume.damaged();
    let damaged: Vec<_> = damaged.iter().filter(|it| it.object.starts_with("lane")).collect();
    let lane = volume.lane(0, AT_ONCE).unwrap_or_else(|| panic!("{what}: {damaged:?}"));
    let OpenLane { mut space, sync } = lane;
    // Only the next opening knows whether a quantum is torn or damaged.
    let torn = |it: &&DamagedPlace| it.why.contains("unless a crash cut it short");
    assert!(damaged.iter().all(torn), "{what}: {damaged:?}");
    let lane = content(&mut *space).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(
        possible.lane.contains(&lane),
        "{what}: the lane: {lane:?}\nof {:?}",
        possible.lane.iter().map(|it| it.blocks.len()).collect::<Vec<_>>()
    );
    let left = sync.status().grace_left_bytes / 64;
    Found { outer, lane, left }
}

struct Found {
    outer: Model,
    lane: Model,
    left: u64,
}

/// Sessions with the lane and without it, each cut short at every storage operation. Gives the
/// number of states that were opened.
fn campaign(seed: u64, most: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let options = with_lane(&mut dice);
    let (blocks, turn) = (options.engine.blocks, options.engine.queue_blocks());
    let mut computer = MemoryKeeper::default();
    let store = Arc::new(MemoryStore::new());
    made(store.clone(), options, &computer);
    let mut store = store.snapshot();
    let mut possible = Possible { outer: vec![Model::default()], lane: vec![Model::default()] };
    let mut states = 0;
    for session in 0..5 {
        let what = format!("seed {seed}, session {session}");
        let at = look(&store, &computer, &possible, &what);
        let alone = session % 2 == 1;
        let lane_blocks = blocks / 3;
        let deeds = any_deeds(&mut dice, blocks, lane_blocks, 20);
        let mut left = at.left.saturating_sub(4 * turn);
        let events: Vec<Event> = (0..12).map(|_| any_event(&mut dice, blocks)).collect();
        let events: Vec<Event> = events
            .into_iter()
            .take_while(|event| {
                // A sync may pad the rest of a turn.
                let writes = match event {
                    Event::Ops(ops) => ops.len() as u64,
                    _ => turn,
                };
                let fits = writes <= left;
                left = left.saturating_sub(writes);
                fits
            })
            .collect();
        let run = |store: &Arc<CrashStore>, computer: &MemoryKeeper| match alone {
            true => {
                let outer = play_alone(store, computer, &at.outer, &events);
                // Nobody sees the lane. What a crash left of it and nobody acknowledged may still
                // come back, in order: the volume's new quantum may be stored without the one that
                // burns the lane's old one.
                let found = possible.lane.iter().position(|it| *it == at.lane);
                Possible { outer, lane: possible.lane[found.unwrap_or(0)..].to_vec() }
            }
            false => play(store, computer, (&at.outer, &at.lane), &deeds),
        };
        let whole = Arc::new(CrashStore::holding(&store));
        run(&whole, &computer.twin());
        let mut next = None;
        for operation in 0..=whole.operations() {
            let memory = computer.twin();
            let cut = Arc::new(CrashStore::holding(&store));
            cut.crash_after(operation);
            let possible = run(&cut, &memory);
            cut.crash();
            let mut survivors: Vec<_> =
                cut.extremes().into_iter().map(|(_, survivor)| survivor).collect();
            survivors.extend((0..2).map(|_| cut.survivors(dice.next_u64())));
            for (way, survivor) in survivors.into_iter().enumerate() {
                let what = format!("{what}, operation {operation}, way {way}, alone {alone}");
                look(&survivor, &memory.twin(), &possible, &what);
                states += 1;
                if dice.below(whole.operations() + 1) == 0 || next.is_none() {
                    next = Some((survivor, memory.twin(), possible.clone()));
                }
            }
            if states >= most {
                return states;
            }
        }
        if let Some((survivor, memory, left)) = next {
            (store, computer, possible) = (survivor, memory, left);
        }
    }
    states
}

#[test]
fn no_crash_loses_what_was_acknowledged_in_the_volume_or_in_its_lane() {
    let (mut states, mut seed, most) = (0, seed(1), scaled(150));
    while states < most {
        states += campaign(seed, most - states);
        seed += 1;
    }
    println!("{states} crash states opened, seeds up to {seed}, nothing lost");
}

/// What was written and synced, in calls and places.
fn seen(store: &RecordStore<MemoryStore>) -> Vec<(CallKind, Arc<str>, u64, u64)> {
    super::traces::writes(store.take())
}

/// The same acts of the volume, with whatever is done in the lane between them.
fn trace(options: SequentialOptions, events: &[Event], lane: Option<&mut Dice>, seed: u64) -> Seen {
    let (memory, store) = (MemoryKeeper::default(), Arc::new(RecordStore::new(MemoryStore::new())));
    let options = SequentialOptions { fill: false, ..options };
    let mut volume = create(store.clone(), options, &memory).expect("a volume");
    let mut dice = lane;
    if dice.is_some() {
        volume.give_lane(0, &hidden()).expect("it has a lane");
    }
    let (mut writes, mut carried) = (Vec::new(), 0);
    for (at, event) in events.iter().enumerate() {
        let mut space = volume.lane(0, AT_ONCE);
        if let (Some(dice), Some(OpenLane { space, sync })) = (&mut dice, &mut space) {
            let blocks = space.capacity_blocks();
            for _ in 0..dice.below(4) {
                match any_event(dice, blocks) {
                    // Beyond the grace some of it may be lost.
                    Event::Ops(ops) => {
                        if let Err(error) = space.access_each(ops) {
                            panic!("seed {seed}, event {at}: {error}");
                        }
                    }
                    Event::Root(root) => space.set_root(&root),
                    Event::Commit | Event::Finish => {
                        space.commit().expect("it waits");
                        let done = sync.wait(sync.accepted(), Duration::ZERO);
                        carried += u64::from(done.is_ok());
                    }
                }
            }
        }
        super::traces::act(&mut volume, event).expect("it works");
        if at % 7 == 6 {
            // A clean end or none, and an opening by either passphrase.
            if at % 2 == 0 {
                volume.finish().expect("it ends well");
            }
            drop((space, volume));
            writes.extend(seen(&store));
            let by = match dice.as_mut().map(|dice| dice.below(3)) {
                Some(0 | 1) => hidden(),
                _ => passphrase(),
            };
            volume = open(&store, &by, &memory).expect("it opens");
        }
    }
    drop(volume);
    writes.extend(seen(&store));
    Seen { writes, carried }
}

struct Seen {
    writes: Vec<(CallKind, Arc<str>, u64, u64)>,
    /// Commits of the lane that became durable.
    carried: u64,
}

#[test]
fn a_lane_that_is_used_changes_no_write_and_no_sync() {
    let mut carried = 0;
    for seed in (seed(1)..).take(scaled(8) as usize) {
        let mut dice = Dice::new(seed);
        let options = with_lane(&mut dice);
        let events: Vec<Event> =
            (0..60).map(|_| any_event(&mut dice, options.engine.blocks)).collect();
        let unused = trace(options, &events, None, seed);
        let used = trace(options, &events, Some(&mut dice), seed);
        assert_eq!(unused.writes.len(), used.writes.len(), "seed {seed}");
        for (at, (one, two)) in unused.writes.iter().zip(&used.writes).enumerate() {
            assert_eq!(one, two, "seed {seed}, call {at}");
        }
        carried += used.carried;
    }
    assert!(carried > 10, "{carried} commits of lanes became durable");
}

/// Its checksum is no secret: somebody may make a copy of the header that looks whole.
#[test]
fn a_changed_copy_of_the_header_hides_no_lane() {
    let (mut dice, computer) = (Dice::new(5), MemoryKeeper::default());
    for object in HEADER_OBJECTS {
        let store = Arc::new(MemoryStore::new());
        made(store.clone(), with_lane(&mut dice), &computer.twin());
        let mut header = vec![0; HEADER_BYTES];
        store.read(&mut [ReadAt { object, offset: 0, buf: &mut header }]).expect("a header");
        // The share of the lanes, and the cost of a guess.
        (header[77], header[79]) = (7, 4);
        let sum = HEADER_BYTES - 32;
        let digest = oblivio_crypto::digest(&header[..sum]);
        header[sum..].copy_from_slice(&digest);
        store.write(&[WriteAt::new(object, 0, &header)]).expect("written");
        let opened = open(&store, &hidden(), &MemoryKeeper::default());
        let mut volume = opened.expect("the other copy is authentic");
        assert!(volume.lane(0, AT_ONCE).is_some(), "{object}");
    }
}
