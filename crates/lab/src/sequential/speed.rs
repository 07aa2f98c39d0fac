//! The engine over plain memory: the limit set by its own work, whatever the disk.

use crate::clock::CpuClock;
use crate::report::{Report, Table, bytes, count};
use anyhow::Result;
use oblivio_engine::BlockId;
use oblivio_engine::sequential::memory::MemoryDisk;
use oblivio_engine::sequential::{Sequential, SequentialConfig, SequentialKeys};
use oblivio_testkit::SplitMix64;

const BLOCK: usize = 4096;

/// How much to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// MiB of the volume
    #[arg(long, default_value_t = 1024)]
    data_mib: u64,
    /// Seconds to measure each number
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

/// Runs it.
///
/// # Errors
/// Those of the engine and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::on("sequential.md", "speed", "The engine over plain memory");
    report.text(&format!(
        "A volume of {} in memory, every level in use, blocks of 4 KiB. Processor time of one \
         thread: sealing, merging and copying, no disk. Reads take 64 blocks at a time.",
        bytes(args.data_mib << 20)
    ));
    let mut table = Table::new([
        "fan-out",
        "queue",
        "written / byte",
        "sequential write MB/s",
        "random write MB/s",
        "sequential read MB/s",
        "random read MB/s",
    ]);
    let base = SequentialConfig::new(BLOCK, args.data_mib << 8);
    for fan_out in [2, 4, 8, 16] {
        for queue_buckets in [1, base.queue_buckets] {
            let config = SequentialConfig { fan_out, queue_buckets, ..base };
            let row = measure(config, args.seconds)?;
            eprintln!("{}", row.join(" | "));
            table.row(row);
        }
    }
    report.table(&table);
    report.finish(write)
}

/// An engine, its disk and its position in the volume.
struct Volume {
    engine: Sequential,
    disk: MemoryDisk,
    rng: SplitMix64,
    next: u64,
}

impl Volume {
    fn block(&mut self, random: bool) -> BlockId {
        let blocks = self.engine.config().blocks;
        self.next = if random { self.rng.below(blocks) } else { (self.next + 1) % blocks };
        BlockId(self.next)
    }

    fn write(&mut self, random: bool) -> Result<()> {
        let block = self.block(random);
        self.disk.write(&mut self.engine, block, Some(vec![block.0 as u8; BLOCK]))?;
        Ok(())
    }

    fn read(&mut self, random: bool) -> Result<()> {
        let blocks = (0..64).map(|_| self.block(random)).collect();
        self.disk.read(&mut self.engine, blocks)?;
        Ok(())
    }

    /// Megabytes a second of work that moves `blocks` blocks at a time.
    fn rate(
        &mut self,
        seconds: f64,
        blocks: u64,
        mut work: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<String> {
        let (begun, mut done) = (CpuClock::start(), 0);
        while begun.seconds() < seconds {
            for _ in 0..(1024 / blocks) {
                work(self)?;
                done += blocks;
            }
        }
        self.disk.trace.clear();
        Ok(count((done * BLOCK as u64) as f64 / begun.seconds() / 1e6))
    }
}

fn measure(config: SequentialConfig, seconds: f64) -> Result<Vec<String>> {
    let engine = Sequential::new(config, SequentialKeys::from_seed(1, 1))?;
    let disk = MemoryDisk::new(&engine);
    let written = engine.layout().cost().written;
    let mut volume = Volume { engine, disk, rng: SplitMix64::new(1), next: 0 };
    // Every block once, in another order, and then until the last level is in use.
    for _ in 0..3 * config.blocks {
        volume.write(true)?;
        if volume.disk.trace.len() > 1 << 16 {
            volume.disk.trace.clear();
        }
    }
    Ok(vec![
        config.fan_outs().iter().map(u64::to_string).collect::<Vec<_>>().join(" x "),
        bytes(config.queue_blocks() * BLOCK as u64),
        format!("{written:.2}"),
        volume.rate(seconds, 1, |volume| volume.write(false))?,
        volume.rate(seconds, 1, |volume| volume.write(true))?,
        volume.rate(seconds, 64, |volume| volume.read(false))?,
        volume.rate(seconds, 64, |volume| volume.read(true))?,
    ])
}
