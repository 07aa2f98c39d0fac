//! A disk over a client, for one computer at a time.
//!
//! The disk's blocks are blocks of the volume, and what is asked of them looks like all other asks.
//!
//! - `hold`: who serves the disk. `change`: what waits to be written. `regions`: what was ever
//!   written. `space`: blocks as a [`Disk`](oblivio_volume::disk::Disk) wants them.
//!
//! ```text
//! index 0: length 8 | the root of a disk (docs/format.md)
//! index 1: session 8 | process 16 | computer 16
//! index 2: a bit for each region that was ever written
//! index 2^32 + n: block n
//! ```

mod change;
mod hold;
mod regions;
mod space;

use crate::client::Client;
use hold::Hold;
use oblivio_engine::Action;
use oblivio_engine::pyramid::share::{Ask, Compare};
use oblivio_engine::pyramid::{Name, Operation};
use oblivio_volume::disk::Disk;
use oblivio_volume::{Error, Result};
use space::{Blocks, Space};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The owner of all its blocks.
const DISK: [u8; 16] = *b"oblivio disk\0\0\0\0";
/// The block that says that a volume holds a disk, and of which size.
pub const ROOT: oblivio_privatefs::Name = oblivio_privatefs::Name { owner: DISK, index: 0 };
const HOLDER: Name = Name { owner: DISK, index: 1 };
const REGIONS: Name = Name { owner: DISK, index: 2 };
/// Blocks of a volume beside those of its disk: three here, and one for each session.
const SPARE: u64 = 64;

fn root() -> Name {
    Name { owner: ROOT.owner, index: ROOT.index }
}

/// The block that says that a volume holds files.
fn root_of_files() -> Name {
    Name { owner: oblivio_privatefs::ROOT, index: 0 }
}

fn data(block: u64) -> Name {
    Name { owner: DISK, index: (1 << 32) + block }
}

fn read(name: Name) -> Ask {
    Ask::new(name, Operation { action: Action::Read, and_read: true })
}

fn change(name: Name, action: Action) -> Ask {
    Ask::new(name, Operation { action, and_read: false })
}

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
    let space = Space::new(client, Hold::by_nobody(), Vec::new(), Arc::default())?;
    let space = Arc::new(space);
    // It stores the root if the volume holds nothing yet.
    let made = Disk::format(Box::new(Blocks::new(Arc::clone(&space))), size);
    let closed = space.close();
    made?;
    closed
}

/// Who wants to hold a disk.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// This computer's name for itself. A process of it that held the disk is known to have ended.
    pub computer: [u8; 16],
    /// Take it from another computer that holds it. What that one did not flush is lost.
    pub take_over: bool,
}

/// Whether a volume holds a disk.
///
/// # Errors
/// Those of the line.
pub fn is_in(client: &Client) -> Result<bool> {
    let found = client.carry_out(&[read(root())])?;
    Ok(found.first().is_some_and(|answer| answer.content.is_some()))
}

/// The disk of a volume, held by this process.
pub struct SharedDisk {
    space: Arc<Space>,
}

impl SharedDisk {
    /// The disk of a volume. `progress` grows with each call that the server answers.
    ///
    /// # Errors
    /// `HoldsFiles`; `Unsupported` if it holds nothing; `Busy` if another computer holds the disk;
    /// those of the line.
    pub fn open(client: Client, claim: Claim, progress: Arc<AtomicU64>) -> Result<Self> {
        let held = stored_root(&client).and_then(|root| Ok((root, Hold::take(&client, claim)?)));
        let (root, hold) = match held {
            Ok(held) => held,
            Err(error) => {
                // The error says more than a failure to part.
                let _ = client.close();
                return Err(error);
            }
        };
        let space = Arc::new(Space::new(client, hold, root, progress)?);
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

/// The root of a volume that holds a disk.
fn stored_root(client: &Client) -> Result<Vec<u8>> {
    let asks = [root(), root_of_files()].map(|name| vec![read(name)]);
    let mut found = client.carry_out_many(&asks)?.into_iter().flatten();
    let mut content = || found.next().and_then(|answer| answer.content);
    match (content(), content()) {
        (Some(root), _) => unframed(&root).ok_or_else(|| Error::Tampered("the disk's root".into())),
        (None, Some(_)) => Err(Error::HoldsFiles),
        (None, None) => Err(Error::Unsupported("the volume holds no disk".into())),
    }
}

/// A root with its length before it.
fn framed(root: &[u8]) -> Vec<u8> {
    [&(root.len() as u64).to_le_bytes()[..], root].concat()
}

fn unframed(block: &[u8]) -> Option<Vec<u8>> {
    let len = usize::try_from(u64::from_le_bytes(*block.first_chunk()?)).ok()?;
    block.get(8..)?.get(..len).map(<[u8]>::to_vec)
}

/// Stores a root in a volume that holds nothing.
fn claim(client: &Client, root_bytes: &[u8]) -> Result<()> {
    let asks = [
        Ask::new(root(), Operation { action: Action::Write(framed(root_bytes)), and_read: true })
            .only_if(Compare::Absent),
        read(root_of_files()).only_if(Compare::Absent),
    ];
    let answers = client.carry_out(&asks)?;
    match &answers[..] {
        [root, files] if root.done && files.done => Ok(()),
        [_, files] if files.content.is_some() => Err(Error::HoldsFiles),
        _ => Err(Error::Exists("a disk".into())),
    }
}
