//! What figures share: how large they are, and a measurement.

use super::model::{Crowd, STASH};
use super::net::Setting;
use super::paper::Paper;
use super::shared::{Askers, Shared};
use super::work::{Served, Side, Uniform, rate};
use super::{model, paper};
use anyhow::Result;
use oblivio_engine::pyramid::PyramidConfig;
use oblivio_engine::pyramid::paper::PaperConfig;
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
