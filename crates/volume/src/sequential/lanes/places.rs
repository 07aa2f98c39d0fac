//! Where the disk is that a lane's engine sees.

use oblivio_engine::Extent;
use oblivio_engine::sequential::{LaneDisk, LanePiece};
use oblivio_store::ReadAt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The places of a lane in its object.
pub(in crate::sequential) struct LanePlaces {
    pub object: &'static str,
    disk: Mutex<LaneDisk>,
}

impl LanePlaces {
    pub fn new(object: &'static str, disk: LaneDisk) -> Self {
        Self { object, disk: Mutex::new(disk) }
    }

    /// The disk, briefly: never over a read or a write.
    pub fn disk(&self) -> MutexGuard<'_, LaneDisk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be read of the object for a part that the engine wants. What is in memory is put
    /// into its place.
    pub fn reads<'b>(&self, extent: Extent, mut buf: &'b mut [u8]) -> Vec<ReadAt<'b>> {
        let mut reads = Vec::new();
        let pieces = self.disk().pieces(extent);
        for piece in pieces {
            let bytes = match &piece {
                LanePiece::Stored(place) => place.bytes as usize,
                LanePiece::Waiting(bytes) => bytes.len(),
                LanePiece::Nothing(bytes) => *bytes as usize,
            };
            let (part, rest) = buf.split_at_mut(bytes);
            buf = rest;
            match piece {
                LanePiece::Stored(place) => {
                    reads.push(ReadAt { object: self.object, offset: place.offset, buf: part });
                }
                LanePiece::Waiting(bytes) => part.copy_from_slice(&bytes),
                LanePiece::Nothing(_) => part.fill(0),
            }
        }
        reads
    }

    /// Where the parts are that the engine is likely to read.
    pub fn ranges(&self, extents: &[Extent]) -> Vec<(&'static str, u64, u64)> {
        let disk = self.disk();
        let pieces = extents.iter().flat_map(|extent| disk.pieces(*extent));
        let stored = pieces.filter_map(|piece| match piece {
            LanePiece::Stored(place) => Some((self.object, place.offset, place.bytes)),
            LanePiece::Waiting(_) | LanePiece::Nothing(_) => None,
        });
        stored.collect()
    }
}
