//! The retry layer in an outage.

use oblivio_store::{Held, MemoryStore, Patience, ReadAt, RetryStore, Slots, StoreError, WriteAt};
use oblivio_testkit::FaultStore;
use oblivio_testkit::fault::{Fault, FaultPlan};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn store(plan: &FaultPlan, patience: &Patience) -> (RetryStore, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let told = Arc::clone(&calls);
    let inner = Arc::new(FaultStore::new(MemoryStore::new(), plan.clone()));
    let count = Box::new(move |_: Option<&StoreError>| {
        told.fetch_add(1, Ordering::SeqCst);
    });
    (RetryStore::new(inner, patience.clone(), count), calls)
}

const WRITE: WriteAt<'_> = WriteAt::new("a", 0, &[1, 2, 3]);

#[test]
fn an_outage_passes_unseen_but_is_told() {
    let (plan, patience) = (FaultPlan::new(), Patience::default());
    let (store, told) = store(&plan, &patience);
    plan.fail_in(0, Fault::once());
    store.write(&[WRITE]).expect("the second attempt");
    let mut bytes = [0; 3];
    store.read(&mut [ReadAt { object: "a", offset: 0, buf: &mut bytes }]).expect("there");
    assert_eq!(bytes, [1, 2, 3]);
    assert_eq!((plan.fired(), told.load(Ordering::SeqCst)), (1, 2));
}

#[test]
fn without_patience_the_failure_comes_through() {
    let (plan, patience) = (FaultPlan::new(), Patience::default());
    let (store, _) = store(&plan, &patience);
    patience.end();
    plan.fail_in(0, Fault::once());
    assert!(store.write(&[WRITE]).is_err());
    assert!(matches!(
        store.read(&mut [ReadAt { object: "b", offset: 0, buf: &mut [0] }]),
        Err(StoreError::Missing { .. })
    ));
}
