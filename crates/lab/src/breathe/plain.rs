//! The disk by itself: waits that occur here too are not the volume's.

use super::times::Took;
use anyhow::Result;
use oblivio_testkit::SplitMix64;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// About as many bytes as a write of a MiB stores, in pieces as long as buckets, at random places
/// of a plain file, as in a slab; and a sync.
pub struct Plain {
    file: File,
    rng: SplitMix64,
    pub took: Vec<Took>,
}

impl Plain {
    pub const PIECES: u64 = 192;
    pub const PIECE: usize = 64 << 10;
    /// Pieces that the file has room for.
    const PLACES: u64 = 64 * Self::PIECES;

    pub fn new(path: &Path) -> Result<Self> {
        Ok(Self { file: File::create_new(path)?, rng: SplitMix64::new(7), took: Vec::new() })
    }

    pub fn write(&mut self) -> Result<()> {
        let piece = vec![self.took.len() as u8; Self::PIECE];
        let ((), took) = Took::of(|| {
            for _ in 0..Self::PIECES {
                let at = self.rng.below(Self::PLACES) * Self::PIECE as u64;
                self.file.write_all_at(&piece, at)?;
            }
            self.file.sync_data()
        })?;
        self.took.push(took);
        Ok(())
    }
}
