//! The passphrases of a volume, and what its header says without one.

use crate::engine::load;
use crate::header::unlock_error;
use crate::registry::ENGINES;
use crate::{PublicHeader, Result};
use oblivio_crypto::{KdfParams, OsEntropy, Passphrase};
use oblivio_store::{Blobs, PutMode};

/// Reads what is readable without a passphrase.
///
/// # Errors
/// `Unsupported` if this version knows no such volume.
pub fn read_header(store: &dyn Blobs) -> Result<PublicHeader> {
    let (header, engine) = load(store, ENGINES)?;
    Ok(PublicHeader::of(&header, engine))
}

/// Adds a passphrase; gives the number of its slot.
///
/// # Errors
/// `WrongPassphrase` when `known` opens nothing, `Invalid` when all slots are in use, or when `new`
/// opens the volume already.
pub fn add_passphrase(
    store: &dyn Blobs,
    known: &Passphrase,
    new: &Passphrase,
    kdf: KdfParams,
) -> Result<usize> {
    let mut header = load(store, ENGINES)?.0;
    let master = header.unlock(known)?;
    let volume = header.volume();
    let slot = header.slots.add(&master, volume, new, kdf, &mut OsEntropy).map_err(unlock_error)?;
    header.save(store, PutMode::Replace)?;
    Ok(slot.get())
}

/// Removes a passphrase, from every slot that it opens.
///
/// # Errors
/// `WrongPassphrase` when it opens nothing, `Invalid` when it is the last one.
pub fn remove_passphrase(store: &dyn Blobs, victim: &Passphrase) -> Result<()> {
    let mut header = load(store, ENGINES)?.0;
    let master = header.slots.remove(header.volume(), victim).map_err(unlock_error)?;
    header.check(&master)?;
    header.save(store, PutMode::Replace)
}

/// Replaces a passphrase by another, in every slot that it opens; nothing else is encrypted again.
///
/// # Errors
/// `WrongPassphrase` when `old` opens nothing, `Invalid` when `new` opens the volume already.
pub fn change_passphrase(
    store: &dyn Blobs,
    old: &Passphrase,
    new: &Passphrase,
    kdf: KdfParams,
) -> Result<()> {
    let mut header = load(store, ENGINES)?.0;
    let volume = header.volume();
    let changed = header.slots.change(volume, old, new, kdf, &mut OsEntropy);
    let (master, _) = changed.map_err(unlock_error)?;
    header.check(&master)?;
    header.save(store, PutMode::Replace)
}
