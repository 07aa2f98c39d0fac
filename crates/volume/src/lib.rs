//! Durable oblivious volumes, and the file system on them.

pub mod block;
mod error;
pub mod fs;

pub use block::{BlockSpace, ROOT_BYTES};
pub use error::{Error, Result};
