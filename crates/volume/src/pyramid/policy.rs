//! When a commit is due, and how much may wait: public numbers in, a decision out.

use super::places::table_bytes;
use crate::{Error, Result};
use oblivio_engine::pyramid::{Height, PyramidConfig};

/// The smallest record of written bytes.
pub(super) const LEAST_SYNC: usize = 16 << 10;
/// The most asks in a round.
pub(super) const MOST_OPS: usize = 256;
/// The most blocks written, but not yet recorded or not yet carried out.
const MOST_WAITING: usize = 64;
/// And the most bytes of them.
const MOST_WAITING_BYTES: usize = 1 << 20;
/// The bytes of journal after which a commit is due are between these.
const LEAST_JOURNAL: u64 = 8 << 20;
const MOST_JOURNAL: u64 = 256 << 20;
/// Bytes of memory for each block: its place in the index and in a table, and in a state while that
/// is written.
const BYTES_PER_BLOCK: u64 = 240;

/// The asks from a commit to the next: those of a thirty-second of all blocks, so that the tables
/// that wait for the commit take less than a third of them. At least those of a turn of each
/// partition, at most eight.
pub(super) fn commit_asks(config: &PyramidConfig) -> u64 {
    let turn = 1 << config.log_stash;
    (config.blocks() / 32).clamp(turn, 8 * turn)
}

/// The bytes of journal after which a commit is due.
pub(super) fn commit_journal(state_bytes: u64) -> u64 {
    (2 * state_bytes).clamp(LEAST_JOURNAL, MOST_JOURNAL)
}

/// Whether too much waits.
pub(super) fn is_much(blocks: usize, bytes: usize, memory_bytes: usize) -> bool {
    blocks > MOST_WAITING || bytes > MOST_WAITING_BYTES.min(memory_bytes / 16)
}

/// The memory that an engine takes: the stash and its copy in a state, what is known of each block,
/// and the largest merge, read and sealed.
pub(super) fn memory(config: &PyramidConfig) -> u64 {
    let block = config.block_bytes as u64;
    let (stash, blocks) = (1u64 << config.log_stash, config.blocks());
    2 * stash * block + (blocks + stash) * BYTES_PER_BLOCK + 2 * table_bytes(config, Height::Base)
}

/// Refuses a budget that the engine does not fit in.
///
/// # Errors
/// `Invalid` says which one it needs.
pub(super) fn expect_memory(config: &PyramidConfig, memory_bytes: usize) -> Result<()> {
    let needed = memory(config);
    if needed <= memory_bytes as u64 {
        return Ok(());
    }
    let least = (needed / (1 << 20) + 1).next_power_of_two();
    let why = format!("this volume needs more memory; give it --memory {least}M or more");
    Err(Error::Invalid(why))
}

/// Bytes of all tables at most, with those that wait for a commit.
pub(super) fn most_bytes(config: &PyramidConfig) -> u64 {
    let partitions = u64::from(config.partitions());
    let turns = commit_asks(config) / u64::from(config.turn_asks()) + 1;
    let levels = (0..config.levels()).map(|level| (Height::Level(level), turns >> (level + 1)));
    let all = levels.chain([(Height::Base, turns >> config.levels())]);
    all.map(|(height, made)| (partitions + made + 1) * table_bytes(config, height)).sum()
}

/// Bytes that an ask reads and writes on the average, merges included, once all tables are there.
pub(super) fn bytes_per_ask(config: &PyramidConfig) -> (u64, u64) {
    let (levels, turn) = (config.levels(), u64::from(config.turn_asks()));
    let above = |height: u32| -> u64 {
        (0..height).map(|level| u64::from(config.capacity(Height::Level(level)))).sum()
    };
    let slots = |height| u64::from(config.slots(height));
    // In slots, over the turns of a base.
    let made = (0..levels).map(|level| (1u64 << (levels - 1 - level), level));
    let written: u64 = made.clone().map(|(times, level)| times * slots(Height::Level(level))).sum();
    let merged: u64 = made.map(|(times, level)| times * above(level)).sum();
    let written = written + slots(Height::Base);
    let merged = merged + above(levels) + u64::from(config.capacity(Height::Base));
    let (asks, slot) = (turn << levels, config.slot_bytes() as u64);
    // A level lives half of the time.
    let online = slot + slot * u64::from(levels) / 2;
    (online + merged * slot / asks, written * slot / asks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_far_apart_in_large_volumes_only() {
        let small = PyramidConfig::new(4096, 1 << 10, 1 << 20);
        assert_eq!((small.log_stash, commit_asks(&small)), (8, 256));
        let large = PyramidConfig::new(4096, 1 << 20, 64 << 20);
        assert_eq!((large.log_stash, commit_asks(&large)), (14, 1 << 15));
        // With the tables of a commit's asks, less than three times the blocks and a half.
        assert!(most_bytes(&large) < (7 << 32) / 2, "{}", most_bytes(&large));
    }

    /// docs/benchmarks.md has measured ones.
    #[test]
    fn an_ask_costs_what_the_design_says() {
        let (read, written) = bytes_per_ask(&PyramidConfig::new(4096, 1 << 20, 64 << 20));
        assert!((7..10).contains(&(read >> 12)), "{read}");
        assert!((9..12).contains(&(written >> 12)), "{written}");
    }

    #[test]
    fn what_waits_is_bounded_by_the_budget() {
        assert!(!is_much(64, 1 << 20, 64 << 20) && is_much(65, 0, 64 << 20));
        assert!(is_much(1, (1 << 16) + 1, 1 << 20));
    }

    #[test]
    fn a_budget_that_is_too_small_is_refused() {
        let config = PyramidConfig::new(4096, 1 << 20, 64 << 20);
        let refused = expect_memory(&config, 64 << 20).expect_err("too little");
        assert!(refused.to_string().contains("--memory 512M"), "{refused}");
        expect_memory(&config, 512 << 20).expect("enough");
    }
}
