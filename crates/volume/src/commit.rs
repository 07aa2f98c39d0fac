//! The commit record: two small slots, written in turn, that make a new state current.
//!
//! A crash while one slot is written leaves the other, which is the commit before.

use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, SEAL_OVERHEAD, Sealer, VolumeId};
use oblivio_store::{ReadAt, Store, WriteAt};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The object that holds both records.
pub const COMMIT_OBJECT: &str = "commit";
/// Bytes of each slot: a page, so that the two are never torn by one write.
const SLOT_BYTES: u64 = 4096;
const VERSION: u32 = 1;

/// What a commit says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CommitRecord {
    version: U32,
    reserved: U32,
    epoch: U64,
    state_bytes: U64,
    state_digest: [u8; 32],
}

impl CommitRecord {
    /// The record of commit number `epoch`.
    pub fn new(epoch: u64, state_bytes: u64, state_digest: [u8; 32]) -> Self {
        Self {
            version: U32::new(VERSION),
            reserved: U32::new(0),
            epoch: U64::new(epoch),
            state_bytes: U64::new(state_bytes),
            state_digest,
        }
    }

    /// The commit's number.
    pub fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    /// The length of the sealed state that it makes current.
    pub fn state_bytes(&self) -> u64 {
        self.state_bytes.get()
    }

    /// BLAKE3 of that sealed state; identifies the commit.
    pub fn state_digest(&self) -> [u8; 32] {
        self.state_digest
    }
}

/// The name of the state object of a commit; two take turns.
pub fn state_object(epoch: u64) -> &'static str {
    if epoch.is_multiple_of(2) { "state-0" } else { "state-1" }
}

fn place(volume: VolumeId, slot: u64) -> Place {
    Place { volume, kind: Kind::Commit, index: slot, version: u64::from(VERSION) }
}

/// Writes and syncs a record; when this returns, the commit is the current one.
///
/// # Errors
/// Those of the store and of the sealer.
pub fn write_commit(
    store: &dyn Store,
    sealer: &mut Sealer,
    volume: VolumeId,
    record: &CommitRecord,
) -> Result<()> {
    let slot = record.epoch() % 2;
    let data = sealer
        .seal_vec(&place(volume, slot), record.as_bytes())
        .map_err(|error| Error::Closed(error.to_string()))?;
    store.write(&[WriteAt { object: COMMIT_OBJECT, offset: slot * SLOT_BYTES, data: &data }])?;
    Ok(store.sync(&[COMMIT_OBJECT])?)
}

/// Reads the newest commit.
///
/// # Errors
/// `Tampered` when there is none that opens.
pub fn read_commit(
    store: &dyn Store,
    sealer: &mut Sealer,
    volume: VolumeId,
) -> Result<CommitRecord> {
    let mut newest: Option<CommitRecord> = None;
    for slot in 0..2 {
        let mut sealed = [0; size_of::<CommitRecord>() + SEAL_OVERHEAD];
        let read = ReadAt { object: COMMIT_OBJECT, offset: slot * SLOT_BYTES, buf: &mut sealed };
        if store.read(&mut [read]).is_err() {
            continue;
        }
        let Ok(bytes) = sealer.open(&place(volume, slot), &mut sealed) else { continue };
        let Ok(record) = CommitRecord::read_from_bytes(bytes) else { continue };
        if record.version.get() != VERSION || record.reserved.get() != 0 {
            return Err(Error::Unsupported("the commit record has an unknown version".into()));
        }
        if record.epoch() % 2 != slot {
            continue;
        }
        if newest.is_none_or(|newest| newest.epoch() < record.epoch()) {
            newest = Some(record);
        }
    }
    newest.ok_or_else(|| Error::Tampered("no commit record opens".into()))
}
