//! The state at rest: two places that take turns, so that a crash while one is written leaves the
//! other.
//!
//! `version 8 | epoch 8 | log: number 8, tag 16, end 8 | times: kept 8, digest 32 | root: length 8,
//! 1024 | the engine's state`, sealed, and padded to pages. Its size follows from the header.

use super::PAGE;
use super::log::Mark;
use crate::block::ROOT_BYTES;
use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, SEAL_HEADER, Sealer, TAG_BYTES, Tag, VolumeId, digest};
use oblivio_store::{ReadAt, Store};

/// The object that holds both places.
pub const STATE_OBJECT: &str = "state";
const VERSION: u64 = 1;
const FIXED: usize = 8 + 8 + 8 + TAG_BYTES + 8 + 8 + 32 + 8 + ROOT_BYTES;

/// What a state says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Its number.
    pub epoch: u64,
    /// The first quantum with a write that a restart loses.
    pub log: Mark,
    /// Where the log ended.
    pub end: u64,
    /// What identifies the access times that are kept beside it, if they are.
    pub times: Option<[u8; 32]>,
    /// The caller's root.
    pub root: Vec<u8>,
    /// The engine's part.
    pub engine: Vec<u8>,
}

impl State {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![0; SEAL_HEADER];
        for word in [VERSION, self.epoch, self.log.number] {
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
        out
    }

    fn parse(plain: &[u8], engine_bytes: usize) -> Result<Self> {
        let broken = || Error::Tampered(format!("{STATE_OBJECT} does not parse"));
        let (fixed, rest) = plain.split_at_checked(FIXED).ok_or_else(broken)?;
        let word =
            |at: usize| fixed[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        if word(0) != VERSION {
            return Err(Error::Unsupported("the state has an unknown version".into()));
        }
        let mut log = Mark { number: word(16), before: Tag::default() };
        log.before.0.copy_from_slice(&fixed[24..24 + TAG_BYTES]);
        let mut times = [0; 32];
        times.copy_from_slice(&fixed[56..88]);
        let root = fixed[96..].get(..word(88) as usize).ok_or_else(broken)?;
        Ok(Self {
            epoch: word(8),
            log,
            end: word(40),
            times: (word(48) == 1).then_some(times),
            root: root.to_vec(),
            engine: rest.get(..engine_bytes).ok_or_else(broken)?.to_vec(),
        })
    }
}

/// Where the states are kept.
pub struct StatePlaces {
    volume: VolumeId,
    sealer: Sealer,
    /// Bytes of the engine's part.
    engine_bytes: usize,
}

impl StatePlaces {
    /// The places of a volume whose engine's state has so many bytes.
    pub fn new(volume: VolumeId, sealer: Sealer, engine_bytes: usize) -> Self {
        Self { volume, sealer, engine_bytes }
    }

    /// Bytes of one place.
    pub(super) fn bytes(&self) -> u64 {
        Self::object_bytes(self.engine_bytes) / 2
    }

    /// Bytes of the object when the engine's state has so many.
    pub fn object_bytes(engine_bytes: usize) -> u64 {
        let sealed = SEAL_HEADER + FIXED + engine_bytes + TAG_BYTES;
        2 * (sealed as u64).next_multiple_of(PAGE)
    }

    pub(super) fn place(&self, epoch: u64) -> Place {
        Place { volume: self.volume, kind: Kind::State, index: epoch % 2, version: VERSION }
    }

    /// Writes a state durably; gives what identifies it.
    ///
    /// # Errors
    /// Those of the store and of the sealer.
    pub fn write(&mut self, store: &dyn Store, state: &State) -> Result<[u8; 32]> {
        let mut sealed = state.to_bytes();
        sealed.resize(self.bytes() as usize, 0);
        let place = self.place(state.epoch);
        let done = self.sealer.seal(&place, &mut sealed);
        done.map_err(|error| Error::Closed(error.to_string()))?;
        store.write_durable(STATE_OBJECT, state.epoch % 2 * self.bytes(), &sealed)?;
        Ok(digest(&sealed))
    }

    /// Reads the newest state, and what identifies it.
    ///
    /// # Errors
    /// `Tampered` when none opens, `Unsupported` for an unknown version.
    pub fn read(&mut self, store: &dyn Store) -> Result<(State, [u8; 32])> {
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
