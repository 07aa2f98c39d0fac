//! The declared limit of a tree volume, and its changes.
//!
//! Only the header holds it, and nothing stored depends on it. So replacing the header as a whole
//! changes it, and a restored old header has the old limit. At worst, nothing more fits into the
//! volume until the limit is raised again.

use super::{Header, tree};
use crate::Result;
use oblivio_crypto::{Mac, MasterKey};
use oblivio_store::{Blobs, PutMode};

/// The header of an open volume, and the key for its fields.
pub(crate) struct Limit {
    header: Header,
    mac: Mac,
}

impl Limit {
    /// The limit in an unlocked header.
    ///
    /// # Errors
    /// Never for a parsed header.
    pub(crate) fn of(header: &Header, master: &MasterKey) -> Result<Self> {
        let header = Header::parse(&header.to_bytes())?;
        let mac = master.header_mac(header.volume());
        Ok(Self { header, mac })
    }

    /// The most blocks that may exist.
    pub(crate) fn blocks(&self) -> u64 {
        self.header.config().capacity
    }

    /// Replaces the stored header by one with another limit. `addressable` blocks are addressable.
    ///
    /// # Errors
    /// `Invalid` for a limit that this volume cannot have, and those of the store. Then the old one
    /// or the new one is stored.
    pub(crate) fn set(&mut self, store: &dyn Blobs, blocks: u64, addressable: u64) -> Result<()> {
        let fields = tree::with_limit(&self.header.fields, blocks, addressable)?;
        let old = Header::parse(&self.header.to_bytes())?;
        let new = Header { fields, mac: self.mac.bytes(&[fields_bytes(&fields)]), ..old };
        new.save(store, PutMode::Replace)?;
        self.header = new;
        Ok(())
    }
}

fn fields_bytes(fields: &super::Fields) -> &[u8] {
    zerocopy::IntoBytes::as_bytes(fields)
}
