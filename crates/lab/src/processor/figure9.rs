//! Beside Phantom's large blocks without recursion (Figure 9, section 7.1.6).

use super::frames::Mapping;
use super::machine::Machine;
use super::pairs::{Args, Pair};
use super::paper::PAGE;
use super::replay::{Secure, geomean};
use super::scheme::{FRONTEND, LINES, Scheme};
use crate::papers;
use crate::report::{Report, Table};
use anyhow::Result;
use oblivio_engine::tree::TreeConfig;
use oblivio_tracer::caches::Kind;
use oblivio_tracer::record::Record;

const MACHINE: Machine = Machine::TABLE1;
const BLOCK_BYTES: u64 = 4096;
/// Lines of Phantom's caches.
const LINE_BYTES: u64 = 128;
/// Of Phantom's tree for 2^20 blocks: L = 19, as the paper says.
const LEVELS: u32 = 20;
/// Lines of 64 bytes in a bucket of four blocks, and one with their addresses and leaves.
const BUCKET_LINES: u64 = 4 * BLOCK_BYTES / 64 + 1;
/// Blocks in the buffer: 32 KB.
const BUFFERED: usize = (32 << 10) / BLOCK_BYTES as usize;

/// A block in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    block: u64,
    /// It was used since the hand came by.
    is_marked: bool,
    /// A line of it was written.
    is_dirty: bool,
}

/// A few blocks, of which CLOCK throws one out: the hand goes round, takes the mark off all that
/// were used since it came by, and stops at the first that was not.
struct Buffer {
    slots: Vec<Option<Slot>>,
    hand: usize,
}

impl Buffer {
    fn new(slots: usize) -> Self {
        Self { slots: vec![None; slots], hand: 0 }
    }

    /// Uses a block, if it is there.
    fn find(&mut self, block: u64, writes: bool) -> bool {
        let found = self.slots.iter_mut().flatten().find(|slot| slot.block == block);
        let Some(slot) = found else { return false };
        (slot.is_marked, slot.is_dirty) = (true, slot.is_dirty || writes);
        true
    }

    /// Puts a block in. What it throws out.
    fn insert(&mut self, block: u64, writes: bool) -> Option<Slot> {
        while let Some(Slot { is_marked: marked @ true, .. }) = &mut self.slots[self.hand] {
            *marked = false;
            self.hand = (self.hand + 1) % self.slots.len();
        }
        let new = Slot { block, is_marked: true, is_dirty: writes };
        let old = self.slots[self.hand].replace(new);
        self.hand = (self.hand + 1) % self.slots.len();
        old
    }
}

/// Phantom: one path for each block that the buffer does not have.
struct Phantom {
    buffer: Buffer,
    path_cycles: f64,
    hit_cycles: f64,
    exclusive: bool,
    cycles: f64,
    accesses: u64,
    paths: u64,
    /// Dirty blocks that the buffer threw out.
    written: u64,
}

impl Phantom {
    fn new(path_cycles: f64, exclusive: bool) -> Self {
        Self {
            buffer: Buffer::new(BUFFERED),
            path_cycles,
            hit_cycles: FRONTEND * MACHINE.controller_cycle(),
            exclusive,
            cycles: 0.0,
            accesses: 0,
            paths: 0,
            written: 0,
        }
    }

    fn take(&mut self, record: &Record) {
        self.cycles += record.cycles as f64;
        let writes = record.kind == Kind::Eviction;
        if writes && self.exclusive {
            return;
        }
        self.accesses += 1;
        let block = record.line / (BLOCK_BYTES / LINE_BYTES);
        if self.buffer.find(block, writes) {
            self.cycles += self.hit_cycles;
            return;
        }
        self.paths += 1;
        self.cycles += self.path_cycles;
        let old = self.buffer.insert(block, writes);
        self.written += u64::from(old.is_some_and(|slot| slot.is_dirty));
    }

    /// The cycles if each dirty block that is thrown out takes a path of its own.
    fn cycles_written(&self) -> f64 {
        self.cycles + self.written as f64 * self.path_cycles
    }
}

/// What one program has under one mapping.
struct Row {
    program: String,
    /// Accesses and paths.
    narrow: [u64; 2],
    /// Accesses, paths, and dirty blocks that were thrown out.
    phantom: [u64; 3],
    /// How much faster PC_X32 is, and if such blocks take a path of their own.
    speed: f64,
    speed_written: f64,
}

/// Runs the experiment.
///
/// # Errors
/// There are no traces; the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let pairs = args.find()?;
    let (ours, phantom) = schemes();
    let costs = [&ours, &phantom].map(|it| it.path_cycles(MACHINE));
    let mut report =
        Report::on(PAGE, "figure9", "Beside large blocks without recursion (Figure 9)");
    introduce(&mut report, &args.describe(&pairs), costs);
    for mapping in Mapping::ALL {
        let rows = pairs.iter().map(|pair| measure(args, pair, mapping, &ours, costs));
        let rows: Vec<Row> = rows.collect::<Result<_>>()?;
        report.text(&format!("**{}**", mapping.name()));
        report.table(&table(&rows));
        report.text(&conclusion(&rows));
    }
    report.finish(write)
}

/// PC_X32 as in Figure 6, and Phantom.
fn schemes() -> (Scheme, Scheme) {
    let config = papers::pc_x32(64, LINES);
    let config = TreeConfig { on_chip_bytes: config.on_chip_bytes - 1, ..config };
    let phantom = Scheme::of("Phantom", None, vec![(LEVELS, BUCKET_LINES)]);
    (Scheme::unified("PC_X32", config), phantom)
}

fn introduce(report: &mut Report, replayed: &str, costs: [f64; 2]) {
    report.text(&format!(
        "How much faster a program is with PC_X32 than with Phantom: blocks of 4 KB, a tree of \
         {LEVELS} levels with four blocks in a bucket, the map of 2^20 entries on-chip, lines of \
         {LINE_BYTES} bytes in the caches, and a buffer of {BUFFERED} blocks with CLOCK. What the \
         buffer has costs the {FRONTEND:.0} cycles of a frontend. The paper does not say where \
         blocks go that it throws out. They may go to the stash, as from a PLB; in the last column \
         each that is dirty takes a path of its own. {replayed} Cycles of a path, read and \
         written, with the controller's: PC_X32 {:.0}, Phantom {:.0}. Both on {} channels.",
        costs[0], costs[1], MACHINE.channels
    ));
}

fn measure(
    args: &Args,
    pair: &Pair,
    mapping: Mapping,
    ours: &Scheme,
    costs: [f64; 2],
) -> Result<Row> {
    let mut narrow = Secure::new(ours, costs[0], args.replay.exclusive);
    let mut phantom = Phantom::new(costs[1], args.replay.exclusive);
    pair.each(args, mapping, |record| narrow.take(record), |record| phantom.take(record))?;
    let counts = narrow.counts().unwrap_or_default();
    Ok(Row {
        program: pair.program().to_owned(),
        narrow: [counts.accesses, counts.paths],
        phantom: [phantom.accesses, phantom.paths, phantom.written],
        speed: phantom.cycles / narrow.cycles,
        speed_written: phantom.cycles_written() / narrow.cycles,
    })
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "program",
        "PC_X32: accesses, million",
        "paths",
        "Phantom: accesses",
        "paths",
        "dirty blocks out",
        "PC_X32 over Phantom",
        "with paths for them",
    ]);
    for row in rows {
        let counted = row.narrow.iter().chain(&row.phantom);
        let counted = counted.map(|&number| format!("{:.2}", number as f64 / 1e6));
        let speeds = [row.speed, row.speed_written].map(|it| format!("{it:.1}"));
        table.row(std::iter::once(row.program.clone()).chain(counted).chain(speeds));
    }
    let blank = std::iter::repeat_n(String::new(), 5);
    let means = means(rows).map(|it| format!("{it:.1}"));
    table.row(std::iter::once("geometric mean".to_owned()).chain(blank).chain(means));
    table
}

fn means(rows: &[Row]) -> [f64; 2] {
    let mean = |of: fn(&Row) -> f64| geomean(&rows.iter().map(of).collect::<Vec<_>>());
    [mean(|row| row.speed), mean(|row| row.speed_written)]
}

fn conclusion(rows: &[Row]) -> String {
    let ahead = |of: fn(&Row) -> f64| {
        let names = rows.iter().filter(|row| of(row) < 1.0).map(|row| row.program.as_str());
        Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
    };
    let name = |names: Option<String>| names.unwrap_or_else(|| "no program".to_owned());
    let [plain, written] = means(rows);
    format!(
        "PC_X32 is {plain:.1} times as fast in the mean, {written:.1} times with paths for dirty \
         blocks (the paper: 10). Phantom is faster for {}; with such paths for {}.",
        name(ahead(|row| row.speed)),
        name(ahead(|row| row.speed_written)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::dram::{Shape, Timing};
    use crate::processor::layout::Layout;
    use crate::processor::scheme::{PIPELINE, mean_path};

    /// Uses a block. Whether it was there.
    fn take(buffer: &mut Buffer, block: u64) -> bool {
        let found = buffer.find(block, false);
        if !found {
            buffer.insert(block, false);
        }
        found
    }

    #[test]
    fn the_hand_spares_what_was_used() {
        let mut buffer = Buffer::new(3);
        assert_eq!([1, 2, 3].map(|block| take(&mut buffer, block)), [false; 3]);
        // All are marked: the hand takes the marks off, and the first goes.
        assert!(!take(&mut buffer, 4));
        assert!(take(&mut buffer, 2), "2 has its mark again");
        // The hand is at 2, which it spares, so 3 goes.
        assert!(!take(&mut buffer, 5));
        assert_eq!([4, 2, 5].map(|block| take(&mut buffer, block)), [true; 3]);
        assert!(!take(&mut buffer, 3));
    }

    #[test]
    fn a_block_is_dirty_once_a_line_of_it_was_written() {
        let mut phantom = Phantom::new(1000.0, false);
        let block = BLOCK_BYTES / LINE_BYTES;
        let mut take = |kind, line| phantom.take(&Record { cycles: 0, kind, line });
        take(Kind::Load, 0);
        take(Kind::Eviction, 1);
        (1..BUFFERED as u64).for_each(|number| take(Kind::Store, number * block));
        // All are marked and the first goes, which is dirty; then the second, which is not.
        take(Kind::Load, 100 * block);
        take(Kind::Load, 101 * block);
        assert_eq!((phantom.paths, phantom.written), (BUFFERED as u64 + 2, 1));
        assert!((phantom.cycles_written() - phantom.cycles - 1000.0).abs() < 1e-6);
    }

    /// 20 buckets of 257 lines are 40 times as much as 26 of 5, and come at the speed of the bus.
    #[test]
    fn a_path_of_phantom_takes_as_long_as_its_bytes() {
        let (_, phantom) = schemes();
        let (lines, none) = phantom.path_lines();
        assert_eq!((lines, none), (20 * 257, 0));
        let layout = Layout::subtrees(LEVELS, BUCKET_LINES, &Shape::paper(MACHINE.channels));
        let cycles = mean_path(&layout, MACHINE, 20, PIPELINE);
        let bus = Timing::DDR3_1333.burst as f64 * MACHINE.memory_cycle() / MACHINE.channels as f64;
        let least = 2.0 * lines as f64 * bus;
        assert!((least..1.15 * least).contains(&cycles), "{cycles} {least}");
    }

    #[test]
    fn phantom_reads_a_block_once_while_it_is_in_the_buffer() {
        let mut phantom = Phantom::new(1000.0, false);
        let record = |line| Record { cycles: 5, kind: Kind::Load, line };
        (0..64).for_each(|line| phantom.take(&record(line)));
        assert_eq!((phantom.accesses, phantom.paths), (64, 2));
        let hits = 62.0 * FRONTEND * MACHINE.controller_cycle();
        assert!((phantom.cycles - (64.0 * 5.0 + 2000.0 + hits)).abs() < 1e-6);
    }
}
