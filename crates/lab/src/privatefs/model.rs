//! Both constructions in closed form: bytes of a query, and the rate that line, disk and round
//! trips allow. For sizes that cannot be run; the figures compare it with what is run.

use super::net::Setting;
use super::paper;
use anyhow::Result;
use oblivio_engine::pyramid::{Height, PyramidConfig};
use oblivio_lab::pyramid_paper::{Cost, PaperConfig};

/// Bytes of a block, as in the paper.
pub const BLOCK: usize = 4096;
/// Memory of a client for its stash: 64 MiB.
pub const STASH: usize = 64 << 20;
/// Requests of the end of a period, one after the other.
const END_TRIPS: u64 = 5;
/// Objects of about a slot's size for each ask that are no merge's: it goes to the server and on
/// to the scribe, its sum comes back, its record stays, its answer goes to the server and on.
const ONLINE_SLOTS: f64 = 6.0;

/// Who asks, and how much at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// Clients.
    pub clients: usize,
    /// Asks that each has under way.
    pub requests: usize,
}

impl Crowd {
    /// Clients with one ask at a time.
    pub fn of(clients: usize) -> Self {
        Self { clients, requests: 1 }
    }

    /// Asks under way in all.
    pub fn lanes(self) -> usize {
        self.clients * self.requests
    }
}

/// Round trips of a query of the paper's construction: `log2(n/c) + 4`.
pub fn paper_trips(config: &PaperConfig) -> u64 {
    u64::from(config.schedule.height_count()) + 3
}

/// The rate of the paper's construction, in queries a second.
///
/// Each period has `c` queries, the lanes take them in waves, and the top is made at its end.
pub fn paper_rate(config: &PaperConfig, crowd: Crowd, setting: Setting) -> f64 {
    let (log, bytes) = (config.schedule.log(), Cost::of(config).bytes_per_query() as f64);
    let trips = log.div_ceil(crowd.lanes() as u64) * paper_trips(config) + END_TRIPS;
    let seconds = (trips * setting.rtt_ms) as f64 / 1e3;
    let by_time = if seconds > 0.0 { log as f64 / seconds } else { f64::INFINITY };
    let by_disk = setting.disk.map_or(f64::INFINITY, |rate| rate as f64 / bytes);
    by_time.min(setting.line as f64 / bytes).min(by_disk)
}

/// What an ask of the default construction costs on average, in slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slots {
    /// Read by merges.
    pub merged: f64,
    /// Written by merges.
    pub made: f64,
    /// Read by the ask itself: tables of a partition.
    pub shown: f64,
}

impl Slots {
    /// The averages over a cycle of all bases of a full volume.
    pub fn of(config: &PyramidConfig) -> Self {
        let (mut live, mut merged, mut made, mut shown) = (vec![Height::Base], 0u64, 0u64, 0u64);
        let partitions = u64::from(config.partitions());
        let turns = 1u64 << config.levels();
        // Two cycles: the first leaves the tables that the second finds.
        for turn in 0..2 * turns {
            // The turns of partition 0.
            let height = config.turn(turn * partitions).height;
            let goes = |table: &Height| match (height, table) {
                (Height::Base, _) => true,
                (Height::Level(new), Height::Level(old)) => *old < new,
                (Height::Level(_), Height::Base) => false,
            };
            let gone: u64 =
                live.iter().filter(|it| goes(it)).map(|it| u64::from(config.capacity(*it))).sum();
            live.retain(|table| !goes(table));
            live.push(height);
            if turn >= turns {
                merged += gone;
                made += u64::from(config.slots(height));
                shown += live.len() as u64;
            }
        }
        let asks = (turns * u64::from(config.turn_asks())) as f64;
        let turns = turns as f64;
        Self { merged: merged as f64 / asks, made: made as f64 / asks, shown: shown as f64 / turns }
    }

    /// On the wire, of all parties.
    pub fn on_wire(&self) -> f64 {
        self.merged + self.made + ONLINE_SLOTS
    }

    /// On the server's disk: it also stores the ask, and what it leaves.
    pub fn on_disk(&self) -> f64 {
        self.merged + self.made + self.shown + 2.0
    }
}

/// The default construction's numbers for a volume.
pub fn default_config(log_blocks: u32) -> PyramidConfig {
    PyramidConfig::new(BLOCK, 1 << log_blocks, STASH)
}

/// The rate of the default construction for followers: three round trips, and half the time that
/// the scribe waits for more asks.
pub fn default_rate(config: &PyramidConfig, crowd: Crowd, setting: Setting) -> f64 {
    let (slots, slot) = (Slots::of(config), config.slot_bytes() as f64);
    let seconds = 3.0 * setting.rtt_ms as f64 / 1e3 + 0.004;
    let by_time = crowd.lanes() as f64 / seconds;
    let by_disk = setting.disk.map_or(f64::INFINITY, |rate| rate as f64 / (slots.on_disk() * slot));
    by_time.min(setting.line as f64 / (slots.on_wire() * slot)).min(by_disk)
}

/// The paper's construction for a volume of this many blocks, as the figures use it: 16 queries a
/// period.
///
/// # Errors
/// Those of the engine.
pub fn paper_config(log_blocks: u32) -> Result<PaperConfig> {
    paper::config(BLOCK, log_blocks, 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The design says 5.1 and 9.4 slots, and 3.5 tables, at 2^20 blocks with a stash of 2^14.
    #[test]
    fn the_designs_slots() {
        let slots = Slots::of(&default_config(20));
        assert!((slots.merged - 5.1).abs() < 0.5, "{slots:?}");
        assert!((slots.made - 9.4).abs() < 1.2, "{slots:?}");
        assert!((slots.shown - 3.5).abs() < 0.1, "{slots:?}");
    }

    #[test]
    fn a_far_client_is_bound_by_its_trips() -> Result<()> {
        let config = paper_config(12)?;
        assert_eq!(paper_trips(&config), 12);
        let rate = paper_rate(&config, Crowd::of(1), Setting::far(50));
        assert!((rate - 16.0 / (0.05 * 197.0)).abs() < 1e-9);
        Ok(())
    }
}
