//! The names of a disk's blocks, and the root that says that a volume holds one.
//!
//! ```text
//! index 0: length 8 | the root of a disk (docs/format.md)
//! index 1: session 8 | process 16 | computer 16
//! index 2: a bit for each region that was ever written
//! index 2^32 + n: block n
//! ```

use crate::client::Client;
use oblivio_privatefs::{Action, Ask, Compare, Name};
use oblivio_volume::{Error, Result};

/// The owner of all its blocks.
const DISK: [u8; 16] = *b"oblivio disk\0\0\0\0";
/// The block that says that a volume holds a disk, and of which size.
pub const ROOT: Name = Name { owner: DISK, index: 0 };
/// Who has the disk.
pub const HOLDER: Name = Name { owner: DISK, index: 1 };
/// Which regions were ever written.
pub const REGIONS: Name = Name { owner: DISK, index: 2 };

/// The block that says that a volume holds files.
fn root_of_files() -> Name {
    Name { owner: oblivio_privatefs::ROOT, index: 0 }
}

pub fn data(block: u64) -> Name {
    Name { owner: DISK, index: (1 << 32) + block }
}

/// A block's name in messages.
pub fn said(name: Name) -> String {
    match name.index.checked_sub(1 << 32) {
        Some(block) => format!("block {block} of the disk"),
        None => "what the volume knows of its disk".into(),
    }
}

/// A change, whatever the block holds.
pub fn change(name: Name, action: Action) -> Ask {
    Ask::change(name, action, Compare::Always)
}

/// Whether a volume holds a disk.
///
/// # Errors
/// Those of the line.
pub fn is_in(client: &Client) -> Result<bool> {
    let found = client.carry_out(&[Ask::read(ROOT)])?;
    Ok(found.first().is_some_and(|answer| answer.content.is_some()))
}

/// The root of a volume that holds a disk.
pub fn stored_root(client: &Client) -> Result<Vec<u8>> {
    let asks = [ROOT, root_of_files()].map(|name| vec![Ask::read(name)]);
    let mut found = client.carry_out_many(&asks)?.into_iter().flatten();
    let mut content = || found.next().and_then(|answer| answer.content);
    match (content(), content()) {
        (Some(root), _) => unframed(&root).ok_or_else(|| Error::Tampered("the disk's root".into())),
        (None, Some(_)) => Err(Error::HoldsFiles),
        (None, None) => Err(Error::Unsupported(
            "the volume holds neither a disk nor files: its `oblivio init` did not end. A mount \
             makes it one for files"
                .into(),
        )),
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
pub fn claim(client: &Client, root_bytes: &[u8]) -> Result<()> {
    let asks = [
        Ask::change(ROOT, Action::Write(framed(root_bytes)), Compare::Absent).and_read(),
        Ask::read(root_of_files()).only_if(Compare::Absent),
    ];
    let answers = client.carry_out(&asks)?;
    match &answers[..] {
        [root, files] if root.done && files.done => Ok(()),
        [_, files] if files.content.is_some() => Err(Error::HoldsFiles),
        _ => Err(Error::Exists("a disk".into())),
    }
}
