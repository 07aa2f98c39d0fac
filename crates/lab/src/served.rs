//! A volume on a folder of the disk, mounted by a process of its own as `oblivio mount` does: so
//! its memory is known, and a program that maps its files never waits for itself.

use crate::engines::{Engine, passphrase};
use crate::files::high_water;
use anyhow::{Context, Result, ensure};
use oblivio_serve::mount::within::mount_within;
use oblivio_store::LocalStore;
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{CreateOptions, DEFAULT_MEMORY, OpenOptions, Volume};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

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
    if !volume.exists() {
        let store = Arc::new(LocalStore::create(&volume)?);
        let block = CreateOptions::default().block_bytes;
        let made = args.engine.create(store, block, args.mib << 20, DEFAULT_MEMORY)?;
        drop(FileSystem::format(Box::new(made))?.into_blocks()?);
    }
    fs::create_dir_all(&dir)?;
    let mount = mount_within(Arc::new(LocalStore::open(&volume)?), &passphrase(), &dir)?;
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
        let args = Args { engine, scratch: scratch.to_owned(), mib };
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["served", "--engine", engine.name()]);
        command.arg("--scratch").arg(scratch).args(["--mib", &mib.to_string()]);
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
