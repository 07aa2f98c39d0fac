//! The chain of the scribe's records. Each names the one before it, so nobody can leave one out,
//! move one, or put a part of another history in its place. Each also names the term of the scribe
//! that wrote it.
//!
//! ```text
//! tag of the record before it 16 | term 8 | event
//! ```
//!
//! The tags of the newest records are remembered, to tell whether a client knows the same history.

use super::head::Head;
use super::records::Term;
use crate::pyramid::config::PyramidConfig;
use crate::wire::{Reader, Writer};
use crate::{EngineError, Result};
use oblivio_crypto::{Kind, Place, Sealer, TAG_BYTES, Tag, VolumeId, tag_of};
use std::collections::VecDeque;

/// The chain so far.
pub(super) struct Chain {
    volume: VolumeId,
    /// The scribe's that wrote the newest record.
    term: Term,
    /// How many records there are.
    number: u64,
    /// The tags of the newest ones.
    tags: VecDeque<Tag>,
    window: usize,
}

/// What the chain says of a client's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It is a record of this chain.
    Yes,
    /// It is of another history.
    No,
    /// It is too old to say.
    Old,
}

impl Chain {
    /// Without a record.
    pub fn new(volume: VolumeId, config: &PyramidConfig) -> Self {
        let window = config.remembered_records();
        Self { volume, term: Term(0), number: 0, tags: VecDeque::new(), window }
    }

    /// The newest record.
    pub fn head(&self) -> Head {
        Head { number: self.number, tag: self.tags.back().copied().unwrap_or_default() }
    }

    /// Records that are remembered.
    pub fn window(&self) -> u64 {
        self.window as u64
    }

    /// The term of the scribe that wrote the newest record.
    #[cfg(test)]
    pub fn term(&self) -> Term {
        self.term
    }

    /// A scribe of this term goes on.
    ///
    /// # Errors
    /// `State` if it is not newer than the one before it: the server would let both write.
    pub fn begin_term(&mut self, term: Term) -> Result<()> {
        if term <= self.term {
            return Err(EngineError::State("a scribe's term is not newer than the one before it"));
        }
        self.term = term;
        Ok(())
    }

    /// Whether a client's head is of this chain.
    pub fn knows(&self, head: Head) -> Known {
        if head.number > self.number {
            return Known::No;
        }
        let back = self.number - head.number;
        if head.number == 0 {
            let recent = back <= self.window as u64;
            return match (head == Head::default(), recent) {
                (true, true) => Known::Yes,
                (true, false) => Known::Old,
                (false, _) => Known::No,
            };
        }
        let index = (self.tags.len() as u64).checked_sub(back + 1);
        match index.and_then(|index| self.tags.get(index as usize)) {
            Some(tag) if *tag == head.tag => Known::Yes,
            Some(_) => Known::No,
            None => Known::Old,
        }
    }

    fn push(&mut self, sealed: &[u8]) {
        self.number += 1;
        self.tags.extend(tag_of(sealed));
        while self.tags.len() > self.window {
            self.tags.pop_front();
        }
    }

    /// Seals the next record.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn seal(&mut self, sealer: &mut Sealer, event: &[u8]) -> Result<Vec<u8>> {
        let plain = [&self.head().tag.0[..], &self.term.0.to_le_bytes(), event].concat();
        let sealed = sealer.seal_vec(&self.next_place(), &plain)?;
        self.push(&sealed);
        Ok(sealed)
    }

    /// Opens the next record.
    ///
    /// # Errors
    /// `State` if it does not follow the ones before it.
    pub fn open(&mut self, sealer: &mut Sealer, sealed: &[u8]) -> Result<Vec<u8>> {
        let wrong = EngineError::State("a record of the history does not follow the one before it");
        let Ok(mut plain) = sealer.open_vec(&self.next_place(), sealed) else { return Err(wrong) };
        let mut input = Reader(&plain);
        let (before, term) = (input.tag()?, Term(input.u64()?));
        if before != self.head().tag || term < self.term {
            return Err(wrong);
        }
        self.term = term;
        self.push(sealed);
        plain.drain(..TAG_BYTES + 8);
        Ok(plain)
    }

    fn next_place(&self) -> Place {
        let (volume, index) = (self.volume, self.number);
        Place { volume, kind: Kind::History, index, version: 0 }
    }

    /// Appends it to a checkpoint: `records 8 | term 8 | tag 16 each`, padded to those remembered.
    pub fn write_to(&self, out: &mut Writer<'_>) {
        out.words(&[self.number, self.term.0]);
        out.zeros((self.window - self.tags.len()) * TAG_BYTES);
        self.tags.iter().for_each(|tag| out.bytes(&tag.0));
    }

    /// Reads what [`Self::write_to`] wrote.
    ///
    /// # Errors
    /// `State` if it ends early.
    pub fn read_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
        (self.number, self.term) = (input.u64()?, Term(input.u64()?));
        let known = self.number.min(self.window as u64) as usize;
        let zeros = input.bytes((self.window - known) * TAG_BYTES)?;
        if zeros.iter().any(|byte| *byte != 0) || self.number > 1 << 56 {
            return Err(EngineError::State("tags of records that there are not"));
        }
        self.tags = (0..known).map(|_| input.tag()).collect::<Result<_>>()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_crypto::{SealRoot, SeededEntropy};

    const VOLUME: VolumeId = VolumeId([7; 16]);

    fn sealer() -> Sealer {
        Sealer::new(SealRoot::from_seed(1), Box::new(SeededEntropy::new(1)))
    }

    fn empty() -> Chain {
        let config = PyramidConfig::new(64, 1 << 8, 64 << 4);
        Chain::new(VOLUME, &config)
    }

    fn written(count: usize) -> (Chain, Vec<Head>) {
        let (mut chain, mut sealer) = (empty(), sealer());
        chain.begin_term(Term(1)).expect("the first");
        let mut heads = vec![chain.head()];
        for _ in 0..count {
            chain.seal(&mut sealer, b"an event").expect("sealed");
            heads.push(chain.head());
        }
        (chain, heads)
    }

    #[test]
    fn a_head_is_known_while_it_is_in_the_window() {
        let many = empty().window + 100;
        let (chain, heads) = written(many);
        for head in &heads {
            let old = head.number + (chain.window as u64) <= many as u64;
            let begin = head.number == 0;
            let expected = if old || begin { Known::Old } else { Known::Yes };
            assert_eq!(chain.knows(*head), expected, "{}", head.number);
            let other = Head { tag: Tag([9; TAG_BYTES]), ..*head };
            if !old && !begin {
                assert_eq!(chain.knows(other), Known::No);
            }
        }
        let future = Head { number: many as u64 + 1, tag: Tag([1; TAG_BYTES]) };
        assert_eq!(chain.knows(future), Known::No);
        let (few, heads) = written(5);
        assert!(heads.iter().all(|head| few.knows(*head) == Known::Yes));
        assert_eq!(empty().knows(Head::default()), Known::Yes);
        assert_eq!(few.knows(Head { number: 0, tag: Tag([1; TAG_BYTES]) }), Known::No);
    }

    #[test]
    fn it_is_read_as_it_was_written_and_goes_on() {
        for count in [0, 3, empty().window + 7] {
            let (mut chain, heads) = written(count);
            let mut bytes = Vec::new();
            chain.write_to(&mut Writer(&mut bytes));
            let mut again = empty();
            let mut input = Reader(&bytes);
            again.read_from(&mut input).expect("as it was written");
            assert!(input.0.is_empty());
            assert_eq!(again.head(), chain.head());
            heads.iter().for_each(|head| assert_eq!(again.knows(*head), chain.knows(*head)));
            let record = chain.seal(&mut sealer(), b"more").expect("sealed");
            assert_eq!(again.open(&mut sealer(), &record).expect("it follows"), b"more");
            assert!(again.read_from(&mut Reader(&bytes[..bytes.len() - 1])).is_err());
        }
    }

    #[test]
    fn an_older_term_does_not_follow_a_newer_one() {
        let (mut chain, mut follower) = (empty(), empty());
        chain.begin_term(Term(2)).expect("newer");
        let first = chain.seal(&mut sealer(), b"a").expect("sealed");
        assert!(chain.begin_term(Term(2)).is_err(), "the same one");
        follower.open(&mut sealer(), &first).expect("it follows");
        assert_eq!(follower.term(), Term(2));
        chain.term = Term(1);
        let second = chain.seal(&mut sealer(), b"b").expect("sealed");
        assert!(follower.open(&mut sealer(), &second).is_err(), "an older scribe's");
    }
}
