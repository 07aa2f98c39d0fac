//! The logs of lanes: a quantum beside each of the volume's, written and made durable with it.

use super::form::LaneForm;
use super::lane::SharedLane;
use super::parameters::LaneObjects;
use crate::sequential::ring::in_ring;
use crate::{Error, Result};
use oblivio_crypto::{Burner, Randomness};
use oblivio_store::WriteAt;

/// The logs of a volume's lanes.
pub struct LaneLogs {
    objects: &'static [LaneObjects],
    burner: Burner,
    /// Bytes of a quantum.
    bytes: usize,
    /// Quanta that fit.
    quanta: u64,
    /// Of each lane the quanta that are not yet in the store.
    waiting: Vec<Vec<u8>>,
    /// Those that are open.
    open: Vec<Option<SharedLane>>,
}

impl LaneLogs {
    /// Those of lanes of this form.
    pub fn of(form: &LaneForm, randomness: &Randomness) -> Self {
        let objects = form.parameters.objects();
        let (bytes, quanta) = (form.quantum.bytes(), form.quanta);
        let waiting = vec![Vec::new(); objects.len()];
        let open = objects.iter().map(|_| None).collect();
        Self { objects, burner: Burner::new(randomness), bytes, quanta, waiting, open }
    }

    /// From now on this lane is open.
    pub fn open(&mut self, lane: SharedLane) {
        let at = usize::from(lane.number);
        self.open[at] = Some(lane);
    }

    /// The objects.
    pub fn objects(&self) -> impl Iterator<Item = &'static str> {
        self.objects.iter().map(|lane| lane.log)
    }

    /// Closes the quantum of each lane beside quantum `number` of the volume, which was closed.
    ///
    /// # Errors
    /// Those of the burner, and of the store.
    pub fn close(&mut self, number: u64) -> Result<()> {
        for (lane, waiting) in self.open.iter().zip(&mut self.waiting) {
            let open = match lane {
                Some(lane) => lane.close_quantum(number)?,
                None => None,
            };
            if let Some(quantum) = open {
                waiting.extend_from_slice(&quantum);
                continue;
            }
            let from = waiting.len();
            waiting.resize(from + self.bytes, 0);
            self.burner.burn(&mut waiting[from..], self.bytes).map_err(Error::sealing)?;
        }
        Ok(())
    }

    /// All quanta so far are durable.
    pub fn synced(&self) {
        self.open.iter().flatten().for_each(|lane| lane.synced());
    }

    /// The quanta that wait, at their places; the volume's next one is number `next`.
    pub fn writes(&self, next: u64) -> impl Iterator<Item = WriteAt<'_>> {
        let logs = self.objects.iter().zip(&self.waiting);
        logs.flat_map(move |(lane, waiting)| {
            in_ring(lane.log, waiting, (self.bytes, self.quanta), next)
        })
    }

    /// The store has all that waited.
    pub fn written(&mut self) {
        self.waiting.iter_mut().for_each(Vec::clear);
    }
}
