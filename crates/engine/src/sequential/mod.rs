//! SqORAM: oblivious writes, for an adversary who sees writes only (Chakraborti and Sion, PoPETs
//! 2020), de-amortized, with a fan-out and a queue of any size
//! (docs/decisions/0009-sequential.md).
//!
//! Read downwards as a request goes: [`Sequential`] takes writes into the `write_queue` and notes
//! them in the `access_time_map`; after every bucket of them a `flush` carries out what [`Placement`]
//! plans by the [`Schedule`] and the `merge_buffer`s; `read` finds a block by its access time alone.
//! Below, `vault` and `sealing` seal, `block_reads` opens, `buffer_map` and `map_walk` know the maps, [`Layout`] the places.
//!
//! It is no [`crate::Engine`]: reads and writes are separate here, and what is written has places in
//! bytes instead of buckets of a tree.
//!
//! # What a volume must do
//!
//! - *Order.* Carry out a flush's steps in order, and its [`Step::Write`] before the flush is over.
//!   Reads may go on meanwhile; writes wait. Batches and flushes are no part of the engine, and
//!   what a step reads or writes belongs to them: several threads may share an engine behind a lock
//!   that nobody holds while a step is carried out, or while blocks are opened and sealed
//!   ([`Flushing::parts`], [`ReadBatch::open`]).
//! - *Log.* A write is durable once it is in the volume's log. The log must hold
//!   [`Sequential::lost_writes`], which are those of the queue, and everything since the state that
//!   is durable.
//! - *State.* [`Sequential::state`] must become durable between two turns: after the last flush of a
//!   turn, before the first write of the next turn's first flush. More often is allowed. What is
//!   written after a durable state stands only where that state has nothing current, for as long
//!   as one turn, so a crash at any write leaves what the state names whole, torn sectors included.
//! - *Recovery.* Restore the state, find the access times again unless they were kept (those in the
//!   ORAM always are to be found again), make the lost writes again, then make what the log has
//!   beyond them as ordinary writes. Their flushes write the same places in the same order as before
//!   the crash.
//! - *Seal the state*, and refuse an older one: its roots are what authenticates the disk.
//! - *Fill the disk* with random bytes when it is created, if what was not yet written shall not show.

mod access_time_map;
pub mod amortized;
mod block_reads;
mod buffer_map;
mod config;
mod engine;
mod flush;
#[doc(hidden)]
pub mod fuzzing;
mod ids;
mod keys;
mod layout;
mod map_cache;
mod map_node;
mod map_shape;
mod map_walk;
pub mod memory;
mod merge_buffer;
mod page_cache;
mod placement;
mod read;
mod rebuild;
mod schedule;
mod sealing;
mod state;
mod step;
mod time_pages;
mod vault;
mod work;
mod write_queue;

pub use access_time_map::{AccessTimeMap, Accessed};
pub use config::SequentialConfig;
pub use engine::Sequential;
pub use flush::Flushing;
pub use ids::{Bucket, Flush, Generation, Slot, Turn};
pub use keys::SequentialKeys;
pub use layout::{Cost, Extent, Layout, MOST_BYTES};
pub use map_node::SealedAt;
pub use map_shape::{MapShape, NodeAt};
pub use merge_buffer::{Entry, MergeBuffer, Origin, Pick};
pub use placement::{Found, Placement, Planned};
pub use read::ReadBatch;
pub use rebuild::Rebuild;
pub use schedule::{Home, Schedule};
pub use step::Step;
pub use time_pages::Times;
pub use work::Part;
pub use write_queue::WriteQueue;
