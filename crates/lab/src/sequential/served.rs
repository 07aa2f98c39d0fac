//! A disk served by its own process, which keeps its memory use separate.

use super::systems::System;
use super::turning::{CACHED, Turning};
use anyhow::{Context, Result, ensure};
use oblivio_serve::nbd::within::nbd_within;
use oblivio_store::{LocalStore, Store};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const READY: &str = "ready";
/// Command to the process: from now on its storage rotates, with an empty cache.
const TURN: &str = "turn";

/// The arguments of the process.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The disk to make
    system: String,
    /// Its size in bytes
    size: u64,
    /// Microseconds of a seek, or 0
    seek: u64,
    /// An empty folder for it
    dir: PathBuf,
    /// The socket to serve it on
    socket: PathBuf,
}

/// Serves a disk until standard input ends.
///
/// # Errors
/// Those of the disk.
pub fn run(args: &Args) -> Result<()> {
    let system = System::find(&args.system)?;
    let local = LocalStore::open(&args.dir)?;
    let (turning, store): (Option<Arc<Turning<LocalStore>>>, Arc<dyn Store>) = match args.seek {
        0 => (None, Arc::new(local)),
        seek => {
            let seek = Duration::from_micros(seek);
            let turning = Arc::new(Turning::new(local, seek, args.size / CACHED));
            (Some(turning.clone()), turning)
        }
    };
    let served = nbd_within((system.create)(store, args.size)?, args.size, &args.socket)?;
    println!("{READY}");
    for line in std::io::stdin().lines() {
        if line? == TURN
            && let Some(turning) = &turning
        {
            turning.turn();
        }
    }
    Ok(served.end()?)
}

/// A served disk. On drop it is stopped and removed.
pub struct Running {
    pub system: &'static System,
    child: Child,
    scratch: TempDir,
}

impl Running {
    /// Makes a disk in a new folder in `dir` and starts its server.
    ///
    /// # Errors
    /// Those of the process.
    pub fn start(system: &'static System, dir: &Path, size: u64, seek: u64) -> Result<Self> {
        let scratch = tempfile::tempdir_in(dir).with_context(|| dir.display().to_string())?;
        let disk = scratch.path().join("disk");
        std::fs::create_dir(&disk)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["sequential", "serve", system.key, &size.to_string(), &seek.to_string()]);
        command.arg(disk).arg(scratch.path().join("socket"));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut running = Self { system, child, scratch };
        let stdout = running.child.stdout.take().context("no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        ensure!(line.trim_end() == READY, "the server of {} did not begin", system.name);
        Ok(running)
    }

    /// The address of its server.
    pub fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.scratch.path().join("socket").display())
    }

    /// Makes its storage rotate from now on, with an empty cache, if it is to rotate at all.
    ///
    /// # Errors
    /// The process has ended.
    pub fn turn(&self) -> Result<()> {
        let mut stdin = self.child.stdin.as_ref().context("no input")?;
        Ok(writeln!(stdin, "{TURN}")?)
    }

    /// The memory peak of its process, in bytes.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn peak_memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let line = line.context("the system does not tell a process's memory")?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes << 10)
    }

    /// Its bytes on the storage.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn stored(&self) -> Result<u64> {
        let files = std::fs::read_dir(self.scratch.path().join("disk"))?;
        let sizes = files.map(|file| Ok(file?.metadata()?.blocks() * 512));
        sizes.sum::<Result<u64>>()
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// Those of its last commit.
    pub fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        ensure!(status.success(), "the server of {} failed", self.system.name);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
