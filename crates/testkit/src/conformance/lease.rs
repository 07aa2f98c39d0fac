//! The suite of [`Lease`](oblivio_store::Lease).

use oblivio_store::{Lease, Store, StoreError};

/// What a lease must do: it is taken, once or again by the same holder, and ends with it.
pub fn lease(make: &dyn Fn() -> Box<dyn Store>) {
    for _ in 0..2 {
        let store = make();
        let lease: &dyn Lease = &*store;
        lease.lock().expect("nobody has it");
        lease.lock().expect("it has it itself");
    }
}

/// Of two that open one store at once, one gets the lease, unless it is always `granted`.
///
/// # Panics
/// When it is otherwise.
pub fn excludes(open: &dyn Fn() -> Box<dyn Store>, granted: bool) {
    let (one, two) = (open(), open());
    one.lock().expect("nobody has it");
    assert!(one.list().expect("a list").is_empty(), "the lease is no object");
    let second = two.lock();
    assert!(if granted { second.is_ok() } else { matches!(second, Err(StoreError::Busy)) });
    drop(one);
    two.lock().expect("it is free again");
}
