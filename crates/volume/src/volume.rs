//! A volume on any engine.

use crate::Result;
use crate::block::{BlockReader, BlockSpace, Least};
use crate::header::{EngineKind, Header, PublicHeader};
use crate::options::{CreateOptions, OpenOptions, VolumeInfo};
use crate::sequential::{SequentialOptions, SequentialVolume};
use crate::tree::TreeVolume;
use crate::trust::Known;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::tree::Meters;
use oblivio_engine::{BlockAnswer, BlockOp};
use oblivio_store::Store;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// An open volume.
pub struct Volume(Kind);

enum Kind {
    Tree(Box<TreeVolume>),
    Sequential(Box<SequentialVolume>),
}

impl From<TreeVolume> for Volume {
    fn from(volume: TreeVolume) -> Self {
        Self(Kind::Tree(Box::new(volume)))
    }
}

impl From<SequentialVolume> for Volume {
    fn from(volume: SequentialVolume) -> Self {
        Self(Kind::Sequential(Box::new(volume)))
    }
}

impl Volume {
    /// Creates a volume on the tree engine in an empty store and opens it.
    ///
    /// # Errors
    /// `Exists` if there is a volume already, `Invalid` if there is something else or the options
    /// make no sense.
    pub fn create(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        create: CreateOptions,
        open: OpenOptions,
    ) -> Result<Self> {
        TreeVolume::create(store, passphrase, create, open).map(Self::from)
    }

    /// Creates a volume on the sequential engine.
    ///
    /// # Errors
    /// As [`SequentialVolume::create`].
    pub fn create_sequential(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        kdf: KdfParams,
        create: SequentialOptions,
        open: OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self> {
        SequentialVolume::create(store, passphrase, kdf, create, open, progress).map(Self::from)
    }

    /// Opens a volume; replays a session that did not end well.
    ///
    /// # Errors
    /// `WrongPassphrase`, `Unsupported`, `Tampered`, `RolledBack`, `Busy`.
    pub fn open(store: Arc<dyn Store>, passphrase: &Passphrase, open: OpenOptions) -> Result<Self> {
        // Nobody may write between the header and the rest.
        store.lock()?;
        ClosedVolume::read(store)?.open(passphrase, open)
    }

    fn space(&self) -> &dyn BlockSpace {
        match &self.0 {
            Kind::Tree(volume) => &**volume,
            Kind::Sequential(volume) => &**volume,
        }
    }

    fn space_mut(&mut self) -> &mut dyn BlockSpace {
        match &mut self.0 {
            Kind::Tree(volume) => &mut **volume,
            Kind::Sequential(volume) => &mut **volume,
        }
    }

    /// What this computer now knows of the volume.
    pub fn known(&self) -> Known {
        match &self.0 {
            Kind::Tree(volume) => volume.known(),
            Kind::Sequential(volume) => volume.known(),
        }
    }

    /// Information about the volume.
    ///
    /// # Errors
    /// Those of the store.
    pub fn info(&self) -> Result<VolumeInfo> {
        match &self.0 {
            Kind::Tree(volume) => volume.info(),
            Kind::Sequential(volume) => volume.info(),
        }
    }

    /// Reads and authenticates everything: the buckets of a tree, all blocks otherwise; gives their
    /// number. The order reveals nothing.
    ///
    /// # Errors
    /// `Tampered` names the first that differs from its last write.
    pub fn verify(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        match &mut self.0 {
            Kind::Tree(volume) => volume.verify(progress),
            Kind::Sequential(volume) => volume.verify(progress),
        }
    }

    /// The volume, if it is on the tree engine.
    pub fn tree(&mut self) -> Option<&mut TreeVolume> {
        match &mut self.0 {
            Kind::Tree(volume) => Some(volume),
            Kind::Sequential(_) => None,
        }
    }

    /// The tree engine's counts since the volume was opened; zeros without one.
    pub fn meters(&self) -> Meters {
        match &self.0 {
            Kind::Tree(volume) => volume.meters(),
            Kind::Sequential(_) => Meters::default(),
        }
    }
}

/// A volume whose header is read, and that is not open yet. The header is read only once: decisions
/// made on it before a passphrase is known hold for the opened volume, or the opening fails.
pub struct ClosedVolume {
    store: Arc<dyn Store>,
    header: Header,
}

impl ClosedVolume {
    /// Reads the header of the volume in a store.
    ///
    /// # Errors
    /// `Unsupported` if this version knows no such volume.
    pub fn read(store: Arc<dyn Store>) -> Result<Self> {
        let header = Header::load(&*store)?;
        Ok(Self { store, header })
    }

    /// Its header. Nothing of it is authenticated before the volume is open.
    pub fn header(&self) -> PublicHeader {
        self.header.public()
    }

    /// The same volume with a layer over its store.
    ///
    /// # Errors
    /// Those of `layer`.
    pub fn over<E>(
        self,
        layer: impl FnOnce(Arc<dyn Store>) -> std::result::Result<Arc<dyn Store>, E>,
    ) -> std::result::Result<Self, E> {
        Ok(Self { store: layer(self.store)?, ..self })
    }

    /// Opens it; replays a session that did not end well.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open(self, passphrase: &Passphrase, open: OpenOptions) -> Result<Volume> {
        let Self { store, header } = self;
        store.lock()?;
        let master = header.unlock(passphrase)?;
        match header.engine() {
            EngineKind::Tree => {
                TreeVolume::open_with(store, &header, &master, open).map(Volume::from)
            }
            EngineKind::Sequential => {
                SequentialVolume::open_with(store, &header, &master, open).map(Volume::from)
            }
        }
    }
}

impl BlockSpace for Volume {
    fn block_bytes(&self) -> usize {
        self.space().block_bytes()
    }
    fn capacity_blocks(&self) -> u64 {
        self.space().capacity_blocks()
    }
    fn addressable_blocks(&self) -> u64 {
        self.space().addressable_blocks()
    }
    fn can_resize(&self) -> bool {
        self.space().can_resize()
    }
    fn set_capacity(&mut self, blocks: u64) -> Result<()> {
        self.space_mut().set_capacity(blocks)
    }
    fn reserve(&mut self, blocks: u64) -> Result<()> {
        self.space_mut().reserve(blocks)
    }
    fn access(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        self.space_mut().access(ops)
    }
    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        self.space_mut().defer(ops)
    }
    fn root(&self) -> &[u8] {
        self.space().root()
    }
    fn set_root(&mut self, root: &[u8]) {
        self.space_mut().set_root(root);
    }
    fn room(&self) -> Result<Option<u64>> {
        self.space().room()
    }
    fn commit(&mut self) -> Result<()> {
        self.space_mut().commit()
    }
    fn finish(&mut self) -> Result<()> {
        self.space_mut().finish()
    }
    fn discard(&mut self, ids: &[u64]) -> Result<()> {
        self.space_mut().discard(ids)
    }
    fn erase(&mut self, ids: &[u64]) -> Result<()> {
        self.space_mut().erase(ids)
    }
    fn exists(&self, id: u64) -> bool {
        self.space().exists(id)
    }
    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>> {
        self.space().present(ids)
    }
    fn erases_cheaply(&self) -> bool {
        self.space().erases_cheaply()
    }
    fn end_operation(&mut self) -> Result<()> {
        self.space_mut().end_operation()
    }
    fn pads(&self) -> bool {
        self.space().pads()
    }
    fn bring_up(&mut self, least: Least) -> Result<()> {
        self.space_mut().bring_up(least)
    }
    fn wants_commit(&self) -> bool {
        self.space().wants_commit()
    }
    fn idle(&mut self) -> Result<Option<Duration>> {
        self.space_mut().idle()
    }
    fn cache_budget(&self) -> usize {
        self.space().cache_budget()
    }
    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        self.space().reader()
    }
}
