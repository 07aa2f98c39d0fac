//! The client's state at rest: a sealed checkpoint and a log of sealed deltas on it.
//!
//! Two pairs of objects are used in turn, so the next checkpoint never overwrites the pair of the
//! current commit. All sizes follow from public numbers (docs/format.md §"State").

use crate::records::commit::CommitRecord;
use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, Sealer, TAG_BYTES, VolumeId, digest};
use oblivio_store::{Log, ReadAt, StoreError};
use zerocopy::FromBytes;
use zerocopy::little_endian::U64;

/// The version with a table of computers; version 1 has none.
const VERSION: u64 = 2;
const WITHOUT_TABLE: u64 = 1;
/// A log grows no longer than its checkpoint, or than this if that is more.
pub(crate) const LEAST_LOG: u64 = 256 << 10;

/// The pair of objects for checkpoint number `generation`.
pub fn objects(generation: u64) -> [&'static str; 2] {
    if generation.is_multiple_of(2) { ["state-0", "log-0"] } else { ["state-1", "log-1"] }
}

/// An opened checkpoint or delta.
#[derive(Clone, Debug)]
pub struct Plain {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it has a table of computers.
    pub(crate) has_table: bool,
}

/// The places of the state, and its current commit.
pub struct StateLog {
    volume: VolumeId,
    sealer: Sealer,
    record: CommitRecord,
    /// Lengths of both pairs' objects: checkpoint and log of each.
    lengths: [[u64; 2]; 2],
}

impl StateLog {
    /// A log without any commit.
    pub fn new(volume: VolumeId, sealer: Sealer) -> Self {
        Self { volume, sealer, record: CommitRecord::default(), lengths: [[0; 2]; 2] }
    }

    /// The current commit.
    pub fn record(&self) -> &CommitRecord {
        &self.record
    }

    /// Bytes of both pairs' objects.
    pub fn length(&self) -> u64 {
        self.lengths.iter().flatten().sum()
    }

    /// Notes that an object of this generation reaches to `end`.
    fn wrote(&mut self, generation: u64, which: usize, end: u64) {
        let length = &mut self.lengths[(generation % 2) as usize][which];
        *length = end.max(*length);
    }

    /// Whether the next commit should write a checkpoint instead of a delta.
    pub fn wants_checkpoint(&self) -> bool {
        let record = &self.record;
        record.epoch() == 0 || record.log_bytes() > record.state_bytes().max(LEAST_LOG)
    }

    /// Stores a checkpoint durably, which has room for its seal in front; gives the record that
    /// makes it current.
    ///
    /// # Errors
    /// Those of the store and of the sealer.
    pub fn write_checkpoint(&mut self, store: &dyn Log, begun: Vec<u8>) -> Result<CommitRecord> {
        let record = self.record.next_generation();
        let [object, _] = objects(record.generation());
        let data = self.seal(Kind::State, record.epoch(), begun)?;
        store.write_durable(object, 0, &data)?;
        self.wrote(record.generation(), 0, data.len() as u64);
        Ok(record.with_checkpoint(data.len() as u64, digest(&data)))
    }

    /// Appends a delta durably, which has room for its seal in front; gives the record that makes
    /// it current.
    ///
    /// # Errors
    /// Those of the store and of the sealer.
    pub fn write_delta(&mut self, store: &dyn Log, begun: Vec<u8>) -> Result<CommitRecord> {
        let record = self.record.next_epoch();
        let [_, object] = objects(record.generation());
        let sealed = self.seal(Kind::Delta, record.epoch(), begun)?;
        let mut data = (sealed.len() as u64).to_le_bytes().to_vec();
        data.extend_from_slice(&sealed);
        store.write_durable(object, record.log_bytes(), &data)?;
        self.wrote(record.generation(), 1, record.log_bytes() + data.len() as u64);
        Ok(record.with_delta(data.len() as u64, chain(&record.digest(), &data)))
    }

    /// Makes this record the current commit.
    pub fn committed(&mut self, record: CommitRecord) {
        self.record = record;
    }

    /// Reads a commit's checkpoint and deltas, as plain bytes, oldest first.
    ///
    /// # Errors
    /// `Tampered` names the object that differs from the commit.
    pub fn load(&mut self, store: &dyn Log, record: CommitRecord) -> Result<Vec<Plain>> {
        let [state, log] = objects(record.generation());
        let wrong = |object: &str, why: &str| Error::Tampered(format!("{object} {why}"));
        let mut sealed = vec![0; record.state_bytes() as usize];
        let mut deltas = vec![0; record.log_bytes() as usize];
        let mut reads = vec![ReadAt { object: state, offset: 0, buf: &mut sealed }];
        if !deltas.is_empty() {
            reads.push(ReadAt { object: log, offset: 0, buf: &mut deltas });
        }
        store.read(&mut reads).map_err(|error| match error {
            StoreError::Missing { object } | StoreError::Short { object, .. } => {
                wrong(&object, "is missing or cut short")
            }
            error => error.into(),
        })?;
        let mut now = digest(&sealed);
        let mut epoch = record.base_epoch();
        let first = self.open(Kind::State, epoch, &sealed).ok_or(wrong(state, "does not open"))?;
        let mut plain = vec![first];
        let mut rest = &deltas[..];
        while !rest.is_empty() {
            epoch += 1;
            let torn = || wrong(log, "does not parse");
            let (len, body) = U64::ref_from_prefix(rest).map_err(|_| torn())?;
            let body = body.get(..len.get() as usize).ok_or_else(torn)?;
            let (whole, following) = rest.split_at(8 + body.len());
            now = chain(&now, whole);
            plain.push(self.open(Kind::Delta, epoch, body).ok_or(wrong(log, "does not open"))?);
            rest = following;
        }
        if now != record.digest() || epoch != record.epoch() {
            return Err(wrong(state, "and its log are not the committed ones"));
        }
        self.record = record;
        for generation in [record.generation(), record.generation() + 1] {
            for (which, object) in objects(generation).into_iter().enumerate() {
                let length = store.len(object)?.unwrap_or(0);
                self.wrote(generation, which, length);
            }
        }
        Ok(plain)
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

/// The digest of everything up to and including a delta.
fn chain(before: &[u8; 32], delta: &[u8]) -> [u8; 32] {
    let mut both = before.to_vec();
    both.extend_from_slice(&digest(delta));
    digest(&both)
}
