//! Taking the place of a scribe that is gone, from what the server keeps.

use super::admission::Admission;
use super::chain::Known;
use super::checkpoint::Saves;
use super::groups::Open;
use super::head::Head;
use super::history::decode;
use super::pieces::together;
use super::records::{StoredRecord, Term};
use super::scribe::Scribe;
use crate::pyramid::history::AskEvent;
use crate::pyramid::oram::PyramidOram;
use crate::{EngineError, Result};
use oblivio_crypto::Sealer;
use std::collections::VecDeque;

/// A client that becomes the scribe. It takes the records one by one and keeps none of them.
pub struct TakeOver {
    oram: PyramidOram,
    admission: Admission,
    saves: Saves,
    /// The batches that were shown and not answered, with their records.
    shown: VecDeque<(Vec<Open>, Vec<u8>)>,
    /// A head that must be among those of the history.
    known: Head,
    found: bool,
}

impl TakeOver {
    /// From the first record on. The engine is new. `known` is the newest head that this client
    /// remembers, [`Head::default`] if it remembers none.
    pub fn new(oram: PyramidOram, sealer: Sealer, known: Head) -> Self {
        let admission = Admission::new(&oram, sealer);
        let (saves, shown) = (Saves::default(), VecDeque::new());
        let found = known == Head::default();
        Self { oram, admission, saves, shown, known, found }
    }

    /// From the state that a scribe wrote after record `number`, in its sealed pieces. The records
    /// after it must follow. Pieces that are given away are dropped one by one: there may be more
    /// than a hundred MiB.
    ///
    /// # Errors
    /// `State` for pieces that are not such a state; `Forked` if this client knows another
    /// history.
    pub fn from_checkpoint(
        oram: PyramidOram,
        sealer: Sealer,
        known: Head,
        number: u64,
        pieces: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Self> {
        let mut this = Self::new(oram, sealer, known);
        let volume = this.oram.keys.volume;
        let state = together(&mut this.admission.sealer, volume, number, pieces)?;
        this.saves = Saves::restore(&state, &mut this.oram, &mut this.admission)?;
        if this.admission.chain.head().number != number {
            return Err(EngineError::State("a scribe's state is of another record"));
        }
        this.look_for_known()?;
        Ok(this)
    }

    /// The records so far.
    pub fn head(&self) -> Head {
        self.admission.chain.head()
    }

    fn look_for_known(&mut self) -> Result<()> {
        if !self.found && self.known.number <= self.head().number {
            match self.admission.chain.knows(self.known) {
                Known::Yes => self.found = true,
                Known::No => return Err(EngineError::Forked),
                Known::Old => {
                    return Err(EngineError::State("the head that this client knows is too old"));
                }
            }
        }
        Ok(())
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// `State` if it does not follow the one before it, or makes no sense; `Forked` if this client
    /// knows another history.
    pub fn record(&mut self, stored: &StoredRecord) -> Result<()> {
        let plain = self.admission.chain.open(&mut self.admission.sealer, &stored.sealed)?;
        let said = decode(&plain, self.oram.config.block_bytes)?;
        match &said.event {
            AskEvent::Intent(_) => {
                let whose = stored.asks.iter().map(|ask| (ask.session, ask.seq));
                if !whose.eq(said.asks) {
                    return Err(EngineError::State("a batch has other asks"));
                }
                let open = |ask| self.admission.open(ask).map(|(open, _)| open);
                let opens = stored.asks.iter().map(open).collect::<Result<Vec<_>>>()?;
                self.admission.order(&opens)?;
                self.admission.ordered(&opens);
                self.admission.batch.0 += 1;
                self.shown.push_back((opens, stored.sealed.clone()));
            }
            AskEvent::Settle(_) => {
                let (opens, _) = self.shown.pop_front().unwrap_or_default();
                self.admission.answered(&opens);
            }
            AskEvent::Merged(_) => {}
        }
        if !matches!(said.event, AskEvent::Intent(_)) && !stored.asks.is_empty() {
            return Err(EngineError::State("a record has asks that it does not name"));
        }
        self.oram.replay(said.event)?;
        self.look_for_known()
    }

    /// Becomes the scribe of this term. Batches that were shown and not answered are shown again:
    /// the same bytes, in their order.
    ///
    /// # Errors
    /// `Forked` if the records end before the head that this client knows: an old state. `State` if
    /// the term is not a new one.
    pub fn finish(mut self, term: Term) -> Result<Scribe> {
        if !self.found {
            return Err(EngineError::Forked);
        }
        self.admission.chain.begin_term(term)?;
        let mut scribe = Scribe::of(self.oram, self.admission, self.saves);
        scribe.show_again(self.shown);
        Ok(scribe)
    }
}
