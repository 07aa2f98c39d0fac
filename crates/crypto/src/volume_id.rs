//! The public name of a volume.

use crate::Entropy;
use std::fmt;

/// Bytes of a volume id.
pub const VOLUME_ID_BYTES: usize = 16;

/// The public name of a volume. Part of every derivation and of every sealed object's place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(pub [u8; VOLUME_ID_BYTES]);

impl VolumeId {
    /// A fresh random id.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        let mut id = [0; VOLUME_ID_BYTES];
        entropy.fill(&mut id);
        Self(id)
    }
}

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VolumeId({self})")
    }
}
