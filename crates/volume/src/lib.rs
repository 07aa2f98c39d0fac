//! Durable oblivious volumes, and the file system on them.

pub mod block;
mod error;
pub mod fs;
mod options;

pub use block::{BlockSpace, ROOT_BYTES};
pub use error::{Error, Result};
pub use options::{
    CreateOptions, DEFAULT_MEMORY, OnCommit, OnShown, OpenOptions, Seen, Shown, VolumeInfo,
};
