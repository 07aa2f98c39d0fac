//! What this computer has beside the folder: where it stands, and what it changed since.
//!
//! It is an object of the store beside, and no file of `trust::notes`: the changed extents lie
//! there too, and each means nothing without the other.

use super::entry::DIGEST;
use super::names::EpochId;
use crate::trust::ComputerId;
use crate::{Error, Result};
use oblivio_crypto::digest;
use oblivio_store::{Objects, PutMode, ReadAt, StoreError};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The object that says it.
pub const BASE_OBJECT: &str = "base";
const VERSION: u64 = 1;

/// Where this computer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its name, drawn when it first used the volume.
    pub computer: ComputerId,
    /// Its last act: an epoch, or a stand.
    pub act: u64,
    /// The number of its overlay. Changed extents of another overlay mean nothing.
    pub overlay: u64,
    /// The last session that made, or was about to make, epochs.
    pub session: u64,
    /// The epoch that its overlay changes; `None` before the first.
    pub on: Option<EpochId>,
    /// Whether a caller wrote something since that epoch. If not, what changed is only what an
    /// opening made of the log, and can be made again.
    pub dirty: bool,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Stored {
    version: U64,
    computer: [u8; 16],
    act: U64,
    overlay: U64,
    session: U64,
    on_session: U64,
    on_number: U64,
    dirty: U64,
}

impl Standing {
    /// That of a computer which knows nothing yet.
    pub fn new(computer: ComputerId) -> Self {
        Self { computer, act: 0, overlay: 1, session: 0, on: None, dirty: false }
    }

    /// Reads it; `None` the first time.
    ///
    /// # Errors
    /// `Forgotten` if it is unreadable: that is no first time.
    pub fn read(beside: &dyn Objects) -> Result<Option<Self>> {
        if beside.len(BASE_OBJECT)?.is_none() {
            return Ok(None);
        }
        let torn = || Error::Forgotten(format!("is unreadable: {BASE_OBJECT} in the state folder"));
        let most = (size_of::<Stored>() + DIGEST) as u64;
        let bytes = whole(beside, BASE_OBJECT, most)?.ok_or_else(torn)?;
        let (stored, sum) = Stored::ref_from_prefix(&bytes).map_err(|_| torn())?;
        if sum != digest(stored.as_bytes()) || stored.version.get() != VERSION {
            return Err(torn());
        }
        let on = EpochId { session: stored.on_session.get(), number: stored.on_number.get() };
        Ok(Some(Self {
            computer: ComputerId(stored.computer),
            act: stored.act.get(),
            overlay: stored.overlay.get(),
            session: stored.session.get(),
            on: Some(on).filter(|on| on.number > 0),
            dirty: stored.dirty.get() == 1,
        }))
    }

    /// Replaces it, atomically and durably.
    ///
    /// # Errors
    /// Those of the store.
    pub fn write(&self, beside: &dyn Objects) -> Result<()> {
        let on = self.on.unwrap_or_default();
        let stored = Stored {
            version: U64::new(VERSION),
            computer: self.computer.0,
            act: U64::new(self.act),
            overlay: U64::new(self.overlay),
            session: U64::new(self.session),
            on_session: U64::new(on.session),
            on_number: U64::new(on.number),
            dirty: U64::new(self.dirty.into()),
        };
        let bytes = [stored.as_bytes(), &digest(stored.as_bytes())].concat();
        Ok(beside.put(BASE_OBJECT, &bytes, PutMode::Replace)?)
    }
}

/// As [`whole`]; `None` also where the disk gives an error instead of its bytes.
///
/// # Errors
/// Those of the store that are not about this object.
pub fn readable(store: &dyn Objects, object: &str, most: u64) -> Result<Option<Vec<u8>>> {
    match whole(store, object, most) {
        Err(Error::Store(StoreError::Io { .. })) => Ok(None),
        found => found,
    }
}

/// A whole object; `None` if it is not there, or has more than `most` bytes: it is none of ours
/// then, and a length from the folder must not say how much memory is taken.
///
/// # Errors
/// Those of the store.
pub fn whole(store: &dyn Objects, object: &str, most: u64) -> Result<Option<Vec<u8>>> {
    let Some(len) = store.len(object)?.filter(|len| *len <= most) else { return Ok(None) };
    let mut buf = vec![0; len as usize];
    match store.read(&mut [ReadAt { object, offset: 0, buf: &mut buf }]) {
        Ok(()) => Ok(Some(buf)),
        // It went, or was cut, since its length was asked for.
        Err(StoreError::Missing { .. } | StoreError::Short { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
