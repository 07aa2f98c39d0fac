//! Every store keeps the promises of every port: see the suites in `oblivio_testkit::conformance`.
use oblivio_store::partition::Existing;
use oblivio_store::{
    ChangeKind, LocalStore, MemoryStore, PartitionPlace, PartitionStore, Patience, RecordStore,
    RetryStore, Store,
};
use oblivio_testkit::conformance::{self, Calls, NAMES, Opener, ROOM};
use oblivio_testkit::fault::FaultPlan;
use oblivio_testkit::latency::Latency;
use oblivio_testkit::{CrashStore, FaultStore, LatencyStore};
use std::sync::Arc;
use std::time::Duration;

/// Opens the same store each time.
fn shared(store: impl Store + 'static) -> Opener {
    let store = Arc::new(store);
    Box::new(move || Box::new(Arc::clone(&store)))
}

fn local() -> Opener {
    let dir = tempfile::tempdir().unwrap();
    Box::new(move || Box::new(LocalStore::open(dir.path()).unwrap()))
}

fn partition() -> Opener {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    let places = NAMES.map(|name| PartitionPlace { name, capacity: ROOM, kind: ChangeKind::Twice });
    drop(PartitionStore::create(&path, &places, Existing::Refuse).unwrap());
    Box::new(move || {
        let _ = &dir;
        Box::new(PartitionStore::open(&path).unwrap())
    })
}

#[test]
fn stores_in_memory() {
    conformance::store(&|| shared(MemoryStore::new()), 0..48);
    conformance::store(&|| shared(CrashStore::new()), 0..48);
}

#[test]
fn stores_on_disk() {
    conformance::store(&local, 0..8);
    conformance::store(&partition, 0..8);
    conformance::excludes(&*local(), false);
    conformance::excludes(&*partition(), false);
    conformance::excludes(&*shared(MemoryStore::new()), true);
}

#[test]
fn layers_and_pointers() {
    let latency = Latency::new(Duration::from_nanos(1), 1 << 40);
    let retry = || {
        let inner = Arc::new(MemoryStore::new());
        RetryStore::new(inner, Patience::default(), Box::new(|_| {}))
    };
    conformance::store(&|| shared(RecordStore::new(MemoryStore::new()).whole()), 0..24);
    conformance::store(&|| shared(LatencyStore::new(MemoryStore::new(), latency)), 0..24);
    conformance::store(
        &|| shared(FaultStore::new(MemoryStore::new(), FaultPlan::default())),
        0..24,
    );
    conformance::store(&|| shared(retry()), 0..24);
    conformance::store(&|| shared(Box::new(MemoryStore::new()) as Box<dyn Store>), 0..24);
    let borrowed = || &*Box::leak(Box::<MemoryStore>::default());
    conformance::store(&|| shared(RecordStore::new(borrowed())), 0..2);
}

#[test]
fn a_crash_store_leaves_all_of_what_was_synced() {
    for seed in 0..48 {
        let (store, mut calls) = (CrashStore::new(), Calls::new(seed));
        calls.make(&store);
        calls.compare(&store.survivors(seed));
        for (_, state) in store.extremes() {
            calls.compare(&state);
        }
    }
}

#[test]
fn a_disk_knows_its_free_space() {
    for open in [local(), partition()] {
        assert!(open().free_bytes().unwrap().is_some());
    }
}
