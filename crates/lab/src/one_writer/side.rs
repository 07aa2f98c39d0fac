//! One engine in a process of its own, so that its memory is known: the parent says when it works.
//!
//! A line of the parent's is `seconds batch seed`; the answer is a [`Round`] in one line.

use super::counted::{Counted, Passed};
use crate::clock::CpuClock;
use crate::defaults;
use crate::engines::Engine;
use anyhow::{Context, Result, ensure};
use oblivio_engine::BlockOp;
use oblivio_testkit::SplitMix64;
use oblivio_volume::{BlockSpace, Volume};
use std::io::{BufRead, Write};
use std::sync::Arc;

/// The volume of a side.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Args {
    /// The engine
    #[arg(long)]
    pub engine: Engine,
    /// Blocks
    #[arg(long)]
    pub blocks: u64,
    /// Bytes of a block
    #[arg(long)]
    pub block_bytes: usize,
    /// The budget, in bytes
    #[arg(long)]
    pub memory_bytes: usize,
}

/// Accesses between syncs.
pub const SYNC_EVERY: u64 = 64;

/// What a round found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Round {
    /// Block operations.
    pub accesses: u64,
    /// Processor time.
    pub seconds: f64,
    /// The longest time of one batch, with its share of merges and commits.
    pub longest: f64,
    /// What passed.
    pub passed: Passed,
    /// Bytes stored at its end.
    pub stored: u64,
    /// The most memory so far, without the store's.
    pub memory: u64,
}

impl Round {
    /// In one line.
    pub fn told(&self) -> String {
        let Passed { calls, down, up } = self.passed;
        let Round { accesses, seconds, longest, stored, memory, .. } = self;
        format!("{accesses} {seconds} {longest} {calls} {down} {up} {stored} {memory}")
    }

    /// From its line.
    ///
    /// # Errors
    /// It is another line.
    pub fn heard(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [accesses, seconds, longest, calls, down, up, stored, memory] = words[..] else {
            anyhow::bail!("this is no round: {line:?}");
        };
        Ok(Self {
            accesses: accesses.parse()?,
            seconds: seconds.parse()?,
            longest: longest.parse()?,
            passed: Passed { calls: calls.parse()?, down: down.parse()?, up: up.parse()? },
            stored: stored.parse()?,
            memory: memory.parse()?,
        })
    }
}

/// A volume at work.
pub struct Side {
    store: Arc<Counted>,
    volume: Volume,
    blocks: u64,
    since_sync: u64,
}

impl Side {
    /// Makes a volume, writes all its blocks, and makes as many random accesses: its store has
    /// its final size.
    ///
    /// # Errors
    /// Those of the volume.
    pub fn prepare(args: &Args) -> Result<Self> {
        let Args { engine, blocks, block_bytes, memory_bytes } = *args;
        let store = Arc::new(Counted::default());
        let capacity = blocks * block_bytes as u64;
        let mut volume = engine.create(store.clone(), block_bytes, capacity, memory_bytes)?;
        volume.reserve(blocks)?;
        let mut side = Self { store, volume, blocks, since_sync: 0 };
        let mut rng = SplitMix64::new(77);
        for first in (0..2 * blocks).step_by(64) {
            let id = |at: u64| if at < blocks { at } else { rng.below(blocks) };
            let accesses = (first..first + 64).map(id).map(|id| (id, true)).collect();
            side.serve(accesses)?;
        }
        Ok(side)
    }

    /// Serves accesses, the reads of a batch before its writes, and syncs now and then.
    fn serve(&mut self, mut accesses: Vec<(u64, bool)>) -> Result<()> {
        accesses.sort_by_key(|&(_, write)| write);
        let block_bytes = self.volume.block_bytes();
        let op = |&(id, write): &(u64, bool)| -> BlockOp {
            if write { defaults::write(id, block_bytes) } else { defaults::read(id) }
        };
        let answers = self.volume.access(accesses.iter().map(op).collect())?;
        for (answer, (id, write)) in answers.iter().zip(&accesses) {
            let right = answer.as_ref().is_some_and(|bytes| bytes.last() == Some(&(*id as u8)));
            ensure!(*write || right, "block {id} is not what it was");
        }
        self.since_sync += accesses.len() as u64;
        if self.since_sync >= SYNC_EVERY {
            self.since_sync = 0;
            self.volume.commit()?;
        }
        Ok(())
    }

    /// Uniformly random reads and writes, half and half, for this much processor time.
    ///
    /// # Errors
    /// Those of the volume.
    pub fn round(&mut self, seconds: f64, batch: usize, seed: u64) -> Result<Round> {
        let (mut rng, blocks) = (SplitMix64::new(seed), self.blocks);
        let before = self.store.passed();
        let (clock, mut round) = (CpuClock::start(), Round::default());
        while round.seconds < seconds {
            let any = (0..batch).map(|_| (rng.below(blocks), rng.next_u64() & 1 == 0));
            self.serve(any.collect())?;
            let now = clock.seconds();
            round.longest = round.longest.max(now - round.seconds);
            round.seconds = now;
            round.accesses += batch as u64;
        }
        let after = self.store.passed();
        round.passed = Passed {
            calls: after.calls - before.calls,
            down: after.down - before.down,
            up: after.up - before.up,
        };
        (round.stored, round.memory) = (self.store.stored(), self.store.memory());
        Ok(round)
    }
}

/// Works as the parent says.
///
/// # Errors
/// Those of the volume; a line that is none of the parent's.
pub fn run(args: &Args) -> Result<()> {
    let mut side = Side::prepare(args)?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split(' ');
        let mut next = || words.next().context("seconds batch seed");
        let round = side.round(next()?.parse()?, next()?.parse()?, next()?.parse()?)?;
        println!("{}", round.told());
        std::io::stdout().flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_engines_do_the_same_work() -> Result<()> {
        for engine in Engine::BOTH {
            let args = Args { engine, blocks: 512, block_bytes: 512, memory_bytes: 8 << 20 };
            let mut side = Side::prepare(&args)?;
            let round = side.round(0.02, 8, 1)?;
            assert!(round.accesses >= 8 && side.store.passed().up > 0, "{engine:?}: {round:?}");
            assert!(round.stored > 512 * 512 && round.memory > 0, "{engine:?}: {round:?}");
            assert_eq!(Round::heard(&round.told())?, round);
        }
        assert!(Round::heard("ready").is_err());
        Ok(())
    }
}
