//! [`MemoryStore`]: objects in memory, for tests and benchmarks.
//!
//! An object is a list of chunks, each allocated at its first write, so a sparse object costs only
//! its content. Snapshots share chunks until one side writes: a test may take a snapshot at every
//! step of a run.

use crate::ports::{self, Held, Lease, Log, PutMode, Slots, begin_by_writes};
use crate::{
    Capabilities, ReadAt, Result, StoreAnswer, StoreCall, StoreError, WriteAt, check_name,
};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes in a chunk: small enough to copy on write.
const CHUNK: usize = 4 << 20;

/// The first chunk grows from this size, so that small objects stay small.
const SMALLEST: usize = 4096;

/// The longest object. Its chunk list alone would take half a gigabyte.
const LONGEST: u64 = 1 << 46;

type Objects = BTreeMap<String, Object>;

/// Objects in memory.
///
/// `clone` (or [`MemoryStore::snapshot`]) returns an independent copy of the whole content, not a
/// second handle: share a store with `Arc`. Every write is durable at once, and the lock is always
/// granted.
#[derive(Debug, Default)]
pub struct MemoryStore {
    objects: RwLock<Objects>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An independent copy of the whole content, cheap until one of the two is written.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        Self { objects: RwLock::new(self.shared().clone()) }
    }

    /// Resets the whole content to that of `snapshot`.
    pub fn restore(&self, snapshot: &Self) {
        let content = snapshot.shared().clone();
        *self.exclusive() = content;
    }

    /// Passes one byte of an object to `change`, as a tampering adversary would.
    ///
    /// # Errors
    /// When the object is missing or has no such byte.
    pub fn corrupt(&self, object: &str, offset: u64, change: impl FnOnce(&mut u8)) -> Result<()> {
        let mut objects = self.exclusive();
        let found = objects.get_mut(object).ok_or_else(|| missing(object))?;
        if offset >= found.len {
            return Err(StoreError::short(object, found.len, offset.saturating_add(1)));
        }
        let mut byte = [0];
        found.read(offset, &mut byte);
        change(&mut byte[0]);
        found.write(offset, &byte);
        Ok(())
    }

    fn shared(&self) -> RwLockReadGuard<'_, Objects> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, Objects> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for MemoryStore {
    fn clone(&self) -> Self {
        self.snapshot()
    }
}

impl Held for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::OVER
    }

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        let objects = self.shared();
        for read in reads {
            let object = objects.get(read.object).ok_or_else(|| missing(read.object))?;
            let wanted = range_end(read.object, read.offset, read.buf.len())?;
            if wanted > object.len {
                return Err(StoreError::short(read.object, object.len, wanted));
            }
            object.read(read.offset, read.buf);
        }
        Ok(())
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        check_name(object)?;
        Ok(self.shared().get(object).map(|found| found.len))
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        Ok(self.shared().iter().map(|(name, object)| (name.clone(), object.len)).collect())
    }
}

impl Log for MemoryStore {
    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        self.write(&[WriteAt::new(object, offset, data)])
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        check_end(object, len)?;
        let mut objects = self.exclusive();
        objects.get_mut(object).ok_or_else(|| missing(object))?.truncate(len);
        Ok(())
    }
}

impl Slots for MemoryStore {
    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        let mut objects = self.exclusive();
        for write in writes {
            check_end(write.object, range_end(write.object, write.offset, write.data.len())?)?;
            match objects.get_mut(write.object) {
                Some(object) => object.write(write.offset, write.data),
                None => create(&mut objects, write.object)?.write(write.offset, write.data),
            }
        }
        Ok(())
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        let present = self.shared();
        match objects.iter().find(|name| !present.contains_key(**name)) {
            Some(name) => Err(missing(name)),
            None => Ok(()),
        }
    }

    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        let mut objects = self.exclusive();
        for &(name, offset, len) in ranges {
            objects.get_mut(name).ok_or_else(|| missing(name))?.discard(offset, len);
        }
        Ok(())
    }
}

impl ports::Objects for MemoryStore {
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        check_name(object)?;
        let mut objects = self.exclusive();
        if mode == PutMode::IfAbsent && objects.contains_key(object) {
            return Err(StoreError::Exists { object: object.to_owned() });
        }
        let mut new = Object::default();
        new.write(0, data);
        objects.insert(object.to_owned(), new);
        Ok(())
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        objects.iter().try_for_each(|name| check_name(name))?;
        let mut present = self.exclusive();
        for name in objects {
            present.remove(*name);
        }
        Ok(())
    }

    fn begin(&self, objects: &[(&str, &[u8])]) -> Result<()> {
        begin_by_writes(self, objects)
    }

    fn settle(&self, objects: &[&str]) -> Result<()> {
        self.sync(objects)
    }

    fn answer(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        call.on_store(self)
    }
}

impl Lease for MemoryStore {
    fn lock(&self) -> Result<()> {
        Ok(())
    }
}

/// Checks for an invalid name only after a failed lookup, off the fast path.
fn missing(name: &str) -> StoreError {
    check_name(name).err().unwrap_or_else(|| StoreError::missing(name))
}

fn create<'a>(objects: &'a mut Objects, name: &str) -> Result<&'a mut Object> {
    check_name(name)?;
    Ok(objects.entry(name.to_owned()).or_default())
}

fn range_end(name: &str, offset: u64, len: usize) -> Result<u64> {
    offset.checked_add(len as u64).ok_or_else(|| StoreError::out_of_range(name))
}

fn check_end(name: &str, end: u64) -> Result<()> {
    if end > LONGEST { Err(StoreError::out_of_range(name)) } else { Ok(()) }
}

/// One object. Bytes beyond a chunk's vector, or of an absent chunk, are zero.
#[derive(Clone, Debug, Default)]
struct Object {
    len: u64,
    chunks: Vec<Option<Arc<Vec<u8>>>>,
}

impl Object {
    /// Fills `buf`. The caller ensures that the range is inside the object.
    fn read(&self, mut offset: u64, mut buf: &mut [u8]) {
        while !buf.is_empty() {
            let (index, within) = place(offset);
            let take = buf.len().min(CHUNK - within);
            let (part, rest) = buf.split_at_mut(take);
            let chunk = self.chunks.get(index).and_then(Option::as_ref);
            let held = chunk.and_then(|chunk| chunk.get(within..)).unwrap_or_default();
            let copied = take.min(held.len());
            part[..copied].copy_from_slice(&held[..copied]);
            part[copied..].fill(0);
            offset += take as u64;
            buf = rest;
        }
    }

    fn write(&mut self, mut offset: u64, mut data: &[u8]) {
        // As with a file, an empty write extends nothing.
        while !data.is_empty() {
            let (index, within) = place(offset);
            let (part, rest) = data.split_at(data.len().min(CHUNK - within));
            let end = within + part.len();
            self.chunk(index, end)[within..end].copy_from_slice(part);
            offset += part.len() as u64;
            self.len = self.len.max(offset);
            data = rest;
        }
    }

    /// The chunk for writing, at least `end` bytes of it.
    fn chunk(&mut self, index: usize, end: usize) -> &mut [u8] {
        if self.chunks.len() <= index {
            self.chunks.resize(index + 1, None);
        }
        // Only a first chunk grows step by step: an object with a second one is large.
        let size = if index == 0 { end.next_power_of_two().max(SMALLEST) } else { CHUNK };
        let chunk =
            Arc::make_mut(self.chunks[index].get_or_insert_with(|| Arc::new(vec![0; size])));
        if chunk.len() < end {
            chunk.resize(size, 0);
        }
        chunk
    }

    /// Frees the chunks entirely within the range; the rest reads as before.
    fn discard(&mut self, offset: u64, len: u64) {
        let first = offset.div_ceil(CHUNK as u64) as usize;
        let end = (offset.saturating_add(len) / CHUNK as u64) as usize;
        let end = end.min(self.chunks.len());
        if let Some(chunks) = self.chunks.get_mut(first..end) {
            chunks.fill(None);
        }
    }

    fn truncate(&mut self, len: u64) {
        if len < self.len {
            let (index, within) = place(len);
            self.chunks.truncate(if within == 0 { index } else { index + 1 });
            // Bytes beyond the end must be zero when the object grows again.
            if let Some(Some(last)) = self.chunks.get_mut(index) {
                let last = Arc::make_mut(last);
                let from = within.min(last.len());
                last[from..].fill(0);
            }
        }
        self.len = len;
    }
}

/// The chunk of an offset, and the position in it.
fn place(offset: u64) -> (usize, usize) {
    let chunk = CHUNK as u64;
    ((offset / chunk) as usize, (offset % chunk) as usize)
}
