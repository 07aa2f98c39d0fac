//! What is compared: disks by name, each made in an empty folder.

use super::area::BLOCK;
use super::detwo::DetWo;
use super::plain::Plain;
use anyhow::{Result, bail};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{LocalStore, Store};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, Volume};
use std::path::Path;
use std::sync::Arc;

/// One of them.
#[derive(Debug)]
pub struct System {
    /// What it is called on the command line.
    pub key: &'static str,
    /// What it is called in tables.
    pub name: &'static str,
    /// Makes it in an empty folder, for a disk of so many bytes.
    pub create: fn(&Path, u64) -> Result<Box<dyn BlockSpace>>,
}

/// The one that all others are told in parts of.
pub const BASELINE: &str = "plain";
/// The one that ours are told in multiples of.
pub const RIVAL: &str = "detwo";
/// What is measured when nothing else is asked for.
pub const USUAL: [&str; 3] = [BASELINE, RIVAL, "sequential"];
/// The same with the access times in memory and on the disk.
pub const BOTH_MAPS: [&str; 4] = [BASELINE, RIVAL, "sequential", "sequential-map"];

const SYSTEMS: [System; 6] = [
    System { key: BASELINE, name: "plain sealed", create: plain },
    System { key: RIVAL, name: "DetWoORAM", create: |dir, size| detwo(dir, size, 1) },
    System { key: "detwo-thirds", name: "DetWoORAM 4/3", create: |dir, size| detwo(dir, size, 3) },
    System {
        key: "sequential",
        name: "sequential",
        create: |dir, size| sequential(dir, size, false),
    },
    System {
        key: "sequential-map",
        name: "sequential, map on disk",
        create: |dir, size| sequential(dir, size, true),
    },
    System { key: "tree", name: "tree", create: tree },
];

impl System {
    /// The one of this name.
    ///
    /// # Errors
    /// Names those that there are.
    pub fn find(key: &str) -> Result<&'static System> {
        let Some(found) = SYSTEMS.iter().find(|system| system.key == key) else {
            bail!("{key} is none of {}", SYSTEMS.map(|system| system.key).join(", "));
        };
        Ok(found)
    }
}

/// The layer that all of them are stored on.
fn store(dir: &Path) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(LocalStore::open(dir)?))
}

fn plain(dir: &Path, size: u64) -> Result<Box<dyn BlockSpace>> {
    Ok(Box::new(Plain::create(store(dir)?, size.div_ceil(BLOCK as u64))))
}

fn detwo(dir: &Path, size: u64, every: u64) -> Result<Box<dyn BlockSpace>> {
    Ok(Box::new(DetWo::create(store(dir)?, size.div_ceil(BLOCK as u64), every)?))
}

fn sequential(dir: &Path, size: u64, map_on_disk: bool) -> Result<Box<dyn BlockSpace>> {
    let options = SequentialOptions::new(BLOCK, size);
    let options = if map_on_disk { options.map_on_disk() } else { options };
    let (secret, open) = (Passphrase::new("lab"), OpenOptions::default());
    let store = store(dir)?;
    let (kdf, progress) = (KdfParams::TEST, &mut |_, _| {});
    Ok(Box::new(SequentialVolume::create(store, &secret, kdf, options, open, progress)?))
}

fn tree(dir: &Path, size: u64) -> Result<Box<dyn BlockSpace>> {
    let create = CreateOptions { block_bytes: BLOCK, capacity_bytes: size, kdf: KdfParams::TEST };
    let open = OpenOptions { short_pauses: true, ..OpenOptions::default() };
    Ok(Box::new(Volume::create(store(dir)?, &Passphrase::new("lab"), create, open)?))
}
