//! The memory of mounts: of the one that is the scribe, and of one that is not.

use super::mounts::{Computer, Mounted, refused};
use super::place::{self, PAGE, Place, Served};
use super::process::{Resident, loaded};
use crate::report::{Report, Table, bytes};
use anyhow::{Result, ensure};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    place: place::Which,
    /// MiB that each mount writes, and then reads of the other one's
    #[arg(long, default_value_t = 32)]
    mib: u64,
    /// Milliseconds of a round trip
    #[arg(long, default_value_t = 0)]
    rtt_ms: u64,
}

/// Bytes of a file.
const FILE: usize = 1 << 20;
/// The most that a mount may need, the scribe's first.
const BOUNDS: [u64; 2] = [200 << 20, 64 << 20];

/// Runs it.
///
/// # Errors
/// Those of the server, the mounts and the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    if let Some(why) = refused() {
        println!("share memory: {why}");
        return Ok(());
    }
    let tool = args.place.tool.path()?;
    let place = Place::prepare(&args.place)?;
    let served = Served::start(&place, &tool, Duration::from_millis(args.rtt_ms))?;
    let scratch = tempfile::tempdir()?;
    // The first one to come is the scribe: it takes over what the lab left.
    let scribe = Computer::new(&served, &tool, scratch.path(), "scribe")?.mount()?;
    let other = Computer::new(&served, &tool, scratch.path(), "other")?.mount()?;
    let mounts = [&scribe, &other];
    // A volume that is kept has those of earlier runs.
    let by = |at: usize| format!("by-{at}-{}", std::process::id());
    let begin = resident(mounts)?;
    for (at, mount) in mounts.into_iter().enumerate() {
        put(&mount.dir.join(by(at)), args.mib)?;
    }
    for (at, mount) in mounts.into_iter().enumerate() {
        take(&mount.dir.join(by(1 - at)), args.mib)?;
    }
    let end = resident(mounts)?;
    scribe.end()?;
    other.end()?;
    report(args, &place, begin, end, write)
}

fn report(
    args: &Args,
    place: &Place,
    begin: [Resident; 2],
    end: [Resident; 2],
    write: bool,
) -> Result<()> {
    let mut report = Report::on(PAGE, "memory", "The memory of a mount");
    report.text(&format!(
        "Two processes of `oblivio mount share://…` on one volume that may have 2^{} blocks of \
         4 KiB, of which {} % exist; the first one is the scribe. Each writes {} MiB in files of \
         1 MiB, and then reads the other one's. Resident memory, as the system counts it. {}",
        place.config.log_blocks, args.place.fill, args.mib, place.told
    ));
    let head = ["mount", "once mounted", "after use", "at most", "bound", "holds"];
    let mut table = Table::new(head);
    for (at, name) in ["the scribe", "another one"].into_iter().enumerate() {
        let holds = if end[at].most <= BOUNDS[at] { "yes" } else { "no" };
        let found = [begin[at].now, end[at].now, end[at].most, BOUNDS[at]].map(bytes);
        table.row([name.to_owned()].into_iter().chain(found).chain([holds.to_owned()]));
    }
    report.table(&table);
    report.text(&loaded()?);
    report.finish(write)
}

fn resident(mounts: [&Mounted; 2]) -> Result<[Resident; 2]> {
    let [scribe, other] = mounts.map(|mount| Resident::of(mount.process()));
    Ok([scribe?, other?])
}

fn put(dir: &Path, mib: u64) -> Result<()> {
    std::fs::create_dir(dir)?;
    for number in 0..mib {
        let mut file = File::create(dir.join(number.to_string()))?;
        file.write_all(&vec![number as u8; FILE])?;
        file.sync_all()?;
    }
    Ok(())
}

fn take(dir: &Path, mib: u64) -> Result<()> {
    for number in 0..mib {
        let mut found = Vec::new();
        File::open(dir.join(number.to_string()))?.read_to_end(&mut found)?;
        ensure!(found == vec![number as u8; FILE], "file {number} is not what was written");
    }
    Ok(())
}
