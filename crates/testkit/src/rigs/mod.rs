//! Real servers for tests: S3, WebDAV and SFTP, each on a free port of the loopback, in a folder
//! of its own, and gone with its rig.
//!
//! A [`Tmpfs`] is a disk that fills up. A [`Network`] before one of them can be broken by a test.
//!
//! A server is a program that may not be there. Then a rig says so in words, and a test skips what
//! it was for by name.
#![allow(clippy::disallowed_methods, reason = "rigs wait, and look for programs in PATH")]

mod s3;
mod server;
mod sftp;
mod tmpfs;
mod weather;
mod webdav;

pub use s3::{S3Kind, S3Rig};
pub use server::{Server, Skip, find_program};
pub use sftp::SftpRig;
pub use tmpfs::Tmpfs;
pub use weather::{Network, NetworkFault};
pub use webdav::{WebDavKind, WebDavRig};
