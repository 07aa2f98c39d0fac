//! The built command as its users have it. Each module is a suite.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod common;
mod terminal;
mod watching;

#[cfg(all(feature = "online", target_os = "linux"))]
mod canaries;
mod damaged;
mod fixtures;
mod full;
mod kills;
mod looking;
#[cfg(feature = "online")]
mod migrate;
mod mount;
mod nbd;
mod newest;
#[cfg(feature = "online")]
mod online;
mod opening;
#[cfg(feature = "online")]
mod outages;
mod packages;
#[cfg(feature = "man")]
mod pages;
mod prompts;
mod refusals;
#[cfg(feature = "online")]
mod remotes;
mod repair;
mod round_trip;
mod secrets;
#[cfg(feature = "sftp")]
mod sftp;
mod share;
mod shared_mounts;
mod snapshots;
mod sync_folder;
mod sync_health;
mod syncthing;
#[cfg(all(feature = "ublk", target_os = "linux"))]
mod ublk;
mod watch;
mod watch_page;
