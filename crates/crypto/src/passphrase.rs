//! Passphrases, and the cost of trying one.

use crate::{CryptoError, Secret};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// The user's input, wiped on drop.
///
/// Taken byte for byte: two encodings of the same accented letter are two passphrases. A terminal
/// reader should normalize its input first.
pub struct Passphrase(Zeroizing<Vec<u8>>);

impl Passphrase {
    /// Takes ownership of `bytes`, which are wiped on drop.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both are equal (for a repeated entry).
    pub fn same_as(&self, other: &Self) -> bool {
        crate::secret::same_bytes(&self.0, &other.0)
    }

    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

/// Bytes of encoded parameters.
pub(crate) const KDF_BYTES: usize = 12;

/// The cost of Argon2id for one passphrase, stored in its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KdfParams {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over that memory.
    pub passes: u32,
    /// Lanes that can run in parallel.
    pub lanes: u32,
}

impl Default for KdfParams {
    /// RFC 9106's second recommended option: 64 MiB, 3 passes, 4 lanes.
    fn default() -> Self {
        Self { memory_kib: 64 * 1024, passes: 3, lanes: 4 }
    }
}

impl KdfParams {
    /// The least that Argon2 accepts, **for tests only**: it slows no attacker down.
    pub const TEST: Self = Self { memory_kib: 8, passes: 1, lanes: 1 };

    /// The most memory a header may ask for: 4 GiB.
    pub const MAX_MEMORY_KIB: u32 = 4 << 20;
    /// The most lanes a header may ask for.
    pub const MAX_LANES: u32 = 64;
    /// The most work a header may ask for, memory times passes over all its slots: 64 GiB, about a
    /// minute.
    pub const MAX_WORK_KIB: u64 = 64 << 20;

    /// Refuses parameters that Argon2 cannot handle, or that a hostile header must not impose.
    pub fn check(&self) -> Result<(), CryptoError> {
        if !(1..=Self::MAX_LANES).contains(&self.lanes) {
            return Err(CryptoError::Malformed("passphrase parameters: lanes out of bounds"));
        }
        if !(8 * self.lanes..=Self::MAX_MEMORY_KIB).contains(&self.memory_kib) {
            return Err(CryptoError::Malformed("passphrase parameters: memory out of bounds"));
        }
        if self.passes == 0 || self.work_kib() > Self::MAX_WORK_KIB {
            return Err(CryptoError::Malformed("passphrase parameters: passes out of bounds"));
        }
        Ok(())
    }

    /// Memory times passes.
    pub(crate) fn work_kib(&self) -> u64 {
        u64::from(self.memory_kib) * u64::from(self.passes)
    }

    pub(crate) fn encode(&self) -> [u8; KDF_BYTES] {
        let mut out = [0; KDF_BYTES];
        out[..4].copy_from_slice(&self.memory_kib.to_le_bytes());
        out[4..8].copy_from_slice(&self.passes.to_le_bytes());
        out[8..].copy_from_slice(&self.lanes.to_le_bytes());
        out
    }

    /// The parameters in `bytes`, if they are within bounds.
    pub(crate) fn decode(bytes: &[u8; KDF_BYTES]) -> Result<Self, CryptoError> {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        let params = Self {
            memory_kib: u32::from_le_bytes([a, b, c, d]),
            passes: u32::from_le_bytes([e, f, g, h]),
            lanes: u32::from_le_bytes([i, j, k, l]),
        };
        params.check()?;
        Ok(params)
    }

    /// Argon2id of `passphrase` over `salt`.
    pub(crate) fn stretch(
        &self,
        passphrase: &Passphrase,
        salt: &[u8],
    ) -> Result<Secret<32>, CryptoError> {
        let stretched = self.stretch_on_stack(passphrase, salt);
        wipe_stack();
        stretched
    }

    /// Its first hash holds the passphrase, on the stack.
    #[inline(never)]
    fn stretch_on_stack(
        &self,
        passphrase: &Passphrase,
        salt: &[u8],
    ) -> Result<Secret<32>, CryptoError> {
        self.check()?;
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(32))
            .map_err(|_| CryptoError::Malformed("passphrase parameters"))?;
        let mut memory = self.reserve(params.block_count())?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut result = Ok(());
        let key = Secret::new(|out| {
            result =
                argon2.hash_password_into_with_memory(passphrase.expose(), salt, out, &mut memory);
        });
        // The last blocks reveal the key, and this memory returns to the allocator.
        memory.iter_mut().for_each(|block| block.as_mut().zeroize());
        result.map_err(|_| CryptoError::Malformed("passphrase too long"))?;
        Ok(key)
    }

    /// Argon2's memory. A lack of it is an error; an ordinary allocation would abort the process.
    fn reserve(&self, blocks: usize) -> Result<Vec<Block>, CryptoError> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(blocks).map_err(|_| CryptoError::OutOfMemory(self.memory_kib))?;
        memory.resize(blocks, Block::new());
        Ok(memory)
    }
}

/// Overwrites what a finished function left on the stack.
#[inline(never)]
fn wipe_stack() {
    let mut left = [0u8; 64 << 10];
    left.zeroize();
    std::hint::black_box(&mut left);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kdf(memory_kib: u32, passes: u32, lanes: u32) -> KdfParams {
        KdfParams { memory_kib, passes, lanes }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// From the reference implementation's `test.c`, version 0x13, Argon2id. (RFC 9106's own vector
    /// takes a secret and associated data, which we do not use: see `tests/vectors.rs`.)
    #[test]
    fn argon2id_gives_the_published_answers() {
        let passphrase = Passphrase::new("password");
        let one = kdf(256, 2, 1).stretch(&passphrase, b"somesalt").expect("stretches");
        assert_eq!(
            hex(one.expose()),
            "9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe"
        );
        let two = kdf(256, 2, 2).stretch(&passphrase, b"somesalt").expect("stretches");
        assert_eq!(
            hex(two.expose()),
            "6d093c501fd5999645e0ea3bf620d7b8be7fd2db59c20d9fff9539da2bf57037"
        );
    }

    #[test]
    fn bounds_are_held() {
        assert_eq!(KdfParams::default().check(), Ok(()));
        assert_eq!(KdfParams::TEST.check(), Ok(()));
        assert_eq!(kdf(KdfParams::MAX_MEMORY_KIB, 16, 64).check(), Ok(()));
        let refused = [
            kdf(7, 1, 1),
            kdf(15, 1, 2),
            kdf(64, 0, 1),
            kdf(64, 1, 0),
            kdf(1024, 1, 65),
            kdf(1024, 1, u32::MAX),
            kdf(KdfParams::MAX_MEMORY_KIB + 1, 1, 1),
            kdf(KdfParams::MAX_MEMORY_KIB, 17, 1),
            kdf(u32::MAX, u32::MAX, 1),
            kdf(8, u32::MAX, 1),
        ];
        for params in refused {
            assert!(matches!(params.check(), Err(CryptoError::Malformed(_))), "{params:?}");
            assert!(KdfParams::decode(&params.encode()).is_err(), "{params:?}");
            assert!(params.stretch(&Passphrase::new("x"), &[0; 32]).is_err(), "{params:?}");
        }
    }

    #[test]
    fn parameters_survive_encoding() {
        let params = kdf(70_000, 5, 3);
        assert_eq!(KdfParams::decode(&params.encode()), Ok(params));
    }

    #[test]
    fn a_passphrase_compares_and_hides() {
        let passphrase = Passphrase::new("correct horse");
        assert!(passphrase.same_as(&Passphrase::new(b"correct horse".to_vec())));
        assert!(!passphrase.same_as(&Passphrase::new("correct hors")));
        assert!(Passphrase::new("").is_empty() && !passphrase.is_empty());
        assert_eq!(format!("{passphrase:?}"), "Passphrase(..)");
    }
}
