//! Durable oblivious volumes, and the file system on them.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests"))]

pub mod block;
pub mod disk;
mod environment;
mod error;
pub mod fs;
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod options;
mod ranges;
pub mod sequential;
pub mod tree;
mod trust;
mod volume;

pub use block::{BlockReader, BlockSpace, Least, ROOT_BYTES};
pub use environment::{Clock, Environment, SimulatedClock, SystemClock};
pub use error::{Error, Result};
pub use header::{
    EngineKind, HEADER_BYTES, HEADER_OBJECT, PublicHeader, add_passphrase, change_passphrase,
    read_header, remove_passphrase,
};
pub use options::{
    CreateOptions, DEFAULT_MEMORY, EngineInfo, OnShown, OpenOptions, Pace, Rule, SequentialInfo,
    Shown, ShownKind, TreeInfo, VolumeInfo,
};
pub use trust::{Act, ComputerId, Keep, Keeper, Known, LogMark, LogSeen, MemoryKeeper};
pub use volume::{ClosedVolume, Volume};
