//! The library as its callers have it. Each module is a suite.
#![allow(clippy::disallowed_methods, reason = "tests run processes and wait for them")]

mod examples;
mod facade;
mod lanes;
mod readme;
#[cfg(feature = "share")]
mod shared;
#[cfg(feature = "online")]
mod takeovers;
mod trees;
