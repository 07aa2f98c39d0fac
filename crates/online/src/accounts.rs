//! Folders in accounts of Dropbox, Google Drive and OneDrive, over drivers of our own.
//!
//! The library that speaks to the other services cannot create an object exclusively here, nor
//! store several at once. Each driver keeps all objects of a store in one folder of the account,
//! and knows nothing but their names. Upper and lower case are the same to two of the services;
//! names of a volume's objects are in lower case.

mod account;
mod client;
mod connect;
mod dropbox;
mod gdrive;
mod http;
mod log_on;
mod onedrive;
mod tokens;

pub(super) use connect::driver;
pub use log_on::{LogOn, LogOnError, Proof, Registration};
