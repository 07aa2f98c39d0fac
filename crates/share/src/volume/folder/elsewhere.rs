//! Tables and checkpoints in a store somewhere else, cut into parts that are written once.
//!
//! A note in the server's folder says which run of parts an object is, once all of them are
//! durable. Parts without a note are what a crash left: the next start lists the store once, and
//! deletes them. No name is ever used for other bytes: it has the number of the server's start.
//!
//! # What an outage does
//!
//! A call that needs the store fails, and may be made again: a piece that could not be stored
//! stays in memory, and its repeat sends the same part. Deletions wait in a thread of their own, so
//! that nothing else waits for them.

use super::super::keeper::MissingParts;
use super::healed::Healed;
use super::notes::{Note, Notes, Owner};
use super::runs::{Run, is_part};
use oblivio_store::share::{Object, Result, ShareError};
use oblivio_store::{Objects, PutMode, ReadAt, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes of a part: no request is so long that a slow line makes it fail.
pub(super) const PART_BYTES: u64 = 4 << 20;
/// Names deleted by one request, and the pause after a failure.
const DELETED_AT_ONCE: usize = 64;
const PAUSE: Duration = Duration::from_secs(5);

fn missing(object: Object) -> ShareError {
    let why =
        format!("the store of the tables lacks a part of it ({object:?}); nothing was deleted");
    StoreError::io("tables", std::io::Error::new(std::io::ErrorKind::InvalidData, why)).into()
}

/// An object whose pieces come.
struct Growing {
    run: Run,
    /// How many parts are stored.
    stored: u64,
    /// The bytes behind them.
    tail: Vec<u8>,
}

impl Growing {
    fn base(&self) -> u64 {
        self.stored * self.run.part_bytes
    }

    /// The names of its parts. One after those that are stored may be there as well.
    fn names(&self, object: Object) -> Vec<String> {
        (0..=self.stored).map(|part| self.run.part(object, part)).collect()
    }
}

#[derive(Default)]
struct Inside {
    whole: BTreeMap<Object, (Run, u64)>,
    growing: BTreeMap<Object, Growing>,
    begun: u64,
}

/// Tables in a store somewhere else.
pub(super) struct Elsewhere {
    /// None while only what the server's folder knows is asked for.
    store: Option<Arc<dyn Objects>>,
    notes: Notes,
    owner: Owner,
    start: u64,
    part_bytes: u64,
    inside: Mutex<Inside>,
    deleting: Arc<Deleting>,
    torn: Torn,
}

/// What a crash left of objects that are not whole: their notes and their parts.
#[derive(Default)]
struct Torn {
    notes: Vec<Object>,
    parts: Vec<String>,
}

impl Elsewhere {
    /// Opens what the notes in a folder say, over the store that has the parts, and returns whole
    /// objects with their lengths. A state may lack parts: there is a second copy of it.
    ///
    /// # Errors
    /// Those of both; the store is another server's, or lacks a part of a table in use.
    pub fn open(
        dir: &Path,
        owner: Owner,
        store: Option<Arc<dyn Objects>>,
        (start, part_bytes): (u64, u64),
        in_use: impl Fn(Object) -> bool,
        lacking: MissingParts,
    ) -> Result<(Self, BTreeMap<Object, u64>)> {
        let (notes, mut whole) = Notes::open(dir, &in_use)?;
        let mut lost: BTreeSet<Object> = BTreeSet::new();
        let mut torn = Torn::default();
        if let Some(store) = &store {
            owner.check(&**store)?;
            let mut there: BTreeMap<String, u64> = store.list()?.into_iter().collect();
            let is_whole = |object: &Object, note: &Note| {
                let mut parts = note.run.parts(*object, note.len);
                parts.all(|(name, len)| there.get(&name) == Some(&len))
            };
            let lacks = |it: &(&Object, &Note)| in_use(*it.0) && !is_whole(it.0, it.1);
            lost.extend(whole.iter().filter(lacks).map(|it| *it.0));
            let mut tables = lost.iter().filter(|it| matches!(it, Object::Table(_)));
            if let Some(object) = tables.next().filter(|_| lacking == MissingParts::Refused) {
                return Err(missing(*object));
            }
            let is_torn = |it: &(&Object, &Note)| !in_use(*it.0) && !is_whole(it.0, it.1);
            torn.notes = whole.iter().filter(is_torn).map(|it| *it.0).collect();
            whole.retain(|object, _| !torn.notes.contains(object));
            for (object, note) in &whole {
                for (name, _) in note.run.parts(*object, note.len) {
                    there.remove(&name);
                }
            }
            torn.parts = there.into_keys().filter(|name| is_part(name)).collect();
        }
        let found = whole.iter().filter(|it| !lost.contains(it.0));
        let found = found.map(|(object, note)| (*object, note.len)).collect();
        let whole = whole.into_iter().map(|(object, Note { run, len })| (object, (run, len)));
        let inside = Mutex::new(Inside { whole: whole.collect(), ..Inside::default() });
        let deleting = Arc::default();
        Ok((Self { store, notes, owner, start, part_bytes, inside, deleting, torn }, found))
    }

    /// The volume holds together: the store becomes its own, and what a crash left is deleted.
    ///
    /// # Errors
    /// Those of both; the store is another server's.
    pub fn clean(&mut self) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        self.owner.claim(&**store)?;
        let torn = std::mem::take(&mut self.torn);
        torn.notes.into_iter().try_for_each(|object| self.notes.remove(object))?;
        self.notes.clean()?;
        self.deleting.add(torn.parts);
        Deleting::begin(&self.deleting, Arc::clone(store))
    }

    /// The files that were damaged or lost.
    pub fn healed(&self) -> Vec<Healed> {
        self.owner.healed.iter().chain(self.notes.healed()).cloned().collect()
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> Result<&dyn Objects> {
        let why = "its tables are in a store that was not given: start the server with --tables";
        let error = || StoreError::io("tables", std::io::Error::other(why)).into();
        self.store.as_deref().ok_or_else(error)
    }

    /// Takes an object that grows. No two calls are about one object, and it is put back.
    fn take(&self, object: Object) -> Result<Growing> {
        self.inside().growing.remove(&object).ok_or(ShareError::NoObject(object))
    }

    fn begin(&self) -> Growing {
        let mut inside = self.inside();
        let run = Run { start: self.start, begun: inside.begun, part_bytes: self.part_bytes };
        inside.begun += 1;
        Growing { run, stored: 0, tail: Vec::new() }
    }

    pub fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()> {
        self.store()?;
        let mut growing = match self.take(object) {
            Err(_) if offset == 0 => self.begin(),
            taken => taken?,
        };
        let mut done = self.grow(object, &mut growing, offset, piece);
        if offset == 0 && matches!(done, Err(ShareError::Invalid(_))) {
            // A scribe that is gone began it, and its first piece was never acknowledged.
            self.deleting.add(growing.names(object));
            growing = self.begin();
            done = self.grow(object, &mut growing, offset, piece);
        }
        self.inside().growing.insert(object, growing);
        done
    }

    /// Adds what is new of a piece, and stores the parts that are full. What a failed attempt has
    /// taken in already must be the same now.
    fn grow(&self, object: Object, growing: &mut Growing, offset: u64, piece: &[u8]) -> Result<()> {
        let end = growing.base() + growing.tail.len() as u64;
        let known = end.checked_sub(offset).ok_or(ShareError::NoObject(object))?;
        let (known, new) = piece.split_at_checked(known as usize).unwrap_or((piece, &[]));
        let mut before = vec![0; known.len()];
        self.read_growing(object, growing, offset, &mut before)?;
        if before != known {
            return Err(ShareError::invalid("another piece is here"));
        }
        growing.tail.extend_from_slice(new);
        let part = self.part_bytes as usize;
        while growing.tail.len() >= part {
            self.put(&growing.run.part(object, growing.stored), &growing.tail[..part])?;
            growing.tail.drain(..part);
            growing.stored += 1;
        }
        Ok(())
    }

    /// Stores a part; one that is there has the same bytes, whose answer was lost.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        Ok(self.store()?.put(name, bytes, PutMode::Replace)?)
    }

    fn read_growing(
        &self,
        object: Object,
        growing: &Growing,
        offset: u64,
        into: &mut [u8],
    ) -> Result<()> {
        let stored = growing.base().saturating_sub(offset).min(into.len() as u64) as usize;
        let (stored, tail) = into.split_at_mut(stored);
        let from = (offset + stored.len() as u64).saturating_sub(growing.base()) as usize;
        let bytes = growing.tail.get(from..from + tail.len());
        tail.copy_from_slice(bytes.ok_or(ShareError::NoObject(object))?);
        self.read_parts(&mut [(object, growing.run, offset, stored)])
    }

    /// Makes an object durable: its last part, and then its note.
    pub fn finish(&self, object: Object) -> Result<()> {
        let mut growing = self.take(object)?;
        let done = self.end(object, &mut growing);
        match done {
            Ok(len) => drop(self.inside().whole.insert(object, (growing.run, len))),
            Err(_) => drop(self.inside().growing.insert(object, growing)),
        }
        done.map(drop)
    }

    fn end(&self, object: Object, growing: &mut Growing) -> Result<u64> {
        let len = growing.base() + growing.tail.len() as u64;
        if !growing.tail.is_empty() {
            self.put(&growing.run.part(object, growing.stored), &growing.tail)?;
        }
        self.notes.add(object, Note { run: growing.run, len })?;
        Ok(len)
    }

    /// Reads parts of objects, finished or not, all at once.
    pub fn read_all(&self, reads: &mut [(Object, u64, &mut [u8])]) -> Result<()> {
        let mut whole = Vec::with_capacity(reads.len());
        for (object, offset, into) in reads {
            let run = self.inside().whole.get(object).map(|it| it.0);
            if let Some(run) = run {
                whole.push((*object, run, *offset, &mut **into));
                continue;
            }
            let growing = self.take(*object)?;
            let done = self.read_growing(*object, &growing, *offset, into);
            self.inside().growing.insert(*object, growing);
            done?;
        }
        self.read_parts(&mut whole)
    }

    fn read_parts(&self, reads: &mut [(Object, Run, u64, &mut [u8])]) -> Result<()> {
        let mut names = Vec::new();
        let mut pieces = Vec::new();
        for (object, run, offset, into) in reads.iter_mut() {
            let (mut at, mut rest) = (*offset, &mut **into);
            while !rest.is_empty() {
                let within = at % run.part_bytes;
                let take = (run.part_bytes - within).min(rest.len() as u64) as usize;
                let (piece, after) = rest.split_at_mut(take);
                names.push(run.part(*object, at / run.part_bytes));
                pieces.push((within, piece));
                (at, rest) = (at + take as u64, after);
            }
        }
        let named = names.iter().zip(pieces);
        let mut reads: Vec<ReadAt<'_>> =
            named.map(|(object, (offset, buf))| ReadAt { object, offset, buf }).collect();
        if reads.is_empty() { Ok(()) } else { Ok(self.store()?.read(&mut reads)?) }
    }

    /// Deletes an object: at once by its note, and its parts when the store is there.
    pub fn delete(&self, object: Object) -> Result<()> {
        let (whole, growing) = {
            let mut inside = self.inside();
            (inside.whole.remove(&object), inside.growing.remove(&object))
        };
        self.notes.remove(object)?;
        let whole = whole.iter().flat_map(|(run, len)| run.parts(object, *len));
        self.deleting.add(whole.map(|(name, _)| name).collect::<Vec<_>>());
        self.deleting.add(growing.iter().flat_map(|it| it.names(object)).collect::<Vec<_>>());
        Ok(())
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.deleting.end();
    }
}

/// Parts that are to be deleted. What a server leaves here, the next start finds.
#[derive(Default)]
struct Deleting {
    waits: Mutex<(BTreeSet<String>, bool)>,
    came: Condvar,
}

impl Deleting {
    fn waits(&self) -> MutexGuard<'_, (BTreeSet<String>, bool)> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, names: impl IntoIterator<Item = String>) {
        self.waits().0.extend(names);
        self.came.notify_all();
    }

    fn end(&self) {
        self.waits().1 = true;
        self.came.notify_all();
    }

    fn begin(this: &Arc<Self>, store: Arc<dyn Objects>) -> Result<()> {
        let this = Arc::clone(this);
        let work = move || {
            while let Some(names) = this.next() {
                let refs: Vec<&str> = names.iter().map(String::as_str).collect();
                if store.delete(&refs).is_err() {
                    this.pause();
                    this.add(names);
                }
            }
        };
        #[expect(clippy::disallowed_methods, reason = "the one thread that deletes behind")]
        let thread = thread::Builder::new().name("tables".into()).spawn(work);
        thread.map(drop).map_err(|error| StoreError::io("tables", error).into())
    }

    /// Names to delete; none at the end.
    fn next(&self) -> Option<Vec<String>> {
        let is_idle = |waits: &mut (BTreeSet<String>, bool)| waits.0.is_empty() && !waits.1;
        let waited = self.came.wait_while(self.waits(), is_idle);
        let mut waits = waited.unwrap_or_else(PoisonError::into_inner);
        let count = waits.0.len().min(DELETED_AT_ONCE);
        let names: Vec<String> = (0..count).filter_map(|_| waits.0.pop_first()).collect();
        (!waits.1).then_some(names)
    }

    fn pause(&self) {
        let ended = |waits: &mut (BTreeSet<String>, bool)| !waits.1;
        drop(self.came.wait_timeout_while(self.waits(), PAUSE, ended));
    }
}
