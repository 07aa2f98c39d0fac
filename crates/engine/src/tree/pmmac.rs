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
        self.bytes += 16 + content.len() as u64;
        mac.block(count, id.0, content)
    }

    /// Checks that a block is the one written at this count.
    ///
    /// # Errors
    /// `TamperedBlock` if it is not.
    pub fn check(&mut self, id: Address, count: u64, content: &[u8], tag: Tag) -> Result<()> {
        // Off, a slot has no room for a tag: both are zeros.
        if self.tag(id, count, content) == tag {
            Ok(())
        } else {
            Err(EngineError::TamperedBlock(id))
        }
    }

    /// Checks that a block may be missing.
    ///
    /// # Errors
    /// `TamperedBlock` if it must exist.
    pub fn check_missing(&self, id: Address, may_be: impl FnOnce() -> bool) -> Result<()> {
        if self.is_on() && !may_be() { Err(EngineError::TamperedBlock(id)) } else { Ok(()) }
    }
}
