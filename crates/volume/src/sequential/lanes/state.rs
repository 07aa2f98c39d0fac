//! The state of an open lane, as it stands in its place: slots for passphrases, and all that its
//! engine, its disk and its log go on from, sealed.

use super::form::LaneForm;
use crate::block::StoredRoot;
use crate::sequential::log_position::LogPosition;
use crate::{Error, Result};
use oblivio_crypto::{LANE_KEYS_BYTES, LANE_SLOTS_BYTES, SEAL_HEADER, TAG_BYTES, Tag};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const VERSION: u64 = 1;

/// The fixed part, as stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Fixed {
    version: U64,
    number: U64,
    log_number: U64,
    log_before: [u8; TAG_BYTES],
    end_number: U64,
    end_before: [u8; TAG_BYTES],
    /// One if there are times.
    times_kept: U64,
    times: [u8; 32],
    keys: [u8; LANE_KEYS_BYTES],
    root: StoredRoot,
}

/// What a lane's state says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LaneState {
    /// The number of the volume's state beside it.
    pub number: u64,
    /// The first quantum with a write that a restart loses.
    pub log: LogPosition,
    /// Where the lane's log ended.
    pub end: LogPosition,
    /// The identity of the access times kept beside it, if any.
    pub times: Option<[u8; 32]>,
    /// The stretched passphrases, sealed.
    pub keys: [u8; LANE_KEYS_BYTES],
    /// The root.
    pub root: Vec<u8>,
    /// What the engine goes on from.
    pub engine: Vec<u8>,
    /// The same of its disk.
    pub disk: Vec<u8>,
}

impl LaneState {
    /// The place with room for slots, and everything behind to be sealed.
    pub fn to_bytes(&self, form: &LaneForm) -> Vec<u8> {
        let fixed = Fixed {
            version: U64::new(VERSION),
            number: U64::new(self.number),
            log_number: U64::new(self.log.number),
            log_before: self.log.before.0,
            end_number: U64::new(self.end.number),
            end_before: self.end.before.0,
            times_kept: U64::new(self.times.is_some().into()),
            times: self.times.unwrap_or_default(),
            keys: self.keys,
            root: StoredRoot::new(&self.root),
        };
        let front = [0; LANE_SLOTS_BYTES + SEAL_HEADER];
        let mut out = [&front, fixed.as_bytes(), &self.engine, &self.disk].concat();
        out.resize(form.state_bytes() as usize, 0);
        out
    }

    /// Parses an opened state.
    ///
    /// # Errors
    /// `Unsupported` for a version that is not known, `Tampered` for nonsense.
    pub fn parse(plain: &[u8], form: &LaneForm) -> Result<Self> {
        let broken = || Error::Tampered("a lane's state does not parse".into());
        let (fixed, rest) = Fixed::ref_from_prefix(plain).map_err(|_| broken())?;
        if fixed.version.get() != VERSION {
            return Err(Error::Unsupported("a lane's state has an unknown version".into()));
        }
        let (engine, rest) = rest.split_at_checked(form.engine_bytes).ok_or_else(broken)?;
        let disk = rest.get(..form.layout.disk_state_bytes()).ok_or_else(broken)?;
        let position =
            |number: U64, before| LogPosition { number: number.get(), before: Tag(before) };
        Ok(Self {
            number: fixed.number.get(),
            log: position(fixed.log_number, fixed.log_before),
            end: position(fixed.end_number, fixed.end_before),
            times: (fixed.times_kept.get() == 1).then_some(fixed.times),
            keys: fixed.keys,
            root: fixed.root.get().ok_or_else(broken)?.to_vec(),
            engine: engine.to_vec(),
            disk: disk.to_vec(),
        })
    }
}
