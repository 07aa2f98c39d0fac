//! A disk over a client, for one computer at a time.
//!
//! The disk's blocks are blocks of the volume, and what is asked of them looks like all other asks.
//!
//! - `names`: its blocks in the volume. `hold`: who serves the disk. `change`: what waits to be
//!   written. `regions`: what was ever written. `space`: blocks as a [`Disk`] wants them.

mod change;
mod hold;
mod names;
mod regions;
mod space;

pub use hold::Claim;
pub use names::{ROOT, is_in};

use crate::client::Client;
use hold::DiskHold;
use names::stored_root;
use oblivio_volume::Result;
use oblivio_volume::disk::Disk;
use space::{Blocks, DiskSpace};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Blocks of a volume beside those of its disk: three here, and one for each session.
const SPARE: u64 = 64;

/// The capacity of a volume for a disk of this size, in bytes.
#[must_use]
pub fn capacity_for(size: u64, block_bytes: usize) -> u64 {
    size.saturating_add(SPARE * block_bytes as u64)
}

/// Makes a disk in a volume that holds nothing.
///
/// # Errors
/// `Invalid` for an impossible size; `HoldsFiles`; `Exists` if there is a disk; those of the line.
pub fn make(client: Client, size: u64) -> Result<()> {
    let space = DiskSpace::new(client, DiskHold::by_nobody(), Vec::new(), Arc::default())?;
    let space = Arc::new(space);
    // It stores the root if the volume holds nothing yet.
    let made = Disk::format(Box::new(Blocks::new(Arc::clone(&space))), size);
    let closed = space.close();
    made?;
    closed
}

/// The disk of a volume, held by this process.
pub struct SharedDisk {
    space: Arc<DiskSpace>,
}

impl SharedDisk {
    /// The disk of a volume. `progress` grows with each call that the server answers.
    ///
    /// # Errors
    /// `HoldsFiles`; `Unsupported` if it holds nothing; `Busy` if another computer holds the disk;
    /// those of the line.
    pub fn open(client: Client, claim: Claim, progress: Arc<AtomicU64>) -> Result<Self> {
        let held =
            stored_root(&client).and_then(|root| Ok((root, DiskHold::take(&client, claim)?)));
        let (root, hold) = match held {
            Ok(held) => held,
            Err(error) => {
                // The error says more than a failure to part.
                let _ = client.close();
                return Err(error);
            }
        };
        let space = Arc::new(DiskSpace::new(client, hold, root, progress)?);
        space.learn_regions()?;
        Ok(Self { space })
    }

    /// The disk.
    ///
    /// # Errors
    /// `Tampered` or `Unsupported` if its root makes no sense.
    pub fn disk(&self) -> Result<Disk> {
        Disk::open(Box::new(Blocks::new(Arc::clone(&self.space))))
    }

    /// Gives the disk back and ends the client, as [`Client::close`].
    ///
    /// # Errors
    /// As [`Client::close`].
    pub fn close(&self) -> Result<()> {
        self.space.close()
    }
}
