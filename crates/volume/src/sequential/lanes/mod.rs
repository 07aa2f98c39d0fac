//! Lanes: smaller volumes that are written beside this one at every act, used or not
//! (docs/decisions/0051-lanes.md).
//!
//! A flush writes a bucket to each level of each lane, a quantum of the log a quantum, a state a
//! state, a clean end access times. Without a lane's key all of it is burnt: ciphertext under a key
//! that is thrown away. So nobody without its key can tell whether a lane holds anything.
//!
//! Places, lengths and order of these writes follow from the acts of the volume alone. A lane
//! shares no sealer, counter or cache with the volume.

mod beside;
mod form;
mod found_log;
mod lane;
mod lane_flush;
mod log;
mod mark;
mod open;
mod parameters;
mod places;
mod riding;
mod space;
mod state;
mod unlock;
mod waits;

pub(super) use beside::Beside;
pub(super) use form::LaneForm;
pub(super) use lane::SharedLane;
pub(super) use log::LaneLogs;
pub use parameters::LaneParameters;
pub(super) use places::LanePlaces;
pub(super) use space::LaneSpace;
pub(super) use unlock::{lane_key, newest_of, unlock};

use super::DISK_OBJECT;
use super::reads::DiskReads;
use crate::damage::DamagedPlace;
use crate::lane::LaneMaster;
use crate::{Error, Result};
use oblivio_crypto::{Burner, MasterKey, Randomness, digest};
use oblivio_engine::Extent;
use oblivio_engine::sequential::Flush;
use oblivio_store::{ReadAt, Slots, WriteAt};
use parameters::LaneObjects;

/// Bytes of access times burnt together.
const PART: usize = 1 << 20;

/// The lanes of an open volume. Those without a key are burnt.
pub(super) struct Lanes {
    pub form: LaneForm,
    /// The volume's own key: a lane's passphrase opens both.
    pub master: MasterKey,
    open: Vec<Option<SharedLane>>,
    burner: Burner,
    /// What a flush reads of a lane in vain, and what it writes of all: the previous one's buffers.
    read: Vec<u8>,
    written: Vec<u8>,
}

impl Lanes {
    /// Lanes of this form, all of them shut.
    pub fn of(form: LaneForm, master: MasterKey, randomness: &Randomness) -> Self {
        let open = form.parameters.objects().iter().map(|_| None).collect();
        let (burner, read, written) = (Burner::new(randomness), Vec::new(), Vec::new());
        Self { form, master, open, burner, read, written }
    }

    fn objects(&self) -> &'static [LaneObjects] {
        self.form.parameters.objects()
    }

    /// From now on this lane is open.
    pub fn open(&mut self, lane: SharedLane) {
        let at = usize::from(lane.number);
        self.open[at] = Some(lane);
    }

    /// An open lane, counted from 0.
    pub fn lane(&self, number: u8) -> Option<&SharedLane> {
        let lane = self.open.get(usize::from(number))?.as_ref();
        lane.filter(|lane| lane.is_open() && lane.is_somebodys())
    }

    /// The lanes that nobody opened in this session.
    pub fn shut(&self) -> Vec<u8> {
        let lanes = (0u8..).zip(&self.open);
        lanes.filter(|(_, lane)| lane.is_none()).map(|(number, _)| number).collect()
    }

    /// Fresh keys of a lane.
    pub fn fresh(&self, number: u8, randomness: &Randomness) -> Result<LaneMaster> {
        let mut before = vec![self.master.duplicate()];
        for earlier in 0..number {
            let lane = self.lane(earlier).ok_or_else(|| {
                Error::Invalid("open the first lane to make the second one".into())
            })?;
            before.push(lane.inner().keys.master.master.duplicate());
        }
        Ok(LaneMaster::generate(number, before, randomness))
    }

    /// The part of each lane in a flush of the volume, which writes it with its own. A lane reads
    /// and opens as much as one of full levels does, whether it is open or burnt.
    pub fn begin_flush(
        &mut self,
        store: &dyn Slots,
        reads: &DiskReads,
        flush: Flush,
    ) -> Result<Vec<WriteAt<'_>>> {
        let layout = &self.form.layout;
        let (wanted, places) = (layout.reads(flush), layout.writes(flush));
        let bytes = |extents: &[Extent]| extents.iter().map(|it| it.bytes as usize).sum();
        let (each, piece): (usize, usize) = (bytes(&places), self.form.quantum.block_bytes);
        let objects = self.form.parameters.objects();
        self.written.resize(objects.len() * each, 0);
        for (at, out) in self.written.chunks_mut(each).enumerate() {
            let open = match &self.open[at] {
                Some(lane) => lane.begin_flush(flush, out)?,
                None => None,
            };
            let whole = 0..each;
            let (left, read) = open.unwrap_or_else(|| (vec![whole], 0));
            // What an open lane had in memory it reads in vain.
            let mut rest = (bytes(&wanted) as u64).saturating_sub(read);
            let in_vain = wanted.iter().take_while(|extent| {
                let more = rest > 0;
                rest = rest.saturating_sub(extent.bytes);
                more
            });
            let in_vain: Vec<Extent> = in_vain.copied().collect();
            self.read.resize(bytes(&in_vain), 0);
            let parts = cut(&in_vain, &mut self.read);
            let object = objects[at].disk;
            let mut parts: Vec<_> =
                parts.map(|(offset, buf)| ReadAt { object, offset, buf }).collect();
            reads.read(store, &mut parts)?;
            self.burner.open_in_vain(&mut self.read, piece).map_err(Error::sealing)?;
            for part in left {
                self.burner.burn(&mut out[part], piece).map_err(Error::sealing)?;
            }
        }
        let mut writes = Vec::new();
        for (lane, out) in objects.iter().zip(self.written.chunks_mut(each)) {
            let places = cut(&places, out);
            writes.extend(places.map(|(offset, data)| WriteAt::new(lane.disk, offset, data)));
        }
        Ok(writes)
    }

    /// The volume has made all flushes before this one.
    pub fn stand_at(&self, outer: Flush) {
        self.open.iter().flatten().for_each(|lane| lane.stands_at(outer));
    }

    /// The store has the flush.
    pub fn end_flush(&self) -> Result<()> {
        self.open.iter().flatten().try_for_each(|lane| lane.end_flush())
    }

    /// The volume's state is durable, with those of the lanes beside it.
    pub fn named(&self) {
        self.open.iter().flatten().filter(|lane| lane.is_open()).for_each(|lane| lane.named());
    }

    /// The states of the lanes beside state `number` of the volume, durably. Gives their identity,
    /// which the volume's state names.
    pub fn write_states(&mut self, store: &dyn Slots, number: u64) -> Result<[u8; 32]> {
        let (bytes, objects) = (self.form.state_bytes() as usize, self.objects());
        let offset = number % self.form.states * bytes as u64;
        let mut states = vec![0; bytes * objects.len()];
        for (lane, state) in self.open.iter().zip(states.chunks_mut(bytes)) {
            let open = match lane {
                Some(lane) => lane.state(number)?,
                None => None,
            };
            match open {
                Some(open) => state.copy_from_slice(&open),
                None => self.burner.burn(state, bytes).map_err(Error::sealing)?,
            }
        }
        let places = objects.iter().zip(states.chunks(bytes));
        let writes = places.map(|(lane, data)| WriteAt::new(lane.state, offset, data));
        store.write(&writes.collect::<Vec<_>>())?;
        store.sync(&objects.iter().map(|lane| lane.state).collect::<Vec<_>>())?;
        Ok(digest(&states))
    }

    /// The states of the lanes beside state `number` of the volume, if they are not those that it
    /// names. The volume goes on without them: who can change a byte must not be able to stop it.
    pub fn damaged(
        &self,
        store: &dyn Slots,
        reads: &DiskReads,
        (number, named): (u64, Option<[u8; 32]>),
    ) -> Result<Vec<DamagedPlace>> {
        let (bytes, objects) = (self.form.state_bytes(), self.objects());
        let offset = number % self.form.states * bytes;
        let mut states = vec![0; bytes as usize * objects.len()];
        for (lane, buf) in objects.iter().zip(states.chunks_mut(bytes as usize)) {
            reads.read_copy(store, ReadAt { object: lane.state, offset, buf })?;
        }
        if named == Some(digest(&states)) {
            return Ok(Vec::new());
        }
        let place = |lane: &LaneObjects| DamagedPlace {
            object: lane.state.to_owned(),
            bytes: offset..offset + bytes,
            why: "a lane's state is not what was written last".to_owned(),
        };
        Ok(objects.iter().map(place).collect())
    }

    /// Bytes of the newest states.
    pub fn state_bytes(&self) -> u64 {
        u64::from(self.form.parameters.count) * self.form.state_bytes()
    }

    /// The access times of the lanes at a clean end, durably, for state `number`.
    pub fn write_times(&mut self, store: &dyn Slots, number: u64) -> Result<()> {
        let objects = self.objects();
        for (at, lane) in objects.iter().enumerate() {
            if let Some(open) = &self.open[at]
                && open.write_times(store, number)?
            {
                continue;
            }
            self.burn_times(store, lane.times)?;
        }
        Ok(())
    }

    fn burn_times(&mut self, store: &dyn Slots, object: &'static str) -> Result<()> {
        let (mut part, mut offset) = (vec![0; PART], 0);
        while offset < self.form.times_bytes() {
            let bytes = PART.min((self.form.times_bytes() - offset) as usize);
            self.burner.burn(&mut part[..bytes], PART).map_err(Error::sealing)?;
            store.write(&[WriteAt::new(object, offset, &part[..bytes])])?;
            offset += bytes as u64;
        }
        Ok(store.sync(&[object])?)
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.open.iter().flatten().for_each(|lane| lane.end());
    }
}

/// The objects with levels: the volume's own, and those of its lanes.
pub(super) fn disks(lanes: &Option<Lanes>) -> Vec<&'static str> {
    let lanes = lanes.iter().flat_map(Lanes::objects).map(|lane| lane.disk);
    [DISK_OBJECT].into_iter().chain(lanes).collect()
}

/// The parts of a buffer that belong to these places.
fn cut<'p, 'b>(
    places: &'p [Extent],
    mut buffer: &'b mut [u8],
) -> impl Iterator<Item = (u64, &'b mut [u8])> + use<'p, 'b> {
    places.iter().map(move |place| {
        let (part, rest) = std::mem::take(&mut buffer).split_at_mut(place.bytes as usize);
        buffer = rest;
        (place.offset, part)
    })
}
