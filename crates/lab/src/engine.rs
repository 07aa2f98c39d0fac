//! The engine as a volume runs it, beside other ORAM libraries.

use crate::clock::CpuClock;
use crate::contender::{Contender, Entry};
use crate::defaults;
use crate::report::{Report, Table, bytes, count, median};
use anyhow::{Result, ensure};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::BlockOp;
use oblivio_store::MemoryStore;
use oblivio_testkit::SplitMix64;
use oblivio_volume::block::BlockSpace;
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use std::sync::Arc;

/// What to compare.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Block sizes in bytes; supported: 64 and 4096
    #[arg(long, value_delimiter = ',', default_value = "4096,64")]
    block_bytes: Vec<usize>,
    /// Logarithms of the numbers of blocks
    #[arg(long, value_delimiter = ',', default_value = "16,20")]
    log_blocks: Vec<u32>,
    /// Rounds; the table shows the median
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds for each line in each round; long enough for several full commits
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Limit of the seconds to fill a rival; it does the same work whether full or not
    #[arg(long, default_value_t = 20.0)]
    fill_seconds: f64,
    /// MiB of memory to leave free; a case that would not fit is measured at a smaller size
    #[arg(long, default_value_t = 1024)]
    spare_mib: u64,
}

fn entries() -> Vec<Entry> {
    let ours = Entry {
        name: "oblivio",
        memory: |blocks, block_bytes| {
            let config = defaults::volume_config(block_bytes, blocks);
            config.tree_bytes(blocks) * 5 / 4 + (768 << 20)
        },
        make: |blocks, block_bytes| Ok(Box::new(Ours::new(blocks, block_bytes)?)),
    };
    #[cfg_attr(not(feature = "rivals"), expect(unused_mut, reason = "the rivals join here"))]
    let mut entries = vec![ours];
    #[cfg(feature = "rivals")]
    entries.extend(crate::rivals::entries());
    entries
}

/// Accesses between commits.
const COMMIT_EVERY: usize = 1024;

/// A volume over memory.
struct Ours {
    volume: Volume,
    since_commit: usize,
}

impl Ours {
    fn new(blocks: u64, block_bytes: usize) -> Result<Self> {
        let create = CreateOptions {
            block_bytes,
            capacity_bytes: blocks * block_bytes as u64,
            kdf: KdfParams::TEST,
        };
        let store = Arc::new(MemoryStore::new());
        let passphrase = Passphrase::new("lab");
        let mut volume = Volume::create(store, &passphrase, create, OpenOptions::default())?;
        volume.reserve(blocks)?;
        Ok(Self { volume, since_commit: 0 })
    }
}

impl Contender for Ours {
    fn name(&self) -> String {
        "oblivio".into()
    }

    fn serve(&mut self, accesses: &[(u64, bool)], batch: usize) -> Result<()> {
        let block_bytes = self.volume.block_bytes();
        for chunk in accesses.chunks(batch) {
            let op = |&(id, write): &(u64, bool)| -> BlockOp {
                if write { defaults::write(id, block_bytes) } else { defaults::read(id) }
            };
            let answers = self.volume.access(chunk.iter().map(op).collect())?;
            for (answer, (id, _)) in answers.iter().zip(chunk) {
                if let Some(bytes) = answer {
                    ensure!(bytes[block_bytes - 1] == *id as u8, "block {id} is not what it was");
                }
            }
            self.since_commit += chunk.len();
            if self.since_commit >= COMMIT_EVERY {
                self.since_commit = 0;
                self.volume.commit()?;
            }
        }
        Ok(())
    }

    fn batches(&self) -> &'static [usize] {
        &[1, 32]
    }

    fn must_be_full(&self) -> bool {
        true
    }
}

/// One line of the table, its rates round by round.
struct Line {
    name: &'static str,
    batch: usize,
    blocks: u64,
    rates: Vec<f64>,
}

/// Runs the comparison.
///
/// # Errors
/// Those of the contenders and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::new("engine", "The engine in memory, beside other ORAM libraries");
    report.text(
        "One thread makes uniformly random reads and writes, half and half. Oblivio is a volume \
         over a store in memory with its defaults: sealed (AES-256-GCM), tag tree, read intents \
         logged, the default memory budget. It commits every 1,024 accesses, mostly by the \
         journal; the full commits fall into the rounds. Every block was written before, and as \
         many accesses made since, so its store has its final size. `rostl-oram` (0.1.0-alpha9: \
         CircuitORAM behind RecursivePositionMap) and `oram` (Meta, 0.2.0-pre.1: DefaultOram) \
         encrypt nothing and keep nothing durable. They hide their own memory accesses, which \
         Oblivio does not. They are data-independent and take the same time full or not, so they \
         are filled for a bounded time only. The table has accesses per second of processor time, \
         median of the rounds. Rounds of all contenders are interleaved where they fit into \
         memory together. A ratio is ours (one access per batch) to the other's.",
    );
    if cfg!(not(feature = "rivals")) {
        report.text("Built without `--features rivals`: only Oblivio was measured.");
    }
    let head =
        ["block", "blocks", "contender", "batch", "accesses/s", "lowest", "highest", "ratio"];
    let mut table = Table::new(head);
    let mut notes = Vec::new();
    for &block_bytes in &args.block_bytes {
        for &log_blocks in &args.log_blocks {
            let lines = compare(args, block_bytes, 1 << log_blocks, &mut notes)?;
            let ours = lines.first().map_or(f64::NAN, |line| median(&line.rates));
            for line in &lines {
                let rate = median(&line.rates);
                let lowest = line.rates.iter().copied().fold(f64::INFINITY, f64::min);
                let highest = line.rates.iter().copied().fold(0.0, f64::max);
                table.row([
                    bytes(block_bytes as u64),
                    format!("2^{}", line.blocks.ilog2()),
                    line.name.to_owned(),
                    line.batch.to_string(),
                    count(rate),
                    count(lowest),
                    count(highest),
                    if line.name == "oblivio" { "".into() } else { format!("{:.1}", ours / rate) },
                ]);
            }
        }
    }
    report.table(&table);
    for note in notes {
        report.text(&note);
    }
    report.finish(write)
}

fn compare(
    args: &Args,
    block_bytes: usize,
    blocks: u64,
    notes: &mut Vec<String>,
) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let entries = entries();
    let free = available() - args.spare_mib as i64 * (1 << 20);
    let needed: u64 = entries.iter().map(|entry| (entry.memory)(blocks, block_bytes)).sum();
    if needed as i64 <= free {
        let mut contenders = Vec::new();
        for entry in &entries {
            contenders.push(prepare(args, entry, blocks, block_bytes, &mut lines)?);
        }
        for round in 0..args.rounds {
            for (contender, entry) in contenders.iter_mut().zip(&entries) {
                measure(args, contender.as_mut(), entry.name, blocks, round, &mut lines)?;
            }
        }
        return Ok(lines);
    }
    notes.push(format!(
        "2^{} blocks of {}: one contender in memory at a time, its rounds one after the other.",
        blocks.ilog2(),
        bytes(block_bytes as u64)
    ));
    for entry in &entries {
        let mut blocks = blocks;
        while (entry.memory)(blocks, block_bytes) as i64
            > available() - args.spare_mib as i64 * (1 << 20)
        {
            notes.push(format!(
                "`{}` takes {} for 2^{} blocks of {}, more than there was: measured at half as many \
                 blocks, where it is faster than it would be.",
                entry.name,
                bytes((entry.memory)(blocks, block_bytes)),
                blocks.ilog2(),
                bytes(block_bytes as u64)
            ));
            blocks /= 2;
        }
        let mut contender = prepare(args, entry, blocks, block_bytes, &mut lines)?;
        for round in 0..args.rounds {
            measure(args, contender.as_mut(), entry.name, blocks, round, &mut lines)?;
        }
    }
    Ok(lines)
}

/// Makes and fills a contender.
fn prepare(
    args: &Args,
    entry: &Entry,
    blocks: u64,
    block_bytes: usize,
    lines: &mut Vec<Line>,
) -> Result<Box<dyn Contender>> {
    let clock = CpuClock::start();
    let mut contender = (entry.make)(blocks, block_bytes)?;
    eprintln!("{} made in {:.1} s", contender.name(), clock.seconds());
    for &batch in contender.batches() {
        lines.push(Line { name: entry.name, batch, blocks, rates: Vec::new() });
    }
    let clock = CpuClock::start();
    let mut next = 0;
    while next < blocks && (contender.must_be_full() || clock.seconds() < args.fill_seconds) {
        let end = blocks.min(next + 64);
        let accesses: Vec<_> = (next..end).map(|id| (id, true)).collect();
        contender.serve(&accesses, 64)?;
        next = end;
    }
    eprintln!("{}: {next} of {blocks} blocks in {:.1} s", contender.name(), clock.seconds());
    if contender.must_be_full() {
        age(contender.as_mut(), blocks)?;
    }
    // Warm up.
    measure(args, contender.as_mut(), "", blocks, usize::MAX, &mut Vec::new())?;
    Ok(contender)
}

/// Makes as many random accesses as there are blocks. While the tree's buckets are stored for the
/// first time, the store takes memory that the system must clear, at a cost that later accesses do
/// not have.
fn age(contender: &mut dyn Contender, blocks: u64) -> Result<()> {
    let (clock, mut rng) = (CpuClock::start(), SplitMix64::new(0));
    for _ in 0..blocks.div_ceil(64) {
        let accesses: Vec<_> = (0..64).map(|_| (rng.below(blocks), true)).collect();
        contender.serve(&accesses, 64)?;
    }
    eprintln!("{}: aged in {:.1} s", contender.name(), clock.seconds());
    Ok(())
}

fn measure(
    args: &Args,
    contender: &mut dyn Contender,
    name: &str,
    blocks: u64,
    round: usize,
    lines: &mut [Line],
) -> Result<()> {
    let mut rng = SplitMix64::new(round as u64);
    for &batch in contender.batches() {
        let (clock, mut served) = (CpuClock::start(), 0);
        while clock.seconds() < args.seconds {
            let accesses: Vec<_> =
                (0..64).map(|_| (rng.below(blocks), rng.next_u64() & 1 == 0)).collect();
            contender.serve(&accesses, batch)?;
            served += accesses.len();
        }
        let rate = served as f64 / clock.seconds();
        if let Some(line) = lines.iter_mut().find(|line| line.name == name && line.batch == batch) {
            line.rates.push(rate);
            eprintln!("{name} x{batch}: {rate:.0}/s");
        }
    }
    Ok(())
}

/// Bytes of memory that the machine has available now.
pub fn available() -> i64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.unwrap_or(4i64 << 20) << 10
}
