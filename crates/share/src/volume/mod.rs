//! What a server keeps of a volume, behind the port [`oblivio_store::share::Share`].
//!
//! It has no key: all that it sees passes that port. [`MemoryShare`] keeps it in memory,
//! [`StoredShare`] in a folder. `shared` says who may do what, and what is durable when;
//! `request_queue` has the asks that wait, `history_index` what is known of the history, `objects`
//! tables and states; a `keeper` has the bytes.

mod folder;
mod history_index;
mod keeper;
mod lease;
mod limits;
mod memory;
mod notices;
mod objects;
mod request_queue;
mod shared;
mod stored;

pub use folder::{Healed, PairedDatabase, Tables};
pub use keeper::MissingParts;
pub use memory::MemoryShare;
pub use stored::StoredShare;
