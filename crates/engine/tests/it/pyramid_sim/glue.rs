//! What the simulation uses of the engine, in one place.

use crate::share_audit::record::{Sizes, TableSizes};
use oblivio_crypto::{SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_engine::pyramid::share::{
    Answer, Ask, BatchNumber, Compare, Follower, Head, Scribe, Session, TakeOver, Term,
};
use oblivio_engine::pyramid::{
    Height, Name, Operation, PyramidConfig, PyramidKeys, PyramidOram, TableHome,
};
use oblivio_engine::{Action, BlockId, EngineError};
use oblivio_testkit::linear;

use super::server::{Saved, Server};

/// Bytes of a block.
pub const BYTES: usize = 64;
const VOLUME: VolumeId = VolumeId([7; 16]);

/// The server's reply to a duty.
#[derive(Clone)]
pub enum Reply {
    /// The sum of each ask's slots.
    Sums(BatchNumber, Vec<Vec<u8>>),
    /// A merge's slots.
    Slots(TableHome, Vec<u8>),
    /// A table is stored.
    Built(TableHome),
}

impl Reply {
    /// Gives it to the scribe.
    pub fn give(self, scribe: &mut Scribe) -> Result<(), EngineError> {
        match self {
            Self::Sums(batch, sums) => scribe.shown(batch, sums),
            Self::Slots(home, slots) => scribe.gathered(home, slots),
            Self::Built(home) => scribe.built(home),
        }
    }
}

fn sealer(seed: u64) -> Sealer {
    Sealer::new(SealRoot::from_seed(5), Box::new(SeededEntropy::new(seed)))
}

/// A scribe that takes over from what the server has; the first one from nothing.
pub fn scribe(
    config: PyramidConfig,
    seed: u64,
    term: Term,
    server: &Server,
) -> Result<Scribe, EngineError> {
    let keys = PyramidKeys::from_seed(seed).with_entropy(seed << 20 | term.0);
    let oram = PyramidOram::new(config, keys)?;
    let (sealer, known) = (sealer(1_000_000 * (seed + 1) + term.0), Head::default());
    let Saved { number, pieces } = &server.saved;
    let mut taking = if pieces.is_empty() {
        TakeOver::new(oram, sealer, known)
    } else {
        let pieces = pieces.iter().map(Vec::as_slice);
        TakeOver::from_checkpoint(oram, sealer, known, *number, pieces)?
    };
    let first = taking.head().number - server.forgotten;
    for stored in &server.history[first as usize..] {
        taking.record(stored)?;
    }
    taking.finish(term)
}

/// A client's new session. It knows a head of others, as the server shows it.
pub fn follower(seed: u64, session: u64, head: Head) -> Follower {
    let follower = Follower::new(Session(session), VOLUME, BYTES, sealer(seed << 32 | session));
    follower.knowing(head)
}

/// The public numbers, as the audit wants them.
pub fn sizes(config: &PyramidConfig) -> Sizes {
    let of = |height| TableSizes {
        capacity: config.capacity(height),
        slots: config.slots(height),
        early_reads: config.early_reads(height),
    };
    let heights = (0..config.levels()).map(Height::Level).chain([Height::Base]);
    Sizes {
        log_partitions: config.log_partitions,
        turn_asks: config.turn_asks(),
        tables: heights.map(of).collect(),
        slot_bytes: config.slot_bytes() as u64,
        open_turns: config.open_turns().into(),
        batch: 64,
    }
}

/// An ask of the engine.
pub fn ask(part: &linear::Part) -> Ask {
    let action = match &part.change {
        linear::Change::Read => Action::Read,
        linear::Change::Write(bytes) => Action::Write(bytes.clone()),
        linear::Change::Patch(offset, bytes, _) => {
            Action::Patch { offset: *offset, bytes: bytes.clone() }
        }
        linear::Change::Remove => Action::Remove,
    };
    let compare = match &part.compare {
        linear::Compare::Always => Compare::Always,
        linear::Compare::Absent => Compare::Absent,
        linear::Compare::Exists => Compare::Exists,
        linear::Compare::Bytes(at, bytes) => Compare::Bytes(*at, bytes.clone()),
    };
    let operation = Operation { action, and_read: part.and_read };
    Ask::new(Name::from(BlockId(part.block)), operation).only_if(compare)
}

/// An answer of the engine.
pub fn answer(Answer { done, content }: Answer) -> linear::Answer {
    linear::Answer { done, content }
}
