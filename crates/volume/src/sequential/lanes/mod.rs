//! Lanes: smaller volumes that are written beside this one at every act, used or not
//! (docs/decisions/0051-lanes.md).
//!
//! A flush writes a bucket to each level of each lane, a quantum of the log a quantum, a state a
//! state, a clean end access times. Without a lane's key all of it is burnt: ciphertext under a key
//! that is thrown away. So nobody without its key can tell whether a lane holds anything.
//!
//! Places, lengths and order of these writes follow from the acts of the volume alone. A lane
//! shares no sealer, counter or cache with the volume.

mod form;
mod log;
mod parameters;

pub(super) use form::LaneForm;
pub(super) use log::LaneLogs;
pub use parameters::LaneParameters;

use super::DISK_OBJECT;
use super::reads::DiskReads;
use crate::damage::DamagedPlace;
use crate::{Error, Result};
use oblivio_crypto::{Burner, CryptoError, Randomness, digest};
use oblivio_engine::Extent;
use oblivio_engine::sequential::Flush;
use oblivio_store::{ReadAt, Slots, WriteAt};
use parameters::LaneObjects;

/// Bytes of access times burnt together.
const PART: usize = 1 << 20;

/// The lanes of an open volume; none of them has a key.
pub(super) struct Lanes {
    pub form: LaneForm,
    burner: Burner,
    /// What a flush reads and writes of all lanes: the previous one's buffer.
    buffer: Vec<u8>,
}

impl Lanes {
    /// Lanes of this form.
    pub fn of(form: LaneForm, randomness: &Randomness) -> Self {
        Self { form, burner: Burner::new(randomness), buffer: Vec::new() }
    }

    fn objects(&self) -> &'static [LaneObjects] {
        self.form.parameters.objects()
    }

    /// The part of each lane in a flush of the volume, which writes it with its own: it reads as
    /// much as a lane of full levels does, opens that in vain, and burns what is written.
    pub fn flush(
        &mut self,
        store: &dyn Slots,
        reads: &DiskReads,
        flush: Flush,
    ) -> Result<Vec<WriteAt<'_>>> {
        let layout = &self.form.layout;
        let (wanted, places) = (layout.reads(flush), layout.writes(flush));
        let bytes = |extents: &[Extent]| extents.iter().map(|it| it.bytes as usize).sum();
        let (read, written): (usize, usize) = (bytes(&wanted), bytes(&places));
        let (lanes, each) = (self.objects(), read.max(written));
        self.buffer.resize(lanes.len() * each, 0);
        let mut parts = Vec::new();
        for (lane, buffer) in lanes.iter().zip(self.buffer.chunks_mut(each)) {
            let places = cut(&wanted, buffer);
            parts.extend(places.map(|(offset, buf)| ReadAt { object: lane.disk, offset, buf }));
        }
        reads.read(store, &mut parts)?;
        let piece = self.form.quantum.block_bytes;
        for buffer in self.buffer.chunks_mut(each) {
            self.burner.open_in_vain(&mut buffer[..read], piece).map_err(closed)?;
            self.burner.burn(&mut buffer[..written], piece).map_err(closed)?;
        }
        let mut writes = Vec::new();
        for (lane, buffer) in lanes.iter().zip(self.buffer.chunks_mut(each)) {
            let places = cut(&places, buffer);
            writes.extend(places.map(|(offset, data)| WriteAt::new(lane.disk, offset, data)));
        }
        Ok(writes)
    }

    /// The states of the lanes beside state `number` of the volume, durably. Gives their identity,
    /// which the volume's state names.
    pub fn write_states(&mut self, store: &dyn Slots, number: u64) -> Result<[u8; 32]> {
        let (bytes, objects) = (self.form.state_bytes(), self.objects());
        let offset = number % self.form.states * bytes;
        let mut states = vec![0; bytes as usize * objects.len()];
        self.burner.burn(&mut states, bytes as usize).map_err(closed)?;
        let places = objects.iter().zip(states.chunks(bytes as usize));
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

    /// The access times of the lanes at a clean end, durably.
    pub fn write_times(&mut self, store: &dyn Slots) -> Result<()> {
        let form = &self.form;
        let mut part = vec![0; PART];
        for lane in form.parameters.objects() {
            let mut offset = 0;
            while offset < form.times_bytes() {
                let bytes = PART.min((form.times_bytes() - offset) as usize);
                self.burner.burn(&mut part[..bytes], PART).map_err(closed)?;
                store.write(&[WriteAt::new(lane.times, offset, &part[..bytes])])?;
                offset += bytes as u64;
            }
            store.sync(&[lane.times])?;
        }
        Ok(())
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

fn closed(error: CryptoError) -> Error {
    Error::Closed(error.to_string())
}
