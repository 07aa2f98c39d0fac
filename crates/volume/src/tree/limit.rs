//! The declared limit of a tree volume, and its changes.
//!
//! Only the header holds it, and nothing stored depends on it. So replacing the header as a whole
//! changes it, and a restored old header has the old limit. At worst, nothing more fits into the
//! volume until the limit is raised again.

use super::header::{config, with_limit};
use crate::Result;
use crate::header::Header;
use oblivio_crypto::{Mac, MasterKey};
use oblivio_store::{Blobs, PutMode};

/// The header of an open volume, and the key for its fields.
pub(crate) struct Limit {
    header: Header,
    mac: Mac,
}

impl Limit {
    /// The limit in an unlocked header.
    pub(crate) fn of(header: &Header, master: &MasterKey) -> Self {
        Self { header: header.clone(), mac: master.header_mac(header.volume()) }
    }

    /// The header as stored.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The most blocks that may exist.
    pub(crate) fn blocks(&self) -> u64 {
        config(&self.header.parameters()).capacity
    }

    /// Replaces the stored header by one with another limit. `addressable` blocks are addressable.
    ///
    /// # Errors
    /// `Invalid` for a limit that this volume cannot have, and those of the store. Then the old one
    /// or the new one is stored.
    pub(crate) fn set(&mut self, store: &dyn Blobs, blocks: u64, addressable: u64) -> Result<()> {
        let parameters = with_limit(&self.header.parameters(), blocks, addressable)?;
        let header = self.header.with_parameters(&parameters, &self.mac);
        header.save(store, PutMode::Replace)?;
        self.header = header;
        Ok(())
    }
}
