//! Every store keeps the trait's promises: random operations against a plain map.

use oblivio_store::Slots;
use oblivio_store::{
    Kind, LocalStore, MemoryStore, PartitionStore, Place, PutMode, ReadAt, RecordStore, Store,
    StoreError, WriteAt, partition::Existing,
};
use oblivio_testkit::latency::Latency;
use oblivio_testkit::{CrashStore, FaultStore, LatencyStore};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

type Outcome<T> = Result<T, StoreError>;

type Model = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Read(Vec<(usize, u64, usize)>),
    Write(Vec<(usize, u64, Vec<u8>)>),
    WriteDurable(usize, u64, Vec<u8>),
    Sync(Vec<usize>),
    Put(usize, Vec<u8>, bool),
    Truncate(usize, u64),
    Allocate(usize, u64),
    Discard(Vec<(usize, u64, u64)>),
    Delete(Vec<usize>),
}

const NAMES: [&str; 4] = ["slab", "a.b", "C-3", "x_"];

/// Mostly small, so that ranges collide; sometimes across the edge of a megabyte, where the memory
/// store changes chunks.
fn place() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..200_u64, 1 => (1_u64 << 20) - 100..(1 << 20) + 100, 1 => 4000..9000_u64]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..120),
        1 => (any::<u8>(), 0..6000_usize).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    let few = 0..4_usize;
    prop_oneof![
        4 => prop::collection::vec((name(), place(), 0..200_usize), few.clone()).prop_map(Step::Read),
        5 => prop::collection::vec((name(), place(), bytes()), few.clone()).prop_map(Step::Write),
        2 => (name(), place(), bytes()).prop_map(|(n, p, b)| Step::WriteDurable(n, p, b)),
        2 => prop::collection::vec(name(), few.clone()).prop_map(Step::Sync),
        2 => (name(), bytes(), any::<bool>()).prop_map(|(n, b, r)| Step::Put(n, b, r)),
        2 => (name(), place()).prop_map(|(n, l)| Step::Truncate(n, l)),
        1 => (name(), place()).prop_map(|(n, l)| Step::Allocate(n, l)),
        1 => prop::collection::vec((name(), place(), 0..9000_u64), few.clone())
            .prop_map(Step::Discard),
        1 => prop::collection::vec(name(), few).prop_map(Step::Delete),
    ]
}

fn is_missing(result: &Outcome<()>) -> bool {
    matches!(result, Err(StoreError::Missing { .. }))
}

fn is_short(result: &Outcome<()>) -> bool {
    matches!(result, Err(StoreError::Short { .. }))
}

fn is_exists(result: &Outcome<()>) -> bool {
    matches!(result, Err(StoreError::Exists { .. }))
}

fn read(store: &dyn Store, model: &Model, ranges: &[(usize, u64, usize)]) -> TestCaseResult {
    let mut buffers: Vec<Vec<u8>> = ranges.iter().map(|(_, _, len)| vec![0xee; *len]).collect();
    let mut reads: Vec<ReadAt<'_>> = ranges
        .iter()
        .zip(&mut buffers)
        .map(|((name, offset, _), buf)| ReadAt { object: NAMES[*name], offset: *offset, buf })
        .collect();
    let result = store.read(&mut reads);
    let held = |(name, offset, len): &(usize, u64, usize)| {
        let from = *offset as usize;
        model.get(NAMES[*name]).map(|data| data.get(from..from + len).map(<[u8]>::to_vec))
    };
    match ranges.iter().map(held).find(|held| !matches!(held, Some(Some(_)))) {
        Some(None) => prop_assert!(is_missing(&result)),
        Some(_) => prop_assert!(is_short(&result)),
        None => {
            prop_assert!(result.is_ok());
            let expected: Vec<_> = ranges.iter().filter_map(held).flatten().collect();
            prop_assert_eq!(buffers, expected);
        }
    }
    Ok(())
}

/// A call may apply overlapping ranges in any order, so the test leaves them out.
fn write(store: &dyn Store, model: &mut Model, ranges: &[(usize, u64, Vec<u8>)]) -> TestCaseResult {
    let mut taken: Vec<&(usize, u64, Vec<u8>)> = Vec::new();
    for range in ranges {
        let apart = |other: &&(usize, u64, Vec<u8>)| {
            let end = |range: &(usize, u64, Vec<u8>)| range.1 + range.2.len() as u64;
            other.0 != range.0 || end(other) <= range.1 || end(range) <= other.1
        };
        if taken.iter().all(apart) {
            taken.push(range);
        }
    }
    let writes: Vec<WriteAt<'_>> = taken
        .iter()
        .map(|(name, offset, data)| WriteAt::new(NAMES[*name], *offset, data))
        .collect();
    prop_assert!(store.write(&writes).is_ok());
    for (name, offset, data) in taken {
        wrote(model, NAMES[*name], *offset, data);
    }
    Ok(())
}

fn wrote(model: &mut Model, name: &str, offset: u64, data: &[u8]) {
    let held = model.entry(name.to_owned()).or_default();
    let (from, end) = (offset as usize, offset as usize + data.len());
    if !data.is_empty() {
        held.resize(held.len().max(end), 0);
        held[from..end].copy_from_slice(data);
    }
}

/// Discarded bytes are zero or as before; nothing else changes.
fn discard(store: &dyn Store, model: &mut Model, ranges: &[(usize, u64, u64)]) -> TestCaseResult {
    let asked: Vec<_> = ranges.iter().map(|&(name, at, len)| (NAMES[name], at, len)).collect();
    let result = store.discard(&asked);
    if asked.iter().any(|(name, ..)| !model.contains_key(*name)) {
        prop_assert!(is_missing(&result) || asked.iter().any(|range| range.2 == 0));
    } else {
        prop_assert!(result.is_ok());
    }
    for (name, at, len) in asked {
        let Some(held) = model.get_mut(name) else { continue };
        prop_assert_eq!(store.len(name).ok().flatten(), Some(held.len() as u64));
        let from = held.len().min(at as usize);
        let to = held.len().min((at + len) as usize);
        let mut now = vec![0; to - from];
        let mut reads = [ReadAt { object: name, offset: from as u64, buf: &mut now }];
        prop_assert!(store.read(&mut reads).is_ok());
        prop_assert!(now.iter().zip(&held[from..to]).all(|(now, old)| *now == 0 || now == old));
        held[from..to].copy_from_slice(&now);
    }
    Ok(())
}

fn apply(store: &dyn Store, model: &mut Model, step: &Step) -> TestCaseResult {
    let names = |list: &[usize]| list.iter().map(|name| NAMES[*name]).collect::<Vec<_>>();
    match step {
        Step::Read(ranges) => read(store, model, ranges)?,
        Step::Write(ranges) => write(store, model, ranges)?,
        Step::WriteDurable(name, offset, data) => {
            prop_assert!(store.write_durable(NAMES[*name], *offset, data).is_ok());
            wrote(model, NAMES[*name], *offset, data);
        }
        Step::Sync(list) => {
            let present = names(list).iter().all(|name| model.contains_key(*name));
            let result = store.sync(&names(list));
            match present {
                true => prop_assert!(result.is_ok()),
                false => prop_assert!(is_missing(&result)),
            }
        }
        Step::Put(name, data, replace) => {
            let mode = if *replace { PutMode::Replace } else { PutMode::IfAbsent };
            let result = store.put(NAMES[*name], data, mode);
            if !replace && model.contains_key(NAMES[*name]) {
                prop_assert!(is_exists(&result));
            } else {
                prop_assert!(result.is_ok());
                model.insert(NAMES[*name].to_owned(), data.clone());
            }
        }
        Step::Truncate(name, len) => {
            let result = store.truncate(NAMES[*name], *len);
            match model.get_mut(NAMES[*name]) {
                None => prop_assert!(is_missing(&result)),
                Some(data) => {
                    prop_assert!(result.is_ok());
                    data.resize(*len as usize, 0);
                }
            }
        }
        Step::Allocate(name, len) => {
            prop_assert!(store.allocate(NAMES[*name], *len).is_ok());
            let held = model.entry(NAMES[*name].to_owned()).or_default();
            held.resize(held.len().max(*len as usize), 0);
        }
        Step::Discard(ranges) => discard(store, model, ranges)?,
        Step::Delete(list) => {
            prop_assert!(store.delete(&names(list)).is_ok());
            model.retain(|name, _| !names(list).contains(&name.as_str()));
        }
    }
    Ok(())
}

fn same(store: &dyn Store, model: &Model) -> TestCaseResult {
    let lengths: Vec<_> =
        model.iter().map(|(name, data)| (name.clone(), data.len() as u64)).collect();
    prop_assert_eq!(store.list().expect("list"), lengths);
    for name in NAMES {
        let held = model.get(name);
        let len = store.len(name).expect("len");
        prop_assert_eq!(len, held.map(|data| data.len() as u64));
        let Some(held) = held else { continue };
        let mut buf = vec![0xee; held.len()];
        let result = store.read(&mut [ReadAt { object: name, offset: 0, buf: &mut buf }]);
        prop_assert!(result.is_ok());
        prop_assert!(&buf == held, "content of {}", name);
    }
    Ok(())
}

fn conforms(store: &dyn Store, steps: &[Step]) -> TestCaseResult {
    let mut model = Model::new();
    prop_assert!(store.lock().is_ok());
    for step in steps {
        apply(store, &mut model, step)?;
    }
    same(store, &model)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_store_is_a_map_of_bytes(steps in prop::collection::vec(step(), 1..40)) {
        let latency = Latency::new(Duration::from_nanos(1), 1 << 40);
        conforms(&MemoryStore::new(), &steps)?;
        conforms(&RecordStore::new(MemoryStore::new()), &steps)?;
        conforms(&LatencyStore::new(MemoryStore::new(), latency), &steps)?;
        conforms(&FaultStore::new(MemoryStore::new(), Default::default()), &steps)?;
        conforms(&CrashStore::new(), &steps)?;
        // Behind pointers, too.
        let shared: Arc<dyn Store> = Arc::new(MemoryStore::new());
        conforms(&RecordStore::new(Arc::clone(&shared)), &steps)?;
        let owned: Box<dyn Store> = Box::new(&shared);
        prop_assert!(owned.list().is_ok());
    }

    #[test]
    fn a_crash_store_leaves_all_of_what_was_synced(
        steps in prop::collection::vec(step(), 1..40), seed: u64,
    ) {
        let store = CrashStore::new();
        let mut model = Model::new();
        for step in &steps {
            apply(&store, &mut model, step)?;
        }
        let names: Vec<&str> = model.keys().map(String::as_str).collect();
        prop_assert!(store.sync(&names).is_ok());
        same(&store.survivors(seed), &model)?;
        for (_, state) in store.extremes() {
            same(&state, &model)?;
        }
    }
}

proptest! {
    // Each step syncs real files.
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_local_store_is_a_map_of_bytes(steps in prop::collection::vec(step(), 1..25)) {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = LocalStore::create(dir.path()).expect("create");
        let mut model = Model::new();
        for step in &steps {
            apply(&store, &mut model, step)?;
        }
        same(&store, &model)?;
        drop(store);
        same(&LocalStore::open(dir.path()).expect("open"), &model)?;
    }

    #[test]
    fn a_store_in_one_file_is_a_map_of_bytes(steps in prop::collection::vec(step(), 1..25)) {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("volume");
        let store = PartitionStore::create(&path, &places(), Existing::Refuse).expect("create");
        let mut model = Model::new();
        for step in &steps {
            apply(&store, &mut model, step)?;
        }
        same(&store, &model)?;
        let names: Vec<&str> = model.keys().map(String::as_str).collect();
        prop_assert!(store.sync(&names).is_ok());
        drop(store);
        same(&PartitionStore::open(&path).expect("open"), &model)?;
    }
}

/// Room for all steps.
fn places() -> [Place<'static>; 4] {
    NAMES.map(|name| Place { name, capacity: 2 << 20, kind: Kind::Twice })
}

#[test]
fn all_stores_refuse_the_same_names_and_ranges() {
    let dir = tempfile::tempdir().expect("tempdir");
    let local = LocalStore::open(dir.path()).expect("open");
    let (memory, crash) = (MemoryStore::new(), CrashStore::new());
    let places = ["a", "b"].map(|name| Place::new(name, 100));
    let file = dir.path().join("volume");
    let partition = PartitionStore::create(&file, &places, Existing::Refuse).expect("create");
    let stores: [&dyn Store; 4] = [&local, &memory, &crash, &partition];
    let invalid = |result: Outcome<()>| match result {
        Err(StoreError::Io { source, .. }) => source.kind() == std::io::ErrorKind::InvalidInput,
        _ => false,
    };
    for store in stores {
        for name in ["../evil", "", ".lock", "a/b"] {
            let write = WriteAt::new(name, 0, b"x");
            assert!(invalid(store.read(&mut [ReadAt { object: name, offset: 0, buf: &mut [0] }])));
            assert!(invalid(store.write(&[write])));
            assert!(invalid(store.sync(&[name])));
            assert!(invalid(store.len(name).map(drop)));
            assert!(invalid(store.put(name, b"", PutMode::Replace)));
            assert!(invalid(store.truncate(name, 0)));
            assert!(invalid(store.delete(&[name])));
        }
        let far = u64::MAX - 1;
        assert!(invalid(store.write(&[WriteAt::new("a", far, b"abc")])));
        store.put("a", b"abc", PutMode::Replace).expect("put");
        assert!(invalid(store.read(&mut [ReadAt { object: "a", offset: far, buf: &mut [0; 3] }])));
        let mut buf = [0; 3];
        let short = store.read(&mut [ReadAt { object: "a", offset: 1, buf: &mut buf }]);
        assert!(matches!(short, Err(StoreError::Short { len: 3, wanted: 4, .. })));
        let none = store.read(&mut [ReadAt { object: "b", offset: 0, buf: &mut buf }]);
        assert!(matches!(none, Err(StoreError::Missing { object }) if object == "b"));
        assert!(invalid(store.truncate("a", u64::MAX)));
    }
}
