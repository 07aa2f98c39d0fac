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
    let lanes = match find {
        Some(find) => find(store, copies.public(), passphrase)?,
        None => Vec::new(),
    };
    let (header, master) = match (unlocked, lanes.first().and_then(LaneMaster::volume)) {
        (Err(_), Some(master)) => copies.unlock_with(master)?,
        (unlocked, _) => unlocked?,
    };
    Ok(Unlocked { header, master, lanes })
}
