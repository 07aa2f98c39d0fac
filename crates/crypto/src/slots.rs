//! Key slots: the master key, sealed once for each passphrase.
//!
//! Adding, changing or removing a passphrase writes one slot and re-encrypts nothing else. For the
//! same reason it cannot take back the past: who kept an old copy of the slots *and* knows the
//! passphrase it held can still open the volume with it.

use crate::passphrase::KDF_BYTES;
use crate::secret::same_bytes;
use crate::session::Cipher;
use crate::{
    CryptoError, Entropy, KdfParams, Kind, MasterKey, Passphrase, Place, Secret, TAG_BYTES,
};
use crate::{VolumeId, labels};
use std::fmt;

/// Slots a volume has.
pub const KEY_SLOTS: usize = 8;
/// Bytes of one slot: `[state 1][zeros 3][kdf 12][salt 32][commitment 32][sealed key 32][tag 16]`.
pub const KEY_SLOT_BYTES: usize = 128;
/// Bytes of all slots.
pub const KEY_SLOTS_BYTES: usize = KEY_SLOTS * KEY_SLOT_BYTES;

const STATE_EMPTY: u8 = 0;
const STATE_USED: u8 = 1;

/// Which slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotIndex(u8);

impl SlotIndex {
    /// Slot number `index`, counted from 0, if there is one.
    pub fn new(index: usize) -> Option<Self> {
        let index = u8::try_from(index).ok()?;
        (usize::from(index) < KEY_SLOTS).then_some(Self(index))
    }

    /// The number, counted from 0.
    pub fn get(self) -> usize {
        self.0.into()
    }

    fn all() -> impl Iterator<Item = Self> {
        (0..KEY_SLOTS as u8).map(Self)
    }
}

impl fmt::Display for SlotIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One passphrase's way to the master key. Holds nothing that is secret in itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeySlot {
    kdf: KdfParams,
    salt: [u8; 32],
    /// Names the slot key. GCM alone would let a forger make one slot that opens under several
    /// passphrases, and learn from which error comes back; this ties it to one. It also tells a
    /// wrong passphrase from a damaged slot.
    commitment: [u8; 32],
    sealed: [u8; 32],
    tag: [u8; TAG_BYTES],
}

impl KeySlot {
    fn lock(
        master: &MasterKey,
        place: &Place,
        passphrase: &Passphrase,
        kdf: KdfParams,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, CryptoError> {
        let mut salt = [0; 32];
        entropy.fill(&mut salt);
        let key = SlotKey::derive(kdf, passphrase, &salt)?;
        let (mut sealed, mut tag) = (*master.expose(), [0; TAG_BYTES]);
        key.cipher().seal(ONLY_NONCE, &place.encode(), &mut sealed, &mut tag)?;
        Ok(Self { kdf, salt, commitment: *key.commitment(), sealed, tag })
    }

    fn unlock(&self, place: &Place, passphrase: &Passphrase) -> Result<MasterKey, CryptoError> {
        let key = SlotKey::derive(self.kdf, passphrase, &self.salt)?;
        if !same_bytes(key.commitment(), &self.commitment) {
            return Err(CryptoError::WrongPassphrase);
        }
        let mut opened = Ok(());
        let master = Secret::new(|bytes| {
            *bytes = self.sealed;
            opened = key.cipher().open(ONLY_NONCE, &place.encode(), bytes, &self.tag);
        });
        opened.map(|()| MasterKey::from_secret(master))
    }

    fn encode(&self) -> [u8; KEY_SLOT_BYTES] {
        let mut out = [0; KEY_SLOT_BYTES];
        out[0] = STATE_USED;
        out[4..16].copy_from_slice(&self.kdf.encode());
        out[16..48].copy_from_slice(&self.salt);
        out[48..80].copy_from_slice(&self.commitment);
        out[80..112].copy_from_slice(&self.sealed);
        out[112..].copy_from_slice(&self.tag);
        out
    }

    /// The slot in `bytes`; none if it is empty. Exactly what [`Self::encode`] writes is accepted.
    fn decode(bytes: &[u8; KEY_SLOT_BYTES]) -> Result<Option<Self>, CryptoError> {
        let (state, rest) = (bytes[0], &bytes[1..]);
        match state {
            STATE_EMPTY if rest.iter().all(|byte| *byte == 0) => Ok(None),
            STATE_EMPTY => Err(CryptoError::Malformed("an empty key slot is not blank")),
            STATE_USED if rest[..3] != [0; 3] => {
                Err(CryptoError::Malformed("reserved bytes of a key slot are set"))
            }
            STATE_USED => Ok(Some(Self {
                kdf: KdfParams::decode(&field::<KDF_BYTES>(bytes, 4))?,
                salt: field(bytes, 16),
                commitment: field(bytes, 48),
                sealed: field(bytes, 80),
                tag: field(bytes, 112),
            })),
            _ => Err(CryptoError::Malformed("unknown state of a key slot; a newer format?")),
        }
    }
}

fn field<const N: usize>(bytes: &[u8; KEY_SLOT_BYTES], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// A slot key's one nonce. Every slot that is written draws a new 32-byte salt, so its key is new,
/// seals this one message and is dropped: the pair (key, nonce) is used exactly once.
const ONLY_NONCE: [u8; 12] = [0; 12];

/// What a passphrase and a salt give: 32 bytes of key, 32 of commitment, from one stretching.
struct SlotKey(Secret<64>);

impl SlotKey {
    fn derive(
        kdf: KdfParams,
        passphrase: &Passphrase,
        salt: &[u8; 32],
    ) -> Result<Self, CryptoError> {
        let stretched = kdf.stretch(passphrase, salt)?;
        let mut hasher = blake3::Hasher::new_derive_key(labels::SLOT_KEY);
        hasher.update(stretched.expose());
        Ok(Self(Secret::new(|out| hasher.finalize_xof().fill(out))))
    }

    fn cipher(&self) -> Cipher {
        let (key, _) = self.halves();
        Cipher::new(key)
    }

    fn commitment(&self) -> &[u8; 32] {
        self.halves().1
    }

    fn halves(&self) -> (&[u8; 32], &[u8; 32]) {
        let (key, rest) = self.0.expose().split_first_chunk().expect("64 bytes hold 32");
        (key, rest.last_chunk().expect("and 32 more"))
    }
}

/// All key slots of a volume, as they stand in its header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeySlots([Option<KeySlot>; KEY_SLOTS]);

impl KeySlots {
    /// Slots without any passphrase.
    pub fn new() -> Self {
        Self::default()
    }

    /// The slots that hold a passphrase.
    pub fn used(&self) -> impl Iterator<Item = SlotIndex> {
        SlotIndex::all().filter(|index| self.0[index.get()].is_some())
    }

    /// The parameters of the passphrase in a slot, if it is used.
    pub fn params(&self, index: SlotIndex) -> Option<KdfParams> {
        self.0[index.get()].as_ref().map(|slot| slot.kdf)
    }

    /// Lets `passphrase` open the volume, too.
    pub fn add(
        &mut self,
        master: &MasterKey,
        volume: VolumeId,
        passphrase: &Passphrase,
        kdf: KdfParams,
        entropy: &mut dyn Entropy,
    ) -> Result<SlotIndex, CryptoError> {
        let index = SlotIndex::all()
            .find(|index| self.0[index.get()].is_none())
            .ok_or(CryptoError::NoFreeSlot)?;
        self.write(index, master, volume, passphrase, kdf, entropy)?;
        Ok(index)
    }

    /// Forgets the passphrase in slot `index`, unless it is the last one.
    pub fn remove(&mut self, index: SlotIndex) -> Result<(), CryptoError> {
        if self.0[index.get()].is_none() {
            return Err(CryptoError::EmptySlot);
        }
        if self.used().count() == 1 {
            return Err(CryptoError::LastSlot);
        }
        self.0[index.get()] = None;
        Ok(())
    }

    /// Puts `new` in the place of `old`, in the same slot. On an error nothing has changed.
    pub fn change(
        &mut self,
        volume: VolumeId,
        old: &Passphrase,
        new: &Passphrase,
        kdf: KdfParams,
        entropy: &mut dyn Entropy,
    ) -> Result<SlotIndex, CryptoError> {
        let (master, index) = self.unlock(volume, old)?;
        self.write(index, &master, volume, new, kdf, entropy)?;
        Ok(index)
    }

    /// The master key, by whichever slot `passphrase` opens.
    pub fn unlock(
        &self,
        volume: VolumeId,
        passphrase: &Passphrase,
    ) -> Result<(MasterKey, SlotIndex), CryptoError> {
        let mut failure = CryptoError::WrongPassphrase;
        for index in SlotIndex::all() {
            let Some(slot) = &self.0[index.get()] else { continue };
            match slot.unlock(&slot_place(volume, index), passphrase) {
                Ok(master) => return Ok((master, index)),
                Err(CryptoError::WrongPassphrase) => {}
                // Another slot may still open; if none does, this says more.
                Err(other) => failure = other,
            }
        }
        Err(failure)
    }

    /// The slots as bytes.
    pub fn to_bytes(&self) -> [u8; KEY_SLOTS_BYTES] {
        let mut out = [0; KEY_SLOTS_BYTES];
        for (slot, bytes) in self.0.iter().zip(out.chunks_exact_mut(KEY_SLOT_BYTES)) {
            if let Some(slot) = slot {
                bytes.copy_from_slice(&slot.encode());
            }
        }
        out
    }

    /// The slots in `bytes`, which must have exactly the length and form of [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CryptoError> {
        let (slots, rest) = bytes.as_chunks::<KEY_SLOT_BYTES>();
        if slots.len() != KEY_SLOTS || !rest.is_empty() {
            return Err(CryptoError::Malformed("wrong length of the key slots"));
        }
        let mut out = Self::new();
        for (slot, bytes) in out.0.iter_mut().zip(slots) {
            *slot = KeySlot::decode(bytes)?;
        }
        Ok(out)
    }

    fn write(
        &mut self,
        index: SlotIndex,
        master: &MasterKey,
        volume: VolumeId,
        passphrase: &Passphrase,
        kdf: KdfParams,
        entropy: &mut dyn Entropy,
    ) -> Result<(), CryptoError> {
        let place = slot_place(volume, index);
        self.0[index.get()] = Some(KeySlot::lock(master, &place, passphrase, kdf, entropy)?);
        Ok(())
    }
}

/// Binds a sealed master key to its volume and slot.
fn slot_place(volume: VolumeId, index: SlotIndex) -> Place {
    Place { volume, kind: Kind::Header, index: index.get() as u64, version: 0 }
}
