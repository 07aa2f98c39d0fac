//! Trying a passphrase on all that it may open.

use crate::Result;
use crate::header::{Header, HeaderCopies};
use crate::lane::LaneMaster;
use oblivio_crypto::{MasterKey, Passphrase};
use oblivio_store::AnyStore;

/// Finds the lanes of a volume that a passphrase opens.
pub type FindLanes = fn(&AnyStore, &Header, &Passphrase) -> Result<Vec<LaneMaster>>;

/// What a passphrase opened.
pub(crate) struct Unlocked {
    pub header: Header,
    pub master: MasterKey,
    pub lanes: Vec<LaneMaster>,
}

/// Tries a passphrase on the header and on the lanes, always on both: the time tells nothing. A
/// lane has the volume's key.
///
/// # Errors
/// Those of [`HeaderCopies::unlock`].
pub(crate) fn unlock(
    find: Option<FindLanes>,
    store: &AnyStore,
    copies: &HeaderCopies,
    passphrase: &Passphrase,
) -> Result<Unlocked> {
    let unlocked = copies.unlock(passphrase);
    let mut lanes = Vec::new();
    // Who changed one copy must not be able to hide the lanes of the other.
    for header in copies.candidates() {
        let found = find.map_or(Ok(Vec::new()), |find| find(store, header, passphrase))?;
        lanes = if lanes.is_empty() { found } else { lanes };
    }
    let (header, master) = match (unlocked, lanes.first().and_then(LaneMaster::volume)) {
        (Err(_), Some(master)) => copies.unlock_with(master)?,
        (unlocked, _) => unlocked?,
    };
    Ok(Unlocked { header, master, lanes })
}
