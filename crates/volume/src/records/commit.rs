//! The commit record: two small slots, written in turn, that make a new state current.
//!
//! A crash while one slot is written leaves the other, with the previous commit.

use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, SEAL_OVERHEAD, Sealer, VolumeId};
use oblivio_store::{Log, ReadAt};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The object that holds both records.
pub const COMMIT_OBJECT: &str = "commit";
/// Bytes of each slot: a page, so that one write never tears both.
const SLOT_BYTES: u64 = 4096;
/// For a commit whose state has a table of computers. Version 1 has none.
const VERSION: u32 = 2;
const WITHOUT_TABLE: u32 = 1;
/// The version in its `Place`.
const PLACE_VERSION: u64 = 1;

/// The content of a commit.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(C)]
pub struct CommitRecord {
    version: U32,
    reserved: U32,
    epoch: U64,
    generation: U64,
    base_epoch: U64,
    state_bytes: U64,
    log_bytes: U64,
    digest: [u8; 32],
}

impl CommitRecord {
    /// The commit's number.
    pub fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    /// The number of its checkpoint.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// The commit that wrote that checkpoint.
    pub fn base_epoch(&self) -> u64 {
        self.base_epoch.get()
    }

    /// Bytes of the sealed checkpoint.
    pub fn state_bytes(&self) -> u64 {
        self.state_bytes.get()
    }

    /// Bytes of the log of deltas up to this commit.
    pub fn log_bytes(&self) -> u64 {
        self.log_bytes.get()
    }

    /// The digest of checkpoint and log; identifies the commit.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The commit after this one, on the same checkpoint.
    pub fn next_epoch(self) -> Self {
        Self { version: U32::new(VERSION), epoch: U64::new(self.epoch() + 1), ..self }
    }

    /// The commit after this one, on a new checkpoint.
    pub fn next_generation(self) -> Self {
        let next = self.next_epoch();
        let generation = U64::new(self.generation() + 1);
        Self { generation, base_epoch: next.epoch, log_bytes: U64::new(0), ..next }
    }

    /// With this checkpoint.
    pub fn with_checkpoint(self, state_bytes: u64, digest: [u8; 32]) -> Self {
        Self { state_bytes: U64::new(state_bytes), digest, ..self }
    }

    /// With one more delta.
    pub fn with_delta(self, bytes: u64, digest: [u8; 32]) -> Self {
        Self { log_bytes: U64::new(self.log_bytes() + bytes), digest, ..self }
    }
}

fn place(volume: VolumeId, slot: u64) -> Place {
    Place { volume, kind: Kind::Commit, index: slot, version: PLACE_VERSION }
}

/// Writes and syncs a record; on return, the commit is the current one.
///
/// # Errors
/// Those of the store and of the sealer.
pub fn write_commit(
    store: &dyn Log,
    sealer: &mut Sealer,
    volume: VolumeId,
    record: &CommitRecord,
) -> Result<()> {
    let slot = record.epoch() % 2;
    let data = sealer
        .seal_vec(&place(volume, slot), record.as_bytes())
        .map_err(|error| Error::Closed(error.to_string()))?;
    let offset = slot * SLOT_BYTES;
    Ok(store.write_durable(COMMIT_OBJECT, offset, &data)?)
}

type Sealed = [u8; size_of::<CommitRecord>() + SEAL_OVERHEAD];

/// The content of the slots, in one trip unless one cannot be read.
fn read_slots(store: &dyn Log) -> Vec<(u64, Sealed)> {
    fn at(slot: u64, buf: &mut Sealed) -> ReadAt<'_> {
        ReadAt { object: COMMIT_OBJECT, offset: slot * SLOT_BYTES, buf }
    }
    let mut both: [Sealed; 2] = [[0; size_of::<Sealed>()]; 2];
    let [first, second] = &mut both;
    if store.read(&mut [at(0, first), at(1, second)]).is_ok() {
        return (0..).zip(both).collect();
    }
    let alone = |(slot, mut sealed): (u64, Sealed)| {
        store.read(&mut [at(slot, &mut sealed)]).is_ok().then_some((slot, sealed))
    };
    (0..).zip(both).filter_map(alone).collect()
}

/// Reads the newest commit that opens, and whether there is one that does not.
///
/// # Errors
/// `Tampered` if none opens, `Unsupported` for an unknown version.
pub fn read_commit(
    store: &dyn Log,
    sealer: &mut Sealer,
    volume: VolumeId,
) -> Result<(CommitRecord, bool)> {
    let (mut newest, mut damaged): (Option<CommitRecord>, bool) = (None, false);
    for (slot, mut sealed) in read_slots(store) {
        let written = sealed.iter().any(|&byte| byte != 0);
        let Ok(bytes) = sealer.open(&place(volume, slot), &mut sealed) else {
            damaged |= written;
            continue;
        };
        let Ok(record) = CommitRecord::read_from_bytes(bytes) else { continue };
        let known = [VERSION, WITHOUT_TABLE].contains(&record.version.get());
        if !known || record.reserved.get() != 0 {
            return Err(Error::Unsupported("the commit record has an unknown version".into()));
        }
        if record.epoch() % 2 == slot && newest.is_none_or(|newest| newest.epoch() < record.epoch())
        {
            newest = Some(record);
        }
    }
    let none = || Error::Tampered(format!("{COMMIT_OBJECT}: no commit record opens"));
    Ok((newest.ok_or_else(none)?, damaged))
}
