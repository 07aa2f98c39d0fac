//! Figure 10's work by real programs on real mounts: shared volumes, volumes with one writer, and
//! UtahFS, with one delay for all.

mod batch;
mod utahfs;
mod volumes;

use super::checks::PAGE;
use crate::report::{Report, Table, bytes, median};
use crate::share::mounts::refused;
use crate::share::process::loaded;
use crate::tool::Tool;
use anyhow::Result;
use batch::{Batch, CALL, Times};
use std::path::PathBuf;
use std::time::Duration;
use utahfs::Programs;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    tool: Tool,
    /// A folder with `utahfs-client` and `utahfs-server`, which are run too
    #[arg(long, value_name = "DIR")]
    utahfs: Option<PathBuf>,
    /// Milliseconds of a round trip
    #[arg(long, value_delimiter = ',', default_value = "0,40,80")]
    rtt_ms: Vec<u64>,
    /// Rounds of the volumes, of which the table shows the medians; UtahFS, which takes minutes for
    /// each delay, has one
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Where volumes are made; by default where the system has temporary files
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Who is measured, in the order of the table.
const SIDES: [&str; 5] = [
    "shared, the scribe's mount",
    "shared, another mount",
    "one writer, tree",
    "UtahFS, client of its server",
    "UtahFS without a server",
];

/// Figure 10's files, and the one of `share files`.
fn batches(quick: bool) -> [Batch; 2] {
    let large = if quick { 1 << 20 } else { 8 << 20 };
    let small = Batch { name: "small", files: 10, bytes: 128 << 10 };
    [small, Batch { name: "large", files: 1, bytes: large }]
}

/// One measurement of a batch.
#[derive(Clone, Copy, Debug)]
struct Found {
    side: &'static str,
    rtt: u64,
    batch: usize,
    times: Times,
}

/// All measurements, and what failed.
#[derive(Debug, Default)]
struct All {
    found: Vec<Found>,
    failed: Vec<String>,
}

impl All {
    fn add(&mut self, side: &'static str, rtt: u64, times: &[Times]) {
        for (batch, &times) in times.iter().enumerate() {
            eprintln!("{rtt} ms, {side}, batch {batch}: {times:.2?}");
            self.found.push(Found { side, rtt, batch, times });
        }
    }

    /// Takes what another system gave: its failure is a finding, and ends nothing.
    fn of_other(&mut self, side: &'static str, rtt: u64, times: Result<Vec<Times>>) {
        match times {
            Ok(times) => self.add(side, rtt, &times),
            Err(error) => {
                eprintln!("{rtt} ms, {side}: {error:#}");
                let error = format!("{error:#}");
                let line = error.lines().next().unwrap_or_default();
                self.failed.push(format!("{side}, {rtt} ms: failed ({line})."));
            }
        }
    }

    /// KB/s of a side, as `write / read`; a dash where it was not run.
    fn cell(&self, side: &str, rtt: u64, batch: usize, total: u64) -> String {
        let here = |it: &&Found| (it.side, it.rtt, it.batch) == (side, rtt, batch);
        let rates = |of: fn(&Times) -> Duration| {
            let found = self.found.iter().filter(here);
            let rates = found.map(|it| total as f64 / 1e3 / of(&it.times).as_secs_f64());
            median(&rates.collect::<Vec<_>>())
        };
        let (write, read) = (rates(|it| it.write), rates(|it| it.read));
        if write.is_nan() { "-".into() } else { format!("{write:.0} / {read:.0}") }
    }
}

/// Runs it.
///
/// # Errors
/// Those of the volumes, the mounts and the page. Those of UtahFS are on the page.
pub fn run(args: &Args, quick: bool, write: bool) -> Result<()> {
    if let Some(why) = refused() {
        println!("privatefs-paper beside: {why}");
        return Ok(());
    }
    let (batches, programs) = (batches(quick), Programs::find(args.utahfs.as_deref()));
    let mut all = All::default();
    for _ in 0..args.rounds {
        for &rtt in &args.rtt_ms {
            ours(args, &batches, rtt, &mut all)?;
        }
    }
    if let Ok(programs) = &programs {
        for &rtt in &args.rtt_ms {
            theirs(args, &batches, programs, rtt, &mut all);
        }
    }
    report(args, &batches, programs.err().as_deref(), &all, write)
}

/// Each volume once, with this delay.
fn ours(args: &Args, batches: &[Batch], rtt: u64, all: &mut All) -> Result<()> {
    let (dir, round_trip) = (args.dir.as_deref(), Duration::from_millis(rtt));
    let [scribe, other] = volumes::shared(&args.tool, dir, batches, round_trip)?;
    all.add(SIDES[0], rtt, &scribe);
    all.add(SIDES[1], rtt, &other);
    all.add(SIDES[2], rtt, &volumes::one_writer(dir, batches, round_trip)?);
    Ok(())
}

/// UtahFS once, with this delay.
fn theirs(args: &Args, batches: &[Batch], programs: &Programs, rtt: u64, all: &mut All) {
    let (dir, round_trip) = (args.dir.as_deref(), Duration::from_millis(rtt));
    all.of_other(SIDES[3], rtt, utahfs::served(programs, dir, batches, round_trip));
    // Its disk is this computer's: no delay can stand before it.
    if rtt == 0 {
        all.of_other(SIDES[4], rtt, utahfs::alone(programs, dir, batches));
    }
}

fn report(
    args: &Args,
    batches: &[Batch],
    missing: Option<&str>,
    all: &All,
    write: bool,
) -> Result<()> {
    let mut report = Report::on(PAGE, "beside", "Beside Figure 10: real mounts, and UtahFS");
    report.text(&format!(
        "What was run: programs on FUSE mounts of this machine, in real time. They make, write, sync \
         and close the files, by calls of {}; then a fresh mount opens and reads them, each byte \
         compared. Several files are done at once, a thread each. Before that, each side holds {} \
         of other data. {}",
        bytes(CALL as u64),
        bytes(volumes::BEFORE),
        match (args.rounds, missing) {
            (1, _) => "One round.".into(),
            (rounds, Some(_)) => format!("Medians of {rounds} rounds."),
            (rounds, None) => format!("Medians of {rounds} rounds; UtahFS had one."),
        }
    ));
    report.text(&format!(
        "Shared: `oblivio share serve` over TLS, for 2^{} blocks of 4 KiB, and `oblivio mount`, with \
         the delay on the connection. The other mount works while the scribe's is idle. One writer: a \
         folder each call to which waits for a round trip, blocks of 16 KiB. Neither line has a limit \
         of bytes. The server and the folder learn nothing of which data is used.",
        volumes::LOG
    ));
    report.text(
        "UtahFS with `oram: true`, blocks of 32 KiB, other settings as they are. With a server, \
         several clients may use it; the server runs the oblivious RAM and knows which blocks are \
         used, so only the disk behind it learns nothing. The delay is between client and server. \
         Without a server its disk is this machine's, and no delay stands before it. Its `fsync` is \
         empty: each write of the kernel is a transaction by itself.",
    );
    if let Some(why) = missing {
        report.text(&format!("UtahFS was not run: {why}."));
    }
    report.text("KB/s, write / read:");
    report.table(&table(args, batches, all));
    for failed in &all.failed {
        report.text(failed);
    }
    report.text(&loaded()?);
    report.finish(write)
}

fn table(args: &Args, batches: &[Batch], all: &All) -> Table {
    let head = ["side", "files"].map(String::from).into_iter();
    let mut table = Table::new(head.chain(args.rtt_ms.iter().map(|rtt| format!("{rtt} ms"))));
    for (number, batch) in batches.iter().enumerate() {
        let files = format!("{} of {}", batch.files, bytes(batch.bytes));
        for side in SIDES {
            let cell = |rtt: &u64| all.cell(side, *rtt, number, batch.total());
            let head = [side.to_owned(), files.clone()];
            table.row(head.into_iter().chain(args.rtt_ms.iter().map(cell)));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_medians_of_their_own_side() {
        let mut all = All::default();
        for (write, read) in [(1, 4), (2, 1), (10, 2)] {
            let [write, read] = [write, read].map(Duration::from_secs);
            all.add(SIDES[0], 40, &[Times { write, read }, Times { write: read, read: write }]);
        }
        assert_eq!(all.cell(SIDES[0], 40, 0, 8_000_000), "4000 / 4000");
        assert_eq!(all.cell(SIDES[0], 40, 1, 16_000_000), "8000 / 8000");
        assert_eq!(all.cell(SIDES[0], 80, 0, 8_000_000), "-");
        assert_eq!(all.cell(SIDES[1], 40, 0, 8_000_000), "-");
    }

    #[test]
    fn a_failure_of_another_system_is_kept_in_one_line() {
        let mut all = All::default();
        all.of_other(SIDES[3], 80, Err(anyhow::anyhow!("timed out\nand more")));
        assert!(all.found.is_empty());
        assert_eq!(all.failed, ["UtahFS, client of its server, 80 ms: failed (timed out)."]);
    }
}
