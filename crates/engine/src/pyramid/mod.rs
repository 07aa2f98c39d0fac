//! PD-ORAM (PrivateFS, CCS 2012), in partitions that are small enough to be merged in memory.
//!
//! A block that was asked for goes to the `stash`. By turns, each partition merges the oldest
//! blocks of its stash and its smaller `table`s into a larger one (`schedule`, `due`, `merge`),
//! while asks go on. An ask reads one slot of each table of one partition, and no slot is ever
//! read twice (`oram` has the rule). The store sees the partitions, which are uniform and
//! independent of what is asked, and a schedule that depends on the number of asks only.

pub mod config;
mod due;
mod forgets;
mod history;
mod homes;
mod ids;
mod merge;
mod open;
mod operation;
mod oram;
mod round;
mod schedule;
mod serve;
pub mod share;
mod shown;
mod slot;
mod stash;
mod state;
mod table;

pub use config::PyramidConfig;
pub use history::{AskEvent, AskedBlock, Left, MOST_LEFT, Merged, RoundIntent, Settle};
pub use ids::{Height, Name, Partition, Stamp, TableHome, TableSlot, TableSpot};
pub use operation::{Effect, Operation};
pub use oram::{PyramidKeys, PyramidOram};
pub use round::{MergeJob, RoundJob, WITHIN_TABLE};
pub use schedule::PartitionTurn;
pub use shown::{MOST_ROUNDS, Seed};
