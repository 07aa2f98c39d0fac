//! Requests and bytes of many accesses are what the formulas say.

use super::{passphrase, read, write};
use oblivio_crypto::KdfParams;
use oblivio_store::record::CallKind;
use oblivio_store::{MemoryStore, RecordStore};
use oblivio_testkit::SplitMix64;
use oblivio_volume::windows::{Traffic, WindowCost, WindowOptions, WindowVolume};
use oblivio_volume::{BlockSpace, CacheOptions, Environment, OpenOptions};
use std::sync::Arc;

const BYTES: usize = 1024;
const BLOCKS: u64 = 4096;
const ACCESSES: u64 = 10_000;

/// Windows of eight turns, five levels in the pool, a tree of eleven or so.
fn options() -> WindowOptions {
    WindowOptions {
        object_bytes: 32 * BYTES,
        pool_bytes: 124 * BYTES,
        ..WindowOptions::new(BYTES, BLOCKS * BYTES as u64, true)
    }
}

fn counted(store: &RecordStore<MemoryStore>) -> Traffic {
    let mut sum = Traffic::default();
    for event in store.take() {
        let bytes = event.len as f64;
        match event.op {
            CallKind::Read => (sum.gets, sum.down) = (sum.gets + 1.0, sum.down + bytes),
            CallKind::Write | CallKind::Put => {
                (sum.puts, sum.up) = (sum.puts + 1.0, sum.up + bytes)
            }
            CallKind::Len => sum.looks += 1.0,
            CallKind::Delete => sum.deletes += 1.0,
            _ => {}
        }
    }
    sum
}

fn compare(what: &str, found: f64, expected: f64, within: f64) {
    let off = (found / expected - 1.0).abs();
    eprintln!("{what}: {found:.0}, expected {expected:.0}, off by {:.2} %", off * 100.0);
    assert!(off <= within, "{what}: {found}, expected {expected}");
}

fn check(batch: u64, cache: u64, seed: u64) {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let cached = CacheOptions { store: Arc::new(MemoryStore::new()), bytes: cache };
    let open = OpenOptions {
        environment: Environment::from_seed(seed),
        cache: (cache > 0).then_some(cached),
        ..OpenOptions::default()
    };
    let kdf = KdfParams::TEST;
    let made = WindowVolume::create(store.clone(), &passphrase(), kdf, options(), open);
    let mut volume = made.expect("an empty store");
    volume.reserve(BLOCKS).expect("room");
    let live = BLOCKS * 3 / 4;
    volume.defer((0..live).map(|id| write(id, 1)).collect()).expect("memory");
    volume.commit().expect("memory");
    let mut dice = SplitMix64::new(seed);
    let mut go = |volume: &mut WindowVolume, accesses: u64| {
        for _ in 0..accesses / batch {
            let ids: Vec<u64> = (0..batch).map(|_| dice.below(live)).collect();
            volume.access(ids.into_iter().map(read).collect()).expect("sound");
        }
    };
    // Until the cache has what it keeps, and all leaves their size.
    go(&mut volume, 8_000);
    // Batches do not end with windows, as a rule.
    for _ in 0..batch / 2 {
        volume.access(vec![read(0)]).expect("sound");
    }
    store.take();
    go(&mut volume, ACCESSES);
    let found = counted(&store);
    let cost = WindowCost::of(&options(), live * BYTES as u64, cache);
    let expected = cost.access(batch).times(ACCESSES as f64);
    let what = |part: &str| format!("batches of {batch}, cache {cache}: {part}");
    compare(&what("gets"), found.gets, expected.gets, 0.02);
    compare(&what("bytes down"), found.down, expected.down, 0.02);
    compare(&what("puts"), found.puts, expected.puts, 0.02);
    compare(&what("bytes up"), found.up, expected.up, 0.02);
    compare(&what("looks"), found.looks, expected.looks, 0.1);
}

#[test]
fn requests_and_bytes_are_what_the_formulas_say() {
    check(1, 0, 1);
    check(8, 0, 2);
    check(1, 600 << 10, 3);
}
