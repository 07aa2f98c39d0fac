//! A file system of several writers over blocks in memory.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod asks;
mod clients;
mod common;
mod deaths;
mod interleaved;
mod model;
mod races;
