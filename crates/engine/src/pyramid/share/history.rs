//! The pyramid's events as records of the chain. A round's has the same length for all rounds of as
//! many asks, whatever they are.
//!
//! ```text
//! 1 | asks 8 | seed 32 | session 8, number 8, owner 16, index 8, effect 8 each
//!                                                                   before a round reads
//! 2 | asks 8 | left 8, block each                                   before its answers
//! 3 | place 8 | attempt 16 | blocks that went back 4, which are lost 4 | 16 blocks |
//!     asks of its partition under way 8 | exists 8, block each      after a merge
//! ```
//!
//! Effect: 0 keeps, 1 creates, 2 forgets. Left: 0 absent, 1 a block, 2 its owner was removed, 3 a
//! block whose content is lost. Exists: 0 no, 1 yes, 2 yes, and its content is lost. Which are
//! lost: a bit each, the first one the lowest. Versions that know of no lost blocks refuse these
//! records.

use super::records::{Seq, Session};
use crate::pyramid::history::{AskEvent, AskedBlock, Left, MOST_LEFT, Merged, RoundIntent, Settle};
use crate::pyramid::ids::{Name, TableHome};
use crate::pyramid::operation::Effect;
use crate::pyramid::shown::Seed;
use crate::wire::{Reader, Writer};
use crate::{EngineError, Result};
use oblivio_crypto::Attempt;

const INTENT: u64 = 1;
const SETTLE: u64 = 2;
const MERGED: u64 = 3;

/// An event, and for an intent whose asks they are.
pub(super) struct Told {
    pub event: AskEvent,
    pub asks: Vec<(Session, Seq)>,
}

/// A round that was shown.
pub(super) fn encode_intent(intent: &RoundIntent, asks: &[(Session, Seq)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Writer(&mut bytes);
    out.words(&[INTENT, asks.len() as u64]);
    out.bytes(&intent.seed.0);
    for ((session, seq), (name, effect)) in asks.iter().zip(&intent.asks) {
        out.words(&[session.0, seq.0]);
        out.bytes(&name.owner);
        let effect = match effect {
            Effect::Keeps => 0,
            Effect::Creates => 1,
            Effect::Forgets => 2,
        };
        out.words(&[name.index, effect]);
    }
    bytes
}

/// What it left.
pub(super) fn encode_settle(settle: &Settle, block_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Writer(&mut bytes);
    out.words(&[SETTLE, settle.0.len() as u64]);
    for left in &settle.0 {
        match left {
            Left::Absent => write_block(&mut out, 0, None, block_bytes),
            Left::Block(block) => write_block(&mut out, 1, Some(block), block_bytes),
            Left::Forgot => write_block(&mut out, 2, None, block_bytes),
            Left::Lost => write_block(&mut out, 3, None, block_bytes),
        }
    }
    bytes
}

fn write_block(out: &mut Writer<'_>, kind: u64, block: Option<&Vec<u8>>, block_bytes: usize) {
    out.u64(kind);
    match block {
        Some(block) => out.bytes(block),
        None => out.zeros(block_bytes),
    }
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
    out.words(&[MERGED, u64::from(merged.home.0)]);
    out.bytes(&merged.attempt.0);
    let lost = (0..).zip(&merged.left).filter(|(_, block)| block.is_none());
    let lost: u64 = lost.map(|(at, _)| 1 << at).sum();
    out.u64(merged.left.len() as u64 | lost << 32);
    for block in &merged.left {
        match block {
            Some(block) => out.bytes(block),
            None => out.zeros(block_bytes),
        }
    }
    out.zeros((MOST_LEFT - merged.left.len()) * block_bytes);
    out.u64(merged.asked.len() as u64);
    for asked in &merged.asked {
        match asked {
            AskedBlock::Elsewhere => write_block(&mut out, 0, None, block_bytes),
            AskedBlock::Block(block) => write_block(&mut out, 1, Some(block), block_bytes),
            AskedBlock::Lost => write_block(&mut out, 2, None, block_bytes),
        }
    }
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
        INTENT => AskEvent::Intent(read_intent(&mut input, &mut asks)?),
        SETTLE => {
            let mut left = Vec::new();
            for _ in 0..input.u64()? {
                left.push(match (input.u64()?, input.bytes(block_bytes)?) {
                    (0, _) => Left::Absent,
                    (1, block) => Left::Block(block.to_vec()),
                    (2, _) => Left::Forgot,
                    (3, _) => Left::Lost,
                    _ => return Err(EngineError::State("an unknown end of an ask")),
                });
            }
            AskEvent::Settle(Settle(left))
        }
        MERGED => AskEvent::Merged(read_merged(&mut input, block_bytes)?),
        _ => return Err(EngineError::State("an unknown event")),
    };
    if input.0.is_empty() { Ok(Told { event, asks }) } else { Err(EngineError::State("too long")) }
}

fn read_intent(input: &mut Reader<'_>, asks: &mut Vec<(Session, Seq)>) -> Result<RoundIntent> {
    let count = input.u64()?;
    let mut seed = Seed([0; 32]);
    seed.0.copy_from_slice(input.bytes(32)?);
    let mut names = Vec::new();
    for _ in 0..count {
        asks.push((Session(input.u64()?), Seq(input.u64()?)));
        let mut owner = [0; 16];
        owner.copy_from_slice(input.bytes(16)?);
        let name = Name { owner, index: input.u64()? };
        let effect = match input.u64()? {
            0 => Effect::Keeps,
            1 => Effect::Creates,
            2 => Effect::Forgets,
            _ => return Err(EngineError::State("an unknown effect")),
        };
        names.push((name, effect));
    }
    Ok(RoundIntent { seed, asks: names })
}

fn read_merged(input: &mut Reader<'_>, block_bytes: usize) -> Result<Merged> {
    let home = u32::try_from(input.u64()?).map(TableHome);
    let home = home.map_err(|_| EngineError::State("no such place"))?;
    let mut attempt = Attempt([0; 16]);
    attempt.0.copy_from_slice(input.bytes(16)?);
    let word = input.u64()?;
    let (count, lost) = (word & u64::from(u32::MAX), word >> 32);
    if count > MOST_LEFT as u64 || lost >> count != 0 {
        return Err(EngineError::State("a base has too many blocks"));
    }
    let block = |at| {
        let block = input.bytes(block_bytes)?.to_vec();
        Ok((lost >> at & 1 == 0).then_some(block))
    };
    let left = (0..count).map(block).collect::<Result<_>>()?;
    input.bytes((MOST_LEFT - count as usize) * block_bytes)?;
    let mut asked = Vec::new();
    for _ in 0..input.u64()? {
        asked.push(match (input.u64()?, input.bytes(block_bytes)?) {
            (0, _) => AskedBlock::Elsewhere,
            (1, block) => AskedBlock::Block(block.to_vec()),
            (2, _) => AskedBlock::Lost,
            _ => return Err(EngineError::State("neither there nor not")),
        });
    }
    Ok(Merged { home, attempt, left, asked })
}
