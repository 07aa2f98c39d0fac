//! `oblivio mount share://…` in a process of its own; a folder is its computer.

use super::place::{PASSPHRASE, Served};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Why no experiment with mounts can run here, if none can.
pub fn refused() -> Option<&'static str> {
    let tool = Command::new("fusermount3").arg("-V").output();
    let may = Path::new("/dev/fuse").exists() && tool.is_ok();
    (!may).then_some("skipped: nobody may mount here (no /dev/fuse, or no fusermount3)")
}

/// A computer that may mount the volume.
pub struct Computer {
    tool: PathBuf,
    home: PathBuf,
    at: String,
}

impl Computer {
    /// One with a token, and with its files in a folder of this name.
    ///
    /// # Errors
    /// Those of the server and of the system.
    pub fn new(served: &Served<'_>, tool: &Path, scratch: &Path, name: &str) -> Result<Self> {
        let (home, token) = (scratch.join(name), served.token(name)?);
        std::fs::create_dir_all(home.join("mount"))?;
        token.store(&home.join("token"))?;
        Ok(Self { tool: tool.into(), home, at: token.address.to_string() })
    }

    /// Mounts the volume, and waits until it is there.
    ///
    /// # Errors
    /// Those of the command.
    pub fn mount(&self) -> Result<Mounted> {
        let dir = self.home.join("mount");
        let mut command = Command::new(&self.tool);
        command.args(["mount", &self.at]).arg(&dir);
        command.arg("--token-file").arg(self.home.join("token"));
        command.env("OBLIVIO_PASSPHRASE", PASSPHRASE);
        command.env("XDG_STATE_HOME", self.home.join("state"));
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(child.stdout.take().context("no pipe")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        let mounted = Mounted { child, dir };
        ensure!(line.starts_with("Mounted"), "the mount did not come up: {line}");
        Ok(mounted)
    }
}

/// A mount. It is taken away when it is dropped.
pub struct Mounted {
    child: Child,
    /// Where it is.
    pub dir: PathBuf,
}

impl Mounted {
    /// The process that serves it.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Unmounts it in order.
    ///
    /// # Errors
    /// Those of the command.
    pub fn end(mut self) -> Result<()> {
        let status = Command::new("fusermount3").arg("-u").arg(&self.dir).status()?;
        ensure!(status.success(), "{} stays mounted", self.dir.display());
        let ended = self.child.wait()?;
        ensure!(ended.success(), "the mount ended with {ended}");
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        let _ = Command::new("fusermount3").arg("-uz").arg(&self.dir).output();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
