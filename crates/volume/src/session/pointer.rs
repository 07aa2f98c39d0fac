//! Pointers: where a session's n-th commit is. Each is a new object, so a late copy of an earlier
//! one never hides a later one.

use super::entry::{Mark, StoredMark};
use super::names::SessionId;
use super::vault::Vault;
use crate::Result;
use oblivio_crypto::{Kind, SEAL_HEADER, SEAL_OVERHEAD};
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a stored pointer.
pub const POINTER_BYTES: usize = SEAL_OVERHEAD + size_of::<StoredMark>();

/// The sealed pointer to a session's n-th commit.
///
/// # Errors
/// Those of the sealer.
pub fn seal(vault: &mut Vault, commit: u64, mark: Mark) -> Result<Vec<u8>> {
    let mut out = vec![0; POINTER_BYTES];
    let plain = &mut out[SEAL_HEADER..SEAL_HEADER + size_of::<StoredMark>()];
    plain.copy_from_slice(StoredMark::new(Some(mark)).as_bytes());
    vault.seal(Kind::Pointer, commit, mark.session.number, &mut out)?;
    Ok(out)
}

/// Opens it; `None` if it is not the one that the session stored there.
pub fn open(vault: &mut Vault, session: SessionId, commit: u64, bytes: &mut [u8]) -> Option<Mark> {
    let plain = vault.open(Kind::Pointer, commit, session.number, bytes)?;
    let mark = StoredMark::ref_from_bytes(plain).ok()?.get()?;
    (mark.session == session && mark.index > 0).then_some(mark)
}
