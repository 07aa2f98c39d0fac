//! A store whose calls of one kind fail or hang on demand, and that can be full.

use oblivio_store::{Held, Layer, MemoryStore, Result, Slots, StoreAnswer, StoreError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Read,
    Write,
    Sync,
    Put,
    Truncate,
    Discard,
    /// All of them.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// They fail without effect.
    Fails,
    /// They take effect and fail nevertheless.
    FailsAfter,
    /// They return when the trouble is over.
    Hangs,
    /// Those of the slab find no slab, and make none.
    Missing,
}

type Now = Option<(Call, Trouble)>;

/// The store; clones share everything.
#[derive(Clone)]
pub struct Flaky {
    pub disk: Arc<MemoryStore>,
    trouble: Arc<(Mutex<Now>, Condvar)>,
    /// Calls that met the trouble.
    pub hits: Arc<AtomicU64>,
    /// Size of the disk in bytes.
    pub size: Arc<AtomicU64>,
    /// Whether it reports how much of it is free.
    pub tells: bool,
    /// Whether the last write that needed room found none.
    full: Arc<AtomicBool>,
}

impl Flaky {
    pub fn new(tells: bool) -> Self {
        Flaky {
            disk: Arc::new(MemoryStore::new()),
            trouble: Arc::default(),
            hits: Arc::default(),
            size: Arc::new(AtomicU64::new(u64::MAX)),
            tells,
            full: Arc::default(),
        }
    }

    /// Whether a caller may get nothing for as long as it stays so.
    pub fn is_away(&self) -> bool {
        let now = *self.trouble.0.lock().expect("the trouble");
        // What is missing is no outage.
        let troubled = now.is_some_and(|(_, trouble)| trouble != Trouble::Missing);
        (troubled && self.hits.load(Ordering::Relaxed) > 0) || self.full.load(Ordering::Relaxed)
    }

    pub fn set(&self, now: Now) {
        *self.trouble.0.lock().expect("the trouble") = now;
        self.trouble.1.notify_all();
    }

    fn work(&self, call: &mut oblivio_store::StoreCall<'_, '_>) -> Result<StoreAnswer> {
        match call {
            oblivio_store::StoreCall::Write(writes) => {
                for write in *writes {
                    self.expect_room(write.object, write.offset + write.data.len() as u64)?;
                    self.disk.write(&[*write])?;
                }
                return Ok(StoreAnswer::Done);
            }
            oblivio_store::StoreCall::Put(object, data, _) => {
                self.expect_room(object, data.len() as u64)?;
            }
            _ => {}
        }
        call.on(&*self.disk)
    }

    fn used(&self) -> Result<u64> {
        Ok(self.disk.list()?.iter().map(|(_, len)| len).sum())
    }

    fn expect_room(&self, object: &str, end: u64) -> Result<()> {
        let grows = end.saturating_sub(self.disk.len(object)?.unwrap_or(0));
        let fits = self.used()? + grows <= self.size.load(Ordering::Relaxed);
        let full = !fits && grows > 0;
        self.full.store(full, Ordering::Relaxed);
        if full { Err(StoreError::Full) } else { Ok(()) }
    }
}

impl Layer for Flaky {
    type Below = MemoryStore;

    fn below(&self) -> &Self::Below {
        &self.disk
    }

    fn call(&self, call: &mut oblivio_store::StoreCall<'_, '_>) -> Result<StoreAnswer> {
        use oblivio_store::StoreCall as Made;
        if let Some(done) = call.in_parts(self) {
            return done;
        }
        let kind = match call {
            Made::Read(_) => Call::Read,
            Made::Write(_) => Call::Write,
            Made::Sync(_) => Call::Sync,
            Made::Put(..) => Call::Put,
            Made::Truncate(..) => Call::Truncate,
            Made::Discard(_) => Call::Discard,
            Made::FreeBytes => {
                let free = self.size.load(Ordering::Relaxed).saturating_sub(self.used()?);
                return Ok(StoreAnswer::Number(self.tells.then_some(free)));
            }
            Made::Lock | Made::Hint(_) => return Ok(StoreAnswer::Done),
            _ => Call::Any,
        };
        let meant = |now: &mut Now| now.is_some_and(|(it, _)| it == kind || it == Call::Any);
        let error = || StoreError::io("flaky", std::io::Error::from_raw_os_error(5));
        let mut now = self.trouble.0.lock().expect("the trouble");
        let is_missing = now.is_some_and(|(_, trouble)| trouble == Trouble::Missing);
        if !meant(&mut now) || is_missing && !is_of(call, "slab") {
            drop(now);
            return self.work(call);
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        match now.map(|(_, trouble)| trouble) {
            Some(Trouble::Hangs) => {
                drop(self.trouble.1.wait_while(now, meant).expect("the trouble"));
                self.work(call)
            }
            Some(Trouble::FailsAfter) => {
                drop(now);
                self.work(call).and(Err(error()))
            }
            Some(Trouble::Missing) => Err(StoreError::Missing { object: "slab".into() }),
            _ => Err(error()),
        }
    }
}

/// Whether a call reads or writes this object.
fn is_of(call: &oblivio_store::StoreCall<'_, '_>, object: &str) -> bool {
    match call {
        oblivio_store::StoreCall::Read(reads) => reads.iter().any(|read| read.object == object),
        oblivio_store::StoreCall::Write(writes) => writes.iter().any(|it| it.object == object),
        _ => false,
    }
}
