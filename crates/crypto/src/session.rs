//! Session keys: AES-256-GCM under a key derived from a root and a random salt.

use crate::{CryptoError, SealRoot, TAG_BYTES};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes of the random salt that makes a session key.
pub(crate) const SALT_BYTES: usize = 16;

/// The public name of a session key.
pub(crate) type Salt = [u8; SALT_BYTES];

/// An AES-256-GCM key with nonces from a counter, and the salt it was derived from.
pub(crate) struct SessionKey {
    pub(crate) salt: Salt,
    cipher: Cipher,
}

impl SessionKey {
    /// The session key of `salt`: keyed BLAKE3 of the root over the salt. A root has no other use
    /// and salts have one length, so the input needs no further label.
    pub(crate) fn derive(root: &SealRoot, salt: Salt) -> Self {
        let key: Zeroizing<[u8; 32]> =
            Zeroizing::new(blake3::keyed_hash(root.expose(), &salt).into());
        Self { salt, cipher: Cipher::new(&key) }
    }

    /// Encrypts `data` in place under the nonce of `counter` and writes the tag.
    #[inline]
    pub(crate) fn seal(
        &self,
        counter: u64,
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), CryptoError> {
        self.cipher.seal(nonce(counter), aad, data, tag)
    }

    /// Decrypts `data` in place, or refuses it and leaves it unreadable.
    #[inline]
    pub(crate) fn open(
        &self,
        counter: u64,
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> Result<(), CryptoError> {
        self.cipher.open(nonce(counter), aad, data, tag)
    }
}

/// Four zero bytes and the counter: unique while no counter repeats under a key.
#[inline]
fn nonce(counter: u64) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    nonce[4..].copy_from_slice(&counter.to_le_bytes());
    nonce
}

/// AES-256-GCM itself. The caller is responsible for the nonce. In this crate only [`SessionKey`]
/// (a counter) and the key slots (a key used once) call it.
pub(crate) struct Cipher(LessSafeKey);

impl Cipher {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        // aws-lc-rs wipes its copy of the key when freed.
        let key = UnboundKey::new(&AES_256_GCM, key).expect("AES-256 takes 32 bytes");
        Self(LessSafeKey::new(key))
    }

    #[inline]
    pub(crate) fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), CryptoError> {
        debug_assert_eq!(tag.len(), TAG_BYTES);
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_in_place_scatter(nonce, Aad::from(aad), data, &[], tag)
            .map_err(|_| CryptoError::Malformed("too long to seal"))
    }

    #[inline]
    pub(crate) fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> Result<(), CryptoError> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0
            .open_in_place_separate_tag(nonce, Aad::from(aad), tag, data)
            .map(|_| ())
            .map_err(|_| CryptoError::Forged)
    }
}

/// Sets of [`KeyCache`]; a salt's first byte picks one.
const SETS: usize = 64;
/// Keys a set holds.
const WAYS: usize = 4;

/// The session keys of opened objects, at most `SETS * WAYS`. A volume that was mounted often holds
/// objects of many sessions, and a key schedule costs more than a small bucket.
pub(crate) struct KeyCache(Vec<Vec<Arc<SessionKey>>>);

impl KeyCache {
    pub(crate) fn new() -> Self {
        Self((0..SETS).map(|_| Vec::new()).collect())
    }

    /// The key of `salt`, if present. A hit moves it one step away from eviction.
    #[inline]
    pub(crate) fn find(&mut self, salt: &Salt) -> Option<&Arc<SessionKey>> {
        let set = &mut self.0[Self::set_of(salt)];
        let at = set.iter().position(|key| key.salt == *salt)?;
        let nearer = at.saturating_sub(1);
        set.swap(nearer, at);
        set.get(nearer)
    }

    /// Inserts `key` and drops the least used one of its set.
    pub(crate) fn insert(&mut self, key: Arc<SessionKey>) {
        let set = &mut self.0[Self::set_of(&key.salt)];
        set.truncate(WAYS - 1);
        set.insert(0, key);
    }

    fn set_of(salt: &Salt) -> usize {
        usize::from(salt[0]) % SETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().map(|c| c.to_digit(16).expect("a hexadecimal digit") as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn key32(text: &str) -> [u8; 32] {
        hex(text).try_into().expect("32 bytes")
    }

    struct Vector {
        key: &'static str,
        nonce: &'static str,
        aad: &'static str,
        plain: &'static str,
        sealed: &'static str,
        tag: &'static str,
    }

    const ZERO_KEY: &str = "0000000000000000000000000000000000000000000000000000000000000000";
    const KEY: &str = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
    const PLAIN: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                         1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
    const SEALED: &str = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
                          8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad";

    /// McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B, test cases 13 to 16
    /// (AES-256, nonce of 96 bits); also in NIST's submission of GCM.
    const VECTORS: [Vector; 4] = [
        Vector {
            key: ZERO_KEY,
            nonce: "000000000000000000000000",
            aad: "",
            plain: "",
            sealed: "",
            tag: "530f8afbc74536b9a963b4f1c4cb738b",
        },
        Vector {
            key: ZERO_KEY,
            nonce: "000000000000000000000000",
            aad: "",
            plain: "00000000000000000000000000000000",
            sealed: "cea7403d4d606b6e074ec5d3baf39d18",
            tag: "d0d1c8a799996bf0265b98b5d48ab919",
        },
        Vector {
            key: KEY,
            nonce: "cafebabefacedbaddecaf888",
            aad: "",
            plain: PLAIN,
            sealed: SEALED,
            tag: "b094dac5d93471bdec1a502270e3cc6c",
        },
        Vector {
            key: KEY,
            nonce: "cafebabefacedbaddecaf888",
            aad: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            // Test case 16 stops four bytes earlier.
            plain: PLAIN.split_at(120).0,
            sealed: SEALED.split_at(120).0,
            tag: "76fc6ece0f4e1768cddf8853bb2d551b",
        },
    ];

    #[test]
    fn aes_256_gcm_gives_the_published_answers() {
        for vector in VECTORS {
            let cipher = Cipher::new(&key32(vector.key));
            let nonce = hex(vector.nonce).try_into().expect("12 bytes");
            let (aad, mut data, mut tag) = (hex(vector.aad), hex(vector.plain), [0; TAG_BYTES]);
            cipher.seal(nonce, &aad, &mut data, &mut tag).expect("seals");
            assert_eq!(data, hex(vector.sealed));
            assert_eq!(tag.as_slice(), hex(vector.tag));
            cipher.open(nonce, &aad, &mut data, &tag).expect("opens");
            assert_eq!(data, hex(vector.plain));
        }
    }

    #[test]
    fn the_nonce_is_the_counter() {
        assert_eq!(nonce(0x0102), [0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        let session = SessionKey { salt: [0; 16], cipher: Cipher::new(&[0; 32]) };
        let (mut data, mut tag) = ([0; 16], [0; TAG_BYTES]);
        session.seal(0, &[], &mut data, &mut tag).expect("seals");
        assert_eq!(data.as_slice(), hex(VECTORS[1].sealed));
    }

    #[test]
    fn a_refused_object_leaves_no_plaintext() {
        let session = SessionKey::derive(&SealRoot::from_seed(1), [1; 16]);
        let (mut data, mut tag) = ([0x5a; 64], [0; TAG_BYTES]);
        session.seal(0, &[], &mut data, &mut tag).expect("seals");
        tag[0] ^= 1;
        assert_eq!(session.open(0, &[], &mut data, &tag), Err(CryptoError::Forged));
        assert!(!data.windows(4).any(|bytes| bytes == [0x5a; 4]));
    }

    fn salt(set: u8, n: u8) -> Salt {
        let mut salt = [n; SALT_BYTES];
        salt[0] = set;
        salt
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_in_use() {
        let root = SealRoot::from_seed(1);
        let mut cache = KeyCache::new();
        cache.insert(Arc::new(SessionKey::derive(&root, salt(0, 0))));
        for n in 1..100 {
            cache.insert(Arc::new(SessionKey::derive(&root, salt(0, n))));
            // Used twice between any two insertions: it stays in front of the rest.
            assert!(cache.find(&salt(0, 0)).is_some(), "lost at {n}");
            assert!(cache.find(&salt(0, 0)).is_some());
        }
        assert_eq!(cache.0.iter().map(Vec::len).sum::<usize>(), WAYS);
        assert!(cache.find(&salt(0, 1)).is_none());
        assert!(cache.find(&salt(1, 0)).is_none());
    }

    #[test]
    fn each_salt_has_its_own_key_and_the_cache_never_mixes_them() {
        let root = SealRoot::from_seed(1);
        let mut cache = KeyCache::new();
        for set in 0..=255 {
            cache.insert(Arc::new(SessionKey::derive(&root, salt(set, 7))));
        }
        for set in 0..=255 {
            let mut sealed = [0; 16];
            let mut tag = [0; TAG_BYTES];
            let key = SessionKey::derive(&root, salt(set, 7));
            key.seal(1, &[], &mut sealed, &mut tag).expect("seals");
            let found = cache.find(&salt(set, 7)).expect("256 salts fill 64 sets of 4");
            found.open(1, &[], &mut sealed, &tag).expect("the same key");
        }
    }
}
