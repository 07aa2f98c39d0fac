//! What figures share: how large they are, and a measurement.

use super::model::{Crowd, STASH};
use super::net::Setting;
use super::paper::Paper;
use super::shared::{Askers, Shared};
use super::work::{Served, Side, Uniform, rate};
use super::{model, paper};
use anyhow::Result;
use oblivio_engine::pyramid::PyramidConfig;
use oblivio_lab::pyramid_paper::PaperConfig;
use oblivio_testkit::SplitMix64;

/// A full volume of the paper's construction, of `2^log_blocks` blocks.
///
/// # Errors
/// Those of the engine.
pub fn full_paper(log_blocks: u32, log: u64) -> Result<Paper> {
    full(paper::config(model::BLOCK, log_blocks, log)?)
}

/// A full volume of these numbers.
///
/// # Errors
/// Those of the engine.
pub fn full(config: PaperConfig) -> Result<Paper> {
    let schedule = &config.schedule;
    let (log, blocks) = (schedule.log(), schedule.items(schedule.bottom()));
    eprintln!("filling {blocks} blocks, {log} queries a period, the paper's construction");
    let mut side = Paper::new(config)?;
    side.fill()?;
    Ok(side)
}

/// The numbers of a small volume of the default construction: its stash is the share that 64 MiB
/// are of 4 GiB.
pub fn small_default(log_blocks: u32) -> PyramidConfig {
    PyramidConfig::new(model::BLOCK, 1 << log_blocks, STASH >> 20u32.saturating_sub(log_blocks))
}

/// A full volume of the default construction, of `2^log_blocks` blocks.
///
/// # Errors
/// Those of the engine.
pub fn full_default(log_blocks: u32, askers: Askers) -> Result<Shared> {
    eprintln!("filling 2^{log_blocks} blocks, the default construction");
    let mut side = Shared::new(small_default(log_blocks), askers)?;
    side.fill()?;
    Ok(side)
}

/// What was found of a side.
pub struct Found {
    /// Queries a second.
    pub rate: f64,
    /// Bytes on the line for each.
    pub bytes: f64,
    /// The queries.
    pub served: Vec<Served>,
}

impl Found {
    /// The median of seconds between asking and the answer.
    pub fn median(&self) -> f64 {
        let seconds: Vec<f64> = self.served.iter().map(Served::seconds).collect();
        crate::report::median(&seconds)
    }
}

/// Uniform reads and writes of `2^log_blocks` blocks by a crowd.
///
/// # Errors
/// Those of the engine.
pub fn measure(
    side: &mut dyn Side,
    log_blocks: u32,
    crowd: Crowd,
    setting: Setting,
    asks: usize,
) -> Result<Found> {
    side.arrange(crowd.clients, crowd.requests, setting)?;
    let seed = SplitMix64::new(u64::from(log_blocks) << 32 | crowd.lanes() as u64).next_u64();
    let mut work = Uniform::on(1 << log_blocks, seed);
    // Not the beginning, when all ask at once.
    side.run(&mut work, asks / 8)?;
    let before = side.carried();
    let served = side.run(&mut work, asks)?;
    let bytes = (side.carried() - before) as f64 / served.len() as f64;
    Ok(Found { rate: rate(&served), bytes, served })
}

#[cfg(test)]
mod tests {
    use super::model::Slots;
    use super::*;
    use oblivio_lab::pyramid_paper::Cost;

    /// The closed forms are near what is run, and a run gives the same numbers each time.
    #[test]
    fn runs_repeat_and_are_near_the_closed_forms() -> Result<()> {
        let (crowd, far) = (Crowd { clients: 2, requests: 2 }, Setting::far(20));
        let paper = || measure(&mut full_paper(6, 16)?, 6, crowd, far, 128);
        let cost = Cost::of(&paper::config(model::BLOCK, 6, 16)?).bytes_per_query() as f64;
        let (first, again) = (paper()?, paper()?);
        assert_eq!((first.rate, first.bytes), (again.rate, again.bytes));
        assert!((first.bytes / cost - 1.0).abs() < 0.1, "{} for {cost}", first.bytes);
        let default = || measure(&mut full_default(10, Askers::Followers)?, 10, crowd, far, 512);
        let config = small_default(10);
        let cost = Slots::of(&config).on_wire() * config.slot_bytes() as f64;
        let (first, again) = (default()?, default()?);
        assert_eq!((first.rate, first.bytes), (again.rate, again.bytes));
        assert!((first.bytes / cost - 1.0).abs() < 0.2, "{} for {cost}", first.bytes);
        Ok(())
    }

    /// A follower's ask takes three round trips and the scribe's wait for more; the scribe's own
    /// ask takes one.
    #[test]
    fn a_follower_waits_for_three_trips_and_the_scribe_for_one() -> Result<()> {
        for (askers, least, most) in [(Askers::Followers, 0.3, 0.33), (Askers::Scribe, 0.1, 0.12)] {
            let mut side = full_default(10, askers)?;
            let found = measure(&mut side, 10, Crowd::of(1), Setting::far(100), 64)?;
            let median = found.median();
            assert!((least..most).contains(&median), "{askers:?}: {median}");
        }
        Ok(())
    }
}
