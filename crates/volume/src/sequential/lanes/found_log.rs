//! What the log of a lane has from a state on: the quanta that the lane wrote, each after the one
//! before it.

use super::beside::Beside;
use super::lane::{Lane, LaneSealers};
use super::riding::LoggedWrite;
use super::state::LaneState;
use crate::damage::DamagedPlace;
use crate::sequential::log_position::LogPosition;
use crate::sequential::quantum::{Quantum, QuantumEntry};
use crate::{Error, Result};
use oblivio_crypto::{SEAL_HEADER, TAG_BYTES, Tag, tag_of};
use oblivio_store::ReadAt;
use std::sync::Arc;

/// Bytes of a log read at a time.
const WINDOW: usize = 4 << 20;

/// What a lane's log has.
pub(super) struct FoundLog {
    object: &'static str,
    /// Where it goes on.
    pub next: LogPosition,
    /// Whether it came to the end that the state knows.
    passed: bool,
    /// All writes, in order.
    pub writes: Vec<LoggedWrite>,
    pub root: Vec<u8>,
    /// The first that was written and is missing, unless the lane went on without it.
    missing: Option<u64>,
}

impl FoundLog {
    /// Reads what the log of an open lane has from a state on. It has been made durable up to
    /// quantum `known_end`, as its states say.
    ///
    /// # Errors
    /// `Tampered` if something is missing before the end that the state knows; those of the store.
    pub fn read(
        beside: &Beside<'_>,
        lane: &mut LaneSealers,
        state: &LaneState,
        known_end: u64,
    ) -> Result<Self> {
        let (form, volume) = (beside.form, beside.volume);
        let object = form.parameters.objects()[usize::from(lane.master.lane)].log;
        let mut found = Self::from(object, state);
        let (size, sealed_bytes) = (form.quantum.bytes(), form.quantum.sealed_bytes());
        let mut number = state.log.number.max(beside.end.saturating_sub(form.quanta));
        while number < beside.end {
            let until_end = form.quanta - number % form.quanta;
            let most = until_end.min((WINDOW / size).max(1) as u64);
            let count = most.min(beside.end - number) as usize;
            let mut window = vec![0; count * size];
            let offset = number % form.quanta * size as u64;
            let read = ReadAt { object, offset, buf: &mut window };
            beside.reads.read(&**beside.store, &mut [read])?;
            for stored in window.chunks_mut(size) {
                let (sealed, mark) = stored.split_at_mut(sealed_bytes);
                let tag = tag_of(sealed).unwrap_or_default();
                if lane.log.open(&Lane::quantum_place(volume, number), sealed).is_ok() {
                    let plain = &sealed[SEAL_HEADER..sealed_bytes - TAG_BYTES];
                    let quantum = Quantum::parse(form.quantum, plain);
                    let quantum = quantum.ok_or_else(|| {
                        Error::Tampered(format!("{object}: quantum {number} does not parse"))
                    })?;
                    found.take(state, number, &quantum, tag)?;
                } else if number < beside.durable && lane.marks.is_set(number, mark) {
                    found.miss(state, number)?;
                }
                number += 1;
            }
        }
        found.pass_end(state)?;
        if found.next.number < known_end {
            found.missing.get_or_insert(found.next.number);
        }
        Ok(found)
    }

    fn from(object: &'static str, state: &LaneState) -> Self {
        let (next, root) = (state.log, state.root.clone());
        Self { object, next, passed: false, writes: Vec::new(), root, missing: None }
    }

    /// Goes past the end that the state knows, before quantum `number` or behind all. What is
    /// missing before that was missing when the state was written.
    ///
    /// # Errors
    /// `Tampered` if a quantum before it is missing: nobody knows then what the queue had.
    fn pass_end(&mut self, state: &LaneState) -> Result<()> {
        if std::mem::replace(&mut self.passed, true) {
            return Ok(());
        }
        self.missing = None;
        match self.next == state.end {
            true => Ok(()),
            false => {
                let (object, number) = (self.object, self.next.number);
                Err(Error::Tampered(format!("{object}: quantum {number} is missing")))
            }
        }
    }

    /// The lane wrote a quantum that does not open.
    fn miss(&mut self, state: &LaneState, number: u64) -> Result<()> {
        if number >= state.end.number {
            self.pass_end(state)?;
        }
        self.missing.get_or_insert(number);
        Ok(())
    }

    /// Takes in a quantum that opened. Those that the lane did not write do not open. One that does
    /// not follow the last is the remains of a crash, unless those between were durable.
    fn take(
        &mut self,
        state: &LaneState,
        number: u64,
        quantum: &Quantum<'_>,
        tag: Tag,
    ) -> Result<()> {
        if number >= state.end.number {
            self.pass_end(state)?;
        }
        if quantum.before != self.next.before {
            if quantum.durable > self.next.number {
                self.missing.get_or_insert(self.next.number);
            }
            return Ok(());
        }
        self.missing = None;
        let position = LogPosition { number, before: quantum.before };
        self.next = LogPosition { number: number + 1, before: tag };
        if let Some(root) = quantum.root {
            self.root = root.to_vec();
        }
        for (number, entry) in (quantum.first_write..).zip(quantum.entries().flatten()) {
            let (block, content) = match entry {
                QuantumEntry::Write(block, content) => (block, Some(Arc::from(content))),
                QuantumEntry::Discard(block) => (block, None),
                QuantumEntry::Padding(_) | QuantumEntry::Session(_) => continue,
            };
            self.writes.push(LoggedWrite { number, quantum: position, block, content });
        }
        Ok(())
    }

    /// What is lost, if anything is.
    pub fn damaged(&self) -> Option<DamagedPlace> {
        let number = self.missing?;
        let why = format!(
            "quantum {number} of the lane is not what was written: what was written since is lost, \
             unless a crash cut it short"
        );
        Some(DamagedPlace { object: self.object.to_owned(), bytes: 0..0, why })
    }
}
