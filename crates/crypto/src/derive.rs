//! Deriving one key from another.

use crate::{Secret, labels};

/// A key from which a [`crate::Sealer`] derives its session keys. It encrypts nothing itself.
#[derive(Debug)]
pub struct SealRoot(Secret<32>);

impl SealRoot {
    pub(crate) fn new(key: Secret<32>) -> Self {
        Self(key)
    }

    /// The root of `seed`, **for tests and the lab only**.
    pub fn from_seed(seed: u64) -> Self {
        Self(test_key("root", seed))
    }

    pub(crate) fn expose(&self) -> &[u8; 32] {
        self.0.expose()
    }
}

/// A key derived for `label` from `parts`, which must have fixed lengths.
pub(crate) fn derive_key(label: &'static str, parts: &[&[u8]]) -> Secret<32> {
    let mut hasher = blake3::Hasher::new_derive_key(label);
    for part in parts {
        hasher.update(part);
    }
    Secret::new(|out| hasher.finalize_xof().fill(out))
}

/// A key that anyone can compute, for the `from_seed` constructors.
pub(crate) fn test_key(purpose: &'static str, seed: u64) -> Secret<32> {
    derive_key(labels::TEST_KEY, &[&seed.to_le_bytes(), purpose.as_bytes()])
}
