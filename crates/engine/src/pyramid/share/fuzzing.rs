//! Gives the fuzz targets in `fuzz/` access to the records of a shared volume, as they are under
//! their seals.
//!
//! **Not part of the API.** The targets state the properties of the outcome.

use super::admission::Admission;
use super::answer::Outcome;
use super::ask;
pub use super::ask::TransactionPart;
use super::checkpoint::Saves;
use super::follower::Follower;
use super::groups::Open;
use super::head::Head;
use super::history::{decode, encode_intent, encode_merged, encode_settle};
use super::memory::MemoryServer;
use super::notice;
use super::records::{Duty, Seq, Session};
use super::scribe::Scribe;
use crate::pyramid::config::PyramidConfig;
use crate::pyramid::history::AskEvent;
use crate::pyramid::ids::Name;
use crate::pyramid::operation::Operation;
use crate::pyramid::oram::{PyramidKeys, PyramidOram};
use crate::{Action, Result};
use oblivio_crypto::{SealRoot, Sealer, SeededEntropy, Tag, VolumeId};
use oblivio_privatefs::{Answer, Ask, Change};

/// Bytes of a block in records and states.
pub const BLOCK_BYTES: usize = 64;
const VOLUME: VolumeId = VolumeId([7; 16]);

/// An ask of a volume with [`BLOCK_BYTES`], as in a record.
///
/// # Errors
/// `Invalid` for one that does not fit.
pub fn ask_bytes(ask: &Ask, part: TransactionPart, head: Head) -> Result<Vec<u8>> {
    ask::encode(ask, part, head, BLOCK_BYTES)
}

/// Parses an ask.
pub fn ask(plain: &[u8]) -> Option<(Ask, TransactionPart, Head)> {
    ask::decode(plain)
}

/// An answer as in a record, with its head and the tag before.
pub fn answer_bytes(outcome: &Outcome, (head, before): (Head, Tag)) -> Vec<u8> {
    outcome.encode(head, before, BLOCK_BYTES)
}

/// Parses an answer.
pub fn answer(plain: &[u8]) -> Option<(Outcome, (Head, Tag))> {
    Outcome::decode(plain).map(|(outcome, head, before)| (outcome, (head, before)))
}

/// Bytes of a notice, before sealing, beside those of its asks.
pub const NOTICE_BYTES: usize = 40;
/// Bytes of each ask in it.
pub const NOTICE_BYTES_EACH: usize = 40;

/// The notice of a batch of these asks, all of which were carried out.
pub fn notice_bytes(head: Head, before: u64, asks: &[Ask]) -> Vec<u8> {
    let answer = Answer { done: true, content: None };
    let outcome = Outcome { answer, refusal: None, live_blocks: 0 };
    let (session, part) = (Session(5), TransactionPart::ALONE);
    let open = |(seq, ask): (u64, &Ask)| Open { session, seq: Seq(seq), part, ask: ask.clone() };
    let opens: Vec<Open> = (0..).zip(asks).map(open).collect();
    notice::encode(head, before, &opens, &vec![outcome; asks.len()])
}

/// Parses a notice: its head, the number of the head before, and what it says was changed.
pub fn notice(plain: &[u8]) -> Option<(Head, u64, Vec<Change>)> {
    notice::decode(plain).ok()
}

/// Parses an event of the history. An intent names its asks.
pub fn record(plain: &[u8]) -> Option<(AskEvent, Vec<(Session, Seq)>)> {
    decode(plain, BLOCK_BYTES).ok().map(|said| (said.event, said.asks))
}

/// An event as in a record.
///
/// # Errors
/// `State` for a merge that no record has room for.
pub fn record_bytes(event: &AskEvent, asks: &[(Session, Seq)]) -> Result<Vec<u8>> {
    match event {
        AskEvent::Intent(intent) => Ok(encode_intent(intent, asks)),
        AskEvent::Settle(settle) => Ok(encode_settle(settle, BLOCK_BYTES)),
        AskEvent::Merged(merged) => encode_merged(merged, BLOCK_BYTES),
    }
}

fn sealer(seed: u64) -> Sealer {
    Sealer::new(SealRoot::from_seed(5), Box::new(SeededEntropy::new(seed)))
}

fn oram() -> Result<PyramidOram> {
    let config = PyramidConfig::new(BLOCK_BYTES, 1 << 6, BLOCK_BYTES << 4);
    PyramidOram::new(config, PyramidKeys::from_seed(1))
}

/// The state of a scribe that served this many asks.
///
/// # Errors
/// None, unless the engine is broken.
pub fn state(asks: u64) -> Result<Vec<u8>> {
    let oram = oram()?;
    let mut server = MemoryServer::new(oram.config().slot_bytes());
    let term = server.claim();
    let mut scribe = Scribe::new(oram, sealer(1), term)?;
    let mut client = Follower::new(Session(3), VOLUME, BLOCK_BYTES, sealer(2));
    for id in 0..asks {
        let operation =
            Operation { action: Action::Write(vec![id as u8; BLOCK_BYTES]), and_read: false };
        let name = Name { owner: [id as u8 % 3; 16], index: id % 40 };
        scribe.take(&client.ask(&Ask::new(name, operation))?)?;
        loop {
            match scribe.duty()? {
                Duty::Wait if server.waiting() == 0 => break,
                duty => server.carry_out(term, duty)?,
            }
            while let Some(reply) = server.reply(0) {
                reply.give(&mut scribe)?;
            }
        }
    }
    scribe.state()
}

/// Loads a state, and writes it again.
///
/// # Errors
/// `State` if it makes no sense.
pub fn restore(state: &[u8]) -> Result<Vec<u8>> {
    let mut oram = oram()?;
    let mut admission = Admission::new(&oram, sealer(3));
    let saves = Saves::restore(state, &mut oram, &mut admission)?;
    saves.state(&oram, &admission)
}
