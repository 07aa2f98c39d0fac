//! States, deltas and commit records: public numbers determine when each is written, and its
//! length.
//!
//! A delta takes 28 bytes per written bucket, 32 per operation and 8 per path since the previous
//! commit, and a constant rest. Two checkpoints of one size have the same length. A checkpoint is
//! due when its deltas have more bytes than it.

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
    /// The tree changed its size, or is about to: the delta's part for that is not judged.
    pub(crate) resized: bool,
}

impl Since {
    /// The part of a delta that follows from it.
    pub(crate) fn bytes(&self) -> u64 {
        BUCKET * self.buckets.len() as u64 + OPERATION * self.operations + PATH * self.paths
    }
}

/// Of a checkpoint: addressable blocks, the depth, one beyond the last stored bucket.
pub(crate) type Size = (u64, u32, u64);

/// The store's view of a volume's states.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    /// Bytes of the checkpoint and of the deltas on it, if known.
    checkpoint: Option<u64>,
    log: Option<u64>,
    /// The current pair of objects.
    pair: Option<char>,
    /// The part of it that this commit has written.
    written: Option<(bool, u64, char)>,
    /// Bytes of a delta beyond the computed part.
    rest: Option<u64>,
    /// Bytes of checkpoints of each size.
    sizes: BTreeMap<Size, u64>,
    /// Offset and bytes of the last commit record.
    commit: Option<(u64, u64)>,
    /// Whether a commit record is written but not yet durable.
    pub(super) committing: bool,
}

/// The pair of a state object, and whether it is that pair's log.
pub(super) fn pair_of(object: &str) -> Option<(char, bool)> {
    let log = object.starts_with("log-");
    let state = object.starts_with("state-");
    let number = object.rsplit('-').next().and_then(|end| end.parse::<char>().ok());
    number.filter(|_| log || state).map(|number| (number, log))
}

impl States {
    /// Records the read of the current state at the start of a session.
    pub(super) fn read(&mut self, (pair, log): (char, bool), len: u64) {
        if log {
            self.log = Some(len);
        } else {
            (self.checkpoint, self.log, self.pair) = (Some(len), Some(0), Some(pair));
        }
    }

    /// Another session begins.
    pub(super) fn begin(&mut self) {
        let (rest, sizes) = (self.rest, std::mem::take(&mut self.sizes));
        *self = States { rest, sizes, ..States::default() };
    }

    /// Records a write to a state object. Returns its fault, if any.
    pub(super) fn wrote(
        &mut self,
        (pair, log): (char, bool),
        (offset, len): (u64, u64),
        since: &Since,
        size: Size,
    ) -> Option<String> {
        let name = if log { "a delta" } else { "a checkpoint" };
        if self.written.is_some() {
            return Some(format!("{name} is the second state of one commit"));
        }
        self.written = Some((log, len, pair));
        let due = match (self.checkpoint, self.log) {
            (Some(checkpoint), Some(log)) => Some(log > checkpoint.max(LEAST_LOG)),
            _ => None,
        };
        if due == Some(log) {
            return Some(format!("{name} was written where the other was due"));
        }
        let right =
            if log { self.pair } else { self.pair.map(|pair| if pair == '0' { '1' } else { '0' }) };
        if right.is_some_and(|right| right != pair) {
            return Some(format!("{name} went to pair {pair}"));
        }
        let place = if log { self.log } else { Some(0) };
        if place.is_some_and(|place| place != offset) {
            return Some(format!("{name} went to {offset}, not to {place:?}"));
        }
        if log { self.delta(len, since, size.0) } else { self.checkpoint(len, size) }
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

    fn checkpoint(&mut self, len: u64, size: Size) -> Option<String> {
        let before = *self.sizes.entry(size).or_insert(len);
        (len != before).then(|| {
            format!("a checkpoint has {len} bytes, where one of the same size had {before}")
        })
    }

    /// Records a write of a commit record. Returns its fault, if any.
    pub(super) fn wrote_commit(&mut self, offset: u64, len: u64) -> Option<String> {
        self.committing = true;
        let before = self.commit.replace((offset, len));
        let place = before.map(|(at, _)| COMMIT - at.min(COMMIT));
        if self.written.is_none() {
            return Some("a commit has no state".into());
        }
        if place.is_some_and(|place| place != offset) || offset > COMMIT {
            return Some(format!("a commit record went to {offset}, not to {place:?}"));
        }
        before
            .filter(|&(_, bytes)| bytes != len)
            .map(|(_, bytes)| format!("a commit record has {len} bytes, where another had {bytes}"))
    }

    /// Records that a commit is durable. False if there was none.
    pub(super) fn committed(&mut self) -> bool {
        if !std::mem::take(&mut self.committing) {
            return false;
        }
        match self.written.take() {
            Some((true, len, _)) => self.log = self.log.map(|log| log + len),
            Some((false, len, pair)) => {
                (self.checkpoint, self.log, self.pair) = (Some(len), Some(0), Some(pair));
            }
            None => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since(operations: u64) -> Since {
        let buckets = (0..operations).collect();
        Since { operations, paths: 2 * operations, buckets, resized: false }
    }

    fn commit(states: &mut States, delta: u64, operations: u64) -> Option<String> {
        let at = states.log.expect("known");
        let odd = states.wrote(('0', true), (at, delta), &since(operations), (0, 0, 0));
        let offset = states.commit.map_or(0, |(at, _)| COMMIT - at);
        let odd = odd.or(states.wrote_commit(offset, 136));
        assert!(states.committed());
        odd
    }

    fn begun() -> States {
        let mut states = States::default();
        states.read(('0', false), 5000);
        states.read(('0', true), 100);
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
        let early = states.clone().wrote(('1', false), (0, 5000), &since(1), (1, 2, 3));
        assert!(early.expect("too early").contains("other was due"));
        let mut count = 0;
        while states.log <= Some(LEAST_LOG) {
            assert_eq!(commit(&mut states, 60_000 + since(3).bytes(), 3), None);
            count += 1;
        }
        assert!(count > 2);
        let late =
            states.clone().wrote(('0', true), (states.log.unwrap_or(0), 1), &since(1), (1, 2, 3));
        assert!(late.expect("too late").contains("other was due"));
        assert_eq!(states.wrote(('1', false), (0, 5000), &since(1), (1, 2, 3)), None);
        assert!(states.wrote(('1', false), (0, 5000), &since(1), (1, 2, 3)).is_some(), "a second");
    }

    #[test]
    fn commit_records_take_turns() {
        let mut states = begun();
        assert_eq!(commit(&mut states, 1000 + since(1).bytes(), 1), None);
        states.wrote(
            ('0', true),
            (states.log.unwrap_or(0), 1000 + since(1).bytes()),
            &since(1),
            (0, 0, 0),
        );
        assert!(states.clone().wrote_commit(0, 136).is_some(), "the same place");
        assert!(states.clone().wrote_commit(COMMIT, 137).is_some(), "another length");
        assert!(states.wrote_commit(COMMIT, 136).is_none());
    }
}
