//! Heads: a record's number and tag.
//!
//! Answers name the newest head of the scribe's history, asks the newest one that their client
//! knows. So a server that shows an old state to a scribe is found at the first ask of a client
//! that knows a later one; and one that keeps two histories, at the first ask or answer that
//! crosses from one to the other.

use oblivio_crypto::{TAG_BYTES, Tag, tag_of};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A record of the chain: its number, from 1, and its tag. Number 0 is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Its number.
    pub number: u64,
    /// Its tag.
    pub tag: Tag,
}

impl Head {
    /// That of a sealed record of this number; none if it is too short to be one.
    pub fn of(number: u64, sealed: &[u8]) -> Option<Self> {
        tag_of(sealed).map(|tag| Self { number, tag })
    }
}

/// As it stands in asks and answers.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct StoredHead {
    number: U64,
    tag: [u8; TAG_BYTES],
}

impl From<Head> for StoredHead {
    fn from(head: Head) -> Self {
        Self { number: U64::new(head.number), tag: head.tag.0 }
    }
}

impl From<StoredHead> for Head {
    fn from(stored: StoredHead) -> Self {
        Self { number: stored.number.get(), tag: Tag(stored.tag) }
    }
}
