//! The answer to an ask, and how it stands in a record. It is sealed, and has one length for each
//! volume, whatever it says.
//!
//! ```text
//! head 24 | tag before 16 | done 4 | found 4 | refusal 4 | zeros 4 | blocks that exist 8 | block
//! ```
//!
//! The tag before is that of the head which the answer before it named, in the same session; zeros
//! for the first one. So no answer of another history takes its place between those of one.

use super::head::{Head, StoredHead};
use oblivio_crypto::{TAG_BYTES, Tag};
use oblivio_privatefs::Answer;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Fixed {
    /// The newest record of the history.
    head: StoredHead,
    before: [u8; TAG_BYTES],
    done: U32,
    found: U32,
    refusal: U32,
    zeros: U32,
    live_blocks: U64,
}

/// Why an ask was not carried out, apart from its comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum AskRefusal {
    /// The volume has as many blocks as it can. The ask was shown like any other.
    Full = 1,
    /// Its session has ended.
    Ended = 2,
    /// It was carried out, and its answer is no longer kept.
    Gone = 3,
    /// The head that it names is older than the records that the scribe remembers, so the scribe
    /// cannot tell whether its client knows another history.
    Old = 4,
    /// There are as many sessions as there may be. One must end first.
    Crowded = 5,
    /// The head that it names is of another history: the server went back, or shows two. Its client
    /// knows better than the scribe, so it finds out; the scribe goes on with those of its history.
    Forked = 6,
    /// The content of its block is lost to damage at the server, and the ask needs it. It was shown
    /// like any other, and nothing of its transaction was carried out.
    Lost = 7,
}

impl AskRefusal {
    /// Whether the ask stands in a batch, and was shown.
    pub fn was_shown(self) -> bool {
        matches!(self, Self::Full | Self::Lost)
    }
}

const REFUSALS: [AskRefusal; 7] = [
    AskRefusal::Full,
    AskRefusal::Ended,
    AskRefusal::Gone,
    AskRefusal::Old,
    AskRefusal::Crowded,
    AskRefusal::Forked,
    AskRefusal::Lost,
];

/// What became of an ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The answer.
    pub answer: Answer,
    /// Why it was refused, if it was. Then it was not carried out.
    pub refusal: Option<AskRefusal>,
    /// Blocks of the volume that exist.
    pub live_blocks: u64,
}

impl Outcome {
    /// That of an ask that was refused.
    pub(super) fn refused(refusal: AskRefusal, live_blocks: u64) -> Self {
        Self { answer: Answer { done: false, content: None }, refusal: Some(refusal), live_blocks }
    }

    /// As in a record.
    pub(super) fn encode(&self, head: Head, before: Tag, block_bytes: usize) -> Vec<u8> {
        let Answer { done, content } = &self.answer;
        let fixed = Fixed {
            head: head.into(),
            before: before.0,
            done: U32::new((*done).into()),
            found: U32::new(content.is_some().into()),
            refusal: U32::new(self.refusal.map_or(0, |refusal| refusal as u32)),
            zeros: U32::new(0),
            live_blocks: U64::new(self.live_blocks),
        };
        let mut record = [fixed.as_bytes(), content.as_deref().unwrap_or_default()].concat();
        record.resize(size_of::<Fixed>() + block_bytes, 0);
        record
    }

    /// Reads a record, the head that it names, and the tag before; none if it makes no sense.
    pub(super) fn decode(plain: &[u8]) -> Option<(Self, Head, Tag)> {
        let (fixed, block) = Fixed::ref_from_prefix(plain).ok()?;
        let (done, content) = match (fixed.done.get(), fixed.found.get()) {
            (done @ 0..=1, 0) => (done == 1, None),
            (done @ 0..=1, 1) => (done == 1, Some(block.to_vec())),
            _ => return None,
        };
        let refusal = match fixed.refusal.get() {
            0 => None,
            code => Some(REFUSALS.into_iter().find(|refusal| *refusal as u32 == code)?),
        };
        let nothing = content.is_none() && !done;
        if fixed.zeros.get() != 0 || refusal.is_some() && !nothing {
            return None;
        }
        let live_blocks = fixed.live_blocks.get();
        let outcome = Self { answer: Answer { done, content }, refusal, live_blocks };
        Some((outcome, fixed.head.into(), Tag(fixed.before)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_one_length_and_are_read_as_they_were_written() {
        let (head, before) = (Head { number: 7, tag: Tag([3; 16]) }, Tag([4; 16]));
        let served = |done, content| Outcome {
            answer: Answer { done, content },
            refusal: None,
            live_blocks: 12,
        };
        let contents = [None, Some(vec![5; 64])];
        let served = contents
            .into_iter()
            .flat_map(|content| [served(true, content.clone()), served(false, content)]);
        let refused = REFUSALS.into_iter().map(|refusal| Outcome::refused(refusal, 3));
        for outcome in served.chain(refused) {
            let record = outcome.encode(head, before, 64);
            assert_eq!(record.len(), size_of::<Fixed>() + 64);
            assert_eq!(Outcome::decode(&record), Some((outcome, head, before)));
            assert_eq!(Outcome::decode(&record[..size_of::<Fixed>() - 1]), None);
            for at in 40..56 {
                // Another answer, or none; never this one.
                let mut changed = record.clone();
                changed[at] ^= 1 << 6;
                assert_eq!(Outcome::decode(&changed), None, "byte {at}");
            }
        }
    }
}
