//! Ends beyond a plain crash of a session: of a creation, of a process while the power stays on,
//! the same crash again and again, and a crash with many quanta pending.

use super::crashes::{Left, look, play};
use super::model::{Event, Model, any_events, any_op, content};
use super::{MemoryKeeper, any_options, create, open};
use oblivio_engine::Action;
use oblivio_engine::sequential::SequentialConfig;
use oblivio_store::{Held, MemoryStore};
use oblivio_testkit::campaign::{self, every, scaled};
use oblivio_testkit::fault::{Fault, FaultPlan, FaultStore, Repeat};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::BlockSpace;
use oblivio_volume::sequential::SequentialOptions;
use std::sync::Arc;

/// Whenever the power fails, there is no volume, or one that opens. Once the call returned there is
/// one.
#[test]
fn a_creation_that_is_cut_short_leaves_a_volume_or_none() {
    for seed in 0..20 {
        let options = any_options(&mut Dice::new(seed));
        let whole = Arc::new(CrashStore::new());
        create(whole.clone(), options, &MemoryKeeper::default()).expect("a volume");
        for operation in 0..=whole.operations() {
            let (store, memory) = (Arc::new(CrashStore::new()), MemoryKeeper::default());
            store.crash_after(operation);
            let created = create(store.clone(), options, &memory).is_ok();
            assert_eq!(created, operation == whole.operations());
            store.crash();
            for (what, left) in store.extremes() {
                let there = left.len("header").expect("memory").is_some();
                assert!(there || !created, "seed {seed}: it is gone");
                if !there {
                    continue;
                }
                let what = format!("seed {seed}, operation {operation}, {what}");
                let left = Left { store: left, memory: memory.twin(), possible: vec![] };
                look(&Left { possible: vec![Model::default()], ..left }, &what);
            }
        }
    }
}

/// A process is killed, and the system still has its writes. The next process continues from them,
/// and then the power fails.
#[test]
fn what_a_killed_process_left_is_durable_once_it_was_believed() {
    let (mut states, mut seed, most) = (0, campaign::seed(1), scaled(100));
    while states < most {
        let mut dice = Dice::new(seed ^ 0xdead);
        let options = any_options(&mut dice);
        let blocks = options.engine.blocks;
        let (memory, start) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
        create(start.clone(), options, &memory).expect("a volume");
        let events = [any_events(&mut dice, blocks, 15), any_events(&mut dice, blocks, 8)];
        // Once to the end, to count the operations.
        let plan = FaultPlan::new();
        let store = Arc::new(CrashStore::holding(&start));
        let first = FaultStore::new(store, plan.clone());
        play(&Arc::new(first), &memory.twin(), &Model::default(), &events[0]);
        for _ in 0..plan.operations().min(40) {
            let (kill, memory) = (dice.below(plan.operations() + 1), memory.twin());
            let plan = FaultPlan::new();
            plan.fail_at(kill, Fault { repeat: Repeat::FromThenOn, ..Fault::once() });
            let store = Arc::new(CrashStore::holding(&start));
            let killed = Arc::new(FaultStore::new(store.clone(), plan));
            let possible = play(&killed, &memory, &Model::default(), &events[0]);
            let what = format!("seed {seed}, killed at {kill}");
            let mut volume = open(store.clone(), &memory).expect("the next process opens it");
            let found = content(&mut volume).expect("readable");
            assert!(possible.contains(&found), "{what}: no state that was ever asked for");
            volume.commit().expect("works");
            drop(volume);
            store.crash_after(store.operations() + dice.below(40));
            let possible = play(&store, &memory, &found, &events[1]);
            store.crash();
            for (way, survivor) in store.extremes() {
                let left =
                    Left { store: survivor, memory: memory.twin(), possible: possible.clone() };
                look(&left, &format!("{what}, then {way}"));
                states += 1;
            }
        }
        seed += 1;
    }
    println!("{states} crash states after a killed process opened, nothing lost");
}

/// Each session makes something durable, and fails at the same point. None of them may take more of
/// the log than there is.
#[test]
fn the_same_crash_again_and_again_does_not_use_up_the_log() {
    for seed in 0..scaled(2) {
        let options = any_options(&mut Dice::new(seed));
        for operations in 0..14 {
            let (memory, start) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
            create(start.clone(), options, &memory).expect("a volume");
            let (mut at, mut model) = (start.snapshot(), Model::default());
            for session in 0..60u64 {
                let store = Arc::new(CrashStore::holding(&at));
                store.crash_after(operations);
                let mut events = vec![Event::Root(session.to_le_bytes().to_vec()), Event::Commit];
                if seed % 2 == 0 {
                    let op = any_op(&mut Dice::new(session), options.engine.blocks);
                    events.insert(0, Event::Ops(vec![op]));
                }
                let possible = play(&store, &memory, &model, &events);
                store.crash();
                let (what, survivor) = match session % 3 {
                    0 => store.extremes().swap_remove(1),
                    _ => store.extremes().swap_remove(0),
                };
                let what = format!("seed {seed}, session {session} cut at {operations}, {what}");
                let left = Left { store: survivor, memory: memory.twin(), possible };
                model = look(&left, &what);
                at = left.store;
            }
        }
    }
}

/// Enough unsynced writes that quanta go to the store long before a sync.
#[test]
fn quanta_that_wait_together_are_lost_or_kept() {
    let engine = SequentialConfig {
        bucket_blocks: 8,
        queue_buckets: 64,
        fan_out: 2,
        sector_bytes: 512,
        ..SequentialConfig::new(64, 700)
    };
    let options =
        SequentialOptions { quantum_writes: 1, log_quanta: 2100, ..SequentialOptions::of(engine) };
    let mut dice = Dice::new(3);
    let (memory, start) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
    create(start.clone(), options, &memory).expect("a volume");
    let mut writes = |count: u64| loop {
        let ops: Vec<_> = (0..count).map(|_| any_op(&mut dice, 700)).collect();
        if ops.iter().any(|op| op.action != Action::Read) {
            break Event::Ops(ops);
        }
    };
    let events = [writes(170), Event::Commit, writes(400), Event::Commit, writes(300), writes(9)];
    let whole = Arc::new(CrashStore::holding(&start));
    play(&whole, &memory.twin(), &Model::default(), &events);
    let mut dice = Dice::new(4);
    for operation in (0..=whole.operations()).step_by(every(12)) {
        let (memory, store) = (memory.twin(), Arc::new(CrashStore::holding(&start)));
        store.crash_after(operation);
        let possible = play(&store, &memory, &Model::default(), &events);
        store.crash();
        let left = Left { store: store.survivors(dice.next_u64()), memory, possible };
        look(&left, &format!("operation {operation}"));
    }
}
