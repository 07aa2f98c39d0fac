//! The ring log: every write, in order, in sealed quanta of one size.
//!
//! Quantum `n` is at place `n` modulo their number. It opens only there and as number `n`, and
//! names the tag of its predecessor, so nobody can splice two logs. Each records how many were
//! durable when it was written. A missing quantum that was durable is therefore damage, and no torn
//! end. If one page of it is damaged, its parity has that, and the next write to the log heals it.

mod reading;

use super::PAGE;
use super::lanes::{LaneLogs, SharedLane};
pub use super::log_position::LogPosition;
use super::parity::Parity;
use super::quantum::{Filling, QuantumEntry, QuantumForm};
use super::reads::DiskReads;
use super::ring::in_ring;
use crate::damage::DamagedPlace;
use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, Sealer, VolumeId};
use oblivio_store::{Slots, WriteAt};
pub use reading::{LogReader, OpenedQuantum, not_synced};
use std::collections::BTreeMap;

/// The object that holds the log.
pub const LOG_OBJECT: &str = "log";
/// Bytes of sealed quanta at which they go to the store.
const TOGETHER: usize = 256 << 10;

/// The log of one session.
pub struct RingLog {
    volume: VolumeId,
    sealer: Sealer,
    parity: Parity,
    reads: DiskReads,
    /// The form of new quanta.
    form: QuantumForm,
    /// That of others, in a volume that was made without parity. It takes parity with its next
    /// write, and quanta of both forms are read before and after.
    other: Option<QuantumForm>,
    took_parity: bool,
    /// Quanta that fit.
    quanta: u64,
    /// The next quantum.
    next: LogPosition,
    /// Quanta below this are durable.
    durable: u64,
    filling: Option<Filling>,
    /// Sealed quanta not yet in the store.
    sealed: Vec<u8>,
    /// The logs of lanes, which get a quantum with each of this one, if there are any.
    lanes: Option<LaneLogs>,
    /// Pages that were damaged: by quantum, the number of the page, and what must stand there.
    damaged: BTreeMap<u64, (usize, Vec<u8>)>,
    /// Those that this session met, healed or not.
    met: Vec<MetPage>,
}

/// A page that was not what was written, and was made again.
struct MetPage {
    quantum: u64,
    /// Whether the disk cannot read it.
    is_lost: bool,
    place: DamagedPlace,
}

impl RingLog {
    /// An empty log.
    pub fn new(
        volume: VolumeId,
        (sealer, parity): (Sealer, Parity),
        reads: DiskReads,
        (form, quanta): (QuantumForm, u64),
        lanes: Option<LaneLogs>,
    ) -> Self {
        Self {
            volume,
            sealer,
            parity,
            reads,
            form,
            other: form.with_parity_inside(),
            took_parity: false,
            quanta,
            next: LogPosition::default(),
            durable: 0,
            filling: None,
            sealed: Vec::new(),
            lanes,
            damaged: BTreeMap::new(),
            met: Vec::new(),
        }
    }

    /// Whether a log that was made without parity can have it.
    pub fn lacks_parity(&self) -> bool {
        self.other.is_some() && !self.took_parity
    }

    /// Whether quanta may have parity in a log that was made without.
    pub fn took_parity(&self) -> bool {
        self.took_parity
    }

    /// From now on, quanta have parity, if they have room for it. A state must say so before.
    pub fn take_parity(&mut self) {
        let Some(form) = self.other.filter(|_| !self.took_parity) else { return };
        self.other = Some(std::mem::replace(&mut self.form, form));
        self.took_parity = true;
        if let Some(filling) = &mut self.filling {
            filling.take_form(form);
        }
    }

    /// Bytes of the object.
    pub fn object_bytes(form: QuantumForm, quanta: u64) -> u64 {
        quanta * form.bytes() as u64
    }

    /// The next quantum's mark. None may be filling.
    pub fn end(&self) -> LogPosition {
        self.next
    }

    /// The offset and the bytes of the quantum with this number.
    pub fn place_of(&self, number: u64) -> (u64, usize) {
        let bytes = self.form.bytes();
        (number % self.quanta * bytes as u64, bytes)
    }

    /// Writes that fit in a quantum.
    pub fn writes_per_quantum(&self) -> u64 {
        self.form.writes as u64
    }

    /// Whether anything is not durable yet.
    pub fn waits(&self) -> bool {
        self.filling.is_some() || self.durable < self.next.number
    }

    /// Continues from here; everything below is durable.
    pub fn resume(&mut self, end: LogPosition) {
        self.next = end;
        self.set_durable(end.number);
    }

    /// The quanta below this number are durable.
    pub fn set_durable(&mut self, end: u64) {
        self.durable = self.durable.max(end);
    }

    /// Quanta since a mark.
    pub fn since(&self, mark: LogPosition) -> u64 {
        self.next.number - mark.number
    }

    /// Adds an entry, number `write` among all writes.
    ///
    /// # Errors
    /// Those of the store and of the sealer.
    pub fn add(&mut self, store: &dyn Slots, write: u64, entry: QuantumEntry<'_>) -> Result<()> {
        let form = self.form;
        let filling = self.filling.get_or_insert_with(|| Filling::new(form, write));
        filling.add(entry);
        if filling.is_full() {
            self.close()?;
        }
        match self.sealed.len() >= TOGETHER {
            true => self.hand_over(store),
            false => Ok(()),
        }
    }

    /// Adds the root, behind all writes so far. `write` is the number of the next.
    pub fn set_root(&mut self, write: u64, root: &[u8]) {
        let form = self.form;
        self.filling.get_or_insert_with(|| Filling::new(form, write)).set_root(root);
    }

    /// Closes the quantum being filled, if any.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn close(&mut self) -> Result<()> {
        let Some(filling) = self.filling.take() else { return Ok(()) };
        let (mut quantum, form) = filling.finish(self.next.before, self.durable);
        let place = self.place(self.next.number);
        let sealed = self.sealer.seal(&place, &mut quantum[..form.sealed_bytes()]);
        let before = sealed.map_err(|error| Error::Closed(error.to_string()))?;
        if form.has_parity() {
            self.parity.close(self.next.number, &mut quantum);
        }
        self.next = LogPosition { number: self.next.number + 1, before };
        self.sealed.extend_from_slice(&quantum);
        let number = self.next.number - 1;
        self.lanes.as_mut().map_or(Ok(()), |lanes| lanes.close(number))
    }

    /// From now on this lane is open.
    pub fn open_lane(&mut self, lane: SharedLane) {
        if let Some(lanes) = &mut self.lanes {
            lanes.open(lane);
        }
    }

    /// Passes all sealed quanta to the store, after what heals those before them.
    ///
    /// # Errors
    /// Those of the store.
    pub fn hand_over(&mut self, store: &dyn Slots) -> Result<()> {
        if !self.sealed.is_empty() {
            self.heal(store)?;
            store.write(&self.writes())?;
            self.written();
        }
        Ok(())
    }

    /// Makes all closed quanta durable, after what heals those before them.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sync(&mut self, store: &dyn Slots) -> Result<()> {
        self.heal(store)?;
        match self.writes()[..] {
            [WriteAt { object, offset, data, .. }] => store.write_durable(object, offset, data)?,
            ref writes => {
                store.write(writes)?;
                store.sync(&self.objects())?;
            }
        }
        self.written();
        self.durable = self.next.number;
        self.lanes.iter().for_each(LaneLogs::synced);
        Ok(())
    }

    /// Notes that another call made everything passed to the store durable.
    pub fn synced(&mut self) {
        self.set_durable(self.next.number - self.sealed.len() as u64 / self.form.bytes() as u64);
        if self.sealed.is_empty() {
            self.lanes.iter().for_each(LaneLogs::synced);
        }
    }

    /// The objects of all logs.
    pub fn objects(&self) -> Vec<&'static str> {
        [LOG_OBJECT].into_iter().chain(self.lanes.iter().flat_map(LaneLogs::objects)).collect()
    }

    /// The sealed quanta at their places, those of lanes behind them.
    fn writes(&self) -> Vec<WriteAt<'_>> {
        let form = (self.form.bytes(), self.quanta);
        let own = in_ring(LOG_OBJECT, &self.sealed, form, self.next.number);
        let lanes = self.lanes.iter().flat_map(|lanes| lanes.writes(self.next.number));
        own.chain(lanes).collect()
    }

    /// The store has all quanta that were sealed.
    fn written(&mut self) {
        self.sealed.clear();
        self.lanes.iter_mut().for_each(LaneLogs::written);
    }

    fn place(&self, number: u64) -> Place {
        let index = number % self.quanta;
        Place { volume: self.volume, kind: Kind::Journal, index, version: number }
    }

    /// Notes a page that is to be healed, perhaps because the disk cannot read it.
    fn meet(&mut self, number: u64, page: (usize, Vec<u8>), is_lost: bool) -> DamagedPlace {
        let at = self.place_of(number).0 + page.0 as u64 * PAGE;
        let why = format!("a page of quantum {number} is not what was written");
        let place = DamagedPlace { object: LOG_OBJECT.to_owned(), bytes: at..at + PAGE, why };
        if self.damaged.insert(number, page).is_none() {
            self.met.push(MetPage { quantum: number, is_lost, place: place.clone() });
        }
        place
    }

    /// A crash explains what was torn of the quanta from this number on: they may have been written
    /// and not synced. They are healed, and nothing is said of them.
    pub fn excuse(&mut self, from: u64) {
        self.met.retain(|met| met.is_lost || met.quantum < from);
    }

    /// The pages that this session met damaged. The next write to the log heals them.
    pub fn damaged(&self) -> Vec<DamagedPlace> {
        self.met.iter().map(|met| met.place.clone()).collect()
    }

    /// Whether no page is known to be damaged.
    pub fn is_whole(&self) -> bool {
        self.damaged.is_empty()
    }

    /// Writes damaged pages anew, durably. Nothing was written in their place since.
    ///
    /// # Errors
    /// Those of the store.
    pub fn heal(&mut self, store: &dyn Slots) -> Result<()> {
        if self.is_whole() {
            return Ok(());
        }
        let writes = self.damaged.iter().map(|(number, (page, bytes))| {
            WriteAt::new(LOG_OBJECT, self.place_of(*number).0 + *page as u64 * PAGE, bytes)
        });
        store.write(&writes.collect::<Vec<_>>())?;
        store.sync(&[LOG_OBJECT])?;
        self.damaged.clear();
        Ok(())
    }
}
