//! Volumes on the sequential engine, for an observer of the store's writes only.
//!
//! Objects: `disk`, with the engine's levels; `log`, a ring of sealed quanta that holds every write
//! before it counts as durable; `state` and `state-2`, which say the same, each with two places
//! used in turn that have everything needed to continue from the end of a turn; `times`, the access
//! times, after a clean end; those of `lanes`, if the volume has any, which follow its acts.
//!
//! # Why a crash loses nothing
//!
//! Writes go to the log and to the engine in one order, and only whole quanta count. Each turn ends
//! with a state, written after the log and disk that it names are durable. Until the next state is
//! durable, the engine writes only where this one has nothing current. Opening restores the newest
//! state, replays the writes of its queue from the log, and then those beyond it. Their flushes go
//! to the same places in the same order as before the crash.
//!
//! # Why it tells nothing
//!
//! What is written, where, and in which order, follows from the number of writes, the syncs among
//! them, and the end of the session. Quanta have one size and are padded. A turn whose syncs make
//! the log too long is padded to its end.
//!
//! # Who does what
//!
//! One thread owns the volume and writes. Others read beside it and share the engine behind a lock
//! (docs/decisions/0015-reads-beside-writes.md).

mod ahead;
mod cover;
mod create;
mod disk;
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod info;
mod lanes;
mod log;
mod log_position;
mod open;
mod options;
mod own_lanes;
mod parity;
mod quantum;
mod reads;
mod renewal;
mod rest;
mod ring;
mod serving;
mod shared;
mod space;
mod state;
mod state_places;
mod times;
mod verify;
mod volume;

pub use info::SequentialInfo;
pub(crate) use info::say_hidden_writes;
pub use lanes::LaneParameters;
pub(crate) use log::LOG_OBJECT;
pub use options::SequentialOptions;
pub(crate) use options::objects_of;
pub(crate) use state::STATE_OBJECT;
pub(crate) use times::TIMES_OBJECT;
pub use volume::{ENGINE, SequentialVolume};

/// The object with the engine's levels.
pub(crate) const DISK_OBJECT: &str = "disk";
/// The alignment of places: no two things share a sector that one write could tear.
const PAGE: u64 = 4096;
