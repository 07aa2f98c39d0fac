//! The state of a scribe, so that a later one need not read the whole history: after every 4 q
//! asks, at a moment when no batch is under way.
//!
//! ```text
//! version 8 = 1 | batches 8 | records before the last two states 8 each |
//! length of the engine's state 8 | engine's state | chain | sessions
//! ```

use super::admission::Admission;
use super::pieces::Pieces;
use super::records::{BatchNumber, Save};
use super::sessions::Sessions;
use crate::pyramid::oram::PyramidOram;
use crate::wire::{Reader, Writer};
use crate::{EngineError, Result};

const VERSION: u64 = 1;

/// When states are written, and the one that is on its way.
#[derive(Default)]
pub(super) struct Saves {
    /// Records before the last two states, the newest first.
    before: [u64; 2],
    /// Asks before the last one.
    asks: u64,
    under_way: Option<UnderWay>,
}

struct UnderWay {
    number: u64,
    forget: u64,
    pieces: Pieces,
}

impl Saves {
    /// Whether the next state is due: a public rule.
    pub fn is_due(&self, oram: &PyramidOram) -> bool {
        let every = oram.config.checkpoint_asks();
        oram.asks / every > self.asks / every
    }

    /// Whether pieces of the last one are left.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Begins to write the state. No batch may be under way.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn begin(&mut self, oram: &PyramidOram, admission: &mut Admission) -> Result<()> {
        admission.sessions.mark();
        let (number, [last, forget]) = (admission.chain.head().number, self.before);
        self.before = [number, last];
        self.asks = oram.asks;
        let pieces = Pieces::new(self.state(oram, admission)?);
        self.under_way = Some(UnderWay { number, forget, pieces });
        Ok(())
    }

    /// The next piece; none if all are sent.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn next(&mut self, admission: &mut Admission) -> Result<Option<Save>> {
        let Some(UnderWay { number, forget, pieces }) = &mut self.under_way else {
            return Ok(None);
        };
        let (number, forget, of) = (*number, *forget, pieces.count());
        let (piece, sealed) = pieces.next(&mut admission.sealer, admission.volume, number)?;
        if piece + 1 >= of {
            self.under_way = None;
        }
        Ok(Some(Save { number, piece, of, forget, sealed }))
    }

    /// The state as it is now. No batch may be under way.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn state(&self, oram: &PyramidOram, admission: &Admission) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        Writer(&mut bytes).words(&[VERSION, admission.batch.0, self.before[0], self.before[1], 0]);
        let begin = bytes.len();
        oram.checkpoint(&mut bytes)?;
        let length = (bytes.len() - begin) as u64;
        bytes[begin - 8..begin].copy_from_slice(&length.to_le_bytes());
        let mut out = Writer(&mut bytes);
        admission.chain.write_to(&mut out);
        admission.sessions.write_to(&mut out);
        Ok(bytes)
    }

    /// Loads a state into an engine and an admission that are new.
    ///
    /// # Errors
    /// `State` if it makes no sense.
    pub fn restore(
        state: &[u8],
        oram: &mut PyramidOram,
        admission: &mut Admission,
    ) -> Result<Self> {
        let wrong = EngineError::State("a scribe's state does not parse");
        let mut input = Reader(state);
        if input.u64()? != VERSION {
            return Err(wrong);
        }
        admission.batch = BatchNumber(input.u64()?);
        let before = [input.u64()?, input.u64()?];
        let length = usize::try_from(input.u64()?).map_err(|_| EngineError::State("too short"))?;
        oram.restore(input.bytes(length)?)?;
        admission.chain.read_from(&mut input)?;
        admission.sessions = Sessions::read_from(&mut input)?;
        if !input.0.is_empty()
            || before[0] != admission.chain.head().number
            || before[1] > before[0]
        {
            return Err(wrong);
        }
        Ok(Self { before, asks: oram.asks, under_way: None })
    }
}
