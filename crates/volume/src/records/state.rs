//! The client's state at rest: a sealed checkpoint and a log of sealed deltas on it, twice.
//!
//! Two pairs of objects are used in turn. Each commit adds its delta to the logs of both, so each
//! pair alone has the newest state: one on a newer checkpoint, and one on the checkpoint before it.
//! The next checkpoint takes the place of the older one. So damage to either pair costs nothing,
//! and the next commit puts a checkpoint in its place. All sizes follow from public numbers
//! (docs/format.md §"State", docs/decisions/0041-two-of-what-is-small.md).

mod pair;

use crate::damage::DamagedPlace;
use crate::records::commit::{CommitRecord, StatePair};
use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, Sealer, TAG_BYTES, VolumeId, digest};
use oblivio_store::{Held, ReadAt, Slots, WriteAt};
use pair::{PAIRS, WrongPair, failure, passed, read_one};
use std::ops::Range;

use zerocopy::FromBytes;
use zerocopy::little_endian::U64;

/// The version with a table of computers; version 1 has none.
const VERSION: u64 = 2;
const WITHOUT_TABLE: u64 = 1;
/// A log grows no longer than its checkpoint, or than this if that is more, until the next
/// checkpoint.
pub(crate) const LEAST_LOG: u64 = 256 << 10;

/// A second pair of at most this many bytes is checked at each opening; a longer one only when all
/// is inspected.
const CHECKED_AT_OPENING: u64 = 16 << 20;

/// The first object of the first pair.
pub const STATE_OBJECT: &str = PAIRS[0][0];

/// The pair of objects for checkpoint number `generation`.
fn index(generation: u64) -> usize {
    (generation % 2) as usize
}

/// An opened checkpoint or delta.
#[derive(Clone, Debug)]
pub struct Plain {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it has a table of computers.
    pub(crate) has_table: bool,
}

/// A state that was read.
pub struct LoadedState {
    /// Its checkpoint and deltas, oldest first.
    pub plains: Vec<Plain>,
    /// A pair that is damaged. If it is the first, the other one had to do.
    pub damaged: Option<DamagedPlace>,
    /// Whether that may be where a commit was cut off: its checkpoint takes the place of the second
    /// pair before its record says so.
    pub may_be_remains: bool,
}

/// The deltas of a log that was read whole, with their digests. The other log has the same bytes
/// for the same commits: to compare them costs far less than another digest.
#[derive(Default)]
struct KnownDeltas {
    log: Vec<u8>,
    /// The commit before the first.
    base_epoch: u64,
    deltas: Vec<(Range<usize>, [u8; 32])>,
}

impl KnownDeltas {
    /// The digest of the delta of a commit.
    fn digest(&self, epoch: u64, delta: &[u8]) -> [u8; 32] {
        let at = epoch.checked_sub(self.base_epoch + 1);
        match at.and_then(|at| self.deltas.get(at as usize)) {
            Some((range, known)) if self.log[range.clone()] == *delta => *known,
            _ => digest(delta),
        }
    }
}

/// The places of the state, and its current commit.
pub struct StateLog {
    volume: VolumeId,
    sealer: Sealer,
    record: CommitRecord,
    /// Lengths of both pairs' objects: checkpoint and log of each.
    lengths: [[u64; 2]; 2],
    /// Whether each pair is known not to be what was written.
    damaged: [bool; 2],
}

impl StateLog {
    /// A log without any commit.
    pub fn new(volume: VolumeId, sealer: Sealer) -> Self {
        let record = CommitRecord::default();
        Self { volume, sealer, record, lengths: [[0; 2]; 2], damaged: [false; 2] }
    }

    /// The current commit.
    pub fn record(&self) -> &CommitRecord {
        &self.record
    }

    /// Bytes of both pairs' objects.
    pub fn length(&self) -> u64 {
        self.lengths.iter().flatten().sum()
    }

    /// Notes that an object reaches to `end`.
    fn wrote(&mut self, pair: usize, which: usize, end: u64) {
        let length = &mut self.lengths[pair][which];
        *length = end.max(*length);
    }

    /// Whether the next commit should write a checkpoint too: one is due, or a pair is missing.
    pub fn wants_checkpoint(&self) -> bool {
        let first = self.record.first();
        let due = first.log_bytes() > first.state_bytes().max(LEAST_LOG);
        due || self.record.second().is_none() || self.damaged != [false; 2]
    }

    /// Writes the state of the next commit: its delta to the log of each pair that goes on, and
    /// its checkpoint, if it has one, in place of the other pair. Both have room for a seal in
    /// front. Gives the record that makes it current, and the objects to make durable before.
    ///
    /// # Errors
    /// Those of the store and of the sealer.
    pub fn write(
        &mut self,
        store: &dyn Slots,
        delta: Option<Vec<u8>>,
        checkpoint: Option<Vec<u8>>,
    ) -> Result<(CommitRecord, Vec<&'static str>)> {
        let epoch = self.record.epoch() + 1;
        let (first, second) = (self.record.first(), self.record.second());
        let new = match checkpoint {
            None => None,
            Some(checkpoint) => Some(self.write_checkpoint(store, epoch, checkpoint)?),
        };
        let kept = match new {
            None => [Some(first), second],
            Some(new) => [Some(first), second].map(|pair| {
                pair.filter(|pair| index(pair.generation()) != index(new.generation()))
            }),
        };
        let mut objects = Vec::new();
        let mut going_on = Vec::new();
        if let Some(delta) = delta {
            let sealed = self.seal(Kind::Delta, epoch, delta)?;
            let data = [&(sealed.len() as u64).to_le_bytes()[..], &sealed].concat();
            let of_data = digest(&data);
            for pair in kept.into_iter().flatten() {
                let [_, log] = PAIRS[index(pair.generation())];
                store.write(&[WriteAt::new(log, pair.log_bytes(), &data)])?;
                let pair = pair.with_delta(data.len() as u64, chain(&pair.digest(), &of_data));
                self.wrote(index(pair.generation()), 1, pair.log_bytes());
                objects.push(log);
                going_on.push(pair);
            }
        }
        // Before the first commit there is nothing to go on from: both pairs get the checkpoint.
        let twin = new.filter(|_| epoch == 1).map(|new| {
            StatePair::new(new.generation() - 1, epoch, new.state_bytes(), new.digest())
        });
        let mut pairs = new.into_iter().chain(twin).chain(going_on);
        let first = pairs.next().unwrap_or_default();
        Ok((CommitRecord::new(epoch, first, pairs.next()), objects))
    }

    /// Stores a checkpoint durably in place of the damaged pair or the older one; of a new volume,
    /// in both.
    fn write_checkpoint(
        &mut self,
        store: &dyn Slots,
        epoch: u64,
        begun: Vec<u8>,
    ) -> Result<StatePair> {
        let first = self.record.first().generation();
        // A checkpoint takes the place of the first pair only if that is damaged.
        let steps = if self.damaged[index(first)] { 2 } else { 1 };
        let generation = first + steps;
        let data = self.seal(Kind::State, epoch, begun)?;
        let pairs = if epoch == 1 { vec![0, 1] } else { vec![index(generation)] };
        for pair in pairs {
            if self.damaged[pair] {
                // To write over a part of a page, the system reads the rest, which it perhaps
                // cannot.
                cut(store, PAIRS[pair])?;
            }
            store.write_durable(PAIRS[pair][0], 0, &data)?;
            self.wrote(pair, 0, data.len() as u64);
            self.damaged[pair] = false;
        }
        Ok(StatePair::new(generation, epoch, data.len() as u64, digest(&data)))
    }

    /// Makes this record the current commit.
    pub fn committed(&mut self, record: CommitRecord) {
        self.record = record;
    }

    /// Reads a commit's state from its first pair, or from the second one if that is damaged.
    ///
    /// # Errors
    /// `Tampered` names the object that differs from the commit, if none is whole; that of the
    /// store, if it can read none.
    pub fn load(&mut self, store: &dyn Held, record: CommitRecord) -> Result<LoadedState> {
        let first = passed(self.read_pair(store, record.first(), record.epoch()))?;
        self.damaged = [false; 2];
        let mut may_be_remains = false;
        let (plains, damaged) = match (first, record.second()) {
            (Ok((plains, _)), None) => (plains, None),
            (Ok((plains, known)), Some(second)) => {
                let small = second.state_bytes() + second.log_bytes() <= CHECKED_AT_OPENING;
                let wrong = match small {
                    true => self.wrong_pair(store, second, record.epoch(), &known)?,
                    false => self.unwritable_pair(store, second)?,
                };
                may_be_remains = wrong.as_ref().is_some_and(|wrong| wrong.error.is_none());
                (plains, wrong.map(|wrong| wrong.place))
            }
            (Err(wrong), None) => return Err(failure(wrong, None)),
            (Err(wrong), Some(second)) => {
                match passed(self.read_pair(store, second, record.epoch()))? {
                    Ok((plains, _)) => {
                        self.damaged[index(record.first().generation())] = true;
                        (plains, Some(wrong.place))
                    }
                    Err(too) => return Err(failure(wrong, Some(too.place))),
                }
            }
        };
        self.record = record;
        for (pair, objects) in PAIRS.into_iter().enumerate() {
            for (which, object) in objects.into_iter().enumerate() {
                let length = store.len(object)?.unwrap_or(0);
                self.wrote(pair, which, length);
            }
        }
        Ok(LoadedState { plains, damaged, may_be_remains })
    }

    /// Reads both pairs again; gives what is not as it was written. The next commit makes it whole.
    ///
    /// # Errors
    /// That of a store that can read neither.
    pub fn inspect(&mut self, store: &dyn Held) -> Result<Vec<DamagedPlace>> {
        let record = self.record;
        let pairs = [Some(record.first()), record.second()].into_iter().flatten();
        let mut wrong = Vec::new();
        for pair in pairs {
            wrong.extend(self.wrong_pair(store, pair, record.epoch(), &KnownDeltas::default())?);
        }
        if wrong.len() == 2 && wrong.iter().all(|wrong| wrong.error.is_some()) {
            return Err(failure(wrong.remove(0), None));
        }
        Ok(wrong.into_iter().map(|wrong| wrong.place).collect())
    }

    /// Notes and gives a pair whose end cannot be read, where the next delta would go on.
    fn unwritable_pair(&mut self, store: &dyn Held, pair: StatePair) -> Result<Option<WrongPair>> {
        let [state, log] = PAIRS[index(pair.generation())];
        let (object, end) = match pair.log_bytes() {
            0 => (state, pair.state_bytes()),
            end => (log, end),
        };
        let (offset, mut last) = (end.saturating_sub(1), [0]);
        let read = read_one(store, &mut ReadAt { object, offset, buf: &mut last });
        let wrong = passed(read)?.err();
        self.damaged[index(pair.generation())] |= wrong.is_some();
        Ok(wrong)
    }

    /// Notes and gives a pair that is not what was written. Its digest tells, so that one that is
    /// whole need not be opened.
    fn wrong_pair(
        &mut self,
        store: &dyn Held,
        pair: StatePair,
        newest: u64,
        known: &KnownDeltas,
    ) -> Result<Option<WrongPair>> {
        let same = self.read_sealed(store, pair).is_ok_and(|(sealed, deltas)| {
            let mut now = digest(&sealed);
            for (epoch, delta) in (pair.base_epoch() + 1..).zip(deltas_of(&deltas)) {
                let Some((whole, _)) = delta else { return false };
                now = chain(&now, &known.digest(epoch, whole));
            }
            now == pair.digest()
        });
        if same {
            return Ok(None);
        }
        let wrong = passed(self.read_pair(store, pair, newest))?.err();
        self.damaged[index(pair.generation())] |= wrong.is_some();
        Ok(wrong)
    }

    /// Reads and opens a checkpoint and its deltas up to a commit.
    fn read_pair(
        &mut self,
        store: &dyn Held,
        pair: StatePair,
        newest: u64,
    ) -> std::result::Result<(Vec<Plain>, KnownDeltas), WrongPair> {
        let [state, log] = PAIRS[index(pair.generation())];
        let (sealed, deltas) = self.read_sealed(store, pair)?;
        let (mut now, mut epoch) = (digest(&sealed), pair.base_epoch());
        let (mut known, mut at) = (Vec::new(), 0);
        let wrong = WrongPair::new;
        let first = self.open(Kind::State, epoch, &sealed);
        let mut plain = vec![first.ok_or_else(|| wrong(state, "does not open"))?];
        for delta in deltas_of(&deltas) {
            epoch += 1;
            let (whole, body) = delta.ok_or_else(|| wrong(log, "does not parse"))?;
            let of_delta = digest(whole);
            known.push((at..at + whole.len(), of_delta));
            at += whole.len();
            now = chain(&now, &of_delta);
            let opened = self.open(Kind::Delta, epoch, body);
            plain.push(opened.ok_or_else(|| wrong(log, "does not open"))?);
        }
        if now != pair.digest() || epoch != newest {
            return Err(wrong(state, "and its log are not the committed ones"));
        }
        Ok((plain, KnownDeltas { log: deltas, base_epoch: pair.base_epoch(), deltas: known }))
    }

    /// Reads a checkpoint and its log.
    fn read_sealed(
        &self,
        store: &dyn Held,
        pair: StatePair,
    ) -> std::result::Result<(Vec<u8>, Vec<u8>), WrongPair> {
        let [state, log] = PAIRS[index(pair.generation())];
        let mut sealed = vec![0; pair.state_bytes() as usize];
        let mut deltas = vec![0; pair.log_bytes() as usize];
        let mut reads = vec![ReadAt { object: state, offset: 0, buf: &mut sealed }];
        if !deltas.is_empty() {
            reads.push(ReadAt { object: log, offset: 0, buf: &mut deltas });
        }
        if store.read(&mut reads).is_err() {
            // One by one: which of them it is, and whether it is not merely an outage.
            reads.iter_mut().try_for_each(|read| read_one(store, read))?;
        }
        Ok((sealed, deltas))
    }

    /// Seals in place; `begun` has room for the seal in front.
    fn seal(&mut self, kind: Kind, epoch: u64, mut begun: Vec<u8>) -> Result<Vec<u8>> {
        begun.resize(begun.len() + TAG_BYTES, 0);
        let place = self.place(kind, epoch, VERSION);
        self.sealer.seal(&place, &mut begun).map_err(|error| Error::Closed(error.to_string()))?;
        Ok(begun)
    }

    fn open(&mut self, kind: Kind, epoch: u64, sealed: &[u8]) -> Option<Plain> {
        let mut opened = |version| {
            let place = self.place(kind, epoch, version);
            let bytes = self.sealer.open_vec(&place, sealed).ok()?;
            Some(Plain { bytes, has_table: version != WITHOUT_TABLE })
        };
        opened(VERSION).or_else(|| opened(WITHOUT_TABLE))
    }

    fn place(&self, kind: Kind, epoch: u64, version: u64) -> Place {
        Place { volume: self.volume, kind, index: epoch, version }
    }
}

/// The deltas of a log, each with its length in front, and without; `None` for one that does not
/// parse.
fn deltas_of(mut rest: &[u8]) -> impl Iterator<Item = Option<(&[u8], &[u8])>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let split = U64::ref_from_prefix(rest).ok().and_then(|(len, body)| {
            let body = body.get(..len.get() as usize)?;
            Some((rest.split_at(8 + body.len()), body))
        });
        let Some(((whole, following), body)) = split else {
            rest = &[];
            return Some(None);
        };
        rest = following;
        Some(Some((whole, body)))
    })
}

/// Empties the objects of a pair.
fn cut(store: &dyn Slots, pair: [&str; 2]) -> Result<()> {
    for object in pair {
        if store.len(object)?.is_some_and(|len| len > 0) {
            store.truncate(object, 0)?;
        }
    }
    Ok(())
}

/// The digest of everything up to and including a delta with this digest.
fn chain(before: &[u8; 32], delta: &[u8; 32]) -> [u8; 32] {
    digest(&[*before, *delta].concat())
}
