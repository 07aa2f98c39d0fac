//! Key slots: several passphrases for one master key, and untrusted bytes.

use oblivio_crypto::{
    CryptoError, KEY_SLOT_BYTES, KEY_SLOTS, KEY_SLOTS_BYTES, KdfParams, KeySlots, MasterKey,
    Passphrase, SeededEntropy, SlotIndex, VolumeId,
};
use proptest::prelude::*;

const VOLUME: VolumeId = VolumeId([7; 16]);
const CHEAP: KdfParams = KdfParams::TEST;

/// Slots under test, with their entropy.
struct House {
    master: MasterKey,
    slots: KeySlots,
    entropy: SeededEntropy,
}

impl House {
    fn with(passphrases: &[&str]) -> Self {
        let mut entropy = SeededEntropy::new(1);
        let master = MasterKey::generate(&mut entropy);
        let mut house = Self { master, slots: KeySlots::new(), entropy };
        for passphrase in passphrases {
            house.add(passphrase).expect("a free slot");
        }
        house
    }

    fn add(&mut self, passphrase: &str) -> Result<SlotIndex, CryptoError> {
        let passphrase = Passphrase::new(passphrase);
        self.slots.add(&self.master, VOLUME, &passphrase, CHEAP, &mut self.entropy)
    }

    fn change(&mut self, old: &str, new: &str) -> Result<SlotIndex, CryptoError> {
        let (old, new) = (Passphrase::new(old), Passphrase::new(new));
        let changed = self.slots.change(VOLUME, &old, &new, CHEAP, &mut self.entropy);
        changed.map(|(_, index)| index)
    }

    fn remove(&mut self, victim: &str) -> Result<(), CryptoError> {
        self.slots.remove(VOLUME, &Passphrase::new(victim)).map(drop)
    }

    /// Slots as an earlier version could leave them: the second has the first one's passphrase.
    fn with_a_double(passphrases: &[&str]) -> Self {
        let mut house = Self::with(passphrases);
        let mut bytes = house.slots.to_bytes();
        let mut other = KeySlots::from_bytes(&bytes).expect("parses");
        let one = Passphrase::new(passphrases[0]);
        other
            .change(
                VOLUME,
                &Passphrase::new(passphrases[1]),
                &Passphrase::new("?"),
                CHEAP,
                &mut house.entropy,
            )
            .expect("changes");
        // Empty the first passphrase's slot, so that the second can take it over.
        other.remove(VOLUME, &one).expect("removes");
        other
            .change(VOLUME, &Passphrase::new("?"), &one, CHEAP, &mut house.entropy)
            .expect("changes");
        let second = KEY_SLOT_BYTES..2 * KEY_SLOT_BYTES;
        bytes[second.clone()].copy_from_slice(&other.to_bytes()[second]);
        house.slots = KeySlots::from_bytes(&bytes).expect("parses");
        house
    }

    /// The slot that `passphrase` opens, after a check of its key.
    fn unlock(&self, passphrase: &str) -> Result<usize, CryptoError> {
        let opened = self.opened(passphrase)?;
        assert_eq!(opened.len(), 1, "one slot opens");
        Ok(opened[0])
    }

    fn opened(&self, passphrase: &str) -> Result<Vec<usize>, CryptoError> {
        let (master, opened) = self.slots.unlock(VOLUME, &Passphrase::new(passphrase))?;
        let key = |master: &MasterKey| master.label_prf(VOLUME).label(1, 2);
        assert_eq!(key(&master), key(&self.master), "another master key came out");
        Ok(opened.into_iter().map(SlotIndex::get).collect())
    }
}

fn slot(index: usize) -> SlotIndex {
    SlotIndex::new(index).expect("a slot")
}

#[test]
fn each_passphrase_opens_its_slot() {
    let house = House::with(&["one", "two", "three"]);
    assert_eq!(house.unlock("one"), Ok(0));
    assert_eq!(house.unlock("two"), Ok(1));
    assert_eq!(house.unlock("three"), Ok(2));
    assert_eq!(house.slots.used().map(SlotIndex::get).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(house.slots.params(slot(1)), Some(CHEAP));
    assert_eq!(house.slots.params(slot(5)), None);
}

#[test]
fn wrong_passphrases_are_refused() {
    let house = House::with(&["one"]);
    for wrong in ["", "on", "one ", "One", "one\0"] {
        assert_eq!(house.unlock(wrong), Err(CryptoError::WrongPassphrase), "{wrong:?}");
    }
    assert_eq!(House::with(&[]).unlock("one"), Err(CryptoError::WrongPassphrase));
}

#[test]
fn there_are_eight_slots() {
    let names: Vec<String> = (0..KEY_SLOTS).map(|n| format!("number {n}")).collect();
    let mut house = House::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(house.add("one more"), Err(CryptoError::NoFreeSlot));
    assert_eq!(house.unlock("number 7"), Ok(7));
    house.remove("number 3").expect("removes");
    assert_eq!(house.add("one more").map(SlotIndex::get), Ok(3));
    assert_eq!(house.unlock("one more"), Ok(3));
    assert_eq!(SlotIndex::new(KEY_SLOTS), None);
    assert_eq!(SlotIndex::new(256), None);
}

#[test]
fn removing_takes_one_passphrase_and_never_the_last() {
    let mut house = House::with(&["one", "two"]);
    let before = house.slots.to_bytes();
    assert_eq!(house.remove("one"), Ok(()));
    assert_eq!(house.unlock("one"), Err(CryptoError::WrongPassphrase));
    assert_eq!(house.unlock("two"), Ok(1));
    assert_eq!(house.remove("one"), Err(CryptoError::WrongPassphrase));
    assert_eq!(house.remove("two"), Err(CryptoError::LastSlot));
    let after = house.slots.to_bytes();
    assert_eq!(after[..KEY_SLOT_BYTES], [0; KEY_SLOT_BYTES], "the slot is wiped");
    assert_eq!(after[KEY_SLOT_BYTES..], before[KEY_SLOT_BYTES..], "and nothing else touched");
}

#[test]
fn changing_rewrites_one_slot() {
    let mut house = House::with(&["one", "two", "three"]);
    let before = house.slots.to_bytes();
    assert_eq!(house.change("two", "zwei").map(SlotIndex::get), Ok(1));
    assert_eq!(house.unlock("two"), Err(CryptoError::WrongPassphrase));
    assert_eq!(house.unlock("zwei"), Ok(1));
    let after = house.slots.to_bytes();
    for (index, (old, new)) in
        before.chunks(KEY_SLOT_BYTES).zip(after.chunks(KEY_SLOT_BYTES)).enumerate()
    {
        assert_eq!(old != new, index == 1, "slot {index}");
    }
    assert_eq!(house.change("two", "drei"), Err(CryptoError::WrongPassphrase));
    assert_eq!(house.slots.to_bytes(), after, "a failed change changes nothing");
}

#[test]
fn parameters_out_of_bounds_write_nothing() {
    let mut house = House::with(&["one"]);
    let before = house.slots.clone();
    let huge = KdfParams { memory_kib: u32::MAX, passes: 1, lanes: 1 };
    let passphrase = Passphrase::new("two");
    let added = house.slots.add(&house.master, VOLUME, &passphrase, huge, &mut house.entropy);
    assert!(matches!(added, Err(CryptoError::Malformed(_))));
    assert_eq!(house.slots, before);
}

/// With the same passphrase twice, salts still make every key, and every sealed copy, new.
#[test]
fn equal_passphrases_give_unrelated_slots() {
    let house = House::with_a_double(&["same", "other"]);
    assert_eq!(house.opened("same"), Ok(vec![0, 1]));
    let bytes = house.slots.to_bytes();
    let (one, two) = bytes[..2 * KEY_SLOT_BYTES].split_at(KEY_SLOT_BYTES);
    for field in [16..48, 48..80, 80..112, 112..128] {
        assert_ne!(one[field.clone()], two[field]);
    }
}

/// A user of `passphrase add` and `change` expects that the old one no longer opens.
#[test]
fn a_passphrase_is_added_once() {
    let mut house = House::with(&["one", "two"]);
    let before = house.slots.to_bytes();
    assert_eq!(house.add("one"), Err(CryptoError::AlreadyOpens));
    assert_eq!(house.change("one", "two"), Err(CryptoError::AlreadyOpens));
    assert_eq!(house.slots.to_bytes(), before, "nothing has changed");
    // Changing it to itself renews it, for instance at another cost.
    assert_eq!(house.change("one", "one").map(SlotIndex::get), Ok(0));
    assert_eq!(house.unlock("one"), Ok(0));
    assert_ne!(house.slots.to_bytes(), before);
}

/// Earlier versions added the same passphrase twice.
#[test]
fn a_passphrase_goes_with_every_slot_that_it_opens() {
    let mut house = House::with_a_double(&["same", "other", "third"]);
    assert_eq!(house.remove("same"), Ok(()));
    assert_eq!(house.opened("same"), Err(CryptoError::WrongPassphrase));
    assert_eq!(house.slots.used().map(SlotIndex::get).collect::<Vec<_>>(), [2]);

    let mut house = House::with_a_double(&["same", "other", "third"]);
    assert_eq!(house.change("same", "new").map(SlotIndex::get), Ok(0));
    assert_eq!(house.opened("same"), Err(CryptoError::WrongPassphrase));
    assert_eq!(house.opened("new"), Ok(vec![0]));

    let mut house = House::with_a_double(&["same", "other"]);
    assert_eq!(house.remove("same"), Err(CryptoError::LastSlot), "two slots, one passphrase");
    assert_eq!(house.opened("same"), Ok(vec![0, 1]));
}

/// The time to open a volume must not identify the passphrase: the slots after the one that opens
/// are tried too. A slot that cannot be tried shows that.
#[test]
fn every_used_slot_is_tried() {
    let house = House::with(&["one", "two"]);
    let mut bytes = house.slots.to_bytes();
    for index in 0..2 {
        // A copy of an opening slot, in a place where it does not open: the test looks for its
        // failure.
        let (from, to) = (index * KEY_SLOT_BYTES, 5 * KEY_SLOT_BYTES);
        bytes.copy_within(from..from + KEY_SLOT_BYTES, to);
        let slots = KeySlots::from_bytes(&bytes).expect("parses");
        let passphrase = Passphrase::new(["one", "two"][index]);
        let (_, opened) = slots.unlock(VOLUME, &passphrase).expect("opens");
        assert_eq!(opened, [slot(index)]);
    }
    let double = House::with_a_double(&["same", "other", "third"]);
    assert_eq!(double.opened("same"), Ok(vec![0, 1]), "one that opens does not end the trying");
}

/// Eight slots at 1 GiB and 16 passes each: one such slot alone is within the limit.
#[test]
fn what_all_slots_cost_is_bounded() {
    let costs = |kib: u32, passes: u32, slots: usize| {
        let mut bytes = House::with(&["one"]).slots.to_bytes();
        for at in 1..slots {
            bytes.copy_within(..KEY_SLOT_BYTES, at * KEY_SLOT_BYTES);
        }
        for slot in bytes.chunks_mut(KEY_SLOT_BYTES).take(slots) {
            slot[4..8].copy_from_slice(&kib.to_le_bytes());
            slot[8..12].copy_from_slice(&passes.to_le_bytes());
        }
        KeySlots::from_bytes(&bytes).map(|slots| slots.used().count())
    };
    assert_eq!(costs(1 << 20, 16, 8), Err(CryptoError::TooMuchWork));
    assert_eq!(costs(1 << 20, 16, 5), Err(CryptoError::TooMuchWork));
    assert_eq!(costs(1 << 20, 16, 4), Ok(4));
    assert_eq!(costs(1 << 20, 8, 8), Ok(8));
    // A passphrase that would exceed the limit is not added.
    let mut house = House::with(&["one"]);
    let most = KdfParams { memory_kib: 1 << 22, passes: 16, lanes: 1 };
    let before = house.slots.to_bytes();
    let second = Passphrase::new("two");
    let added = house.slots.add(&house.master, VOLUME, &second, most, &mut house.entropy);
    assert_eq!(added, Err(CryptoError::TooMuchWork));
    assert_eq!(house.slots.to_bytes(), before);
}

/// A key of another volume in a slot that opens: a passphrase holder made it.
#[test]
fn slots_that_disagree_are_refused() {
    let (house, mut other) = (House::with(&["same"]), House::with(&["first", "same"]));
    let stranger = MasterKey::generate(&mut other.entropy);
    let mut slots = KeySlots::new();
    let add = |slots: &mut KeySlots, text: &str, entropy: &mut SeededEntropy| {
        slots.add(&stranger, VOLUME, &Passphrase::new(text), CHEAP, entropy).expect("adds")
    };
    add(&mut slots, "first", &mut other.entropy);
    add(&mut slots, "same", &mut other.entropy);
    let mut bytes = slots.to_bytes();
    bytes[..KEY_SLOT_BYTES].copy_from_slice(&house.slots.to_bytes()[..KEY_SLOT_BYTES]);
    let mixed = KeySlots::from_bytes(&bytes).expect("parses");
    let unlocked = mixed.unlock(VOLUME, &Passphrase::new("same"));
    assert_eq!(unlocked.err(), Some(CryptoError::Forged));
}

#[test]
fn a_slot_is_bound_to_its_volume_and_index() {
    let house = House::with(&["one", "two"]);
    let other = VolumeId([8; 16]);
    let unlocked = house.slots.unlock(other, &Passphrase::new("one"));
    assert_eq!(unlocked.err(), Some(CryptoError::Forged));
    let mut bytes = house.slots.to_bytes();
    bytes[..2 * KEY_SLOT_BYTES].rotate_left(KEY_SLOT_BYTES);
    let swapped = KeySlots::from_bytes(&bytes).expect("well formed");
    let unlocked = swapped.unlock(VOLUME, &Passphrase::new("one"));
    assert_eq!(unlocked.err(), Some(CryptoError::Forged));
}

#[test]
fn a_damaged_slot_does_not_hide_a_good_one() {
    let house = House::with_a_double(&["same", "other"]);
    let mut bytes = house.slots.to_bytes();
    bytes[100] ^= 1;
    let damaged = KeySlots::from_bytes(&bytes).expect("well formed");
    let (_, opened) = damaged.unlock(VOLUME, &Passphrase::new("same")).expect("the other opens");
    assert_eq!(opened, [slot(1)]);
}

#[test]
fn bytes_come_back_as_they_were() {
    let house = House::with(&["one", "two"]);
    let bytes = house.slots.to_bytes();
    let parsed = KeySlots::from_bytes(&bytes).expect("parses");
    assert_eq!(parsed, house.slots);
    let house = House { slots: parsed, ..house };
    assert_eq!(house.unlock("two"), Ok(1));
}

/// Every bit of a used slot matters: parsing or opening refuses a flipped one.
#[test]
fn every_flipped_bit_is_refused() {
    let house = House::with(&["one"]);
    let bytes = house.slots.to_bytes();
    // A flip high in the costs may be within bounds and yet take long. So those bits are left out
    // here; other tests check the bounds with the parameters themselves.
    let slow =
        |bit: usize| (4 * 8 + 14..8 * 8).contains(&bit) || (8 * 8 + 10..12 * 8).contains(&bit);
    for bit in (0..KEY_SLOT_BYTES * 8).filter(|bit| !slow(*bit)) {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        let Ok(slots) = KeySlots::from_bytes(&flipped) else { continue };
        assert!(slots.unlock(VOLUME, &Passphrase::new("one")).is_err(), "bit {bit}");
    }
}

#[test]
fn hostile_bytes_are_refused() {
    let good = House::with(&["one"]).slots.to_bytes();
    let with = |at: usize, value: &[u8]| {
        let mut bytes = good;
        bytes[at..at + value.len()].copy_from_slice(value);
        KeySlots::from_bytes(&bytes)
    };
    assert!(with(0, &[1]).is_ok());
    let huge = (KdfParams::MAX_MEMORY_KIB + 1).to_le_bytes();
    let hostile: [(usize, &[u8]); 9] = [
        (0, &[2]),                   // a state of the future
        (0, &[255]),                 // an invalid state
        (0, &[0]),                   // empty, but not blank
        (1, &[1]),                   // reserved bytes
        (4, &huge),                  // too much memory
        (4, &[0; 4]),                // no memory
        (8, &[255; 4]),              // endless passes
        (12, &[0; 4]),               // no lanes
        (KEY_SLOTS_BYTES - 1, &[1]), // a last slot, empty but not blank
    ];
    for (at, value) in hostile {
        assert!(matches!(with(at, value), Err(CryptoError::Malformed(_))), "{value:?} at {at}");
    }
}

#[test]
fn wrong_lengths_are_refused() {
    let good = House::with(&["one"]).slots.to_bytes();
    for len in 0..good.len() {
        assert!(KeySlots::from_bytes(&good[..len]).is_err(), "{len} bytes");
    }
    assert!(KeySlots::from_bytes(&[&good[..], &[0]].concat()).is_err());
    assert!(KeySlots::from_bytes(&[0; KEY_SLOTS_BYTES + KEY_SLOT_BYTES]).is_err());
}

proptest! {
    /// Bytes that parse are exactly the encoding: each state has one encoding.
    #[test]
    fn parsing_is_strict(
        garbage in proptest::collection::vec(any::<u8>(), KEY_SLOTS_BYTES),
        states in proptest::collection::vec(0u8..2, KEY_SLOTS),
        blank in any::<bool>(),
    ) {
        let mut bytes = garbage;
        for (slot, state) in bytes.chunks_mut(KEY_SLOT_BYTES).zip(states) {
            slot[..4].copy_from_slice(&[state, 0, 0, 0]);
            slot[4..16].copy_from_slice(&[64, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
            if state == 0 && blank {
                slot.fill(0);
            }
        }
        if let Ok(slots) = KeySlots::from_bytes(&bytes) {
            prop_assert_eq!(slots.to_bytes().to_vec(), bytes);
        }
    }

    #[test]
    fn garbage_is_refused(bytes in proptest::collection::vec(1u8.., KEY_SLOTS_BYTES)) {
        prop_assert!(KeySlots::from_bytes(&bytes).is_err());
    }

    #[test]
    fn any_passphrase_works(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut house = House::with(&[]);
        let passphrase = Passphrase::new(bytes);
        house.slots
            .add(&house.master, VOLUME, &passphrase, CHEAP, &mut house.entropy)
            .expect("a free slot");
        prop_assert!(house.slots.unlock(VOLUME, &passphrase).is_ok());
    }
}
