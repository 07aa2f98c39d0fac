//! The objects of the tree: their names, and the engine's reads and writes on them.
//!
//! `b-S-L-K` has the buckets of level L that window K rewrote, end to end; `p-S-N` is the part of
//! commit N. S is the session that stored it, by its random name, so no two sessions ever store the
//! same name. All of it follows from the counter of the windows and the list of sessions.

use crate::{Error, Result};
use oblivio_engine::tree::{Spot, Windows};
use oblivio_engine::{BucketId, Carrier, Level, Read, Write};
use oblivio_store::{ReadAt, Store, WriteAt};
use std::collections::BTreeMap;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The most sessions whose objects a volume still has.
pub(super) const MOST_SPANS: usize = 4096;

/// A session, and the first window and commit that are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The random part of its name.
    pub session: u64,
    /// Its number.
    pub number: u64,
    pub window: u64,
    pub commit: u64,
}

/// As stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct StoredSpan {
    session: U64,
    number: U64,
    window: U64,
    commit: U64,
}

impl StoredSpan {
    pub fn new(span: &Span) -> Self {
        let Span { session, number, window, commit } = *span;
        let [session, number, window, commit] = [session, number, window, commit].map(U64::new);
        Self { session, number, window, commit }
    }

    pub fn get(&self) -> Span {
        let [session, number] = [self.session.get(), self.number.get()];
        Span { session, number, window: self.window.get(), commit: self.commit.get() }
    }
}

/// Which objects there are.
pub(super) struct Places {
    pub rule: Windows,
    /// Ascending, by window and by commit.
    pub spans: Vec<Span>,
    /// Windows so far: reads find what these wrote.
    pub done: u64,
    /// Objects begun and not known to be durable.
    begun: Vec<String>,
    /// Objects that the windows since the last commit replaced.
    replaced: Vec<String>,
}

impl Places {
    pub fn new(rule: Windows) -> Self {
        Self { rule, spans: Vec::new(), done: 0, begun: Vec::new(), replaced: Vec::new() }
    }

    /// Begins a session, after `commit` commits.
    pub fn begin(&mut self, session: u64, number: u64, commit: u64) -> Result<()> {
        self.spans.push(Span { session, number, window: self.done, commit: commit + 1 });
        if self.spans.len() > MOST_SPANS {
            return Err(Error::Closed("objects of too many sessions are current".into()));
        }
        Ok(())
    }

    /// Forgets sessions of which no object is current, when the leaves are at `depth` and the parts
    /// from `commit` on are kept.
    pub fn forget(&mut self, depth: Level, commit: u64) {
        let round = 1u64 << depth.0.saturating_sub(self.rule.log_turns).min(62);
        let oldest = self.done.saturating_sub(round);
        // A session ends where the next one begins.
        let void = |next: &Span| next.window <= oldest && next.commit <= commit;
        let count = self.spans.iter().skip(1).take_while(|next| void(next)).count();
        self.spans.drain(..count);
    }

    /// The object of the buckets of a level that a window wrote.
    pub fn object(&self, level: Level, window: u64) -> Result<String> {
        let span = self.spans.iter().rev().find(|span| span.window <= window);
        let span = span.ok_or_else(|| Error::Tampered("a window has no session".into()))?;
        Ok(Self::object_of(span.session, level, window))
    }

    /// The object that a session stores for a level of a window.
    pub fn object_of(session: u64, level: Level, window: u64) -> String {
        format!("b-{session:016x}-{:02x}-{window:012x}", level.0)
    }

    /// The object that it stores for the part of a commit.
    pub fn part_of(session: u64, commit: u64) -> String {
        format!("p-{session:016x}-{commit:012x}")
    }

    /// The object of the part of a commit, and the number of its session.
    pub fn part(&self, commit: u64) -> Result<(String, u64)> {
        let span = self.spans.iter().rev().find(|span| span.commit <= commit);
        let span = span.ok_or_else(|| Error::Tampered("a part has no session".into()))?;
        Ok((Self::part_of(span.session, commit), span.number))
    }

    /// Stores an object, without waiting for it.
    pub fn store(&mut self, store: &dyn Store, object: String, data: &[u8]) -> Result<()> {
        store.write(&[WriteAt::new(&object, 0, data)])?;
        self.begun.push(object);
        Ok(())
    }

    /// Waits until all begun objects are durable.
    pub fn settle(&mut self, store: &dyn Store) -> Result<()> {
        let names: Vec<&str> = self.begun.iter().map(String::as_str).collect();
        store.sync(&names)?;
        self.begun.clear();
        Ok(())
    }

    /// What the windows since the last call replaced, once a commit is current.
    pub fn take_replaced(&mut self) -> Vec<String> {
        std::mem::take(&mut self.replaced)
    }
}

/// The engine's storage during one job.
pub(super) struct Objects<'a> {
    pub store: &'a dyn Store,
    pub places: &'a mut Places,
}

/// The reads of one object.
#[derive(Default)]
struct Wanted<'a> {
    bucket_bytes: usize,
    /// By their place in the object.
    buckets: Vec<(u64, &'a mut [u8])>,
}

impl Objects<'_> {
    fn spot(&self, bucket: u64, done: u64) -> Result<Spot> {
        let spot = self.places.rule.spot(BucketId(bucket), done);
        spot.ok_or_else(|| Error::Closed("a bucket that no window wrote".into()))
    }
}

impl Carrier for Objects<'_> {
    type Error = Error;

    /// Objects that are wanted as a whole are read as a whole.
    fn read(&mut self, mut read: Read<'_>) -> Result<()> {
        let mut objects: BTreeMap<(Level, u64), Wanted<'_>> = BTreeMap::new();
        for (extent, buf) in read.parts() {
            let spot = self.spot(extent.offset, self.places.done)?;
            let wanted = objects.entry((spot.level, spot.window)).or_default();
            wanted.bucket_bytes = buf.len();
            wanted.buckets.push((spot.index, buf));
        }
        let turns = self.places.rule.turns();
        let names = objects.keys().map(|&(level, window)| self.places.object(level, window));
        let names: Vec<String> = names.collect::<Result<_>>()?;
        let mut whole: Vec<(&String, Vec<u8>, Wanted<'_>)> = Vec::new();
        let mut reads = Vec::new();
        for (object, wanted) in names.iter().zip(objects.into_values()) {
            let bytes = wanted.bucket_bytes;
            if turns > 1 && wanted.buckets.len() as u64 == turns {
                whole.push((object, vec![0; bytes * turns as usize], wanted));
                continue;
            }
            for (index, buf) in wanted.buckets {
                reads.push(ReadAt { object, offset: index * bytes as u64, buf });
            }
        }
        for (object, buf, _) in &mut whole {
            reads.push(ReadAt { object, offset: 0, buf });
        }
        if !reads.is_empty() {
            self.store.read(&mut reads)?;
        }
        for (_, bytes, wanted) in &mut whole {
            for (index, buf) in &mut wanted.buckets {
                let at = *index as usize * wanted.bucket_bytes;
                buf.copy_from_slice(&bytes[at..at + wanted.bucket_bytes]);
            }
        }
        Ok(())
    }

    /// A write is a window's: whole objects, one for each level.
    fn write(&mut self, write: Write<'_>) -> Result<()> {
        let window = self.places.done;
        let turns = self.places.rule.turns() as usize;
        let mut objects: BTreeMap<Level, (usize, Vec<u8>)> = BTreeMap::new();
        for piece in write.parts() {
            let spot = self.spot(piece.extent.offset, window + 1)?;
            let bytes = piece.data.len();
            let (count, object) = objects.entry(spot.level).or_default();
            object.resize(bytes * turns, 0);
            let at = spot.index as usize * bytes;
            object[at..at + bytes].copy_from_slice(piece.data);
            *count += usize::from(spot.window == window);
        }
        for (level, (count, data)) in objects {
            if count != turns {
                return Err(Error::Closed("a window did not write whole objects".into()));
            }
            let object = self.places.object(level, window)?;
            self.places.store(self.store, object, &data)?;
        }
        Ok(())
    }
}

impl Places {
    /// Notes that a window is done whose leaves are at `depth`: `wrote` says if a level had objects
    /// at a window.
    pub fn did_window(&mut self, depth: Level, had: impl Fn(Level, u64) -> bool) -> Result<()> {
        let window = self.done;
        self.done += 1;
        for level in (self.rule.pool_levels..=depth.0).map(Level) {
            if let Some(before) = self.rule.before(level, window)
                && had(level, before)
            {
                self.replaced.push(self.object(level, before)?);
            }
        }
        Ok(())
    }
}
