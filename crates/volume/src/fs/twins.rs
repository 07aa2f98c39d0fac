//! Which twins of the metadata file's chunks may be read.
//!
//! A twin is a second copy of a chunk. It is written later than the chunk, all at once with others,
//! so that a commit costs nothing more. Until then it is *stale*, and nobody reads it. The root
//! says which may be stale, for a group of chunks in one bit. It does so before a chunk is stored,
//! and no longer only once its twin is: then a commit of the block space, at whatever access,
//! cannot have a changed chunk without the bit.
//!
//! # What the store sees of damage
//!
//! A lost chunk is read again from its twin, and that must not tell the maker of the damage that it
//! hit metadata. So once damage was met, each access is followed by as many reads, whatever it
//! wanted: of twins where they are needed. Blocks may be found missing long after the damage was
//! met, so this goes on, across sessions too, until all metadata was read and both copies of it
//! were written anew.

use super::chunk_map::ChunkMap;
use std::collections::BTreeSet;

/// Groups of chunks in the root, a bit each.
const GROUPS: u64 = 64;

/// What is known of the twins.
#[derive(Default)]
pub(super) struct Twins {
    stale: BTreeSet<u64>,
    /// Whether damage was met since all metadata was last written anew.
    suspect: bool,
    /// While it is written anew: the next chunk.
    healed: u64,
    /// Stores that made twins stale.
    changes: u64,
}

impl Twins {
    /// What a root says of the chunks in its map.
    pub(super) fn load(groups: u64, suspect: bool, map: &ChunkMap) -> Self {
        let stale = |chunk: &u64| groups >> (chunk % GROUPS) & 1 == 1;
        let twins = map.chunks().filter(|(_, at)| at.twin.is_some()).map(|(chunk, _)| chunk);
        Twins { stale: twins.filter(stale).collect(), suspect, ..Twins::default() }
    }

    /// The groups with stale twins, for the root.
    pub(super) fn groups(&self) -> u64 {
        self.stale.iter().fold(0, |groups, chunk| groups | 1 << (chunk % GROUPS))
    }

    /// A chunk with a twin is about to be stored.
    pub(super) fn outdate(&mut self, chunk: u64) {
        self.stale.insert(chunk);
        self.changes += 1;
    }

    /// The twin of a chunk is what the chunk is.
    pub(super) fn renew(&mut self, chunk: u64) {
        self.stale.remove(&chunk);
    }

    /// Forgets the chunks from `end` on.
    pub(super) fn cut(&mut self, end: u64) {
        self.stale.split_off(&end);
    }

    pub(super) fn is_stale(&self, chunk: u64) -> bool {
        self.stale.contains(&chunk)
    }

    /// The chunks whose twins are stale, in order.
    pub(super) fn stale(&self) -> impl Iterator<Item = u64> {
        self.stale.iter().copied()
    }

    /// A number that grows when twins become stale.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Notes that damage was met.
    pub(super) fn suspect(&mut self) {
        (self.suspect, self.healed) = (true, 0);
    }

    pub(super) fn is_suspect(&self) -> bool {
        self.suspect
    }

    /// The first chunk that is still to be written anew.
    pub(super) fn healed(&self) -> u64 {
        self.healed
    }

    /// Both copies of all chunks below this one are written anew.
    pub(super) fn heal_to(&mut self, chunk: u64) {
        self.healed = chunk;
    }

    /// All of them are, and no damage was met since the first.
    pub(super) fn trust(&mut self) {
        (self.suspect, self.healed) = (false, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk_map::Run;
    use super::*;

    #[test]
    fn a_root_says_which_twins_may_be_stale() {
        let mut map = ChunkMap::default();
        map.insert(0, Run { start: 10, chunks: 70, twins: true });
        map.insert(70, Run { start: 500, chunks: 60, twins: false });
        let mut twins = Twins::default();
        [1, 66, 68].into_iter().for_each(|chunk| twins.outdate(chunk));
        assert_eq!(twins.groups(), 1 << 1 | 1 << 2 | 1 << 4);
        let loaded = Twins::load(twins.groups(), true, &map);
        assert_eq!(loaded.stale().collect::<Vec<_>>(), [1, 2, 4, 65, 66, 68], "none has 129");
        assert!(loaded.is_suspect());
        twins.renew(66);
        twins.cut(68);
        assert_eq!((twins.groups(), twins.is_stale(1), twins.is_stale(2)), (1 << 1, true, false));
    }
}
