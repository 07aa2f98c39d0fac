//! The trees whose adversary sees reads too, for experiments on volumes of either.

use anyhow::Result;
use clap::ValueEnum;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::Store;
use oblivio_volume::windows::{WindowOptions, WindowVolume};
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use std::sync::Arc;

/// An engine of volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Path ORAM.
    Tree,
    /// The tree in windows, on objects that are written once.
    Windows,
}

impl Engine {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Tree => "tree",
            Engine::Windows => "windows",
        }
    }

    /// Makes a volume of this engine in an empty store.
    ///
    /// # Errors
    /// Those of the volume.
    pub fn create(
        self,
        store: Arc<dyn Store>,
        block_bytes: usize,
        capacity_bytes: u64,
        memory_bytes: usize,
    ) -> Result<Volume> {
        let open = OpenOptions { memory_bytes, ..OpenOptions::default() };
        let kdf = KdfParams::TEST;
        let made = match self {
            Engine::Tree => {
                let create = CreateOptions { block_bytes, capacity_bytes, kdf };
                Volume::create(store, &passphrase(), create, open)?
            }
            Engine::Windows => {
                let create = WindowOptions::new(block_bytes, capacity_bytes, true);
                WindowVolume::create(store, &passphrase(), kdf, create, open)?.into()
            }
        };
        Ok(made)
    }
}

/// The passphrase of all volumes here.
pub fn passphrase() -> Passphrase {
    Passphrase::new("lab")
}
