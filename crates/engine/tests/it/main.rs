//! The engines: what they answer, what they show, what they find, and that their sizes hold.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests that may be asked for more, and say what they did"
)]

mod amortized;
mod cache;
mod damage;
mod engines;
mod model;
mod oblivious;
mod plain;
mod pyramid;
mod pyramid_bounds;
mod pyramid_crash;
mod pyramid_share;
mod pyramid_sim;
mod pyramid_workloads;
mod sequential;
mod sequential_beside;
mod sequential_bounds;
mod sequential_damage;
mod sequential_lane;
mod sequential_lost;
mod sequential_model;
mod sequential_run;
mod sequential_tamper;
mod share_audit;
mod shrink;
mod top_log;
mod window_runs;
mod windows;

use oblivio_testkit::campaign::{scaled, seed};
use proptest::prelude::ProptestConfig;
use std::ops::Range;

/// The seeds of a campaign: this many, times its scale.
fn seeds(usual: u64) -> Range<u64> {
    let first = seed(0);
    first..first + scaled(usual)
}

/// A property's configuration: this many cases, times the scale of the campaign.
fn cases(usual: u64) -> ProptestConfig {
    ProptestConfig::with_cases(u32::try_from(scaled(usual)).expect("a number of cases"))
}
