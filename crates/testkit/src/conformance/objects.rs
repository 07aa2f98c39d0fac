//! The suite of [`Objects`], for a store that has no other port.

use super::Connector;
use super::model::{BAD_NAMES, is_exists, is_invalid, is_missing, is_short, refuses};
use crate::Dice;
use oblivio_store::{Objects, PutMode, ReadAt, StoreError};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Barrier;

/// Calls in a run. A store may be far away.
const CALLS: usize = 10;
/// Threads in a race, each with a connection of its own.
const RACERS: usize = 8;
const RACES: usize = 4;

/// What a store of whole objects must do. Each connector from `fresh` has an empty place, and each
/// store that it opens is one more connection to it.
pub fn objects(fresh: &dyn Fn() -> Connector, seeds: Range<u64>) {
    objects_without_races(fresh, seeds);
    creates_once(&*fresh());
}

/// The same without the race to create an object: a server that asks first and stores then has two
/// winners once in a while.
pub fn objects_without_races(fresh: &dyn Fn() -> Connector, seeds: Range<u64>) {
    for seed in seeds {
        let (open, mut run) = (fresh(), Run::new(seed));
        let store = open();
        assert!(!store.capabilities().writes_over, "another suite is for this store");
        for _ in 0..CALLS {
            run.step(&*store);
        }
        run.compare(&*store);
        drop(store);
        run.compare(&*open());
    }
    let open = fresh();
    refusals(&*open());
    ranges(&*open());
    begun_side_by_side(&*open);
}

/// A store beside a map of what it must hold.
struct Run {
    seed: u64,
    dice: Dice,
    held: BTreeMap<String, Vec<u8>>,
    /// Names are written once, so they are counted.
    next: u32,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self { seed, dice: Dice::new(seed), held: BTreeMap::new(), next: 0 }
    }

    fn step(&mut self, store: &dyn Objects) {
        match self.dice.below(8) {
            0..3 => self.begin(store),
            3..5 => self.put(store),
            5 => self.delete(store),
            _ => self.read(store),
        }
    }

    fn new_name(&mut self) -> String {
        self.next += 1;
        format!("{}-{}", ["b", "e", "e-f"][self.dice.index(3)], self.next)
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len =
            if self.dice.percent(80) { self.dice.index(200) } else { self.dice.index(70_000) };
        self.dice.bytes(len)
    }

    /// A name that is there, or one that never was.
    fn any_name(&mut self) -> String {
        let index = self.dice.index(self.held.len() + 1);
        self.held.keys().nth(index).cloned().unwrap_or_else(|| "never-there".to_owned())
    }

    fn begin(&mut self, store: &dyn Objects) {
        let count = self.dice.below(4);
        let new: Vec<_> = (0..count).map(|_| (self.new_name(), self.bytes())).collect();
        let begun: Vec<_> =
            new.iter().map(|(name, data)| (name.as_str(), data.as_slice())).collect();
        store.begin(&begun).expect("a new name");
        if self.dice.percent(50) {
            // The same bytes again are no new object.
            store.begin(&begun).expect("the same bytes");
        }
        let names: Vec<_> = new.iter().map(|(name, _)| name.as_str()).collect();
        store.settle(&names).expect("room");
        self.held.extend(new);
    }

    fn put(&mut self, store: &dyn Objects) {
        let (new, data) = (self.dice.percent(50), self.bytes());
        let name = if new { self.new_name() } else { self.any_name() };
        let mode = [PutMode::Replace, PutMode::IfAbsent][self.dice.index(2)];
        let result = store.put(&name, &data, mode);
        if mode == PutMode::IfAbsent && self.held.contains_key(&name) {
            assert!(is_exists(&result), "seed {}: {name} {result:?}", self.seed);
        } else {
            result.expect("room");
            self.held.insert(name, data);
        }
    }

    fn delete(&mut self, store: &dyn Objects) {
        let names: Vec<_> = (0..self.dice.below(4)).map(|_| self.any_name()).collect();
        let list: Vec<_> = names.iter().map(String::as_str).collect();
        store.delete(&list).expect("a missing one is no error");
        self.held.retain(|name, _| !names.contains(name));
    }

    fn read(&mut self, store: &dyn Objects) {
        let ranges: Vec<_> = (0..self.dice.below(6))
            .map(|_| (self.any_name(), self.dice.below(150), self.dice.index(60)))
            .collect();
        let mut buffers: Vec<_> = ranges.iter().map(|range| vec![0xee; range.2]).collect();
        let reads = ranges.iter().zip(&mut buffers);
        let mut reads: Vec<_> = reads
            .map(|((object, offset, _), buf)| ReadAt { object, offset: *offset, buf })
            .collect();
        let result = store.read(&mut reads);
        let part = |(name, offset, len): &(String, u64, usize)| {
            let held = self.held.get(name)?;
            Some(held.get(*offset as usize..*offset as usize + len))
        };
        let parts: Vec<_> = ranges.iter().map(part).collect();
        match parts.iter().find(|part| !matches!(part, Some(Some(_)))) {
            Some(None) => assert!(is_missing(&result), "seed {}: {result:?}", self.seed),
            Some(_) => assert!(is_short(&result), "seed {}: {result:?}", self.seed),
            None => {
                result.expect("all are there");
                let parts: Vec<_> = parts.into_iter().flatten().flatten().collect();
                assert!(buffers == parts, "seed {}: {ranges:?}", self.seed);
            }
        }
    }

    fn compare(&self, store: &dyn Objects) {
        let seed = self.seed;
        for prefix in ["", "e", "e-", "e-f", "none"] {
            let held = self.held.iter().filter(|(name, _)| name.starts_with(prefix));
            let held: Vec<_> = held.map(|(name, data)| (name.clone(), data.len() as u64)).collect();
            let found = match prefix {
                "" => store.list(),
                prefix => store.list_under(prefix),
            };
            assert_eq!(found.expect("a list"), held, "seed {seed}: {prefix:?}");
        }
        let names: Vec<_> =
            self.held.keys().map(String::as_str).chain(["never-there", "e"]).collect();
        let lens: Vec<_> =
            names.iter().map(|&name| self.held.get(name).map(|data| data.len() as u64)).collect();
        assert_eq!(store.lens(&names).expect("lengths"), lens, "seed {seed}");
        let mut buffers: Vec<_> = self.held.values().map(|data| vec![0xee; data.len()]).collect();
        let reads = self.held.keys().zip(&mut buffers);
        let mut reads: Vec<_> =
            reads.map(|(object, buf)| ReadAt { object, offset: 0, buf }).collect();
        store.read(&mut reads).expect("all are there");
        assert!(buffers.iter().eq(self.held.values()), "seed {seed}");
    }
}

/// Bad names are refused, and change nothing. What is not there is no error of those who wait for
/// it, or delete it.
fn refusals(store: &dyn Objects) {
    refuses(store);
    for name in BAD_NAMES {
        assert!(is_invalid(&store.begin(&[("other", b"x"), (name, b"x")])), "{name}");
        assert!(is_invalid(&store.put(name, b"x", PutMode::Replace)), "{name}");
        assert!(is_invalid(&store.delete(&[name])), "{name}");
        assert!(is_invalid(&store.lens(&[name])), "{name}");
    }
    store.delete(&["other"]).expect("it is there or not");
    store.begin(&[("whole", b"abc")]).expect("a whole object");
    store.settle(&["whole", "never-there"]).expect("nothing else waits");
    assert_eq!(store.list().expect("a list"), [("whole".to_owned(), 3)]);
    store.delete(&["whole", "whole", "never-there"]).expect("a missing one is no error");
}

fn ranges(store: &dyn Objects) {
    store.put("three", b"abc", PutMode::Replace).expect("room");
    store.put("empty", b"", PutMode::Replace).expect("room");
    let read = |object, offset, len| {
        let mut buf = vec![0xee; len];
        store.read(&mut [ReadAt { object, offset, buf: &mut buf }]).map(|()| buf)
    };
    assert_eq!(read("three", 1, 2).expect("it is there"), b"bc");
    assert_eq!(read("three", 3, 0).expect("nothing at the end"), b"");
    assert_eq!(read("empty", 0, 0).expect("nothing of nothing"), b"");
    let short = |result| match result {
        Err(StoreError::Short { len, wanted, .. }) => Some((len, wanted)),
        _ => None,
    };
    assert_eq!(short(read("three", 1, 3)), Some((3, 4)));
    assert_eq!(short(read("three", 0, 1 << 20)), Some((3, 1 << 20)));
    assert_eq!(short(read("three", 3, 1)), Some((3, 4)));
    assert_eq!(short(read("three", 9, 1)), Some((3, 10)));
    assert_eq!(short(read("three", 4, 0)), Some((3, 4)));
    assert_eq!(short(read("empty", 0, 1)), Some((0, 1)));
    assert!(is_missing(&read("never-there", 0, 0)));
    assert!(is_invalid(&read("three", u64::MAX, 2)));
    store.delete(&["three", "empty"]).expect("they are there");
}

/// Objects begin side by side, and are there for all once they are settled.
fn begun_side_by_side(open: &dyn Fn() -> Box<dyn Objects>) {
    let (one, two) = (open(), open());
    let names: Vec<_> = (0..24).map(|number| format!("w-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let data: Vec<Vec<u8>> = (0..24).map(|number| vec![number; 3000 * number as usize]).collect();
    for (name, data) in names.iter().zip(&data) {
        one.begin(&[(name, data)]).expect("a new name");
    }
    // A busy server may refuse some of them for a moment: a repeated settle sends the same bytes.
    let mut settled = one.settle(&names);
    for _ in 0..5 {
        if settled.as_ref().is_err_and(StoreError::may_pass) {
            settled = one.settle(&names);
        }
    }
    settled.expect("room");
    let mut buffers: Vec<_> = data.iter().map(|data| vec![0xee; data.len()]).collect();
    let reads = names.iter().zip(&mut buffers);
    let mut reads: Vec<_> = reads.map(|(&object, buf)| ReadAt { object, offset: 0, buf }).collect();
    two.read(&mut reads).expect("all are there");
    assert!(buffers == data);
    // What was begun and not settled is there after it is deleted, or not: never half.
    one.begin(&[("late", &data[20])]).expect("a new name");
    one.delete(&["late"]).expect("deleted once it has arrived");
    assert_eq!(two.len("late").expect("a length"), None);
    two.delete(&names).expect("all are there");
    assert!(two.list().expect("a list").is_empty());
}

/// Of several connections that create one object, one succeeds, and its bytes are there.
fn creates_once(open: &dyn Fn() -> Box<dyn Objects>) {
    let stores: Vec<_> = (0..RACERS).map(|_| open()).collect();
    if !stores[0].capabilities().creates_exclusively {
        return;
    }
    for race in 0..RACES {
        let (name, barrier) = (&format!("race-{race}"), &Barrier::new(RACERS));
        let put = |(racer, store): (usize, &dyn Objects)| {
            barrier.wait();
            store.put(name, &[racer as u8; 100], PutMode::IfAbsent)
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let racers = stores.iter().enumerate();
            let threads: Vec<_> =
                racers.map(|(racer, store)| scope.spawn(move || put((racer, &**store)))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let won: Vec<_> = (0..RACERS).filter(|&racer| results[racer].is_ok()).collect();
        assert_eq!(won.len(), 1, "{results:?}");
        for result in results.iter().filter(|result| result.is_err()) {
            // A service may ask a loser to come again instead.
            let again = matches!(result, Err(error) if error.may_pass());
            assert!(is_exists(result) || again, "{result:?}");
        }
        let mut buf = [0xee; 100];
        stores[0].read(&mut [ReadAt { object: name, offset: 0, buf: &mut buf }]).expect("it won");
        assert_eq!(buf, [won[0] as u8; 100]);
    }
}
