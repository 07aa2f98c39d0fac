//! A store of whole objects, as a service far away is: an object is on its way until it is settled.

use oblivio_store::{
    Capabilities, Held, Layer, MemoryStore, Objects, PutMode, Result, StoreAnswer, StoreCall,
    StoreError,
};
use oblivio_testkit::SplitMix64;
use std::io;
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
struct Way {
    /// Objects on their way.
    writes: Vec<(String, Vec<u8>)>,
    calls: u64,
}

pub(crate) struct Whole {
    below: MemoryStore,
    way: Mutex<Way>,
    /// The computer is lost at this call.
    last: u64,
    /// Whether reads of buckets count: which of them need a call follows from paths.
    all_count: bool,
}

impl Whole {
    pub(crate) fn new(below: MemoryStore, last: u64) -> Self {
        Self { below, way: Mutex::default(), last, all_count: true }
    }

    /// The same, but reads of buckets are no calls.
    pub(crate) fn but_for_paths(self) -> Self {
        Self { all_count: false, ..self }
    }

    /// What the service has if nothing arrives that was on its way.
    pub(crate) fn none_later(&self) -> MemoryStore {
        self.below.snapshot()
    }

    /// What the service has some time later: of what was on its way, each object or not.
    pub(crate) fn later(&self, seed: u64) -> MemoryStore {
        let mut dice = SplitMix64::new(seed);
        let disk = self.below.snapshot();
        let way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, bytes) in way.writes.iter().filter(|_| dice.below(2) == 0) {
            disk.put(name, bytes, PutMode::Replace).expect("memory");
        }
        disk
    }

    fn arrive(&self, of: impl Fn(&str) -> bool) -> Result<()> {
        let mut way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        let (some, rest) = std::mem::take(&mut way.writes).into_iter().partition(|it| of(&it.0));
        way.writes = rest;
        let some: Vec<(String, Vec<u8>)> = some;
        some.iter().try_for_each(|(name, bytes)| self.below.put(name, bytes, PutMode::Replace))
    }
}

impl Layer for Whole {
    type Below = MemoryStore;

    fn below(&self) -> &MemoryStore {
        &self.below
    }

    fn can(&self) -> Capabilities {
        Capabilities { writes_over: false, ..self.below.capabilities() }
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        let mut way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        let of_buckets = matches!(call, StoreCall::Read(reads) if reads.iter().any(|it| it.object.starts_with("b-")));
        way.calls += u64::from(self.all_count || !of_buckets);
        if way.calls > self.last {
            return Err(StoreError::io("", io::ErrorKind::PermissionDenied.into()));
        }
        if let StoreCall::Begin(objects) = call {
            let new = objects.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()));
            way.writes.extend(new);
            return Ok(StoreAnswer::Done);
        }
        drop(way);
        match call {
            StoreCall::Settle(names) => {
                self.arrive(|name| names.contains(&name))?;
                return Ok(StoreAnswer::Done);
            }
            StoreCall::Read(reads) => {
                let names: Vec<String> = reads.iter().map(|it| it.object.to_owned()).collect();
                self.arrive(|name| names.iter().any(|it| it == name))?;
            }
            StoreCall::Lens(names) => self.arrive(|name| names.contains(&name))?,
            StoreCall::Len(asked) => self.arrive(|name| name == *asked)?,
            _ => {}
        }
        call.on(&self.below)
    }
}
