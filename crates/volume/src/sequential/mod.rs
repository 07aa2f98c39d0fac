//! Volumes on the sequential engine, for whoever sees the store's writes only.
//!
//! Objects: `disk`, where the engine's levels are; `log`, a ring of sealed quanta in which every
//! write stands before it counts as durable; `state`, two places that take turns, each with all
//! that it takes to go on from the end of a turn; `times`, the access times, after a clean end.
//!
//! # Why a crash loses nothing
//!
//! Writes go to the log and to the engine in one order, and only whole quanta are believed. A
//! state is written at the end of each turn, after what it names, log and disk, is durable; until
//! the next one is, the engine writes only where this one has nothing current. Opening restores
//! the newest state, makes the writes of its queue again from the log, and then those beyond it:
//! their flushes go to the same places in the same order as before the crash.
//!
//! # Why it tells nothing
//!
//! All that is written, where, and in which order, follows from how many writes there were, what
//! was synced when, and how the session ended. Quanta have one size and are padded. A turn in which
//! so much was synced that the log grows too long is padded to its end.

//!
//! # Who does what
//!
//! One thread owns the volume and writes. Others read beside it, through what they share: the engine
//! behind a lock (docs/decisions/0015-reads-beside-writes.md).

mod ahead;
mod create;
#[doc(hidden)]
pub mod fuzzing;
mod log;
mod open;
mod quantum;
mod shared;
mod space;
mod state;
mod times;
mod volume;

pub use create::SequentialOptions;
pub use volume::SequentialVolume;

/// The object with the engine's levels.
pub(crate) const DISK_OBJECT: &str = "disk";
/// Places begin at multiples of this: no two things share a sector that one write could tear.
const PAGE: u64 = 4096;
