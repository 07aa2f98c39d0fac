//! A volume on any engine.

use crate::Result;
use crate::block::{BlockReader, BlockSpace, Least};
use crate::damage::{DamagedPlace, Inspected};
use crate::engine::{
    EngineEntry, EngineVolume, Opening, PublicHeader, VolumeInfo, expect_whole, load,
};
use crate::environment::Clock;
use crate::header::{HeaderCopies, HeaderKeeper};
use crate::lane::{LaneWait, MOST_LANES, OpenLane};
use crate::options::OpenOptions;
use crate::scrub::{Inspection, QuietScrub, Reached, RunningScrub, only_as_a_whole};
use crate::trust::Known;
use crate::unlock::{Unlocked, unlock};
use oblivio_crypto::Passphrase;
use oblivio_engine::{BlockOp, BlockOutcome};
use oblivio_store::AnyStore;
use std::any::Any;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

/// An open volume.
pub struct Volume {
    engine: Box<dyn EngineVolume>,
    /// None if it was made or opened by its engine's own function.
    header: Option<HeaderKeeper>,
    scrub: Option<RunningScrub>,
}

impl<V: EngineVolume> From<V> for Volume {
    fn from(volume: V) -> Self {
        Self::of(Box::new(volume))
    }
}

impl Volume {
    /// A volume on an engine that only its entry knows.
    pub(crate) fn of(volume: Box<dyn EngineVolume>) -> Self {
        Self { engine: volume, header: None, scrub: None }
    }

    /// The volume that a file system or a disk was on.
    pub fn in_blocks(blocks: Box<dyn BlockSpace>) -> Option<Box<Self>> {
        (blocks as Box<dyn Any>).downcast().ok()
    }

    /// What this computer now knows of the volume.
    pub fn known(&self) -> Known {
        self.engine.known()
    }

    /// Information about the volume.
    ///
    /// # Errors
    /// Those of the store.
    pub fn info(&self) -> Result<VolumeInfo> {
        self.engine.info()
    }

    /// Reads and authenticates everything; gives the number of [`VolumeInfo::verified`]. The order
    /// reveals nothing. Copies that were damaged are made whole first: see [`Self::damaged`].
    ///
    /// # Errors
    /// `Tampered` names the first part that differs from its last write; `Lost` a block that no
    /// part has.
    pub fn verify(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        let mut first = None;
        let inspected = self.inspect(progress, &mut |place| {
            first.get_or_insert(place);
        })?;
        expect_whole(&inspected, first)
    }

    /// As [`Self::verify`], but it goes on at damage, and `damaged` gets each place that is not
    /// whole again.
    ///
    /// # Errors
    /// Those of the store.
    pub fn inspect(
        &mut self,
        progress: &mut dyn FnMut(u64, u64),
        damaged: &mut dyn FnMut(DamagedPlace),
    ) -> Result<Inspected> {
        let mut reached = |reached: Reached| {
            progress(reached.done, reached.total);
            ControlFlow::Continue(())
        };
        self.inspect_part(Inspection::of_all(&mut reached, damaged))
    }

    /// The same from a place on, and as far as the caller wants.
    ///
    /// # Errors
    /// Those of the store.
    pub fn inspect_part(&mut self, inspection: Inspection<'_>) -> Result<Inspected> {
        let Inspection { from, at_once, amid_requests, reached, damaged } = inspection;
        let mut end = None;
        let mut found = self.engine.inspect(Inspection {
            from,
            at_once,
            amid_requests,
            reached: &mut |now| match now.next {
                Some(_) => reached(now),
                // What is small follows.
                None => {
                    end = Some(now);
                    ControlFlow::Continue(())
                }
            },
            damaged: &mut *damaged,
        })?;
        let Some(end) = end else { return Ok(found) };
        self.heal();
        if let Some(place) = self.header.as_mut().map_or(Ok(None), HeaderKeeper::inspect)? {
            found.damaged += 1;
            damaged(place);
        }
        // There is nothing left to stop.
        let _ = reached(end);
        Ok(found)
    }

    /// Stores anew all that can be read, so that no damaged place is left. What is lost stays lost
    /// until it is written or removed.
    ///
    /// # Errors
    /// `Unsupported` if the engine cannot; those of the store.
    pub fn repair(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.heal();
        self.engine.repair(progress)
    }

    /// As [`EngineVolume::found_in`].
    ///
    /// # Errors
    /// Those of the stores.
    pub fn found_in(
        &mut self,
        copy: &mut Volume,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<u64>> {
        self.engine.found_in(&mut *copy.engine, progress)
    }

    /// As [`EngineVolume::restore_from`].
    ///
    /// # Errors
    /// Those of the stores.
    pub fn restore_from(
        &mut self,
        copy: &mut Volume,
        ids: &[u64],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<u64>> {
        self.heal();
        self.engine.restore_from(&mut *copy.engine, ids, progress)
    }

    /// The damaged places that this session met and that have a second copy: a commit makes them
    /// whole.
    pub fn damaged(&self) -> Vec<DamagedPlace> {
        let of_header = self.header.as_ref().map_or(&[][..], HeaderKeeper::damaged);
        [of_header, &self.engine.damaged()].concat()
    }

    /// From now on quiet moments read what is stored, a little at a time, round and round.
    ///
    /// # Errors
    /// `Unsupported` for a volume in whole files.
    pub fn scrub_when_quiet(&mut self, scrub: QuietScrub, clock: Arc<dyn Clock>) -> Result<()> {
        if !self.engine.has_quiet_scrubs() {
            return Err(only_as_a_whole());
        }
        self.scrub = Some(RunningScrub::new(scrub, clock));
        Ok(())
    }

    /// An open lane, counted from 0: [`EngineVolume::lane`].
    pub fn lane(&mut self, number: u8, wait: LaneWait) -> Option<OpenLane> {
        self.engine.lane(number, wait)
    }

    /// All lanes, in order, as far as they are open.
    pub fn lanes(&mut self, wait: LaneWait) -> Vec<Option<OpenLane>> {
        (0..MOST_LANES).map(|number| self.lane(number, wait)).collect()
    }

    /// As [`EngineVolume::give_lane`].
    ///
    /// # Errors
    /// Those of [`EngineVolume::give_lane`].
    pub fn give_lane(&mut self, number: u8, passphrase: &Passphrase) -> Result<()> {
        self.engine.give_lane(number, passphrase)
    }

    /// Makes both copies of the header whole.
    fn heal(&mut self) {
        if let Some(header) = &mut self.header {
            header.heal();
        }
    }

    /// The volume as that of an engine, if it is on that one.
    pub fn on<V: EngineVolume>(&mut self) -> Option<&mut V> {
        let any: &mut dyn Any = &mut *self.engine;
        any.downcast_mut()
    }
}

/// A volume whose header is read, and that is not open yet. Each copy is read only once: decisions
/// made on the header before a passphrase is known hold for the opened volume, or the opening
/// fails.
pub struct ClosedVolume {
    store: AnyStore,
    copies: HeaderCopies,
    engine: &'static EngineEntry,
}

impl ClosedVolume {
    /// Reads the header of a volume on one of these engines.
    ///
    /// # Errors
    /// `Unsupported` if it is on none of them, or uses a feature that is not known.
    pub fn read_on(store: impl Into<AnyStore>, engines: &[&'static EngineEntry]) -> Result<Self> {
        let store = store.into();
        let (copies, engine) = load(&store, engines)?;
        Ok(Self { store, copies, engine })
    }

    /// Its header. Nothing of it is authenticated before the volume is open.
    pub fn header(&self) -> PublicHeader {
        PublicHeader::of(self.copies.public(), self.engine)
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
        let Self { store, copies, engine } = self;
        store.lock()?;
        let Unlocked { header, master, lanes } = unlock(engine.lanes, &store, &copies, passphrase)?;
        (engine.check)(&header.parameters())?;
        let opening =
            Opening { store: store.clone(), header: &header, master: &master, lanes, options };
        let volume = (engine.open)(opening)?;
        let keeper = HeaderKeeper::new((store, volume.repeats()), &copies, header, &master);
        Ok(Volume { header: Some(keeper), ..Volume::of(volume) })
    }
}

impl BlockSpace for Volume {
    fn block_bytes(&self) -> usize {
        self.engine.block_bytes()
    }
    fn capacity_blocks(&self) -> u64 {
        self.engine.capacity_blocks()
    }
    fn addressable_blocks(&self) -> u64 {
        self.engine.addressable_blocks()
    }
    fn can_resize(&self) -> bool {
        self.engine.can_resize()
    }
    fn set_capacity(&mut self, blocks: u64) -> Result<()> {
        self.engine.set_capacity(blocks)?;
        if let Some(header) = &mut self.header {
            header.replaced();
        }
        Ok(())
    }
    fn reserve(&mut self, blocks: u64) -> Result<()> {
        self.engine.reserve(blocks)
    }
    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        self.engine.access_each(ops)
    }
    fn met_damage(&mut self) -> bool {
        self.engine.met_damage()
    }
    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        self.engine.defer(ops)
    }
    fn root(&self) -> &[u8] {
        self.engine.root()
    }
    fn set_root(&mut self, root: &[u8]) {
        self.engine.set_root(root);
    }
    fn room(&self) -> Result<Option<u64>> {
        self.engine.room()
    }
    fn commit(&mut self) -> Result<()> {
        self.engine.commit()?;
        self.heal();
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        self.engine.finish()?;
        self.heal();
        Ok(())
    }
    fn give_up(&mut self) {
        self.engine.give_up();
    }
    fn discard(&mut self, ids: &[u64]) -> Result<()> {
        self.engine.discard(ids)
    }
    fn erase(&mut self, ids: &[u64]) -> Result<()> {
        self.engine.erase(ids)
    }
    fn exists(&self, id: u64) -> bool {
        self.engine.exists(id)
    }
    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>> {
        self.engine.present(ids)
    }
    fn erases_cheaply(&self) -> bool {
        self.engine.erases_cheaply()
    }
    fn end_operation(&mut self) -> Result<()> {
        self.engine.end_operation()
    }
    fn pads(&self) -> bool {
        self.engine.pads()
    }
    fn bring_up(&mut self, least: Least) -> Result<()> {
        self.engine.bring_up(least)
    }
    fn wants_commit(&self) -> bool {
        self.engine.wants_commit()
    }
    fn commits_evenly(&self) -> bool {
        self.engine.commits_evenly()
    }
    fn idle(&mut self) -> Result<Option<Duration>> {
        self.engine.idle()
    }
    fn scrub(&mut self) -> Result<Option<Duration>> {
        let Some(mut scrub) = self.scrub.take() else { return Ok(None) };
        let rest = scrub.step(|inspection| self.inspect_part(inspection));
        self.scrub = Some(scrub);
        rest.map(Some)
    }
    fn cache_budget(&self) -> usize {
        self.engine.cache_budget()
    }
    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        self.engine.reader()
    }
}
