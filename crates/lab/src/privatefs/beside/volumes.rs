//! The sides that are Oblivio's: a shared volume, and a volume with one writer.

use super::batch::{Batch, Times, put_all, take_all};
use crate::engines::{Engine, passphrase};
use crate::share::mounts::Computer;
use crate::share::place::{Place, Served, Which};
use crate::tool::Tool;
use anyhow::Result;
use oblivio_serve::mount::within::{Within, mount_within};
use oblivio_store::LocalStore;
use oblivio_testkit::LatencyStore;
use oblivio_testkit::latency::Latency;
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::{CreateOptions, DEFAULT_MEMORY, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The most blocks of a shared volume, as a logarithm; and how many exist, in percent.
pub const LOG: u32 = 14;
const FILL: u64 = 20;
/// Bytes that a volume with one writer may have: as many as the shared one.
const CAPACITY: u64 = 4096 << LOG;
/// Bytes that are there before.
pub const BEFORE: u64 = CAPACITY * FILL / 100;

/// A shared volume behind the delay: times of the mount that is the scribe, and of another one.
///
/// # Errors
/// Those of the server and of the mounts.
pub fn shared(
    tool: &Tool,
    dir: Option<&Path>,
    batches: &[Batch],
    round_trip: Duration,
) -> Result<[Vec<Times>; 2]> {
    let (path, dir) = (tool.path()?, dir.map(Path::to_path_buf));
    let which = Which { tool: tool.clone(), log: LOG, fill: FILL, dir, keep: None };
    let place = Place::prepare(&which)?;
    let served = Served::start(&place, &path, round_trip)?;
    let scratch = tempfile::tempdir()?;
    let [anna, ben] = ["anna", "ben"].map(|it| Computer::new(&served, &path, scratch.path(), it));
    let (anna, ben) = (anna?, ben?);
    let mut times = [(); 2].map(|()| vec![Times::default(); batches.len()]);
    let mount = anna.mount()?;
    put_all(batches, &mount.dir, &mut times[0])?;
    mount.end()?;
    // A new process, so nothing is warm.
    let scribe = anna.mount()?;
    take_all(batches, &scribe.dir, &mut times[0])?;
    let other = ben.mount()?;
    take_all(batches, &other.dir, &mut times[1])?;
    let own = other.dir.join("own");
    std::fs::create_dir(&own)?;
    put_all(batches, &own, &mut times[1])?;
    other.end()?;
    scribe.end()?;
    Ok(times)
}

/// A volume with one writer on a folder, each call to which takes a round trip.
struct OneWriter {
    volume: PathBuf,
    dir: PathBuf,
    round_trip: Duration,
}

impl OneWriter {
    /// Makes it, with as much in it as the shared one has.
    fn create(scratch: &Path, round_trip: Duration) -> Result<Self> {
        let (volume, dir) = (scratch.join("volume"), scratch.join("mount"));
        std::fs::create_dir(&dir)?;
        let store = Arc::new(LocalStore::create(&volume)?);
        let block = CreateOptions::default().block_bytes;
        let made = Engine::Tree.create(store, block, CAPACITY, DEFAULT_MEMORY)?;
        let fs = FileSystem::format(Box::new(made))?;
        let (_, before) = fs.create(ROOT_INO, b"before", NewNode::default())?;
        let content = vec![7; 64 << 10];
        for at in (0..BEFORE).step_by(content.len()) {
            fs.write(before, at, &content)?;
        }
        drop(fs.into_blocks()?);
        Ok(Self { volume, dir, round_trip })
    }

    fn mount(&self) -> Result<Within> {
        // Rate 0 is any rate: the line to the shared volume's server has no limit either.
        let far = Latency::new(self.round_trip, 0);
        let store = LatencyStore::new(LocalStore::open(&self.volume)?, far);
        Ok(mount_within(Arc::new(store), &passphrase(), &self.dir, OpenOptions::default())?)
    }

    /// Mounts it for a piece of work. It is unmounted also after a failure, so that its folder can
    /// be removed.
    fn mounted(&self, act: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let mount = self.mount()?;
        let acted = act(&self.dir);
        let ended = mount.end();
        acted?;
        Ok(ended?)
    }
}

/// A volume with one writer behind the delay.
///
/// # Errors
/// Those of the volume and of the mount.
pub fn one_writer(
    dir: Option<&Path>,
    batches: &[Batch],
    round_trip: Duration,
) -> Result<Vec<Times>> {
    let dir = dir.map_or_else(std::env::temp_dir, Path::to_path_buf);
    let scratch = tempfile::tempdir_in(dir)?;
    let volume = OneWriter::create(scratch.path(), round_trip)?;
    let mut times = vec![Times::default(); batches.len()];
    volume.mounted(|dir| put_all(batches, dir, &mut times))?;
    volume.mounted(|dir| take_all(batches, dir, &mut times))?;
    Ok(times)
}
