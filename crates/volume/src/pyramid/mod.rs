//! Volumes on the pyramid engine, for one writer and a store that sees every read and every write.
//!
//! Objects: `tables-N`, with tables of one length each (`places`); the sealed memory of the engine
//! in a `state`, which a `commit` makes current; the `journal` since then.
//!
//! # Why a crash loses nothing
//!
//! No content enters the engine before it is durable in the journal. A crash is followed by the
//! same rounds again, on the same content: a round's *intent* was durable before it read, the
//! writes that it carried out were durable before that, and a merge is recorded once its table is
//! durable. So what is found is a moment of the past, between two writes of the caller. Tables that
//! merges replaced stay until the next commit, because the rounds read them again.
//!
//! # Why it tells nothing
//!
//! A round that was shown is shown again, slot for slot, whatever the user does after the crash.
//! When merges and commits come, and how long everything is, follows from the number of asks and
//! the lengths of records.

mod header;
mod info;
mod journal;
mod ledger;
mod places;
mod policy;
mod replay;
mod space;
mod state;
mod tables;
mod volume;
mod waiting;

pub use header::PyramidOptions;
pub use info::PyramidInfo;
pub use volume::{ENGINE, PyramidVolume};
