//! Removals of whole owners. One applies to the blocks whose last ask was before it: from its place
//! in the order on they read as absent, and the next merge that meets one drops it. So what the
//! store sees does not change.

use super::ids::{Name, Partition, Stamp};
use std::collections::BTreeMap;

/// The removals that still have blocks in tables, perhaps.
#[derive(Default)]
pub(super) struct Forgets {
    /// By owner: the first number that each removes, and its place in the order.
    open: BTreeMap<[u8; 16], Vec<(u64, Stamp)>>,
    /// By partition: the place of the newest merge of its base that is done.
    based: Vec<u64>,
}

impl Forgets {
    pub fn new(partitions: u32) -> Self {
        Self { open: BTreeMap::new(), based: vec![0; partitions as usize] }
    }

    /// How many are open.
    pub fn len(&self) -> u64 {
        self.open.values().map(|of_owner| of_owner.len() as u64).sum()
    }

    /// Adds a removal. Older ones that it covers are not needed any more.
    pub fn add(&mut self, first: Name, stamp: Stamp) {
        let of_owner = self.open.entry(first.owner).or_default();
        of_owner.retain(|(index, _)| *index < first.index);
        of_owner.push((first.index, stamp));
    }

    /// Whether a block whose last ask had this stamp is removed.
    pub fn applies(&self, name: Name, stamp: Stamp) -> bool {
        let covers = |(index, at): &(u64, Stamp)| name.index >= *index && stamp < *at;
        self.open.get(&name.owner).is_some_and(|of_owner| of_owner.iter().any(covers))
    }

    /// A partition's base was merged as of this many asks.
    pub fn based(&mut self, partition: Partition, place: u64) {
        self.based[partition.0 as usize] = place;
    }

    /// Whether some removal is in no table any more: all bases were merged after it.
    pub fn some_done(&self) -> bool {
        let place = self.merged_until();
        self.open.values().flatten().any(|(_, stamp)| stamp.0 < place)
    }

    /// Closes them.
    pub fn close_done(&mut self) {
        let place = self.merged_until();
        self.open.retain(|_, of_owner| {
            of_owner.retain(|(_, stamp)| stamp.0 >= place);
            !of_owner.is_empty()
        });
    }

    fn merged_until(&self) -> u64 {
        self.based.iter().copied().min().unwrap_or_default()
    }

    /// The places of the newest merges of the bases, by partition.
    pub fn bases(&self) -> &[u64] {
        &self.based
    }

    /// All of them: the first block of each, and its place.
    pub fn iter(&self) -> impl Iterator<Item = (Name, Stamp)> {
        self.open.iter().flat_map(|(&owner, of_owner)| {
            of_owner.iter().map(move |&(index, stamp)| (Name { owner, index }, stamp))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(owner: u8, index: u64) -> Name {
        Name { owner: [owner; 16], index }
    }

    #[test]
    fn one_applies_to_older_blocks_from_its_number_on_until_all_bases_were_merged() {
        let mut forgets = Forgets::new(2);
        forgets.add(name(1, 3), Stamp(10));
        let applies = |name, stamp| forgets.applies(name, Stamp(stamp));
        assert!(applies(name(1, 3), 9) && applies(name(1, 99), 0));
        assert!(!applies(name(1, 2), 9), "before its number");
        assert!(!applies(name(1, 3), 10) && !applies(name(1, 3), 11), "written since");
        assert!(!applies(name(2, 3), 9), "another owner");
        forgets.based(Partition(0), 50);
        assert!(!forgets.some_done(), "the other base holds some");
        forgets.based(Partition(1), 10);
        assert!(!forgets.some_done(), "merged before it");
        forgets.based(Partition(1), 11);
        assert!(forgets.some_done());
        forgets.close_done();
        assert_eq!(forgets.len(), 0);
    }

    #[test]
    fn a_removal_takes_the_place_of_those_that_it_covers() {
        let mut forgets = Forgets::new(1);
        forgets.add(name(1, 3), Stamp(10));
        forgets.add(name(1, 5), Stamp(20));
        assert_eq!(forgets.len(), 2);
        forgets.add(name(1, 4), Stamp(30));
        assert_eq!(
            forgets.iter().collect::<Vec<_>>(),
            [(name(1, 3), Stamp(10)), (name(1, 4), Stamp(30))]
        );
    }
}
