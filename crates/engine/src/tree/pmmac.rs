//! PMMAC (Freecursive §6): every block carries a MAC over its content, its address and its count.
//! It is here to be compared with the tag tree, which volumes have.

use crate::{Address, EngineError, Result};
use oblivio_crypto::{Mac, Tag};

/// The MAC of blocks, if the engine has one.
pub struct Pmmac {
    mac: Option<Mac>,
    /// Bytes hashed so far.
    pub bytes: u64,
}

impl Pmmac {
    /// With this key, or off.
    pub fn new(mac: Option<Mac>) -> Self {
        Self { mac, bytes: 0 }
    }

    /// Whether blocks carry MACs.
    pub fn is_on(&self) -> bool {
        self.mac.is_some()
    }

    /// The tag of a block at this count; zeros when off.
    pub fn tag(&mut self, id: Address, count: u64, content: &[u8]) -> Tag {
        let Some(mac) = &self.mac else { return Tag::default() };
        self.bytes += hashed(content);
        mac.block(count, id.0, content)
    }

    /// Checks that a block is the one written at this count.
    ///
    /// # Errors
    /// `TamperedBlock` if it is not.
    pub fn check(&mut self, id: Address, count: u64, content: &[u8], tag: Tag) -> Result<()> {
        let Some(mac) = &self.mac else { return Ok(()) };
        self.bytes += hashed(content);
        let checked = mac.verify_block(count, id.0, content, &tag);
        checked.map_err(|_| EngineError::TamperedBlock(id))
    }

    /// Checks that a block may be missing.
    ///
    /// # Errors
    /// `TamperedBlock` if it must exist.
    pub fn check_missing(&self, id: Address, may_be: impl FnOnce() -> bool) -> Result<()> {
        if self.is_on() && !may_be() { Err(EngineError::TamperedBlock(id)) } else { Ok(()) }
    }
}

/// With its address and its count.
fn hashed(content: &[u8]) -> u64 {
    16 + content.len() as u64
}
