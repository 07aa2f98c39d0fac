//! The ring log: every write, in order, in sealed quanta of one size.
//!
//! Quantum `n` is at place `n` modulo their number. It opens only there and as number `n`, and
//! names the tag of its predecessor, so nobody can splice two logs. Each records how many were
//! durable when it was written. A missing quantum that was durable is therefore damage, and no torn
//! end. If one page of it is damaged, its parity has that, and the next write to the log heals it.

use super::PAGE;
use super::parity::{Parity, repair};
use super::quantum::{Filling, Quantum, QuantumEntry, QuantumForm};
use super::reads::Reads;
use crate::damage::DamagedPlace;
use crate::trust::LogMark;
use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, SEAL_HEADER, Sealer, TAG_BYTES, Tag, VolumeId, tag_of};
use oblivio_store::{ReadAt, Slots, WriteAt};
use std::collections::BTreeMap;

/// The object that holds the log.
pub const LOG_OBJECT: &str = "log";
/// Bytes of sealed quanta at which they go to the store.
const TOGETHER: usize = 256 << 10;
/// Bytes read at a time.
const WINDOW: usize = 4 << 20;

/// A place from which the log can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// The number of a quantum.
    pub number: u64,
    /// The tag of the quantum before it.
    pub before: Tag,
}

impl From<LogPosition> for LogMark {
    fn from(mark: LogPosition) -> Self {
        Self { end: mark.number, tag: mark.before }
    }
}

/// The log of one session.
pub struct RingLog {
    volume: VolumeId,
    sealer: Sealer,
    parity: Parity,
    reads: Reads,
    /// The form of new quanta.
    form: QuantumForm,
    /// That of others, in a volume that was made without parity.
    old: Option<QuantumForm>,
    /// Quanta that fit.
    quanta: u64,
    /// The next quantum.
    next: LogPosition,
    /// Quanta below this are durable.
    durable: u64,
    filling: Option<Filling>,
    /// Sealed quanta not yet in the store.
    sealed: Vec<u8>,
    /// Pages that were damaged: by quantum, the number of the page, and what must stand there.
    damaged: BTreeMap<u64, (usize, Vec<u8>)>,
    /// Those that this session met, healed or not.
    met: Vec<DamagedPlace>,
}

impl RingLog {
    /// An empty log.
    pub fn new(
        volume: VolumeId,
        (sealer, parity): (Sealer, Parity),
        reads: Reads,
        (form, quanta): (QuantumForm, u64),
    ) -> Self {
        Self {
            volume,
            sealer,
            parity,
            reads,
            form,
            old: None,
            quanta,
            next: LogPosition::default(),
            durable: 0,
            filling: None,
            sealed: Vec::new(),
            damaged: BTreeMap::new(),
            met: Vec::new(),
        }
    }

    /// Whether a log that was made without parity can have it.
    pub fn lacks_parity(&self) -> bool {
        self.form.with_parity_inside().is_some()
    }

    /// Whether quanta may have parity in a log that was made without.
    pub fn took_parity(&self) -> bool {
        self.old.is_some()
    }

    /// From now on, quanta have parity, if they have room for it. A state must say so before.
    pub fn take_parity(&mut self) {
        let Some(form) = self.form.with_parity_inside() else { return };
        self.old = Some(std::mem::replace(&mut self.form, form));
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
        Ok(())
    }

    /// Passes all sealed quanta to the store.
    ///
    /// # Errors
    /// Those of the store.
    pub fn hand_over(&mut self, store: &dyn Slots) -> Result<()> {
        if !self.sealed.is_empty() {
            store.write(&self.writes())?;
            self.sealed.clear();
        }
        Ok(())
    }

    /// Makes all closed quanta durable.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sync(&mut self, store: &dyn Slots) -> Result<()> {
        match self.writes()[..] {
            [WriteAt { object, offset, data, .. }] => store.write_durable(object, offset, data)?,
            ref writes => {
                store.write(writes)?;
                store.sync(&[LOG_OBJECT])?;
            }
        }
        self.sealed.clear();
        self.durable = self.next.number;
        Ok(())
    }

    /// Notes that another call made everything passed to the store durable.
    pub fn synced(&mut self) {
        self.set_durable(self.next.number - self.sealed.len() as u64 / self.form.bytes() as u64);
    }

    /// The sealed quanta at their places: in two parts if the ring wraps around.
    fn writes(&self) -> Vec<WriteAt<'_>> {
        let bytes = self.form.bytes();
        let first = self.next.number - (self.sealed.len() / bytes) as u64;
        let until_end = (self.quanta - first % self.quanta).saturating_mul(bytes as u64);
        let cut = usize::try_from(until_end).unwrap_or(usize::MAX).min(self.sealed.len());
        let (data, again) = self.sealed.split_at(cut);
        let object = LOG_OBJECT;
        let offset = first % self.quanta * bytes as u64;
        let parts = [WriteAt::new(object, offset, data), WriteAt::new(object, 0, again)];
        parts.into_iter().filter(|part| !part.data.is_empty()).collect()
    }

    fn place(&self, number: u64) -> Place {
        let index = number % self.quanta;
        Place { volume: self.volume, kind: Kind::Journal, index, version: number }
    }

    /// Opens what was read as quantum `number`, if it is that one. Its parity may be damaged.
    fn open(&mut self, number: u64, stored: &[u8]) -> Option<Opened> {
        let place = self.place(number);
        [Some(self.form), self.old].into_iter().flatten().find_map(|form| {
            let mut sealed = stored[..form.sealed_bytes()].to_vec();
            let before = tag_of(&sealed)?;
            self.sealer.open(&place, &mut sealed).ok()?;
            Some(Opened { opened: OpenedQuantum { form, sealed }, before, damaged: None })
        })
    }

    /// The same, also if one page is damaged.
    fn restore(&mut self, number: u64, stored: &[u8]) -> Option<Opened> {
        let (found, form) = (self.open(number, stored), self.form);
        if !found.as_ref().map_or(form, |found| found.opened.form).has_parity() {
            return found;
        }
        let difference = self.parity.difference(number, stored);
        if difference.iter().all(|&byte| byte == 0) {
            return found;
        }
        let last = form.sealed_bytes() / PAGE as usize;
        let pages = if found.is_some() { last..last + 1 } else { 0..last };
        pages.into_iter().find_map(|page| {
            let mut stored = stored.to_vec();
            repair(&mut stored, page, &difference);
            let found = self.open(number, &stored)?;
            let bytes = stored[page * PAGE as usize..][..PAGE as usize].to_vec();
            Some(Opened { damaged: Some((page, bytes)), ..found })
        })
    }

    /// The quanta in the store, from a mark on, that are not what was written.
    ///
    /// # Errors
    /// Those of the store.
    pub fn inspect(&mut self, store: &dyn Slots, from: LogPosition) -> Result<Vec<DamagedPlace>> {
        let (bytes, mut window) = (self.form.bytes() as u64, Window::default());
        let stored = self.next.number - self.sealed.len() as u64 / bytes;
        let mut damaged = Vec::new();
        for number in from.number..stored {
            let sealed = window.get(self, store, number)?;
            match self.restore(number, &sealed) {
                Some(Opened { damaged: Some(page), .. }) => {
                    damaged.push(self.meet(number, page));
                }
                Some(_) => {}
                None => {
                    let (object, at) = (LOG_OBJECT.to_owned(), number % self.quanta * bytes);
                    let why = format!("quantum {number} is not what was written");
                    damaged.push(DamagedPlace { object, bytes: at..at + bytes, why });
                }
            }
        }
        Ok(damaged)
    }

    /// Notes a page that is to be healed.
    fn meet(&mut self, number: u64, page: (usize, Vec<u8>)) -> DamagedPlace {
        let at = self.place_of(number).0 + page.0 as u64 * PAGE;
        let why = format!("a page of quantum {number} is not what was written");
        let place = DamagedPlace { object: LOG_OBJECT.to_owned(), bytes: at..at + PAGE, why };
        if self.damaged.insert(number, page).is_none() {
            self.met.push(place.clone());
        }
        place
    }

    /// The pages that this session met damaged. The next write to the log heals them.
    pub fn damaged(&self) -> &[DamagedPlace] {
        &self.met
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

    /// Ensures that the log ends at `end`: a later quantum may know that it went on.
    ///
    /// # Errors
    /// `Tampered` if one does; those of the store.
    pub fn refuse_hole(
        &mut self,
        store: &dyn Slots,
        from: LogPosition,
        end: LogPosition,
    ) -> Result<()> {
        let mut window = Window::default();
        let most = (from.number + self.quanta).min(end.number + self.quanta / 2);
        for number in end.number + 1..most {
            let stored = window.get(self, store, number)?;
            let Some(later) = self.open(number, &stored) else { continue };
            if later.opened.quantum().is_some_and(|later| later.durable > end.number) {
                let why = format!("{LOG_OBJECT}: quantum {} is not what was synced", end.number);
                return Err(Error::Tampered(why));
            }
        }
        Ok(())
    }
}

/// Reads a log from a mark on.
pub struct LogReader {
    from: LogPosition,
    /// The next quantum.
    at: LogPosition,
    window: Window,
}

impl LogReader {
    /// Starts at this mark.
    pub fn new(from: LogPosition) -> Self {
        Self { from, at: from, window: Window::default() }
    }

    /// The next quantum's mark.
    pub fn at(&self) -> LogPosition {
        self.at
    }

    /// The next quantum; `None` at the end.
    ///
    /// # Errors
    /// Those of the store.
    pub fn next(&mut self, log: &mut RingLog, store: &dyn Slots) -> Result<Option<OpenedQuantum>> {
        let number = self.at.number;
        if number - self.from.number == log.quanta {
            return Ok(None);
        }
        let stored = self.window.get(log, store, number)?;
        let follows =
            |it: &Opened| it.opened.quantum().is_some_and(|it| it.before == self.at.before);
        let Some(found) = log.restore(number, &stored).filter(follows) else { return Ok(None) };
        if let Some(page) = found.damaged {
            log.meet(number, page);
        }
        self.at = LogPosition { number: number + 1, before: found.before };
        Ok(Some(found.opened))
    }
}

/// A quantum that was read, with what was wrong with it.
struct Opened {
    opened: OpenedQuantum,
    /// Its tag.
    before: Tag,
    /// The page that was not what was written, and what it must be.
    damaged: Option<(usize, Vec<u8>)>,
}

/// A quantum that was read.
pub struct OpenedQuantum {
    form: QuantumForm,
    /// The sealed bytes, opened in place.
    sealed: Vec<u8>,
}

impl OpenedQuantum {
    /// Parses it; `None` for nonsense.
    pub fn quantum(&self) -> Option<Quantum<'_>> {
        let plain = self.sealed.get(SEAL_HEADER..self.sealed.len().checked_sub(TAG_BYTES)?)?;
        Quantum::parse(self.form, plain)
    }
}

/// A part of the log in memory.
#[derive(Default)]
struct Window {
    first: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// A copy of what is stored of the quantum with this number.
    fn get(&mut self, log: &RingLog, store: &dyn Slots, number: u64) -> Result<Vec<u8>> {
        let (size, quanta) = (log.form.bytes(), log.quanta);
        let held = (self.bytes.len() / size) as u64;
        if number < self.first || number >= self.first + held {
            let until_end = quanta - number % quanta;
            let count = until_end.min((WINDOW / size).max(1) as u64);
            self.bytes.resize(count as usize * size, 0);
            let offset = number % quanta * size as u64;
            let read = ReadAt { object: LOG_OBJECT, offset, buf: &mut self.bytes };
            log.reads.read(store, &mut [read])?;
            self.first = number;
        }
        let at = (number - self.first) as usize * size;
        Ok(self.bytes[at..at + size].to_vec())
    }
}
