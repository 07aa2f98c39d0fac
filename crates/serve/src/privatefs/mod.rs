//! A file system of several writers as a directory, through FUSE.
//!
//! Each request is carried out by the thread that took it from the kernel: there are several, and
//! what they do at the same time the file system sorts out as it does with other clients. `kernel`
//! carries requests out with `files`, `ids` knows what they refer to, `session` holds the threads
//! together, `notify` makes the kernel forget what other clients changed, and `told` says when
//! operations fail.

mod files;
mod ids;
mod kernel;
mod locking;
mod notify;
mod options;
mod session;
mod told;

pub use options::SharedMountOptions;
pub use session::{SharedMount, serve};
pub use told::told;
