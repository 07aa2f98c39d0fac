//! A store on write-once objects loses nothing that it promised, wherever it dies.
use oblivio_store::{
    Blobs, Held, Lease, LeaseKind, Log, MemoryStore, ObjectsOf, OnObjects, PutMode, ReadAt, Result,
    Slots, Store, StoreError, WriteAt,
};
use oblivio_testkit::fault::{Fault, FaultPlan, Repeat, When};
use oblivio_testkit::{Dice, FaultStore};
use std::collections::BTreeMap;
use std::sync::Arc;

const NAMES: [&str; 3] = ["log", "slab", "head"];
const CHUNK: u64 = 16;

type Objects = Arc<ObjectsOf<FaultStore<MemoryStore>>>;
type Content = Option<Vec<u8>>;

fn objects(plan: &FaultPlan) -> Objects {
    Arc::new(ObjectsOf::over(FaultStore::new(MemoryStore::new(), plan.clone())))
}

fn open(objects: &Objects) -> OnObjects<Objects> {
    OnObjects::with_chunks(Arc::clone(objects), CHUNK).unwrap()
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Sync,
    Durable(u64, Vec<u8>),
    Put(Vec<u8>),
    Truncate(u64),
    Delete,
}

fn change(dice: &mut Dice) -> Change {
    let mut data = || {
        let len = dice.index(40);
        (dice.below(60), dice.bytes(len))
    };
    let (at, bytes) = data();
    match dice.below(8) {
        0..3 => Change::Write(at, bytes),
        3 => Change::Sync,
        4 => Change::Durable(at, bytes),
        5 => Change::Put(bytes),
        6 => Change::Truncate(at),
        _ => Change::Delete,
    }
}

fn make(store: &dyn Store, name: &str, change: &Change) -> Result<()> {
    match change {
        Change::Write(at, data) => store.write(&[WriteAt::new(name, *at, data)]),
        Change::Sync => store.sync(&[name]),
        Change::Durable(at, data) => store.write_durable(name, *at, data),
        Change::Put(data) => store.put(name, data, PutMode::Replace),
        Change::Truncate(len) => store.truncate(name, *len),
        Change::Delete => store.delete(&[name]),
    }
}

/// What a change makes of an object.
fn applied(content: &Content, change: &Change) -> Content {
    match change {
        Change::Write(at, data) | Change::Durable(at, data) => {
            let mut bytes = content.clone().unwrap_or_default();
            let (at, end) = (*at as usize, *at as usize + data.len());
            if !data.is_empty() {
                bytes.resize(bytes.len().max(end), 0);
                bytes[at..end].copy_from_slice(data);
            }
            Some(bytes)
        }
        Change::Sync => content.clone(),
        Change::Put(data) => Some(data.clone()),
        Change::Truncate(len) => {
            let mut bytes = content.clone().unwrap_or_default();
            bytes.resize(*len as usize, 0);
            Some(bytes)
        }
        Change::Delete => None,
    }
}

/// The contents of each object since it was last durable, the newest last, and whether they come of
/// writes, which a crash may tear.
#[derive(Default)]
struct Since(BTreeMap<&'static str, (Vec<Content>, bool)>);

impl Since {
    fn of(&mut self, name: &'static str) -> &mut (Vec<Content>, bool) {
        self.0.entry(name).or_insert_with(|| (vec![None], false))
    }

    fn now(&mut self, name: &'static str) -> Content {
        self.of(name).0.last().cloned().flatten()
    }

    fn made(&mut self, name: &'static str, change: &Change, done: bool) {
        let new = applied(&self.now(name), change);
        let (contents, torn) = self.of(name);
        *torn |= matches!(change, Change::Write(..) | Change::Durable(..));
        match change {
            Change::Truncate(_) if done => {
                contents.iter_mut().for_each(|old| *old = applied(old, change));
            }
            Change::Write(..) => contents.push(new),
            _ if done => (*contents, *torn) = (vec![new], false),
            _ => contents.push(new),
        }
    }

    /// Whether every byte is one that a crash may leave.
    fn allows(&mut self, name: &'static str, found: &Content) {
        let (contents, torn) = self.of(name).clone();
        let Some(found) = found else {
            return assert!(contents.contains(&None), "{name} is gone");
        };
        let longest = contents.iter().flatten().map(Vec::len).max();
        assert!(longest.is_some_and(|longest| found.len() <= longest), "{name} is too long");
        let shortest = contents.iter().flatten().map(Vec::len).min();
        assert!(shortest.is_some_and(|shortest| found.len() >= shortest), "{name} is too short");
        for (at, byte) in found.iter().enumerate() {
            let mut may = contents.iter().map(|it| it.as_ref().and_then(|it| it.get(at)));
            assert!(may.any(|it| it.copied().unwrap_or(0) == *byte), "{name}, byte {at}");
        }
        if !torn {
            assert!(contents.iter().any(|it| it.as_ref() == Some(found)), "{name} is torn");
        }
    }
}

fn content(store: &dyn Store, name: &str) -> Content {
    let mut bytes = vec![0; store.len(name).unwrap()? as usize];
    store.read(&mut [ReadAt { object: name, offset: 0, buf: &mut bytes }]).unwrap();
    Some(bytes)
}

fn changes(seed: u64) -> Vec<(&'static str, Change)> {
    let mut dice = Dice::new(seed);
    (0..25).map(|_| (NAMES[dice.index(3)], change(&mut dice))).collect()
}

/// Makes the changes until one fails; gives what may be left.
fn run(objects: &Objects, seed: u64) -> Since {
    let mut since = Since::default();
    let Ok(store) = OnObjects::with_chunks(Arc::clone(objects), CHUNK) else { return since };
    if store.lock().is_err() {
        return since;
    }
    for (name, change) in changes(seed) {
        let absent = since.now(name).is_none();
        match make(&store, name, &change) {
            Err(StoreError::Missing { .. }) if absent => {}
            done => since.made(name, &change, done.is_ok()),
        }
        // A sync that failed changed nothing, and what was written before may be durable or not.
        if objects.store().plan().fired() > 0 {
            break;
        }
    }
    since
}

#[test]
fn what_was_promised_survives_a_crash_at_every_operation() {
    for seed in 0..40 {
        let plan = FaultPlan::new();
        run(&objects(&plan), seed);
        for at in 0..plan.operations() {
            for when in [When::Before, When::After] {
                let plan = FaultPlan::new();
                let objects = objects(&plan);
                plan.fail_at(at, Fault { when, repeat: Repeat::FromThenOn, ..Fault::once() });
                let mut since = run(&objects, seed);
                plan.clear();
                let before = NAMES.map(|name| content(&open(&objects), name));
                for (name, found) in NAMES.iter().zip(&before) {
                    since.allows(name, found);
                }
                // What the next writer cleans up was void, and then it is gone for good.
                OnObjects::break_lease(&objects).unwrap();
                let next = open(&objects);
                next.lock().unwrap();
                assert_eq!(NAMES.map(|name| content(&next, name)), before, "seed {seed}, {at}");
                next.write_durable("slab", 7, b"on").unwrap();
                drop(next);
                let after = applied(&before[1], &Change::Durable(7, b"on".to_vec()));
                assert_eq!(content(&open(&objects), "slab"), after, "seed {seed}, {at}");
                assert_eq!(content(&open(&objects), "log"), before[0], "seed {seed}, {at}");
            }
        }
    }
}

#[test]
fn an_answer_that_was_lost_does_no_harm() {
    for seed in 0..40 {
        let plan = FaultPlan::new();
        run(&objects(&plan), seed);
        // The lease is the second operation. A lost answer to it needs somebody to break it.
        for at in 2..plan.operations() {
            for when in [When::Before, When::After] {
                let (plan, mut model) = (FaultPlan::new(), BTreeMap::new());
                let objects = objects(&plan);
                plan.fail_at(at, Fault { when, ..Fault::once() });
                let store = open(&objects);
                if store.lock().is_err() {
                    store.lock().unwrap();
                }
                for (name, change) in changes(seed) {
                    let first = make(&store, name, &change);
                    let done = if plan.fired() > 0 && first.is_err() {
                        make(&store, name, &change)
                    } else {
                        first
                    };
                    if !matches!(done, Err(StoreError::Missing { .. })) {
                        done.unwrap();
                        let old: Content = model.remove(name).flatten();
                        model.insert(name, applied(&old, &change));
                    }
                }
                let all = store.list().unwrap();
                let all: Vec<&str> = all.iter().map(|(name, _)| &**name).collect();
                if store.sync(&all).is_err() {
                    store.sync(&all).unwrap();
                }
                drop(store);
                plan.clear();
                for name in NAMES {
                    let found = content(&open(&objects), name);
                    assert_eq!(found, model.remove(name).flatten(), "seed {seed}, {at}: {name}");
                }
            }
        }
    }
}

#[test]
fn nothing_void_stays_and_the_lease_ends_with_its_holder() {
    let objects = objects(&FaultPlan::new());
    let store = open(&objects);
    assert_eq!(store.capabilities().lease, LeaseKind::Stored);
    store.lock().unwrap();
    assert!(matches!(open(&objects).lock(), Err(StoreError::Busy)));
    for _ in 0..3 {
        store.write_durable("slab", 3, &[7; 40]).unwrap();
        store.put("head", &[1; 50], PutMode::Replace).unwrap();
    }
    let held = objects.store().inner().list().unwrap();
    let names: Vec<&str> = held.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names.len(), 5, "three chunks, a head and the lease: {names:?}");
    store.delete(&["slab", "head"]).unwrap();
    drop(store);
    assert_eq!(objects.store().inner().list().unwrap(), []);
    open(&objects).lock().unwrap();
}

/// Changes that are one part each.
fn atomic(seed: u64) -> Vec<(&'static str, Change)> {
    let mut dice = Dice::new(seed);
    let mut one = || {
        let name = NAMES[dice.index(2)];
        let len = dice.index(40);
        let change = match dice.below(5) {
            0 => Change::Truncate(dice.below(40)),
            1 => Change::Delete,
            2 => Change::Put(dice.bytes(len)),
            _ => Change::Durable(dice.below(8), dice.bytes(8)),
        };
        (name, change)
    };
    (0..12).map(|_| one()).collect()
}

/// One change fails though it took effect, the writer goes on without it, and then it dies.
fn goes_on_and_dies(seed: u64, at: u64, then: u64) -> u64 {
    let plan = FaultPlan::new();
    let objects = objects(&plan);
    let store = open(&objects);
    store.lock().unwrap();
    plan.fail_at(at, Fault { when: When::After, ..Fault::once() });
    let (mut view, mut may) = (BTreeMap::new(), BTreeMap::new());
    for (name, change) in atomic(seed) {
        let may = may.entry(name).or_insert_with(|| vec![None]);
        let fired = plan.fired();
        let old = view.get(name).cloned().flatten();
        match make(&store, name, &change) {
            Ok(()) => {
                // A write that failed is still in memory. A truncation leaves it there.
                match change {
                    Change::Truncate(_) => may.iter_mut().for_each(|it| *it = applied(it, &change)),
                    _ => *may = vec![applied(&old, &change)],
                }
                view.insert(name, applied(&old, &change));
            }
            Err(StoreError::Missing { .. }) => {}
            Err(_) => may.push(applied(&old, &change)),
        }
        match (fired, plan.fired()) {
            (0, 1..) => {
                plan.clear();
                view.insert(name, content(&store, name));
                may.push(view[name].clone());
                plan.fail_in(then, Fault { repeat: Repeat::FromThenOn, ..Fault::once() });
            }
            (1.., now) if now > fired => break,
            _ => {}
        }
    }
    let operations = plan.operations();
    plan.clear();
    for (name, may) in may {
        let found = content(&open(&objects), name);
        assert!(may.contains(&found), "seed {seed}, {at}, {then}: {name}");
    }
    operations
}

#[test]
fn what_failed_and_was_given_up_does_not_mix_with_what_follows() {
    for seed in 0..150 {
        for at in 2..goes_on_and_dies(seed, u64::MAX, 0) {
            for then in 0..5 {
                goes_on_and_dies(seed, at, then);
            }
        }
    }
}

/// A store that lists impossible versions gets errors, not a writer that starts again at zero.
#[test]
fn a_version_after_the_last_one_is_refused() {
    for version in ["ffffffffffff", "ffffffffffffffff"] {
        let objects = objects(&FaultPlan::new());
        oblivio_store::ports::Objects::put_new(&objects, &format!("log.{version}.w"), b"made up")
            .unwrap();
        let store = open(&objects);
        assert!(matches!(store.write_durable("log", 0, b"new"), Err(StoreError::Io { .. })));
        assert!(store.put("head", b"new", PutMode::Replace).is_err());
    }
}
