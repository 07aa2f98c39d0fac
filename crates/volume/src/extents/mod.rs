//! Sequential volumes in a folder that a sync client copies, used from several computers.
//!
//! The provider sees every file that was ever in the folder, and no read. So the volume is the
//! sequential engine's, over a store of *extents*: what changes is cut into files that are
//! written once. No sync client ever has two versions of one name to choose from.
//!
//! # Files
//!
//! `x` is an extent, `e` the entry of an epoch (which file each extent is in), `k` where a computer
//! stands (`names`). What changed since the last epoch is beside the folder, on this computer
//! (`store`), as durable as any volume; an epoch's end puts it into the folder (`publisher`). What
//! the folder lost of it is put back from there (`health`).
//!
//! # Why nothing is lost
//!
//! A session stands on a complete epoch or on none (`selection`). Two computers that wrote apart
//! leave two newest epochs: both stay, until somebody picks one (`pick`). A file is deleted once no
//! epoch needs it that is the newest, was kept, or is one that a computer stands on (`histories`).
//!
//! # Why it tells nothing
//!
//! Which extents change follows from the engine's counters of writes, flushes and syncs. An epoch
//! ends after a number of writes, after a time, or with the session.

mod base;
mod checkout;
mod copies;
mod entry;
mod header;
mod health;
mod histories;
mod info;
mod keeping;
mod names;
mod noted;
mod parity;
mod publisher;
mod resolution;
mod selection;
mod shape;
mod store;
mod volume;

pub use header::ExtentOptions;
pub use info::ExtentInfo;
pub use resolution::{HistoryInfo, drop_history, histories, pick};
pub use volume::{ENGINE, ExtentVolume};
