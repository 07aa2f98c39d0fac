//! The retry layer in an outage.

use oblivio_store::{
    Guard, Held, Hint, MemoryStore, Patience, ReadAt, RetryStore, Slots, StoreError, WriteAt,
};
use oblivio_testkit::fault::{Fault, FaultPlan, Repeat};
use oblivio_testkit::{FaultStore, eventually};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

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

/// How often a call reaches the store below until the caller has its answer.
fn attempts(store: &dyn Slots, plan: &FaultPlan) -> u64 {
    let before = plan.fired();
    drop(store.write(&[WRITE]));
    plan.fired() - before
}

#[test]
fn online_it_gives_up_after_a_while_until_programs_rely_on_it() {
    let (plan, patience) = (FaultPlan::new(), Patience::default());
    let inner = Arc::new(FaultStore::new(MemoryStore::new(), plan.clone()));
    let most = Duration::from_millis(500);
    let store = RetryStore::online(inner, patience.clone(), most, Box::new(|_| {}));
    plan.fail_in(0, Fault { repeat: Repeat::FromThenOn, ..Fault::once() });
    let begun = Instant::now();
    let made = attempts(&store, &plan);
    assert!((2..6).contains(&made) && begun.elapsed() >= most, "{made}");
    patience.serve();
    std::thread::scope(|scope| {
        let before = plan.fired();
        let waiting = scope.spawn(|| store.write(&[WRITE]));
        // Pauses double from 0.2 s on: the fourth attempt is later than `most`.
        let went_on = || (plan.fired() >= before + 4).then_some(());
        eventually("it waits as long as it takes", went_on);
        plan.clear();
        waiting.join().expect("no panic").expect("the outage is over");
    });
}

#[test]
fn a_guard_is_asked_before_each_repeated_read() {
    let (plan, patience) = (FaultPlan::new(), Patience::default());
    let (store, _) = store(&plan, &patience);
    store.write(&[WRITE]).expect("memory");
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    store.hint(Hint::BeforeRepeat(&Guard::new(move |_| {
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => Ok(()),
            _ => Err(StoreError::Busy),
        }
    })));
    let mut bytes = [0; 3];
    let mut read = || store.read(&mut [ReadAt { object: "a", offset: 0, buf: &mut bytes }]);
    read().expect("memory");
    assert_eq!(asked.load(Ordering::SeqCst), 0, "a first read needs no guard");
    plan.fail_in(0, Fault::once());
    read().expect("the guard lets it");
    plan.fail_in(0, Fault::once());
    assert!(matches!(read(), Err(StoreError::Busy)), "the guard's answer");
    plan.fail_in(0, Fault::once());
    store.write(&[WRITE]).expect("a write shows nothing");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}
