//! The passphrases of a volume, and what its header says without one.

use crate::engine::load;
use crate::header::unlock_error;
use crate::registry::ENGINES;
use crate::{Header, PublicHeader, Result};
use oblivio_crypto::{KdfParams, OsEntropy, Passphrase};
use oblivio_store::{Objects, PutMode};

/// Reads what is readable without a passphrase.
///
/// # Errors
/// `Unsupported` if this version knows no such volume.
pub fn read_header(store: &dyn Objects) -> Result<PublicHeader> {
    let (header, engine) = load(store, ENGINES)?;
    Ok(PublicHeader::of(&header, engine))
}

/// Adds a passphrase; gives the number of its slot.
///
/// # Errors
/// As [`Header::add_passphrase`], and those of the store.
pub fn add_passphrase(
    store: &dyn Objects,
    known: &Passphrase,
    new: &Passphrase,
    kdf: KdfParams,
) -> Result<usize> {
    let mut header = load(store, ENGINES)?.0;
    let slot = header.add_passphrase(known, new, kdf)?;
    header.save(store, PutMode::Replace)?;
    Ok(slot)
}

/// Removes a passphrase, from every slot that it opens.
///
/// # Errors
/// As [`Header::remove_passphrase`], and those of the store.
pub fn remove_passphrase(store: &dyn Objects, victim: &Passphrase) -> Result<()> {
    let mut header = load(store, ENGINES)?.0;
    header.remove_passphrase(victim)?;
    header.save(store, PutMode::Replace)
}

/// Replaces a passphrase by another, in every slot that it opens; nothing else is encrypted again.
///
/// # Errors
/// As [`Header::change_passphrase`], and those of the store.
pub fn change_passphrase(
    store: &dyn Objects,
    old: &Passphrase,
    new: &Passphrase,
    kdf: KdfParams,
) -> Result<()> {
    let mut header = load(store, ENGINES)?.0;
    header.change_passphrase(old, new, kdf)?;
    header.save(store, PutMode::Replace)
}

/// The same for a header that its caller keeps.
impl Header {
    /// Adds a passphrase; gives the number of its slot.
    ///
    /// # Errors
    /// `WrongPassphrase` when `known` opens nothing, `Invalid` when all slots are in use, or when
    /// `new` opens the volume already.
    pub fn add_passphrase(
        &mut self,
        known: &Passphrase,
        new: &Passphrase,
        kdf: KdfParams,
    ) -> Result<usize> {
        let master = self.unlock(known)?;
        let volume = self.volume();
        let slot = self.slots.add(&master, volume, new, kdf, &mut OsEntropy);
        Ok(slot.map_err(unlock_error)?.get())
    }

    /// Removes a passphrase, from every slot that it opens.
    ///
    /// # Errors
    /// `WrongPassphrase` when it opens nothing, `Invalid` when it is the last one.
    pub fn remove_passphrase(&mut self, victim: &Passphrase) -> Result<()> {
        let master = self.slots.remove(self.volume(), victim).map_err(unlock_error)?;
        self.check(&master)
    }

    /// Replaces a passphrase by another, in every slot that it opens.
    ///
    /// # Errors
    /// `WrongPassphrase` when `old` opens nothing, `Invalid` when `new` opens the volume already.
    pub fn change_passphrase(
        &mut self,
        old: &Passphrase,
        new: &Passphrase,
        kdf: KdfParams,
    ) -> Result<()> {
        let changed = self.slots.change(self.volume(), old, new, kdf, &mut OsEntropy);
        let (master, _) = changed.map_err(unlock_error)?;
        self.check(&master)
    }
}
