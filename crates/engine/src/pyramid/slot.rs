//! The content of a slot: `owner 16 | index 8 | label 8 | stamp 8 | block`, sealed.

use super::config::SLOT_HEAD;
use super::ids::{Name, Stamp};
use crate::Label;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Head {
    owner: [u8; 16],
    index: U64,
    label: U64,
    stamp: U64,
}

const _: () = assert!(size_of::<Head>() == SLOT_HEAD);

/// A block in a slot.
pub(super) struct Held {
    pub name: Name,
    pub content: Vec<u8>,
}

impl Held {
    /// Writes a block to an unsealed slot. Zeros pad it.
    pub fn write(name: Name, label: Label, stamp: Stamp, content: &[u8], plain: &mut [u8]) {
        let head = Head {
            owner: name.owner,
            index: U64::new(name.index),
            label: U64::new(label.0),
            stamp: U64::new(stamp.0),
        };
        let (front, block) = plain.split_at_mut(SLOT_HEAD);
        front.copy_from_slice(head.as_bytes());
        block[..content.len()].copy_from_slice(content);
        block[content.len()..].fill(0);
    }

    /// Reads an opened slot; none if it is too short.
    pub fn read(plain: &[u8]) -> Option<Self> {
        let (head, block) = Head::ref_from_prefix(plain).ok()?;
        let name = Name { owner: head.owner, index: head.index.get() };
        Some(Self { name, content: block.to_vec() })
    }
}
