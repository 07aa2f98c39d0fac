//! Durable oblivious volumes, and the file system on them.

pub mod block;
mod commit;
mod deferred;
pub mod disk;
mod error;
pub mod fs;
#[doc(hidden)]
pub mod fuzzing;
mod header;
mod journal;
mod options;
mod pacing;
mod ranges;
mod room;
mod shown;
mod size;
mod slab;
mod space;
mod state;
mod verify;
mod volume;

pub use block::{BlockSpace, ROOT_BYTES};
pub use error::{Error, Result};
pub use header::{PublicHeader, add_passphrase, change_passphrase, read_header, remove_passphrase};
pub use options::{
    CreateOptions, DEFAULT_MEMORY, OnCommit, OnShown, OpenOptions, Rule, Seen, Shown, ShownKind,
    VolumeInfo,
};
pub use pacing::Pace;
pub use volume::Volume;
