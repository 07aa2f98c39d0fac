//! What a client asks, and how it stands in a record. It is sealed, and has one length for each
//! volume.
//!
//! ```text
//! head 24 | kind 4 | offset 4 | length 8 | owner 16 | index 8 |
//! part 4 | of 4 | comparison 4 | offset 4 | length 8 | bytes 64 | block
//! ```
//!
//! Several patches stand in the block as `offset 4 | length 4 | bytes` each; then the length is how
//! many there are.

use super::head::{Head, StoredHead};
use super::records::Seq;
use crate::pyramid::operation::Effect;
use crate::wire::{Reader, Writer};
use crate::{Action, EngineError, Result};
use oblivio_crypto::{Kind, Place, VolumeId};
use oblivio_privatefs::{Ask, Compare, Does, MOST_ASKS, MOST_COMPARED, Name, Operation, Session};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const READ: u32 = 0;
const PATCH: u32 = 1;
const REMOVE: u32 = 2;
const WRITE: u32 = 3;
const PATCHES: u32 = 4;
const FORGET: u32 = 5;
const END: u32 = 6;
/// Added to a kind that also answers with the content before it.
const AND_READ: u32 = 1 << 8;
const ALWAYS: u32 = 0;
const ABSENT: u32 = 1;
const EXISTS: u32 = 2;
const BYTES: u32 = 3;
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Fixed {
    /// The newest that the client knows.
    head: StoredHead,
    kind: U32,
    offset: U32,
    length: U64,
    owner: [u8; 16],
    index: U64,
    part: U32,
    of: U32,
    comparison: U32,
    compare_offset: U32,
    compare_length: U64,
    compare_bytes: [u8; MOST_COMPARED],
}

/// The place of an ask in its transaction: carried out together, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionPart {
    pub(super) index: u32,
    pub(super) of: u32,
}

impl TransactionPart {
    /// That of an ask of its own.
    pub const ALONE: Self = Self { index: 0, of: 1 };
}

/// What an ask may do to the existence of blocks.
pub(super) fn effect(ask: &Ask) -> Effect {
    match &ask.does {
        Does::Block(operation) => Effect::of(&operation.action),
        Does::Forget => Effect::Forgets,
        Does::End(_) => Effect::Keeps,
    }
}

/// The session that an ask ends.
pub(super) fn ends(ask: &Ask) -> Option<Session> {
    if let Does::End(session) = ask.does { Some(session) } else { None }
}

/// As in a record.
///
/// # Errors
/// `Invalid` for data that does not fit a block.
pub(super) fn encode(
    ask: &Ask,
    part: TransactionPart,
    head: Head,
    block_bytes: usize,
) -> Result<Vec<u8>> {
    let too_long = || EngineError::Invalid("more bytes than a block has".into());
    let mut block = Vec::with_capacity(block_bytes);
    let (kind, offset, length) = encode_does(ask, &mut block);
    let fits = match &ask.does {
        Does::Block(operation) => operation.action.end() <= block_bytes,
        Does::Forget => true,
        Does::End(_) => part.of == 1,
    };
    if !fits || block.len() > block_bytes {
        return Err(too_long());
    }
    block.resize(block_bytes, 0);
    let (comparison, at, compared): (u32, usize, &[u8]) = match &ask.compare {
        Compare::Always => (ALWAYS, 0, &[]),
        Compare::Absent => (ABSENT, 0, &[]),
        Compare::Exists => (EXISTS, 0, &[]),
        Compare::Bytes(at, bytes) => (BYTES, *at, bytes),
    };
    let mut compare_bytes = [0; MOST_COMPARED];
    match compare_bytes.get_mut(..compared.len()) {
        Some(part) if at.saturating_add(compared.len()) <= block_bytes => {
            part.copy_from_slice(compared);
        }
        _ => return Err(EngineError::Invalid("too many bytes to compare".into())),
    }
    let fixed = Fixed {
        head: head.into(),
        kind: U32::new(kind),
        offset: U32::new(offset as u32),
        length: U64::new(length as u64),
        owner: ask.name.owner,
        index: U64::new(ask.name.index),
        part: U32::new(part.index),
        of: U32::new(part.of),
        comparison: U32::new(comparison),
        compare_offset: U32::new(at as u32),
        compare_length: U64::new(compared.len() as u64),
        compare_bytes,
    };
    Ok([fixed.as_bytes(), &block].concat())
}

/// Appends the bytes to the block's; gives the kind, the offset and the length.
fn encode_does(ask: &Ask, block: &mut Vec<u8>) -> (u32, usize, usize) {
    let (action, and_read) = match &ask.does {
        Does::Block(Operation { action, and_read }) => (action, and_read),
        Does::Forget => return (FORGET, 0, 0),
        Does::End(_) => return (END, 0, 0),
    };
    let mut out = Writer(block);
    let (kind, offset, length) = match action {
        Action::Read => (READ, 0, 0),
        Action::Remove => (REMOVE, 0, 0),
        Action::Write(bytes) => {
            out.bytes(bytes);
            (WRITE, 0, bytes.len())
        }
        Action::Patch { offset, bytes } => {
            out.bytes(bytes);
            (PATCH, *offset, bytes.len())
        }
        Action::Patches(patches) => {
            for (offset, bytes) in patches {
                out.u64(*offset as u64 | (bytes.len() as u64) << 32);
                out.bytes(bytes);
            }
            (PATCHES, 0, patches.len())
        }
    };
    (kind | if *and_read { AND_READ } else { 0 }, offset, length)
}

/// Reads a record; none if it makes no sense.
pub(super) fn decode(plain: &[u8]) -> Option<(Ask, TransactionPart, Head)> {
    let (fixed, block) = Fixed::ref_from_prefix(plain).ok()?;
    let does = decode_does(fixed, block)?;
    let at = fixed.compare_offset.get() as usize;
    let compared = usize::try_from(fixed.compare_length.get()).ok()?;
    let compared = fixed.compare_bytes.get(..compared)?;
    let compare = match fixed.comparison.get() {
        ALWAYS => Compare::Always,
        ABSENT => Compare::Absent,
        EXISTS => Compare::Exists,
        BYTES if at + compared.len() <= block.len() => Compare::Bytes(at, compared.to_vec()),
        _ => return None,
    };
    let part = TransactionPart { index: fixed.part.get(), of: fixed.of.get() };
    let alone = part.of == 1 || !matches!(does, Does::End(_));
    if part.index >= part.of || part.of > MOST_ASKS as u32 || !alone {
        return None;
    }
    let name = Name { owner: fixed.owner, index: fixed.index.get() };
    Some((Ask { name, does, compare }, part, fixed.head.into()))
}

fn decode_does(fixed: &Fixed, block: &[u8]) -> Option<Does> {
    let length = usize::try_from(fixed.length.get()).ok()?;
    let offset = fixed.offset.get() as usize;
    let and_read = fixed.kind.get() & AND_READ != 0;
    let action = match fixed.kind.get() & !AND_READ {
        READ => Action::Read,
        REMOVE => Action::Remove,
        WRITE => Action::Write(block.get(..length)?.to_vec()),
        PATCH => Action::Patch { offset, bytes: block.get(..length)?.to_vec() },
        PATCHES => Action::Patches(decode_patches(length, block)?),
        FORGET if !and_read => return Some(Does::Forget),
        END if !and_read => return Some(Does::End(Session(fixed.index.get()))),
        _ => return None,
    };
    (action.end() <= block.len()).then_some(Does::Block(Operation { action, and_read }))
}

fn decode_patches(count: usize, block: &[u8]) -> Option<Vec<(usize, Vec<u8>)>> {
    // Each has a head of eight bytes.
    if count > block.len() / 8 {
        return None;
    }
    let mut input = Reader(block);
    let patch = |_| {
        let word = input.u64().ok()?;
        let bytes = input.bytes((word >> 32) as usize).ok()?;
        Some((word as u32 as usize, bytes.to_vec()))
    };
    (0..count).map(patch).collect()
}

/// Ties a record to its volume, its session and its number there.
pub(super) fn place(volume: VolumeId, kind: Kind, session: Session, seq: Seq) -> Place {
    Place { volume, kind, index: seq.0, version: session.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_crypto::Tag;
    use proptest::prelude::*;

    const BYTES: usize = 128;

    fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..=most)
    }

    fn does() -> impl Strategy<Value = Does> {
        let patches = prop::collection::vec((0usize..64, bytes(8)), 0..6);
        let action = prop_oneof![
            Just(Action::Read),
            Just(Action::Remove),
            bytes(BYTES).prop_map(Action::Write),
            (0usize..64, bytes(64)).prop_map(|(offset, bytes)| Action::Patch { offset, bytes }),
            patches.prop_map(Action::Patches),
        ];
        let block = (action, any::<bool>());
        prop_oneof![
            8 => block.prop_map(|(action, and_read)| Does::Block(Operation { action, and_read })),
            1 => Just(Does::Forget),
        ]
    }

    fn compare() -> impl Strategy<Value = Compare> {
        prop_oneof![
            Just(Compare::Always),
            Just(Compare::Absent),
            Just(Compare::Exists),
            (0usize..64, bytes(MOST_COMPARED)).prop_map(|(at, bytes)| Compare::Bytes(at, bytes)),
        ]
    }

    fn ask() -> impl Strategy<Value = (Ask, TransactionPart, Head)> {
        let name = (any::<[u8; 16]>(), any::<u64>());
        let head = (any::<u64>(), any::<[u8; 16]>());
        let part = (1u32..=MOST_ASKS as u32).prop_flat_map(|of| (0..of, Just(of)));
        (name, does(), compare(), part, head).prop_map(|(name, does, compare, part, head)| {
            let name = Name { owner: name.0, index: name.1 };
            let part = TransactionPart { index: part.0, of: part.1 };
            let head = Head { number: head.0, tag: Tag(head.1) };
            (Ask { name, does, compare }, part, head)
        })
    }

    proptest! {
        #[test]
        fn asks_have_one_length_and_are_read_as_they_were_written(
            (ask, part, head) in ask(),
            at in any::<usize>(),
            flip in 1u8..,
        ) {
            let record = encode(&ask, part, head, BYTES).expect("it fits");
            prop_assert_eq!(record.len(), size_of::<Fixed>() + BYTES);
            prop_assert_eq!(decode(&record), Some((ask, part, head)));
            let mut changed = record.clone();
            changed[at % record.len()] ^= flip;
            if let Some((other, part, head)) = decode(&changed) {
                let again = encode(&other, part, head, BYTES).expect("what was read fits");
                prop_assert_eq!(decode(&again), Some((other, part, head)));
            }
            prop_assert!(decode(&record[..at % size_of::<Fixed>()]).is_none());
        }
    }

    #[test]
    fn an_ask_that_does_not_fit_is_refused() {
        let name = Name { owner: [1; 16], index: 2 };
        let of = |action| Ask::new(name, Operation { action, and_read: false });
        let read = of(Action::Read);
        let long = [
            of(Action::Write(vec![0; BYTES + 1])),
            of(Action::Patch { offset: usize::MAX, bytes: vec![1] }),
            of(Action::Patch { offset: BYTES, bytes: vec![1] }),
            of(Action::Patches(vec![(0, vec![1; BYTES])])),
            of(Action::Patches(vec![(0, Vec::new()); BYTES / 8 + 1])),
            read.clone().only_if(Compare::Bytes(0, vec![0; MOST_COMPARED + 1])),
            read.only_if(Compare::Bytes(BYTES, vec![1])),
        ];
        let written = |ask: &Ask, part| encode(ask, part, Head::default(), BYTES);
        for ask in long {
            assert!(written(&ask, TransactionPart::ALONE).is_err(), "{ask:?}");
        }
        let end = Ask::end_of(Session(9));
        assert!(written(&end, TransactionPart { index: 0, of: 2 }).is_err());
        let end = written(&end, TransactionPart::ALONE).expect("it fits");
        assert_eq!(decode(&end).map(|(ask, ..)| ends(&ask)), Some(Some(Session(9))));
    }
}
