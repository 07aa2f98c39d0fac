//! privatefs: a file system that several clients change at the same time, without a server that
//! knows anything of it.
//!
//! It stands on [`Transactions`]: up to eight asks on named blocks, carried out together or not at
//! all. Each change of the file system is one transaction. Its asks compare what was read, so the
//! loser of a race repeats, and a client that dies in between leaves nothing half done and nothing
//! locked.
//!
//! The crate is pure. Transactions, time and randomness come from outside; it starts no threads.
//! Permissions are the kernel's business (`default_permissions`).
//!
//! - `transactions`: what the file system asks for. The engine that carries it out uses the same
//!   words.
//! - `layout`, `inode`, `bucket`, `listed`: what stands in blocks.
//! - `base`, `cache`, `attempt`: the line to the blocks, those that were read, and the loop
//!   around a change. `client` is what callers have.
//! - `directory`, `names`, `rename`, `listing`: names. `opened`, `dirty`, `flush`, `data`, `ahead`,
//!   `resize`: files. `xattrs`, `locks`: the rest. `check` looks at everything.
//! - `types`: the words of file systems, which the one of a volume with one writer has from here.
//!   `node`: what only this one says of an inode.
//!
//! It must not know keys, engines, servers or kernels.
//!
//! The ten types that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | `PrivateFs`, `FsOptions`, `ClientEnvironment` | a client of it, its options, its time |
//! | `Transactions`, `Ask`, `Answer`, `Compare` | what it stands on |
//! | `Owner`, `Attr`, `Error` | a file's number, what is known of it, why something was refused |
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests"))]

mod ahead;
mod attempt;
mod base;
mod bucket;
mod cache;
mod check;
mod client;
mod data;
mod directory;
mod dirty;
mod error;
mod file;
mod flush;
mod inode;
mod layout;
mod listed;
mod listing;
mod locks;
mod names;
mod node;
mod opened;
mod orphans;
mod rename;
mod resize;
#[cfg(feature = "testing")]
pub mod testing;
mod transactions;
mod types;
mod xattrs;

pub use base::{CacheNotice, ClientEnvironment, FsOptions};
pub use check::{Findings, Problem};
pub use client::PrivateFs;
pub use error::{Error, Result};
pub use layout::ROOT;
pub use locks::{Lock, LockKind, LockOwner};
pub use node::{ListedNode, NodeAttr, number};
pub use transactions::{
    Action, Answer, Ask, Change, Changes, Compare, Does, MOST_ASKS, MOST_COMPARED, Name, Operation,
    Owner, Session, Space, Transactions,
};
pub use types::{
    Attr, DirEntry, FileKind, Ino, LINK_BYTES, MAX_FILE, MODE_BITS, NAME_BYTES, NewNode, ROOT_INO,
    RenameMode, SetAttr, Timestamp, XATTR_NAME_BYTES, XattrMode,
};

// The tests of what others see are in the binary of the unit tests: the crate is built once for
// both.
#[cfg(test)]
extern crate self as oblivio_privatefs;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;
