//! The pairs of objects, and one that is not what was written, or that an outage hides.

use crate::around::read_place;
use crate::damage::DamagedPlace;
use crate::{Error, Result};
use oblivio_store::{Held, ReadAt, StoreError};

/// The pairs of objects: a checkpoint and a log each.
pub const PAIRS: [[&str; 2]; 2] = [["state-0", "log-0"], ["state-1", "log-1"]];

/// A pair that is not what was written.
pub struct WrongPair {
    pub place: DamagedPlace,
    /// What the store said.
    pub error: Option<StoreError>,
    /// Whether it could read nothing else: then the pair may be what was written.
    pub is_outage: bool,
}

impl WrongPair {
    /// What is wrong with this object of it.
    pub fn new(object: &str, why: &str) -> Self {
        let place = DamagedPlace { object: object.into(), bytes: 0..0, why: why.into() };
        Self { place, error: None, is_outage: false }
    }

    /// What a store said when it was to read a pair.
    pub fn of_store(error: StoreError, object: &str) -> Self {
        match error {
            StoreError::Missing { object } | StoreError::Short { object, .. } => {
                Self::new(&object, "is missing or cut short")
            }
            error => {
                let wrong = Self::new(object, &format!("cannot be read: {error}"));
                Self { error: Some(error), ..wrong }
            }
        }
    }
}

/// Reads a part of a pair, some times if it fails.
pub fn read_one(store: &dyn Held, read: &mut ReadAt<'_>) -> std::result::Result<(), WrongPair> {
    let object = read.object;
    let once = || store.read(std::slice::from_mut(read));
    match read_place(once, || reads_any(store)) {
        Ok(None) => Ok(()),
        Ok(Some(error)) | Err(error @ StoreError::Missing { .. }) => {
            Err(WrongPair::of_store(error, object))
        }
        Err(error) => Err(WrongPair { is_outage: true, ..WrongPair::of_store(error, object) }),
    }
}

/// Whether anything of either pair can be read.
fn reads_any(store: &dyn Held) -> bool {
    let mut byte = [0];
    let mut reads = |object| store.read(&mut [ReadAt { object, offset: 0, buf: &mut byte }]);
    PAIRS.concat().into_iter().any(|object| reads(object).is_ok())
}

/// Passes a pair on, right or wrong, unless an outage hid it.
pub fn passed<T>(
    read: std::result::Result<T, WrongPair>,
) -> Result<std::result::Result<T, WrongPair>> {
    match read {
        Err(WrongPair { error: Some(error), is_outage: true, .. }) => Err(error.into()),
        read => Ok(read),
    }
}

/// The error of a state of which no pair is whole.
pub fn failure(first: WrongPair, second: Option<DamagedPlace>) -> Error {
    match (first.error, second) {
        (Some(error), _) => error.into(),
        (None, None) => Error::Tampered(format!("{} {}", first.place.object, first.place.why)),
        (None, Some(second)) => Error::Tampered(format!(
            "{} {}, and its second copy: {} {}",
            first.place.object, first.place.why, second.object, second.why
        )),
    }
}
