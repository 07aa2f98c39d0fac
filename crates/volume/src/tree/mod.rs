//! Volumes on the tree engine, for a store that sees every read and every write.
//!
//! Its buckets are in a `slab`, its memory in a sealed `state`; a `commit` makes both current. The
//! `journal` records everything between two commits.

mod account;
mod buckets;
mod commits;
mod decisions;
pub(crate) mod header;
mod idle;
mod info;
mod ledger;
mod older_copy;
mod pacing;
pub(crate) mod padding;
mod policy;
mod record_sync;
mod room;
mod shown;
mod size;
pub(crate) mod slab;
mod space;
pub(crate) mod state;
mod top;
mod tuning;
mod verify;
pub(crate) mod volume;

pub use info::TreeInfo;
pub use volume::{ENGINE, TreeVolume};
