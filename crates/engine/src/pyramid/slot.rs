//! The content of a slot: `owner 16 | index 8 | label 8 | stamp 8 | block`, sealed. Of a block
//! whose content is lost, each bit of the owner is the other one: so who knows of no lost blocks
//! finds another block there, and no content.

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
    /// None if it was lost before the slot was sealed.
    pub content: Option<Vec<u8>>,
}

fn turned(owner: [u8; 16]) -> [u8; 16] {
    owner.map(|byte| !byte)
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

    /// Writes a block whose content is lost to an unsealed slot.
    pub fn write_lost(name: Name, label: Label, stamp: Stamp, plain: &mut [u8]) {
        Self::write(Name { owner: turned(name.owner), ..name }, label, stamp, &[], plain);
    }

    /// Reads an opened slot that was sealed with this block; none if it holds another one.
    pub fn read(name: Name, plain: &[u8]) -> Option<Self> {
        let (head, block) = Head::ref_from_prefix(plain).ok()?;
        let (owner, index) = (head.owner, head.index.get());
        let lost = owner == turned(name.owner);
        let is_it = (lost || owner == name.owner) && index == name.index;
        is_it.then(|| Self { name, content: (!lost).then(|| block.to_vec()) })
    }
}
