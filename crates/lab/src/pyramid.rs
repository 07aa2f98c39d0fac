//! The pyramid engine beside the tree, in memory: processor time, bytes moved and stored.

use crate::buckets::LabBuckets;
use crate::clock::CpuClock;
use crate::defaults;
use crate::report::{Report, Table, bytes, count, median};
use anyhow::{Result, ensure};
use oblivio_engine::pyramid::{PyramidConfig, PyramidKeys, PyramidOram, WITHIN_TABLE};
use oblivio_engine::tree::{TreeConfig, TreeKeys, TreeOram};
use oblivio_engine::{BlockAnswer, BlockOp, Carrier, EngineError, Read, Write};
use oblivio_testkit::SplitMix64;

/// What to compare.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Logarithms of the numbers of blocks
    #[arg(long, value_delimiter = ',', default_value = "16,20")]
    log_blocks: Vec<u32>,
    /// Bytes in a block
    #[arg(long, default_value_t = 4096)]
    block_bytes: usize,
    /// MiB of memory for the tree's top, and for the pyramid's stash
    #[arg(long, value_delimiter = ',', default_value = "16,64")]
    memory_mib: Vec<usize>,
    /// Operations in a batch
    #[arg(long, default_value_t = 32)]
    batch: usize,
    /// Rounds; the table shows the medians
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of processor time for each engine in each round
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

/// Tables in memory, and traffic counters.
#[derive(Default)]
struct Tables {
    stored: Vec<Vec<u8>>,
    bytes_read: u64,
    bytes_written: u64,
}

fn place(offset: u64) -> (usize, usize) {
    ((offset >> WITHIN_TABLE) as usize, (offset & ((1 << WITHIN_TABLE) - 1)) as usize)
}

impl Carrier for Tables {
    type Error = EngineError;

    fn read(&mut self, mut read: Read<'_>) -> Result<(), EngineError> {
        for (extent, part) in read.parts() {
            let (home, at) = place(extent.offset);
            part.copy_from_slice(&self.stored[home][at..at + part.len()]);
            self.bytes_read += extent.bytes;
        }
        Ok(())
    }

    fn write(&mut self, write: Write<'_>) -> Result<(), EngineError> {
        for piece in write.parts() {
            let home = place(piece.extent.offset).0;
            if home >= self.stored.len() {
                self.stored.resize_with(home + 1, Vec::new);
            }
            self.stored[home].clear();
            self.stored[home].extend_from_slice(piece.data);
            self.bytes_written += piece.extent.bytes;
        }
        Ok(())
    }
}

/// An engine and its store.
trait Side {
    fn serve(&mut self, ops: Vec<BlockOp>) -> Result<()>;
    /// Bytes read and written so far.
    fn moved(&self) -> (u64, u64);
    /// Bytes stored.
    fn stored(&self) -> u64;
}

struct TreeSide(TreeOram, LabBuckets);
struct PyramidSide(PyramidOram, Tables);

fn check(ids: &[u64], answers: Vec<BlockAnswer>) -> Result<()> {
    for (answer, id) in answers.into_iter().zip(ids) {
        let right = answer.is_none_or(|bytes| bytes.last() == Some(&(*id as u8)));
        ensure!(right, "block {id} is not what it was");
    }
    Ok(())
}

fn ids(ops: &[BlockOp]) -> Vec<u64> {
    ops.iter().map(|op| op.id.0).collect()
}

impl Side for TreeSide {
    fn serve(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        let ids = ids(&ops);
        let answers = self.1.access(&mut self.0, ops)?;
        self.0.committed();
        check(&ids, answers)
    }
    fn moved(&self) -> (u64, u64) {
        (self.1.bytes_read, self.1.bytes_written)
    }
    fn stored(&self) -> u64 {
        self.1.bytes_stored()
    }
}

impl Side for PyramidSide {
    fn serve(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        let ids = ids(&ops);
        check(&ids, self.0.access(&mut self.1, ops)?)
    }
    fn moved(&self) -> (u64, u64) {
        (self.1.bytes_read, self.1.bytes_written)
    }
    fn stored(&self) -> u64 {
        self.0.stored_slots() * self.0.config().slot_bytes() as u64
    }
}

/// What a round found: accesses a second, and bytes read and written for each.
#[derive(Default)]
struct Found(Vec<f64>, Vec<f64>, Vec<f64>);

fn measure(args: &Args, side: &mut dyn Side, blocks: u64, found: &mut Found) -> Result<()> {
    let mut rng = SplitMix64::new(found.0.len() as u64);
    let (clock, before, mut served) = (CpuClock::start(), side.moved(), 0);
    while clock.seconds() < args.seconds {
        side.serve(ops(
            args,
            (0..args.batch).map(|_| (rng.below(blocks), rng.next_u64() & 1 == 0)),
        ))?;
        served += args.batch;
    }
    let (rate, after) = (served as f64 / clock.seconds(), side.moved());
    found.0.push(rate);
    found.1.push((after.0 - before.0) as f64 / served as f64);
    found.2.push((after.1 - before.1) as f64 / served as f64);
    Ok(())
}

fn ops(args: &Args, accesses: impl Iterator<Item = (u64, bool)>) -> Vec<BlockOp> {
    let op = |(id, write)| match write {
        true => defaults::write(id, args.block_bytes),
        false => defaults::read(id),
    };
    accesses.map(op).collect()
}

/// Writes every block, and then as many at random: the store has its final size.
fn fill(args: &Args, side: &mut dyn Side, blocks: u64) -> Result<()> {
    let mut rng = SplitMix64::new(77);
    for first in (0..2 * blocks).step_by(64) {
        let id = |at: u64| if at < blocks { at } else { rng.below(blocks) };
        let ids: Vec<_> = (first..first + 64).map(id).collect();
        side.serve(ops(args, ids.into_iter().map(|id| (id, true))))?;
    }
    Ok(())
}

/// Runs the comparison.
///
/// # Errors
/// Those of the engines and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let mut report = Report::new("pyramid", "The pyramid engine beside the tree, in memory");
    report.text(&format!(
        "One thread makes uniformly random reads and writes, half and half, {} in a batch, on full \
         engines over plain memory, without a volume: no intents, no commits. Both seal and check \
         everything. The same memory serves the tree's top levels or the pyramid's stash; maps and \
         indices come on top. Bytes are those of each access, merges and evictions included. \
         Accesses per second of processor time; medians of {} rounds by turns.",
        args.batch, args.rounds
    ));
    let head = ["blocks", "memory", "engine", "accesses/s", "ratio", "read", "written", "stored/n"];
    let mut table = Table::new(head);
    for &log in &args.log_blocks {
        for &mib in &args.memory_mib {
            compare(args, 1 << log, mib << 20, &mut table)?;
        }
    }
    report.table(&table);
    report.finish(write)
}

fn compare(args: &Args, blocks: u64, memory: usize, table: &mut Table) -> Result<()> {
    let tree =
        TreeConfig { cache_bytes: memory, ..defaults::volume_config(args.block_bytes, blocks) };
    let pyramid = PyramidConfig::new(args.block_bytes, blocks, memory);
    let mut sides: [(&str, Box<dyn Side>); 2] = [
        (
            "tree",
            Box::new(TreeSide(
                TreeOram::new(tree, blocks, TreeKeys::from_seed(1))?,
                LabBuckets::new(),
            )),
        ),
        (
            "pyramid",
            Box::new(PyramidSide(
                PyramidOram::new(pyramid, PyramidKeys::from_seed(1))?,
                Tables::default(),
            )),
        ),
    ];
    for (name, side) in &mut sides {
        let clock = CpuClock::start();
        fill(args, side.as_mut(), blocks)?;
        eprintln!("{name}: {blocks} blocks in {:.1} s", clock.seconds());
    }
    let mut found = [Found::default(), Found::default()];
    for _ in 0..args.rounds {
        for ((_, side), found) in sides.iter_mut().zip(&mut found) {
            measure(args, side.as_mut(), blocks, found)?;
        }
    }
    let base = median(&found[0].0);
    for ((name, side), Found(rates, read, written)) in sides.iter().zip(&found) {
        table.row([
            format!("2^{}", blocks.ilog2()),
            bytes(memory as u64),
            (*name).to_owned(),
            count(median(rates)),
            format!("{:.2}", median(rates) / base),
            bytes(median(read) as u64),
            bytes(median(written) as u64),
            format!("{:.2}", side.stored() as f64 / (blocks * args.block_bytes as u64) as f64),
        ]);
    }
    Ok(())
}
