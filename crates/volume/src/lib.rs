//! Durable oblivious volumes, and the file system on them.
//!
//! It is for everything between a block and a file: what makes a state durable, which state is the
//! newest, and files and disks over blocks. It must not know where a store is, what a user types,
//! or how files are shown: callers bring a store, options, and a `Keeper` of what was seen.
//!
//! The ten types that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | `NewVolume`, `ClosedVolume`, `Volume` | one to make, one whose header was read, an open one |
//! | `BlockSpace`, `BlockReader` | what files and disks ask of a volume, and readers of it |
//! | `fs::FileSystem`, `disk::Disk` | files, and bytes by their offset |
//! | `OpenOptions`, `Keeper` | how a volume is opened, and what keeps the newest state |
//! | `Commits` | when a commit is due, for all who change a volume |
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests"))]

mod around;
pub mod block;
mod commits;
mod core;
mod creation;
mod damage;
pub mod disk;
mod engine;
mod environment;
mod error;
pub mod extents;
pub mod fs;
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod lane;
mod latch;
mod options;
mod pacer;
mod passphrases;
mod ranges;
mod records;
mod registry;
pub mod report;
mod scrub;
pub mod sequential;
mod session;
pub mod tree;
mod trust;
mod unlock;
mod volume;
pub mod windows;

pub use around::Repeats;
pub use block::{BlockReader, BlockSpace, CHANGE_BYTES, Least, ROOT_BYTES, TakeBlock};
pub use commits::Commits;
pub use creation::{Cost, FixedObjects, NewOptions};
pub use damage::{DamagedPlace, Inspected, LostBytes};
pub use engine::{
    Creation, EngineEntry, EngineVolume, Making, Opening, PublicHeader, VolumeInfo, make, open_as,
};
pub use environment::{Clock, Environment, SimulatedClock, SystemClock};
pub use error::{Error, Result};
pub use extents::{HistoryInfo, drop_history, histories, pick};
pub use header::{
    HEADER_BYTES, HEADER_OBJECT, HEADER_OBJECTS, Header, PARAMETER_BYTES, Parameters, has_header,
    is_header,
};
pub use lane::{LaneMaster, LaneStatus, LaneSync, LaneWait, MOST_LANES, OpenLane};
pub use options::{
    Beside, CacheOptions, CreateOptions, DEFAULT_MEMORY, HolderNotice, LogRule, OnShown, OnWait,
    OnWanted, OpenOptions, Pace, Records, Rule, Shown, ShownKind, TopLogs, Which, WindowRule,
};
pub use passphrases::{add_passphrase, change_passphrase, read_header, remove_passphrase};
pub use registry::{ENGINES, NewVolume, SeenBy};
pub use scrub::{Inspection, QuietScrub, Reached, Scrubs};
pub use sequential::LaneParameters;
pub use session::is_of_session;
pub use trust::{
    Act, ComputerId, Keep, Keeper, Known, LogMark, LogSeen, MemoryKeeper, NoteSyncer, SessionHint,
    notes,
};
pub use volume::{ClosedVolume, Volume};
pub use windows::{Collected, SessionStatus, Traffic, status};
