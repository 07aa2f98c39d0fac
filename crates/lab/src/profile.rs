//! Where the engine's time goes: cipher and unavoidable copies, or bookkeeping.

use crate::buckets::{LabBuckets, Steps};
use crate::clock::CpuClock;
use crate::defaults::{self, volume_config};
use crate::growth::fill;
use crate::report::{Report, Table, bytes, count, median};
use anyhow::{Context, Result};
use oblivio_crypto::{Kind, Place, SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_engine::tree::{TreeKeys, TreeOram};
use oblivio_engine::{Carrier, Data, Read, SealedBucket, Write, carry_out};
use oblivio_testkit::SplitMix64;

/// What to profile.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Bytes in a block
    #[arg(long, default_value_t = 4096)]
    block_bytes: usize,
    /// Logarithms of the numbers of blocks
    #[arg(long, value_delimiter = ',', default_value = "16,18")]
    log_blocks: Vec<u32>,
    /// Accesses to measure in each round
    #[arg(long, default_value_t = 16_384)]
    accesses: usize,
    /// Rounds; the table shows the median
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only run the engine loop for this many seconds, for a sampling profiler
    #[arg(long)]
    loop_seconds: Option<f64>,
}

/// Accesses between flushes.
const FLUSH_EVERY: usize = 1024;

/// Runs the experiment.
///
/// # Errors
/// Those of the engine and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    if let Some(seconds) = args.loop_seconds {
        return only_loop(args, seconds);
    }
    let mut report = Report::new("profile", "Where the engine's time goes");
    report.text(&format!(
        "Blocks of {}; the engine as a volume makes it, over buckets in plain memory. One random \
         access per batch; everything is flushed and a delta of the state made every 1,024 \
         accesses. The trace of bucket reads and writes is replayed without an engine, on buckets \
         of the same size in the same places. The first replay only copies every bucket read from \
         the store and written to it. The second opens and seals them as well. The third also \
         fills what is written from memory. What each step adds is its time. The rest is the \
         engine's own: maps, stash, placing, tags. Times are processor time per access.",
        bytes(args.block_bytes as u64)
    ));
    let mut table = Table::new([
        "blocks",
        "buckets read",
        "written",
        "engine",
        "store copies",
        "cipher",
        "payload copies",
        "the rest",
        "cipher and copies",
    ]);
    for &log_blocks in &args.log_blocks {
        table.row(profile(args, 1 << log_blocks)?);
    }
    report.table(&table);
    report.finish(write)
}

fn profile(args: &Args, blocks: u64) -> Result<Vec<String>> {
    let config = volume_config(args.block_bytes, blocks);
    let mut engine = TreeOram::new(config, blocks, TreeKeys::from_seed(1))?;
    let mut store = LabBuckets::new();
    fill(&mut engine, &mut store, blocks)?;
    let mut rng = SplitMix64::new(5);
    // Every cached bucket is in memory before the count begins.
    serve(args, &mut engine, &mut store, &mut rng, 2 * args.accesses)?;
    let mut totals = Vec::new();
    for _ in 0..args.rounds {
        let clock = CpuClock::start();
        serve(args, &mut engine, &mut store, &mut rng, args.accesses)?;
        totals.push(clock.seconds() / args.accesses as f64);
    }
    store.keep_steps();
    serve(args, &mut engine, &mut store, &mut rng, args.accesses)?;
    let stride = engine.bucket_bytes();
    let mut steps = store.take_steps();
    // The replay's buckets all have the full length.
    steps.iter_mut().flat_map(|step| &mut step.0).for_each(|extent| extent.bytes = stride as u64);
    drop((engine, store));
    let mut replay = Replay::new(&steps, stride, args.block_bytes, config.blocks_per_bucket)?;
    let mut passes = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..args.rounds {
        for (pass, times) in passes.iter_mut().enumerate() {
            let clock = CpuClock::start();
            replay.run(&steps, pass)?;
            times.push(clock.seconds() / args.accesses as f64);
        }
    }
    let [copy, cipher, all] = passes.map(|times| median(&times));
    let total = median(&totals);
    let micros = |seconds: f64| format!("{:.2} µs", seconds * 1e6);
    let share = |seconds: f64| format!("{} ({:.0} %)", micros(seconds), 100.0 * seconds / total);
    let per_access = |written: bool| {
        let of = steps.iter().filter(|step| step.1 == written).map(|step| step.0.len());
        format!("{:.2}", of.sum::<usize>() as f64 / args.accesses as f64)
    };
    Ok(vec![
        format!("2^{}", blocks.ilog2()),
        per_access(false),
        per_access(true),
        format!("{} ({}/s)", micros(total), count(1.0 / total)),
        share(copy),
        share(cipher - copy),
        share(all - cipher),
        share(total - all),
        format!("{:.0} %", 100.0 * all / total),
    ])
}

fn serve(
    args: &Args,
    engine: &mut TreeOram,
    store: &mut LabBuckets,
    rng: &mut SplitMix64,
    accesses: usize,
) -> Result<()> {
    let blocks = engine.capacity();
    let mut delta = Vec::new();
    for access in 1..=accesses {
        let id = rng.below(blocks);
        let write = rng.next_u64() & 1 == 0;
        let op = if write { defaults::write(id, args.block_bytes) } else { defaults::read(id) };
        store.access(engine, vec![op])?;
        if access % FLUSH_EVERY == 0 {
            let mut flush = engine.begin_flush()?;
            carry_out(&mut flush, engine, store)?;
            // Like a commit, without its sealing.
            delta.clear();
            engine.delta(&mut delta);
            engine.committed();
            std::hint::black_box(&delta);
        }
    }
    Ok(())
}

/// The same buckets without an engine.
struct Replay {
    sealer: Sealer,
    store: LabBuckets,
    read: Vec<u8>,
    written: Vec<SealedBucket>,
    /// Payloads as they lie in memory before a write: some hot, most not.
    payloads: Vec<u8>,
    next_payload: usize,
    stride: usize,
    block_bytes: usize,
    slots: usize,
}

impl Replay {
    fn new(steps: &Steps, stride: usize, block_bytes: usize, slots: usize) -> Result<Self> {
        let most = steps.iter().map(|step| step.0.len()).max().unwrap_or(0);
        let entropy = Box::new(SeededEntropy::new(2));
        let mut replay = Self {
            sealer: Sealer::new(SealRoot::from_seed(2), entropy),
            store: LabBuckets::new(),
            read: vec![0; most * stride],
            written: (0..most).map(|_| SealedBucket::new(vec![0; stride])).collect(),
            payloads: vec![1; 64 << 20],
            next_payload: 0,
            stride,
            block_bytes,
            slots,
        };
        replay.seal(most)?;
        let mut known = std::collections::BTreeSet::new();
        known.extend(steps.iter().flat_map(|step| step.0.iter().copied()));
        for extent in known {
            let (extents, data) = (&[extent][..], Data::Apart(&replay.written[..1]));
            replay.store.write(Write { extents, data })?;
        }
        Ok(replay)
    }

    /// Replays a run: pass 0 copies to and from the store, 1 also seals and opens, 2 also fills
    /// payloads.
    fn run(&mut self, steps: &Steps, pass: usize) -> Result<()> {
        for (extents, written) in steps {
            let count = extents.len();
            if *written {
                if pass == 2 {
                    self.fill(count);
                }
                if pass >= 1 {
                    self.seal(count)?;
                }
                let data = Data::Apart(&self.written[..count]);
                self.store.write(Write { extents, data })?;
            } else {
                let into = &mut self.read[..count * self.stride];
                let read = Read { extents, into, shown: &[], scheduled: 0 };
                self.store.read(read)?;
                if pass >= 1 {
                    for part in self.read[..count * self.stride].chunks_mut(self.stride) {
                        self.sealer.open(&ANYWHERE, part).context("what was sealed")?;
                    }
                }
            }
        }
        Ok(())
    }

    fn seal(&mut self, buckets: usize) -> Result<()> {
        for bucket in &mut self.written[..buckets] {
            self.sealer.seal(&ANYWHERE, SealedBucket::make_mut(bucket))?;
        }
        Ok(())
    }

    fn fill(&mut self, buckets: usize) {
        for bucket in &mut self.written[..buckets] {
            let bucket = SealedBucket::make_mut(bucket);
            let end = self.stride - 16;
            for slot in 0..self.slots {
                // Half of the slots are full; the others are wiped.
                let at = end - (slot + 1) * self.block_bytes;
                let to = &mut bucket[at..at + self.block_bytes];
                if slot % 2 == 0 {
                    let from = self.next_payload;
                    to.copy_from_slice(&self.payloads[from..from + self.block_bytes]);
                    self.next_payload = (from + 5 * self.block_bytes) % (self.payloads.len() / 2);
                } else {
                    to.fill(0);
                }
            }
        }
    }
}

/// One place for all: bytes from the copying pass then open in the next.
const ANYWHERE: Place =
    Place { volume: VolumeId([7; 16]), kind: Kind::Bucket, index: 1, version: 0 };

fn only_loop(args: &Args, seconds: f64) -> Result<()> {
    let blocks = 1u64 << args.log_blocks[0];
    let config = volume_config(args.block_bytes, blocks);
    let mut engine = TreeOram::new(config, blocks, TreeKeys::from_seed(1))?;
    let mut store = LabBuckets::new();
    fill(&mut engine, &mut store, blocks)?;
    let mut rng = SplitMix64::new(5);
    let clock = CpuClock::start();
    let mut accesses = 0;
    while clock.seconds() < seconds {
        serve(args, &mut engine, &mut store, &mut rng, FLUSH_EVERY)?;
        accesses += FLUSH_EVERY;
    }
    println!("{} accesses/s", count(accesses as f64 / clock.seconds()));
    Ok(())
}
