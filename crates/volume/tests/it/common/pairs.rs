//! Sessions on copies of one volume, recorded at the store and compared in pairs: with padding,
//! operations of equal numbers and sizes look the same.

#![allow(dead_code, reason = "each of those who share this uses some of it")]

use oblivio_crypto::Passphrase;
use oblivio_store::record::CallKind;
use oblivio_store::{MemoryStore, RecordStore, Store};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_volume::{OnShown, OpenOptions, Shown, ShownKind, Volume};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A session on a copy of a volume, and everything that its store sees.
pub struct Session {
    store: Arc<RecordStore<MemoryStore>>,
    shown: Arc<Mutex<Vec<Shown>>>,
}

/// The store's knowledge, except the places of buckets, which follow from random labels: the number
/// of paths in each batch, and every call for anything but buckets, with object and length.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub paths: Vec<(usize, usize)>,
    /// Addressable blocks and the size class's shape, at each commit and change.
    classes: Vec<(u64, u32, u32)>,
    pub calls: Vec<(CallKind, String, u64)>,
    /// The lengths of records of writes, without the zeros behind them.
    pub records: Vec<u64>,
    /// Bytes of buckets written: the written paths follow a schedule.
    written: u64,
}

impl Session {
    /// The passphrase of all these volumes.
    pub fn secret() -> Passphrase {
        Passphrase::new("pairs")
    }

    /// Opens a copy of the volume in `base`.
    pub fn open(base: &MemoryStore, options: OpenOptions) -> (Self, Volume) {
        let store = Arc::new(RecordStore::new(base.snapshot()));
        let shown: Arc<Mutex<Vec<Shown>>> = Arc::default();
        let seen = Arc::clone(&shown);
        let on_shown: OnShown =
            Box::new(move |event| seen.lock().expect("alone").push(event.clone()));
        let options = OpenOptions { on_shown: Some(on_shown), ..options };
        let shared: Arc<dyn Store> = store.clone();
        let volume = Volume::open(shared, &Self::secret(), options).expect("sound");
        (Self { store, shown }, volume)
    }

    /// The store's present content.
    pub fn copy(&self) -> MemoryStore {
        self.store.inner().snapshot()
    }

    /// What was seen since the last call.
    pub fn seen(&self) -> Seen {
        let mut seen = Seen::default();
        for shown in std::mem::take(&mut *self.shown.lock().expect("alone")) {
            if shown.kind == ShownKind::Sync {
                seen.records.push(shown.bytes_written);
            }
            if let Some(rule) = &shown.rule {
                seen.classes.push((rule.blocks, rule.floor, rule.floor_slots));
            }
            if !shown.leaves.is_empty() {
                seen.paths.push((shown.leaves.len(), shown.scheduled));
            }
        }
        for event in self.store.take() {
            match event.object.starts_with("slab") {
                true if event.op == CallKind::Write => seen.written += event.len,
                true => {}
                false => seen.calls.push((event.op, event.object.to_string(), event.len)),
            }
        }
        seen
    }
}

impl Seen {
    /// The number of drawn paths.
    pub fn drawn(&self) -> usize {
        self.paths.iter().map(|(all, scheduled)| all - scheduled).sum()
    }

    /// The lengths of the writes to an object.
    pub fn writes_to(&self, object: &str) -> Vec<u64> {
        let writes = self.calls.iter().filter(|call| call.0 == CallKind::Write);
        writes.filter(|call| call.1.starts_with(object)).map(|call| call.2).collect()
    }

    /// Paths, bytes of buckets written, and for each kind of call on an object the number of calls
    /// and bytes.
    fn totals(&self) -> (usize, usize, u64, BTreeMap<String, (u64, u64)>) {
        let mut calls = BTreeMap::<_, (u64, u64)>::new();
        for (op, object, len) in &self.calls {
            let sum = calls.entry(format!("{op:?} {object}")).or_default();
            *sum = (sum.0 + 1, sum.1 + len);
        }
        let scheduled = self.paths.iter().map(|(_, scheduled)| scheduled).sum();
        (self.drawn(), scheduled, self.written, calls)
    }

    /// Fails with the first difference.
    pub fn expect_equal(&self, other: &Self, what: &str) {
        let changes = |seen: &Self| {
            let mut classes = seen.classes.clone();
            classes.dedup();
            classes
        };
        assert_eq!(changes(self), changes(other), "{what}: the size class is public");
        let differs = self.calls.iter().zip(&other.calls).position(|(a, b)| a != b);
        if let Some(at) = differs {
            let calls = |seen: &Self| {
                seen.calls[at.saturating_sub(4)..].iter().take(8).cloned().collect::<Vec<_>>()
            };
            panic!("{what}: call {at}:\n{:?}\n{:?}", calls(self), calls(other));
        }
        assert_eq!(self.calls.len(), other.calls.len(), "{what}");
        assert_eq!(self.drawn(), other.drawn(), "{what}");
        assert_eq!(self.paths, other.paths, "{what}");
        assert_eq!(self.written, other.written, "{what}");
    }
}

pub fn padded() -> OpenOptions {
    OpenOptions { pad: true, memory_bytes: 64 << 20, ..OpenOptions::default() }
}

/// Compares `usual` pairs of workloads, each made from dice for its public part and dice for its
/// hidden part.
pub fn compare_pairs(what: &str, usual: u64, run: impl Fn(&mut Dice, &mut Dice) -> Seen) {
    let pairs = scaled(usual);
    let run = |public: &mut Dice, hidden: &mut Dice| Some((run(public, hidden), ()));
    compare(what, pairs, run, |one, other, what| {
        one.0.expect_equal(&other.0, what);
        true
    });
}

/// As [`compare_pairs`], with a layer that decides what reaches the volume. Each run gives what it
/// asked for: pairs with equal requests show as much.
pub fn compare_totals<A: PartialEq>(
    what: &str,
    pairs: u64,
    run: impl Fn(&mut Dice, &mut Dice) -> Option<(Seen, A)>,
) {
    let one_of = |public: &mut Dice, hidden: &mut Dice| run(public, hidden);
    compare(what, pairs, one_of, |one, other, what| {
        let alike = one.1 == other.1;
        if alike {
            assert_eq!(one.0.totals(), other.0.totals(), "{what}");
        }
        alike
    });
}

/// How often to retry a pair with different requests.
const TRIES: u64 = 20;

fn compare<A>(
    what: &str,
    pairs: u64,
    run: impl Fn(&mut Dice, &mut Dice) -> Option<(Seen, A)>,
    judge: impl Fn(&(Seen, A), &(Seen, A), &str) -> bool,
) {
    let first = seed(0x1_0000_0001);
    let (mut calls, mut paths, mut tries) = (0, 0, 0);
    for public in first..first + pairs {
        let side = |salt: u64| run(&mut Dice::new(public), &mut Dice::new(public ^ salt << 40));
        let mut judged = None;
        for attempt in 1..=TRIES {
            let (Some(one), Some(other)) = (side(2 * attempt - 1), side(2 * attempt)) else {
                return;
            };
            tries += 1;
            if judge(&one, &other, &format!("{what}, seed {public}")) {
                judged = Some(one.0);
                break;
            }
        }
        let seen =
            judged.unwrap_or_else(|| panic!("{what}, seed {public}: never was the same asked"));
        calls += seen.calls.len();
        paths += seen.drawn();
    }
    println!("{what}: {pairs} pairs alike of {tries}, {paths} paths and {calls} calls each side");
}
