//! The state at rest: the fixed part, the engine's state, who wrote the end of the log, the tag
//! there, the table of computers. Version 1 ends with the engine's state; a volume whose last page
//! has no room for more stays with it.

use super::log::LogPosition;
use crate::block::StoredRoot;
use crate::trust::{ComputerId, Table};
use crate::{Error, Result};
use oblivio_crypto::{SEAL_HEADER, TAG_BYTES, Tag};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The object that holds both places.
pub const STATE_OBJECT: &str = "state";
const VERSION: u64 = 2;
const WITHOUT_TABLE: u64 = 1;
/// Added once blocks were lost: versions before that do not know how to go on from there.
const MET_DAMAGE: u64 = 1 << 8;
/// Added where quanta of the log may have parity and the header does not say so: versions before
/// that cannot read them.
const LOG_PARITY: u64 = 1 << 9;
/// Added where lanes are written beside the volume: the identity of their states follows the fixed
/// part.
const WITH_LANES: u64 = 1 << 10;
/// Beyond any real count: a larger number could overflow in additions.
const MOST_COUNT: u64 = 1 << 56;
/// Bytes of the writer of the log's end, and of the tag there.
pub(super) const WRITER: usize = 16 + TAG_BYTES;
pub(super) const FIXED: usize = size_of::<Fixed>();

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
    /// Whether the engine's part may list lost blocks.
    pub met_damage: bool,
    /// Whether quanta of the log may have parity, though the header does not say so.
    pub log_parity: bool,
    /// The identity of the lanes' states that were written with it, if there are lanes.
    pub lanes: Option<[u8; 32]>,
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
        let flag = |set: bool, flag| if set { flag } else { 0 };
        let version = version
            | flag(self.met_damage, MET_DAMAGE)
            | flag(self.log_parity, LOG_PARITY)
            | flag(self.lanes.is_some(), WITH_LANES);
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
        let lanes = self.lanes.as_ref().map_or(&[][..], |lanes| lanes);
        let mut out = [&[0; SEAL_HEADER], fixed.as_bytes(), lanes, &self.engine].concat();
        if let Some(Computers { writer, end_tag, table }) = &self.computers {
            out.extend_from_slice(&writer.0);
            out.extend_from_slice(&end_tag.0);
            out.extend_from_slice(&table.to_bytes(rows));
        }
        out
    }

    pub(super) fn parse(plain: &[u8], (engine_bytes, lanes): (usize, bool)) -> Result<Self> {
        let broken = || Error::Tampered(format!("{STATE_OBJECT} does not parse"));
        let (fixed, rest) = Fixed::ref_from_prefix(plain).map_err(|_| broken())?;
        let (version, epoch, end) = (fixed.version.get(), fixed.epoch.get(), fixed.log_end.get());
        let (met_damage, log_parity) = (version & MET_DAMAGE != 0, version & LOG_PARITY != 0);
        let has_lanes = version & WITH_LANES != 0;
        let version = version & !(MET_DAMAGE | LOG_PARITY | WITH_LANES);
        if ![VERSION, WITHOUT_TABLE].contains(&version) {
            return Err(Error::Unsupported("the state has an unknown version".into()));
        }
        let log = LogPosition { number: fixed.log_number.get(), before: Tag(fixed.log_tag) };
        if [epoch, log.number, end].iter().any(|&count| count > MOST_COUNT) {
            return Err(broken());
        }
        if has_lanes != lanes {
            return Err(broken());
        }
        let root = fixed.root.get().ok_or_else(broken)?;
        let (lanes, rest) = match lanes {
            true => rest.split_first_chunk().map(|(lanes, rest)| (Some(*lanes), rest)),
            false => Some((None, rest)),
        }
        .ok_or_else(broken)?;
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
            met_damage,
            log_parity,
            lanes,
        })
    }
}
