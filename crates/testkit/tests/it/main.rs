//! The testkit itself: what it says of other code must be true of it.
#![allow(clippy::disallowed_methods, reason = "tests")]

mod crash;
mod linear;
