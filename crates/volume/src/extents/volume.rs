//! The volume: a sequential one over the store of extents, which publishes epochs.

use super::header::{ExtentOptions, check, of_engine, shape};
use super::info::ExtentInfo;
use super::names::working;
use super::publisher::{EpochLine, FolderOpening};
use super::selection::{damage_in, first_few, short_name};
use super::store::{EpochSource, ExtentStore};
use crate::around::Repeats;
use crate::block::{BlockReader, BlockSpace};
use crate::damage::{DamagedPlace, Inspected};
use crate::engine::{Creation, EngineEntry, EngineVolume, Making, VolumeInfo, make, open_as};
use crate::environment::Clock;
use crate::latch::Latch;
use crate::options::{OpenOptions, Which};
use crate::scrub::{Inspection, Reached, only_as_a_whole};
use crate::sequential::{self, LOG_OBJECT, STATE_OBJECT, SequentialVolume};
use crate::trust::{Keeper, Known, ReadOnlyKeeper};
use crate::volume::Volume;
use crate::{Error, Result};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockOp, BlockOutcome};
use oblivio_store::{MemoryStore, Objects, PutMode, Slots, Store};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Bytes written, padding included, after which an epoch ends.
const EPOCH_BYTES: u64 = 64 << 20;
/// Time after the first change after which it ends.
const EPOCH_TIME: Duration = Duration::from_secs(5 * 60);

/// The entry of sequential volumes in extents.
pub static ENGINE: EngineEntry = EngineEntry {
    number: 5,
    name: "extents",
    hides_reads: false,
    resizes: false,
    repairs: false,
    check,
    capacity_blocks: |parameters| (sequential::ENGINE.capacity_blocks)(&of_engine(parameters)),
    lanes: None,
    open: |opening| Ok(Box::new(ExtentVolume::of(opening.objects())?)),
    making: Some(Making {
        fixed_objects: |_| Ok(None),
        cost: |new, _| ExtentOptions::from(new).sequential.cost(),
        create: |new, Creation { store, passphrase, open, progress, .. }| {
            let made = ExtentVolume::create(
                store.objects(),
                passphrase,
                new.kdf,
                new.into(),
                open,
                progress,
            )?;
            Ok(Box::new(made))
        },
    }),
};

/// An open volume in extents.
pub struct ExtentVolume {
    inner: SequentialVolume,
    store: Arc<ExtentStore>,
    line: EpochLine,
    clock: Arc<dyn Clock>,
    /// Whether it is only looked at.
    view: bool,
    /// Whether something was written, and not finished, since the opening.
    wrote: bool,
    /// Writes at the last epoch, and when the first one after it came.
    published: u64,
    since: Option<Duration>,
    /// Closed only when an epoch is stuck: what was decided must be completed first.
    latch: Latch,
}

impl ExtentVolume {
    /// Creates a volume in an empty folder and opens it. `progress` gets the bytes filled.
    ///
    /// # Errors
    /// As for a sequential volume.
    pub fn create(
        store: Arc<dyn Objects>,
        passphrase: &Passphrase,
        kdf: KdfParams,
        create: ExtentOptions,
        open: OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self> {
        let parameters = create.parameters()?;
        make(&ENGINE, store, passphrase, (&parameters, kdf), open, |opening| {
            let opening = opening.objects();
            let clock = Arc::clone(&opening.options.environment.clock);
            let line = EpochLine::take(&opening, shape(&parameters)?)?;
            let store = Arc::new(line.store()?);
            let over = opening.on(Arc::clone(&store) as Arc<dyn Slots>);
            let inner = SequentialVolume::made(over, &create.sequential, &[], progress)?;
            let mut volume = Self::over(inner, (store, line), clock, false);
            volume.wrote = true;
            volume.end_epoch()?;
            Ok(volume)
        })
    }

    /// Opens a volume.
    ///
    /// # Errors
    /// As for a sequential volume, and `StillToCome`, `Parted`.
    pub fn open(
        store: Arc<dyn Objects>,
        passphrase: &Passphrase,
        open: OpenOptions,
    ) -> Result<Self> {
        open_as(&ENGINE, store, passphrase, open, |opening| Self::of(opening.objects()))
    }

    /// Opens a volume whose header is read and unlocked.
    fn of(opening: FolderOpening<'_>) -> Result<Self> {
        let mut line = EpochLine::take(&opening, shape(&opening.header.parameters())?)?;
        if opening.options.only_looks() {
            return Self::view(opening, line);
        }
        let before = line.stands_on();
        line.choose(&opening.options.history)?;
        let store = Arc::new(line.store()?);
        let clock = Arc::clone(&opening.options.environment.clock);
        let mut opening = opening.on(Arc::clone(&store) as Arc<dyn Slots>);
        // The epoch leads on from the one that this computer stood on: that says more than the note
        // of a state which other computers may never have seen.
        opening.options.accept_rollback |= before.is_some() && before != line.stands_on();
        let broken = match &line.on {
            Some(on) => line.copies.mend_own_of(on, &ALL_NEEDED)?,
            None => Vec::new(),
        };
        let inner = SequentialVolume::of(opening).map_err(|error| damage_in(error, &broken))?;
        Ok(Self::over(inner, (store, line), clock, false))
    }

    /// Looks at one history, or at one of which files are missing. Changes go to memory.
    fn view(mut opening: FolderOpening<'_>, mut line: EpochLine) -> Result<Self> {
        let OpenOptions { history, incomplete, keeper, .. } = &mut opening.options;
        let before = line.stands_on();
        let (opened, lost, again) = match history {
            Which::View(begins) if !*incomplete => {
                let opened = line.find(begins)?;
                let again = line.expect_all(&opened)?;
                (opened, BTreeSet::new(), again)
            }
            _ => line.choose_incomplete(history)?,
        };
        *keeper = match history {
            // Another history than the noted one.
            Which::View(_) => None,
            _ => keeper.take().map(|keeper| Box::new(ReadOnlyKeeper(keeper)) as Box<dyn Keeper>),
        };
        opening.options.accept_rollback |= before.is_some_and(|on| on != opened.entry.id);
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
        for (extent, bytes) in &again {
            memory.put(&working(OVERLAY, *extent), bytes, PutMode::Replace)?;
        }
        let changed = (OVERLAY, again.into_keys().collect());
        let table = opened.entry.table.clone();
        let stores = (Arc::clone(&line.folder), memory);
        let shape = line.shape.clone();
        // For the report only: nothing is published.
        line.on = Some(opened);
        let store = ExtentStore::new(stores, EpochSource::Folder, shape, table, changed);
        let store = Arc::new(store.without(lost));
        let clock = Arc::clone(&opening.options.environment.clock);
        let lost = ALL_NEEDED.iter().flat_map(|it| store.all_lost_in(it)).collect::<Vec<_>>();
        let inner = SequentialVolume::of(opening.on(Arc::clone(&store) as Arc<dyn Slots>));
        let inner = inner.map_err(|error| damage_in(error, &lost))?;
        refuse_unknown_end(&inner, &store)?;
        Ok(Self::over(inner, (store, line), clock, true))
    }

    fn over(
        inner: SequentialVolume,
        (store, line): (Arc<ExtentStore>, EpochLine),
        clock: Arc<dyn Clock>,
        view: bool,
    ) -> Self {
        let (published, latch) = (inner.counted().0, Latch::default());
        Self { inner, store, line, clock, view, wrote: false, published, since: None, latch }
    }

    /// Runs `work` unless an earlier failure closed this handle.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.latch.expect_open()?;
        work(self)
    }

    /// Notes that something is changed, before it is.
    fn changes(&mut self) -> Result<()> {
        self.wrote = true;
        let clock = &self.clock;
        self.since.get_or_insert_with(|| clock.now());
        self.line.note_writing()
    }

    /// Makes everything durable on this computer.
    fn make_durable(&mut self) -> Result<()> {
        if self.wrote {
            self.line.note_writing()?;
        }
        self.inner.commit()
    }

    /// Bytes of blocks written since the last epoch: a public count.
    fn unpublished(&self) -> u64 {
        (self.inner.counted().0 - self.published).saturating_mul(self.block_bytes() as u64)
    }

    /// Whether an epoch must end: both limits are public.
    fn due(&self) -> bool {
        let late = |since: Duration| self.clock.now().saturating_sub(since) >= EPOCH_TIME;
        self.unpublished() >= EPOCH_BYTES || self.since.is_some_and(late)
    }

    /// Ends the epoch: everything is durable, and goes into the folder.
    ///
    /// # Errors
    /// Those of the stores. Everything is durable on this computer nevertheless.
    pub fn end_epoch(&mut self) -> Result<()> {
        self.guarded(|volume| if volume.view { Ok(()) } else { volume.publish() })
    }

    fn publish(&mut self) -> Result<()> {
        self.make_durable()?;
        let done = self.line.publish(&self.store);
        if let Err(error) = done {
            // What was decided must be completed before anything else is written.
            if self.line.is_stuck() {
                self.latch.close(&error);
            }
            return Err(error);
        }
        (self.published, self.since) = (self.inner.counted().0, None);
        Ok(())
    }

    /// What it now consists of.
    pub fn extent_info(&self) -> Option<ExtentInfo> {
        let engine = self.inner.sequential_info();
        let on = self.line.on.as_ref()?;
        let shape = self.store.shape();
        Some(ExtentInfo {
            engine,
            extent_bytes: shape.bytes_of(0),
            extents: shape.extents(),
            written_extents: on.entry.files().filter(|it| it.0 < shape.extents()).count() as u64,
            // A view has files in memory that were made again; nobody changed them.
            changed_extents: if self.view { 0 } else { self.store.changed().len() as u64 },
            stands_on: short_name(on.entry.id),
            computers: self.line.histories.stands().len(),
            kept: on.entry.kept.iter().map(|id| short_name(*id)).collect(),
            view: self.view,
        })
    }
}

impl BlockSpace for ExtentVolume {
    crate::lacks!(resizing, deferring, padding);

    fn give_up(&mut self) {}

    fn block_bytes(&self) -> usize {
        self.inner.block_bytes()
    }

    fn capacity_blocks(&self) -> u64 {
        self.inner.capacity_blocks()
    }

    fn reserve(&mut self, blocks: u64) -> Result<()> {
        self.inner.reserve(blocks)
    }

    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        self.guarded(|volume| {
            // A view's writes go to memory, and with it: times of access, mostly. Who opens one
            // refuses changes.
            if !volume.view && ops.iter().any(|op| op.action != Action::Read) {
                volume.changes()?;
            }
            volume.inner.access_each(ops)
        })
    }

    fn root(&self) -> &[u8] {
        self.inner.root()
    }

    fn set_root(&mut self, root: &[u8]) {
        // Noted before it becomes durable, with the next commit.
        self.wrote |= self.inner.root() != root && !self.view;
        self.inner.set_root(root);
    }

    /// Everything accepted is durable on this computer; without a place beside the folder, in it.
    fn commit(&mut self) -> Result<()> {
        self.guarded(|volume| match () {
            () if volume.view => Ok(()),
            () if volume.due() || !volume.line.keeps() => volume.publish(),
            () => volume.make_durable(),
        })
    }

    /// A session that only read leaves no epoch.
    fn finish(&mut self) -> Result<()> {
        self.guarded(|volume| {
            if volume.view {
                return Ok(());
            }
            if !volume.wrote && !volume.line.is_dirty() {
                return volume.inner.leave();
            }
            volume.line.note_writing()?;
            volume.inner.finish()?;
            volume.publish()?;
            volume.wrote = false;
            Ok(())
        })
    }

    fn exists(&self, id: u64) -> bool {
        self.inner.exists(id)
    }

    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>> {
        self.inner.present(ids)
    }

    fn wants_commit(&self) -> bool {
        !self.latch.is_closed() && !self.view && self.due()
    }

    fn idle(&mut self) -> Result<Option<Duration>> {
        self.guarded(|volume| {
            if !volume.view && volume.due() {
                volume.publish()?;
            }
            let now = volume.clock.now();
            Ok(volume.since.map(|since| (since + EPOCH_TIME).saturating_sub(now)))
        })
    }

    fn cache_budget(&self) -> usize {
        self.inner.cache_budget()
    }

    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        self.inner.reader()
    }
}

impl EngineVolume for ExtentVolume {
    fn known(&self) -> Known {
        self.inner.known()
    }

    fn info(&self) -> Result<VolumeInfo> {
        let info = self.inner.info()?;
        let stored: u64 = self.line.histories.files.values().sum();
        let info = VolumeInfo { engine: &ENGINE, bytes_stored: stored, ..info };
        match self.extent_info() {
            Some(extents) => Ok(info.reporting(|info| extents.report(info))),
            None => Ok(info),
        }
    }

    fn repeats(&self) -> Repeats {
        self.line.repeats.clone()
    }

    /// The files first, then the blocks in them.
    fn inspect(&mut self, inspection: Inspection<'_>) -> Result<Inspected> {
        let Inspection { from, at_once, amid_requests, reached, damaged } = inspection;
        if amid_requests {
            return Err(only_as_a_whole());
        }
        self.guarded(|volume| {
            let blocks = volume.inner.capacity_blocks();
            let only = if volume.view { volume.line.on.clone() } else { None };
            volume.line.read_folder()?;
            let (of_files, files, ended) = volume.line.copies.inspect(
                &volume.line.histories,
                (only.as_ref(), from),
                &mut |now| reached(Reached { total: now.total + blocks, ..now }),
                damaged,
            )?;
            if !ended {
                return Ok(of_files);
            }
            let found = volume.inner.inspect(Inspection {
                from: from.saturating_sub(FIRST_BLOCK),
                at_once,
                amid_requests,
                reached: &mut |Reached { done, total, next }| {
                    let next = next.map(|next| FIRST_BLOCK + next);
                    reached(Reached { done: files + done, total: files + total, next })
                },
                damaged,
            })?;
            let bytes = found.bytes + of_files.bytes;
            Ok(Inspected { damaged: found.damaged + of_files.damaged, bytes, ..found })
        })
    }

    /// Files of the folder that this session found damaged: they are whole again.
    fn damaged(&self) -> Vec<DamagedPlace> {
        self.line.copies.healed.clone()
    }
}

/// The number of the overlay of a view, which is in memory.
const OVERLAY: u64 = 1;
/// The place of an inspection at which blocks begin: before it are files, of which there are fewer.
const FIRST_BLOCK: u64 = 1 << 32;
/// The objects all of which an opening needs.
const ALL_NEEDED: [&str; 2] = [LOG_OBJECT, STATE_OBJECT];

/// Refuses a volume whose newest writes may be in a file that is lost: what they wrote over would
/// pass for the newest.
///
/// # Errors
/// `StillToCome` with the names of such files.
fn refuse_unknown_end(inner: &SequentialVolume, store: &ExtentStore) -> Result<()> {
    let (object, offset, bytes) = inner.found_end_place();
    let files = store.lost_in(object, offset, bytes);
    if files.is_empty() {
        return Ok(());
    }
    let what = format!("what was written last, in {}", first_few(&files));
    Err(Error::StillToCome(what))
}

impl Volume {
    /// The volume, if it is one in extents.
    pub fn extents(&mut self) -> Option<&mut ExtentVolume> {
        self.on()
    }
}
