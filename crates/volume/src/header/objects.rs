//! The objects that hold the copies of a header.

use crate::{Error, Result};
use oblivio_store::{Held, Objects, PutMode, StoreError};
use std::io;

/// The object that holds the header.
pub const HEADER_OBJECT: &str = HEADER_OBJECTS[0];
/// It, and the one with its second copy.
pub const HEADER_OBJECTS: [&str; 2] = ["header", "header-2"];

/// Whether an object of this name holds a header.
#[must_use]
pub fn is_header(name: &str) -> bool {
    HEADER_OBJECTS.contains(&name)
}

/// Whether a store has a header, so a volume is there.
///
/// # Errors
/// Those of the store.
pub fn has_header(store: &dyn Held) -> Result<bool> {
    Ok(store.lens(&HEADER_OBJECTS)?.iter().any(Option::is_some))
}

/// Stores the second copy; says whether the store has a place for it.
pub(super) fn put_second(store: &dyn Objects, bytes: &[u8]) -> Result<bool> {
    match store.put(HEADER_OBJECTS[1], bytes, PutMode::Replace) {
        Ok(()) => Ok(true),
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::InvalidInput => {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Refuses a store in which no new volume can be made.
pub(crate) fn expect_empty(store: &dyn Held) -> Result<()> {
    let objects = store.list()?;
    if objects.iter().any(|(name, _)| is_header(name)) {
        return Err(Error::Exists("a volume".into()));
    }
    match objects.iter().find(|(_, len)| *len > 0) {
        Some((name, _)) => {
            Err(Error::Invalid(format!("the store is not empty: it holds {name:?}")))
        }
        None => Ok(()),
    }
}
