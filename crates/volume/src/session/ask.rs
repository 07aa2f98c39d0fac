//! What a store is asked side by side.

use crate::Result;
use oblivio_store::{Objects, ReadAt, Store, StoreError};

/// No object that is kept near is longer.
const MOST_NEAR: u64 = 1 << 30;

/// The lengths of objects.
///
/// # Errors
/// Those of the store.
pub fn lens(store: &dyn Objects, names: &[String]) -> Result<Vec<Option<u64>>> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(store.lens(&names)?)
}

/// Which of them are there.
///
/// # Errors
/// Those of the store.
pub fn there(store: &dyn Objects, names: &[String]) -> Result<Vec<bool>> {
    Ok(lens(store, names)?.iter().map(Option::is_some).collect())
}

/// An object that this computer keeps on its own disk, if it can be read.
pub fn near(store: &dyn Store, object: &str) -> Option<Vec<u8>> {
    let len = store.len(object).ok().flatten().filter(|len| *len <= MOST_NEAR)?;
    let mut buf = vec![0; len as usize];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut buf }]).ok()?;
    Some(buf)
}

/// Whether what was read was there, as a whole.
///
/// # Errors
/// Those of the store.
pub fn found(read: oblivio_store::Result<()>) -> Result<bool> {
    match read {
        Ok(()) => Ok(true),
        Err(StoreError::Missing { .. } | StoreError::Short { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
