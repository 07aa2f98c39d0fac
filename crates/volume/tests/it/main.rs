//! Volumes, their file systems and disks, as those above use them. Each suite is a module:
//! `cargo test -p oblivio-volume --test it sequential::`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]
#![allow(clippy::print_stdout, reason = "the outcome of a long run is its numbers")]

mod adding;
mod between;
mod common;
mod cost;
mod crash_campaign;
mod damage;
mod disk;
mod extents;
mod fixtures;
mod fs;
mod fs_model;
mod full_disk;
mod headers;
mod hostile;
mod limits;
mod outage;
mod padding;
mod quiet;
mod recorded;
mod records_ahead;
mod scrub;
mod sequential;
mod shown_again;
mod steps;
mod top_log;
mod traces;
mod volume;
mod windows;
