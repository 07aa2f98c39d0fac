//! Which block holds what.
//!
//! An inode's random number is the owner of all its blocks, so one Forget removes them. The data
//! comes last, so one Forget also cuts a file.

use crate::error::{Error, Result};
use crate::transactions::{Name, Owner};

/// The root directory.
pub const ROOT: Owner = *b"privatefs/root\0\0";
/// The owner of the lists of files without names that are still open.
pub const ORPHANS: Owner = *b"privatefs/orphan";
/// The owner of the counter of moved directories.
pub const MOVES: Owner = *b"privatefs/moves\0";

/// Lists of orphans. A file's first byte picks its list.
pub const ORPHAN_LISTS: u64 = 16;
/// The first block of extended attributes that do not fit the inode.
const XATTRS: u64 = 1;
/// The most of them: a change of all of them and the inode is one transaction.
pub const XATTR_BLOCKS: usize = 6;
const LOCKS: u64 = 32;
/// The first block of data, or of a directory's buckets.
pub const DATA: u64 = 1 << 32;
/// Distance of a bucket's further blocks.
const CHAIN: u64 = 1 << 40;

/// The smallest block that the layout fits.
pub const LEAST_BLOCK: usize = 1024;

pub fn inode(id: Owner) -> Name {
    Name { owner: id, index: 0 }
}

pub fn data(id: Owner, page: u64) -> Name {
    Name { owner: id, index: DATA + page }
}

/// The block of a bucket; its `link`-th further one if not 0.
pub fn bucket(id: Owner, bucket: u32, link: u8) -> Name {
    Name { owner: id, index: DATA + u64::from(link) * CHAIN + u64::from(bucket) }
}

pub fn xattrs(id: Owner, part: usize) -> Name {
    Name { owner: id, index: XATTRS + part as u64 }
}

pub fn locks(id: Owner) -> Name {
    Name { owner: id, index: LOCKS }
}

pub fn orphans(id: Owner) -> Name {
    orphan_list(u64::from(id[0]) % ORPHAN_LISTS)
}

pub fn orphan_list(list: u64) -> Name {
    Name { owner: ORPHANS, index: list }
}

pub fn moves() -> Name {
    Name { owner: MOVES, index: 0 }
}

/// A cursor over a block. Each read fails at the end, so no length in a block is trusted.
pub struct BlockCursor<'a>(pub &'a [u8]);

impl<'a> BlockCursor<'a> {
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Error::Damaged("it ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.bytes(N)?.try_into().map_err(|_| Error::Damaged("it ends early"))
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}
