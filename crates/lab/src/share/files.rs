//! Files of a mount that is far away from its server: one after the other, from the begin to the
//! end.

use super::mounts::{Computer, refused};
use super::place::{self, PAGE, Place, Served};
use super::process::loaded;
use crate::report::{Report, Table, bytes};
use anyhow::{Result, ensure};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    place: place::Which,
    /// MiB of the file
    #[arg(long, default_value_t = 8)]
    mib: u64,
    /// Milliseconds of a round trip
    #[arg(long, default_value_t = 80)]
    rtt_ms: u64,
}

/// Bytes that a program writes or reads at once.
const CALL: usize = 128 << 10;
/// Bytes a second that a cold file should give.
const WANTED: f64 = 1.4e6;

/// Runs it.
///
/// # Errors
/// Those of the server, the mounts and the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    if let Some(why) = refused() {
        println!("share files: {why}");
        return Ok(());
    }
    let tool = args.place.tool.path()?;
    let place = Place::prepare(&args.place)?;
    let served = Served::start(&place, &tool, Duration::from_millis(args.rtt_ms))?;
    let scratch = tempfile::tempdir()?;
    let [anna, ben] = ["anna", "ben"].map(|it| Computer::new(&served, &tool, scratch.path(), it));
    let (anna, ben) = (anna?, ben?);
    let total = args.mib << 20;
    let mut table = Table::new(["work", "mount", "time", "MB/s"]);
    let mut row = |work: &str, mount: &str, took: Duration| {
        let (seconds, rate) = (took.as_secs_f64(), total as f64 / took.as_secs_f64());
        let cells = [format!("{seconds:.2} s"), format!("{:.2}", rate / 1e6)];
        table.row([work.to_owned(), mount.to_owned()].into_iter().chain(cells));
        rate
    };
    let mount = anna.mount()?;
    row("write, and sync at the end", "the scribe's", put(&mount.dir.join("a"), total)?);
    mount.end()?;
    // A new process, so nothing is warm.
    let scribe = anna.mount()?;
    let own = row("read, cold", "the scribe's", take(&scribe.dir.join("a"), total)?);
    let other = ben.mount()?;
    let others = row("read, cold", "another one", take(&other.dir.join("a"), total)?);
    row("write, and sync at the end", "another one", put(&other.dir.join("b"), total)?);
    other.end()?;
    scribe.end()?;
    let mut report = Report::on(PAGE, "files", "Files of a mount that is far away");
    report.text(&format!(
        "`oblivio mount share://…`, {} ms from the server and back, on a volume that may have \
         2^{} blocks of 4 KiB. A file of {}, by a program's calls of {} one after the other. \
         Wanted: {:.1} MB/s of a cold file. {}",
        args.rtt_ms,
        place.config.log_blocks,
        bytes(total),
        bytes(CALL as u64),
        WANTED / 1e6,
        place.told
    ));
    report.table(&table);
    let said = |rate| if rate >= WANTED { "reached" } else { "not reached" };
    report.text(&format!(
        "What is wanted is {} by the scribe's mount, and {} by the other one. {}",
        said(own),
        said(others),
        loaded()?
    ));
    report.finish(write)
}

fn piece(at: u64) -> Vec<u8> {
    (0..CALL as u64).map(|byte| ((at + byte) % 251) as u8).collect()
}

fn put(path: &Path, total: u64) -> Result<Duration> {
    let begin = Instant::now();
    let mut file = File::create(path)?;
    for at in (0..total).step_by(CALL) {
        file.write_all(&piece(at))?;
    }
    file.sync_all()?;
    Ok(begin.elapsed())
}

fn take(path: &Path, total: u64) -> Result<Duration> {
    let begin = Instant::now();
    let (mut file, mut found) = (File::open(path)?, vec![0; CALL]);
    for at in (0..total).step_by(CALL) {
        file.read_exact(&mut found)?;
        ensure!(found == piece(at), "the file is not what was written at {at}");
    }
    Ok(begin.elapsed())
}
