//! What an engine brings to a volume: a name, its parameters in the header, and how to open one.

use crate::around::Repeats;
use crate::block::BlockSpace;
use crate::creation::{Cost, FixedObjects, NewOptions};
use crate::damage::{DamagedPlace, Inspected, LostBytes};
use crate::header::{Header, HeaderCopies, Parameters, expect_empty};
use crate::lane::{LaneMaster, LaneWait, OpenLane};
use crate::options::OpenOptions;
use crate::report::EngineReport;
use crate::scrub::Inspection;
use crate::trust::Known;
use crate::unlock::{FindLanes, Unlocked, unlock};
use crate::{Error, Result};
use oblivio_crypto::{KdfParams, MasterKey, Passphrase, VolumeId};
use oblivio_store::{AnyStore, Held, Objects, PutMode, Slots, Store};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// An engine that volumes stand on. Its entry in the registry is all that others know of it.
pub struct EngineEntry {
    /// Its number in headers, for ever.
    pub number: u32,
    /// Its name.
    pub name: &'static str,
    /// Whether its accesses hide reads from a store that sees them.
    pub hides_reads: bool,
    /// Whether a volume may get another capacity.
    pub resizes: bool,
    /// Whether a damaged volume can be made whole in place ([`EngineVolume::repair`]).
    pub repairs: bool,
    /// Refuses parameters that it does not know or that cannot work.
    pub check: fn(&Parameters) -> Result<()>,
    /// The declared capacity, in blocks.
    pub capacity_blocks: fn(&Parameters) -> u64,
    /// The lanes that a passphrase opens, if volumes may have some.
    pub lanes: Option<FindLanes>,
    /// Opens a volume; replays a session that did not end well.
    pub open: fn(Opening<'_>) -> Result<Box<dyn EngineVolume>>,
    /// What a new volume costs, and how it is made from what all engines are asked for; `None` if
    /// it is made by the engine's own function only.
    pub making: Option<Making>,
}

/// A place for a new volume.
pub struct Creation<'a> {
    /// Its store, which is empty.
    pub store: AnyStore,
    /// Its passphrase.
    pub passphrase: &'a Passphrase,
    /// Those of its lanes, of the first one first. A lane without one is never open.
    pub lanes: &'a [&'a Passphrase],
    /// How it is opened then.
    pub open: OpenOptions,
    /// Gets the bytes filled, and all of them.
    pub progress: &'a mut dyn FnMut(u64, u64),
}

/// How an engine makes volumes.
#[derive(Clone, Copy)]
pub struct Making {
    /// The objects beside the header, if their lengths never change.
    pub fixed_objects: fn(&NewOptions) -> Result<Option<FixedObjects>>,
    /// What a volume costs; if it grows, once these bytes are in it, or as many as it may hold.
    pub cost: fn(&NewOptions, u64) -> Result<Cost>,
    /// Makes it and opens it.
    pub create: fn(&NewOptions, Creation<'_>) -> Result<Box<dyn EngineVolume>>,
}

impl PartialEq for EngineEntry {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for EngineEntry {}

impl fmt::Debug for EngineEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A volume about to be opened, or made: its header is read and unlocked.
pub struct Opening<'a, S = AnyStore> {
    /// Its store, locked; by the port that the engine stands on.
    pub store: S,
    /// Its header.
    pub header: &'a Header,
    /// Its master key.
    pub master: &'a MasterKey,
    /// The keys of its lanes that the passphrase opened.
    pub lanes: Vec<LaneMaster>,
    /// The caller's choices.
    pub options: OpenOptions,
}

impl<'a, S> Opening<'a, S> {
    /// The same volume on another store.
    pub fn on<T>(self, store: T) -> Opening<'a, T> {
        let Self { header, master, lanes, options, .. } = self;
        Opening { store, header, master, lanes, options }
    }
}

impl<'a> Opening<'a> {
    /// For an engine that stands on whole objects.
    pub fn objects(self) -> Opening<'a, Arc<dyn Objects>> {
        let store = self.store.objects();
        self.on(store)
    }

    /// For an engine that writes over.
    ///
    /// # Errors
    /// Those of [`AnyStore::over`].
    pub fn over(self) -> Result<Opening<'a, Arc<dyn Store>>> {
        let store = self.store.over()?;
        Ok(self.on(store))
    }

    /// For an engine that writes over, and puts no objects.
    ///
    /// # Errors
    /// Those of [`AnyStore::over`].
    pub fn slots(self) -> Result<Opening<'a, Arc<dyn Slots>>> {
        let store = self.store.over()?;
        Ok(self.on(store as Arc<dyn Slots>))
    }
}

/// A volume on any engine.
pub trait EngineVolume: BlockSpace {
    /// What this computer now knows of the volume.
    fn known(&self) -> Known;

    /// Information about the volume.
    ///
    /// # Errors
    /// Those of the store.
    fn info(&self) -> Result<VolumeInfo>;

    /// Reads and authenticates everything from a place on, or a part of it, whatever is damaged. It
    /// is in one fixed order, which reveals nothing. `damaged` gets each place before `reached`
    /// goes past it.
    ///
    /// # Errors
    /// Those of the store. `Unsupported` amid requests, unless [`Self::has_quiet_scrubs`].
    fn inspect(&mut self, inspection: Inspection<'_>) -> Result<Inspected>;

    /// Whether it may be inspected amid requests.
    fn has_quiet_scrubs(&self) -> bool {
        false
    }

    /// Whether the layer below it may repeat reads. By default it is never forbidden to.
    fn repeats(&self) -> Repeats {
        Repeats::default()
    }

    /// Reads and authenticates everything; gives the number of [`VolumeInfo::verified`].
    ///
    /// # Errors
    /// `Tampered` names the first part that differs from its last write; `Lost` a block that no
    /// part has.
    fn verify(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        let mut first = None;
        let inspected = self.inspect(Inspection::of_all(
            &mut |reached| {
                progress(reached.done, reached.total);
                ControlFlow::Continue(())
            },
            &mut |place| {
                first.get_or_insert(place);
            },
        ))?;
        expect_whole(&inspected, first)
    }

    /// Stores anew all that can be read, so that no damaged place is left. What is lost stays lost
    /// until it is written or removed. The accesses follow from public numbers.
    ///
    /// # Errors
    /// `Unsupported` if the engine cannot; those of the store.
    fn repair(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let _ = progress;
        Err(Error::Unsupported("volumes on this engine cannot be repaired in place".into()))
    }

    /// The lost blocks that an older copy of this volume, which was just opened, has in the version
    /// that is lost. Nothing of it is proved by the copy's place or age.
    ///
    /// # Errors
    /// Those of the stores.
    fn found_in(
        &mut self,
        copy: &mut dyn EngineVolume,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<u64>> {
        let _ = (copy, progress);
        Ok(Vec::new())
    }

    /// As [`Self::repair`], and puts these blocks of [`Self::found_in`] back; gives those that the
    /// copy could read. The store of the copy sees which paths of it they are on. An engine that
    /// finds none only repairs.
    ///
    /// # Errors
    /// Those of the stores.
    fn restore_from(
        &mut self,
        copy: &mut dyn EngineVolume,
        ids: &[u64],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<u64>> {
        let _ = (copy, ids);
        self.repair(progress)?;
        Ok(Vec::new())
    }

    /// The damaged places that this session met and that have a second copy: a commit makes them
    /// whole.
    fn damaged(&self) -> Vec<DamagedPlace> {
        Vec::new()
    }

    /// An open lane, counted from 0. One at a time may use it.
    fn lane(&mut self, number: u8, wait: LaneWait) -> Option<OpenLane> {
        let _ = (number, wait);
        None
    }

    /// From the next state on, this passphrase opens a lane, and no other does. A lane that is not
    /// open is made anew: whatever it held is lost.
    ///
    /// # Errors
    /// `Unsupported` if there is no such lane, `Invalid` if the passphrase opens the volume or
    /// another lane: who knows it would open both.
    fn give_lane(&mut self, number: u8, passphrase: &Passphrase) -> Result<()> {
        let _ = passphrase;
        Err(Error::Unsupported(format!("the volume has no lane {}", number + 1)))
    }

    /// Called once the header of a new volume is stored.
    ///
    /// # Errors
    /// Those of an access.
    fn made(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The count of an inspection, if nothing is damaged; else the first place that is.
///
/// # Errors
/// `Tampered`, or `Lost`.
pub(crate) fn expect_whole(found: &Inspected, first: Option<DamagedPlace>) -> Result<u64> {
    match (first, found.lost.first()) {
        (Some(place), _) => Err(Error::Tampered(place.to_string())),
        (None, Some(lost)) => Err(LostBytes::block(lost.start).into()),
        (None, None) => Ok(found.count),
    }
}

/// Makes a volume in an empty store: its header comes last, and before it there is no volume.
///
/// # Errors
/// `Exists` if there is a volume already, `Invalid` if there is something else; those of `make`.
pub fn make<V: EngineVolume>(
    engine: &EngineEntry,
    store: impl Into<AnyStore>,
    passphrase: &Passphrase,
    (parameters, kdf): (&Parameters, KdfParams),
    options: OpenOptions,
    make: impl FnOnce(Opening<'_>) -> Result<V>,
) -> Result<V> {
    let store = store.into();
    store.lock()?;
    expect_empty(&store)?;
    let randomness = &options.environment.randomness;
    let (header, master) = Header::create(engine.number, parameters, passphrase, kdf, randomness)?;
    let lanes = Vec::new();
    let opening =
        Opening { store: store.clone(), header: &header, master: &master, lanes, options };
    let mut volume = make(opening)?;
    header.save(&store, PutMode::IfAbsent)?;
    volume.made()?;
    Ok(volume)
}

/// Opens a volume that must be on this engine.
///
/// # Errors
/// `Busy`, `Unsupported` (also for a volume on another engine), `WrongPassphrase`, `Tampered`;
/// those of `open`.
pub fn open_as<V>(
    engine: &EngineEntry,
    store: impl Into<AnyStore>,
    passphrase: &Passphrase,
    options: OpenOptions,
    open: impl FnOnce(Opening<'_>) -> Result<V>,
) -> Result<V> {
    let store = store.into();
    store.lock()?;
    let (copies, ()) = HeaderCopies::read(&store, |_| Ok(()))?;
    let Unlocked { header, master, lanes } = unlock(engine.lanes, &store, &copies, passphrase)?;
    if header.engine() != engine.number {
        return Err(Error::Unsupported("the volume is on another engine".into()));
    }
    (engine.check)(&header.parameters())?;
    open(Opening { store, header: &header, master: &master, lanes, options })
}

/// Reads a volume's header, both copies; refuses an engine, or a feature of it, that is not known.
///
/// # Errors
/// `Unsupported`, and those of the store.
pub(crate) fn load(
    store: &dyn Objects,
    engines: &[&'static EngineEntry],
) -> Result<(HeaderCopies, &'static EngineEntry)> {
    HeaderCopies::read(store, |header| engine_of(header, engines))
}

/// The engine of a header.
///
/// # Errors
/// `Unsupported` if it is none of these.
pub(crate) fn engine_of(
    header: &Header,
    engines: &[&'static EngineEntry],
) -> Result<&'static EngineEntry> {
    let number = header.engine();
    let engine = engines.iter().find(|engine| engine.number == number);
    let engine =
        engine.ok_or_else(|| Error::Unsupported(format!("engine {number} is not known")))?;
    (engine.check)(&header.parameters())?;
    Ok(engine)
}

/// What is readable without a passphrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicHeader {
    /// Its identity.
    pub volume: VolumeId,
    /// The format's version.
    pub format: u32,
    /// Its engine.
    pub engine: &'static EngineEntry,
    /// Bytes of user data in a block.
    pub block_bytes: usize,
    /// The declared capacity in bytes.
    pub capacity_bytes: u64,
    /// Passphrases that open the volume.
    pub passphrases: usize,
}

impl PublicHeader {
    /// Of a header whose engine is known.
    pub(crate) fn of(header: &Header, engine: &'static EngineEntry) -> Self {
        let parameters = header.parameters();
        let blocks = (engine.capacity_blocks)(&parameters);
        Self {
            volume: header.volume(),
            format: header.format(),
            engine,
            block_bytes: parameters.block_bytes as usize,
            capacity_bytes: blocks.saturating_mul(u64::from(parameters.block_bytes)),
            passphrases: header.passphrases(),
        }
    }
}

/// Information about an open volume.
#[derive(Clone)]
pub struct VolumeInfo {
    /// Its identity.
    pub volume: VolumeId,
    /// The format's version.
    pub format: u32,
    /// Its engine.
    pub engine: &'static EngineEntry,
    /// Bytes of user data in a block.
    pub block_bytes: usize,
    /// The most blocks that the volume may hold.
    pub capacity_blocks: u64,
    /// Blocks that take space; `None` where all do.
    pub live_blocks: Option<u64>,
    /// The number of the last commit or state.
    pub epoch: u64,
    /// Passphrases that open the volume.
    pub passphrases: usize,
    /// Bytes in the store, all objects together.
    pub bytes_stored: u64,
    /// The memory budget.
    pub memory_bytes: usize,
    /// What the opening replayed of a session that did not end well: batches or writes.
    pub replayed: u64,
    /// What [`EngineVolume::verify`] counts.
    pub verified: &'static str,
    /// The engine's own report.
    pub report: EngineReport,
}

impl VolumeInfo {
    /// What the header and the store say; nothing of what only the engine knows.
    ///
    /// # Errors
    /// Those of the store.
    pub fn of(header: &Header, engine: &'static EngineEntry, store: &dyn Held) -> Result<Self> {
        let bytes_stored = store.list()?.iter().map(|(_, len)| len).sum();
        Ok(Self::of_header(header, engine, bytes_stored))
    }

    /// What the header says of a volume that takes `bytes_stored` bytes in the store.
    pub fn of_header(header: &Header, engine: &'static EngineEntry, bytes_stored: u64) -> Self {
        let PublicHeader { volume, format, block_bytes, passphrases, .. } =
            PublicHeader::of(header, engine);
        Self {
            volume,
            format,
            engine,
            block_bytes,
            capacity_blocks: (engine.capacity_blocks)(&header.parameters()),
            live_blocks: None,
            epoch: 0,
            passphrases,
            bytes_stored,
            memory_bytes: 0,
            replayed: 0,
            verified: "block",
            report: EngineReport::default(),
        }
    }

    /// The same with the engine's report on it.
    #[must_use]
    pub fn reporting(self, report: impl FnOnce(&Self) -> EngineReport) -> Self {
        Self { report: report(&self), ..self }
    }
}

impl fmt::Debug for VolumeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VolumeInfo").field("volume", &self.volume).finish_non_exhaustive()
    }
}
