//! Reading the log: its quanta in order, what parity makes again of them, and whether it ends where
//! it seems to end.

use super::{LOG_OBJECT, LogPosition, RingLog};
use crate::damage::DamagedPlace;
use crate::sequential::PAGE;
use crate::sequential::parity::repair;
use crate::sequential::quantum::{Quantum, QuantumForm};
use crate::{Error, Result};
use oblivio_crypto::{SEAL_HEADER, TAG_BYTES, Tag, tag_of};
use oblivio_store::{ReadAt, Slots};

/// Bytes read at a time.
const WINDOW: usize = 4 << 20;
/// Bytes opened to find the damaged pages of quanta behind the end, where mostly none is.
const TRIED: usize = 8 << 20;

impl RingLog {
    /// Opens what was read as quantum `number`, if it is that one. Its parity may be damaged.
    fn open(&mut self, number: u64, stored: &[u8]) -> Option<Opened> {
        let place = self.place(number);
        [Some(self.form), self.other].into_iter().flatten().find_map(|form| {
            let mut sealed = stored[..form.sealed_bytes()].to_vec();
            let before = tag_of(&sealed)?;
            self.sealer.open(&place, &mut sealed).ok()?;
            Some(Opened { opened: OpenedQuantum { form, sealed }, before, damaged: None })
        })
    }

    /// The same, also if one page is damaged.
    fn restore(&mut self, number: u64, stored: &Stored) -> Option<Opened> {
        let found = self.open(number, &stored.bytes);
        let form = match &found {
            Some(found) => found.opened.form,
            None => self.form_with_parity()?,
        };
        if !form.has_parity() || found.is_none() && self.is_older(number, &stored.bytes) {
            return found;
        }
        let difference = self.parity.difference(number, &stored.bytes);
        if difference.iter().all(|&byte| byte == 0) {
            return found;
        }
        let last = form.sealed_bytes() / PAGE as usize;
        let pages = match (&found, &stored.lost[..]) {
            (Some(_), _) => last..last + 1,
            (None, []) => 0..last,
            (None, [page]) => *page..page + 1,
            (None, _) => return None,
        };
        pages.into_iter().find_map(|page| {
            let mut bytes = stored.bytes.clone();
            repair(&mut bytes, page, &difference);
            let found = self.open(number, &bytes)?;
            let bytes = bytes[page * PAGE as usize..][..PAGE as usize].to_vec();
            Some(Opened { damaged: Some((page, bytes)), ..found })
        })
    }

    /// The form of quanta with parity, if any may have it.
    fn form_with_parity(&self) -> Option<QuantumForm> {
        [Some(self.form), self.other].into_iter().flatten().find(QuantumForm::has_parity)
    }

    /// Whether this was never written, or is the quantum before in this place of the ring.
    fn is_older(&mut self, number: u64, stored: &[u8]) -> bool {
        let before = number.checked_sub(self.quanta);
        stored.iter().all(|&byte| byte == 0)
            || before.is_some_and(|before| self.open(before, stored).is_some())
    }

    /// The quanta in the store, from a mark on, that are not what was written.
    ///
    /// # Errors
    /// Those of the store.
    pub fn inspect(&mut self, store: &dyn Slots, from: LogPosition) -> Result<Vec<DamagedPlace>> {
        let (bytes, mut window) = (self.form.bytes() as u64, Window::default());
        let end = self.next.number - self.sealed.len() as u64 / bytes;
        let mut damaged = Vec::new();
        for number in from.number..end {
            let stored = window.get(self, store, number)?;
            match self.restore(number, &stored) {
                Some(Opened { damaged: Some(page), .. }) => {
                    damaged.push(self.meet(number, page, !stored.lost.is_empty()));
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

    /// Ensures that the log ends at `end`: a later quantum may know that it went on, and what
    /// cannot be read there may have been synced. No crash explains either.
    ///
    /// # Errors
    /// `Tampered` if it may have gone on; those of the store.
    pub fn refuse_hole(
        &mut self,
        store: &dyn Slots,
        from: LogPosition,
        end: LogPosition,
    ) -> Result<()> {
        let (is_full, mut window) = (end.number - from.number == self.quanta, Window::default());
        if !is_full && self.cannot_tell(&window.get(self, store, end.number)?) {
            let why = format!("{LOG_OBJECT}: quantum {} cannot be read", end.number);
            return Err(Error::Tampered(why));
        }
        let (bytes, begin) = (self.form.bytes(), end.number + 1);
        let tried = begin + (TRIED / bytes / (bytes / PAGE as usize)).max(1) as u64;
        for number in begin..(from.number + self.quanta).min(end.number + self.quanta / 2) {
            let stored = window.get(self, store, number)?;
            let later = match number < tried {
                true => self.restore(number, &stored),
                false => self.open(number, &stored.bytes),
            };
            let Some(later) = later else { continue };
            if later.opened.quantum().is_some_and(|later| later.durable > end.number) {
                return Err(not_synced(end.number));
            }
        }
        Ok(())
    }

    /// Whether more of a quantum is lost than parity makes again.
    fn cannot_tell(&self, stored: &Stored) -> bool {
        let most = usize::from(self.form_with_parity().is_some());
        stored.lost.len() > most
    }
}

/// The error of a log that ends too early.
pub fn not_synced(quantum: u64) -> Error {
    Error::Tampered(format!("{LOG_OBJECT}: quantum {quantum} is not what was synced"))
}

/// Reads a log from a mark on.
pub struct LogReader {
    from: LogPosition,
    /// The next quantum.
    at: LogPosition,
    /// The end, if it is known.
    end: Option<u64>,
    /// The quanta below this were durable, as later ones say.
    durable: u64,
    window: Window,
}

impl LogReader {
    /// Starts at this mark.
    pub fn new(from: LogPosition) -> Self {
        Self { from, at: from, end: None, durable: 0, window: Window::default() }
    }

    /// The same once more, up to this number: what is there is not judged again.
    pub fn again(from: LogPosition, end: u64) -> Self {
        Self { end: Some(end), ..Self::new(from) }
    }

    /// The next quantum's mark.
    pub fn at(&self) -> LogPosition {
        self.at
    }

    /// How many quanta were durable, as those say that were read.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// The next quantum; `None` at the end.
    ///
    /// # Errors
    /// Those of the store.
    pub fn next(&mut self, log: &mut RingLog, store: &dyn Slots) -> Result<Option<OpenedQuantum>> {
        let number = self.at.number;
        if number - self.from.number == log.quanta || self.end == Some(number) {
            return Ok(None);
        }
        let stored = self.window.get(log, store, number)?;
        let Some(found) = log.restore(number, &stored) else { return Ok(None) };
        let Some(quantum) = found.opened.quantum() else { return Ok(None) };
        if quantum.before != self.at.before {
            return Ok(None);
        }
        self.durable = self.durable.max(quantum.durable);
        if found.opened.form.has_parity() {
            // The state that is known may be an older one, which does not say so.
            log.take_parity();
        }
        if let Some(page) = found.damaged.filter(|_| self.end.is_none()) {
            log.meet(number, page, !stored.lost.is_empty());
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

/// What is stored of a quantum.
struct Stored {
    bytes: Vec<u8>,
    /// The pages that cannot be read, ascending: they are zeros.
    lost: Vec<usize>,
}

/// A part of the log in memory.
#[derive(Default)]
struct Window {
    first: u64,
    bytes: Vec<u8>,
    /// The pages of it that cannot be read, ascending.
    lost: Vec<usize>,
}

impl Window {
    /// A copy of what is stored of the quantum with this number.
    fn get(&mut self, log: &RingLog, store: &dyn Slots, number: u64) -> Result<Stored> {
        let (size, quanta) = (log.form.bytes(), log.quanta);
        let held = (self.bytes.len() / size) as u64;
        if number < self.first || number >= self.first + held {
            let until_end = quanta - number % quanta;
            let count = until_end.min((WINDOW / size).max(1) as u64);
            self.bytes.resize(count as usize * size, 0);
            let offset = number % quanta * size as u64;
            let read = ReadAt { object: LOG_OBJECT, offset, buf: &mut self.bytes };
            let lost = log.reads.read(store, &mut [read])?;
            self.lost = lost.iter().map(|(_, at)| ((at - offset) / PAGE) as usize).collect();
            self.first = number;
        }
        let at = (number - self.first) as usize * size;
        let (first, pages) = (at / PAGE as usize, size / PAGE as usize);
        let lost = self.lost.iter().filter_map(|page| page.checked_sub(first));
        let lost = lost.filter(|page| *page < pages).collect();
        Ok(Stored { bytes: self.bytes[at..at + size].to_vec(), lost })
    }
}
