//! PD-ORAM (PrivateFS, CCS 2012), in partitions that are small enough to be merged in memory.
//!
//! A block that was asked for goes to the `stash`. By turns, each partition merges the oldest
//! blocks of its stash and its smaller `table`s into a larger one (`schedule`, `merge`). An ask
//! reads one slot of each table of one partition, and no slot is ever read twice (`oram` has the
//! rule). The store sees the partitions, which are uniform and independent of what is asked, and a
//! schedule that depends on the number of asks only.
//!
//! [`paper`] is PD-ORAM as its paper describes it, with its errors corrected: the ground for the
//! paper's figures.

pub mod config;
mod history;
mod ids;
mod merge;
mod operation;
mod oram;
pub mod paper;
mod round;
mod schedule;
mod serve;
pub mod share;
mod slot;
mod stash;
mod state;
mod table;

pub use config::PyramidConfig;
pub use history::{Event, Intent, Merged, Settle};
pub use ids::{Height, Home, Name, Partition, Slot, Spot, Stamp};
pub use operation::Operation;
pub use oram::{PyramidKeys, PyramidOram, Seed};
pub use round::{MergeJob, RoundJob, WITHIN_TABLE};
pub use schedule::Turn;
