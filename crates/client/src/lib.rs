//! What a computer does with an oblivious volume that it shares with others.
//!
//! A shared volume lies at a server that has no key ([`oblivio_store::share::Share`]). A [`Client`]
//! asks for blocks, and any number of them do so at the same time. One of them is the scribe: it
//! puts all asks in order, answers them and merges. It is no special one: when it is gone, another
//! one goes on from what the server keeps.
//!
//! - `volume`: the header, and the key. `passphrases`: what opens it. `known`: the newest state
//!   that this computer knows.
//! - `client`, `inner`, `session`, `io_threads`: asks and answers.
//! - `heard`: what others changed, for caches.
//! - `role`, `term`, `scribe`, `workers`, `queue`: who the scribe is, and what it does.
//! - `files`: the file system for several writers over it. `disk`: a disk for one at a time.
//!
//! It must not know terminals, mounts, or how the server stores what it keeps.
//!
//! The ten types that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | `NewShared`, `Keyed` | a volume to make, and one with its key |
//! | `Client`, `ClientOptions` | a session with a volume, and how it behaves |
//! | `HeadKeeper`, `FileKnown`, `Unremembered` | the newest state that this computer saw |
//! | `files::ClientFiles` | the transactions of the file system for several writers |
//! | `disk::SharedDisk`, `disk::Claim` | a disk, and who wants to have it |
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests"))]
#![allow(clippy::disallowed_methods, reason = "a client starts threads, reads clocks and waits")]

mod carried;
mod client;
mod convert;
pub mod disk;
mod error;
pub mod files;
mod heard;
mod inner;
mod io_threads;
mod known;
mod passphrases;
mod presence;
mod queue;
mod role;
mod scribe;
mod session;
mod term;
mod volume;
mod workers;

pub use carried::Carried;
pub use client::Client;
pub use inner::ClientOptions;
pub use known::{FileKnown, HeadKeeper, Unremembered};
pub use passphrases::{add_passphrase, change_passphrase, remove_passphrase};
pub use volume::{Keyed, NewShared, SHARED_ENGINE, config_of, create, header, unlock};
