//! Key slots: the master key, sealed once for each passphrase.
//!
//! Adding, changing or removing a passphrase writes one slot and re-encrypts nothing else. So it
//! cannot undo the past: an old copy of the slots, *together with* an old passphrase, still opens
//! the volume.

use crate::passphrase::KDF_BYTES;
use crate::secret::same_bytes;
use crate::session::Cipher;
use crate::{
    CryptoError, Entropy, KdfParams, Kind, MasterKey, Passphrase, Place, Secret, TAG_BYTES,
};
use crate::{VolumeId, labels};
use std::fmt;

/// Slots of a volume.
pub const KEY_SLOTS: usize = 8;
/// Bytes of one slot: `[state 1][zeros 3][kdf 12][salt 32][commitment 32][sealed key 32][tag 16]`.
pub const KEY_SLOT_BYTES: usize = 128;
/// Bytes of all slots.
pub const KEY_SLOTS_BYTES: usize = KEY_SLOTS * KEY_SLOT_BYTES;

const STATE_EMPTY: u8 = 0;
const STATE_USED: u8 = 1;

/// The index of a slot.
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

/// One passphrase's way to the master key. Nothing in it is secret in itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeySlot {
    kdf: KdfParams,
    salt: [u8; 32],
    /// Commits to the slot key. With GCM alone, a forger could make one slot that opens under
    /// several passphrases, and learn from the error which one was tried; this ties it to one. It
    /// also distinguishes a wrong passphrase from a damaged slot.
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

    /// Does the same work for a right and a wrong passphrase.
    fn unlock(&self, place: &Place, passphrase: &Passphrase) -> Result<MasterKey, CryptoError> {
        let key = SlotKey::derive(self.kdf, passphrase, &self.salt)?;
        let mut opened = Ok(());
        let master = Secret::new(|bytes| {
            *bytes = self.sealed;
            opened = key.cipher().open(ONLY_NONCE, &place.encode(), bytes, &self.tag);
        });
        if !same_bytes(key.commitment(), &self.commitment) {
            return Err(CryptoError::WrongPassphrase);
        }
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

    /// The slot in `bytes`; none if it is empty. Accepts exactly the output of [`Self::encode`].
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

/// A slot key's one nonce. Every slot write draws a new 32-byte salt. So the key is new, seals this
/// one message and is dropped: the pair (key, nonce) is used exactly once.
const ONLY_NONCE: [u8; 12] = [0; 12];

/// Derived from a passphrase and a salt: 32 bytes of key, 32 of commitment, from one stretching.
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

/// All key slots of a volume, in header order.
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

    /// Lets `passphrase` open the volume, too. An error changes nothing.
    ///
    /// # Errors
    /// `AlreadyOpens` for a passphrase that a slot holds: a later removal removes all of it.
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
        self.replaced(&[], index, kdf)?;
        self.expect_new(volume, passphrase, &[])?;
        self.write(index, master, volume, passphrase, kdf, entropy)?;
        Ok(index)
    }

    /// Removes every slot that a passphrase opens, unless none would be left. Returns the master
    /// key. An error changes nothing.
    pub fn remove(
        &mut self,
        volume: VolumeId,
        victim: &Passphrase,
    ) -> Result<MasterKey, CryptoError> {
        let (master, opened) = self.unlock(volume, victim)?;
        if self.used().count() == opened.len() {
            return Err(CryptoError::LastSlot);
        }
        self.forget(&opened);
        Ok(master)
    }

    /// Puts `new` in the first of the slots that `old` opens and clears the others. Also returns
    /// the master key. An error changes nothing.
    ///
    /// # Errors
    /// `AlreadyOpens` when another slot holds `new`.
    pub fn change(
        &mut self,
        volume: VolumeId,
        old: &Passphrase,
        new: &Passphrase,
        kdf: KdfParams,
        entropy: &mut dyn Entropy,
    ) -> Result<(MasterKey, SlotIndex), CryptoError> {
        let (master, opened) = self.unlock(volume, old)?;
        let index = *opened.first().ok_or(CryptoError::WrongPassphrase)?;
        let mut changed = self.replaced(&opened, index, kdf)?;
        self.expect_new(volume, new, &opened)?;
        changed.write(index, &master, volume, new, kdf, entropy)?;
        *self = changed;
        Ok((master, index))
    }

    /// The master key, and all slots that `passphrase` opens: at least one.
    ///
    /// Tries every used slot in order, whichever opens. So the time between two reads of the store
    /// is the same for each passphrase of a volume.
    pub fn unlock(
        &self,
        volume: VolumeId,
        passphrase: &Passphrase,
    ) -> Result<(MasterKey, Vec<SlotIndex>), CryptoError> {
        let mut failure = CryptoError::WrongPassphrase;
        let (mut master, mut opened) = (None::<MasterKey>, Vec::new());
        for index in SlotIndex::all() {
            let Some(slot) = &self.0[index.get()] else { continue };
            match slot.unlock(&slot_place(volume, index), passphrase) {
                Ok(found) => {
                    // A passphrase holder may have made a slot with a key of his own.
                    if master.as_ref().is_some_and(|master| !master.same_as(&found)) {
                        return Err(CryptoError::Forged);
                    }
                    opened.push(index);
                    master = Some(found);
                }
                Err(CryptoError::WrongPassphrase) => {}
                // Another slot may still open. If none does, this error says more.
                Err(other) => failure = other,
            }
        }
        master.map(|master| (master, opened)).ok_or(failure)
    }

    /// Refuses a passphrase that opens a slot other than those in `but`.
    fn expect_new(
        &self,
        volume: VolumeId,
        passphrase: &Passphrase,
        but: &[SlotIndex],
    ) -> Result<(), CryptoError> {
        match self.unlock(volume, passphrase) {
            Ok((_, opened)) if opened.iter().any(|index| !but.contains(index)) => {
                Err(CryptoError::AlreadyOpens)
            }
            // No passphrase opens a damaged slot.
            Ok(_) | Err(CryptoError::WrongPassphrase | CryptoError::Forged) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// The slots without `gone`, if the work limit has room for one more with `kdf`.
    fn replaced(
        &self,
        gone: &[SlotIndex],
        index: SlotIndex,
        kdf: KdfParams,
    ) -> Result<Self, CryptoError> {
        kdf.check()?;
        let mut rest = self.clone();
        rest.forget(gone);
        debug_assert!(rest.0[index.get()].is_none());
        check_work(rest.work_kib() + kdf.work_kib())?;
        Ok(rest)
    }

    fn forget(&mut self, gone: &[SlotIndex]) {
        gone.iter().for_each(|index| self.0[index.get()] = None);
    }

    /// The cost of trying a passphrase: memory times passes of all used slots.
    fn work_kib(&self) -> u64 {
        self.0.iter().flatten().map(|slot| slot.kdf.work_kib()).sum()
    }

    /// The encoded slots.
    pub fn to_bytes(&self) -> [u8; KEY_SLOTS_BYTES] {
        let mut out = [0; KEY_SLOTS_BYTES];
        for (slot, bytes) in self.0.iter().zip(out.chunks_exact_mut(KEY_SLOT_BYTES)) {
            if let Some(slot) = slot {
                bytes.copy_from_slice(&slot.encode());
            }
        }
        out
    }

    /// Decodes slots. `bytes` must have exactly the length and form of [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CryptoError> {
        let (slots, rest) = bytes.as_chunks::<KEY_SLOT_BYTES>();
        if slots.len() != KEY_SLOTS || !rest.is_empty() {
            return Err(CryptoError::Malformed("wrong length of the key slots"));
        }
        let mut out = Self::new();
        for (slot, bytes) in out.0.iter_mut().zip(slots) {
            *slot = KeySlot::decode(bytes)?;
        }
        check_work(out.work_kib())?;
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

/// Refuses slots that would take minutes to try. The limit for one slot is also that for all.
fn check_work(work_kib: u64) -> Result<(), CryptoError> {
    match work_kib > KdfParams::MAX_WORK_KIB {
        true => Err(CryptoError::TooMuchWork),
        false => Ok(()),
    }
}

/// Binds a sealed master key to its volume and slot.
fn slot_place(volume: VolumeId, index: SlotIndex) -> Place {
    Place { volume, kind: Kind::Header, index: index.get() as u64, version: 0 }
}
