//! The sessions of a shared volume: which ask of each is next, and which have ended. It follows
//! from the records alone, so every scribe knows the same.

use super::chain::{Chain, Known};
use super::head::Head;
use super::public_rules::{LIST_STEP, MOST_SESSIONS};
use super::records::{Seq, Session};
use crate::wire::{Reader, Writer};
use crate::{EngineError, Result};
use oblivio_crypto::TAG_BYTES;
use std::collections::BTreeMap;

/// Bytes of a session in a checkpoint.
const LIVE_BYTES: usize = 8 + 8 + 8 + TAG_BYTES + 3 * 8;
/// Bytes of an ended session.
const ENDED_BYTES: usize = 16;

/// A session that may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Live {
    /// Its next ask, of those that are in no batch yet.
    next: Seq,
    /// The head that its last answer named. Its client knows it, however old it is by now.
    answered: Head,
    /// `next` at the last checkpoints, the newest first. The answers before the third are gone.
    marks: [Seq; 3],
}

/// All sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sessions {
    live: BTreeMap<Session, Live>,
    /// Each one that ended, and the number of the record that ended it.
    ended: BTreeMap<Session, u64>,
    /// The last heads named to sessions that ended since the last checkpoint: some of their asks
    /// may be under way. With a checkpoint, none is.
    parting: BTreeMap<Session, Head>,
}

impl Sessions {
    /// The next ask of a session that is in no batch yet; 0 for a new one.
    pub fn next(&self, session: Session) -> Seq {
        self.live.get(&session).map_or(Seq(0), |live| live.next)
    }

    /// Whether it may ask, now that it has.
    pub fn lives(&self, session: Session) -> bool {
        self.live.contains_key(&session)
    }

    /// Whether it has ended, as far as that is remembered.
    pub fn has_ended(&self, session: Session) -> bool {
        self.ended.contains_key(&session)
    }

    /// All that live.
    pub fn iter(&self) -> impl Iterator<Item = Session> {
        self.live.keys().copied()
    }

    /// Whether a new one finds room beside `waiting` others that ask for the first time.
    pub fn has_room(&self, waiting: usize) -> bool {
        self.live.len() + waiting < MOST_SESSIONS && self.ended.len() < MOST_SESSIONS
    }

    /// Whether the answer to this ask may be gone.
    pub fn is_gone(&self, session: Session, seq: Seq) -> bool {
        self.live.get(&session).is_some_and(|live| seq < live.marks[2])
    }

    /// What to make of the head that an ask of this session names.
    pub fn judge(&self, session: Session, head: Head, chain: &Chain) -> Known {
        let known = chain.knows(head);
        let answered = self.live.get(&session).map(|live| live.answered);
        if known == Known::Old && answered == Some(head) { Known::Yes } else { known }
    }

    /// An ask stands in a batch.
    ///
    /// # Errors
    /// `State` if it is not the next of its session, or if there are too many sessions.
    pub fn order(&mut self, session: Session, seq: Seq) -> Result<()> {
        if self.next(session) != seq || self.has_ended(session) {
            return Err(EngineError::State("an ask before this one is missing"));
        }
        if !self.lives(session) && self.live.len() >= MOST_SESSIONS {
            return Err(EngineError::State("too many sessions"));
        }
        self.live.entry(session).or_default().next.0 += 1;
        Ok(())
    }

    /// A record of this number ends a session.
    pub fn end(&mut self, session: Session, number: u64) {
        // New sessions wait while many are remembered, so twice the most is enough.
        if let Some(live) = self.live.remove(&session) {
            self.ended.insert(session, number);
            self.parting.insert(session, live.answered);
        }
    }

    /// A session is answered under this head. Returns the head of the answer before.
    pub fn answer(&mut self, session: Session, head: Head) -> Head {
        let live = self.live.get_mut(&session).map(|live| &mut live.answered);
        let answered = live.or_else(|| self.parting.get_mut(&session));
        answered.map_or(head, |answered| std::mem::replace(answered, head))
    }

    /// Forgets sessions that ended before the records that the chain remembers. Their first asks
    /// name older heads, so they are refused for that.
    pub fn forget(&mut self, chain: &Chain) {
        let oldest = chain.head().number.saturating_sub(chain.window());
        self.ended.retain(|_, number| *number >= oldest);
    }

    /// A checkpoint is made.
    pub fn mark(&mut self) {
        self.parting.clear();
        for live in self.live.values_mut() {
            live.marks = [live.next, live.marks[0], live.marks[1]];
        }
    }

    /// Appends it to a checkpoint: how many, and each, padded to a multiple of 256.
    pub fn write_to(&self, out: &mut Writer<'_>) {
        out.u64(self.live.len() as u64);
        for (session, Live { next, answered, marks }) in &self.live {
            out.words(&[session.0, next.0, answered.number]);
            out.bytes(&answered.tag.0);
            out.words(&marks.map(|mark| mark.0));
        }
        out.zeros(padding(self.live.len()) * LIVE_BYTES);
        out.u64(self.ended.len() as u64);
        for (session, number) in &self.ended {
            out.words(&[session.0, *number]);
        }
        out.zeros(padding(self.ended.len()) * ENDED_BYTES);
    }

    /// Reads what [`Self::write_to`] wrote.
    ///
    /// # Errors
    /// `State` if it makes no sense.
    pub fn read_from(input: &mut Reader<'_>) -> Result<Self> {
        let wrong = EngineError::State("sessions out of order");
        let mut sessions = Self::default();
        let count = counted(input, MOST_SESSIONS)?;
        for _ in 0..count {
            let (session, next) = (Session(input.u64()?), Seq(input.u64()?));
            let answered = Head { number: input.u64()?, tag: input.tag()? };
            let marks = [Seq(input.u64()?), Seq(input.u64()?), Seq(input.u64()?)];
            let last = sessions.live.last_key_value();
            if last.is_some_and(|(last, _)| *last >= session) || !marks.is_sorted_by(|a, b| a >= b)
            {
                return Err(wrong);
            }
            if marks[0] > next || next.0 > 1 << 56 {
                return Err(wrong);
            }
            sessions.live.insert(session, Live { next, answered, marks });
        }
        skip(input, padding(count) * LIVE_BYTES)?;
        let count = counted(input, 2 * MOST_SESSIONS)?;
        for _ in 0..count {
            let (session, number) = (Session(input.u64()?), input.u64()?);
            let last = sessions.ended.last_key_value();
            if last.is_some_and(|(last, _)| *last >= session) || sessions.lives(session) {
                return Err(wrong);
            }
            sessions.ended.insert(session, number);
        }
        skip(input, padding(count) * ENDED_BYTES)?;
        Ok(sessions)
    }
}

fn padding(count: usize) -> usize {
    count.max(1).next_multiple_of(LIST_STEP) - count
}

fn counted(input: &mut Reader<'_>, most: usize) -> Result<usize> {
    match input.u64()? {
        count if count <= most as u64 => Ok(count as usize),
        _ => Err(EngineError::State("too many sessions")),
    }
}

fn skip(input: &mut Reader<'_>, zeros: usize) -> Result<()> {
    if input.bytes(zeros)?.iter().any(|byte| *byte != 0) {
        return Err(EngineError::State("more than there is"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_crypto::Tag;
    use proptest::prelude::*;

    fn sessions() -> impl Strategy<Value = Sessions> {
        let live = (any::<u64>(), 0u64..1000, any::<u64>(), any::<[u8; 16]>(), 0u64..9, 0u64..9);
        let ended = (any::<u64>(), any::<u64>());
        let lists = (prop::collection::vec(live, 0..300), prop::collection::vec(ended, 0..300));
        lists.prop_map(|(live, ended)| {
            let mut sessions = Sessions::default();
            for (session, next, number, tag, a, b) in live {
                let marks = [next, next.saturating_sub(a), next.saturating_sub(a + b)].map(Seq);
                let answered = Head { number, tag: Tag(tag) };
                let live = Live { next: Seq(next), answered, marks };
                sessions.live.insert(Session(session), live);
            }
            for (session, number) in ended {
                if !sessions.lives(Session(session)) {
                    sessions.ended.insert(Session(session), number);
                }
            }
            sessions
        })
    }

    fn written(sessions: &Sessions) -> Vec<u8> {
        let mut bytes = Vec::new();
        sessions.write_to(&mut Writer(&mut bytes));
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn they_are_read_as_they_were_written(sessions in sessions(), at in any::<usize>()) {
            let bytes = written(&sessions);
            let mut input = Reader(&bytes);
            prop_assert_eq!(&Sessions::read_from(&mut input).expect("sound"), &sessions);
            prop_assert!(input.0.is_empty());
            let short = &bytes[..at % bytes.len()];
            prop_assert!(Sessions::read_from(&mut Reader(short)).is_err());
            // A changed byte is another list or none; there is no panic.
            let mut changed = bytes.clone();
            changed[at % bytes.len()] ^= 1;
            if let Ok(other) = Sessions::read_from(&mut Reader(&changed)) {
                prop_assert_ne!(other, sessions);
            }
        }
    }

    #[test]
    fn how_many_there_are_shows_in_steps_only() {
        let mut sessions = Sessions::default();
        let mut sizes = std::collections::BTreeSet::new();
        for session in 0..512 {
            sessions.order(Session(session), Seq(0)).expect("there is room");
            sizes.insert(written(&sessions).len());
        }
        assert_eq!(sizes.len(), 2);
    }

    #[test]
    fn an_ask_is_ordered_once_and_not_after_its_session_ended() {
        let mut sessions = Sessions::default();
        let (a, b) = (Session(1), Session(2));
        sessions.order(a, Seq(0)).expect("the first");
        assert!(sessions.order(a, Seq(0)).is_err(), "twice");
        assert!(sessions.order(a, Seq(2)).is_err(), "one is missing");
        assert!(sessions.order(b, Seq(1)).is_err(), "the first is missing");
        sessions.end(a, 9);
        assert!(sessions.order(a, Seq(1)).is_err(), "it has ended");
        assert!(sessions.order(a, Seq(0)).is_err(), "it does not begin again");
    }

    #[test]
    fn there_is_a_most_of_them() {
        let mut sessions = Sessions::default();
        for session in 0..MOST_SESSIONS as u64 {
            assert!(sessions.has_room(0));
            sessions.order(Session(session), Seq(0)).expect("there is room");
        }
        assert!(!sessions.has_room(0));
        assert!(sessions.order(Session(u64::MAX), Seq(0)).is_err());
        sessions.end(Session(7), 1);
        assert!(sessions.has_room(0) && !sessions.has_room(1));
        sessions.end(Session(u64::MAX), 1);
        assert_eq!(sessions.ended.len(), 1, "one that never asked does not end");
    }

    #[test]
    fn an_answer_is_gone_three_checkpoints_later() {
        let mut sessions = Sessions::default();
        sessions.order(Session(1), Seq(0)).expect("the first");
        for gone in [false, false, true] {
            sessions.mark();
            assert_eq!(sessions.is_gone(Session(1), Seq(0)), gone);
        }
        assert!(!sessions.is_gone(Session(1), Seq(1)), "it was not asked yet");
    }
}
