//! The store is the adversary's view: whatever passes these traits is seen.
//!
//! A store is a flat set of named objects. Names are short ASCII words without `/`. What can be
//! done with objects is in a few small [`ports`]: some stores have whole [`Objects`] only, a
//! [`Store`] also writes over, and [`AnyStore`] is one of both kinds. A [`Layer`] changes a store's
//! calls: [`record`] keeps the trace an adversary would keep, and [`retry`] outlasts outages.
//! [`waits`] says how long is waited.
//! Stores on a network are the crate `oblivio-online`.
//! The port of a volume of many clients at a server is [`share`].
//! Stores that crash, fail or lag on purpose are in the crate of test doubles, `oblivio-testkit`.
//!
//! It must not know keys, blocks or engines. What a volume asks of it is all that anybody sees.
//!
//! The ten types that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | `Store`, `Objects`, `Slots`, `Log` | the ports: all that a volume needs, and the parts of it |
//! | `LocalStore`, `PartitionStore` | a folder, one file or partition |
//! | `SyncFolder` | a folder that a sync client copies |
//! | `MemoryStore`, `RecordStore` | for tests, and the trace that an adversary would keep |
//! | `StoreError` | what a caller can do about a failure |
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests"))]

mod any;
mod budget;
mod capabilities;
mod error;
pub mod layer;
pub mod local;
mod medium;
pub mod memory;
mod name;
pub mod partition;
pub mod ports;
mod range;
pub mod record;
mod replace;
pub mod retry;
pub mod share;
mod sync_folder;
mod system;
pub mod waits;
mod write_behind;

pub use any::AnyStore;
pub use budget::Budget;
pub use capabilities::Capabilities;
pub use error::{Result, StoreError};
pub use layer::Layer;
pub use local::LocalStore;
pub use medium::{read_files, sync_directory};
pub use memory::MemoryStore;
pub use name::{MAX_NAME, TRIALS, check_name, is_of_trial};
pub use partition::{ChangeKind, PartitionPlace, PartitionStore};
pub use ports::{
    Guard, Held, Hint, Lease, Log, Objects, PutMode, Slots, Store, StoreAnswer, StoreCall,
    begin_by_writes,
};
pub use range::{ReadAt, WriteAt};
pub use record::RecordStore;
pub use replace::{UNFINISHED, replace_file};
pub use retry::{Patience, RetryStore};
pub use sync_folder::SyncFolder;
pub use system::give_memory_back;
