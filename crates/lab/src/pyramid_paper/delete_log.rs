//! Deletions from levels under construction (§5.3, "Delete Log").
//!
//! While a level is queried, the level that replaces it is made of the same items. An item that a
//! query takes away must not appear there. The paper lets "the server delete" such items, but the
//! new copy has a new name, and the number of deletions would show the number of hits (E5). So each
//! query names exactly one entry of each level under construction: the item's if it was found among
//! that level's sources, else a fake that exists for this only. Filters cannot delete: they go on
//! to say "yes" to a deleted item. That does no harm, because its newer version is found above or
//! in the newer level at the same height first (E4).
//!
//! The deletion for a height goes with the trip after its items, when their content is known: the
//! bottom drops absent items (see [`super::slot`]), so nobody can delete them.
//!
//! A merge that keeps the newer of two copies would need no deletions at all, because of the
//! windows of [`super::level`]. It would save a quarter of all constructed entries. Deletions are
//! kept because they are the paper's construction.

use super::ids::{ItemId, LevelId, OpaqueId, QueryNumber};
use super::level::{Live, Schedule, fake_name, item_name};
use super::messages::Deletion;
use oblivio_crypto::Prf;
use std::collections::{BTreeMap, BTreeSet};

/// The deletion that a query names after it has seen the items of a height: `taken` is its item if
/// it was there and goes on into the target.
pub fn deletion(
    prf: &Prf,
    schedule: &Schedule,
    live: &Live,
    query: QueryNumber,
    taken: Option<ItemId>,
) -> Deletion {
    let target = live.target;
    let name = taken.map_or_else(
        || {
            let asked = schedule.asked_before(live.fresh, query);
            fake_name(prf, target, schedule.deletion_fake(target, asked))
        },
        |id| item_name(prf, target, id),
    );
    Deletion { target, name }
}

/// The deletions of all levels under construction, at the server.
#[derive(Clone, Debug, Default)]
pub struct DeleteLog(BTreeMap<LevelId, BTreeMap<QueryNumber, OpaqueId>>);

impl DeleteLog {
    /// Notes a query's deletion. A client that finishes another's query repeats it; false if it
    /// names another entry than before.
    pub fn note(&mut self, query: QueryNumber, deletion: Deletion) -> bool {
        let log = self.0.entry(deletion.target).or_default();
        *log.entry(query).or_insert(deletion.name) == deletion.name
    }

    /// The deletions of a level that begins to live.
    pub fn take(&mut self, level: LevelId) -> BTreeSet<OpaqueId> {
        self.0.remove(&level).unwrap_or_default().into_values().collect()
    }
}
