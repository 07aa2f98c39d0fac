//! How much of a campaign runs, and from which seed: two variables for all of them.
//!
//! A test names the number that `cargo test` runs. `OBLIVIO_SCALE` multiplies every such number
//! (`OBLIVIO_SCALE=100` for a night, `0.1` for a look), and `OBLIVIO_SEED` is where its seeds
//! begin, so the seed that a failure names plays again.
#![allow(clippy::disallowed_methods, reason = "tests are told by their environment")]

use std::str::FromStr;

/// `usual` rounds, cases or seeds, times `OBLIVIO_SCALE`: at least one.
#[must_use]
pub fn scaled(usual: u64) -> u64 {
    ((usual as f64 * scale()).round() as u64).max(1)
}

/// [`scaled`] for lengths and indices.
///
/// # Panics
/// When the machine cannot count that far.
#[must_use]
pub fn scaled_len(usual: usize) -> usize {
    usize::try_from(scaled(usual as u64)).expect("a count of this machine")
}

/// One of this many is tried: `usual` divided by `OBLIVIO_SCALE`, at least one, which is each.
#[must_use]
pub fn every(usual: usize) -> usize {
    ((usual as f64 / scale()).round() as usize).max(1)
}

/// The first seed: `OBLIVIO_SEED`, or else `usual`.
#[must_use]
pub fn seed(usual: u64) -> u64 {
    variable("OBLIVIO_SEED").unwrap_or(usual)
}

/// Whether a campaign is asked for `times` its usual size at least.
#[must_use]
pub fn at_least(times: f64) -> bool {
    scale() >= times
}

fn scale() -> f64 {
    let scale = variable("OBLIVIO_SCALE").unwrap_or(1.0);
    assert!(scale > 0.0, "OBLIVIO_SCALE is more than 0");
    scale
}

/// What a variable says; nothing where it is not set.
fn variable<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}
