//! A mount in the process that uses it, over any store of that process.

use super::attach;
use super::session::{MountOptions, Mounted, READ_AHEAD, serve};
use crate::error::Result;
use crate::layers::Layers;
use oblivio_crypto::Passphrase;
use oblivio_store::AnyStore;
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{OpenOptions, Volume};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A mounted volume.
pub struct Within {
    mounted: Mounted,
    dir: PathBuf,
}

/// Opens the volume in a store and mounts it, as `oblivio mount` does.
///
/// # Errors
/// Those of the volume; that of the system if it refuses the mount.
pub fn mount_within(
    store: impl Into<AnyStore>,
    passphrase: &Passphrase,
    dir: &Path,
    open: OpenOptions,
) -> Result<Within> {
    let Layers { store, pulse, .. } = Layers::over(store);
    let open = OpenOptions { short_pauses: true, ..open };
    let fs = FileSystem::open_ahead(Box::new(Volume::open(store, passphrase, open)?), READ_AHEAD)?;
    fs.set_clock(Box::new(|| SystemTime::now().into()));
    // The list of mounts has its full name.
    let dir = dir.canonicalize()?;
    let mounted = serve(fs, Vec::new(), &dir, MountOptions { pulse, ..MountOptions::default() })?;
    Ok(Within { mounted, dir })
}

impl Within {
    /// Unmounts, and returns when everything is committed.
    ///
    /// # Errors
    /// Those of the unmount and of the last commit.
    pub fn end(self) -> Result<()> {
        attach::detach_when_free(&self.dir)?;
        self.mounted.wait()
    }
}
