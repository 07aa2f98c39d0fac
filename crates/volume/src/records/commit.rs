//! The commit record: two small slots, written in turn, that make a new state current. There are
//! two objects of such slots, which say the same.
//!
//! A crash while one slot is written leaves the other, with the previous commit. The newest record
//! that opens counts, in whichever object it is: everything that it names was durable before.

use crate::around::read_place;
use crate::damage::DamagedPlace;
use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, SEAL_OVERHEAD, Sealer, VolumeId};
use oblivio_store::{Held, ReadAt, Slots, StoreError, WriteAt};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The objects that hold the records.
pub const COMMIT_OBJECTS: [&str; 2] = ["commit", "commit-2"];
/// Bytes of each slot: a page, so that one write never tears both.
const SLOT_BYTES: u64 = 4096;
/// Bytes of all slots.
pub const COMMITS_BYTES: u64 = 4 * SLOT_BYTES;
/// For a commit whose state is stored twice. Versions before it have one state and one object of
/// records.
const VERSION: u32 = 3;
const WITHOUT_SECOND: u32 = 2;
/// And no table of computers in it.
const WITHOUT_TABLE: u32 = 1;
/// The version in its `Place`.
const PLACE_VERSION: u64 = 1;

/// A checkpoint and the log of deltas on it, up to a commit.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(C)]
pub struct StatePair {
    generation: U64,
    base_epoch: U64,
    state_bytes: U64,
    log_bytes: U64,
    digest: [u8; 32],
}

impl StatePair {
    /// Of a new checkpoint.
    pub fn new(generation: u64, epoch: u64, state_bytes: u64, digest: [u8; 32]) -> Self {
        let (generation, base_epoch) = (U64::new(generation), U64::new(epoch));
        let (state_bytes, log_bytes) = (U64::new(state_bytes), U64::new(0));
        Self { generation, base_epoch, state_bytes, log_bytes, digest }
    }

    /// The number of the checkpoint.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// The commit that wrote the checkpoint.
    pub fn base_epoch(&self) -> u64 {
        self.base_epoch.get()
    }

    /// Bytes of the sealed checkpoint.
    pub fn state_bytes(&self) -> u64 {
        self.state_bytes.get()
    }

    /// Bytes of the log of deltas up to the commit.
    pub fn log_bytes(&self) -> u64 {
        self.log_bytes.get()
    }

    /// The digest of checkpoint and log.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// With one more delta.
    pub fn with_delta(self, bytes: u64, digest: [u8; 32]) -> Self {
        Self { log_bytes: U64::new(self.log_bytes() + bytes), digest, ..self }
    }
}

/// The content of a commit.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(C)]
pub struct CommitRecord {
    version: U32,
    reserved: U32,
    epoch: U64,
    first: StatePair,
    /// Zeros if there is none.
    second: StatePair,
}

/// Bytes of a record of an older version: it ends before the second pair.
const OLDER_BYTES: usize = size_of::<CommitRecord>() - size_of::<StatePair>();

impl CommitRecord {
    /// The commit of this number, on these pairs.
    pub fn new(epoch: u64, first: StatePair, second: Option<StatePair>) -> Self {
        let second = second.unwrap_or_default();
        Self {
            version: U32::new(VERSION),
            epoch: U64::new(epoch),
            first,
            second,
            ..Self::default()
        }
    }

    /// Parses the plaintext of a record of any version.
    pub fn parse(plain: &[u8]) -> Option<Self> {
        let mut record = Self::new_zeroed();
        match plain.len() {
            OLDER_BYTES => record.as_mut_bytes()[..OLDER_BYTES].copy_from_slice(plain),
            _ => record = Self::read_from_bytes(plain).ok()?,
        }
        Some(record)
    }

    /// The commit's number; 0 before the first.
    pub fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    /// The pair that its state is read from.
    pub fn first(&self) -> StatePair {
        self.first
    }

    /// The pair that has the same state, if there is one.
    pub fn second(&self) -> Option<StatePair> {
        (self.second.state_bytes() > 0).then_some(self.second)
    }

    /// The digest of the first pair; identifies the commit.
    pub fn digest(&self) -> [u8; 32] {
        self.first.digest
    }

    fn is_known(&self) -> bool {
        let version = self.version.get();
        (WITHOUT_TABLE..=VERSION).contains(&version) && self.reserved.get() == 0
    }

    /// Whether both objects have it, unless one is damaged.
    fn is_twofold(&self) -> bool {
        self.version.get() > WITHOUT_SECOND
    }
}

/// The newest commit, as it was found.
pub struct FoundCommit {
    /// Its record.
    pub record: CommitRecord,
    /// Whether a record does not open that may have been newer.
    pub newer_may_be_damaged: bool,
    /// Copies of it that are not what was written.
    pub damaged: Vec<DamagedPlace>,
}

/// What a slot has.
enum FoundSlot {
    /// A record.
    Record(CommitRecord),
    /// Nothing was ever written there.
    Empty,
    /// What does not open, and why.
    Damaged(String),
}

/// The slots of both objects.
pub struct CommitSlots {
    volume: VolumeId,
    sealer: Sealer,
    /// Whether each object has the current record.
    whole: [bool; 2],
}

type Sealed = [u8; size_of::<CommitRecord>() + SEAL_OVERHEAD];
/// The longest of an older version.
const OLDER_SEALED: usize = OLDER_BYTES + SEAL_OVERHEAD;

impl CommitSlots {
    /// Those of a volume; nothing is known of them yet.
    pub fn new(volume: VolumeId, sealer: Sealer) -> Self {
        Self { volume, sealer, whole: [false; 2] }
    }

    /// Writes a record to both objects and makes it durable; on return, the commit is the current
    /// one. `current` is the one before.
    ///
    /// # Errors
    /// Those of the store and of the sealer.
    pub fn write(
        &mut self,
        store: &dyn Slots,
        current: &CommitRecord,
        record: &CommitRecord,
    ) -> Result<()> {
        // First the current one, where it is missing: then a crash leaves each slot whole.
        let lacks = |&object: &usize| current.epoch() > 0 && !self.whole[object];
        let lacking: Vec<usize> = (0..2).filter(lacks).collect();
        self.put(store, current, &lacking)?;
        self.whole = [true; 2];
        self.put(store, record, &[0, 1])
    }

    fn put(&mut self, store: &dyn Slots, record: &CommitRecord, objects: &[usize]) -> Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let place = self.place(record.epoch() % 2);
        let data = self.sealer.seal_vec(&place, record.as_bytes());
        let mut data = data.map_err(|error| Error::Closed(error.to_string()))?;
        // All of the slot, so that nothing is read from the disk that it perhaps cannot read.
        data.resize(SLOT_BYTES as usize, 0);
        let names: Vec<&str> = objects.iter().map(|&object| COMMIT_OBJECTS[object]).collect();
        let offset = place.index * SLOT_BYTES;
        let writes = names.iter().map(|object| WriteAt::new(object, offset, &data));
        store.write(&writes.collect::<Vec<_>>())?;
        Ok(store.sync(&names)?)
    }

    /// Reads the newest commit that opens.
    ///
    /// # Errors
    /// `Tampered` if none opens, `Unsupported` for an unknown version.
    pub fn read(&mut self, store: &dyn Held) -> Result<FoundCommit> {
        let found = self.read_slots(store)?;
        let records = found.iter().flatten().filter_map(|slot| match slot {
            FoundSlot::Record(record) => Some(*record),
            FoundSlot::Empty | FoundSlot::Damaged(_) => None,
        });
        let newest = records.reduce(|one, two| if two.epoch() > one.epoch() { two } else { one });
        let none = || Error::Tampered(format!("{}: no commit record opens", COMMIT_OBJECTS[0]));
        let record = newest.filter(|newest| newest.epoch() > 0).ok_or_else(none)?;
        let damaged = self.judge(&record, &found);
        let next = ((record.epoch() + 1) % 2) as usize;
        let objects = if record.is_twofold() { 2 } else { 1 };
        let newer_may_be_damaged =
            found[..objects].iter().all(|slots| matches!(slots[next], FoundSlot::Damaged(_)));
        Ok(FoundCommit { record, newer_may_be_damaged, damaged })
    }

    /// Compares both objects with the current record; gives what is not as it was written.
    ///
    /// # Errors
    /// `Unsupported` for an unknown version.
    pub fn inspect(
        &mut self,
        store: &dyn Held,
        record: &CommitRecord,
    ) -> Result<Vec<DamagedPlace>> {
        let found = self.read_slots(store)?;
        Ok(self.judge(record, &found))
    }

    /// Notes which objects have this record, and says which were damaged: a crash leaves older ones
    /// in one of them.
    fn judge(&mut self, record: &CommitRecord, found: &[[FoundSlot; 2]; 2]) -> Vec<DamagedPlace> {
        let slot = record.epoch() % 2;
        let mut damaged = Vec::new();
        for (object, slots) in found.iter().enumerate() {
            let found = &slots[slot as usize];
            self.whole[object] = matches!(found, FoundSlot::Record(found) if found == record);
            let why = match found {
                FoundSlot::Damaged(why) => why.clone(),
                // Of the first two commits a crash leaves an object that does not have it yet.
                FoundSlot::Empty if record.epoch() > 2 => "there is no record".into(),
                FoundSlot::Empty | FoundSlot::Record(_) => continue,
            };
            if record.is_twofold() || object == 0 {
                let begin = slot * SLOT_BYTES;
                let bytes = begin..begin + size_of::<Sealed>() as u64;
                damaged.push(DamagedPlace { object: COMMIT_OBJECTS[object].into(), bytes, why });
            }
        }
        damaged
    }

    /// The slots of each object, in one trip unless one cannot be read. An outage between two reads
    /// is no damage: the older record would pass for the newest.
    fn read_slots(&mut self, store: &dyn Held) -> Result<[[FoundSlot; 2]; 2]> {
        let mut all: [[Sealed; 2]; 2] = [[[0; size_of::<Sealed>()]; 2]; 2];
        let mut reads = Vec::with_capacity(4);
        for (object, slots) in COMMIT_OBJECTS.into_iter().zip(&mut all) {
            for (slot, buf) in (0..).zip(slots) {
                reads.push(ReadAt { object, offset: slot * SLOT_BYTES, buf });
            }
        }
        let together = store.read(&mut reads).is_ok();
        let mut failures = Vec::new();
        let mut found = [const { [const { FoundSlot::Empty }; 2] }; 2];
        for (object, slots) in found.iter_mut().enumerate() {
            for (slot, found) in slots.iter_mut().enumerate() {
                let sealed = &mut all[object][slot];
                let at = slot as u64 * SLOT_BYTES;
                let alone = || read_alone(store, COMMIT_OBJECTS[object], at, sealed);
                let wrong = match together {
                    true => None,
                    false => read_place(alone, || reads_any(store)).or_else(gone)?,
                };
                *found = match wrong {
                    None => self.open(slot as u64, sealed)?,
                    Some(error) => {
                        let why = error.to_string();
                        failures.push(error);
                        FoundSlot::Damaged(why)
                    }
                };
            }
        }
        // A disk that reads nothing of it is no damaged record.
        let failed = failures.len() == 4;
        let of_disk = failures.into_iter().find(|error| matches!(error, StoreError::Io { .. }));
        match of_disk.filter(|_| failed) {
            Some(error) => Err(error.into()),
            None => Ok(found),
        }
    }

    fn open(&mut self, slot: u64, sealed: &Sealed) -> Result<FoundSlot> {
        if sealed.iter().all(|&byte| byte == 0) {
            return Ok(FoundSlot::Empty);
        }
        let place = self.place(slot);
        let opened = self.sealer.open_vec(&place, sealed);
        let opened = opened.or_else(|_| self.sealer.open_vec(&place, &sealed[..OLDER_SEALED]));
        let Some(record) = opened.ok().and_then(|plain| CommitRecord::parse(&plain)) else {
            return Ok(FoundSlot::Damaged("a commit record does not open".into()));
        };
        if record.epoch() % 2 != slot {
            return Ok(FoundSlot::Damaged("a commit record is in the wrong place".into()));
        }
        match record.epoch() == 0 || record.is_known() {
            true => Ok(FoundSlot::Record(record)),
            false => Err(Error::Unsupported("the commit record has an unknown version".into())),
        }
    }

    fn place(&self, slot: u64) -> Place {
        Place { volume: self.volume, kind: Kind::Commit, index: slot, version: PLACE_VERSION }
    }
}

/// Whether any slot can be read.
fn reads_any(store: &dyn Held) -> bool {
    let slots = COMMIT_OBJECTS.into_iter().flat_map(|object| [(object, 0), (object, SLOT_BYTES)]);
    let mut sealed: Sealed = [0; size_of::<Sealed>()];
    slots.into_iter().any(|(object, at)| read_alone(store, object, at, &mut sealed).is_ok())
}

/// An object that is gone is damaged, as one that is cut.
fn gone(error: StoreError) -> std::result::Result<Option<StoreError>, StoreError> {
    if let StoreError::Missing { .. } = error { Ok(Some(error)) } else { Err(error) }
}

/// Reads one slot; an older record may be the end of its object.
fn read_alone(
    store: &dyn Held,
    object: &str,
    offset: u64,
    sealed: &mut Sealed,
) -> std::result::Result<(), StoreError> {
    sealed.fill(0);
    let read = |buf: &mut [u8]| store.read(&mut [ReadAt { object, offset, buf }]);
    match read(sealed) {
        Err(StoreError::Short { .. }) => {
            sealed.fill(0);
            read(&mut sealed[..OLDER_SEALED])
        }
        done => done,
    }
}
