//! Many clients that ask at the same time, each from several threads.

use super::place::{ask, content};
use anyhow::{Result, ensure};
use oblivio_client::Client;
use oblivio_testkit::SplitMix64;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The stack of a thread that asks.
const STACK: usize = 256 << 10;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Requests that each client has under way.
    pub requests: usize,
    /// Blocks that exist.
    pub blocks: u64,
}

/// When answers came, and how long each took.
pub type Answers = Vec<(Instant, Duration)>;

/// How long answers took, in order of length.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// Those of the answers that came in a time.
    pub fn within(answers: &Answers, time: RangeInclusive<Instant>) -> Self {
        let within = answers.iter().filter(|(came, _)| time.contains(came));
        let mut all: Vec<Duration> = within.map(|(_, took)| *took).collect();
        all.sort_unstable();
        Self(all)
    }

    /// How many answers there were.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The latency that this share of all answers did not exceed.
    pub fn at(&self, share: f64) -> Duration {
        let at = (self.0.len() as f64 * share) as usize;
        self.0.get(at.min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    /// In milliseconds, for a table.
    pub fn millis(&self, share: f64) -> String {
        format!("{:.0}", self.at(share).as_secs_f64() * 1e3)
    }
}

/// Lets all clients ask for blocks at random, half reads and half writes. They stop
/// when `measure` is done; all answers are given.
///
/// # Errors
/// Those of the clients; a block that is not what it was.
pub fn run<T>(
    clients: &[Client],
    load: Load,
    measure: impl FnOnce() -> Result<T>,
) -> Result<(T, Answers)> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..clients.len() * load.requests {
            let (client, stop) = (&clients[number / load.requests], &stop);
            let lane = thread::Builder::new().name("lane".into()).stack_size(STACK);
            let asking = move || lane_of(client, load.blocks, number as u64, stop);
            threads.push(lane.spawn_scoped(scope, asking)?);
        }
        let measured = measure();
        stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??);
        }
        Ok((measured?, all))
    })
}

/// One request after the other.
fn lane_of(client: &Client, blocks: u64, seed: u64, stop: &AtomicBool) -> Result<Answers> {
    let (mut random, mut served) = (SplitMix64::new(seed), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let (block, writes) = (random.below(blocks), random.below(2) == 0);
        let begin = Instant::now();
        let answers = client.carry_out(&[ask(block, writes)])?;
        let came = Instant::now();
        let found = answers.first().and_then(|answer| answer.content.as_deref());
        ensure!(found == Some(&content(block)), "block {block} is not what it was");
        served.push((came, came - begin));
    }
    Ok(served)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_count_when_they_come_in_the_time() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        let answers = (0..10).map(|at| (begin + ms(at), ms(100 - at))).collect();
        let found = Latencies::within(&answers, begin + ms(2)..=begin + ms(4));
        assert_eq!(found.0, [ms(96), ms(97), ms(98)]);
    }

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let all = Latencies((1..=100).map(Duration::from_millis).collect());
        assert_eq!(all.count(), 100);
        assert_eq!((all.millis(0.5), all.millis(0.99)), ("51".into(), "100".into()));
        assert_eq!(all.at(1.0), Duration::from_millis(100));
        assert_eq!(Latencies::default().at(0.5), Duration::ZERO);
    }
}
