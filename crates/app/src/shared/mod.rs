//! Volumes that computers share, at a server that has no key: `share://HOST:PORT/NAME`.
//!
//! `token` and `session` are the way to one, and `files` are its files in the words of those of
//! other volumes.

mod failure;
mod files;
mod session;
mod token;

pub use files::SharedFiles;
pub use session::{ShareLine, TIMEOUT, address, environment, known, line, make_root, owner};
pub use token::TokenError;
