//! The passphrases of a lane. They stand in front of each of its states, among random bytes:
//! without one of them, nobody can tell whether there is any.
//!
//! All lanes of a volume share one stretching, salted with the volume's identity. So it takes as
//! long to try a passphrase on all states of all lanes as on none. A slot has no mark of use: an
//! empty one is random. Each state has slots of its own salt, so no two are alike.

use crate::derive::derive_key;
use crate::session::Cipher;
use crate::{
    CryptoError, Entropy, KdfParams, Kind, MasterKey, Passphrase, Place, Secret, TAG_BYTES,
    VolumeId, labels,
};
use std::fmt;

/// Passphrases that a lane may have.
pub const LANE_SLOTS: usize = 4;
/// Bytes of the slots of a state: a salt; for each slot the sealed keys and their tag.
pub const LANE_SLOTS_BYTES: usize = SALT + LANE_SLOTS * SLOT;
/// Bytes of the passphrases' keys, sealed for the lane's state.
pub const LANE_KEYS_BYTES: usize = SALT + LANE_SLOTS * KEPT + TAG_BYTES;

const SALT: usize = 32;
/// The lane's master key, the state's number, the keys of the volume and of the lane before it.
const SEALED: usize = 32 + 8 + 2 * 32;
const SLOT: usize = SEALED + TAG_BYTES;
/// A mark of use and a key.
const KEPT: usize = 1 + 32;

/// The one nonce of each key here: every key is derived with a fresh random salt of 32 bytes, seals
/// one message and is dropped.
const ONLY_NONCE: [u8; 12] = [0; 12];

/// A stretched passphrase.
pub struct LaneKey(Secret<32>);

/// What a passphrase of a lane opens.
pub struct LaneSecrets {
    /// The lane's master key.
    pub master: MasterKey,
    /// The number of the state that the slot is of.
    pub number: u64,
    /// The keys of the volume and of the lanes before it, in this order.
    pub before: Vec<MasterKey>,
}

impl fmt::Debug for LaneSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LaneSecrets({}, ..)", self.number)
    }
}

impl LaneKey {
    /// Stretches a passphrase for the lanes of a volume.
    ///
    /// # Errors
    /// `Malformed` or `OutOfMemory` for parameters that cannot be.
    pub fn stretch(
        kdf: KdfParams,
        passphrase: &Passphrase,
        volume: VolumeId,
    ) -> Result<Self, CryptoError> {
        kdf.stretch(passphrase, &volume.0).map(Self)
    }

    fn slot(&self, salt: &[u8]) -> Cipher {
        Cipher::new(derive_key(labels::LANE_SLOT, &[self.0.expose(), salt]).expose())
    }

    /// Tries it on the slots of a state. It takes as long whether one opens or not.
    pub fn open(&self, slots: &[u8; LANE_SLOTS_BYTES], lane: &LanePlace) -> Option<LaneSecrets> {
        let (salt, slots) = slots.split_at(SALT);
        let cipher = self.slot(salt);
        let mut found = None;
        // There are hundreds of states: a page of memory for each slot would take longer than the
        // slot does.
        drop(Secret::<SEALED>::new(|plain| {
            for (slot, bytes) in slots.chunks_exact(SLOT).enumerate() {
                let (sealed, tag) = bytes.split_at(SEALED);
                plain.copy_from_slice(sealed);
                let opened = cipher.open(ONLY_NONCE, &lane.slot(slot).encode(), plain, tag);
                if opened.is_ok() {
                    found = Some(secrets(plain, lane));
                }
            }
        }));
        found
    }
}

fn key_at(plain: &[u8; SEALED], at: usize) -> MasterKey {
    MasterKey::from_secret(Secret::new(|key| key.copy_from_slice(&plain[at..at + 32])))
}

fn secrets(plain: &[u8; SEALED], lane: &LanePlace) -> LaneSecrets {
    let mut number = [0; 8];
    number.copy_from_slice(&plain[32..40]);
    LaneSecrets {
        master: key_at(plain, 0),
        number: u64::from_le_bytes(number),
        before: (0..=usize::from(lane.lane).min(1)).map(|at| key_at(plain, 40 + at * 32)).collect(),
    }
}

/// A place for a state of a lane.
#[derive(Clone, Copy, Debug)]
pub struct LanePlace {
    /// The volume.
    pub volume: VolumeId,
    /// Which lane, counted from 0.
    pub lane: u8,
    /// Which place of its ring.
    pub place: u64,
}

impl LanePlace {
    fn slot(&self, slot: usize) -> Place {
        let index = u64::from(self.lane) * LANE_SLOTS as u64 + slot as u64;
        Place { volume: self.volume, kind: Kind::LaneSlot, index, version: self.place }
    }

    fn keys(&self) -> Place {
        let index = self.lane.into();
        Place { volume: self.volume, kind: Kind::LaneKeys, index, version: self.place }
    }
}

/// The passphrases of an open lane, stretched: each state has slots for all of them.
#[derive(Default)]
pub struct LanePassphrases([Option<LaneKey>; LANE_SLOTS]);

impl LanePassphrases {
    /// One passphrase.
    pub fn one(key: LaneKey) -> Self {
        Self([Some(key), None, None, None])
    }

    /// None: all slots are random.
    pub fn none() -> Self {
        Self([None, None, None, None])
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Whether this is one of them.
    pub fn have(&self, key: &LaneKey) -> bool {
        self.0.iter().flatten().any(|own| own.0.same_as(&key.0))
    }

    /// The slots of a state.
    ///
    /// # Errors
    /// Those of the cipher.
    pub fn slots(
        &self,
        secrets: (&MasterKey, u64, &[&MasterKey]),
        lane: &LanePlace,
        entropy: &mut dyn Entropy,
    ) -> Result<[u8; LANE_SLOTS_BYTES], CryptoError> {
        let (master, number, before) = secrets;
        let mut slots = [0; LANE_SLOTS_BYTES];
        // Empty slots stay as they are drawn here.
        entropy.fill(&mut slots);
        let (salt, rest) = slots.split_at_mut(SALT);
        for (slot, (key, bytes)) in self.0.iter().zip(rest.chunks_exact_mut(SLOT)).enumerate() {
            let Some(key) = key else { continue };
            let (sealed, tag) = bytes.split_at_mut(SEALED);
            sealed[..32].copy_from_slice(master.expose());
            sealed[32..40].copy_from_slice(&number.to_le_bytes());
            for (place, key) in sealed[40..].chunks_exact_mut(32).zip(before) {
                place.copy_from_slice(key.expose());
            }
            key.slot(salt).seal(ONLY_NONCE, &lane.slot(slot).encode(), sealed, tag)?;
        }
        Ok(slots)
    }

    /// Their keys, sealed for a state of the lane with this master key.
    ///
    /// # Errors
    /// Those of the cipher.
    pub fn seal(
        &self,
        master: &MasterKey,
        lane: &LanePlace,
        entropy: &mut dyn Entropy,
    ) -> Result<[u8; LANE_KEYS_BYTES], CryptoError> {
        let mut out = [0; LANE_KEYS_BYTES];
        let (salt, rest) = out.split_at_mut(SALT);
        let (sealed, tag) = rest.split_at_mut(LANE_SLOTS * KEPT);
        entropy.fill(salt);
        for (key, place) in self.0.iter().zip(sealed.chunks_exact_mut(KEPT)) {
            let Some(key) = key else { continue };
            place[0] = 1;
            place[1..].copy_from_slice(key.0.expose());
        }
        keys_cipher(master, salt).seal(ONLY_NONCE, &lane.keys().encode(), sealed, tag)?;
        Ok(out)
    }

    /// The keys in a state of the lane.
    ///
    /// # Errors
    /// `Forged` for what [`Self::seal`] did not make.
    pub fn open(
        master: &MasterKey,
        lane: &LanePlace,
        bytes: &[u8; LANE_KEYS_BYTES],
    ) -> Result<Self, CryptoError> {
        let (salt, rest) = bytes.split_at(SALT);
        let (sealed, tag) = rest.split_at(LANE_SLOTS * KEPT);
        let mut opened = Ok(());
        let plain = Secret::<{ LANE_SLOTS * KEPT }>::new(|plain| {
            plain.copy_from_slice(sealed);
            let cipher = keys_cipher(master, salt);
            opened = cipher.open(ONLY_NONCE, &lane.keys().encode(), plain, tag);
        });
        opened?;
        let mut keys = Self::default();
        for (key, place) in keys.0.iter_mut().zip(plain.expose().chunks_exact(KEPT)) {
            let kept = || LaneKey(Secret::new(|key| key.copy_from_slice(&place[1..])));
            *key = (place[0] == 1).then(kept);
        }
        Ok(keys)
    }
}

fn keys_cipher(master: &MasterKey, salt: &[u8]) -> Cipher {
    Cipher::new(derive_key(labels::LANE_KEYS, &[master.expose(), salt]).expose())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededEntropy;

    fn place(lane: u8, place: u64) -> LanePlace {
        LanePlace { volume: VolumeId([7; 16]), lane, place }
    }

    fn key(passphrase: &str) -> LaneKey {
        let passphrase = Passphrase::new(passphrase);
        LaneKey::stretch(KdfParams::TEST, &passphrase, VolumeId([7; 16])).expect("it is stretched")
    }

    #[test]
    fn a_passphrase_opens_what_was_put_into_its_slot_and_nothing_else() {
        let mut entropy = SeededEntropy::new(1);
        let [master, outer, first] = [(); 3].map(|()| MasterKey::generate(&mut entropy));
        let mut passphrases = LanePassphrases::one(key("a lane's"));
        passphrases.0[2] = Some(key("another"));
        for lane in [0, 1] {
            let before: &[&MasterKey] = if lane == 0 { &[&outer] } else { &[&outer, &first] };
            let at = place(lane, 5);
            let slots = passphrases.slots((&master, 77, before), &at, &mut entropy);
            let slots = slots.expect("they are sealed");
            for passphrase in ["a lane's", "another"] {
                let found = key(passphrase).open(&slots, &at).expect("it opens");
                assert!(found.master.same_as(&master) && found.number == 77);
                assert_eq!(found.before.len(), before.len());
                assert!(found.before.iter().zip(before).all(|(one, two)| one.same_as(two)));
            }
            assert!(key("a lanes").open(&slots, &at).is_none(), "another passphrase");
            for other in [place(lane, 6), place(1 - lane, 5)] {
                assert!(key("another").open(&slots, &other).is_none(), "another place");
            }
            for at in 0..LANE_SLOTS_BYTES {
                let mut changed = slots;
                changed[at] ^= 1;
                let opened = ["a lane's", "another"]
                    .map(|it| key(it).open(&changed, &place(lane, 5)).is_some());
                let slot = at.checked_sub(SALT).map(|at| at / SLOT);
                let expected = slot.map_or([false; 2], |slot| [slot != 0, slot != 2]);
                assert_eq!(opened, expected, "byte {at}");
            }
        }
    }

    #[test]
    fn a_state_keeps_the_keys_for_the_next_ones() {
        let mut entropy = SeededEntropy::new(2);
        let [master, other] = [(); 2].map(|()| MasterKey::generate(&mut entropy));
        let passphrases = LanePassphrases::one(key("a lane's"));
        assert!(passphrases.have(&key("a lane's")) && !passphrases.have(&key("another")));
        let sealed = passphrases.seal(&master, &place(0, 3), &mut entropy).expect("sealed");
        let kept = LanePassphrases::open(&master, &place(0, 3), &sealed).expect("they open");
        let slots = kept.slots((&master, 4, &[&other]), &place(0, 4), &mut entropy);
        let found = key("a lane's").open(&slots.expect("sealed"), &place(0, 4)).expect("it opens");
        assert!(found.master.same_as(&master));
        assert!(LanePassphrases::open(&other, &place(0, 3), &sealed).is_err());
        assert!(LanePassphrases::open(&master, &place(0, 4), &sealed).is_err());
    }

    #[test]
    fn slots_show_neither_how_many_are_used_nor_which() {
        let mut entropy = SeededEntropy::new(3);
        let master = MasterKey::generate(&mut entropy);
        for count in 0..=LANE_SLOTS {
            let mut passphrases = LanePassphrases::default();
            (0..count).for_each(|at| passphrases.0[at] = Some(key(&at.to_string())));
            let (mut ones, mut last) = (0u32, [0; LANE_SLOTS_BYTES]);
            for number in 0..200 {
                let slots = passphrases.slots((&master, number, &[]), &place(0, 1), &mut entropy);
                let slots = slots.expect("they are sealed");
                ones += slots.iter().map(|byte| byte.count_ones()).sum::<u32>();
                assert!(slots.chunks(16).zip(last.chunks(16)).all(|(one, two)| one != two));
                last = slots;
            }
            // Half of the bits, give or take ten deviations.
            let half = 200 * LANE_SLOTS_BYTES as u32 * 4;
            assert!(ones.abs_diff(half) < 10 * 454, "{count}: {ones} of {}", 2 * half);
        }
    }
}
