//! Volumes on the tree engine in aligned windows, for stores of whole objects: buckets, folders of
//! web servers, and their kind. Several computers use one, one at a time.
//!
//! # Objects
//!
//! Every name follows from a counter and a session (`places`), is stored once, and never changes:
//! objects of buckets, parts of the memory, and the entries of sessions (`crate::session`). Nothing
//! is listed, where the store creates exclusively.
//!
//! # Why a crash loses nothing
//!
//! A sync returns once its record is an acknowledged entry: every later session has it in its
//! history. A checkpoint counts once all objects are stored that it needs; what it replaced is
//! deleted after its pointer. A session that sees a later one stores and deletes nothing more.
//!
//! # Why it tells nothing
//!
//! Which buckets are read follows from PRF labels that are used once. A window comes after so many
//! accesses, whatever they were, and rewrites a fixed set of buckets. Parts have one length. A
//! batch that was shown is shown again by the session after a crash, path for path, if its intent
//! got through.

mod account;
#[cfg(test)]
mod audited;
mod begin;
mod cache;
mod checkpoint;
mod collect;
mod cost;
mod fetch;
mod header;
mod info;
mod ledger;
mod leftovers;
mod near;
mod parity;
mod parts;
mod pending;
mod places;
mod planted;
mod policy;
mod records;
mod shown;
mod space;
mod state;
mod status;
mod verify;
mod volume;

pub use collect::Collected;
pub use cost::{Traffic, WindowCost};
pub use header::WindowOptions;
pub use info::WindowInfo;
pub use status::{SessionStatus, status};
pub use volume::{ENGINE, WindowVolume};
