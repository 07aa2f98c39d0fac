//! The objects of the tree: their names, and the engine's reads and writes on them.
//!
//! `b-S-L-K` has the buckets of level L that window K rewrote, end to end; `p-S-N` is the part of
//! commit N, and `r-S-N` the parity of the parts of its group up to there. S is the session that
//! stored it, by its random name, so no two sessions ever store the same name. All of it follows
//! from the counter of the windows and the list of sessions.
//!
//! Objects are sent while the volume goes on. The buckets of the last windows are read from memory,
//! stored or not: what is asked for never tells how fast the line is.

use super::cache::DiskCache;
use super::fetch::{Lacking, Source, Wanted};
use super::policy::MOST_PENDING;
use crate::session::OwnSession;
use crate::{Error, Result};
use oblivio_engine::tree::{BucketSpot, Windows};
use oblivio_engine::{BucketId, Carrier, Level, Read, Write};
use oblivio_store::Objects;
use std::collections::{BTreeMap, VecDeque};
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

/// An object of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub level: Level,
    pub window: u64,
    pub bytes: u64,
}

/// As stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct StoredMade {
    level: U64,
    window: U64,
    bytes: U64,
}

impl StoredMade {
    pub fn new(made: &Made) -> Self {
        let [level, window, bytes] =
            [u64::from(made.level.0), made.window, made.bytes].map(U64::new);
        Self { level, window, bytes }
    }

    pub fn get(&self) -> Made {
        // No level is as large: then no object of that name is there.
        let level = Level(u32::try_from(self.level.get()).unwrap_or(u32::MAX));
        Made { level, window: self.window.get(), bytes: self.bytes.get() }
    }
}

/// Which objects there are.
pub(super) struct Places {
    pub rule: Windows,
    /// Ascending, by window and by commit.
    pub spans: Vec<Span>,
    /// Windows so far: reads find what these wrote.
    pub done: u64,
    /// Objects of the windows since the last checkpoint.
    made: Vec<Made>,
    /// The buckets of the last windows, by level, from the oldest on.
    recent: VecDeque<(u64, BTreeMap<Level, Vec<u8>>)>,
    /// Objects that the windows since the last commit replaced.
    replaced: Vec<String>,
    /// The leaves of the paths that the last batch showed.
    pub shown: Vec<u64>,
    /// What the store lacks of them.
    pub lacking: Lacking,
    /// Those of which the last job put buckets into the disk cache.
    pub cached: Vec<String>,
}

impl Places {
    pub fn new(rule: Windows) -> Self {
        Self {
            rule,
            spans: Vec::new(),
            done: 0,
            made: Vec::new(),
            recent: VecDeque::new(),
            replaced: Vec::new(),
            shown: Vec::new(),
            lacking: Lacking::default(),
            cached: Vec::new(),
        }
    }

    /// Begins a session, after `commit` commits.
    pub fn begin(&mut self, session: u64, number: u64, commit: u64) -> Result<()> {
        self.spans.push(Span { session, number, window: self.done, commit: commit + 1 });
        if self.spans.len() > MOST_SPANS {
            return Err(Error::Closed("objects of too many sessions are current".into()));
        }
        Ok(())
    }

    /// Forgets sessions of which no object is stored, when the leaves are at `depth`, what windows
    /// before `window` replaced is gone, and parts before `commit`.
    pub fn forget(&mut self, depth: Level, window: u64, commit: u64) {
        let round = 1u64 << (depth.0 + 1).saturating_sub(self.rule.log_turns).min(62);
        let oldest = window.saturating_sub(round);
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

    /// The object of a bucket's newest version, if a window wrote one.
    pub fn object_with(&self, bucket: BucketId) -> Option<String> {
        let spot = self.rule.spot(bucket, self.done)?;
        self.object(spot.level, spot.window).ok()
    }

    /// The object that a session stores for a level of a window.
    pub fn object_of(session: u64, level: Level, window: u64) -> String {
        format!("b-{session:016x}-{:02x}-{window:012x}", level.0)
    }

    /// The object that it stores for the part of a commit.
    pub fn part_of(session: u64, commit: u64) -> String {
        format!("p-{session:016x}-{commit:012x}")
    }

    /// The object that it stores for the parity of parts up to that of a commit.
    pub fn parity_of(session: u64, commit: u64) -> String {
        format!("r-{session:016x}-{commit:012x}")
    }

    /// The session that made a commit.
    pub fn span_of(&self, commit: u64) -> Result<&Span> {
        let span = self.spans.iter().rev().find(|span| span.commit <= commit);
        span.ok_or_else(|| Error::Tampered("a part has no session".into()))
    }

    /// The object of the part of a commit, and the number of its session.
    pub fn part(&self, commit: u64) -> Result<(String, u64)> {
        let span = self.span_of(commit)?;
        Ok((Self::part_of(span.session, commit), span.number))
    }

    /// The objects of the windows since the last call. They are being stored.
    pub fn take_made(&mut self) -> Vec<Made> {
        std::mem::take(&mut self.made)
    }

    /// The buckets of an object, if its window is one of the last.
    fn remembered(&self, level: Level, window: u64) -> Option<&[u8]> {
        let (_, objects) = self.recent.iter().find(|(recent, _)| *recent == window)?;
        objects.get(&level).map(Vec::as_slice)
    }

    /// Keeps the buckets of a window, and forgets those of an older one.
    fn remember(&mut self, window: u64, objects: BTreeMap<Level, Vec<u8>>) {
        self.recent.push_back((window, objects));
        while self.recent.len() > MOST_PENDING {
            self.recent.pop_front();
        }
    }

    /// What the windows since the last checkpoint replaced so far.
    pub fn replaced(&self) -> &[String] {
        &self.replaced
    }

    /// What the windows since the last call replaced, once a commit is current.
    pub fn take_replaced(&mut self) -> Vec<String> {
        std::mem::take(&mut self.replaced)
    }
}

/// The engine's storage during one job.
pub(super) struct WindowObjects<'a> {
    pub store: &'a dyn Objects,
    pub session: &'a mut OwnSession,
    pub places: &'a mut Places,
    pub cache: Option<&'a mut DiskCache>,
}

impl WindowObjects<'_> {
    fn spot(&self, bucket: u64, done: u64) -> Result<BucketSpot> {
        let spot = self.places.rule.spot(BucketId(bucket), done);
        spot.ok_or_else(|| Error::Closed("a bucket that no window wrote".into()))
    }
}

impl Carrier for WindowObjects<'_> {
    type Error = Error;

    /// From memory, from the disk cache, and the rest from the store.
    fn read(&mut self, mut read: Read<'_>) -> Result<()> {
        let drawn = &read.shown[..read.shown.len().saturating_sub(read.scheduled)];
        self.places.shown = drawn.iter().map(|leaf| leaf.0).collect();
        let mut objects: BTreeMap<(Level, u64), Wanted<'_>> = BTreeMap::new();
        for (extent, buf) in read.parts() {
            let spot = self.spot(extent.offset, self.places.done)?;
            let wanted = objects.entry((spot.level, spot.window)).or_default();
            wanted.bucket_bytes = buf.len();
            wanted.buckets.push((spot.index, buf));
        }
        let turns = self.places.rule.turns();
        // First those that are cached once they are read.
        let (mut cached, mut far) = (Vec::new(), Vec::new());
        for ((level, window), mut wanted) in objects {
            if let Some(object) = self.places.remembered(level, window) {
                wanted.fill(object)?;
                continue;
            }
            let object = self.places.object(level, window)?;
            match self.cache.as_deref_mut().filter(|cache| cache.keeps(level)) {
                None => far.push((object, wanted)),
                Some(cache) => {
                    let absent = cache.read(&object, turns, &mut wanted.buckets);
                    wanted.buckets.retain(|(index, _)| absent.contains(index));
                    cached.push((object, wanted));
                }
            }
        }
        cached.retain(|(_, wanted)| !wanted.buckets.is_empty());
        let count = cached.len();
        cached.append(&mut far);
        let lacking = &mut self.places.lacking;
        let (store, session) = (self.store, &mut *self.session);
        Source { store, session, lacking, turns }.fetch(&mut cached)?;
        if let Some(cache) = self.cache.as_deref_mut() {
            cached.truncate(count);
            cached.retain(|(object, _)| self.places.lacking.left(object).is_none());
            for (object, wanted) in cached {
                let buckets: Vec<(u64, &[u8])> =
                    wanted.buckets.iter().map(|(index, buf)| (*index, &**buf)).collect();
                cache.add(&object, turns, &buckets);
                self.places.cached.push(object);
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
        let mut kept = BTreeMap::new();
        for (level, (count, data)) in objects {
            if count != turns {
                return Err(Error::Closed("a window did not write whole objects".into()));
            }
            let object = self.places.object(level, window)?;
            self.store.begin(&[(&object, &data)])?;
            if let Some(cache) = self.cache.as_deref_mut().filter(|cache| cache.keeps(level)) {
                cache.put(&object, turns as u64, &data);
            }
            self.places.made.push(Made { level, window, bytes: data.len() as u64 });
            kept.insert(level, data);
        }
        self.places.remember(window, kept);
        Ok(())
    }
}

impl Places {
    /// The levels and windows of the current objects of a tree whose leaves are at `depth`, level
    /// by level, and of some that never were.
    pub fn current(&self, depth: Level) -> impl Iterator<Item = (Level, u64)> {
        let (done, log_turns) = (self.done, self.rule.log_turns);
        (self.rule.pool_levels..=depth.0).map(Level).flat_map(move |level| {
            let period = 1u64 << (level.0 - log_turns);
            (done.saturating_sub(period)..done).map(move |window| (level, window))
        })
    }

    /// The objects that a window replaced, and some that never were.
    pub fn before(&self, depth: Level, window: u64) -> Result<Vec<String>> {
        let levels = (self.rule.pool_levels..=depth.0 + 1).map(Level);
        let before = levels.filter_map(|level| Some((level, self.rule.before(level, window)?)));
        let oldest = self.spans.first().map_or(0, |span| span.window);
        let known = before.filter(|&(_, window)| window >= oldest);
        known.map(|(level, window)| self.object(level, window)).collect()
    }

    /// Notes that a window is done whose leaves are at `depth`: `wrote` says if a level had objects
    /// at a window.
    pub fn did_window(&mut self, depth: Level, had: impl Fn(Level, u64) -> bool) -> Result<()> {
        let window = self.done;
        self.done += 1;
        for level in (self.rule.pool_levels..=depth.0).map(Level) {
            if let Some(before) = self.rule.before(level, window)
                && had(level, before)
            {
                let object = self.object(level, before)?;
                self.lacking.forget(&object);
                self.replaced.push(object);
            }
        }
        Ok(())
    }
}
