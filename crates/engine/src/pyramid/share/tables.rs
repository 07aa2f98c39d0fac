//! The names of tables at the server.

use crate::pyramid::ids::TableHome;
use crate::pyramid::oram::PyramidOram;
use crate::pyramid::shown::Shown;
use oblivio_crypto::{Attempt, digest};

/// The name of a table at the server: another for each one that is built, restarted ones too. So
/// no table is ever stored under the name of another, and a part of one is never continued by
/// another's content. Places ([`TableHome`]) are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u64);

impl TableId {
    /// That of the table whose keys have this number. The number is random and fresh, so the name
    /// is; it says nothing of the keys.
    pub(super) fn of(attempt: Attempt) -> Self {
        let digest = digest(&[&b"table"[..], &attempt.0].concat());
        Self(digest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }
}

/// The tables that an ask shows, with their places. A place may have another table by now.
pub(super) fn table_ids(shown: &Shown) -> impl Iterator<Item = (TableHome, TableId)> {
    let spots = shown.spots.iter().zip(&shown.keys);
    spots.map(|(spot, keys)| (spot.home, TableId::of(keys.attempt())))
}

impl PyramidOram {
    /// The table that lies there now.
    pub fn table_id(&self, home: TableHome) -> Option<TableId> {
        let table = self.tables.iter().flatten().find(|table| table.home == home)?;
        Some(TableId::of(table.keys.attempt()))
    }

    /// All tables that live, by their places.
    pub fn table_ids(&self) -> impl Iterator<Item = (TableHome, TableId)> {
        let tables = self.tables.iter().flatten();
        tables.map(|table| (table.home, TableId::of(table.keys.attempt())))
    }
}
