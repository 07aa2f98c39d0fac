//! Stores on a network: S3 and what speaks like it, Google's and Azure's, WebDAV, SFTP, and folders
//! in accounts of Dropbox, Google Drive and OneDrive.
//!
//! This is the only async code. Everything behind [`OnlineStore`] runs on a small private runtime;
//! its methods block like those of any other store. A service stores whole objects, so that is the
//! one port which the store has ([`Objects`](oblivio_store::Objects)): `begin` sends some at once,
//! and `settle` waits for them.
//!
//! What a service sees must follow from public facts only. So each call is a fixed number of
//! requests, all of them at once up to a fixed limit; an object is sent in one request, under no
//! name twice with different bytes; and nothing says who asks, but the agent `oblivio`.
//!
//! - [`Url`] says where a store is, [`Remotes`] what the user calls it, [`StoreSecret`] and
//!   [`Ambient`] what opens it. No library reads the environment: the program hands it over.
//! - [`Remotes::add`] writes the user's file of remotes, [`LogOn`] gets the first tokens of an
//!   account.
//! - [`open`] makes the store, [`probe()`] finds out what the service really does.
//!
//! It must not know keys, blocks or volumes: only bytes, names and what a service promises.
//!
//! The ten types that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | `OnlineStore`, `Runtime` | a store at a service, and the threads of all of them |
//! | `Url`, `OnlinePlace`, `Service` | where it is, as text and as parts |
//! | `Remotes`, `Remote`, `StoreSecret` | what the user calls it, and what opens it |
//! | `LogOn` | the first tokens of an account |
//! | `ProbeVerdict` | what a trial found out about the service |
//!
//! # Features
//!
//! S3 and what speaks like it, WebDAV and accounts are always there. `gcs` and `azure` add the
//! signers of Google Cloud Storage and of Azure, and `sftp` a client over `ssh`. A URL whose
//! service is not built in is an error that names the feature.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests"))]

mod accounts;
mod begun;
mod config;
mod driver;
mod failure;
mod gate;
mod keyring;
mod library;
mod open;
mod probe;
mod runtime;
mod secrets;
#[cfg(feature = "sftp")]
mod sftp;
mod store;
mod url;

pub use accounts::{LogOn, LogOnError, Proof, Registration as AccountClient};
pub use config::{ConfigError, NewRemote, NewSecret, Remote, Remotes, SecretFrom};
pub use gate::bound_patience;
pub use open::{OpenError, in_memory, open};
pub use probe::{Begin, Connect, Effort, LostCounts, ProbeVerdict, Race, Speed, Torn, probe};
pub use runtime::Runtime;
pub use secrets::{Ambient, Lookup, StoreSecret, keep_from};
pub use store::OnlineStore;
pub use url::{OnlinePlace, Service, Url, UrlError};
