//! Second copies of the memory: parities of the parts that hold it.
//!
//! All parts together are the memory, and a lost one takes with it what only it has: the newest
//! blocks, the list of all, a share of the map. Two of each part would be as much again to send and
//! to store. So the parts of eight commits in a row are a *group*, and the sum of their stored
//! bytes, modulo 2, is an object of its own. With it any one part of a group comes back, and its
//! digest in the commit says that it is the right one. A group goes as a whole.
//!
//! A parity is stored when its group is complete, and when a session comes to rest. In between the
//! memory is in the memory of this computer, and the next parity takes in what it has sent.

use oblivio_crypto::digest;
use std::collections::BTreeMap;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The most parts of a group.
pub(super) const GROUP: u64 = 8;

/// A stored parity of the parts of these commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parity {
    /// The random name of the session that stored it.
    pub session: u64,
    pub first: u64,
    pub last: u64,
    pub bytes: u64,
    pub digest: [u8; 32],
}

/// As stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct StoredParity {
    session: U64,
    first: U64,
    last: U64,
    bytes: U64,
    digest: [u8; 32],
}

impl StoredParity {
    pub fn new(of: &Parity) -> Self {
        let [session, first, last, bytes] = [of.session, of.first, of.last, of.bytes].map(U64::new);
        Self { session, first, last, bytes, digest: of.digest }
    }

    pub fn get(&self) -> Parity {
        let numbers = [&self.session, &self.first, &self.last, &self.bytes];
        let [session, first, last, bytes] = numbers.map(|it| it.get());
        Parity { session, first, last, bytes, digest: self.digest }
    }
}

/// The sum of the parts of a group so far.
struct Sum {
    first: u64,
    last: u64,
    bytes: Vec<u8>,
}

/// The parities of the stored parts.
pub(super) struct Parities {
    /// Parts of a group.
    size: u64,
    /// By group: those that have a part which no stored parity has.
    sums: BTreeMap<u64, Sum>,
    /// By group: those that the last checkpoint names.
    stored: BTreeMap<u64, Parity>,
}

impl Parities {
    /// None, where this many parts are the memory.
    pub fn new(kept: u64) -> Self {
        Self { size: kept.clamp(1, GROUP), sums: BTreeMap::new(), stored: BTreeMap::new() }
    }

    /// Those that a commit names.
    pub fn take(&mut self, stored: &[Parity]) {
        self.stored = stored.iter().map(|of| (of.last / self.size, *of)).collect();
    }

    /// All that are stored.
    pub fn stored(&self) -> Vec<Parity> {
        self.stored.values().copied().collect()
    }

    /// The stored one that has the part of a commit.
    pub fn with(&self, number: u64) -> Option<Parity> {
        let found = self.stored.get(&(number / self.size)).copied();
        found.filter(|of| (of.first..=of.last).contains(&number))
    }

    /// Whether a checkpoint completes a group.
    pub fn completes(&self, number: u64) -> bool {
        (number + 1).is_multiple_of(self.size)
    }

    /// The first commit whose part stays, with the newest commit and the parts that are the memory.
    pub fn first_kept(&self, number: u64, kept: u64) -> u64 {
        let oldest = (number + 1).saturating_sub(kept);
        (oldest / self.size * self.size).max(1)
    }

    /// Adds the stored bytes of the part of a commit, in the order of commits.
    pub fn add(&mut self, number: u64, part: &[u8]) {
        let empty = || Sum { first: number, last: number, bytes: Vec::new() };
        let sum = self.sums.entry(number / self.size).or_insert_with(empty);
        sum.last = number;
        add(&mut sum.bytes, part);
    }

    /// Forgets the sums of groups that are stored as they are, and are complete.
    pub fn forget_complete(&mut self) {
        let (stored, size) = (&self.stored, self.size);
        self.sums.retain(|group, sum| {
            let same = stored.get(group).is_some_and(|of| of.last == sum.last);
            !same || !(sum.last + 1).is_multiple_of(size)
        });
    }

    /// The parities to store now, with the bytes of each; from then on they count as stored. Then
    /// those that they replace.
    pub fn store(&mut self, session: u64) -> (Vec<(Parity, Vec<u8>)>, Vec<Parity>) {
        let (mut new, mut old) = (Vec::new(), Vec::new());
        for (group, sum) in &self.sums {
            let Sum { first, last, bytes } = sum;
            let (first, last) = (*first, *last);
            if self.stored.get(group).is_some_and(|of| of.last == last) {
                continue;
            }
            let (len, digest) = (bytes.len() as u64, digest(bytes));
            let of = Parity { session, first, last, bytes: len, digest };
            old.extend(self.stored.insert(*group, of));
            new.push((of, bytes.clone()));
        }
        self.forget_complete();
        (new, old)
    }

    /// Forgets groups before the part of a commit, and gives their parities.
    pub fn retire(&mut self, first: u64) -> Vec<Parity> {
        let group = first / self.size;
        self.sums = self.sums.split_off(&group);
        let stay = self.stored.split_off(&group);
        std::mem::replace(&mut self.stored, stay).into_values().collect()
    }
}

/// Adds modulo 2; what is missing at an end is zeros.
fn add(sum: &mut Vec<u8>, part: &[u8]) {
    if sum.len() < part.len() {
        sum.resize(part.len(), 0);
    }
    sum.iter_mut().zip(part).for_each(|(sum, byte)| *sum ^= byte);
}

/// The part or parity of this length and digest that is missing beside all others of a group;
/// `None` if they are no such group.
pub(super) fn missing_part(
    others: impl IntoIterator<Item = Vec<u8>>,
    (bytes, expected): (usize, [u8; 32]),
) -> Option<Vec<u8>> {
    let mut sum = Vec::new();
    others.into_iter().for_each(|part| add(&mut sum, &part));
    sum.truncate(bytes);
    (sum.len() == bytes && digest(&sum) == expected).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_testkit::SplitMix64;

    /// However long the parts are, and wherever sessions come to rest: each part of each group
    /// comes back from the others.
    #[test]
    fn any_one_part_comes_back() {
        let mut dice = SplitMix64::new(7);
        for kept in [1, 2, 3, 8, 24] {
            let mut parities = Parities::new(kept);
            let mut parts: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
            let mut objects: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
            for number in 1..80 {
                let part: Vec<u8> =
                    (0..20 + dice.below(5)).map(|_| dice.below(256) as u8).collect();
                parities.add(number, &part);
                parts.insert(number, part);
                let first = parities.first_kept(number, kept);
                parts = parts.split_off(&first);
                parities.retire(first).iter().for_each(|of| drop(objects.remove(&of.last)));
                assert!(parts.len() as u64 >= kept.min(number));
                assert!((parts.len() as u64) < kept + 8);
                let rests = dice.below(3) == 0;
                if !rests && !parities.completes(number) {
                    continue;
                }
                let (new, old) = parities.store(5);
                objects.extend(new.into_iter().map(|(of, bytes)| (of.last, bytes)));
                old.iter().for_each(|of| drop(objects.remove(&of.last)));
                let stored: Vec<u64> = parities.stored().iter().map(|of| of.last).collect();
                assert_eq!(objects.keys().copied().collect::<Vec<_>>(), stored);
                // As a later session knows them.
                let mut later = Parities::new(kept);
                later.take(&parities.stored());
                for (gone, part) in &parts {
                    let of = later.with(*gone).expect("each part has one");
                    let others = (of.first..=of.last).filter(|it| it != gone);
                    let mut others: Vec<_> = others.map(|it| parts[&it].clone()).collect();
                    let parity = objects[&of.last].clone();
                    assert_eq!(digest(&parity), of.digest);
                    others.push(parity);
                    let found = missing_part(others.clone(), (part.len(), digest(part)));
                    assert_eq!(found.as_ref(), Some(part));
                    others[0][3] ^= 1;
                    assert_eq!(missing_part(others, (part.len(), digest(part))), None);
                }
            }
        }
    }
}
