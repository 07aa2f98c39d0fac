//! Damage costs what it hit: what is whole is read, what is not is lost by itself, no old version
//! ever shows, and the volume goes on, through restarts and crashes.

use super::model::{BLOCK, Event, Model, any_event};
use super::traces::writes;
use super::{MemoryKeeper, any_options, create, open};
use oblivio_engine::{Action, BlockId, BlockOp, Lost};
use oblivio_store::{
    Held, Layer, Log, MemoryStore, Objects, Patience, RecordStore, Result as StoreResult,
    RetryStore, Slots, StoreAnswer, StoreCall, StoreError, WriteAt,
};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{BlockSpace, DamagedPlace, EngineVolume, Error, Inspection};
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex};

/// Plays an event. Answers are right or lost, and what was lost is as before.
pub fn act(volume: &mut SequentialVolume, model: &mut Model, event: &Event, what: &str) {
    match event {
        Event::Ops(ops) => {
            let outcomes = volume.access_each(ops.clone()).expect("damage is no failure");
            let mut written = BTreeSet::new();
            for (op, outcome) in ops.iter().zip(outcomes) {
                let id = op.id.0;
                match (&op.action, outcome) {
                    (_, Err(Lost)) => assert!(!written.contains(&id), "{what}: {id} was written"),
                    (Action::Read, Ok(found)) => {
                        assert_eq!(found.as_ref(), model.blocks.get(&id), "{what}: block {id}");
                    }
                    (action, Ok(_)) => {
                        if matches!(action, Action::Write(_) | Action::Remove) {
                            written.insert(id);
                        }
                        model.apply(op);
                    }
                }
            }
        }
        Event::Root(root) => {
            volume.set_root(root);
            model.root.clone_from(root);
        }
        Event::Commit => volume.commit().expect("damage is no failure"),
        Event::Finish => volume.finish().expect("damage is no failure"),
    }
}

fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

/// Reads everything; gives the lost blocks. The rest is right.
pub fn lost(volume: &mut SequentialVolume, model: &Model, what: &str) -> BTreeSet<u64> {
    let ids = 0..volume.capacity_blocks();
    let found = volume.access_each(ids.clone().map(read).collect()).expect("damage is no failure");
    assert_eq!(volume.root(), model.root, "{what}");
    let mut lost = BTreeSet::new();
    for (id, found) in ids.zip(found) {
        match found {
            Err(Lost) => drop(lost.insert(id)),
            Ok(found) => assert_eq!(found.as_ref(), model.blocks.get(&id), "{what}: block {id}"),
        }
    }
    lost
}

/// An inspection names places, and exactly the lost blocks.
pub fn inspect(
    volume: &mut SequentialVolume,
    lost: &BTreeSet<u64>,
    what: &str,
) -> Vec<DamagedPlace> {
    let mut places = Vec::new();
    let all = &mut |_| ControlFlow::Continue(());
    let mut note = |place| places.push(place);
    let found = volume.inspect(Inspection::of_all(all, &mut note)).expect("reads");
    assert_eq!(found.lost.into_iter().flatten().collect::<BTreeSet<_>>(), *lost, "{what}");
    assert_eq!(found.damaged, places.len() as u64, "{what}");
    places
}

/// Changes bytes of a volume's disk or of its access times, in any way.
pub fn harm(store: &MemoryStore, dice: &mut Dice) {
    let object = if dice.below(8) == 0 { "times" } else { "disk" };
    let Some(len) = store.len(object).expect("memory").filter(|len| *len > 0) else { return };
    let bytes = [1, 64, 512, 4096][dice.below(4) as usize].min(len);
    let offset = dice.below(len - bytes + 1);
    match dice.below(8) {
        0 => store.truncate(object, (len - dice.below(len / 8 + 1)).max(1)).expect("memory"),
        1 | 2 => {
            let zeros = vec![0; bytes as usize];
            store.write(&[WriteAt::new(object, offset, &zeros)]).expect("memory");
        }
        3 | 4 => {
            let noise = dice.bytes(bytes as usize);
            store.write(&[WriteAt::new(object, offset, &noise)]).expect("memory");
        }
        _ => store.corrupt(object, offset, |byte| *byte ^= 1 << dice.below(8)).expect("a byte"),
    }
}

/// Writes all blocks.
pub fn write_anew(volume: &mut SequentialVolume, model: &mut Model, blocks: u64, byte: u8) {
    for id in (0..blocks).map(BlockId) {
        let write = BlockOp { id, action: Action::Write(vec![byte; BLOCK]) };
        act(volume, model, &Event::Ops(vec![write]), "written anew");
    }
}

#[test]
fn what_is_whole_is_read_and_no_old_version_shows() {
    let (first, rounds) = (seed(1), scaled(25));
    let (mut hit, mut left) = (0, 0);
    for round in first..first + rounds {
        let mut dice = Dice::new(round);
        let options = any_options(&mut dice);
        let (memory, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
        let mut volume = create(store.clone(), options, &memory).expect("a volume");
        let mut model = Model::default();
        for step in 0..5 {
            let what = format!("round {round}, step {step}");
            for _ in 0..dice.below(120) {
                let event = any_event(&mut dice, options.engine.blocks);
                act(&mut volume, &mut model, &event, &what);
            }
            // The end of a session, or a crash after a sync.
            let ends = dice.below(3);
            if ends == 0 { volume.commit() } else { volume.finish() }.expect("it works");
            (0..dice.below(4)).for_each(|_| harm(&store, &mut dice));
            if ends < 2 {
                drop(volume);
                volume = open(store.clone(), &memory).expect("it opens around damage");
            }
            let now = lost(&mut volume, &model, &what);
            let places = inspect(&mut volume, &now, &what);
            assert!(places.iter().all(|place| place.object == "disk"), "{what}: {places:?}");
            hit += now.len();
        }
        write_anew(&mut volume, &mut model, options.engine.blocks, round as u8);
        volume.finish().expect("it works");
        drop(volume);
        let mut volume = open(store, &memory).expect("it opens");
        left += lost(&mut volume, &model, "written anew").len();
    }
    println!("{rounds} volumes: {hit} blocks lost in all looks, {left} that were written anew");
    assert!(hit > 0);
    // A merge may have met damage on its way.
    assert!(left * 50 < hit, "{left} blocks are lost after a write");
}

/// Places and lengths of what is written follow from the number of writes alone.
#[test]
fn damage_changes_no_write() {
    for round in 0..scaled(15) {
        let mut dice = Dice::new(round ^ 0x77);
        let options = any_options(&mut dice);
        let (memory, start) = (MemoryKeeper::default(), MemoryStore::new());
        let start = Arc::new(start);
        let mut volume = create(start.clone(), options, &memory).expect("a volume");
        let any = |dice: &mut Dice| any_event(dice, options.engine.blocks);
        for _ in 0..80 {
            let event = any(&mut dice);
            act(&mut volume, &mut Model::default(), &without_reads(event), "before");
        }
        volume.finish().expect("it works");
        drop(volume);
        let events: Vec<Event> = (0..80).map(|_| without_reads(any(&mut dice))).collect();
        let mut traces = Vec::new();
        for harmed in [false, true] {
            let (memory, left) = (memory.twin(), start.snapshot());
            if harmed {
                (0..6).for_each(|_| harm(&left, &mut dice));
            }
            let store = Arc::new(RecordStore::new(left));
            let mut volume = open(store.clone(), &memory).expect("it opens");
            for event in &events {
                act(&mut volume, &mut Model::default(), event, "a twin");
            }
            volume.finish().expect("it works");
            traces.push(writes(store.take()));
        }
        assert_eq!(traces[0], traces[1], "round {round}");
    }
}

/// The same without answers to compare.
fn without_reads(event: Event) -> Event {
    match event {
        Event::Ops(ops) => {
            Event::Ops(ops.into_iter().filter(|op| op.action != Action::Read).collect())
        }
        event => event,
    }
}

/// Bytes of an object that cannot be read.
pub type Bad = Option<(&'static str, Range<u64>)>;

/// A disk on which some bytes of an object cannot be read.
pub struct Unreadable {
    disk: Arc<MemoryStore>,
    bad: Mutex<Bad>,
}

impl Unreadable {
    pub fn new(disk: MemoryStore, bad: Bad) -> Self {
        Self { disk: Arc::new(disk), bad: Mutex::new(bad) }
    }
}

impl Layer for Unreadable {
    type Below = MemoryStore;

    fn below(&self) -> &Self::Below {
        &self.disk
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> StoreResult<StoreAnswer> {
        if let (StoreCall::Read(reads), Some((object, bytes))) =
            (&mut *call, &*self.bad.lock().expect("one thread"))
        {
            for read in reads.iter() {
                let end = read.offset + read.buf.len() as u64;
                let any = *object == "*" || read.object == *object;
                if any && read.offset < bytes.end && bytes.start < end {
                    let eio = std::io::Error::from_raw_os_error(5);
                    return Err(StoreError::io(read.object, eio));
                }
            }
        }
        call.on(&*self.disk)
    }
}

fn filled(
    options: SequentialOptions,
    memory: &MemoryKeeper,
    clean: bool,
) -> (Arc<MemoryStore>, Model) {
    let (store, mut model) = (Arc::new(MemoryStore::new()), Model::default());
    let mut volume = create(store.clone(), options, memory).expect("a volume");
    let mut dice = Dice::new(5);
    for _ in 0..150 {
        let event = any_event(&mut dice, options.engine.blocks);
        act(&mut volume, &mut model, &event, "nothing is damaged");
    }
    if clean { volume.finish() } else { volume.commit() }.expect("it works");
    (store, model)
}

#[test]
fn what_cannot_be_read_is_lost_and_a_store_that_failed_is_no_damage() {
    let mut dice = Dice::new(3);
    let options = SequentialOptions { fill: false, ..any_options(&mut dice) };
    let memory = MemoryKeeper::default();
    let (disk, model) = filled(options, &memory, true);
    let len = disk.len("disk").expect("memory").expect("it is there");
    let mut lost_in_all = 0;
    for page in (0..len).step_by(4096) {
        let store = Arc::new(Unreadable::new(disk.snapshot(), None));
        let patience = Patience::default();
        let outlasts = RetryStore::new(store.clone(), patience.clone(), Box::new(|_| {}));
        let mut volume = open(Arc::new(outlasts), &memory.twin()).expect("it opens");
        *store.bad.lock().expect("one thread") = Some(("disk", page..page + 4096));
        let now = lost(&mut volume, &model, "a page");
        lost_in_all += now.len();
        inspect(&mut volume, &now, "a page");
        // An outage is no damage, and ends the handle, if nobody outlasts it.
        patience.end();
        *store.bad.lock().expect("one thread") = Some(("*", 0..u64::MAX));
        let ids = (0..volume.capacity_blocks()).map(read).collect();
        match volume.access_each(ids) {
            Ok(found) => assert!(found.iter().all(Result::is_ok) && now.is_empty(), "in memory"),
            Err(error) => assert!(matches!(error, Error::Store(_)), "{error}"),
        }
    }
    assert!(lost_in_all > 0);
}

/// What becomes of a sector.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Noise,
    Zeros,
    Unreadable,
    /// The object ends there, or is gone.
    Cut,
}

/// One damaged volume: it opens by itself, says so, and the next commit makes it whole, or a check.
fn heals(
    disk: &MemoryStore,
    (memory, model): (&MemoryKeeper, &Model),
    (bad, checks): (Bad, bool),
    what: &str,
) -> bool {
    let store = Arc::new(Unreadable::new(disk.snapshot(), bad));
    // Without the rule that such a read is not repeated, this would last for ever.
    let outlasts = || RetryStore::new(store.clone(), Patience::default(), Box::new(|_| {}));
    let mut volume =
        open(Arc::new(outlasts()), memory).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(lost(&mut volume, model, what).is_empty());
    let found = volume.damaged();
    // Written over, a sector can be read again.
    *store.bad.lock().expect("one thread") = None;
    if checks {
        assert_eq!(inspect(&mut volume, &BTreeSet::new(), what), [], "{what}: whole again");
    }
    let mut model = model.clone();
    let write = BlockOp { id: BlockId(0), action: Action::Write(vec![9; BLOCK]) };
    act(&mut volume, &mut model, &Event::Ops(vec![write]), what);
    volume.finish().expect("it works");
    assert_eq!(volume.damaged(), found, "{what}: it is said once");
    drop(volume);
    let mut volume = open(Arc::new(outlasts()), memory).expect("it opens");
    assert!(volume.damaged().is_empty(), "{what}");
    assert!(inspect(&mut volume, &BTreeSet::new(), what).is_empty(), "{what}");
    assert!(lost(&mut volume, &model, what).is_empty());
    !found.is_empty()
}

/// Whatever becomes of one sector of a state or of the log, or of one copy of a state: the volume
/// opens by itself, says so, and is whole again after the next commit.
#[test]
fn any_sector_of_what_is_small_may_be_damaged() {
    let (mut said, mut tried) = (BTreeSet::new(), 0);
    let mut dice = Dice::new(seed(11));
    for round in 0..scaled(3) {
        let options = any_options(&mut dice);
        let memory = MemoryKeeper::default();
        // The last one was left without a clean end.
        let (disk, model) = filled(options, &memory, round % 3 < 2);
        for object in ["state", "state-2", "log"] {
            let len = disk.len(object).expect("memory").expect("it is there");
            let step = if object == "log" { 1 + dice.below(len / 512 / 40 + 1) } else { 1 };
            for sector in (0..len).step_by(512 * step as usize) {
                let kind =
                    [Kind::Noise, Kind::Zeros, Kind::Unreadable, Kind::Cut][dice.below(4) as usize];
                if object == "log" && kind == Kind::Cut && len - sector > 4096 {
                    continue;
                }
                let harmed = disk.snapshot();
                match kind {
                    Kind::Noise => harmed.write(&[WriteAt::new(object, sector, &dice.bytes(512))]),
                    Kind::Zeros => harmed.write(&[WriteAt::new(object, sector, &[0; 512])]),
                    Kind::Unreadable => Ok(()),
                    Kind::Cut if sector == 0 => harmed.delete(&[object]),
                    Kind::Cut => harmed.truncate(object, sector),
                }
                .expect("memory");
                let bad = (kind == Kind::Unreadable).then_some((object, sector..sector + 512));
                let what = format!("round {round}, {kind:?} of {object} at {sector}");
                tried += 1;
                if heals(&harmed, (&memory.twin(), &model), (bad, dice.below(2) == 0), &what) {
                    said.insert(object);
                }
            }
        }
    }
    println!("{tried} damaged sectors");
    assert_eq!(said, BTreeSet::from(["log", "state", "state-2"]));
}

/// Both copies of the newest state are gone: that is damage, and no rollback. An older volume is a
/// rollback as before.
#[test]
fn damage_and_rollback_are_told_apart() {
    let mut dice = Dice::new(12);
    let options = any_options(&mut dice);
    let memory = MemoryKeeper::default();
    let (disk, _) = filled(options, &memory, true);
    let old = disk.snapshot();
    let mut volume = open(disk.clone(), &memory).expect("it opens");
    let write = BlockOp { id: BlockId(0), action: Action::Write(vec![9; BLOCK]) };
    act(&mut volume, &mut Model::default(), &Event::Ops(vec![write]), "once more");
    volume.finish().expect("it works");
    drop(volume);
    assert!(matches!(open(Arc::new(old), &memory.twin()).err(), Some(Error::RolledBack(_))));
    let len = disk.len("state").expect("memory").expect("it is there");
    let mut damaged = 0;
    for which in 0..2 {
        let store = disk.snapshot();
        for object in ["state", "state-2"] {
            store.corrupt(object, which * len / 2 + 99, |byte| *byte ^= 4).expect("a byte");
        }
        match open(Arc::new(store), &memory.twin()) {
            // The older one.
            Ok(volume) => assert!(volume.damaged().is_empty()),
            Err(error) => {
                assert!(matches!(error, Error::Tampered(_)), "{error}");
                damaged += 1;
            }
        }
    }
    assert_eq!(damaged, 1);
}
