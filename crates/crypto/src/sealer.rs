//! Sealing and opening: authenticated encryption that owns its keys and its nonces.
//!
//! A sealed object is `[salt 16][counter 8 LE][ciphertext][tag 16]`. The salt names the session key
//! and the counter is the nonce, so each object can be opened alone. A sealer starts from a fresh
//! random salt, counts up from zero and never goes back. So no (key, nonce) pair repeats after a
//! restart, from a restored backup, or between two computers. It cannot detect the one remaining
//! case: a clone of the running process, such as a virtual machine resumed twice from one snapshot.
//!
//! Salt and counter show which objects one session sealed, and in which order. [`Sealer::hiding`]
//! hides that: it stores both under a pad derived from the object's tag, which no two objects
//! share. The nonces do not change. With or without a pad, an altered salt or counter opens
//! nothing.

use crate::derive::{SealRoot, derive_key};
use crate::session::{SALT_BYTES, Salt, SessionKey};
use crate::tag::{TAG_BYTES, Tag};
use crate::{CryptoError, Entropy, Opener, Place, Secret, labels};
use std::fmt;
use std::sync::Arc;

/// Free bytes at the start of a sealed object: salt and counter.
pub const SEAL_HEADER: usize = SALT_BYTES + 8;
/// Bytes that sealing adds to a plaintext.
pub const SEAL_OVERHEAD: usize = SEAL_HEADER + TAG_BYTES;

/// The tag at the end of a sealed object; none if it is too short.
pub fn tag_of(buf: &[u8]) -> Option<Tag> {
    if buf.len() < SEAL_OVERHEAD {
        return None;
    }
    buf.last_chunk().copied().map(Tag)
}

/// The limits of one session key.
///
/// With unique nonces, an attacker's advantage in distinguishing GCM from random grows as (AES
/// calls)^2 / 2^129. A key makes one call per 16 bytes and two more per message, so the soft limits
/// of 2^36 bytes and 2^32 messages keep it below 2^-61.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealLimits {
    /// Messages before a fresh salt and key take over.
    pub soft_messages: u64,
    /// Bytes of plaintext before a fresh salt and key take over.
    pub soft_bytes: u64,
    /// The most messages that a key seals.
    pub hard_messages: u64,
    /// The most bytes of plaintext that a key seals.
    pub hard_bytes: u64,
}

impl Default for SealLimits {
    fn default() -> Self {
        Self {
            soft_messages: 1 << 32,
            soft_bytes: 1 << 36,
            hard_messages: 1 << 36,
            hard_bytes: 1 << 40,
        }
    }
}

/// Seals and opens objects under one root.
pub struct Sealer {
    entropy: Box<dyn Entropy>,
    limits: SealLimits,
    session: Arc<SessionKey>,
    /// The key of the pads over salts and counters, if any.
    mask: Option<Secret<32>>,
    /// Messages sealed under `session`: the next counter.
    messages: u64,
    /// Bytes of plaintext sealed under `session`.
    bytes: u64,
    /// Opens objects of other sessions.
    opener: Opener,
}

impl Sealer {
    /// A sealer with a fresh session key.
    pub fn new(root: SealRoot, entropy: Box<dyn Entropy>) -> Self {
        Self::with_limits(root, entropy, SealLimits::default())
    }

    /// A sealer with custom limits.
    pub fn with_limits(root: SealRoot, mut entropy: Box<dyn Entropy>, limits: SealLimits) -> Self {
        let session = Arc::new(SessionKey::derive(&root, draw_salt(&mut *entropy)));
        let opener = Opener::new(root);
        Self { entropy, limits, session, mask: None, messages: 0, bytes: 0, opener }
    }

    /// The same, but its objects show neither salt nor counter: without a key, all of them look
    /// random. It opens only such objects.
    #[must_use]
    pub fn hiding(mut self) -> Self {
        self.mask = Some(derive_key(labels::SEAL_MASK, &[self.opener.root().expose()]));
        self
    }

    /// Applies the pad to a salt and a counter, or removes it.
    #[inline]
    fn mask(&self, salt: &mut Salt, counter: &mut [u8; 8], tag: &[u8; TAG_BYTES]) {
        let Some(key) = &self.mask else { return };
        let pad = blake3::keyed_hash(key.expose(), tag);
        let hidden = salt.iter_mut().chain(counter);
        hidden.zip(pad.as_bytes()).for_each(|(byte, pad)| *byte ^= pad);
    }

    /// Seals the bytes between the [`SEAL_HEADER`] free bytes in front and the [`TAG_BYTES`] at the
    /// end in place, and fills both. Returns the tag.
    pub fn seal(&mut self, place: &Place, buf: &mut [u8]) -> Result<Tag, CryptoError> {
        let parts = Parts::of(buf)?;
        let counter = self.next_counter(parts.data.len() as u64)?;
        *parts.salt = self.session.salt;
        *parts.counter = counter.to_le_bytes();
        self.session.seal(counter, &place.encode(), parts.data, parts.tag)?;
        self.mask(parts.salt, parts.counter, parts.tag);
        Ok(Tag(*parts.tag))
    }

    /// Opens a sealed object in place and returns the plaintext within `buf`.
    ///
    /// An error loses the content of `buf`, because decryption works in place.
    pub fn open<'a>(
        &mut self,
        place: &Place,
        buf: &'a mut [u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        let Parts { salt, counter, data, tag } = Parts::of(buf)?;
        self.mask(salt, counter, tag);
        let (counter, aad) = (u64::from_le_bytes(*counter), place.encode());
        self.open_parts(salt, counter, &aad, data, tag)?;
        Ok(data)
    }

    /// Decrypts `data` in place under the session key of `salt`.
    pub(crate) fn open_parts(
        &mut self,
        salt: &Salt,
        counter: u64,
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> Result<(), CryptoError> {
        // Most objects are of this session, whose key needs no search.
        if *salt == self.session.salt {
            self.session.open(counter, aad, data, tag)
        } else {
            self.opener.open(salt, counter, aad, data, tag).map(drop)
        }
    }

    /// The current sealing key.
    pub(crate) fn session(&self) -> &Arc<SessionKey> {
        &self.session
    }

    /// An opener for groups sealed under the same root, here or in another session.
    pub fn opener(&self) -> Opener {
        self.opener.clone()
    }

    /// Seals a copy of `plaintext`. For rare objects, where an allocation does not matter.
    pub fn seal_vec(&mut self, place: &Place, plaintext: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let mut buf = Vec::with_capacity(SEAL_OVERHEAD + plaintext.len());
        buf.resize(SEAL_HEADER, 0);
        buf.extend_from_slice(plaintext);
        buf.resize(SEAL_OVERHEAD + plaintext.len(), 0);
        self.seal(place, &mut buf)?;
        Ok(buf)
    }

    /// Opens a copy of a sealed object.
    pub fn open_vec(&mut self, place: &Place, sealed: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let mut buf = sealed.to_vec();
        let end = SEAL_HEADER + self.open(place, &mut buf)?.len();
        buf.truncate(end);
        buf.drain(..SEAL_HEADER);
        Ok(buf)
    }

    /// Takes the next nonce, after a due change of key.
    #[inline]
    fn next_counter(&mut self, len: u64) -> Result<u64, CryptoError> {
        self.take_counters(1, len)
    }

    /// Takes `count` nonces of one session, for `len` bytes of plaintext in total.
    #[inline]
    pub(crate) fn take_counters(&mut self, count: u64, len: u64) -> Result<u64, CryptoError> {
        let limits = self.limits;
        if self.messages >= limits.soft_messages || self.bytes >= limits.soft_bytes {
            self.rekey();
        }
        let bytes = self.bytes.saturating_add(len);
        let messages = self.messages.saturating_add(count);
        if messages > limits.hard_messages || bytes > limits.hard_bytes {
            return Err(CryptoError::KeyExhausted);
        }
        // Taken even if the sealing fails: a skipped nonce costs nothing, a repeated one
        // everything.
        let counter = self.messages;
        self.messages = messages;
        self.bytes = bytes;
        Ok(counter)
    }

    /// Changes to a fresh session key, unless a broken generator repeats a salt. Then the old key
    /// stays: counting on under it is safe, counting from zero under a used key is not.
    #[cold]
    fn rekey(&mut self) {
        let salt = draw_salt(&mut *self.entropy);
        if salt == self.session.salt || self.opener.knows(&salt) {
            return;
        }
        let fresh = Arc::new(SessionKey::derive(self.opener.root(), salt));
        self.opener.keep(&std::mem::replace(&mut self.session, fresh));
        (self.messages, self.bytes) = (0, 0);
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("limits", &self.limits).finish_non_exhaustive()
    }
}

fn draw_salt(entropy: &mut dyn Entropy) -> Salt {
    let mut salt = [0; SALT_BYTES];
    entropy.fill(&mut salt);
    salt
}

/// The four parts of a sealed object.
struct Parts<'a> {
    salt: &'a mut Salt,
    counter: &'a mut [u8; 8],
    data: &'a mut [u8],
    tag: &'a mut [u8; TAG_BYTES],
}

impl<'a> Parts<'a> {
    #[inline]
    fn of(buf: &'a mut [u8]) -> Result<Self, CryptoError> {
        Self::split(buf).ok_or(CryptoError::Malformed("too short for a sealed object"))
    }

    #[inline]
    fn split(buf: &'a mut [u8]) -> Option<Self> {
        let (salt, rest) = buf.split_first_chunk_mut()?;
        let (counter, rest) = rest.split_first_chunk_mut()?;
        let (data, tag) = rest.split_last_chunk_mut()?;
        Some(Self { salt, counter, data, tag })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, SeededEntropy, VolumeId};

    const PLACE: Place =
        Place { volume: VolumeId([7; 16]), kind: Kind::Bucket, index: 5, version: 9 };

    fn sealer(entropy: u64) -> Sealer {
        Sealer::new(SealRoot::from_seed(1), Box::new(SeededEntropy::new(entropy)))
    }

    #[test]
    fn invented_salts_do_not_push_out_keys_in_use() {
        let sealed = sealer(1).seal_vec(&PLACE, b"kept").expect("seals");
        let salt: Salt = sealed[..SALT_BYTES].try_into().expect("a salt");
        let (mut reader, mut entropy) = (sealer(2), SeededEntropy::new(3));
        assert!(!reader.opener.knows(&salt));
        assert_eq!(reader.open_vec(&PLACE, &sealed).expect("opens"), b"kept");
        for _ in 0..100 {
            let mut forged = sealed.clone();
            // The first byte stays, so that all of them compete for the same set of the cache.
            entropy.fill(&mut forged[1..SALT_BYTES]);
            assert_eq!(reader.open_vec(&PLACE, &forged), Err(CryptoError::Forged));
        }
        assert!(reader.opener.knows(&salt));
    }

    #[test]
    fn a_hiding_sealer_shows_neither_salt_nor_counter() {
        let (mut plain, mut hiding) = (sealer(1), sealer(1).hiding());
        let shown = plain.seal_vec(&PLACE, b"kept").expect("seals");
        let hidden = hiding.seal_vec(&PLACE, b"kept").expect("seals");
        // The same salt and nonce, so the same ciphertext and tag.
        assert_eq!(shown[SEAL_HEADER..], hidden[SEAL_HEADER..]);
        let next = hiding.seal_vec(&PLACE, b"kept").expect("seals");
        for (one, other) in [(&hidden, &shown), (&hidden, &next)] {
            let equal = (0..SEAL_HEADER).filter(|&at| one[at] == other[at]).count();
            assert!(equal < 6, "{equal} bytes are the same");
        }
        let mut reader = sealer(2).hiding();
        assert_eq!(reader.open_vec(&PLACE, &hidden).expect("opens"), b"kept");
        assert_eq!(reader.open_vec(&PLACE, &next).expect("opens"), b"kept");
        for at in 0..hidden.len() {
            let mut changed = hidden.clone();
            changed[at] ^= 1;
            assert_eq!(reader.open_vec(&PLACE, &changed), Err(CryptoError::Forged), "byte {at}");
        }
        assert_eq!(reader.open_vec(&PLACE, &shown), Err(CryptoError::Forged));
        assert_eq!(plain.open_vec(&PLACE, &hidden), Err(CryptoError::Forged));
    }

    #[test]
    fn default_limits_are_below_those_of_gcm() {
        let limits = SealLimits::default();
        assert!(limits.soft_messages < limits.hard_messages);
        assert!(limits.soft_bytes < limits.hard_bytes);
        // 2^38 calls of AES: an advantage of 2^-53 even without a fresh key.
        assert!(limits.hard_bytes / 16 + 2 * limits.hard_messages <= 1 << 38);
    }
}
