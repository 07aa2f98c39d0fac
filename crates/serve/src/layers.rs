//! The layers that every server has between the volume and its store.

use crate::log;
use crate::queue::Pulse;
use crate::request_count::PulseStore;
use oblivio_store::{AnyStore, Patience, RetryStore, StoreError, layered};
use std::sync::Arc;
use std::time::Duration;

/// A store under its layers: one that outlasts outages, and one that grows a pulse.
pub struct Layers {
    /// The store for the volume.
    pub store: AnyStore,
    /// Its signs of life.
    pub pulse: Pulse,
    patience: Patience,
}

impl Layers {
    /// Over a disk: calls are repeated until they succeed.
    pub fn over(store: impl Into<AnyStore>) -> Self {
        let (pulse, patience) = (Pulse::default(), Patience::default());
        let store = layered!(store.into(), below => {
            let below = Arc::new(PulseStore::new(below, Arc::clone(&pulse)));
            RetryStore::new(below, patience.clone(), Box::new(tell_outage))
        });
        Self { store, pulse, patience }
    }

    /// Over a store on a network: the volume is opened with patience for `most`, and then served
    /// as long as it takes. `pulse` counts answers: a call may need many, and a slow line is no
    /// stalled one.
    pub fn online(store: AnyStore, most: Duration, pulse: Pulse) -> Self {
        let patience = Patience::default();
        let store = layered!(store, below => {
            let below = Arc::new(PulseStore::new(below, Arc::clone(&pulse)));
            RetryStore::online(below, patience.clone(), most, Box::new(tell_outage))
        });
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
