//! What a slot of a level holds in the clear: an item with its block, or a fake.
//!
//! A query for an id that nobody wrote leaves an *absent* item behind. Without it, the next query
//! for this id would show the same filter positions to the same levels again. The bottom drops
//! absent items whenever it takes all in: by then, every level that saw their positions is gone.

use super::error::{PaperError, Result};
use super::ids::{FakeNumber, ITEM_ID_BYTES, ItemId};

/// Bytes of a slot besides its block: the id, and the kind in a word of its own.
pub const SLOT_HEADER: usize = ITEM_ID_BYTES + 8;

const FAKE: u8 = 0;
const PRESENT: u8 = 1;
const ABSENT: u8 = 2;

/// The content of a block; none if it was never written.
pub type Block = Option<Vec<u8>>;

/// A slot in the clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// An item.
    Item(ItemId, Block),
    /// A fake.
    Fake(FakeNumber),
}

impl Slot {
    /// The bytes: `[id 32][kind 1][zeros 7][block]`, the same number for all.
    pub fn encode(&self, block_bytes: usize, out: &mut Vec<u8>) {
        let begin = out.len();
        out.resize(begin + SLOT_HEADER + block_bytes, 0);
        let bytes = &mut out[begin..];
        match self {
            Self::Item(id, block) => {
                bytes[..ITEM_ID_BYTES].copy_from_slice(&id.0);
                bytes[ITEM_ID_BYTES] = if block.is_some() { PRESENT } else { ABSENT };
                let content = block.as_deref().unwrap_or_default();
                bytes[SLOT_HEADER..].iter_mut().zip(content).for_each(|(to, from)| *to = *from);
            }
            Self::Fake(number) => bytes[..8].copy_from_slice(&number.0.to_le_bytes()),
        }
    }

    /// The slot of these bytes.
    ///
    /// # Errors
    /// If they are none. They were authenticated, so a client of another version wrote them.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        const WRONG: PaperError = PaperError::Reply("a slot does not parse");
        let (id, rest) = bytes.split_first_chunk::<ITEM_ID_BYTES>().ok_or(WRONG)?;
        let (kind, block) = rest.split_first_chunk::<8>().ok_or(WRONG)?;
        match kind[0] {
            PRESENT => Ok(Self::Item(ItemId(*id), Some(block.to_vec()))),
            ABSENT => Ok(Self::Item(ItemId(*id), None)),
            FAKE => {
                let number = id.first_chunk().ok_or(WRONG)?;
                Ok(Self::Fake(FakeNumber(u64::from_le_bytes(*number))))
            }
            _ => Err(WRONG),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_one_length_and_come_back() {
        let id = ItemId([7; ITEM_ID_BYTES]);
        let slots = [
            Slot::Item(id, Some(vec![5; 9])),
            Slot::Item(id, None),
            Slot::Fake(FakeNumber(1 << 40)),
        ];
        for slot in slots {
            let mut bytes = Vec::new();
            slot.encode(9, &mut bytes);
            assert_eq!(bytes.len(), SLOT_HEADER + 9);
            assert_eq!(Slot::decode(&bytes).expect("a slot"), slot);
            assert!(Slot::decode(&bytes[..SLOT_HEADER - 1]).is_err());
            bytes[ITEM_ID_BYTES] = 3;
            assert!(Slot::decode(&bytes).is_err());
        }
    }
}
