//! With padding the store sees the same of two workloads with equal numbers and sizes of operations,
//! whichever blocks, offsets, files and names they were for: as many paths, the same records, the same
//! commits, as many bytes. Recorded at the store.
//!
//! `cargo test` compares a few pairs; `OBLIVIO_TRACE_PAIRS` (`just padded-pairs`) as many as told.

#![expect(clippy::print_stdout, reason = "the outcome of a long run is its numbers")]

mod blocks;

#[path = "../common/dice.rs"]
mod dice;
mod disks;
mod files;

use dice::Dice;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::record::Op;
use oblivio_store::{MemoryStore, RecordStore, Store};
use oblivio_volume::{CreateOptions, OnShown, OpenOptions, Shown, Volume};
use std::sync::{Arc, Mutex};

fn passphrase() -> Passphrase {
    Passphrase::new("pairs")
}

/// A new volume for so many bytes.
fn create(block_bytes: usize, capacity_bytes: u64) -> (Arc<MemoryStore>, Volume) {
    let store = Arc::new(MemoryStore::new());
    let create = CreateOptions { block_bytes, capacity_bytes, kdf: KdfParams::TEST };
    let volume = Volume::create(store.clone(), &passphrase(), create, OpenOptions::default());
    (store, volume.expect("an empty store"))
}

/// A session on a copy of a volume, and all that its store sees.
struct Session {
    store: Arc<RecordStore<MemoryStore>>,
    shown: Arc<Mutex<Vec<Shown>>>,
}

/// What the store learned but for where buckets lie, which follows from random labels: how many
/// paths each batch had, and every call for everything but buckets, with object and length.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    paths: Vec<(usize, usize)>,
    calls: Vec<(Op, String, u64)>,
    /// Bytes of buckets written: the paths that are written follow a schedule.
    written: u64,
}

impl Session {
    /// Opens a copy of the volume in `base`.
    fn open(base: &MemoryStore, options: OpenOptions) -> (Self, Volume) {
        let store = Arc::new(RecordStore::new(base.snapshot()));
        let shown: Arc<Mutex<Vec<Shown>>> = Arc::default();
        let seen = Arc::clone(&shown);
        let on_shown: OnShown =
            Box::new(move |event| seen.lock().expect("alone").push(event.clone()));
        let options = OpenOptions { on_shown: Some(on_shown), ..options };
        let shared: Arc<dyn Store> = store.clone();
        let volume = Volume::open(shared, &passphrase(), options).expect("sound");
        (Self { store, shown }, volume)
    }

    /// What was seen since the last time.
    fn seen(&self) -> Seen {
        let mut seen = Seen::default();
        for shown in std::mem::take(&mut *self.shown.lock().expect("alone")) {
            if !shown.leaves.is_empty() {
                seen.paths.push((shown.leaves.len(), shown.scheduled));
            }
        }
        for event in self.store.take() {
            match event.object.starts_with("slab") {
                true if event.op == Op::Write => seen.written += event.len,
                true => {}
                false => seen.calls.push((event.op, event.object.to_string(), event.len)),
            }
        }
        seen
    }
}

impl Seen {
    /// Paths that were drawn.
    fn drawn(&self) -> usize {
        self.paths.iter().map(|(all, scheduled)| all - scheduled).sum()
    }

    /// The lengths of what was written to an object.
    fn writes_to(&self, object: &str) -> Vec<u64> {
        let writes = self.calls.iter().filter(|call| call.0 == Op::Write);
        writes.filter(|call| call.1.starts_with(object)).map(|call| call.2).collect()
    }

    /// How often two sessions looked different, with the first difference.
    fn expect_equal(&self, other: &Self, what: &str) {
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

fn padded() -> OpenOptions {
    OpenOptions { pad: true, memory_bytes: 64 << 20, ..OpenOptions::default() }
}

/// A number from the environment.
fn told(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Compares so many pairs of workloads, each made from dice for what is public and dice for what is not.
fn compare_pairs(what: &str, default: u64, run: impl Fn(&mut Dice, &mut Dice) -> Seen) {
    let (pairs, seed) = (told("OBLIVIO_TRACE_PAIRS", default), told("OBLIVIO_TRACE_SEED", 1));
    let (mut calls, mut paths) = (0, 0);
    for pair in 0..pairs {
        let public = Dice(seed.wrapping_mul(0x1_0000_0001).wrapping_add(pair));
        let side = |salt: u64| {
            let mut hidden = Dice(public.0 ^ salt << 40);
            run(&mut public.clone(), &mut hidden)
        };
        let (one, other) = (side(1), side(2));
        one.expect_equal(&other, &format!("{what}, pair {pair} of seed {seed}"));
        calls += one.calls.len();
        paths += one.drawn();
    }
    println!("{what}: {pairs} pairs alike, {paths} paths and {calls} calls each side");
}
