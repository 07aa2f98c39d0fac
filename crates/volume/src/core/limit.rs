//! The declared limit of a volume, and its changes.
//!
//! Only the header holds it, and nothing stored depends on it. So replacing the header as a whole
//! changes it, and a restored old header has the old limit. At worst, nothing more fits into the
//! volume until the limit is raised again.

use crate::Result;
use crate::header::{Header, HeaderCopies, Parameters};
use oblivio_crypto::{Mac, MasterKey};
use oblivio_store::{Objects, PutMode};

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

    /// What the header says of the engine, the limit among it.
    pub(crate) fn parameters(&self) -> Parameters {
        self.header.parameters()
    }

    /// Replaces the stored header by one with other parameters.
    ///
    /// # Errors
    /// Those of the store. Then the old one or the new one is stored.
    pub(crate) fn replace(&mut self, store: &dyn Objects, parameters: &Parameters) -> Result<()> {
        // Another process may have changed the passphrases since this one opened the header: what
        // it removed must not come back.
        let (copies, ()) = HeaderCopies::read(store, |_| Ok(()))?;
        let newest = copies.newest(&self.mac).filter(|it| it.is_not_before(&self.header));
        let header = newest.unwrap_or(&self.header).with_parameters(parameters, &self.mac);
        header.save(store, PutMode::Replace)?;
        self.header = header;
        Ok(())
    }
}
