//! A mount: its threads, and how it ends.

use super::ids::Ids;
use super::kernel::SharedKernel;
use super::notify;
use super::options::{MountStop, SharedMountOptions};
use crate::error::{Error, Result};
use crate::fuse;
use crate::log;
use crate::mount::attach;
use crate::threads::spawn;
use oblivio_privatefs::PrivateFs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// Requests of the kernel that are carried out at the same time.
const THREADS: usize = 16;

/// An active mount. It ends when anybody unmounts the directory.
pub struct SharedMount {
    dir: PathBuf,
    fs: Arc<PrivateFs>,
    stop: Arc<MountStop>,
    threads: Vec<JoinHandle<()>>,
    kernel: JoinHandle<std::io::Result<()>>,
}

/// Mounts a file system and serves it on threads of its own. First it removes files that ended
/// sessions left.
///
/// # Errors
/// That of the system if it refuses the mount.
pub fn serve(fs: Arc<PrivateFs>, dir: &Path, options: &SharedMountOptions) -> Result<SharedMount> {
    if let Err(error) = fs.clean_up() {
        log::note(&format!("files of ended sessions stay: {error}"));
    }
    // The list of mounts has its full name.
    let dir = dir.canonicalize()?;
    let device = attach::attach(&dir, &options.look)?;
    let ids = Arc::new(Ids::default());
    let pages = Arc::new(notify::Pages { ids: Arc::clone(&ids), notifier: OnceLock::new() });
    let kernel = SharedKernel::new(Arc::clone(&fs), Arc::clone(&pages), options);
    let session =
        fuse::session(kernel, device, THREADS).inspect_err(|_| drop(attach::detach(&dir, true)))?;
    let notifier = session.notifier();
    let _ = pages.notifier.set(notifier.clone());
    let stop = Arc::new(MountStop::default());
    let kernel = spawn("kernel", move || session.run())?;
    let mut threads = Vec::new();
    let (of, until) = (Arc::clone(&fs), Arc::clone(&stop));
    threads.push(spawn("notices", move || notify::run(&of, &ids, &notifier, &until))?);
    let (of, until, every) = (Arc::clone(&fs), Arc::clone(&stop), options.write_every);
    threads.push(spawn("write back", move || {
        while !until.wait(every) {
            // Who wrote it gets the error when it is synced or closed.
            let _ = of.flush_all();
        }
    })?);
    attach::tune(&dir);
    Ok(SharedMount { dir, fs, stop, threads, kernel })
}

impl SharedMount {
    /// Waits until the mount has ended and everything is written.
    ///
    /// # Errors
    /// Those of the last writes.
    pub fn wait(self) -> Result<()> {
        let served = self.kernel.join();
        self.stop.end();
        for thread in self.threads {
            let _ = thread.join();
        }
        if let Ok(Err(error)) = served {
            log::note(&format!("the line to the kernel broke: {error}"));
        }
        self.fs.flush_all().map_err(|error| Error::System {
            doing: "writing what was not synced".into(),
            source: std::io::Error::other(error),
        })
    }

    /// Unmounts, and returns when everything is written.
    ///
    /// # Errors
    /// The directory is in use; those of the last writes.
    pub fn end(self) -> Result<()> {
        attach::detach_when_free(&self.dir)?;
        self.wait()
    }
}
