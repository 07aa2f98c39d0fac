//! The layers that every server has between the volume and its store.

use crate::log;
use crate::pulse::PulseStore;
use crate::queue::Pulse;
use oblivio_store::{Patience, RetryStore, Store, StoreError};
use std::sync::Arc;

/// The layers over a store: one that outlasts outages, and one that grows a pulse.
pub fn layers(store: Arc<dyn Store>) -> (Arc<dyn Store>, Pulse) {
    let pulse = Pulse::default();
    let store = Arc::new(PulseStore::new(store, Arc::clone(&pulse)));
    let store = RetryStore::new(store, Patience::default(), Box::new(tell_outage));
    (Arc::new(store), pulse)
}

fn tell_outage(error: Option<&StoreError>) {
    match error {
        Some(error) => log::note(&format!("{error}; trying again until it works")),
        None => log::note("the store works again"),
    }
}
