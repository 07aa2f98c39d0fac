//! The disk cache: what it saves, and that nothing depends on it.

use super::{BLOCKS, contents, create, fill, passphrase, read, write};
use oblivio_store::record::CallKind;
use oblivio_store::{Held, MemoryStore, RecordStore, Store};
use oblivio_testkit::SplitMix64;
use oblivio_volume::{BlockSpace, CacheOptions, Environment, OpenOptions, Volume};
use std::sync::Arc;

type Recorded = Arc<RecordStore<MemoryStore>>;

fn open(store: Arc<dyn Store>, seed: u64, cache: &Arc<MemoryStore>, bytes: u64) -> Volume {
    let cache = CacheOptions { store: cache.clone(), bytes };
    let environment = Environment::from_seed(seed);
    let open = OpenOptions { environment, cache: Some(cache), ..OpenOptions::default() };
    Volume::open(store, &passphrase(), open).expect("sound")
}

/// Buckets that were read since the last call, by the level of their object.
fn read_levels(store: &Recorded) -> Vec<u32> {
    let events = store.take();
    let reads = events.iter().filter(|it| it.op == CallKind::Read && it.object.starts_with("b-"));
    let level = |name: &str| u32::from_str_radix(name.split('-').nth(2)?, 16).ok();
    reads.map(|it| level(&it.object).expect("as named")).collect()
}

fn filled() -> (Recorded, Vec<Option<u8>>) {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let mut volume = create(store.clone(), true, 1);
    let model = fill(&mut volume, &mut SplitMix64::new(1), 600);
    volume.finish().expect("memory");
    (store, model)
}

#[test]
fn a_bucket_is_asked_for_once() {
    let (store, model) = filled();
    let cache = Arc::new(MemoryStore::new());
    store.take();
    let mut volume = open(store.clone(), 2, &cache, 1 << 30);
    assert_eq!(contents(&mut volume), model);
    let cold = read_levels(&store).len();
    let mut warm = Vec::new();
    for _ in 0..3 {
        assert_eq!(contents(&mut volume), model);
        warm.push(read_levels(&store).len());
    }
    assert!(cold > 100 && warm[2] < cold / 10, "{cold}, then {warm:?}");
    volume.finish().expect("memory");
    drop(volume);
    // Another session of this computer, and one of a computer without a cache.
    let mut volume = open(store.clone(), 3, &cache, 1 << 30);
    read_levels(&store);
    assert_eq!(contents(&mut volume), model);
    assert!(read_levels(&store).len() < cold / 10);
    drop(volume);
    let mut volume = open(store.clone(), 4, &Arc::new(MemoryStore::new()), 1 << 30);
    assert_eq!(contents(&mut volume), model);
    assert!(read_levels(&store).len() > cold / 2);
}

/// Which levels are cached follows from the size alone.
#[test]
fn a_small_one_keeps_the_first_levels() {
    let (store, model) = filled();
    let cache = Arc::new(MemoryStore::new());
    // A bucket has four slots of about 1 KiB: level 3 takes 8 of them, level 4 another 16.
    let mut volume = open(store.clone(), 2, &cache, 120 << 10);
    for _ in 0..3 {
        assert_eq!(contents(&mut volume), model);
    }
    read_levels(&store);
    assert_eq!(contents(&mut volume), model);
    let levels = read_levels(&store);
    assert!(!levels.contains(&3) && !levels.contains(&4) && levels.contains(&5), "{levels:?}");
    let bytes: u64 = cache.list().expect("memory").iter().map(|(_, len)| len).sum();
    assert!(bytes <= 120 << 10, "{bytes}");
}

/// Every object of the cache is damaged or cut, and files are there that nobody knows.
#[test]
fn damage_and_old_files_only_cost_reads() {
    let (store, model) = filled();
    let cache = Arc::new(MemoryStore::new());
    let mut volume = open(store.clone(), 2, &cache, 1 << 30);
    assert_eq!(contents(&mut volume), model);
    volume.finish().expect("memory");
    drop(volume);
    let mut dice = SplitMix64::new(9);
    for (name, len) in cache.list().expect("memory") {
        for _ in 0..5 {
            cache.corrupt(&name, dice.below(len), |byte| *byte ^= 4).expect("in the file");
        }
    }
    let mut volume = open(store.clone(), 3, &cache, 1 << 30);
    assert_eq!(contents(&mut volume), model);
    volume.verify(&mut |_, _| {}).expect("sound");
    volume.finish().expect("memory");
    drop(volume);
    // Another computer writes meanwhile.
    let mut other = super::open(store.clone(), 4).expect("sound");
    other.defer((0..BLOCKS).map(|id| write(id, 5)).collect()).expect("memory");
    other.finish().expect("memory");
    drop(other);
    let before = cache.list().expect("memory").len();
    let mut volume = open(store, 5, &cache, 1 << 30);
    assert!(cache.list().expect("memory").len() < before, "what is no longer current is gone");
    assert_eq!(contents(&mut volume), vec![Some(5); BLOCKS as usize]);
    assert_eq!(volume.access(vec![read(3)]).expect("sound")[0].as_ref().map(|it| it[0]), Some(5));
}
