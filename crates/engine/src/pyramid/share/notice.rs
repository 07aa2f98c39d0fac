//! Notices: what a batch changed, for all clients. Each follows the answers of its batch, so that
//! others drop just those blocks from their caches. It has one length for all batches of as many
//! asks, whatever they did.
//!
//! ```text
//! head of its batch's answers 24 | number of the head before 8 | asks 8 |
//!                                                  session 8, owner 16, index 8, change 8 each
//! ```
//!
//! The head before is that of the notice before it; 0 is in a scribe's first one. So a client knows
//! which ones it has missed. Change: 0 none, 1 the block, 2 it and all later ones of its owner.
//!
//! A notice is no proof that nothing else changed: a server may hold it back. An answer names the
//! head of its batch, and the notice with that head must come.

use super::answer::Outcome;
use super::groups::Open;
use super::head::{Head, StoredHead};
use crate::wire::{Reader, Writer};
use crate::{Action, EngineError, Result};
use oblivio_crypto::{Kind, Place, Sealer, VolumeId};
use oblivio_privatefs::{Change, Does, Name, Session};
use std::collections::VecDeque;
use zerocopy::{FromBytes, IntoBytes};

/// Heads of notices that are remembered, to compare them with those of answers that come later.
const REMEMBERED: usize = 256;

/// What a notice says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeContent {
    /// What changed, in order.
    pub changes: Vec<Change>,
    /// Whether notices before it were missed: then anything may have changed.
    pub missed: bool,
}

pub(super) fn place(volume: VolumeId, index: u64) -> Place {
    Place { volume, kind: Kind::Notice, index, version: 0 }
}

/// The notice of a batch, as it is sealed.
pub(super) fn encode(head: Head, before: u64, asks: &[Open], outcomes: &[Outcome]) -> Vec<u8> {
    let mut bytes = StoredHead::from(head).as_bytes().to_vec();
    let mut out = Writer(&mut bytes);
    out.words(&[before, asks.len() as u64]);
    for (open, outcome) in asks.iter().zip(outcomes) {
        let change = match &open.ask.does {
            _ if !outcome.answer.done => 0,
            Does::End(_) => 0,
            Does::Block(operation) => u64::from(operation.action != Action::Read),
            Does::Forget => 2,
        };
        out.u64(open.session.0);
        out.bytes(&open.ask.name.owner);
        out.words(&[open.ask.name.index, change]);
    }
    bytes
}

/// Its head, the number of the head before, and its changes.
pub(super) fn decode(plain: &[u8]) -> Result<(Head, u64, Vec<Change>)> {
    let short = EngineError::State("a notice is too short");
    let (head, rest) = StoredHead::read_from_prefix(plain).map_err(|_| short)?;
    let mut input = Reader(rest);
    let before = input.u64()?;
    let mut changes = Vec::new();
    for _ in 0..input.u64()? {
        let session = Session(input.u64()?);
        let mut owner = [0; 16];
        owner.copy_from_slice(input.bytes(16)?);
        let name = Name { owner, index: input.u64()? };
        match input.u64()? {
            0 => {}
            kind @ 1..=2 => changes.push(Change { session, name, and_later: kind == 2 }),
            _ => return Err(EngineError::State("a notice of an unknown change")),
        }
    }
    let head = Head::from(head);
    if !input.0.is_empty() || before >= head.number {
        return Err(EngineError::State("a notice makes no sense"));
    }
    Ok((head, before, changes))
}

/// A client that hears of changes.
pub struct Notices {
    volume: VolumeId,
    sealer: Sealer,
    /// The heads of the newest notices that came one after the other.
    heard: VecDeque<Head>,
    /// The heads that answers named, and whose notices have not come.
    awaited: VecDeque<Head>,
}

impl Notices {
    /// One that has heard nothing.
    pub fn new(volume: VolumeId, sealer: Sealer) -> Self {
        Self { volume, sealer, heard: VecDeque::new(), awaited: VecDeque::new() }
    }

    /// The number of the newest head that a notice had; 0 if none came.
    pub fn newest(&self) -> u64 {
        self.heard.back().map_or(0, |head| head.number)
    }

    /// Takes the next notice; none for one that it had before. The first one of all counts as one
    /// after others that were missed.
    ///
    /// # Errors
    /// `State` if it does not open; `Forked` if it is of another history than an answer.
    pub fn hear(&mut self, number: u64, sealed: &[u8]) -> Result<Option<NoticeContent>> {
        if number <= self.newest() {
            return Ok(None);
        }
        let plain = self.sealer.open_vec(&place(self.volume, number), sealed);
        let plain = plain.map_err(|_| EngineError::State("a notice does not open"))?;
        let (head, before, changes) = decode(&plain)?;
        if head.number != number {
            return Err(EngineError::State("a notice is of another batch"));
        }
        let missed = before == 0 || before != self.newest();
        if missed {
            self.heard.clear();
        }
        while let Some(awaited) = self.awaited.front()
            && awaited.number <= number
        {
            // Without a gap, the notice of each head before this one has come.
            let other = awaited.number == number && *awaited != head;
            if other || !missed && awaited.number < number {
                return Err(EngineError::Forked);
            }
            self.awaited.pop_front();
        }
        self.heard.push_back(head);
        if self.heard.len() > REMEMBERED {
            self.heard.pop_front();
        }
        Ok(Some(NoticeContent { changes, missed }))
    }

    /// An answer of a batch named this head. Heads come in order.
    ///
    /// # Errors
    /// `Forked` if the notices are of another history.
    pub fn expect(&mut self, head: Head) -> Result<()> {
        if head.number > self.newest() {
            if self.awaited.back() != Some(&head) {
                self.awaited.push_back(head);
            }
            return Ok(());
        }
        let first = self.heard.front().map_or(0, |first| first.number);
        match head.number < first || self.heard.contains(&head) {
            true => Ok(()),
            false => Err(EngineError::Forked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::TransactionPart;
    use super::super::records::Seq;
    use super::*;
    use crate::pyramid::operation::Operation;
    use oblivio_crypto::{SealRoot, SeededEntropy, TAG_BYTES, Tag};
    use oblivio_privatefs::{Answer, Ask};

    const VOLUME: VolumeId = VolumeId([7; 16]);

    fn sealer() -> Sealer {
        Sealer::new(SealRoot::from_seed(1), Box::new(SeededEntropy::new(1)))
    }

    fn head(number: u64) -> Head {
        Head { number, tag: Tag([number as u8; TAG_BYTES]) }
    }

    fn name(index: u64) -> Name {
        Name { owner: [3; 16], index }
    }

    fn asks() -> Vec<Open> {
        let block = |index, action| Ask::new(name(index), Operation { action, and_read: false });
        let asks = [
            block(1, Action::Write(vec![1])),
            block(2, Action::Read),
            block(3, Action::Remove),
            Ask::forget(name(4)),
            Ask::end_of(Session(9)),
        ];
        let open = |(seq, ask)| Open {
            session: Session(5),
            seq: Seq(seq),
            part: TransactionPart::ALONE,
            ask,
        };
        (0..).zip(asks).map(open).collect()
    }

    fn answers(done: bool) -> Vec<Outcome> {
        let answer = Answer { done, content: None };
        let one = |_| Outcome { answer: answer.clone(), refusal: None, live_blocks: 0 };
        (0..5).map(one).collect()
    }

    fn sealed(number: u64, before: u64) -> Vec<u8> {
        let plain = encode(head(number), before, &asks(), &answers(true));
        sealer().seal_vec(&place(VOLUME, number), &plain).unwrap()
    }

    fn new() -> Notices {
        Notices::new(VOLUME, sealer())
    }

    #[test]
    fn it_names_what_was_changed_and_has_one_length() {
        let done = encode(head(7), 5, &asks(), &answers(true));
        let not = encode(head(7), 5, &asks(), &answers(false));
        assert_eq!(done.len(), not.len());
        let change =
            |index, and_later| Change { session: Session(5), name: name(index), and_later };
        let changes = vec![change(1, false), change(3, false), change(4, true)];
        assert_eq!(decode(&done).unwrap(), (head(7), 5, changes));
        assert_eq!(decode(&not).unwrap(), (head(7), 5, vec![]));
        assert!((0..done.len()).all(|end| decode(&done[..end]).is_err()));
        assert!(decode(&[&done[..], &[0]].concat()).is_err());
    }

    #[test]
    fn a_gap_is_noticed_and_a_repeat_is_not_heard_again() {
        let mut notices = new();
        let mut hear = |number, before| {
            notices.hear(number, &sealed(number, before)).unwrap().map(|heard| heard.missed)
        };
        assert_eq!(hear(4, 2), Some(true), "the first one");
        assert_eq!(hear(6, 4), Some(false));
        assert_eq!(hear(6, 4), None);
        assert_eq!(hear(4, 2), None);
        assert_eq!(hear(10, 8), Some(true), "8 is missing");
        assert_eq!(hear(12, 0), Some(true), "a new scribe's first");
        assert_eq!(hear(13, 12), Some(false));
    }

    #[test]
    fn answers_and_notices_must_be_of_one_history() {
        let mut notices = new();
        notices.expect(head(4)).unwrap();
        assert_eq!(notices.newest(), 0);
        notices.hear(4, &sealed(4, 2)).unwrap();
        assert_eq!(notices.newest(), 4);
        notices.hear(6, &sealed(6, 4)).unwrap();
        for known in [4, 6, 3] {
            notices.expect(head(known)).unwrap();
        }
        let other = Head { tag: Tag([0; TAG_BYTES]), ..head(6) };
        assert!(matches!(notices.expect(other), Err(EngineError::Forked)));
        let none = notices.expect(head(5));
        assert!(matches!(none, Err(EngineError::Forked)), "no batch ended there");
        // The notice of a head that an answer named may not be passed over, or be another one.
        for (awaited, next) in [(Head { tag: other.tag, ..head(8) }, 8), (head(7), 8)] {
            let mut notices = new();
            notices.hear(6, &sealed(6, 4)).unwrap();
            notices.expect(awaited).unwrap();
            let heard = notices.hear(next, &sealed(next, 6));
            assert!(matches!(heard, Err(EngineError::Forked)));
        }
    }

    #[test]
    fn a_notice_opens_at_its_place_only_and_unchanged() {
        let good = sealed(6, 4);
        assert!(new().hear(7, &good).is_err());
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 1;
            assert!(new().hear(6, &changed).is_err(), "byte {at}");
        }
        // The place and the head that it is sealed with must agree.
        let plain = encode(head(6), 4, &asks(), &answers(true));
        let moved = sealer().seal_vec(&place(VOLUME, 7), &plain).unwrap();
        assert!(new().hear(7, &moved).is_err());
    }
}
