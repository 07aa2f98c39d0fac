//! What a service really does, found out before anything is entrusted to it.
//!
//! Headers and documents promise much: of four WebDAV servers that accept a condition on a put,
//! three let two clients win. So nothing is believed that was not raced. The outcome is plain
//! data, with a sentence for each part.

mod trials;
mod verdict;

use oblivio_store::Result;
use std::time::Duration;
pub use verdict::{Begin, Connect, Effort, LostCounts, ProbeVerdict, Race, Speed, Torn};

/// Tries a service out, under names that begin with `probe-`, the tag (sixteen hex digits) and a
/// dash. It removes them again, and what a trial left that was killed: one that is at work at the
/// same place finds that objects are lost. `clock` tells the time since any moment.
///
/// # Errors
/// When a request fails for another reason than what is tried.
pub fn probe(
    connect: Connect<'_>,
    effort: Effort,
    tag: &str,
    clock: &dyn Fn() -> Duration,
) -> Result<ProbeVerdict> {
    let trials = trials::Trials::new(connect, effort, tag)?;
    let found = trials.run(clock);
    let cleaned = trials.clean();
    let verdict = found?;
    cleaned.map(|()| verdict)
}

#[cfg(test)]
mod tests;
