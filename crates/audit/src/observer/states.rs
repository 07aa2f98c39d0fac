//! States, deltas and commit records: public numbers determine when each is written, and its
//! length.
//!
//! There are two pairs of a checkpoint and its deltas, and each has the newest state. A commit
//! adds its delta to both. A checkpoint is due when the newest one's deltas have more bytes than
//! it; then it takes the place of the older pair, and the delta goes to the other one.
//!
//! A delta takes 28 bytes per written bucket, 32 per operation and 8 per path since the previous
//! commit, and a constant rest. Two checkpoints of one size have the same length.

use std::collections::{BTreeMap, HashSet};

/// Bytes of a delta per bucket: its slot (12), its content (16).
const BUCKET: u64 = 28;
/// Per operation: an entry of the map, a word of "exists" bits.
const OPERATION: u64 = 32;
/// Per path: the removed block.
const PATH: u64 = 8;
/// Bytes of deltas that are allowed for any checkpoint.
const LEAST_LOG: u64 = 256 << 10;
/// A delta has room for this many words of "exists" bits besides. It has more if more blocks were
/// discarded than that, in a volume with that many words. Their number is then public.
const WORDS: u64 = 1024;
const WORD_BYTES: u64 = 16;
/// Commit records alternate between multiples of this.
const COMMIT: u64 = 4096;

/// The work since the last commit, in public numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    pub(crate) operations: u64,
    pub(crate) paths: u64,
    pub(crate) buckets: HashSet<u64>,
    /// Bytes of the index of a top in a log.
    pub(crate) index: u64,
    /// The tree changed its size, or is about to: the delta's part for that is not judged.
    pub(crate) resized: bool,
}

impl Since {
    /// The part of a delta that follows from it.
    pub(crate) fn bytes(&self) -> u64 {
        let changed =
            BUCKET * self.buckets.len() as u64 + OPERATION * self.operations + PATH * self.paths;
        changed + self.index
    }
}

/// Of a checkpoint: addressable blocks, the depth, one beyond the last stored bucket.
pub(crate) type Size = (u64, u32, u64);

/// A pair of objects: bytes of the checkpoint and of the deltas on it, if known.
#[derive(Clone, Debug, Default)]
struct PairSeen {
    checkpoint: Option<u64>,
    log: Option<u64>,
}

/// The store's view of a volume's states.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    pairs: [PairSeen; 2],
    /// The pair of the newest checkpoint.
    first: Option<usize>,
    /// Whether a checkpoint may come before it is due, once: this session did not see that there
    /// are two whole pairs.
    may_be_early: bool,
    /// The pair of this commit's checkpoint, and its bytes.
    checkpoint: Option<(usize, u64)>,
    /// The offset and bytes of this commit's delta in each pair.
    deltas: [Option<(u64, u64)>; 2],
    /// Bytes of a delta beyond the computed part.
    rest: Option<u64>,
    /// Bytes of checkpoints of each size.
    sizes: BTreeMap<Size, u64>,
    /// Offset and bytes of the last commit record of each object.
    commits: [Option<(u64, u64)>; 2],
    /// Whether a commit record is written but not yet durable.
    pub(super) committing: bool,
}

/// The number of a pair of which a state object is, and whether it is that pair's log.
pub(super) fn pair_of(object: &str) -> Option<(usize, bool)> {
    match object {
        "state-0" => Some((0, false)),
        "state-1" => Some((1, false)),
        "log-0" => Some((0, true)),
        "log-1" => Some((1, true)),
        _ => None,
    }
}

/// The number of a copy of the commit records.
pub(super) fn commit_of(object: &str) -> Option<usize> {
    ["commit", "commit-2"].iter().position(|name| *name == object)
}

impl States {
    /// Records the read of a pair at the start of a session: the newest checkpoint comes first.
    pub(super) fn read(&mut self, (pair, log): (usize, bool), len: u64) {
        if log {
            self.pairs[pair].log = Some(len);
            return;
        }
        self.pairs[pair] = PairSeen { checkpoint: Some(len), log: Some(0) };
        self.may_be_early &= self.first.is_none_or(|first| first == pair);
        self.first.get_or_insert(pair);
    }

    /// Another session begins.
    pub(super) fn begin(&mut self) {
        let (rest, sizes) = (self.rest, std::mem::take(&mut self.sizes));
        *self = States { rest, sizes, may_be_early: true, ..States::default() };
    }

    /// Whether a checkpoint is due; `None` if that is not known.
    fn is_due(&self) -> Option<bool> {
        let PairSeen { checkpoint, log } = &self.pairs[self.first?];
        Some((*log)? > (*checkpoint)?.max(LEAST_LOG))
    }

    /// Records a write to a state object. Returns its fault, if any.
    pub(super) fn wrote(
        &mut self,
        (pair, log): (usize, bool),
        (offset, len): (u64, u64),
        since: &Since,
        size: Size,
    ) -> Option<String> {
        if log {
            self.wrote_delta(pair, (offset, len), since, size.0)
        } else {
            self.wrote_checkpoint(pair, (offset, len), (size, since.index))
        }
    }

    fn wrote_delta(
        &mut self,
        pair: usize,
        (offset, len): (u64, u64),
        since: &Since,
        blocks: u64,
    ) -> Option<String> {
        if self.deltas[pair].replace((offset, len)).is_some() {
            return Some("a delta is the second of one commit in its log".into());
        }
        match self.checkpoint {
            Some((new, _)) if new == pair => {
                return Some("a delta went to the log of its own commit's checkpoint".into());
            }
            None if self.is_due() == Some(true) => {
                return Some("a delta was written where a checkpoint was due".into());
            }
            _ => {}
        }
        let place = self.pairs[pair].log;
        if place.is_some_and(|place| place != offset) {
            return Some(format!("a delta went to {offset}, not to {place:?}"));
        }
        match self.deltas[1 - pair] {
            Some((_, other)) => {
                (other != len).then(|| format!("a delta of {len} bytes is one of {other} as well"))
            }
            None => self.delta(len, since, blocks),
        }
    }

    fn wrote_checkpoint(
        &mut self,
        pair: usize,
        (offset, len): (u64, u64),
        (size, index): (Size, u64),
    ) -> Option<String> {
        if let Some(other) = self.checkpoint.replace((pair, len)) {
            // The first commit of a volume writes it twice.
            let twin = self.first.is_none() && other == (1 - pair, len);
            return (!twin).then(|| "a checkpoint is the second of one commit".into());
        }
        if self.is_due() == Some(false) && !std::mem::take(&mut self.may_be_early) {
            return Some("a checkpoint was written where none was due".into());
        }
        if self.first == Some(pair) || offset != 0 {
            return Some(format!("a checkpoint went to pair {pair}, at {offset}"));
        }
        let len = len.saturating_sub(index);
        let before = *self.sizes.entry(size).or_insert(len);
        (len != before).then(|| {
            format!("a checkpoint has {len} bytes, where one of the same size had {before}")
        })
    }

    fn delta(&mut self, len: u64, since: &Since, blocks: u64) -> Option<String> {
        if since.resized {
            return None;
        }
        let follows = since.bytes();
        let Some(rest) = len.checked_sub(follows) else {
            return Some(format!("a delta of {len} bytes is shorter than what was done asks for"));
        };
        let before = *self.rest.get_or_insert(rest);
        self.rest = Some(rest.min(before));
        let (step, more) = (WORDS * WORD_BYTES, rest.abs_diff(before));
        let steps = (blocks.div_ceil(64).div_ceil(WORDS)).saturating_sub(1);
        let right = more.is_multiple_of(step) && more / step <= steps;
        (!right).then(|| {
            format!(
                "a delta of {len} bytes has {rest} beyond what {} buckets, {} operations and {} \
                 paths ask for, where another had {before}",
                since.buckets.len(),
                since.operations,
                since.paths
            )
        })
    }

    /// Records a write of a commit record. Returns its fault, if any.
    pub(super) fn wrote_commit(
        &mut self,
        object: usize,
        (offset, len): (u64, u64),
    ) -> Option<String> {
        self.committing = true;
        let before = self.commits[object].replace((offset, len));
        let place = before.map(|(at, _)| COMMIT - at.min(COMMIT));
        if self.checkpoint.is_none() && self.deltas == [None; 2] {
            return Some("a commit has no state".into());
        }
        let goes_on = |pair: usize| {
            self.pairs[pair].log.is_some() && self.checkpoint.is_none_or(|(new, _)| new != pair)
        };
        if let Some(pair) = (0..2).find(|&pair| goes_on(pair) && self.deltas[pair].is_none()) {
            return Some(format!("a commit has no delta in pair {pair}"));
        }
        if place.is_some_and(|place| place != offset) || offset > COMMIT {
            return Some(format!("a commit record went to {offset}, not to {place:?}"));
        }
        let other = self.commits[1 - object];
        before
            .or(other)
            .filter(|&(_, bytes)| bytes != len)
            .map(|(_, bytes)| format!("a commit record has {len} bytes, where another had {bytes}"))
    }

    /// Records that a commit is durable. False if there was none.
    pub(super) fn committed(&mut self) -> bool {
        if !std::mem::take(&mut self.committing) {
            return false;
        }
        for (pair, delta) in std::mem::take(&mut self.deltas).into_iter().enumerate() {
            if let Some((offset, len)) = delta {
                self.pairs[pair].log = Some(offset + len);
            }
        }
        if let Some((pair, len)) = self.checkpoint.take() {
            self.pairs[pair] = PairSeen { checkpoint: Some(len), log: Some(0) };
            self.first = Some(pair);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since(operations: u64) -> Since {
        let buckets = (0..operations).collect();
        Since { operations, paths: 2 * operations, buckets, ..Since::default() }
    }

    /// A delta for both pairs, and the records.
    fn commit(states: &mut States, delta: u64, operations: u64) -> Option<String> {
        let mut odd = None;
        for pair in [0, 1] {
            let at = states.pairs[pair].log.expect("known");
            let wrong = states.wrote((pair, true), (at, delta), &since(operations), (0, 0, 0));
            odd = odd.or(wrong);
        }
        let offset = states.commits[0].map_or(0, |(at, _)| COMMIT - at);
        let odd = odd.or(states.wrote_commit(0, (offset, 200)));
        let odd = odd.or(states.wrote_commit(1, (offset, 200)));
        assert!(states.committed());
        odd
    }

    fn begun() -> States {
        let mut states = States::default();
        states.begin();
        states.read((0, false), 5000);
        states.read((0, true), 100);
        states.read((1, false), 4000);
        states.read((1, true), 9000);
        states
    }

    #[test]
    fn the_length_of_a_delta_follows_from_what_was_done() {
        let mut states = begun();
        assert_eq!(commit(&mut states, 1000 + since(10).bytes(), 10), None);
        assert_eq!(commit(&mut states, 1000 + since(99).bytes(), 99), None);
        assert!(commit(&mut states, 1016 + since(5).bytes(), 5).is_some());
        assert!(commit(&mut states, 7, 5).is_some());
    }

    #[test]
    fn room_for_words_comes_in_steps_where_there_are_so_many() {
        let odd = |blocks, rest| {
            let mut states = begun();
            let len = |rest| rest + since(3).bytes();
            assert_eq!(states.delta(len(1000), &since(3), blocks), None);
            states.delta(len(rest), &since(3), blocks).is_some()
        };
        assert!(!odd(1 << 20, 1000 + 15 * 16_384) && odd(1 << 20, 1000 + 16 * 16_384));
        assert!(odd(1 << 20, 1000 + 8192) && odd(1 << 16, 1000 + 16_384));
    }

    #[test]
    fn a_checkpoint_comes_when_it_is_due_and_as_long_as_before() {
        let mut states = begun();
        let early = states.clone().wrote((1, false), (0, 5000), &since(1), (1, 2, 3));
        assert!(early.expect("too early").contains("none was due"));
        let mut count = 0;
        while states.pairs[0].log <= Some(LEAST_LOG) {
            assert_eq!(commit(&mut states, 60_000 + since(3).bytes(), 3), None);
            count += 1;
        }
        assert!(count > 2);
        let log = states.pairs[0].log.unwrap_or(0);
        let late = states.clone().wrote((0, true), (log, 1), &since(1), (1, 2, 3));
        assert!(late.expect("too late").contains("checkpoint was due"));
        let place = states.clone().wrote((0, false), (0, 5000), &since(1), (1, 2, 3));
        assert!(place.expect("over the newest").contains("went to pair"));
        assert_eq!(states.wrote((1, false), (0, 5000), &since(1), (1, 2, 3)), None);
        let delta = 60_000 + since(1).bytes();
        let own = states.clone().wrote((1, true), (0, delta), &since(1), (1, 2, 3));
        assert!(own.expect("it is in the checkpoint").contains("its own commit"));
        let lacking = states.clone().wrote_commit(0, (0, 200));
        assert!(lacking.expect("the other pair goes on").contains("no delta"));
        assert_eq!(states.wrote((0, true), (log, delta), &since(1), (1, 2, 3)), None);
        assert!(states.wrote((1, false), (0, 5000), &since(1), (1, 2, 3)).is_some(), "a second");
    }

    /// An older volume, or one that is damaged, gets its second pair at once.
    #[test]
    fn a_checkpoint_may_come_early_once_where_there_is_one_pair() {
        let mut states = States::default();
        states.begin();
        states.read((0, false), 5000);
        states.read((0, true), 100);
        assert_eq!(states.wrote((1, false), (0, 5000), &since(1), (1, 2, 3)), None);
        let delta = 1000 + since(1).bytes();
        assert_eq!(states.wrote((0, true), (100, delta), &since(1), (1, 2, 3)), None);
        assert_eq!(states.wrote_commit(0, (0, 200)), None);
        assert!(states.committed());
        assert!(states.wrote((0, false), (0, 5000), &since(1), (1, 2, 3)).is_some());
    }

    #[test]
    fn commit_records_take_turns() {
        let mut states = begun();
        let delta = 1000 + since(1).bytes();
        assert_eq!(commit(&mut states, delta, 1), None);
        for pair in [0, 1] {
            let log = states.pairs[pair].log.unwrap_or(0);
            assert_eq!(states.wrote((pair, true), (log, delta), &since(1), (0, 0, 0)), None);
        }
        assert!(states.clone().wrote_commit(0, (0, 200)).is_some(), "the same place");
        assert!(states.clone().wrote_commit(1, (COMMIT, 201)).is_some(), "another length");
        assert!(states.wrote_commit(0, (COMMIT, 200)).is_none());
        assert!(states.wrote_commit(1, (COMMIT, 200)).is_none());
    }
}
