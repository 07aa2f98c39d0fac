//! The content of a slot: `name 16 | label 8 | stamp 8 | block`, sealed.

use super::config::SLOT_HEAD;
use super::ids::{Name, Stamp};
use crate::Label;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Head {
    name: [u8; 16],
    label: U64,
    stamp: U64,
}

const _: () = assert!(size_of::<Head>() == SLOT_HEAD);

/// A block in a slot.
pub(super) struct Held {
    pub name: Name,
    pub label: Label,
    pub stamp: Stamp,
    pub content: Vec<u8>,
}

impl Held {
    /// Writes it to an unsealed slot.
    pub fn write_to(&self, plain: &mut [u8]) {
        let label = U64::new(self.label.0);
        let head = Head { name: self.name.0, label, stamp: U64::new(self.stamp.0) };
        let (front, block) = plain.split_at_mut(SLOT_HEAD);
        front.copy_from_slice(head.as_bytes());
        block.copy_from_slice(&self.content);
    }

    /// Reads an opened slot; none if it is too short.
    pub fn read(plain: &[u8]) -> Option<Self> {
        let (head, block) = Head::ref_from_prefix(plain).ok()?;
        Some(Self {
            name: Name(head.name),
            label: Label(head.label.get()),
            stamp: Stamp(head.stamp.get()),
            content: block.to_vec(),
        })
    }
}
