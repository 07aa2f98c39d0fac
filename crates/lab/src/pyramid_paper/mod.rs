//! PD-ORAM, the construction of "PrivateFS: A Parallel Oblivious File System" (Williams, Sion and
//! Tomescu, CCS 2012); sections are the paper's, errors E1 to E10 those that were found in it.
//!
//! A [`Query`] asks one block; any number of clients ask at once, up to `c` in a period. It reads
//! the query log, walks down the levels and adds to the result log. [`PeriodEnd`] makes the top
//! level of both logs, [`Construct`] every other level of those above it while they are queried.
//! All three yield [`Request`]s and take [`Reply`]s; a [`Member`] lends them the key. [`Server`] is
//! the other side in memory and records what it sees.
//!
//! Below them, [`Schedule`] is the time table of the levels, `scan`, `merge_sort` and
//! `segment_sort` are the passes of a construction and `pace` their paces, `meter` keeps
//! constructions level with the queries. `query_log`, `result_log`, `delete_log` and `bloom_filter`
//! hold the rules for what they are named after.
//!
//! The server is honest but curious, as in the paper's own implementation (§5.5): the hash tree
//! over the logs is not here.

pub mod bloom_filter;
mod client;
mod config;
mod construct;
mod cost;
mod delete_log;
mod error;
mod ids;
mod level;
mod member;
mod merge_sort;
mod messages;
mod meter;
mod pace;
mod period_end;
mod query_log;
mod result_log;
mod scan;
mod segment_sort;
mod server;
mod slot;
mod trace;

pub use client::{Answer, Operation, Query};
pub use config::{LAMBDA_SQUARED, PaperConfig, Sorting};
pub use construct::{Construct, slot_bytes, weight};
pub use cost::Cost;
pub use error::{PaperError, Result};
pub use ids::{
    ClientId, FakeNumber, Generation, Height, ITEM_ID_BYTES, ItemId, LevelId, OpaqueId, Period,
    QueryNumber, SegmentNumber, Sequence, Term,
};
pub use level::{Live, Schedule, fake_name, item_name};
pub use member::Member;
pub use messages::{Deletion, ListId, NamedSlot, Reply, Request, Sealed, Span, Walk};
pub use meter::{Lifetime, Meter};
pub use period_end::PeriodEnd;
pub use server::{Handled, Server, Ticket};
pub use slot::Block;
pub use trace::{Record, View};
