//! A file system of its own, in memory.

use super::server::Skip;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A small file system, unmounted with it.
#[derive(Debug)]
pub struct Tmpfs(PathBuf);

impl Tmpfs {
    /// Mounts one of this size, as `64k`, on a new folder.
    ///
    /// # Errors
    /// This user may not mount file systems.
    pub fn mount(size: &str) -> Result<Self, Skip> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let name = format!("oblivio-tmpfs-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir)?;
        let options = format!("size={size}");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&dir))
            .inspect_err(|_| drop(std::fs::remove_dir(&dir)))?;
        Ok(Self(dir))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// From now on nothing can be written.
    ///
    /// # Errors
    /// The system refuses.
    pub fn make_read_only(&self) -> Result<(), Skip> {
        run(Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg("-l").arg(&self.0));
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn run(command: &mut Command) -> Result<(), Skip> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(Skip(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
