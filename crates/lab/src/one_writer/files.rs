//! A mount of each engine, by turns, and the same work of a program on both.

use crate::engines::Engine;
use crate::files::on_disk;
use crate::report::{Report, Table, bytes, count, median};
use crate::served::Served;
use anyhow::{Context, Result, ensure};
use oblivio_testkit::SplitMix64;
use rustix::fs::{Advice, fadvise, syncfs};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// A directory on the disk to measure; by default the system's for temporary files
    #[arg(long)]
    dir: Option<PathBuf>,
    /// MiB of the large file
    #[arg(long, default_value_t = 256)]
    mib: u64,
    /// MiB of the volumes
    #[arg(long, default_value_t = 1024)]
    volume_mib: u64,
    /// Small files of 4 KiB
    #[arg(long, default_value_t = 2000)]
    small: u64,
    /// Seconds of a random job
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Rounds; the table shows the medians
    #[arg(long, default_value_t = 5)]
    rounds: u64,
}

const CALL: usize = 1 << 20;
const SMALL: usize = 4096;

type Job = (&'static str, &'static str, fn(&Mount, &Args, u64) -> Result<f64>);

/// Each gives a rate. They come in this order: the large file is there once it was written.
const JOBS: [Job; 7] = [
    ("sequential write, one fsync", "MB/s", Mount::write),
    ("sequential read", "MB/s", Mount::read),
    ("random reads of 4 KiB", "/s", Mount::random_reads),
    ("random writes of 4 KiB, each fsynced", "/s", Mount::random_writes),
    ("small files written, one sync", "files/s", Mount::small_write),
    ("small files read", "files/s", Mount::small_read),
    ("small files removed, one sync", "files/s", Mount::small_remove),
];

/// Runs the experiment.
///
/// # Errors
/// Those of the mounts and of the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = tempfile::tempdir_in(&dir).with_context(|| dir.display().to_string())?;
    let mut mounts = Vec::new();
    for engine in Engine::BOTH {
        mounts.push(Mount(Served::start(engine, scratch.path(), args.volume_mib)?));
    }
    let mut report = Report::new("one-writer-mounted", "One writer: tree and pyramid, mounted");
    report.text(&format!(
        "Two mounts, of a volume of {} MiB on each engine with default settings, side by side on \
         one disk, each by a process of its own as `oblivio mount` does. A program does the same on \
         both by turns: calls of 1 MiB to a file of {}, calls of 4 KiB at random places in it for \
         {} seconds, and {} files of 4 KiB. Before reads the kernel forgets the file; the volume's \
         folder stays in its cache. Medians of {} rounds. `peak memory` is the highest resident set \
         of the mount's process.",
        args.volume_mib,
        bytes(args.mib << 20),
        args.seconds,
        count(args.small as f64),
        args.rounds
    ));
    let mut table = Table::new(["job", "tree", "pyramid", "pyramid / tree"]);
    for ((name, unit, _), rates) in JOBS.iter().zip(measured(args, &mounts)?) {
        let [tree, pyramid] = rates.map(|rates| median(&rates));
        let shown = |rate: f64| format!("{} {unit}", count(rate)).replace(" /s", "/s");
        table.row([
            (*name).to_owned(),
            shown(tree),
            shown(pyramid),
            format!("{:.2}", pyramid / tree),
        ]);
    }
    let mut ends = Vec::new();
    for mount in mounts {
        let (memory, volume) = mount.0.end()?;
        ends.push((memory, on_disk(&volume)?));
    }
    table.row(std::iter::once("peak memory".into()).chain(ratio(ends[0].0, ends[1].0)));
    table.row(std::iter::once("stored at the end".into()).chain(ratio(ends[0].1, ends[1].1)));
    report.table(&table);
    report.finish(write)
}

/// The rates of each job, by engine.
fn measured(args: &Args, mounts: &[Mount]) -> Result<Vec<[Vec<f64>; 2]>> {
    let mut found: Vec<[Vec<f64>; 2]> = vec![Default::default(); JOBS.len()];
    for round in 0..args.rounds {
        for ((name, unit, job), found) in JOBS.iter().zip(&mut found) {
            for (mount, found) in mounts.iter().zip(found) {
                let rate = job(mount, args, round).with_context(|| format!("{name}, {mount:?}"))?;
                eprintln!("{round} {name} {:?}: {rate:.1} {unit}", mount.0.engine());
                found.push(rate);
            }
        }
    }
    Ok(found)
}

fn ratio(tree: u64, pyramid: u64) -> [String; 3] {
    [bytes(tree), bytes(pyramid), format!("{:.2}", pyramid as f64 / tree as f64)]
}

/// A mount at work.
#[derive(Debug)]
struct Mount(Served);

impl Mount {
    fn large(&self) -> PathBuf {
        self.0.dir().join("large")
    }

    fn write(&self, args: &Args, round: u64) -> Result<f64> {
        let mut content = vec![0; CALL];
        let mut rng = SplitMix64::new(round);
        content.fill_with(|| rng.next_u64() as u8);
        let begun = Instant::now();
        let mut file =
            File::options().create(true).truncate(false).write(true).open(self.large())?;
        for _ in 0..args.mib {
            file.write_all(&content)?;
        }
        file.sync_all()?;
        Ok((args.mib << 20) as f64 / 1e6 / begun.elapsed().as_secs_f64())
    }

    fn read(&self, args: &Args, round: u64) -> Result<f64> {
        let mut file = cold(&self.large())?;
        let (mut buf, begun) = (vec![0; CALL], Instant::now());
        for _ in 0..args.mib {
            file.read_exact(&mut buf)?;
        }
        let rate = (args.mib << 20) as f64 / 1e6 / begun.elapsed().as_secs_f64();
        let first = SplitMix64::new(round).next_u64() as u8;
        ensure!(buf[0] == first, "the large file is not what it was");
        Ok(rate)
    }

    fn random_reads(&self, args: &Args, round: u64) -> Result<f64> {
        let file = cold(&self.large())?;
        fadvise(&file, 0, None, Advice::Random)?;
        let mut buf = [0; SMALL];
        self.at_random(args, round, |at| Ok(file.read_exact_at(&mut buf, at)?))
    }

    fn random_writes(&self, args: &Args, round: u64) -> Result<f64> {
        let file = File::options().write(true).open(self.large())?;
        self.at_random(args, round, |at| {
            file.write_all_at(&[round as u8; SMALL], at)?;
            Ok(file.sync_all()?)
        })
    }

    fn at_random(
        &self,
        args: &Args,
        round: u64,
        mut act: impl FnMut(u64) -> Result<()>,
    ) -> Result<f64> {
        let mut rng = SplitMix64::new(round + 1000);
        let (begun, mut done) = (Instant::now(), 0u32);
        while begun.elapsed() < Duration::from_secs(args.seconds) {
            act(rng.below((args.mib << 20) / SMALL as u64) * SMALL as u64)?;
            done += 1;
        }
        Ok(f64::from(done) / begun.elapsed().as_secs_f64())
    }

    fn small(&self, round: u64) -> PathBuf {
        self.0.dir().join(format!("small-{round}"))
    }

    fn small_write(&self, args: &Args, round: u64) -> Result<f64> {
        let (folder, begun) = (self.small(round), Instant::now());
        fs::create_dir(&folder)?;
        for name in 0..args.small {
            fs::write(folder.join(name.to_string()), [name as u8; SMALL])?;
        }
        self.synced(args, begun)
    }

    fn small_read(&self, args: &Args, round: u64) -> Result<f64> {
        let folder = self.small(round);
        for name in 0..args.small {
            cold(&folder.join(name.to_string()))?;
        }
        let begun = Instant::now();
        for name in 0..args.small {
            let found = fs::read(folder.join(name.to_string()))?;
            ensure!(found == [name as u8; SMALL], "a small file is not what it was");
        }
        Ok(args.small as f64 / begun.elapsed().as_secs_f64())
    }

    fn small_remove(&self, args: &Args, round: u64) -> Result<f64> {
        let begun = Instant::now();
        fs::remove_dir_all(self.small(round))?;
        self.synced(args, begun)
    }

    /// Small files a second, once all is durable.
    fn synced(&self, args: &Args, begun: Instant) -> Result<f64> {
        syncfs(File::open(self.0.dir())?)?;
        Ok(args.small as f64 / begun.elapsed().as_secs_f64())
    }
}

/// A file that the kernel has nothing of.
fn cold(path: &Path) -> Result<File> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    file.sync_all()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(file)
}
