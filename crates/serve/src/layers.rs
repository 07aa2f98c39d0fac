//! The layers that every server has between the volume and its store.

use crate::log;
use crate::pulse::PulseStore;
use crate::queue::Pulse;
use oblivio_store::{Patience, RetryStore, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// A store under its layers: one that outlasts outages, and one that grows a pulse.
pub struct Layers {
    /// The store for the volume.
    pub store: Arc<dyn Store>,
    /// Its signs of life.
    pub pulse: Pulse,
    patience: Patience,
}

impl Layers {
    /// Over a disk: calls are repeated until they succeed.
    pub fn over(store: Arc<dyn Store>) -> Self {
        let (pulse, patience) = (Pulse::default(), Patience::default());
        let store = Arc::new(PulseStore::new(store, Arc::clone(&pulse)));
        let store = Arc::new(RetryStore::new(store, patience.clone(), Box::new(tell_outage)));
        Self { store, pulse, patience }
    }

    /// Over a store on a network: the volume is opened with patience for `most`, and then served
    /// as long as it takes. `pulse` counts answers: a call may need many, and a slow line is no
    /// stalled one.
    pub fn online(store: Arc<dyn Store>, most: Duration, pulse: Pulse) -> Self {
        let patience = Patience::default();
        let store = Arc::new(PulseStore::new(store, Arc::clone(&pulse)));
        let tell = Box::new(tell_outage);
        let store = Arc::new(RetryStore::online(store, patience.clone(), most, tell));
        Self { store, pulse, patience }
    }

    /// From now on programs rely on the volume ([`Patience::serve`]).
    pub fn serve(&self) {
        self.patience.serve();
    }
}

fn tell_outage(error: Option<&StoreError>) {
    match error {
        Some(error) => log::note(&format!("{error}; trying again until it works")),
        None => log::note("the store works again"),
    }
}
