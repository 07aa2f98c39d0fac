//! The state at rest: two places used in turn, so a crash while one is written leaves the other.
//!
//! `version 8 | epoch 8 | log: number 8, tag 16, end 8 | times: kept 8, digest 32 | root: length 8,
//! 1024 | the engine's state | who wrote the end of the log 16, the tag there 16 | table of
//! computers`, sealed, and padded to pages. Its size follows from the header. Version 1 ends with
//! the engine's state; a volume whose last page has no room for more stays with it.

use super::PAGE;
use super::log::Mark;
use crate::block::ROOT_BYTES;
use crate::trust::{ComputerId, MOST_ROWS, Table};
use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, SEAL_HEADER, Sealer, TAG_BYTES, Tag, VolumeId, digest};
use oblivio_store::{Log, ReadAt};

/// The object that holds both places.
pub const STATE_OBJECT: &str = "state";
const VERSION: u64 = 2;
const WITHOUT_TABLE: u64 = 1;
const PLACE_VERSION: u64 = 1;
/// Beyond any real count: a larger number could overflow in additions.
const MOST_COUNT: u64 = 1 << 56;
/// Bytes of the writer of the log's end, and of the tag there.
const WRITER: usize = 16 + TAG_BYTES;
const FIXED: usize = 8 + 8 + 8 + TAG_BYTES + 8 + 8 + 32 + 8 + ROOT_BYTES;

/// The content of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Its number.
    pub epoch: u64,
    /// The first quantum with a write that a restart loses.
    pub log: Mark,
    /// Where the log ended.
    pub end: u64,
    /// The identity of the access times kept beside it, if any.
    pub times: Option<[u8; 32]>,
    /// The caller's root.
    pub root: Vec<u8>,
    /// The engine's part.
    pub engine: Vec<u8>,
    /// The computers known, if there is room for them.
    pub computers: Option<Computers>,
}

/// The computers that led to a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Computers {
    /// Who wrote the last quantum before the end of the log.
    pub writer: ComputerId,
    /// Its tag: the log of another history ends with a different one.
    pub end_tag: Tag,
    /// Each computer's progress.
    pub table: Table,
}

impl Computers {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (writer, rest) = bytes.split_first_chunk()?;
        let (end_tag, table) = rest.split_first_chunk()?;
        let (writer, end_tag) = (ComputerId(*writer), Tag(*end_tag));
        Some(Self { writer, end_tag, table: Table::parse(table)? })
    }
}

impl State {
    pub(super) fn to_bytes(&self, rows: usize) -> Vec<u8> {
        let mut out = vec![0; SEAL_HEADER];
        let version = if self.computers.is_some() { VERSION } else { WITHOUT_TABLE };
        for word in [version, self.epoch, self.log.number] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.log.before.0);
        out.extend_from_slice(&self.end.to_le_bytes());
        out.extend_from_slice(&u64::from(self.times.is_some()).to_le_bytes());
        out.extend_from_slice(&self.times.unwrap_or_default());
        out.extend_from_slice(&(self.root.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.root);
        out.resize(SEAL_HEADER + FIXED, 0);
        out.extend_from_slice(&self.engine);
        if let Some(Computers { writer, end_tag, table }) = &self.computers {
            out.extend_from_slice(&writer.0);
            out.extend_from_slice(&end_tag.0);
            out.extend_from_slice(&table.to_bytes(rows));
        }
        out
    }

    fn parse(plain: &[u8], engine_bytes: usize) -> Result<Self> {
        let broken = || Error::Tampered(format!("{STATE_OBJECT} does not parse"));
        let (fixed, rest) = plain.split_at_checked(FIXED).ok_or_else(broken)?;
        let word =
            |at: usize| fixed[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        if ![VERSION, WITHOUT_TABLE].contains(&word(0)) {
            return Err(Error::Unsupported("the state has an unknown version".into()));
        }
        // Epoch, beginning and end of the log.
        if [8, 16, 40].iter().any(|&at| word(at) > MOST_COUNT) {
            return Err(broken());
        }
        let mut log = Mark { number: word(16), before: Tag::default() };
        log.before.0.copy_from_slice(&fixed[24..24 + TAG_BYTES]);
        let mut times = [0; 32];
        times.copy_from_slice(&fixed[56..88]);
        let root = fixed[96..].get(..word(88) as usize).ok_or_else(broken)?;
        let (engine, rest) = rest.split_at_checked(engine_bytes).ok_or_else(broken)?;
        let computers = match word(0) {
            WITHOUT_TABLE => None,
            _ => Some(Computers::parse(rest).ok_or_else(broken)?),
        };
        Ok(Self {
            epoch: word(8),
            log,
            end: word(40),
            times: (word(48) == 1).then_some(times),
            root: root.to_vec(),
            engine: engine.to_vec(),
            computers,
        })
    }
}

/// The places of the states.
pub struct StatePlaces {
    volume: VolumeId,
    sealer: Sealer,
    /// Bytes of the engine's part.
    engine_bytes: usize,
    /// Whether there is room for a whole table of computers.
    whole_table: bool,
}

impl StatePlaces {
    /// The places of a volume with this many bytes of engine state.
    pub fn new(volume: VolumeId, sealer: Sealer, engine_bytes: usize, whole_table: bool) -> Self {
        Self { volume, sealer, engine_bytes, whole_table }
    }

    /// Rows in a table of computers; 0 if there is no room for one.
    pub fn rows(&self) -> usize {
        let taken = SEAL_HEADER + FIXED + self.engine_bytes + WRITER + TAG_BYTES;
        Table::rows_in((self.bytes() as usize).saturating_sub(taken))
    }

    /// Bytes of one place.
    pub(super) fn bytes(&self) -> u64 {
        Self::object_bytes(self.engine_bytes, self.whole_table) / 2
    }

    /// Bytes of the object for this many bytes of engine state.
    pub fn object_bytes(engine_bytes: usize, whole_table: bool) -> u64 {
        let computers = if whole_table { WRITER + Table::bytes(MOST_ROWS) } else { 0 };
        let sealed = SEAL_HEADER + FIXED + engine_bytes + computers + TAG_BYTES;
        2 * (sealed as u64).next_multiple_of(PAGE)
    }

    pub(super) fn place(&self, epoch: u64) -> Place {
        Place { volume: self.volume, kind: Kind::State, index: epoch % 2, version: PLACE_VERSION }
    }

    /// Writes a state durably; gives its identity.
    ///
    /// # Errors
    /// Those of the store and of the sealer.
    pub fn write(&mut self, store: &dyn Log, state: &State) -> Result<[u8; 32]> {
        let mut sealed = state.to_bytes(self.rows());
        sealed.resize(self.bytes() as usize, 0);
        let place = self.place(state.epoch);
        let done = self.sealer.seal(&place, &mut sealed);
        done.map_err(|error| Error::Closed(error.to_string()))?;
        store.write_durable(STATE_OBJECT, state.epoch % 2 * self.bytes(), &sealed)?;
        Ok(digest(&sealed))
    }

    /// Reads the newest state, and its identity.
    ///
    /// # Errors
    /// `Tampered` if none opens, `Unsupported` for an unknown version.
    pub fn read(&mut self, store: &dyn Log) -> Result<(State, [u8; 32])> {
        let bytes = self.bytes();
        let mut newest: Option<(State, [u8; 32])> = None;
        for which in 0..2 {
            let mut sealed = vec![0; bytes as usize];
            let (object, offset) = (STATE_OBJECT, which * bytes);
            store.read(&mut [ReadAt { object, offset, buf: &mut sealed }])?;
            let (identity, place) = (digest(&sealed), self.place(which));
            let Ok(plain) = self.sealer.open(&place, &mut sealed) else { continue };
            let state = State::parse(plain, self.engine_bytes)?;
            let newer = newest.as_ref().is_none_or(|(newest, _)| newest.epoch < state.epoch);
            if state.epoch % 2 == which && newer {
                newest = Some((state, identity));
            }
        }
        newest.ok_or_else(|| Error::Tampered(format!("{STATE_OBJECT}: none opens")))
    }
}
