//! The stored record of a file, directory, link or special file.
//!
//! Version 2 of the record added access time, device number and the count of extended attributes. A
//! record of version 1 still opens, and becomes version 2 at its next change.

use super::tables::{INODES, Meta, decode_body, encode_as, split_version, unknown_version};
use super::types::{FileKind, Ino, MODE_BITS, NewNode, Timestamp};
use crate::{Error, Result};
use redb::ReadableTable;
use serde::{Deserialize, Serialize};

const INODE_VERSION: u8 = 2;

/// The record of the current version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Inode {
    pub kind: FileKind,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub nlink: u32,
    pub size: u64,
    /// Whole blocks of its own.
    pub blocks: u64,
    /// The shared block that holds the tail.
    pub pack: Option<u64>,
    /// A directory's parent (the root is its own).
    pub parent: Ino,
    /// A symbolic link's target.
    pub target: Vec<u8>,
    pub mtime: Timestamp,
    pub ctime: Timestamp,
    pub crtime: Timestamp,
    pub atime: Timestamp,
    /// A device's number.
    pub rdev: u32,
    /// Number of extended attributes; zero, the usual case, saves a look-up.
    pub xattrs: u32,
}

/// The record of the first volumes.
#[derive(Serialize, Deserialize)]
struct InodeV1 {
    kind: FileKind,
    mode: u32,
    uid: u32,
    gid: u32,
    nlink: u32,
    size: u64,
    blocks: u64,
    pack: Option<u64>,
    parent: Ino,
    target: Vec<u8>,
    mtime: Timestamp,
    ctime: Timestamp,
    crtime: Timestamp,
}

impl From<InodeV1> for Inode {
    fn from(old: InodeV1) -> Self {
        Inode {
            kind: old.kind,
            mode: old.mode,
            uid: old.uid,
            gid: old.gid,
            nlink: old.nlink,
            size: old.size,
            blocks: old.blocks,
            pack: old.pack,
            parent: old.parent,
            target: old.target,
            mtime: old.mtime,
            ctime: old.ctime,
            crtime: old.crtime,
            atime: old.mtime,
            rdev: 0,
            xattrs: 0,
        }
    }
}

impl Inode {
    /// An inode without data. A directory starts with two links, all else with one.
    pub(super) fn new(kind: FileKind, node: NewNode, now: Timestamp) -> Self {
        Inode {
            kind,
            mode: node.mode & MODE_BITS,
            uid: node.uid,
            gid: node.gid,
            nlink: if kind == FileKind::Directory { 2 } else { 1 },
            size: 0,
            blocks: 0,
            pack: None,
            parent: 0,
            target: Vec::new(),
            mtime: node.mtime,
            ctime: now,
            crtime: now,
            atime: node.mtime,
            rdev: 0,
            xattrs: 0,
        }
    }

    /// Notes changed data.
    pub(super) fn modified(&mut self, now: Option<Timestamp>) {
        if let Some(now) = now {
            (self.mtime, self.ctime) = (now, now);
        }
    }

    /// Notes changed attributes.
    pub(super) fn changed(&mut self, now: Option<Timestamp>) {
        self.ctime = now.unwrap_or(self.ctime);
    }
}

/// Decodes a stored inode of any known version.
pub(super) fn decode_inode(bytes: &[u8]) -> Result<Inode> {
    match split_version(bytes)? {
        (INODE_VERSION, record) => decode_body(record),
        (1, record) => decode_body::<InodeV1>(record).map(Inode::from),
        (version, _) => Err(unknown_version(version, INODE_VERSION)),
    }
}

/// The same, if it takes all of these bytes; `None` for anything else.
pub(super) fn decode_inode_whole(bytes: &[u8]) -> Option<Inode> {
    let (inode, rest) = match split_version(bytes).ok()? {
        (INODE_VERSION, record) => postcard::take_from_bytes::<Inode>(record).ok()?,
        (1, record) => {
            let (old, rest) = postcard::take_from_bytes::<InodeV1>(record).ok()?;
            (Inode::from(old), rest)
        }
        _ => return None,
    };
    rest.is_empty().then_some(inode)
}

impl Meta {
    pub(super) fn find_inode(&self, ino: Ino) -> Result<Option<Inode>> {
        let table = self.open(INODES)?;
        let record = table.get(ino)?;
        record.map(|record| decode_inode(record.value())).transpose()
    }

    pub(super) fn inode(&self, ino: Ino) -> Result<Inode> {
        self.find_inode(ino)?.ok_or_else(|| Error::NotFound(format!("inode {ino}")))
    }

    pub(super) fn put_inode(&self, ino: Ino, inode: &Inode) -> Result<()> {
        let record = encode_as(INODE_VERSION, inode)?;
        self.open(INODES)?.insert(ino, record.as_slice())?;
        Ok(())
    }

    pub(super) fn remove_inode(&self, ino: Ino) -> Result<()> {
        self.open(INODES)?.remove(ino)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_records_open_and_unknown_ones_do_not() {
        let at = |seconds| Timestamp { seconds, nanos: 1 };
        let old = InodeV1 {
            kind: FileKind::File,
            mode: 0o644,
            uid: 1,
            gid: 2,
            nlink: 3,
            size: 4,
            blocks: 5,
            pack: Some(6),
            parent: 0,
            target: vec![],
            mtime: at(7),
            ctime: at(8),
            crtime: at(9),
        };
        let inode = decode_inode(&encode_as(1, &old).unwrap()).unwrap();
        assert_eq!((inode.atime, inode.rdev, inode.xattrs), (at(7), 0, 0));
        assert_eq!((inode.size, inode.pack, inode.crtime), (4, Some(6), at(9)));
        let mut bytes = encode_as(INODE_VERSION, &inode).unwrap();
        assert_eq!(decode_inode(&bytes).unwrap(), inode);
        bytes[0] = 3;
        assert!(matches!(decode_inode(&bytes), Err(Error::Unsupported(_))));
        assert!(matches!(decode_inode(&[]), Err(Error::Tampered(_))));
    }
}
