//! The examples of docs/adding.md, and what everything that is added must do.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod engines;
mod linear;

/// An addition is small: docs/adding.md says so.
#[test]
fn the_examples_are_under_150_lines() {
    assert!(include_str!("linear.rs").lines().count() < 150);
}
