//! [`OnObjects`]: a whole store over nothing but objects that are written once.
//!
//! An object is stored in parts. Chunks of [`CHUNK_BYTES`] that differ stay in memory until a sync,
//! which stores each under a name with a new version, and then deletes the older ones. Opening
//! lists the names and takes the newest parts. `put`, `truncate` and `delete` are one new part
//! each, so a crash leaves the old state or the new one.
//!
//! Nothing here is secret or trusted: what the parts say is checked by the layers above.

mod index;
mod part;
mod ports;

use crate::ports::Objects;
use crate::{Result, StoreError};
use index::{Index, Object, Stored};
pub use part::LONGEST_NAME;
use part::{Kind, Part};
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes of a chunk.
pub const CHUNK_BYTES: u64 = 256 << 10;

/// The longest object.
const LONGEST: u64 = 1 << 46;

/// The largest version: twelve hexadecimal digits.
const MOST: u64 = (1 << 48) - 1;

/// The object whose creation is the lease. It is no part's name.
const LEASE: &str = "lease";

/// A store over write-once objects.
///
/// One writer at a time: where the objects are created exclusively, [`lock`](crate::Lease::lock)
/// creates one more and the end of the store deletes it. After a crash it stays, until somebody who
/// knows that the writer is gone calls [`OnObjects::break_lease`]. A reader beside a writer opens
/// the store again to see what is new.
#[derive(Debug)]
pub struct OnObjects<O: Objects> {
    below: O,
    chunk_bytes: u64,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    index: Index,
    /// Whether this store created the lease.
    leased: bool,
}

impl<O: Objects> OnObjects<O> {
    /// Opens what these objects hold; none are an empty store. It changes nothing.
    ///
    /// # Errors
    /// When the objects cannot be listed.
    pub fn open(objects: O) -> Result<Self> {
        Self::with_chunks(objects, CHUNK_BYTES)
    }

    /// As [`OnObjects::open`], with chunks of another length, for tests: the names do not say it.
    ///
    /// # Errors
    /// When the objects cannot be listed.
    pub fn with_chunks(objects: O, chunk_bytes: u64) -> Result<Self> {
        let index = Index::of(&objects.list("")?, chunk_bytes.max(1));
        let state = RwLock::new(State { index, leased: false });
        Ok(Self { below: objects, chunk_bytes: chunk_bytes.max(1), state })
    }

    /// Takes the right to write from a writer that is gone.
    ///
    /// # Errors
    /// Those of the objects.
    pub fn break_lease(objects: &O) -> Result<()> {
        objects.delete(LEASE)
    }

    /// The objects below.
    pub fn below(&self) -> &O {
        &self.below
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes void parts. Until it succeeds, nothing else is stored: a void part must not come
    /// back.
    fn bury(&self, index: &mut Index) -> Result<()> {
        while let Some(name) = index.void.first() {
            self.below.delete(name)?;
            index.void.remove(0);
        }
        Ok(())
    }

    /// Stores a part of an object.
    fn store(&self, index: &mut Index, object: &str, kind: Kind, data: &[u8]) -> Result<()> {
        self.bury(index)?;
        // A store that lists impossible versions has made them.
        let spent = || StoreError::refused(object, "the versions of its parts are used up");
        index.newest = index.newest.checked_add(1).filter(|it| *it <= MOST).ok_or_else(spent)?;
        let part = Part { version: index.newest, kind };
        let name = part.name(object);
        match self.below.put_new(&name, data) {
            // Another writer had this version.
            Err(StoreError::Exists { .. }) => return Err(StoreError::Busy),
            Err(error) => {
                // It may be there nevertheless, newer than all that this store knows.
                index.void.push(name);
                return Err(error);
            }
            Ok(()) => {}
        }
        let stored = Stored { name: name.clone(), bytes: data.len() as u64 };
        let found = index.objects.entry(object.to_owned()).or_default();
        index.void.extend(found.take(self.chunk_bytes, &part, stored));
        if kind == Kind::Gone {
            index.objects.remove(object);
            index.void.push(name);
        }
        Ok(())
    }

    /// Stores the chunks of an object that differ.
    fn flush(&self, index: &mut Index, name: &str) -> Result<()> {
        while let Some(object) = index.objects.get_mut(name)
            && let Some((chunk, data)) = object.dirty.pop_first()
        {
            let kind = Kind::Chunk { index: chunk, len: object.len };
            let done = self.store(index, name, kind, &data);
            if let Err(error) = done {
                if let Some(object) = index.objects.get_mut(name) {
                    object.dirty.insert(chunk, data);
                }
                return Err(error);
            }
        }
        self.bury(index)
    }

    /// Writes a range into memory.
    fn write_one(&self, index: &mut Index, name: &str, offset: u64, data: &[u8]) -> Result<()> {
        let end = self.end(name, offset, data.len() as u64)?;
        if let Entry::Vacant(new) = index.objects.entry(name.to_owned()) {
            part::check(name)?;
            // So that a sync stores it, even if it stays empty.
            new.insert(Object::default()).dirty.insert(0, Vec::new());
        }
        let Some(object) = index.objects.get_mut(name) else { return Ok(()) };
        for (chunk, range) in self.split(offset..end) {
            let from = chunk * self.chunk_bytes;
            let within = (range.start - from) as usize..(range.end - from) as usize;
            if !object.dirty.contains_key(&chunk) {
                let bytes = self.chunk(object, chunk)?;
                object.dirty.insert(chunk, bytes);
            }
            let bytes = object.dirty.entry(chunk).or_default();
            bytes.resize(bytes.len().max(within.end), 0);
            let at = (range.start - offset) as usize..(range.end - offset) as usize;
            bytes[within].copy_from_slice(&data[at]);
        }
        if !data.is_empty() {
            object.len = object.len.max(end);
        }
        Ok(())
    }

    /// The bytes of a chunk, without zeros that are not stored.
    fn chunk(&self, object: &Object, chunk: u64) -> Result<Vec<u8>> {
        if let Some(bytes) = object.dirty.get(&chunk) {
            return Ok(bytes.clone());
        }
        let from = chunk * self.chunk_bytes;
        let len = self.chunk_bytes.min(object.len.saturating_sub(from));
        self.stored(object, chunk, from..from + len)
    }

    /// The stored bytes of a range within a chunk; fewer, where zeros follow.
    fn stored(&self, object: &Object, chunk: u64, range: Range<u64>) -> Result<Vec<u8>> {
        let (part, from) = match (object.chunks.get(&chunk), &object.whole) {
            (Some(part), _) => (part, chunk * self.chunk_bytes),
            (None, Some(whole)) => (whole, 0),
            (None, None) => return Ok(Vec::new()),
        };
        let (begin, end) = (range.start - from, part.bytes.min(range.end - from));
        if begin < end { self.below.read(&part.name, begin..end) } else { Ok(Vec::new()) }
    }

    /// Fills `buf` from an offset of an object on.
    fn fill(&self, object: &Object, offset: u64, buf: &mut [u8]) -> Result<()> {
        for (chunk, range) in self.split(offset..offset + buf.len() as u64) {
            let at = (range.start - offset) as usize..(range.end - offset) as usize;
            let buf = &mut buf[at];
            let stored;
            let found = match object.dirty.get(&chunk) {
                Some(bytes) => {
                    let from = (range.start - chunk * self.chunk_bytes) as usize;
                    bytes.get(from..).unwrap_or_default()
                }
                None => {
                    stored = self.stored(object, chunk, range)?;
                    &stored[..]
                }
            };
            let copied = found.len().min(buf.len());
            buf[..copied].copy_from_slice(&found[..copied]);
            buf[copied..].fill(0);
        }
        Ok(())
    }

    /// The chunks of a range, and the part of the range in each.
    fn split(&self, range: Range<u64>) -> impl Iterator<Item = (u64, Range<u64>)> + use<O> {
        let bytes = self.chunk_bytes;
        let chunks = range.start / bytes..range.end.div_ceil(bytes);
        chunks.map(move |chunk| {
            let begin = range.start.max(chunk * bytes);
            (chunk, begin..range.end.min((chunk + 1) * bytes))
        })
    }

    /// The end of a range that an object may have.
    fn end(&self, name: &str, offset: u64, len: u64) -> Result<u64> {
        let end = offset.checked_add(len).filter(|end| *end <= LONGEST);
        end.ok_or_else(|| StoreError::out_of_range(name))
    }
}

impl<O: Objects> Drop for OnObjects<O> {
    /// Gives the lease back.
    fn drop(&mut self) {
        if self.change().leased {
            // If that fails, it stays, as after a crash.
            let _ = self.below.delete(LEASE);
        }
    }
}
