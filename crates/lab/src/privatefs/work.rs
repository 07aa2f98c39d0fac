//! What clients ask for, and what they saw.

use super::net::{Setting, Time};
use anyhow::Result;
use oblivio_testkit::SplitMix64;

/// An ask for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The block.
    pub block: u64,
    /// Whether it writes.
    pub writes: bool,
    /// Whose it is, to the [`Work`] that made it.
    pub tag: usize,
}

/// Asks in an order that answers may decide.
pub trait Work {
    /// The next ask; none if all, or all for now, were made.
    fn next(&mut self) -> Option<Wish>;
    /// An ask was answered.
    fn answered(&mut self, _: Wish) {}
    /// Whether all is asked and answered.
    fn is_over(&self) -> bool {
        false
    }
}

/// An ask and its times.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// When its client made it.
    pub began: Time,
    /// When its client had the answer.
    pub ended: Time,
}

impl Served {
    /// Seconds between.
    pub fn seconds(&self) -> f64 {
        self.ended.since(self.began)
    }
}

/// A construction with its clients, in virtual time.
pub trait Side {
    /// Asks until this many are answered, or the work is done. In the order of the answers.
    ///
    /// # Errors
    /// Those of the engine, and if an answer is not what was written.
    fn run(&mut self, work: &mut dyn Work, asks: usize) -> Result<Vec<Served>>;
    /// Ends all that is under way. From now on there are this many clients in this setting, each
    /// with this many asks at a time.
    ///
    /// # Errors
    /// Those of the engine.
    fn arrange(&mut self, clients: usize, requests: usize, setting: Setting) -> Result<()>;
    /// Bytes on the line since the last arrangement, of all parties.
    fn carried(&self) -> u64;
}

/// Asks a second between the first answer and the last.
pub fn rate(served: &[Served]) -> f64 {
    match served {
        [first, .., last] => (served.len() - 1) as f64 / last.ended.since(first.ended),
        _ => 0.0,
    }
}

/// Uniformly random asks, half of them writes, without end.
pub struct Uniform {
    rng: SplitMix64,
    blocks: u64,
}

impl Uniform {
    /// On this many blocks.
    pub fn on(blocks: u64, seed: u64) -> Self {
        Self { rng: SplitMix64::new(seed), blocks }
    }
}

impl Work for Uniform {
    fn next(&mut self) -> Option<Wish> {
        let block = self.rng.below(self.blocks);
        Some(Wish { block, writes: self.rng.next_u64() & 1 == 0, tag: 0 })
    }
}

/// Writes of blocks one after the other, and then of random ones.
pub struct Fill {
    next: u64,
    blocks: u64,
    rng: SplitMix64,
}

impl Fill {
    /// All of these blocks first.
    pub fn of(blocks: u64) -> Self {
        Self { next: 0, blocks, rng: SplitMix64::new(77) }
    }
}

impl Work for Fill {
    fn next(&mut self) -> Option<Wish> {
        let block = if self.next < self.blocks { self.next } else { self.rng.below(self.blocks) };
        self.next += 1;
        Some(Wish { block, writes: true, tag: 0 })
    }
}
