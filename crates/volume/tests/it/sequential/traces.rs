//! Two workloads of equal length have the same trace of writes, place by place, crashes and
//! recoveries included.

use super::model::{Event, any_op};
use super::{MemoryKeeper, any_options, create, open};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::{CallKind, StoreEvent as Recorded};
use oblivio_store::{MemoryStore, RecordStore, Store};
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::{BlockSpace, Result};
use std::sync::Arc;

/// The public part of a workload: a number of writes, a new root, a sync, an end.
#[derive(Clone, Copy, Debug)]
enum Step {
    Writes(u64),
    Root,
    Sync,
    Finish,
}

/// One change of the stored content: the operation, the object, the offset, the length.
pub type Seen = (CallKind, Arc<str>, u64, u64);

fn any_steps(dice: &mut Dice) -> Vec<Step> {
    let step = |dice: &mut Dice| match dice.below(7) {
        0 => Step::Sync,
        2 => Step::Root,
        1 if dice.below(5) == 0 => Step::Finish,
        _ => Step::Writes(1 + dice.below(20)),
    };
    if dice.below(3) == 0 {
        // Enough syncs that turns are padded to their end.
        return (0..40).flat_map(|_| [Step::Writes(1), Step::Sync]).collect();
    }
    (0..12).map(|_| step(dice)).collect()
}

/// One of the workloads of that length: sequential, random, the same block again and again,
/// discards only, or anything, with reads in between.
fn workload(steps: &[Step], dice: &mut Dice, blocks: u64) -> Vec<Event> {
    let (kind, mut next) = (dice.below(5), dice.below(blocks));
    let mut write = |dice: &mut Dice| {
        next = (next + 1) % blocks;
        let content = vec![dice.next_u64() as u8; 64];
        let op = |id, action| BlockOp { id: BlockId(id), action };
        match kind {
            0 => op(next, Action::Write(content)),
            1 => op(7 % blocks, Action::Write(content)),
            2 => op(dice.below(blocks), Action::Remove),
            3 => op(dice.below(blocks), Action::Write(content)),
            _ => loop {
                let any = any_op(dice, blocks);
                if any.action != Action::Read {
                    break any;
                }
            },
        }
    };
    let mut events = Vec::new();
    for step in steps {
        match step {
            Step::Writes(count) => {
                let mut ops = Vec::new();
                for _ in 0..*count {
                    if dice.below(3) == 0 {
                        let id = BlockId(dice.below(blocks));
                        ops.push(BlockOp { id, action: Action::Read });
                    }
                    ops.push(write(dice));
                }
                events.push(Event::Ops(ops));
            }
            Step::Root => {
                let root = (0..8 + dice.below(900)).map(|_| dice.next_u64() as u8).collect();
                events.push(Event::Root(root));
            }
            Step::Sync => events.push(Event::Commit),
            Step::Finish => events.push(Event::Finish),
        }
    }
    events
}

pub fn act(volume: &mut dyn BlockSpace, event: &Event) -> Result<()> {
    match event {
        Event::Ops(ops) => volume.access(ops.clone()).map(drop),
        Event::Root(root) => {
            volume.set_root(root);
            Ok(())
        }
        Event::Commit => volume.commit(),
        Event::Finish => volume.finish(),
    }
}

/// What an observer with every snapshot may know: all writes and syncs, in order.
pub fn writes(events: Vec<Recorded>) -> Vec<Seen> {
    let written =
        |event: &Recorded| !matches!(event.op, CallKind::Read | CallKind::List | CallKind::Len);
    let seen = |event: Recorded| (event.op, event.object, event.offset, event.len);
    events.into_iter().filter(written).map(seen).collect()
}

/// Plays a workload. The power fails once for each of `cuts`, after that many operations of the
/// store, in a recovery too. The crashed store is opened, and the workload goes on.
fn trace(
    start: &MemoryStore,
    memory: &MemoryKeeper,
    events: &[Event],
    cuts: &[(u64, u64)],
) -> Result<Vec<Seen>> {
    let (memory, mut rest, mut seen) = (memory.twin(), events, Vec::new());
    let mut left = start.snapshot();
    for &(cut, chance) in cuts {
        let disk = CrashStore::holding(&left);
        disk.crash_after(cut);
        let store = Arc::new(RecordStore::new(disk));
        // The power fails in it, unless less is left to do.
        drop(session(&store, &memory, &mut rest));
        store.inner().crash();
        seen.extend(writes(store.take()));
        left = store.inner().survivors(chance);
    }
    let store = Arc::new(RecordStore::new(left));
    session(&store, &memory, &mut rest)?;
    seen.extend(writes(store.take()));
    Ok(seen)
}

/// Opens a volume and plays the rest of a workload.
fn session<S: Store + 'static>(
    store: &Arc<RecordStore<S>>,
    memory: &MemoryKeeper,
    rest: &mut &[Event],
) -> Result<()> {
    let mut volume = open(store.clone(), memory)?;
    while let [event, later @ ..] = *rest {
        act(&mut volume, event)?;
        *rest = later;
    }
    Ok(())
}

#[test]
fn equal_lengths_leave_equal_traces() {
    let (first, pairs) = (seed(0x1_0000_0001), scaled(50));
    let (mut events_seen, mut crashed) = (0, 0);
    for pair in first..first + pairs {
        let mut dice = Dice::new(pair);
        let options = any_options(&mut dice);
        let (memory, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
        create(store.clone(), options, &memory).expect("a volume");
        let steps = any_steps(&mut dice);
        let blocks = options.engine.blocks;
        let events = [0, 1].map(|_| workload(&steps, &mut dice, blocks));
        let cuts: Vec<_> = (0..dice.below(4)).map(|_| (dice.below(60), dice.next_u64())).collect();
        let [one, other] = events
            .each_ref()
            .map(|events| trace(&store, &memory, events, &cuts).expect("it works after crashes"));
        assert!(!one.is_empty(), "something is written in any case");
        for (at, (one, other)) in one.iter().zip(&other).enumerate() {
            assert_eq!(one, other, "pair {pair}, write {at}, {steps:?}");
        }
        assert_eq!(one.len(), other.len(), "pair {pair}, {steps:?}");
        events_seen += one.len();
        crashed += u64::from(!cuts.is_empty());
    }
    println!("{pairs} pairs, {crashed} with crashes, {events_seen} writes: equal");
}

/// The test above can fail: without the padding of quanta a sync would show how much it makes
/// durable.
#[test]
fn another_length_leaves_another_trace() {
    let mut dice = Dice::new(9);
    let options = any_options(&mut dice);
    let (memory, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
    create(store.clone(), options, &memory).expect("a volume");
    let trace_of = |count, dice: &mut Dice| {
        let events = workload(&[Step::Writes(count), Step::Sync], dice, options.engine.blocks);
        trace(&store, &memory, &events, &[]).expect("it works")
    };
    assert_ne!(trace_of(100, &mut dice), trace_of(140, &mut dice));
    let len = |store: &dyn Store| store.list().map(|objects| objects.len());
    assert!(len(&*store).is_ok_and(|objects| objects >= 4));
}
