//! What a state holds beside the engine's part: the caller's root, the table of computers, and the
//! places of tables.
//!
//! ```text
//! root length 8 | root, zeros up to 1024 | table of computers |
//! tables 8, and for each its number 4 | object 4 | place 8 | engine
//! ```

use super::places::StoredPlace;
use crate::block::StoredRoot;
use crate::records::state::Plain;
use crate::trust::{MOST_ROWS, Table};
use crate::{Error, Result};
use oblivio_crypto::SEAL_HEADER;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

const TABLE: usize = Table::bytes(MOST_ROWS);

/// Begins a state, with room for its seal. The engine's part follows.
pub fn begin(root: &[u8], table: &Table, places: &[StoredPlace]) -> Vec<u8> {
    let mut out = vec![0; SEAL_HEADER];
    out.extend_from_slice(StoredRoot::new(root).as_bytes());
    out.extend_from_slice(&table.to_bytes(MOST_ROWS));
    out.extend_from_slice(&(places.len() as u64).to_le_bytes());
    out.extend_from_slice(places.as_bytes());
    out
}

/// A parsed state.
pub struct Parts<'a> {
    /// The caller's root.
    pub root: &'a [u8],
    /// The table of computers.
    pub table: Table,
    /// The tables' places.
    pub places: &'a [StoredPlace],
    /// The engine's part.
    pub engine: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Parses an opened state.
    ///
    /// # Errors
    /// `Tampered` if the bytes are something else.
    pub fn of(plain: &'a Plain) -> Result<Self> {
        let parts = Self::parse(&plain.bytes);
        parts.ok_or_else(|| Error::Tampered("the state does not parse".into()))
    }

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (root, rest) = StoredRoot::ref_from_prefix(bytes).ok()?;
        let (table, rest) = rest.split_at_checked(TABLE)?;
        let (count, rest) = U64::ref_from_prefix(rest).ok()?;
        let count = usize::try_from(count.get()).ok()?;
        let (places, engine) = <[StoredPlace]>::ref_from_prefix_with_elems(rest, count).ok()?;
        Some(Self { root: root.get()?, table: Table::parse(table)?, places, engine })
    }
}
