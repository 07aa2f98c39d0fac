//! Volumes on the tree engine, for a store that sees every read and every write.
//!
//! Its buckets are in a `slab`, its memory in a sealed `state`; a `commit` makes both current. The
//! `journal` records everything between two commits.

pub(crate) mod commit;
pub(crate) mod deferred;
mod due;
mod intended;
pub(crate) mod journal;
mod pacing;
pub(crate) mod padding;
mod quiet;
mod recorded;
mod room;
mod shown;
mod size;
pub(crate) mod slab;
mod space;
pub(crate) mod state;
mod verify;
pub(crate) mod volume;

pub use pacing::Pace;

pub use volume::TreeVolume;
