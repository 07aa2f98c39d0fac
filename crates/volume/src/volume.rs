//! A volume on any engine.

use crate::Result;
use crate::block::{BlockReader, BlockSpace, Least};
use crate::damage::{DamagedPlace, Inspected};
use crate::engine::{EngineEntry, EngineVolume, Opening, PublicHeader, VolumeInfo, load};
use crate::header::Header;
use crate::options::OpenOptions;
use crate::trust::Known;
use oblivio_crypto::Passphrase;
use oblivio_engine::{BlockOp, BlockOutcome};
use oblivio_store::AnyStore;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// An open volume.
pub struct Volume(Box<dyn EngineVolume>);

impl<V: EngineVolume> From<V> for Volume {
    fn from(volume: V) -> Self {
        Self(Box::new(volume))
    }
}

impl Volume {
    /// A volume on an engine that only its entry knows.
    pub(crate) fn of(volume: Box<dyn EngineVolume>) -> Self {
        Self(volume)
    }

    /// What this computer now knows of the volume.
    pub fn known(&self) -> Known {
        self.0.known()
    }

    /// Information about the volume.
    ///
    /// # Errors
    /// Those of the store.
    pub fn info(&self) -> Result<VolumeInfo> {
        self.0.info()
    }

    /// Reads and authenticates everything; gives the number of [`VolumeInfo::verified`]. The order
    /// reveals nothing.
    ///
    /// # Errors
    /// `Tampered` names the first part that differs from its last write.
    pub fn verify(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        self.0.verify(progress)
    }

    /// As [`Self::verify`], but it goes on at damage, and `damaged` gets each place.
    ///
    /// # Errors
    /// Those of the store.
    pub fn inspect(
        &mut self,
        progress: &mut dyn FnMut(u64, u64),
        damaged: &mut dyn FnMut(DamagedPlace),
    ) -> Result<Inspected> {
        self.0.inspect(progress, damaged)
    }

    /// The volume as that of an engine, if it is on that one.
    pub fn on<V: EngineVolume>(&mut self) -> Option<&mut V> {
        let any: &mut dyn Any = &mut *self.0;
        any.downcast_mut()
    }
}

/// A volume whose header is read, and that is not open yet. The header is read only once: decisions
/// made on it before a passphrase is known hold for the opened volume, or the opening fails.
pub struct ClosedVolume {
    store: AnyStore,
    header: Header,
    engine: &'static EngineEntry,
}

impl ClosedVolume {
    /// Reads the header of a volume on one of these engines.
    ///
    /// # Errors
    /// `Unsupported` if it is on none of them, or uses a feature that is not known.
    pub fn read_on(store: impl Into<AnyStore>, engines: &[&'static EngineEntry]) -> Result<Self> {
        let store = store.into();
        let (header, engine) = load(&store, engines)?;
        Ok(Self { store, header, engine })
    }

    /// Its header. Nothing of it is authenticated before the volume is open.
    pub fn header(&self) -> PublicHeader {
        PublicHeader::of(&self.header, self.engine)
    }

    /// The same volume with a layer over its store.
    ///
    /// # Errors
    /// Those of `layer`.
    pub fn over<E>(
        self,
        layer: impl FnOnce(AnyStore) -> std::result::Result<AnyStore, E>,
    ) -> std::result::Result<Self, E> {
        Ok(Self { store: layer(self.store)?, ..self })
    }

    /// Opens it; replays a session that did not end well.
    ///
    /// # Errors
    /// As [`Volume::open`].
    pub fn open(self, passphrase: &Passphrase, options: OpenOptions) -> Result<Volume> {
        let Self { store, header, engine } = self;
        store.lock()?;
        let master = header.unlock(passphrase)?;
        let opening = Opening { store, header: &header, master: &master, options };
        (engine.open)(opening).map(Volume::of)
    }
}

impl BlockSpace for Volume {
    fn block_bytes(&self) -> usize {
        self.0.block_bytes()
    }
    fn capacity_blocks(&self) -> u64 {
        self.0.capacity_blocks()
    }
    fn addressable_blocks(&self) -> u64 {
        self.0.addressable_blocks()
    }
    fn can_resize(&self) -> bool {
        self.0.can_resize()
    }
    fn set_capacity(&mut self, blocks: u64) -> Result<()> {
        self.0.set_capacity(blocks)
    }
    fn reserve(&mut self, blocks: u64) -> Result<()> {
        self.0.reserve(blocks)
    }
    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        self.0.access_each(ops)
    }
    fn take_damage(&mut self) -> Vec<DamagedPlace> {
        self.0.take_damage()
    }
    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        self.0.defer(ops)
    }
    fn root(&self) -> &[u8] {
        self.0.root()
    }
    fn set_root(&mut self, root: &[u8]) {
        self.0.set_root(root);
    }
    fn room(&self) -> Result<Option<u64>> {
        self.0.room()
    }
    fn commit(&mut self) -> Result<()> {
        self.0.commit()
    }
    fn finish(&mut self) -> Result<()> {
        self.0.finish()
    }
    fn give_up(&mut self) {
        self.0.give_up();
    }
    fn discard(&mut self, ids: &[u64]) -> Result<()> {
        self.0.discard(ids)
    }
    fn erase(&mut self, ids: &[u64]) -> Result<()> {
        self.0.erase(ids)
    }
    fn exists(&self, id: u64) -> bool {
        self.0.exists(id)
    }
    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>> {
        self.0.present(ids)
    }
    fn erases_cheaply(&self) -> bool {
        self.0.erases_cheaply()
    }
    fn end_operation(&mut self) -> Result<()> {
        self.0.end_operation()
    }
    fn pads(&self) -> bool {
        self.0.pads()
    }
    fn bring_up(&mut self, least: Least) -> Result<()> {
        self.0.bring_up(least)
    }
    fn wants_commit(&self) -> bool {
        self.0.wants_commit()
    }
    fn idle(&mut self) -> Result<Option<Duration>> {
        self.0.idle()
    }
    fn cache_budget(&self) -> usize {
        self.0.cache_budget()
    }
    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        self.0.reader()
    }
}
