//! A volume under the file layer whose size stays visible from outside.

use anyhow::Result;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::tree::Shape;
use oblivio_engine::{BlockOp, BlockOutcome, Level};
use oblivio_store::Store;
use oblivio_volume::tree::{TreeInfo, TreeVolume};
use oblivio_volume::{
    BlockReader, BlockSpace, CreateOptions, EngineVolume, Least, OpenOptions, Shown,
};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The visible numbers.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The volume, after its last commit or idle work.
    pub info: Option<TreeInfo>,
    /// Bytes in the store at that time.
    pub stored: u64,
    /// Paths shown.
    pub paths: u64,
    /// Buckets read and written.
    pub buckets: u64,
    /// Bytes of buckets, both ways.
    pub bytes: u64,
}

/// The shared view of them.
pub type View = Arc<Mutex<Seen>>;

/// A copy of the current numbers.
pub fn look(view: &View) -> Seen {
    view.lock().map_or_else(|poisoned| poisoned.into_inner().clone(), |seen| seen.clone())
}

/// Slots of a volume's whole tree.
pub fn slots_of(info: &TreeInfo) -> f64 {
    let shape = Shape { depth: Level(info.depth), leaf_slots: info.leaf_slots };
    shape.slots(info.blocks_per_bucket) as f64
}

/// The volume.
pub struct Watched {
    volume: TreeVolume,
    view: View,
}

impl Watched {
    /// A new volume.
    ///
    /// # Errors
    /// Those of the volume.
    pub fn create(
        store: Arc<dyn Store>,
        block_bytes: usize,
        memory_bytes: usize,
    ) -> Result<(Self, View)> {
        let view = View::default();
        let of_batch = view.clone();
        let on_shown = move |shown: &Shown| {
            if let Ok(mut seen) = of_batch.lock() {
                seen.paths += shown.leaves.len() as u64;
                seen.buckets += u64::from(shown.reads + shown.writes);
                seen.bytes += shown.bytes_read + shown.bytes_written;
            }
        };
        let create =
            CreateOptions { block_bytes, kdf: KdfParams::TEST, ..CreateOptions::default() };
        let open = OpenOptions {
            memory_bytes,
            on_shown: Some(Box::new(on_shown)),
            ..OpenOptions::default()
        };
        let volume = TreeVolume::create(store, &Passphrase::new("lab"), create, open)?;
        Ok((Self { volume, view: view.clone() }, view))
    }

    fn show(&self) -> oblivio_volume::Result<()> {
        let (info, stored) = (self.volume.tree_info(), self.volume.info()?.bytes_stored);
        if let Ok(mut seen) = self.view.lock() {
            seen.info = Some(info);
            seen.stored = stored;
        }
        Ok(())
    }
}

impl BlockSpace for Watched {
    fn block_bytes(&self) -> usize {
        self.volume.block_bytes()
    }

    fn capacity_blocks(&self) -> u64 {
        self.volume.capacity_blocks()
    }

    fn addressable_blocks(&self) -> u64 {
        self.volume.addressable_blocks()
    }

    fn can_resize(&self) -> bool {
        self.volume.can_resize()
    }

    fn set_capacity(&mut self, blocks: u64) -> oblivio_volume::Result<()> {
        self.volume.set_capacity(blocks)
    }

    fn room(&self) -> oblivio_volume::Result<Option<u64>> {
        self.volume.room()
    }

    fn reserve(&mut self, blocks: u64) -> oblivio_volume::Result<()> {
        self.volume.reserve(blocks)
    }

    fn access_each(&mut self, ops: Vec<BlockOp>) -> oblivio_volume::Result<Vec<BlockOutcome>> {
        self.volume.access_each(ops)
    }

    fn defer(&mut self, ops: Vec<BlockOp>) -> oblivio_volume::Result<()> {
        self.volume.defer(ops)
    }

    fn root(&self) -> &[u8] {
        self.volume.root()
    }

    fn set_root(&mut self, root: &[u8]) {
        self.volume.set_root(root);
    }

    /// A full commit: no write is deferred, and sizes cover everything written.
    fn commit(&mut self) -> oblivio_volume::Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> oblivio_volume::Result<()> {
        self.volume.finish()?;
        self.show()
    }

    fn give_up(&mut self) {
        self.volume.give_up();
    }

    fn erase(&mut self, ids: &[u64]) -> oblivio_volume::Result<()> {
        self.volume.erase(ids)
    }

    fn erases_cheaply(&self) -> bool {
        self.volume.erases_cheaply()
    }

    fn exists(&self, id: u64) -> bool {
        self.volume.exists(id)
    }

    fn present(&self, ids: Range<u64>) -> oblivio_volume::Result<Vec<bool>> {
        self.volume.present(ids)
    }

    fn pads(&self) -> bool {
        self.volume.pads()
    }

    fn bring_up(&mut self, least: Least) -> oblivio_volume::Result<()> {
        self.volume.bring_up(least)
    }

    fn wants_commit(&self) -> bool {
        self.volume.wants_commit()
    }

    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        self.volume.reader()
    }

    fn discard(&mut self, ids: &[u64]) -> oblivio_volume::Result<()> {
        self.volume.discard(ids)
    }

    fn end_operation(&mut self) -> oblivio_volume::Result<()> {
        self.volume.end_operation()
    }

    fn idle(&mut self) -> oblivio_volume::Result<Option<Duration>> {
        let next = self.volume.idle()?;
        self.show()?;
        Ok(next)
    }

    fn cache_budget(&self) -> usize {
        self.volume.cache_budget()
    }
}
