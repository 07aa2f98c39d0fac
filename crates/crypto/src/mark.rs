//! The mark of a group: its session and its first nonce.

use crate::CryptoError;
use crate::session::{SALT_BYTES, Salt};

/// Bytes of a group's mark.
pub const GROUP_MARK_BYTES: usize = SALT_BYTES + 8;

/// The session and the first nonce of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupMark(pub [u8; GROUP_MARK_BYTES]);

impl GroupMark {
    pub(crate) fn new(salt: &Salt, counter: u64) -> Self {
        let mut mark = [0; GROUP_MARK_BYTES];
        mark[..SALT_BYTES].copy_from_slice(salt);
        mark[SALT_BYTES..].copy_from_slice(&counter.to_le_bytes());
        Self(mark)
    }

    /// The session, and the nonce of object number `index`.
    pub(crate) fn object(&self, index: u64) -> Result<(Salt, u64), CryptoError> {
        let (salt, first) = self.parts();
        Ok((salt, first.checked_add(index).ok_or(CryptoError::Forged)?))
    }

    pub(crate) fn parts(&self) -> (Salt, u64) {
        let (mut salt, mut counter) = ([0; SALT_BYTES], [0; 8]);
        salt.copy_from_slice(&self.0[..SALT_BYTES]);
        counter.copy_from_slice(&self.0[SALT_BYTES..]);
        (salt, u64::from_le_bytes(counter))
    }
}
