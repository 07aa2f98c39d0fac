//! The places of the states: two, used in turn, so a crash while one is written leaves the other.
//! They stand in two objects, which say the same (docs/decisions/0041-two-of-what-is-small.md).
//! Volumes of older versions have one.
//!
//! A place is sealed and padded to pages. Its size follows from the header.

use super::PAGE;
use super::header::SequentialHeader;
use super::reads::DiskReads;
use super::state::{FIXED, STATE_OBJECT, State, WRITER};
use crate::damage::DamagedPlace;
use crate::trust::{MOST_ROWS, Table};
use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, SEAL_HEADER, Sealer, TAG_BYTES, VolumeId, digest};
use oblivio_engine::sequential::Layout;
use oblivio_store::{ReadAt, Slots, StoreError, WriteAt};

/// The objects that hold the places, in volumes with two of them.
pub const STATE_OBJECTS: [&str; 2] = [STATE_OBJECT, "state-2"];
const PLACE_VERSION: u64 = 1;

/// The form of the states of a volume. It follows from the header.
#[derive(Clone, Copy, Debug)]
pub struct StateForm {
    /// Bytes of the engine's part.
    pub engine_bytes: usize,
    /// Whether there is room for a whole table of computers.
    pub whole_table: bool,
    /// Whether two objects hold them.
    pub twofold: bool,
    /// Whether they name the states of lanes.
    pub lanes: bool,
}

impl StateForm {
    /// That of a volume with this disk.
    pub fn of(header: &SequentialHeader, layout: &Layout) -> Self {
        let (whole_table, twofold) = (header.whole_table, header.two_states);
        let (engine_bytes, lanes) = (layout.state_bytes(), header.lanes.is_some());
        Self { engine_bytes, whole_table, twofold, lanes }
    }

    /// The objects that hold the places.
    pub fn objects(&self) -> &'static [&'static str] {
        &STATE_OBJECTS[..if self.twofold { 2 } else { 1 }]
    }

    /// Bytes before the computers.
    fn own_bytes(&self) -> usize {
        FIXED + if self.lanes { 32 } else { 0 } + self.engine_bytes
    }

    /// Bytes of one place.
    fn place_bytes(&self) -> u64 {
        let computers = if self.whole_table { WRITER + Table::bytes(MOST_ROWS) } else { 0 };
        let sealed = SEAL_HEADER + self.own_bytes() + computers + TAG_BYTES;
        (sealed as u64).next_multiple_of(PAGE)
    }

    /// Bytes of an object.
    pub fn object_bytes(&self) -> u64 {
        2 * self.place_bytes()
    }
}

/// The places of the states.
pub struct StatePlaces {
    volume: VolumeId,
    sealer: Sealer,
    form: StateForm,
    /// Whether each object has the newest state, and the one before is no remains of a crash.
    whole: bool,
}

/// The newest state, as it was found.
#[derive(Debug)]
pub struct FoundState {
    /// The state.
    pub state: State,
    /// Its identity.
    pub identity: [u8; 32],
    /// Whether a place does not open that may have held a newer one.
    pub newer_may_be_damaged: bool,
    /// Copies of it that are not what was written.
    pub damaged: Vec<DamagedPlace>,
}

/// What a place has.
enum FoundPlace {
    State(Box<State>, [u8; 32]),
    /// Nothing was ever written there.
    Empty,
    /// What does not open, and why.
    Damaged(String),
}

impl FoundPlace {
    fn epoch(&self) -> u64 {
        match self {
            Self::State(state, _) => state.epoch,
            Self::Empty | Self::Damaged(_) => 0,
        }
    }
}

impl StatePlaces {
    /// The places of a volume.
    pub fn new(volume: VolumeId, sealer: Sealer, form: StateForm) -> Self {
        Self { volume, sealer, form, whole: true }
    }

    /// Rows in a table of computers; 0 if there is no room for one.
    pub fn rows(&self) -> usize {
        let taken = SEAL_HEADER + self.form.own_bytes() + WRITER + TAG_BYTES;
        Table::rows_in((self.bytes() as usize).saturating_sub(taken))
    }

    /// Bytes of one place.
    pub(super) fn bytes(&self) -> u64 {
        self.form.place_bytes()
    }

    /// Whether all copies were found as they should be. Two more states make them so.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Notes that two states were written since the opening.
    pub fn healed(&mut self) {
        self.whole = true;
    }

    /// Bytes of all places, in all objects.
    pub fn all_bytes(&self) -> u64 {
        self.form.object_bytes() * self.form.objects().len() as u64
    }

    pub(super) fn place(&self, epoch: u64) -> Place {
        Place { volume: self.volume, kind: Kind::State, index: epoch % 2, version: PLACE_VERSION }
    }

    /// Writes a state durably, to all objects; gives its identity.
    ///
    /// # Errors
    /// Those of the store and of the sealer.
    pub fn write(&mut self, store: &dyn Slots, state: &State) -> Result<[u8; 32]> {
        let mut sealed = state.to_bytes(self.rows());
        sealed.resize(self.bytes() as usize, 0);
        let place = self.place(state.epoch);
        let done = self.sealer.seal(&place, &mut sealed);
        done.map_err(|error| Error::Closed(error.to_string()))?;
        let (objects, offset) = (self.form.objects(), state.epoch % 2 * self.bytes());
        match objects {
            [object] => store.write_durable(object, offset, &sealed)?,
            objects => {
                let writes = objects.iter().map(|object| WriteAt::new(object, offset, &sealed));
                store.write(&writes.collect::<Vec<_>>())?;
                store.sync(objects)?;
            }
        }
        Ok(digest(&sealed))
    }

    /// Reads the newest state that opens, in whichever object it is.
    ///
    /// # Errors
    /// `Tampered` if none opens, `Unsupported` for an unknown version; those of the store if none
    /// can be read, or during an outage.
    pub fn read(&mut self, store: &dyn Slots, reads: &DiskReads) -> Result<FoundState> {
        let mut found = self.found(store, reads)?;
        let newest = found.iter().flatten().map(FoundPlace::epoch).max().unwrap_or(0);
        let damaged = self.damaged(&found, newest);
        let lost = |which: usize| {
            let copies = || found.iter().map(|places| &places[which]);
            let any = |copy: &FoundPlace| matches!(copy, FoundPlace::Damaged(_));
            copies().all(|copy| copy.epoch() == 0) && copies().any(any)
        };
        let newer_may_be_damaged = lost(0) || lost(1);
        let current = newest as usize % 2;
        self.whole = found.iter().all(|places| places[current].epoch() == newest);
        self.whole &= damaged.is_empty();
        let mut copies = found.iter_mut().map(|places| &mut places[current]);
        let place = copies.find(|copy| copy.epoch() == newest && newest > 0);
        match place.map(|place| std::mem::replace(place, FoundPlace::Empty)) {
            Some(FoundPlace::State(state, identity)) => {
                Ok(FoundState { state: *state, identity, newer_may_be_damaged, damaged })
            }
            _ => Err(Error::Tampered(format!("{STATE_OBJECT}: none opens"))),
        }
    }

    /// The copies of this state, the newest, that are not what was written.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn inspect(
        &mut self,
        store: &dyn Slots,
        reads: &DiskReads,
        newest: u64,
    ) -> Result<Vec<DamagedPlace>> {
        let found = self.found(store, reads)?;
        Ok(self.damaged(&found, newest))
    }

    /// The damaged places, of an object for each list. A place that is not the newest state's may
    /// be the remains of a crash: only one that cannot be read counts.
    fn damaged(&self, found: &[[FoundPlace; 2]], newest: u64) -> Vec<DamagedPlace> {
        let mut damaged = Vec::new();
        for (object, places) in self.form.objects().iter().zip(found) {
            let why = match &places[newest as usize % 2] {
                FoundPlace::Damaged(why) => why.clone(),
                FoundPlace::Empty => "the newest state is missing".into(),
                FoundPlace::State(..) => continue,
            };
            let from = newest % 2 * self.bytes();
            let (object, bytes) = ((*object).to_owned(), from..from + self.bytes());
            damaged.push(DamagedPlace { object, bytes, why });
        }
        damaged
    }

    /// Both places of each object.
    fn found(&mut self, store: &dyn Slots, reads: &DiskReads) -> Result<Vec<[FoundPlace; 2]>> {
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for &object in self.form.objects() {
            let mut places = [FoundPlace::Empty, FoundPlace::Empty];
            for (which, place) in (0..).zip(&mut places) {
                let mut sealed = vec![0; self.bytes() as usize];
                let offset = which * self.bytes();
                let read = ReadAt { object, offset, buf: &mut sealed };
                let opened = match reads.read_copy(store, read)? {
                    None => self.open(which, sealed),
                    Some(StoreError::Missing { .. }) => {
                        Ok(FoundPlace::Damaged("the object is missing".into()))
                    }
                    Some(error) => Err(error.into()),
                };
                *place = match opened {
                    Ok(found) => found,
                    Err(error @ (Error::Store(_) | Error::Tampered(_))) => {
                        let why = error.to_string();
                        failed.push(error);
                        FoundPlace::Damaged(why)
                    }
                    Err(error) => return Err(error),
                };
            }
            found.push(places);
        }
        match failed.pop() {
            Some(error) if failed.len() + 1 == 2 * found.len() => Err(error),
            _ => Ok(found),
        }
    }

    fn open(&mut self, which: u64, mut sealed: Vec<u8>) -> Result<FoundPlace> {
        if sealed.iter().all(|&byte| byte == 0) {
            return Ok(FoundPlace::Empty);
        }
        let identity = digest(&sealed);
        let Ok(plain) = self.sealer.open(&self.place(which), &mut sealed) else {
            return Ok(FoundPlace::Damaged("it is not a state of this volume".into()));
        };
        let state = State::parse(plain, (self.form.engine_bytes, self.form.lanes))?;
        match state.epoch % 2 == which && state.epoch > 0 {
            true => Ok(FoundPlace::State(Box::new(state), identity)),
            false => Ok(FoundPlace::Damaged("it holds another place's state".into())),
        }
    }
}
