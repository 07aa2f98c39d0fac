//! A store whose calls of one kind fail or hang on demand, and that can be full.

use oblivio_store::{MemoryStore, PutMode, ReadAt, Result, Store, StoreError, WriteAt};
use std::sync::atomic::{AtomicU64, Ordering};
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
}

impl Flaky {
    pub fn new(tells: bool) -> Self {
        Flaky {
            disk: Arc::new(MemoryStore::new()),
            trouble: Arc::default(),
            hits: Arc::default(),
            size: Arc::new(AtomicU64::new(u64::MAX)),
            tells,
        }
    }

    pub fn set(&self, now: Now) {
        *self.trouble.0.lock().expect("the trouble") = now;
        self.trouble.1.notify_all();
    }

    fn call<T>(&self, call: Call, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let meant = |now: &mut Now| now.is_some_and(|(kind, _)| kind == call || kind == Call::Any);
        let error = || StoreError::io("flaky", std::io::Error::from_raw_os_error(5));
        let mut now = self.trouble.0.lock().expect("the trouble");
        if !meant(&mut now) {
            drop(now);
            return work();
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        match now.map(|(_, trouble)| trouble) {
            Some(Trouble::Hangs) => {
                drop(self.trouble.1.wait_while(now, meant).expect("the trouble"));
                work()
            }
            Some(Trouble::FailsAfter) => {
                drop(now);
                work().and(Err(error()))
            }
            _ => Err(error()),
        }
    }

    fn used(&self) -> Result<u64> {
        Ok(self.disk.list()?.iter().map(|(_, len)| len).sum())
    }

    fn expect_room(&self, object: &str, end: u64) -> Result<()> {
        let grows = end.saturating_sub(self.disk.len(object)?.unwrap_or(0));
        let fits = self.used()? + grows <= self.size.load(Ordering::Relaxed);
        if fits || grows == 0 { Ok(()) } else { Err(StoreError::Full) }
    }
}

impl Store for Flaky {
    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        self.call(Call::Read, || self.disk.read(reads))
    }

    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        self.call(Call::Write, || {
            writes.iter().try_for_each(|write| {
                self.expect_room(write.object, write.offset + write.data.len() as u64)?;
                self.disk.write(&[*write])
            })
        })
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        self.call(Call::Sync, || self.disk.sync(objects))
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        self.call(Call::Any, || self.disk.len(object))
    }

    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        self.call(Call::Put, || {
            self.expect_room(object, data.len() as u64)?;
            self.disk.put(object, data, mode)
        })
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        self.call(Call::Truncate, || self.disk.truncate(object, len))
    }

    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        self.call(Call::Discard, || self.disk.discard(ranges))
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        let free = self.size.load(Ordering::Relaxed).saturating_sub(self.used()?);
        Ok(self.tells.then_some(free))
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        self.call(Call::Any, || self.disk.delete(objects))
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        self.call(Call::Any, || self.disk.list())
    }

    fn lock(&self) -> Result<()> {
        Ok(())
    }
}
