//! The passphrases of a volume, and what its header says without one.

use crate::engine::load;
use crate::header::unlock_error;
use crate::registry::ENGINES;
use crate::{Header, PublicHeader, Result};
use oblivio_crypto::{KdfParams, KeySlots, MasterKey, OsEntropy, Passphrase};
use oblivio_store::{Objects, PutMode};

/// Reads what is readable without a passphrase.
///
/// # Errors
/// `Unsupported` if this version knows no such volume.
pub fn read_header(store: &dyn Objects) -> Result<PublicHeader> {
    let (copies, engine) = load(store, ENGINES)?;
    Ok(PublicHeader::of(copies.public(), engine))
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
    change(store, |header| header.add(known, new, kdf))
}

/// Removes a passphrase, from every slot that it opens.
///
/// # Errors
/// As [`Header::remove_passphrase`], and those of the store.
pub fn remove_passphrase(store: &dyn Objects, victim: &Passphrase) -> Result<()> {
    change(store, |header| Ok(((), header.remove(victim)?)))
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
    change(store, |header| Ok(((), header.change(old, new, kdf)?)))
}

/// Stores the header that counts, changed.
fn change<T>(
    store: &dyn Objects,
    work: impl Fn(&mut Header) -> Result<(T, MasterKey)>,
) -> Result<T> {
    let chosen = load(store, ENGINES)?.0.choose(work)?;
    chosen.header.save(store, PutMode::Replace)?;
    Ok(chosen.value)
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
        self.add(known, new, kdf).map(|(slot, _)| slot)
    }

    /// Removes a passphrase, from every slot that it opens.
    ///
    /// # Errors
    /// `WrongPassphrase` when it opens nothing, `Invalid` when it is the last one.
    pub fn remove_passphrase(&mut self, victim: &Passphrase) -> Result<()> {
        self.remove(victim).map(drop)
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
        self.change(old, new, kdf).map(drop)
    }

    fn add(
        &mut self,
        known: &Passphrase,
        new: &Passphrase,
        kdf: KdfParams,
    ) -> Result<(usize, MasterKey)> {
        let (master, volume) = (self.unlock(known)?, self.volume());
        let mut slots = self.slots.clone();
        let slot = slots.add(&master, volume, new, kdf, &mut OsEntropy).map_err(unlock_error)?;
        self.put_slots(slots, &master);
        Ok((slot.get(), master))
    }

    fn remove(&mut self, victim: &Passphrase) -> Result<MasterKey> {
        let mut slots = self.slots.clone();
        let master = slots.remove(self.volume(), victim).map_err(unlock_error)?;
        self.check(&master)?;
        self.put_slots(slots, &master);
        Ok(master)
    }

    fn change(&mut self, old: &Passphrase, new: &Passphrase, kdf: KdfParams) -> Result<MasterKey> {
        let mut slots = self.slots.clone();
        let changed = slots.change(self.volume(), old, new, kdf, &mut OsEntropy);
        let (master, _) = changed.map_err(unlock_error)?;
        self.check(&master)?;
        self.put_slots(slots, &master);
        Ok(master)
    }

    fn put_slots(&mut self, slots: KeySlots, master: &MasterKey) {
        let mac = master.header_mac(self.volume());
        let mut header = self.clone();
        header.slots = slots;
        *self = header.changed(&mac);
    }
}
