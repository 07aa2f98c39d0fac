//! Groups: objects without a header of their own, under consecutive nonces of one session.

use oblivio_crypto::{
    CryptoError, GroupMark, Kind, Place, SEAL_OVERHEAD, SealLimits, SealRoot, Sealer,
    SeededEntropy, Tag, VolumeId,
};
use std::collections::BTreeSet;

const OBJECTS: u64 = 5;
const BYTES: usize = 48;

fn place(index: u64) -> Place {
    Place { volume: VolumeId([7; 16]), kind: Kind::Slot, index, version: 3 }
}

fn sealer(entropy: u64) -> Sealer {
    Sealer::new(SealRoot::from_seed(1), Box::new(SeededEntropy::new(entropy)))
}

fn plain(index: u64) -> Vec<u8> {
    vec![index as u8 + 1; BYTES]
}

fn seal_all(sealer: &mut Sealer) -> (GroupMark, Vec<(Tag, Vec<u8>)>) {
    let mut group = sealer.begin_group(OBJECTS, BYTES as u64).expect("a fresh key");
    let seal = |index| {
        let mut data = plain(index);
        (group.seal(&place(index), &mut data).expect("announced"), data)
    };
    let sealed = (0..OBJECTS).map(seal).collect();
    (group.mark(), sealed)
}

#[test]
fn each_object_opens_alone_at_its_place_and_number_and_nowhere_else() {
    let mut writer = sealer(1);
    writer.seal_vec(&place(9), b"something before").expect("seals");
    let (mark, sealed) = seal_all(&mut writer);
    for mut reader in [writer, sealer(2)] {
        for (at, (tag, data)) in sealed.iter().enumerate() {
            assert_eq!(data.len(), BYTES);
            for index in 0..OBJECTS + 1 {
                for there in 0..OBJECTS {
                    let mut copy = data.clone();
                    let opened = reader.open_in_group(&mark, index, &place(there), tag, &mut copy);
                    if index == at as u64 && there == at as u64 {
                        assert_eq!(opened, Ok(()));
                        assert_eq!(copy, plain(index));
                    } else {
                        assert_eq!(opened, Err(CryptoError::Forged));
                        assert_ne!(copy, plain(at as u64));
                    }
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    let mut sealer = sealer(1);
    let (mark, sealed) = seal_all(&mut sealer);
    let (tag, data) = &sealed[2];
    for bit in 0..BYTES * 8 {
        let mut flipped = data.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let opened = sealer.open_in_group(&mark, 2, &place(2), tag, &mut flipped);
        assert_eq!(opened, Err(CryptoError::Forged), "bit {bit}");
    }
    for bit in 0..mark.0.len() * 8 {
        let mut flipped = mark;
        flipped.0[bit / 8] ^= 1 << (bit % 8);
        let opened = sealer.open_in_group(&flipped, 2, &place(2), tag, &mut data.clone());
        assert_eq!(opened, Err(CryptoError::Forged), "bit {bit} of the mark");
    }
}

/// Several threads may open objects of several sessions; wrong objects are refused as ever.
#[test]
fn openers_open_what_any_session_sealed() {
    let mut writers = [sealer(1), sealer(2), sealer(3)];
    let groups: Vec<_> = writers.iter_mut().map(seal_all).collect();
    let opener = sealer(4).opener();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (opener, groups) = (opener.clone(), &groups);
            scope.spawn(move || {
                let mut opening = opener.begin();
                for index in 0..OBJECTS {
                    for (mark, sealed) in groups {
                        let (tag, data) = &sealed[index as usize];
                        for other in 0..OBJECTS {
                            let mut copy = data.clone();
                            let opened = opening.open(mark, other, &place(index), tag, &mut copy);
                            assert_eq!(opened.is_ok(), other == index);
                            assert_eq!(copy == plain(index), other == index);
                        }
                        let opened = opening.open(mark, u64::MAX, &place(index), tag, &mut []);
                        assert_eq!(opened, Err(CryptoError::Forged));
                    }
                }
            });
        }
    });
}

/// A group sealed in parts equals one sealed in one piece.
#[test]
fn parts_of_a_group_seal_what_the_whole_would() {
    let whole = seal_all(&mut sealer(1)).1;
    let mut rest = sealer(1).begin_group(OBJECTS, BYTES as u64).expect("a fresh key");
    let front = rest.split_off_front(2);
    let mut found = vec![(Tag::default(), Vec::new()); OBJECTS as usize];
    for (mut part, numbers) in [(rest, 2..OBJECTS), (front, 0..2)] {
        for index in numbers {
            let mut data = plain(index);
            let tag = part.seal(&place(index), &mut data).expect("announced");
            found[index as usize] = (tag, data);
        }
        assert!(part.seal(&place(9), &mut plain(9)).is_err(), "no nonce is left in the part");
        assert!(part.split_off_front(3).seal(&place(9), &mut plain(9)).is_err());
    }
    assert_eq!(found, whole);
}

/// Groups, unsealed objects of abandoned groups, and single objects never share a nonce.
#[test]
fn no_nonce_is_used_twice() {
    let mut sealer = sealer(1);
    let mut seen = BTreeSet::new();
    let mut used = |from: [u8; 24], count: u64| {
        let counter = u64::from_le_bytes(from[16..].try_into().expect("eight bytes"));
        for counter in counter..counter + count {
            assert!(seen.insert((from[..16].to_vec(), counter)), "nonce {counter} again");
        }
    };
    for round in 0..50u64 {
        used(seal_all(&mut sealer).0.0, OBJECTS);
        let _given_up = sealer.begin_group(round, 1).expect("a fresh key");
        let single = sealer.seal_vec(&place(0), b"x").expect("seals");
        used(single[..24].try_into().expect("a header"), 1);
    }
}

#[test]
fn a_group_takes_no_more_than_was_said_and_counts_against_the_limits() {
    let mut sealer = sealer(1);
    let mut group = sealer.begin_group(1, 4).expect("a fresh key");
    assert!(matches!(group.seal(&place(0), &mut [0; 5]), Err(CryptoError::Malformed(_))));
    group.seal(&place(0), &mut [0; 4]).expect("as said");
    assert!(matches!(group.seal(&place(0), &mut [0; 1]), Err(CryptoError::Malformed(_))));

    let limits =
        SealLimits { soft_messages: 10, soft_bytes: 100, hard_messages: 20, hard_bytes: 200 };
    let entropy = Box::new(SeededEntropy::new(1));
    let mut sealer = Sealer::with_limits(SealRoot::from_seed(1), entropy, limits);
    assert!(matches!(sealer.begin_group(21, 1), Err(CryptoError::KeyExhausted)));
    assert!(matches!(sealer.begin_group(3, 67), Err(CryptoError::KeyExhausted)));
    let salt = |mark: GroupMark| mark.0[..16].to_vec();
    let first = salt(sealer.begin_group(10, 1).expect("within the limits").mark());
    let second = salt(sealer.begin_group(10, 1).expect("under a fresh key").mark());
    assert_ne!(first, second);
    let sealed = sealer.seal_vec(&place(0), b"x").expect("under another one");
    assert_eq!(sealed.len(), SEAL_OVERHEAD + 1);
    assert_ne!(sealed[..16], second);
}
