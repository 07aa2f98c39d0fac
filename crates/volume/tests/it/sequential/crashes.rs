//! A crash at every storage operation of a session, torn and reordered writes too, session after
//! session; crashes of the recovery too.

use super::model::{Event, Model, act, any_event, any_events, content};
use super::{MemoryKeeper, any_options, create, open};
use oblivio_store::{MemoryStore, Store};
use oblivio_testkit::campaign::{self, scaled};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::{BlockSpace, Error};
use std::sync::Arc;

/// Consecutive sessions; each starts from a crash of the previous one.
const SESSIONS: u64 = 3;
const EVENTS: u64 = 25;

/// A store and its possible contents.
pub struct Left {
    pub store: MemoryStore,
    pub memory: MemoryKeeper,
    pub possible: Vec<Model>,
}

/// Plays a session that may be cut short; gives the contents that it may leave: the state of the
/// last sync that returned, or any later one.
pub fn play(
    store: &Arc<impl Store + 'static>,
    memory: &MemoryKeeper,
    at: &Model,
    events: &[Event],
) -> Vec<Model> {
    let (mut model, mut possible) = (at.clone(), vec![at.clone()]);
    let Ok(mut volume) = open(store.clone(), memory) else { return possible };
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

/// Opens a crashed store, and gives its content.
pub fn look(left: &Left, what: &str) -> Model {
    let store = Arc::new(left.store.snapshot());
    let mut volume = match open(store, &left.memory.twin()) {
        Ok(volume) => volume,
        Err(error) => panic!("{what}: {error}"),
    };
    let found = content(&mut volume).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(left.possible.contains(&found), "{what}: it is no state that was ever asked for");
    found
}

/// A campaign; gives the number of opened states.
fn one_campaign(seed: u64, most: u64) -> u64 {
    let mut dice = Dice::new(seed);
    let options = any_options(&mut dice);
    let blocks = options.engine.blocks;
    let memory = MemoryKeeper::default();
    let store = Arc::new(MemoryStore::new());
    create(store.clone(), options, &memory).expect("a volume");
    let mut left = Left { store: store.snapshot(), memory, possible: vec![Model::default()] };
    let mut states = 0;
    for session in 0..SESSIONS {
        let what = format!("seed {seed}, session {session}");
        let at = look(&left, &what);
        let events = any_events(&mut dice, blocks, EVENTS);
        // Once to the end, to count the operations.
        let whole = Arc::new(CrashStore::holding(&left.store));
        play(&whole, &left.memory.twin(), &at, &events);
        let mut next = None;
        for operation in 0..=whole.operations() {
            let memory = left.memory.twin();
            let store = Arc::new(CrashStore::holding(&left.store));
            store.crash_after(operation);
            let possible = play(&store, &memory, &at, &events);
            store.crash();
            let mut survivors: Vec<_> =
                store.extremes().into_iter().map(|(_, survivor)| survivor).collect();
            survivors.extend((0..2).map(|_| store.survivors(dice.next_u64())));
            for (way, survivor) in survivors.into_iter().enumerate() {
                let left =
                    Left { store: survivor, memory: memory.twin(), possible: possible.clone() };
                look(&left, &format!("{what}, operation {operation}, way {way}"));
                states += 1;
                if dice.below(whole.operations() + 1) == 0 || next.is_none() {
                    next = Some(left);
                }
            }
            if states >= most {
                return states;
            }
        }
        if let Some(next) = next {
            left = next;
        }
    }
    states
}

#[test]
fn no_crash_loses_what_was_synced() {
    let (mut states, mut seed, most) = (0, campaign::seed(1), scaled(500));
    while states < most {
        states += one_campaign(seed, most - states);
        seed += 1;
    }
    println!("{states} crash states opened, seeds up to {seed}, nothing lost");
}

/// A crash during the recovery from a crash.
#[test]
fn no_crash_of_a_recovery_loses_anything() {
    let (mut states, mut seed, most) = (0, campaign::seed(1), scaled(100));
    while states < most {
        let mut dice = Dice::new(seed ^ 0x5eed);
        let options = any_options(&mut dice);
        let memory = MemoryKeeper::default();
        let store = Arc::new(MemoryStore::new());
        create(store.clone(), options, &memory).expect("a volume");
        let events = any_events(&mut dice, options.engine.blocks, 2 * EVENTS);
        let whole = Arc::new(CrashStore::holding(&store));
        play(&whole, &memory.twin(), &Model::default(), &events);
        let cut = Arc::new(CrashStore::holding(&store));
        cut.crash_after(dice.below(whole.operations() + 1));
        let possible = play(&cut, &memory, &Model::default(), &events);
        cut.crash();
        let first = cut.survivors(dice.next_u64());
        let whole = Arc::new(CrashStore::holding(&first));
        drop(open(whole.clone(), &memory.twin()));
        for operation in 0..=whole.operations() {
            let (memory, again) = (memory.twin(), Arc::new(CrashStore::holding(&first)));
            again.crash_after(operation);
            drop(open(again.clone(), &memory));
            again.crash();
            let store = again.survivors(dice.next_u64());
            let left = Left { store, memory, possible: possible.clone() };
            look(&left, &format!("seed {seed}, recovery cut at {operation}"));
            states += 1;
        }
        seed += 1;
    }
    println!("{states} crash states of recoveries opened, nothing lost");
}

#[test]
fn a_volume_that_is_older_is_refused() {
    let (memory, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
    let options = any_options(&mut Dice::new(5));
    let mut volume = create(store.clone(), options, &memory).expect("a volume");
    let mut dice = Dice::new(1);
    let mut act_some = |volume: &mut dyn BlockSpace| {
        let mut model = content(volume).expect("readable");
        for _ in 0..40 {
            let event = any_event(&mut dice, options.engine.blocks);
            act(volume, &model, &event).expect("works");
            model.play(&event);
        }
        volume.commit().expect("works");
    };
    act_some(&mut volume);
    let old = store.snapshot();
    act_some(&mut volume);
    drop(volume);
    let error = open(Arc::new(old.snapshot()), &memory.twin()).err().expect("refused");
    assert!(matches!(error, Error::RolledBack(_)), "{error}");
    let other = MemoryKeeper::default();
    open(Arc::new(old), &other).expect("another computer knows nothing of it");
    open(store, &memory).expect("the newest is fine");
}
