//! A volume on a folder of the disk, mounted by a process of its own as `oblivio mount` does: so
//! its memory is known, and a program that maps its files never waits for itself.

use crate::engines::{Engine, passphrase};
use crate::files::high_water;
use crate::slow_syncs::{SlowKeeper, SlowSyncs};
use anyhow::{Context, Result, ensure};
use oblivio_app::Remembered;
use oblivio_serve::mount::within::mount_within;
use oblivio_store::LocalStore;
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{CreateOptions, DEFAULT_MEMORY, OpenOptions, Records, Volume};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// What the process mounts.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The engine of a new volume
    #[arg(long)]
    engine: Engine,
    /// Where volume and mount are
    #[arg(long)]
    scratch: PathBuf,
    /// MiB of a new volume
    #[arg(long)]
    mib: u64,
    #[command(flatten)]
    syncs: Syncs,
}

/// How its records are synced, and on which disk.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq)]
pub struct Syncs {
    /// Milliseconds that each sync takes longer than it does
    #[arg(long, default_value_t = 0.0)]
    pub sync_delay: f64,
    /// Sync each record before its reads
    #[arg(long)]
    pub strict: bool,
}

impl Syncs {
    fn delay(self) -> Duration {
        Duration::from_secs_f64(self.sync_delay / 1e3)
    }

    /// As `oblivio mount` opens a volume.
    fn open(self, state: PathBuf, volume: &Path) -> OpenOptions {
        let keeper = Remembered::in_folder(state, volume, false);
        let keeper = SlowKeeper { below: keeper, delay: self.delay() };
        let records = if self.strict { Records::First } else { Records::Ahead };
        OpenOptions { keeper: Some(Box::new(keeper)), records, ..OpenOptions::default() }
    }
}

impl Args {
    fn volume(&self) -> PathBuf {
        self.scratch.join(format!("{}-volume", self.engine.name()))
    }

    fn dir(&self) -> PathBuf {
        self.scratch.join(format!("{}-mount", self.engine.name()))
    }
}

/// Mounts the volume, which is made if it is not there, until the parent goes.
///
/// # Errors
/// Those of the volume and of the mount.
pub fn run(args: &Args) -> Result<()> {
    let (volume, dir) = (args.volume(), args.dir());
    let open = |volume: &Path| args.syncs.open(args.scratch.join("state"), volume);
    if !volume.exists() {
        let store = Arc::new(LocalStore::create(&volume)?);
        let block = CreateOptions::default().block_bytes;
        drop(args.engine.create(store, block, args.mib << 20, DEFAULT_MEMORY)?);
        // By a session of this computer that ends well.
        let store = Arc::new(LocalStore::open(&volume)?);
        let made = Volume::open(store, &passphrase(), open(&volume))?;
        FileSystem::format(Box::new(made))?.into_blocks()?.finish()?;
    }
    fs::create_dir_all(&dir)?;
    let store = SlowSyncs { below: LocalStore::open(&volume)?, delay: args.syncs.delay() };
    let mount = mount_within(Arc::new(store), &passphrase(), &dir, open(&volume))?;
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(mount.end()?)
}

/// Such a process, in the eyes of its parent. It ends when dropped.
#[derive(Debug)]
pub struct Served {
    args: Args,
    child: Child,
    /// Its end tells the process to unmount.
    tell: Option<ChildStdin>,
}

impl Served {
    /// Starts it, and waits until it has mounted.
    ///
    /// # Errors
    /// It failed.
    pub fn start(engine: Engine, scratch: &Path, mib: u64) -> Result<Self> {
        Self::with(engine, scratch, mib, Syncs::default())
    }

    /// The same on a disk with slower syncs, or with strict ones.
    ///
    /// # Errors
    /// It failed.
    pub fn with(engine: Engine, scratch: &Path, mib: u64, syncs: Syncs) -> Result<Self> {
        let args = Args { engine, scratch: scratch.to_owned(), mib, syncs };
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["served", "--engine", engine.name()]);
        command.arg("--scratch").arg(scratch).args(["--mib", &mib.to_string()]);
        command.args(["--sync-delay", &syncs.sync_delay.to_string()]);
        command.args(syncs.strict.then_some("--strict"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let tell = child.stdin.take();
        let hear = child.stdout.take().context("a pipe")?;
        let served = Self { args, child, tell };
        let mut line = String::new();
        BufReader::new(hear).read_line(&mut line)?;
        ensure!(line == "ready\n", "nothing was mounted");
        Ok(served)
    }

    /// Where it is mounted.
    pub fn dir(&self) -> PathBuf {
        self.args.dir()
    }

    /// Unmounts, and checks everything: all blocks of all files, and the tables of each against
    /// the others. The peak of its memory, and where the volume is.
    ///
    /// # Errors
    /// Something is not as it should be.
    pub fn end(mut self) -> Result<(u64, PathBuf)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        self.tell = None;
        ensure!(self.child.wait()?.success(), "the mount failed at its end");
        let volume = self.args.volume();
        let store = Arc::new(LocalStore::open(&volume)?);
        let mut opened = Volume::open(store, &passphrase(), OpenOptions::default())?;
        opened.verify(&mut |_, _| {})?;
        let files = FileSystem::open(Box::new(opened))?;
        let report = files.check()?;
        ensure!(report.problems.is_empty(), "check: {:?}", report.problems);
        drop(files.into_blocks()?);
        Ok((high_water(&status), volume))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.tell = None;
        if let Err(error) = self.child.wait() {
            eprintln!("{} stays mounted: {error}", self.dir().display());
        }
    }
}
