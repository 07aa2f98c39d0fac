//! The compared disks by name, each made in an empty store.

use super::area::BLOCK;
use super::detwo::{Areas, DetWo, DetWoMap, Reads, Shape};
use super::plain::Plain;
use anyhow::{Result, bail};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::Store;
use oblivio_volume::LaneParameters;
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, Volume};
use std::sync::Arc;

type Made = Result<Box<dyn BlockSpace>>;

/// One of them.
#[derive(Debug)]
pub struct System {
    /// Its name on the command line.
    pub key: &'static str,
    /// Its name in tables.
    pub name: &'static str,
    /// The disks that ours is compared with: they keep their maps the same way.
    pub rivals: &'static [&'static str],
    /// Makes it in an empty store, for a disk of this many bytes.
    pub create: fn(Arc<dyn Store>, u64) -> Made,
}

/// The baseline of all others.
pub const BASELINE: &str = "plain";
/// DetWoORAM, with its map in memory.
const RIVAL: &str = "detwo";
/// The same with its map on the disk.
const RIVAL_MAP: &str = "detwo-map";
/// And with reads as published.
const PUBLISHED: &str = "detwo-published";
/// The disks measured by default.
pub const USUAL: [&str; 3] = [BASELINE, RIVAL, "sequential"];
/// The same, each with its map in memory and on the disk, and the rival as published.
pub const BOTH_MAPS: [&str; 6] =
    [BASELINE, RIVAL, "sequential", RIVAL_MAP, PUBLISHED, "sequential-map"];

const SYSTEMS: [System; 11] = [
    System { key: BASELINE, name: "plain sealed", rivals: &[], create: plain },
    System {
        key: RIVAL,
        name: "DetWoORAM",
        rivals: &[],
        create: |store, size| detwo(store, size, 1),
    },
    System {
        key: "detwo-thirds",
        name: "DetWoORAM 4/3",
        rivals: &[],
        create: |store, size| detwo(store, size, 3),
    },
    System {
        key: "sequential",
        name: "sequential",
        rivals: &[RIVAL],
        create: |store, size| sequential(store, SequentialOptions::without_seeks(BLOCK, size)),
    },
    System {
        key: "sequential-seeks",
        name: "sequential, for seeks",
        rivals: &[RIVAL],
        create: |store, size| sequential(store, SequentialOptions::new(BLOCK, size)),
    },
    System {
        key: "lane",
        name: "with a lane of 1/8",
        rivals: &["sequential"],
        create: |store, size| sequential(store, with_lane(size, 8)),
    },
    System {
        key: "lane-quarter",
        name: "with a lane of 1/4",
        rivals: &["sequential"],
        create: |store, size| sequential(store, with_lane(size, 4)),
    },
    System {
        key: RIVAL_MAP,
        name: "DetWoORAM, map on disk",
        rivals: &[],
        create: |store, size| detwo_map(store, size, Reads::Known),
    },
    System {
        key: PUBLISHED,
        name: "DetWoORAM, as published",
        rivals: &[],
        create: |store, size| detwo_map(store, size, Reads::Compared),
    },
    System {
        key: "sequential-map",
        name: "sequential, map on disk",
        rivals: &[RIVAL_MAP, PUBLISHED],
        create: |store, size| sequential(store, SequentialOptions::new(BLOCK, size).map_on_disk()),
    },
    System { key: "tree", name: "tree", rivals: &[], create: tree },
];

impl System {
    /// The disk of this name.
    ///
    /// # Errors
    /// There is none; the error lists the names.
    pub fn find(key: &str) -> Result<&'static System> {
        let Some(found) = SYSTEMS.iter().find(|system| system.key == key) else {
            bail!("{key} is none of {}", SYSTEMS.map(|system| system.key).join(", "));
        };
        Ok(found)
    }
}

fn plain(store: Arc<dyn Store>, size: u64) -> Result<Box<dyn BlockSpace>> {
    Ok(Box::new(Plain::create(store, size.div_ceil(BLOCK as u64))))
}

fn detwo(store: Arc<dyn Store>, size: u64, every: u64) -> Result<Box<dyn BlockSpace>> {
    let areas = Areas { blocks: size.div_ceil(BLOCK as u64), every, reads: Reads::Known };
    Ok(Box::new(DetWo::create(store, areas)?))
}

fn detwo_map(store: Arc<dyn Store>, size: u64, reads: Reads) -> Result<Box<dyn BlockSpace>> {
    let areas = Areas { blocks: size.div_ceil(BLOCK as u64), every: 1, reads };
    Ok(Box::new(DetWoMap::create(store, areas, Shape::default())?))
}

fn sequential(store: Arc<dyn Store>, options: SequentialOptions) -> Result<Box<dyn BlockSpace>> {
    let (secret, open) = (Passphrase::new("lab"), OpenOptions::default());
    let (kdf, progress) = (KdfParams::TEST, &mut |_, _| {});
    Ok(Box::new(SequentialVolume::create(store, &secret, kdf, options, open, progress)?))
}

/// The defaults with a lane beside it that nobody opens.
fn with_lane(size: u64, share: u8) -> SequentialOptions {
    let lanes = Some(LaneParameters { share, ..LaneParameters::default() });
    SequentialOptions { lanes, ..SequentialOptions::without_seeks(BLOCK, size) }
}

fn tree(store: Arc<dyn Store>, size: u64) -> Result<Box<dyn BlockSpace>> {
    let create = CreateOptions { block_bytes: BLOCK, capacity_bytes: size, kdf: KdfParams::TEST };
    let open = OpenOptions { short_pauses: true, ..OpenOptions::default() };
    Ok(Box::new(Volume::create(store, &Passphrase::new("lab"), create, open)?))
}
