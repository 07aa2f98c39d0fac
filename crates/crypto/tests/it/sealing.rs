//! Sealed objects open whole in their own place, and in no other.

use oblivio_crypto::{
    CryptoError, Entropy, Kind, Place, SEAL_HEADER, SEAL_OVERHEAD, SealLimits, SealRoot, Sealer,
    SeededEntropy, TAG_BYTES, Tag, VolumeId, tag_of,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const PLACE: Place = Place { volume: VolumeId([7; 16]), kind: Kind::Bucket, index: 5, version: 9 };

fn sealer(entropy: u64) -> Sealer {
    Sealer::new(SealRoot::from_seed(1), Box::new(SeededEntropy::new(entropy)))
}

fn limited(limits: SealLimits) -> Sealer {
    let entropy = Box::new(SeededEntropy::new(1));
    Sealer::with_limits(SealRoot::from_seed(1), entropy, limits)
}

fn salt(sealed: &[u8]) -> [u8; 16] {
    sealed[..16].try_into().expect("a salt")
}

fn counter(sealed: &[u8]) -> u64 {
    u64::from_le_bytes(sealed[16..24].try_into().expect("a counter"))
}

#[test]
fn seals_and_opens_in_place() {
    let mut buf = vec![0; SEAL_OVERHEAD + 360];
    buf[SEAL_HEADER..][..360].fill(0xab);
    let mut sealer = sealer(1);
    let tag = sealer.seal(&PLACE, &mut buf).expect("seals");
    assert_eq!(tag_of(&buf), Some(tag));
    assert_eq!(&buf[buf.len() - TAG_BYTES..], tag.0);
    assert!(!buf.windows(4).any(|bytes| bytes == [0xab; 4]), "plaintext shows");
    assert_eq!(sealer.open(&PLACE, &mut buf).expect("opens"), [0xab; 360]);
}

#[test]
fn another_session_opens_it_too_but_not_another_root() {
    let sealed = sealer(1).seal_vec(&PLACE, b"hello").expect("seals");
    let mut reader = sealer(2);
    for _ in 0..3 {
        assert_eq!(reader.open_vec(&PLACE, &sealed).expect("opens"), b"hello");
    }
    let mut stranger = Sealer::new(SealRoot::from_seed(2), Box::new(SeededEntropy::new(1)));
    assert_eq!(stranger.open_vec(&PLACE, &sealed), Err(CryptoError::Forged));
}

#[test]
fn every_flipped_bit_is_refused() {
    let sealed = sealer(1).seal_vec(&PLACE, &[0x33; 50]).expect("seals");
    let (mut own, mut other) = (sealer(1), sealer(2));
    other.open_vec(&PLACE, &sealed).expect("cached from here on");
    for bit in 0..sealed.len() * 8 {
        let mut flipped = sealed.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(own.open_vec(&PLACE, &flipped), Err(CryptoError::Forged), "bit {bit}");
        assert_eq!(other.open_vec(&PLACE, &flipped), Err(CryptoError::Forged), "bit {bit}");
    }
    assert_eq!(other.open_vec(&PLACE, &sealed).expect("still opens"), [0x33; 50]);
}

#[test]
fn every_truncation_and_extension_is_refused() {
    let mut sealer = sealer(1);
    let sealed = sealer.seal_vec(&PLACE, &[0x33; 50]).expect("seals");
    for len in 0..sealed.len() {
        let result = sealer.open_vec(&PLACE, &sealed[..len]);
        if len < SEAL_OVERHEAD {
            assert!(matches!(result, Err(CryptoError::Malformed(_))), "{len} bytes");
        } else {
            assert_eq!(result, Err(CryptoError::Forged), "{len} bytes");
        }
    }
    let longer = [&sealed[..], &[0]].concat();
    assert_eq!(sealer.open_vec(&PLACE, &longer), Err(CryptoError::Forged));
}

#[test]
fn a_buffer_without_room_is_refused() {
    for len in 0..SEAL_OVERHEAD {
        let mut buf = vec![0; len];
        assert!(matches!(sealer(1).seal(&PLACE, &mut buf), Err(CryptoError::Malformed(_))));
        assert_eq!(tag_of(&buf), None);
    }
    assert_eq!(tag_of(&[0; SEAL_OVERHEAD]), Some(Tag::default()));
}

#[test]
fn a_moved_object_is_refused() {
    let mut sealer = sealer(1);
    let sealed = sealer.seal_vec(&PLACE, b"here").expect("seals");
    let mut elsewhere = vec![
        Place { volume: VolumeId([8; 16]), ..PLACE },
        Place { index: 6, ..PLACE },
        Place { index: PLACE.index | 1 << 63, ..PLACE },
        Place { version: 8, ..PLACE },
        Place { version: PLACE.version | 1 << 63, ..PLACE },
        Place { index: PLACE.version, version: PLACE.index, ..PLACE },
    ];
    let kinds = [Kind::State, Kind::Delta, Kind::Commit, Kind::Journal, Kind::Header, Kind::Audit];
    elsewhere.extend(kinds.map(|kind| Place { kind, ..PLACE }));
    for place in elsewhere {
        assert_eq!(sealer.open_vec(&place, &sealed), Err(CryptoError::Forged), "{place:?}");
    }
    assert_eq!(sealer.open_vec(&PLACE, &sealed).expect("opens at home"), b"here");
}

#[test]
fn counters_never_repeat_and_sessions_differ() {
    let mut pairs = BTreeSet::new();
    let mut salts = BTreeSet::new();
    for session in 0..20 {
        let mut sealer = sealer(session);
        for _ in 0..200 {
            let sealed = sealer.seal_vec(&PLACE, b"same").expect("seals");
            salts.insert(salt(&sealed));
            assert!(pairs.insert((salt(&sealed), counter(&sealed))), "a nonce repeats");
            // Neither opening in between nor failed sealing may turn the counter back.
            sealer.open_vec(&PLACE, &sealed).expect("opens");
            assert!(sealer.seal(&PLACE, &mut [0; 3]).is_err());
        }
    }
    assert_eq!((salts.len(), pairs.len()), (20, 4000));
}

#[test]
fn equal_plaintexts_look_different() {
    let mut sealer = sealer(1);
    let one = sealer.seal_vec(&PLACE, &[0; 64]).expect("seals");
    let two = sealer.seal_vec(&PLACE, &[0; 64]).expect("seals");
    assert_ne!(one[SEAL_HEADER..], two[SEAL_HEADER..]);
}

#[test]
fn the_soft_limit_of_messages_changes_the_key() {
    let mut sealer = limited(SealLimits { soft_messages: 3, ..SealLimits::default() });
    let sealed: Vec<Vec<u8>> =
        (0..3000u32).map(|n| sealer.seal_vec(&PLACE, &n.to_le_bytes()).expect("seals")).collect();
    for (n, group) in sealed.chunks(3).enumerate() {
        assert!(group.iter().all(|object| salt(object) == salt(&group[0])), "group {n}");
        assert_eq!(group.iter().map(|object| counter(object)).collect::<Vec<_>>(), [0, 1, 2]);
    }
    let salts: BTreeSet<_> = sealed.iter().map(|object| salt(object)).collect();
    assert_eq!(salts.len(), 1000);
    // More sessions than the cache holds; all still open.
    for (n, object) in sealed.iter().enumerate() {
        let plain = sealer.open_vec(&PLACE, object).expect("an old object opens");
        assert_eq!(plain, (n as u32).to_le_bytes());
    }
}

#[test]
fn the_soft_limit_of_bytes_changes_the_key() {
    let mut sealer = limited(SealLimits { soft_bytes: 100, ..SealLimits::default() });
    let salts: Vec<_> =
        (0..6).map(|_| salt(&sealer.seal_vec(&PLACE, &[0; 50]).expect("seals"))).collect();
    assert_eq!(salts[0], salts[1]);
    assert_ne!(salts[1], salts[2]);
    assert_eq!(salts[2], salts[3]);
    assert_ne!(salts[3], salts[4]);
}

/// A broken generator with constant output.
struct Stuck;

impl Entropy for Stuck {
    fn fill(&mut self, out: &mut [u8]) {
        out.fill(4);
    }
}

#[test]
fn the_hard_limit_refuses_when_no_fresh_key_can_be_had() {
    let limits = SealLimits { soft_messages: 2, hard_messages: 5, ..SealLimits::default() };
    let mut sealer = Sealer::with_limits(SealRoot::from_seed(1), Box::new(Stuck), limits);
    // The salt cannot change, so the counter must go on.
    for expected in 0..5 {
        let sealed = sealer.seal_vec(&PLACE, b"x").expect("below the hard limit");
        assert_eq!(counter(&sealed), expected);
    }
    for _ in 0..3 {
        assert_eq!(sealer.seal_vec(&PLACE, b"x"), Err(CryptoError::KeyExhausted));
    }
}

/// A broken generator whose output repeats in a cycle.
struct Cycle(u8);

impl Entropy for Cycle {
    fn fill(&mut self, out: &mut [u8]) {
        self.0 = (self.0 + 1) % 3;
        out.fill(self.0);
    }
}

#[test]
fn a_salt_that_comes_back_is_not_taken_again() {
    let limits = SealLimits { soft_messages: 2, hard_messages: 50, ..SealLimits::default() };
    let mut sealer = Sealer::with_limits(SealRoot::from_seed(1), Box::new(Cycle(0)), limits);
    let mut pairs = BTreeSet::new();
    while let Ok(sealed) = sealer.seal_vec(&PLACE, b"x") {
        assert!(pairs.insert((salt(&sealed), counter(&sealed))), "a nonce repeats");
    }
    // Two messages under each of the first two salts, then the third until its hard limit.
    assert_eq!(pairs.len(), 2 + 2 + 50);
}

#[test]
fn the_hard_limit_of_bytes_refuses() {
    let mut sealer = limited(SealLimits { hard_bytes: 100, ..SealLimits::default() });
    sealer.seal_vec(&PLACE, &[0; 60]).expect("60 of 100");
    assert_eq!(sealer.seal_vec(&PLACE, &[0; 41]), Err(CryptoError::KeyExhausted));
    let sealed = sealer.seal_vec(&PLACE, &[0; 40]).expect("100 of 100");
    assert_eq!(counter(&sealed), 1, "a refusal takes no nonce");
}

#[test]
fn printing_a_sealer_shows_no_key() {
    let text = format!("{:?}", sealer(1));
    assert!(text.starts_with("Sealer { limits: SealLimits"), "{text}");
    assert!(text.ends_with(".. }"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn anything_comes_back(
        plain in proptest::collection::vec(any::<u8>(), 0..2000),
        index: u64, version: u64, volume: [u8; 16], seed: u64,
    ) {
        let place = Place { volume: VolumeId(volume), kind: Kind::Delta, index, version };
        let sealed = sealer(seed).seal_vec(&place, &plain).expect("seals");
        prop_assert_eq!(sealed.len(), plain.len() + SEAL_OVERHEAD);
        prop_assert_eq!(sealer(seed.wrapping_add(1)).open_vec(&place, &sealed), Ok(plain));
    }

    #[test]
    fn garbage_never_opens(mut buf in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(sealer(1).open(&PLACE, &mut buf).is_err());
    }
}
