//! SqORAM: oblivious writes, for an adversary who sees only writes (Chakraborti and Sion, PoPETs
//! 2020). De-amortized, with a fan-out and a queue of any size (docs/decisions/0009-sequential.md).
//!
//! A request passes the modules in this order. [`Sequential`] takes writes into the `write_queue`
//! and records them in the `access_time_map`. After every bucket of writes, a `flush` carries out
//! the plan of [`Placement`], which follows the [`Schedule`] and the `merge_buffer`s. `read` finds
//! a block by its access time alone. Below, `vault` and `sealing` seal, `block_reads` opens,
//! `buffer_map` and `map_walk` hold the maps, and [`Layout`] the places. A `lane`
//! is an engine that is written beside this one.
//!
//! # What a volume must do
//!
//! - *Order.* Carry out a flush's steps in order, and its write before the flush is over. Reads may
//!   proceed meanwhile; writes wait. Several threads may share an engine behind a lock, which
//!   nobody holds while a step is carried out or blocks are opened and sealed ([`crate::Job`]).
//! - *Log.* A write is durable once it is in the volume's log. The log must hold
//!   [`Sequential::lost_writes`], which are those of the queue, and everything since the durable
//!   state.
//! - *State.* [`Sequential::state`] must become durable between two turns: after the last flush of
//!   a turn, before the first write of the next turn's first flush. More often is allowed. For one
//!   turn after a durable state, a flush writes only where that state has nothing current. So a
//!   crash at any write leaves everything that the state names whole, torn sectors included.
//! - *Recovery.* Restore the state. Rebuild the access times unless they were saved; those in the
//!   ORAM never are. Replay the lost writes, then make the rest of the log as ordinary writes.
//!   Their flushes write the same places in the same order as before the crash.
//! - *Seal the state*, and refuse an older one: its roots authenticate the disk.
//! - *Fill the disk* with random bytes at creation, to hide which parts were not yet written.

mod access_time_map;
mod block_reads;
mod buffer_map;
mod config;
mod engine;
mod extents;
mod flush;
#[doc(hidden)]
pub mod fuzzing;
mod ids;
mod keys;
mod lane;
mod layout;
mod map_cache;
mod map_node;
mod map_shape;
mod map_walk;
pub mod memory;
mod merge_buffer;
mod page_cache;
mod pages;
mod placement;
mod read;
mod rebuild;
mod schedule;
mod sealing;
mod state;
mod suspects;
mod time_pages;
mod unfinished;
mod vault;
mod write_queue;

pub use access_time_map::{AccessTimeMap, Accessed};
pub use config::SequentialConfig;
pub use engine::Sequential;
pub use flush::Flushing;
pub use ids::{Flush, Generation, GenerationBucket, GenerationSlot, Turn};
pub use keys::SequentialKeys;
pub use lane::{LaneDisk, LaneLayout, LanePiece};
pub use layout::{Layout, LayoutCost, MOST_BYTES};
pub use map_node::SealedAt;
pub use map_shape::{MapShape, NodeAt};
pub use merge_buffer::{ExpectedSlots, LeafEntry, LeafRead, MergeBuffer, Origin, Pick};
pub use placement::{Candidates, Placement, Planned};
pub use read::ReadBatch;
pub use rebuild::Rebuild;
pub use schedule::{BlockHome, Schedule};
pub use time_pages::Times;
pub use unfinished::Unfinished;
pub use vault::DamagedExtent;
pub use write_queue::WriteQueue;
