//! Which epoch a computer stands on: nobody deletes what that one names.
//!
//! The entries that a computer makes say it too; so this is only for one that took another's epoch.

use super::names::{self, EpochId};
use crate::Result;
use crate::session::Vault;
use crate::trust::ComputerId;
use oblivio_crypto::{Kind, SEAL_HEADER, SEAL_OVERHEAD};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// How many days a computer that does not come back keeps others from deleting.
pub const DAYS: u64 = 30;

/// Where a computer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stand {
    pub computer: ComputerId,
    /// The number of the computer's act: the largest counts.
    pub act: u64,
    /// When, in seconds since 1970.
    pub date: u64,
    pub on: EpochId,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Stored {
    computer: [u8; 16],
    date: U64,
    session: U64,
    number: U64,
}

/// Bytes of its file.
pub const BYTES: usize = size_of::<Stored>() + SEAL_OVERHEAD;

/// The part of a computer's name that its files have.
pub fn short(computer: ComputerId) -> u64 {
    let (first, _) = computer.0.split_first_chunk().unwrap_or((&[0; 8], &[]));
    u64::from_le_bytes(*first)
}

impl Stand {
    /// The name of its file.
    pub fn name(&self) -> String {
        names::stand(short(self.computer), self.act)
    }

    /// Seals it.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn seal(&self, vault: &mut Vault) -> Result<Vec<u8>> {
        let stored = Stored {
            computer: self.computer.0,
            date: U64::new(self.date),
            session: U64::new(self.on.session),
            number: U64::new(self.on.number),
        };
        let mut bytes = [&[0; SEAL_HEADER], stored.as_bytes()].concat();
        bytes.resize(BYTES, 0);
        vault.seal(Kind::Stand, self.act, short(self.computer), &mut bytes)?;
        Ok(bytes)
    }

    /// Opens the bytes of such a file; `None` if they are not, or not yet, what was made.
    pub fn open(vault: &mut Vault, computer: u64, act: u64, mut bytes: Vec<u8>) -> Option<Self> {
        let plain = vault.open(Kind::Stand, act, computer, &mut bytes)?;
        let stored = Stored::ref_from_bytes(plain).ok()?;
        let on = EpochId { session: stored.session.get(), number: stored.number.get() };
        Some(Self { computer: ComputerId(stored.computer), act, date: stored.date.get(), on })
    }
}
