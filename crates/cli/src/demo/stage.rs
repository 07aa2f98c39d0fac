//! The demo's folder, and the volume in it.

use super::files::SampleFiles;
use crate::recorder::Recorder;
use anyhow::Result;
use oblivio_audit::record::RecordedSession;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::LocalStore;
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Small blocks, and little memory while the storage is watched: it must see as much of this small
/// volume as of a large one.
pub const BLOCK_BYTES: usize = 4 << 10;
const WATCHED_MEMORY: usize = 2 << 20;
/// Memory the rest of the time.
const MEMORY: usize = 64 << 20;

/// The demo's folder and its content.
pub struct Stage {
    pub source: SampleFiles,
    /// The volume's folder.
    pub volume: PathBuf,
    /// Folder for the files read back.
    pub scratch: PathBuf,
    pub passphrase: Passphrase,
}

impl Stage {
    /// Opens the volume of a folder in a new session.
    pub fn open(&self, folder: &Path, mut options: OpenOptions) -> Result<Volume> {
        if options.memory_bytes == 0 {
            options.memory_bytes = MEMORY;
        }
        let store = Arc::new(LocalStore::open(folder)?);
        Ok(Volume::open(store, &self.passphrase, options)?)
    }

    /// The same with little memory and a recorder on the store.
    pub fn open_watched(&self, folder: &Path, recorder: &Recorder) -> Result<Volume> {
        recorder.begin(RecordedSession::default());
        let store = Arc::new(recorder.over(LocalStore::open(folder)?));
        let options = OpenOptions {
            memory_bytes: WATCHED_MEMORY,
            on_shown: Some(recorder.callback()),
            ..OpenOptions::default()
        };
        Ok(Volume::open(store, &self.passphrase, options)?)
    }

    /// Makes the volume.
    pub fn create(&self) -> Result<Volume> {
        let create = CreateOptions {
            block_bytes: BLOCK_BYTES,
            capacity_bytes: 1 << 30,
            // A long random passphrase need not be costly to guess.
            kdf: KdfParams { memory_kib: 32, passes: 1, lanes: 4 },
        };
        let open = OpenOptions { memory_bytes: MEMORY, ..OpenOptions::default() };
        let store = Arc::new(LocalStore::create(&self.volume)?);
        Ok(Volume::create(store, &self.passphrase, create, open)?)
    }
}
