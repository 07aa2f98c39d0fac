//! What is asked of a new volume, whatever its engine, and what it costs.

use crate::options::CreateOptions;
use crate::sequential::LaneParameters;
use oblivio_crypto::KdfParams;

/// What a new volume is to be like. Each engine reads of it what means something there.
#[derive(Clone, Copy, Debug)]
pub struct NewOptions {
    /// Bytes of user data in a block.
    pub block_bytes: usize,
    /// The most bytes that it may ever hold.
    pub capacity_bytes: u64,
    /// The cost of guessing the passphrase.
    pub kdf: KdfParams,
    /// Random bytes are written over all of it first, if it takes all of its space at once.
    pub fill: bool,
    /// Its map is on the disk instead of in memory, if it has a choice.
    pub map_on_disk: bool,
    /// Whether its disk has seeks, if that makes a difference.
    pub seeks: bool,
    /// The lanes beside it, if it has any.
    pub lanes: Option<LaneParameters>,
    /// Bytes of an object, about, where it consists of objects; `None` for the engine's default.
    pub object_bytes: Option<usize>,
    /// Whether its store creates objects exclusively.
    pub exclusive: bool,
}

impl From<&NewOptions> for CreateOptions {
    fn from(new: &NewOptions) -> Self {
        let NewOptions { block_bytes, capacity_bytes, kdf, .. } = *new;
        Self { block_bytes, capacity_bytes, kdf }
    }
}

/// The objects of a volume and their lengths.
pub type FixedObjects = Vec<(&'static str, u64)>;

/// What a new volume costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cost {
    /// It grows with its content, and an access moves a path of this many bytes, once `stored`
    /// bytes are in it.
    Growing {
        /// Bytes in the volume.
        stored: u64,
        /// Bytes of a path.
        path: u64,
    },
    /// It takes these bytes at once, and each byte is written this many times.
    Fixed {
        /// Bytes in the store.
        stored: u64,
        /// Bytes written for each.
        written_per_byte: f64,
    },
}
