//! The pyramid's events as records of the chain. A round's has the same length for all rounds of as
//! many asks, whatever they are.
//!
//! ```text
//! 1 | asks 8 | seed 32 | session 8, number 8, name 16, creates 8 each     before a round reads
//! 2 | asks 8 | exists 8, block each                                       before its answers
//! 3 | attempt 16 | blocks that went back 8 | 16 blocks                     after a merge
//! ```

use super::records::{Seq, Session};
use crate::pyramid::history::{Event, Intent, Merged, Settle};
use crate::pyramid::ids::Name;
use crate::pyramid::oram::Seed;
use crate::wire::{Reader, Writer};
use crate::{EngineError, Result};
use oblivio_crypto::Attempt;

const INTENT: u64 = 1;
const SETTLE: u64 = 2;
const MERGED: u64 = 3;
/// The most blocks that a merge sends back. More than one is beyond ten standard deviations.
const MOST_LEFT: usize = 16;

/// An event, and for an intent whose asks they are.
pub(super) struct Told {
    pub event: Event,
    pub asks: Vec<(Session, Seq)>,
}

/// A round that was shown.
pub(super) fn encode_intent(intent: &Intent, asks: &[(Session, Seq)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Writer(&mut bytes);
    out.words(&[INTENT, asks.len() as u64]);
    out.bytes(&intent.seed.0);
    for ((session, seq), (name, creates)) in asks.iter().zip(&intent.asks) {
        out.words(&[session.0, seq.0]);
        out.bytes(&name.0);
        out.u64(u64::from(*creates));
    }
    bytes
}

/// What it left.
pub(super) fn encode_settle(settle: &Settle, block_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Writer(&mut bytes);
    out.words(&[SETTLE, settle.0.len() as u64]);
    for content in &settle.0 {
        out.u64(u64::from(content.is_some()));
        match content {
            Some(content) => out.bytes(content),
            None => out.zeros(block_bytes),
        }
    }
    bytes
}

/// A merge.
///
/// # Errors
/// `State` if it sends back more blocks than a record has room for.
pub(super) fn encode_merged(merged: &Merged, block_bytes: usize) -> Result<Vec<u8>> {
    if merged.left.len() > MOST_LEFT {
        return Err(EngineError::State("a base has too many blocks"));
    }
    let mut bytes = Vec::new();
    let mut out = Writer(&mut bytes);
    out.u64(MERGED);
    out.bytes(&merged.attempt.0);
    out.u64(merged.left.len() as u64);
    merged.left.iter().for_each(|block| out.bytes(block));
    out.zeros((MOST_LEFT - merged.left.len()) * block_bytes);
    Ok(bytes)
}

/// Reads a record.
///
/// # Errors
/// `State` if it makes no sense.
pub(super) fn decode(plain: &[u8], block_bytes: usize) -> Result<Told> {
    let mut input = Reader(plain);
    let mut asks = Vec::new();
    let event = match input.u64()? {
        INTENT => {
            let count = input.u64()?;
            let mut seed = Seed([0; 32]);
            seed.0.copy_from_slice(input.bytes(32)?);
            let mut names = Vec::new();
            for _ in 0..count {
                asks.push((Session(input.u64()?), Seq(input.u64()?)));
                let mut name = Name([0; 16]);
                name.0.copy_from_slice(input.bytes(16)?);
                names.push((name, input.u64()? == 1));
            }
            Event::Intent(Intent { seed, asks: names })
        }
        SETTLE => {
            let mut contents = Vec::new();
            for _ in 0..input.u64()? {
                let exists = input.u64()? == 1;
                let block = input.bytes(block_bytes)?;
                contents.push(exists.then(|| block.to_vec()));
            }
            Event::Settle(Settle(contents))
        }
        MERGED => {
            let mut attempt = Attempt([0; 16]);
            attempt.0.copy_from_slice(input.bytes(16)?);
            let count = input.u64()?.min(MOST_LEFT as u64);
            let block = |_| input.bytes(block_bytes).map(<[u8]>::to_vec);
            let left = (0..count).map(block).collect::<Result<_>>()?;
            input.bytes((MOST_LEFT - count as usize) * block_bytes)?;
            Event::Merged(Merged { attempt, left })
        }
        _ => return Err(EngineError::State("an unknown event")),
    };
    if input.0.is_empty() { Ok(Told { event, asks }) } else { Err(EngineError::State("too long")) }
}
