//! A changed byte in an open lane: nothing wrong is read, what is lost is named in the lane only,
//! and the volume goes on with the same writes.

use super::lanes_open::{AT_ONCE, hidden, made, open, with_lane};
use super::model::{BLOCK, Event, Model, any_event, any_op, content};
use super::traces::{act, writes};
use super::{MemoryKeeper, passphrase};
use oblivio_engine::{Action, BlockId, BlockOp, BlockOutcome};
use oblivio_store::record::CallKind;
use oblivio_store::{Held, MemoryStore, ReadAt, RecordStore, Slots, WriteAt};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{BlockSpace, EngineVolume, LaneSync, OpenLane};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const OBJECTS: [&str; 4] = ["lane-1", "lane-1-log", "lane-1-state", "lane-1-times"];

type Block = Option<Vec<u8>>;

/// A volume that was left, and what was acknowledged in it and in its lane.
struct Left {
    store: MemoryStore,
    computer: MemoryKeeper,
    outer: Model,
    lane: Model,
    /// Whatever the lane's blocks and its root once were.
    once: BTreeSet<(u64, Block)>,
    roots: BTreeSet<Vec<u8>>,
    /// The bytes of each object of the lane that were ever written.
    written: BTreeMap<&'static str, BTreeMap<u64, u64>>,
}

/// The lane of a volume by its passphrase.
fn lane_of(volume: &mut SequentialVolume) -> (Box<dyn BlockSpace>, LaneSync) {
    let OpenLane { space, sync } = volume.lane(0, AT_ONCE).expect("its passphrase was given");
    (space, sync)
}

impl Left {
    /// Acts in the lane and in the volume until all of it is durable.
    fn session(&mut self, dice: &mut Dice, volume: &mut SequentialVolume, count: u64) {
        let (mut space, sync) = lane_of(volume);
        for _ in 0..count {
            for _ in 0..1 + dice.below(4) {
                let op = any_op(dice, space.capacity_blocks());
                self.lane.apply(&op);
                self.once.insert((op.id.0, self.lane.blocks.get(&op.id.0).cloned()));
                space.access_each(vec![op]).expect("it waits");
            }
            if dice.below(4) == 0 {
                let root: Vec<u8> = (0..dice.below(30)).map(|_| dice.next_u64() as u8).collect();
                space.set_root(&root);
                self.roots.insert(root.clone());
                self.lane.root = root;
            }
            self.outer_event(dice, volume);
        }
        space.commit().expect("it waits");
        while sync.wait(sync.accepted(), Duration::ZERO).is_err() {
            self.outer_event(dice, volume);
            volume.commit().expect("it works");
        }
    }

    fn outer_event(&mut self, dice: &mut Dice, volume: &mut SequentialVolume) {
        let event = any_event(dice, volume.capacity_blocks());
        act(volume, &event).expect("it works");
        self.outer.play(&event);
    }

    /// Sessions by either passphrase, some of which end without an end.
    fn of(dice: &mut Dice, options: SequentialOptions) -> Self {
        let (computer, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
        made(store.clone(), SequentialOptions { fill: false, ..options }, &computer);
        let store = Arc::new(RecordStore::new(store.snapshot()));
        let (outer, lane) = (Model::default(), Model::default());
        let (once, roots) = (BTreeSet::new(), BTreeSet::from([Vec::new()]));
        let (nothing, written) = (MemoryStore::new(), BTreeMap::new());
        let mut left = Self { store: nothing, computer, outer, lane, once, roots, written };
        for session in 0..5 {
            let alone = session == 3;
            let by = if alone { passphrase() } else { hidden() };
            let mut volume = open(&store, &by, &left.computer).expect("it opens");
            match alone {
                true => (0..3).for_each(|_| left.outer_event(dice, &mut volume)),
                false => {
                    let count = [2, 12][dice.index(2)];
                    left.session(dice, &mut volume, count);
                }
            }
            if alone || dice.below(2) == 0 {
                volume.finish().expect("it ends well");
            } else {
                volume.commit().expect("it is durable");
            }
        }
        for (kind, object, offset, bytes) in writes(store.take()) {
            if let Some(object) = OBJECTS.into_iter().find(|it| **it == *object)
                && kind == CallKind::Write
            {
                left.written.entry(object).or_default().insert(offset, bytes);
            }
        }
        left.store = store.inner().snapshot();
        left
    }

    /// The bytes of an object that were written, by their number.
    fn byte(&self, object: &str, number: u64) -> u64 {
        let (mut left, mut end) = (number, 0);
        for (offset, bytes) in &self.written[object] {
            let fresh = end.max(*offset)..end.max(offset + bytes);
            if left < fresh.end - fresh.start {
                return fresh.start + left;
            }
            (left, end) = (left - (fresh.end - fresh.start), fresh.end);
        }
        panic!("byte {number} of {object}")
    }

    fn bytes(&self, object: &str) -> u64 {
        let (mut count, mut end) = (0, 0);
        for (offset, bytes) in self.written.get(object).into_iter().flatten() {
            let fresh = end.max(*offset)..end.max(offset + bytes);
            (count, end) = (count + fresh.end - fresh.start, fresh.end);
        }
        count
    }
}

/// What was seen of a volume that somebody opened and went on with.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    calls: Vec<(CallKind, Arc<str>, u64, u64)>,
    /// What the volume had, before and after.
    outer: [Model; 2],
    /// Objects that were named as damaged, before and after.
    named: [BTreeSet<String>; 2],
    /// Blocks of the lane and its root, before and after.
    lane: [(Vec<BlockOutcome>, Vec<u8>); 2],
    /// Whether what was written into the lane meanwhile became durable.
    carried: bool,
}

impl Seen {
    /// Another one looks the same to all who do not see into the lane. What it names is of the
    /// lane, and is whole after the next state.
    fn expect_same_outside(&self, other: &Self, what: &str) {
        assert_eq!(self.outer, other.outer, "{what}");
        for (at, (one, two)) in self.calls.iter().zip(&other.calls).enumerate() {
            assert_eq!(one, two, "{what}, call {at}");
        }
        assert_eq!(self.calls.len(), other.calls.len(), "{what}");
        assert!(other.named[0].iter().all(|it| it.starts_with("lane-1")), "{what}");
        assert!(other.named[1].is_empty(), "{what}: the next state makes it whole");
    }
}

/// Reads a volume and its lane.
fn read(volume: &mut SequentialVolume) -> (Model, BTreeSet<String>, (Vec<BlockOutcome>, Vec<u8>)) {
    let outer = content(volume).expect("the volume is whole");
    let (mut space, _) = lane_of(volume);
    let reads = (0..space.capacity_blocks()).map(BlockId);
    let reads = reads.map(|id| BlockOp { id, action: Action::Read }).collect();
    let blocks = space.access_each(reads).expect("the lane goes on");
    let root = space.root().to_vec();
    let named = volume.damaged().into_iter().map(|place| place.object);
    (outer, named.collect(), (blocks, root))
}

/// What the next sessions do: acts of the volume, and blocks that are written into the lane.
struct Next {
    events: Vec<Event>,
    written: BTreeMap<u64, Vec<u8>>,
}

impl Next {
    fn any(dice: &mut Dice, outer: u64, lane: u64) -> Self {
        let events = (0..8).map(|_| any_event(dice, outer)).collect();
        let written = (0..3).map(|_| {
            let content = (0..BLOCK).map(|_| dice.next_u64() as u8).collect();
            (dice.below(lane), content)
        });
        Self { events, written: written.collect() }
    }

    /// Opens, reads, writes into both, ends, opens and reads.
    fn play(&self, store: MemoryStore, computer: &MemoryKeeper) -> Seen {
        let (store, computer) = (Arc::new(RecordStore::new(store)), computer.twin());
        let mut volume = open(&store, &hidden(), &computer).expect("it opens");
        let before = read(&mut volume);
        let (mut space, sync) = lane_of(&mut volume);
        let write = |(id, content): (&u64, &Vec<u8>)| BlockOp {
            id: BlockId(*id),
            action: Action::Write(content.clone()),
        };
        space.access_each(self.written.iter().map(write).collect()).expect("they wait");
        for event in &self.events {
            act(&mut volume, event).expect("it works");
        }
        volume.finish().expect("it ends well");
        let carried = sync.wait(sync.accepted(), Duration::ZERO).is_ok();
        drop((space, volume));
        let calls = writes(store.take());
        let mut volume = open(&store, &hidden(), &computer).expect("it opens again");
        let after = read(&mut volume);
        let named = [before.1, after.1];
        Seen { calls, outer: [before.0, after.0], named, lane: [before.2, after.2], carried }
    }
}

impl Left {
    /// Whether what was read of the lane is right. Of what is lost something older may be there
    /// only if the loss was named. Gives how many blocks are lost.
    fn judge(&self, seen: &Seen, next: &Next, what: &str) -> u64 {
        let is_named = seen.named[0].contains("lane-1-log");
        let mut lost = 0;
        for (time, (blocks, root)) in seen.lane.iter().enumerate() {
            assert!(*root == self.lane.root || is_named && self.roots.contains(root), "{what}");
            for (id, outcome) in (0..).zip(blocks) {
                let Ok(found) = outcome else {
                    lost += 1;
                    continue;
                };
                let acknowledged = match next.written.get(&id).filter(|_| time == 1) {
                    Some(new) if seen.carried || found.as_ref() == Some(new) => Some(new),
                    _ => self.lane.blocks.get(&id),
                };
                let is_old = || found.is_none() || self.once.contains(&(id, found.clone()));
                let is_right = found.as_ref() == acknowledged;
                assert!(is_right || is_named && is_old(), "{what}, time {time}: block {id}");
                lost += u64::from(!is_right);
            }
        }
        lost
    }
}

fn flip(store: &MemoryStore, (object, at): (&str, u64), bits: u8) {
    let mut byte = [0];
    store.read(&mut [ReadAt { object, offset: at, buf: &mut byte }]).expect("memory");
    byte[0] ^= bits;
    store.write(&[WriteAt::new(object, at, &byte)]).expect("memory");
}

/// `count` numbers below `all`, all of them if there are no more.
fn some(dice: &mut Dice, count: u64, all: u64) -> impl Iterator<Item = u64> + use<> {
    let gcd = |mut one: u64, mut two: u64| {
        while two > 0 {
            (one, two) = (two, one % two);
        }
        one
    };
    let begin = dice.below(all.max(1));
    let step = (all * 5 / 8..).find(|step| gcd(*step, all) <= 1).expect("there is a prime");
    (0..count.min(all)).map(move |at| (begin + at * step) % all)
}

/// Flips bytes of each object of a lane. Gives how many, how many losses were named, and how many
/// blocks read as lost.
fn campaign(seed: u64, each: u64) -> [u64; 3] {
    let mut dice = Dice::new(seed);
    let options = with_lane(&mut dice);
    let left = Left::of(&mut dice, options);
    let next = Next::any(&mut dice, options.engine.blocks, options.engine.blocks / 3);
    let whole = next.play(left.store.snapshot(), &left.computer);
    assert_eq!(left.judge(&whole, &next, &format!("seed {seed}")), 0, "seed {seed}");
    assert_eq!(whole.outer[0], left.outer, "seed {seed}");
    let (mut flips, mut named, mut lost) = (0, 0, 0);
    let all: u64 = OBJECTS.map(|object| left.bytes(object)).iter().sum();
    for object in OBJECTS {
        for number in some(&mut dice, each, left.bytes(object)) {
            let at = left.byte(object, number);
            let what = format!("seed {seed}, byte {at} of {object}");
            let store = left.store.snapshot();
            flip(&store, (object, at), 1 << dice.below(8));
            let seen = next.play(store, &left.computer);
            whole.expect_same_outside(&seen, &what);
            let gone = left.judge(&seen, &next, &what);
            // A state has older ones and a log, and access times can be made again.
            let has_copy = object == "lane-1-state" || object == "lane-1-times";
            assert!(gone == 0 || !has_copy, "{what}: {gone} lost");
            named += u64::from(seen.named[0].contains("lane-1-log"));
            (flips, lost) = (flips + 1, lost + gone);
        }
    }
    println!(
        "seed {seed}: {flips} of {all} bytes flipped, {named} losses named, {lost} blocks lost"
    );
    [flips, named, lost]
}

#[test]
fn a_changed_byte_of_an_open_lane_is_named_in_it_and_changes_no_write() {
    let (mut all, each) = ([0; 3], scaled(7));
    for seed in (seed(1)..).take(6) {
        let found = campaign(seed, each);
        all = [0, 1, 2].map(|at| all[at] + found[at]);
    }
    let [flips, named, lost] = all;
    println!("{flips} bytes flipped, {named} losses named, {lost} blocks read as lost");
    assert!(named > 0 && lost > 0, "nothing was lost");
}
