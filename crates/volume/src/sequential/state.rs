//! The state at rest: two places used in turn, so a crash while one is written leaves the other.
//!
//! A place holds, sealed and padded to pages: the fixed part, the engine's state, who wrote the end
//! of the log, the tag there, the table of computers. Its size follows from the header. Version 1
//! ends with the engine's state; a volume whose last page has no room for more stays with it.

use super::PAGE;
use super::log::LogPosition;
use crate::block::StoredRoot;
use crate::trust::{ComputerId, MOST_ROWS, Table};
use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, SEAL_HEADER, Sealer, TAG_BYTES, Tag, VolumeId, digest};
use oblivio_store::{Log, ReadAt};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The object that holds both places.
pub const STATE_OBJECT: &str = "state";
const VERSION: u64 = 2;
const WITHOUT_TABLE: u64 = 1;
const PLACE_VERSION: u64 = 1;
/// Beyond any real count: a larger number could overflow in additions.
const MOST_COUNT: u64 = 1 << 56;
/// Bytes of the writer of the log's end, and of the tag there.
const WRITER: usize = 16 + TAG_BYTES;
const FIXED: usize = size_of::<Fixed>();

/// The fixed part, as stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Fixed {
    version: U64,
    epoch: U64,
    log_number: U64,
    log_tag: [u8; TAG_BYTES],
    log_end: U64,
    /// One if there are times.
    times_kept: U64,
    times: [u8; 32],
    root: StoredRoot,
}

/// The content of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Its number.
    pub epoch: u64,
    /// The first quantum with a write that a restart loses.
    pub log: LogPosition,
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
        let version = if self.computers.is_some() { VERSION } else { WITHOUT_TABLE };
        let fixed = Fixed {
            version: U64::new(version),
            epoch: U64::new(self.epoch),
            log_number: U64::new(self.log.number),
            log_tag: self.log.before.0,
            log_end: U64::new(self.end),
            times_kept: U64::new(self.times.is_some().into()),
            times: self.times.unwrap_or_default(),
            root: StoredRoot::new(&self.root),
        };
        let mut out = [&[0; SEAL_HEADER], fixed.as_bytes(), &self.engine].concat();
        if let Some(Computers { writer, end_tag, table }) = &self.computers {
            out.extend_from_slice(&writer.0);
            out.extend_from_slice(&end_tag.0);
            out.extend_from_slice(&table.to_bytes(rows));
        }
        out
    }

    fn parse(plain: &[u8], engine_bytes: usize) -> Result<Self> {
        let broken = || Error::Tampered(format!("{STATE_OBJECT} does not parse"));
        let (fixed, rest) = Fixed::ref_from_prefix(plain).map_err(|_| broken())?;
        let (version, epoch, end) = (fixed.version.get(), fixed.epoch.get(), fixed.log_end.get());
        if ![VERSION, WITHOUT_TABLE].contains(&version) {
            return Err(Error::Unsupported("the state has an unknown version".into()));
        }
        let log = LogPosition { number: fixed.log_number.get(), before: Tag(fixed.log_tag) };
        if [epoch, log.number, end].iter().any(|&count| count > MOST_COUNT) {
            return Err(broken());
        }
        let root = fixed.root.get().ok_or_else(broken)?;
        let (engine, rest) = rest.split_at_checked(engine_bytes).ok_or_else(broken)?;
        let computers = match version {
            WITHOUT_TABLE => None,
            _ => Some(Computers::parse(rest).ok_or_else(broken)?),
        };
        Ok(Self {
            epoch,
            log,
            end,
            times: (fixed.times_kept.get() == 1).then_some(fixed.times),
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

    /// Reads the newest state that opens, its identity, and whether there is one that does not.
    ///
    /// # Errors
    /// `Tampered` if none opens, `Unsupported` for an unknown version.
    pub fn read(&mut self, store: &dyn Log) -> Result<(State, [u8; 32], bool)> {
        let bytes = self.bytes();
        let (mut newest, mut damaged): (Option<(State, [u8; 32])>, bool) = (None, false);
        for which in 0..2 {
            let mut sealed = vec![0; bytes as usize];
            let (object, offset) = (STATE_OBJECT, which * bytes);
            store.read(&mut [ReadAt { object, offset, buf: &mut sealed }])?;
            let (identity, place) = (digest(&sealed), self.place(which));
            let written = sealed.iter().any(|&byte| byte != 0);
            let Ok(plain) = self.sealer.open(&place, &mut sealed) else {
                damaged |= written;
                continue;
            };
            let state = State::parse(plain, self.engine_bytes)?;
            let newer = newest.as_ref().is_none_or(|(newest, _)| newest.epoch < state.epoch);
            if state.epoch % 2 == which && newer {
                newest = Some((state, identity));
            }
        }
        let none = || Error::Tampered(format!("{STATE_OBJECT}: none opens"));
        let (state, identity) = newest.ok_or_else(none)?;
        Ok((state, identity, damaged))
    }
}
