//! What seals and opens the objects of sessions.

use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, Sealer, Tag, VolumeId};

/// The keys of a volume's sessions.
#[derive(Debug)]
pub struct Vault {
    volume: VolumeId,
    sealer: Sealer,
}

impl Vault {
    /// The sealer is of the volume's entry root.
    pub fn new(volume: VolumeId, sealer: Sealer) -> Self {
        Self { volume, sealer }
    }

    fn place(&self, kind: Kind, index: u64, number: u64) -> Place {
        Place { volume: self.volume, kind, index, version: number }
    }

    /// Seals a plaintext between the free bytes of a seal, as an object of a session with this
    /// number. Nothing is sealed twice: a repeated store sends the same bytes.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn seal(&mut self, kind: Kind, index: u64, number: u64, buf: &mut [u8]) -> Result<Tag> {
        let place = self.place(kind, index, number);
        self.sealer.seal(&place, buf).map_err(|error| Error::Closed(error.to_string()))
    }

    /// Opens an object in place; `None` if it is not what was stored there.
    pub fn open<'a>(
        &mut self,
        kind: Kind,
        index: u64,
        number: u64,
        buf: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let place = self.place(kind, index, number);
        self.sealer.open(&place, buf).ok().map(|plain| &*plain)
    }
}
