//! The second copy of the clients' newest state: a file in the server's folder, also if the first
//! one is in a store somewhere else. The catalog has the sum of both.

use super::files::Files;
use super::paired::SECOND;
use super::tables::Stored;
use oblivio_store::share::{Checkpoint, Object, Result, ShareError};
use std::path::Path;

/// The second copies.
pub(super) struct States(Files);

/// What there is of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// The first one, and the second one if there is room for it.
    Both,
    /// One of them, which made the other one whole.
    Mended(&'static str),
    /// None.
    Neither,
}

impl States {
    /// Opens the copies in a folder, and deletes those of states that are not among `objects`.
    pub fn open(dir: &Path, objects: impl Fn(Object) -> bool) -> Result<Self> {
        let (files, found) = Files::open(dir)?;
        let mut gone = found.into_keys().filter(|object| !objects(*object));
        gone.try_for_each(|object| files.delete(object))?;
        Ok(Self(files))
    }

    pub fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()> {
        self.0.write(object, offset, piece)
    }

    pub fn finish(&self, object: Object) -> Result<()> {
        self.0.finish(object)
    }

    pub fn read(&self, object: Object, offset: u64, into: &mut [u8]) -> Result<()> {
        self.0.read(object, offset, into)
    }

    pub fn delete(&self, object: Object) -> Result<()> {
        self.0.delete(object)
    }

    /// The sum of a state that was just stored.
    pub fn sum(&self, state: Checkpoint) -> Option<[u8; 32]> {
        self.0.sum(Object::Checkpoint(state.at), state.len)
    }

    /// Makes both copies of a state whole, if one of them is. A first copy that is somewhere else
    /// is read only if the second one is not whole.
    pub fn mend(&self, first: &Stored, state: Checkpoint, sum: [u8; 32]) -> Result<Whole> {
        let (object, of) = (Object::Checkpoint(state.at), (state.len, sum));
        let is_whole = self.sum(state) == Some(sum);
        match (first, is_whole) {
            (Stored::Here(files), _) => match (files.sum(object, state.len) == Some(sum), is_whole)
            {
                (true, true) => Ok(Whole::Both),
                (true, false) => {
                    let made = self.0.make(object, of, |at, into| files.read(object, at, into));
                    Ok(if made.is_ok() { Whole::Mended(SECOND) } else { Whole::Both })
                }
                (false, true) => {
                    files.make(object, of, |at, into| self.0.read(object, at, into))?;
                    Ok(Whole::Mended("tables"))
                }
                (false, false) => Ok(Whole::Neither),
            },
            (Stored::Elsewhere(..), true) => Ok(Whole::Both),
            (Stored::Elsewhere(..), false) => {
                match self.0.make(object, of, |at, into| first.read(object, at, into)) {
                    Ok(true) => Ok(Whole::Mended(SECOND)),
                    Ok(false) | Err(ShareError::NoObject(_)) => Ok(Whole::Neither),
                    Err(error) => Err(error),
                }
            }
        }
    }
}
