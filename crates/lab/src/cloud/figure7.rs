//! Figure 7: packing, with files of one size at a time.

use super::corpus::{Clock, Corpus, timed};
use super::watched::{Seen, View, Watched, look, slots_of};
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, bytes, count, median};
use anyhow::{Context, Result};
use oblivio_store::MemoryStore;
use oblivio_volume::fs::FileSystem;
use oblivio_volume::tree::TreeInfo;
use std::sync::Arc;

const SEGMENT: usize = 64 << 10;
/// Small, to keep the tree in the store and not in memory.
const MEMORY: usize = 8 << 20;
/// Number of files, their size, and the paper's tree with packing as a fraction of that without.
const KINDS: [(usize, u64, &str); 3] =
    [(1000, 16, "1/4"), (1000, 32, "1/2"), (1000, 70, "about 1/2")];
/// More file counts for the last kind: the tree's size classes can favour or penalise a single one.
const COUNTS: [usize; 10] = [500, 600, 700, 800, 1000, 1300, 1700, 2200, 3000, 4000];
const COUNTED: u64 = 70;

/// One volume, filled.
struct Filled {
    corpus: Corpus,
    fs: FileSystem,
    view: View,
    info: TreeInfo,
    rates: Vec<f64>,
    moved: f64,
}

impl Filled {
    fn new(files: usize, kib: u64, packed: bool) -> Result<Self> {
        let store = Arc::new(MemoryStore::new());
        let (space, view) = Watched::create(store, SEGMENT, MEMORY)?;
        let round_to = (!packed).then_some(SEGMENT as u64);
        let corpus = Corpus { sizes: vec![kib << 10; files], round_to };
        let fs = FileSystem::format(Box::new(space))?;
        corpus.write(&fs)?;
        while fs.idle()?.is_some() {}
        fs.commit()?;
        let info = look(&view).info.context("a commit shows the volume")?;
        Ok(Self { corpus, fs, view, info, rates: Vec::new(), moved: 0.0 })
    }

    fn read(&mut self, round: u64) -> Result<()> {
        let Seen { bytes: before, .. } = look(&self.view);
        let (seconds, ()) = timed(Clock::Processor, || self.corpus.read(&self.fs, round))?;
        let total = self.corpus.bytes() as f64;
        self.rates.push(total / 1e6 / seconds);
        self.moved = (look(&self.view).bytes - before) as f64 / total;
        Ok(())
    }

    fn slots(&self) -> f64 {
        slots_of(&self.info)
    }
}

/// Runs the experiment.
///
/// # Errors
/// Those of the file system and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let (part, rounds) = if quick { (25, 1) } else { (1, 5) };
    let empty = Filled::new(0, 1, true)?.info.live_blocks;
    let mut report = Report::on("cloud-paper.md", "packing", "Figure 7: packing");
    report.text(&format!(
        "1,000 files of one size in a volume with segments of 64 KiB and {} of memory, over a \
         store in memory. The tree follows what is stored. Without packing each file is filled up \
         to whole segments with zeros, which do not count as data. A tree is as large as the next \
         class above its blocks, an eighth of a power of two. An empty file system has {empty} \
         blocks. MB/s are of reading all files once in random order, by processor time, median of \
         {rounds} rounds of both volumes by turns. `moved` is bucket bytes for each byte of a \
         file.",
        bytes(MEMORY as u64)
    ));
    let mut table = Table::new([
        "files",
        "packing",
        "blocks",
        "against none",
        "depth",
        "leaf",
        "tree, slots",
        "against none ",
        "the paper",
        "moved",
        "MB/s",
        "gain",
    ]);
    let mut bars = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
    for (at, (files, kib, paper)) in KINDS.into_iter().enumerate() {
        let files = files / part;
        let mut both = [Filled::new(files, kib, false)?, Filled::new(files, kib, true)?];
        for round in 0..rounds {
            for filled in &mut both {
                filled.read(round)?;
            }
        }
        let (none_blocks, none_slots) = (both[0].info.live_blocks, both[0].slots());
        let none_rate = median(&both[0].rates);
        for (packed, filled) in both.iter().enumerate() {
            let rate = median(&filled.rates);
            bars[0][packed].push((at as f64, filled.slots()));
            bars[1][packed].push((at as f64, rate));
            let part = |of: f64| if packed == 1 { format!("{of:.2}") } else { "1".into() };
            let row = [
                format!("{} of {kib} KiB", count(files as f64)),
                if packed == 1 { "yes" } else { "no" }.to_owned(),
                count(filled.info.live_blocks as f64),
                part(filled.info.live_blocks as f64 / none_blocks as f64),
                filled.info.depth.to_string(),
                filled.info.leaf_slots.to_string(),
                count(filled.slots()),
                part(filled.slots() / none_slots),
                if packed == 1 { paper } else { "1" }.to_owned(),
                format!("{:.0}", filled.moved),
                format!("{rate:.1}"),
                format!("{:+.0} %", 100.0 * (rate / none_rate - 1.0)),
            ];
            eprintln!("{}", row.join(" | "));
            table.row(row);
        }
    }
    report.table(&table);
    counts(&mut report, part)?;
    let kinds = [
        ("cloud-figure7-tree.svg", "Packing makes the tree smaller", "tree, slots"),
        (
            "cloud-figure7-rate.svg",
            "A smaller tree is read faster",
            "reading, MB/s of processor time",
        ),
    ];
    for ((file, title, label), bars) in kinds.into_iter().zip(bars) {
        let most = bars.iter().flatten().map(|bar| bar.1).fold(0.0, f64::max);
        let names = KINDS.map(|(files, kib, _)| format!("{files} of {kib} KiB"));
        let axis = Axis::names("files", names);
        let mut chart = Chart::new(title, axis, Axis::linear(label, most * 1.05));
        for (name, bars) in ["without packing", "with packing"].into_iter().zip(bars) {
            chart.add(name, Look::Bar, bars);
        }
        report.picture(file, &chart);
    }
    report.finish(write)
}

/// Tree sizes for several file counts.
fn counts(report: &mut Report, part: usize) -> Result<()> {
    let mut table =
        Table::new(["files", "blocks", "packed", "ratio", "tree, slots", "packed ", "ratio "]);
    let mut ratios = [Vec::new(), Vec::new()];
    for files in COUNTS.map(|files| files / part) {
        let none = Filled::new(files, COUNTED, false)?;
        let packed = Filled::new(files, COUNTED, true)?;
        let blocks = [none.info.live_blocks as f64, packed.info.live_blocks as f64];
        let slots = [none.slots(), packed.slots()];
        let mut row = vec![count(files as f64)];
        for (of, ratios) in [blocks, slots].into_iter().zip(&mut ratios) {
            ratios.push(of[1] / of[0]);
            row.extend([count(of[0]), count(of[1]), format!("{:.2}", of[1] / of[0])]);
        }
        eprintln!("{}", row.join(" | "));
        table.row(row);
    }
    let [blocks, slots] = ratios.map(|all| all.iter().sum::<f64>() / all.len() as f64);
    report.text(&format!(
        "The trees of several numbers of files of {COUNTED} KiB: on the average packing leaves \
         {blocks:.2} of the blocks and {slots:.2} of the tree."
    ));
    report.table(&table);
    Ok(())
}
