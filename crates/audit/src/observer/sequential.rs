//! A volume on the sequential engine: its adversary sees no reads, and the places and lengths of
//! its writes follow from their number.
//!
//! A single record shows two things. Quanta go round the ring of the log, several at a time under a
//! high write load. And states go to two alternating places, each as long as the last. A second
//! record of an equal amount of work shows that the flushes do not depend on the data
//! ([`super::compare_records`]).

use super::lanes::Lanes;
use crate::record::{RecordedAct, RecordedCall};

/// Quanta in the shortest write, at most. A quantum has more pages than that, so one that is a page
/// longer than others is found.
const QUANTA_OF_THE_SHORTEST: u64 = 7;

/// The offset and length of the last write of a kind.
type Last = Option<(u64, u64)>;

/// The writes so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequential {
    quantum: Last,
    /// Of each object of states.
    state: [Last; 2],
    /// Of the quanta: the shortest write, and what divides all writes.
    quanta: Option<(u64, u64)>,
    state_bytes: Option<u64>,
    /// The end of the log, known after its first wrap.
    ring: Option<u64>,
    lanes: Lanes,
}

impl Sequential {
    /// Begins a session: it may repeat the last writes of a broken-off one.
    pub(super) fn begin(&mut self) {
        (self.quantum, self.state) = (None, [None; 2]);
        self.lanes.begin();
    }

    /// The fault of a call, if any.
    pub(super) fn take(&mut self, call: &RecordedCall) -> Option<String> {
        if call.act != RecordedAct::Write {
            return None;
        }
        let mut wrong = self.lanes.take(call);
        for (object, offset, len) in call.ranges() {
            let odd = match object {
                "log" => self.take_quantum(offset, len),
                "state" => self.take_state(0, offset, len),
                "state-2" => self.take_state(1, offset, len),
                "disk" | "times" | "header" | "header-2" => None,
                lane if lane.starts_with("lane-") => None,
                _ => Some(format!("{len} bytes were written to {object}")),
            };
            wrong = wrong.or(odd);
        }
        wrong
    }

    fn take_quantum(&mut self, offset: u64, len: u64) -> Option<String> {
        // What divides all writes so far is the best estimate of a single quantum.
        let (shortest, usual) = *self.quanta.get_or_insert((len, len));
        let (shortest, unit) = (shortest.min(len), common_divisor(usual, len));
        if unit * QUANTA_OF_THE_SHORTEST < shortest || len == 0 {
            return Some(format!("quanta have {len} bytes, where others had {usual}"));
        }
        self.quanta = Some((shortest, unit));
        let (last, length) = self.quantum.replace((offset, len))?;
        let next = last.saturating_add(length);
        if offset == 0 && self.ring.is_none() {
            self.ring = Some(next);
        }
        let right = if self.ring == Some(next) { 0 } else { next };
        (offset != right).then(|| format!("a quantum went to {offset}, not to {right}"))
    }

    fn take_state(&mut self, object: usize, offset: u64, len: u64) -> Option<String> {
        let usual = *self.state_bytes.get_or_insert(len);
        if len != usual {
            return Some(format!("a state has {len} bytes, where another had {usual}"));
        }
        let before = self.state[object].replace((offset, len));
        before
            .filter(|&(at, _)| at == offset)
            .map(|_| format!("a state was written over the one before it, at {offset}"))
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odd(writes: &[(&str, u64, u64)]) -> bool {
        let mut sequential = Sequential::default();
        writes.iter().any(|&(object, offset, len)| {
            sequential
                .take(&RecordedCall::new(RecordedAct::Write, 0).with(object, offset, len))
                .is_some()
        })
    }

    #[test]
    fn quanta_go_round_and_states_take_turns() {
        let ring = [("log", 0, 8), ("log", 8, 8), ("log", 16, 8), ("log", 0, 8), ("log", 8, 8)];
        assert!(!odd(&ring));
        assert!(odd(&[&ring[..], &[("log", 24, 8)]].concat()), "one is left out");
        assert!(odd(&[&ring[..], &[("log", 16, 9)]].concat()), "a longer one");
        assert!(!odd(&[("log", 0, 16), ("log", 16, 8), ("log", 24, 24)]), "several at once");
        assert!(!odd(&[("log", 0, 32), ("log", 32, 24)]), "no single one");
        assert!(odd(&[("log", 0, 32), ("log", 32, 25)]), "a longer one among several");
        assert!(odd(&[&ring[..], &[("log", 16, 8), ("log", 24, 8)]].concat()), "beyond the ring");
        assert!(!odd(&[("state", 0, 4), ("state", 4, 4), ("state", 0, 4)]));
        assert!(odd(&[("state", 0, 4), ("state", 0, 4)]), "the same place twice");
        assert!(odd(&[("state", 0, 4), ("state", 4, 5)]));
        assert!(odd(&[("diary", 0, 4)]));
    }

    /// The writes of one call each.
    fn odd_calls(calls: &[&[(&str, u64, u64)]]) -> bool {
        let mut sequential = Sequential::default();
        calls.iter().any(|writes| {
            let call = RecordedCall::new(RecordedAct::Write, 0);
            let call =
                writes.iter().fold(call, |call, &(object, at, len)| call.with(object, at, len));
            sequential.take(&call).is_some()
        })
    }

    #[test]
    fn a_lane_is_written_at_every_act_and_nowhere_else() {
        let flush = |at: u64| [("disk", 5 * at, 40), ("lane-1", at, 8), ("lane-1", 800 + at, 2)];
        let alone = |at: u64| [("disk", 5 * at, 40)];
        let log = |at: u64| [("log", 8 * at, 8), ("lane-1-log", 2 * at, 2)];
        assert!(!odd_calls(&[&flush(0), &flush(8), &flush(16), &flush(0)]), "round the ring");
        assert!(odd_calls(&[&flush(0), &flush(8), &alone(16)]), "untouched at a flush");
        assert!(odd_calls(&[&flush(0), &flush(8), &flush(16)[1..]]), "a flush of its own");
        assert!(odd_calls(&[&flush(0), &flush(16)]), "a place of its own");
        assert!(
            odd_calls(&[&flush(0), &[&flush(8)[..], &[("lane-1", 900, 2)]].concat()]),
            "a node when it closes"
        );
        assert!(odd_calls(&[&flush(0), &flush(8)[..2]]), "no page where none is due");

        assert!(!odd_calls(&[&log(0), &log(1), &log(2)]));
        assert!(!odd_calls(&[&log(0), &[("log", 8, 16), ("lane-1-log", 2, 4)]]), "two together");
        assert!(odd_calls(&[&log(0), &[("log", 8, 8)]]), "a quantum alone");
        assert!(odd_calls(&[&log(0), &[("lane-1-log", 2, 2)]]), "one for a hidden sync");
        assert!(
            odd_calls(&[&log(0), &[("log", 8, 8), ("lane-1-log", 2, 4)]]),
            "as long as what waits"
        );
        assert!(
            odd_calls(&[&log(0), &[("log", 8, 8), ("lane-1-log", 4, 2)]]),
            "a place of its own"
        );

        let state = |at: u64| [("state", at % 2 * 4, 4), ("state-2", at % 2 * 4, 4)];
        let (mine, of) = (|at: u64| [("lane-1-state", 9 * at, 9)], [0, 1, 2].map(state));
        assert!(!odd_calls(&[&mine(0), &of[0], &mine(1), &of[1], &mine(2), &of[2]]));
        assert!(odd_calls(&[&mine(0), &of[0], &of[1]]), "only when it is open");
        assert!(odd_calls(&[&mine(0), &of[0], &mine(1), &mine(2), &of[1]]), "at its own turn");
        assert!(odd_calls(&[&mine(0), &of[0], &mine(2), &of[1]]), "a place of its own");
        assert!(
            odd_calls(&[&mine(0), &of[0], &[("lane-1-state", 9, 5)], &of[1]]),
            "a slot at once"
        );
    }
}
