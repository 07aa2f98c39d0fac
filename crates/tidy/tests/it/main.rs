//! What is planted is found, and this repository is in order.
#![allow(clippy::unwrap_used, reason = "tests")]

mod planted;
mod repository;
