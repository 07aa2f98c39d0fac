//! An inode as it stands in its block.
//!
//! ```text
//! holders 16 x 16 | holders' stamp 8 | stamp 16 | mtime 12 | ctime 12 | guard 16 | nlink 4 |
//! magic 2 | kind 1 | form 1 | mode 4 | uid 4 | gid 4 | rdev 4 | size 8 | atime 12 | crtime 12 |
//! parent 16 | buckets 4 | attributes' stamp 16 | attributes' bytes 4 | inline bytes 4 |
//! attributes | inline data
//! ```
//!
//! The order lets each change be one patch, and each comparison one stretch. Opening a file changes
//! the holders only; all else begins at the stamp. A new name in a directory patches up to `ctime`
//! and compares the guard alone, so that two of them do not meet. The guard changes when the blocks
//! of the inode mean something else: a split, a cut, the step from inline data to blocks.

use crate::error::{Error, Result};
use crate::layout::BlockCursor;
use crate::node::{self, NodeAttr};
use crate::transactions::{Action, Ask, Compare, Owner, Session};
use crate::types::{Attr, FileKind, Timestamp};
use crate::{layout, types};

pub const HOLDERS: usize = 16;
pub const HOLDERS_STAMP: usize = HOLDERS * 16;
pub const STAMP: usize = HOLDERS_STAMP + 8;
pub const GUARD: usize = STAMP + 16 + 12 + 12;
const FIXED: usize = 420;
const MAGIC: u16 = 0x7066;
/// The most names of a file.
const MOST_LINKS: u32 = 65_000;
/// Attributes beyond this go to blocks of their own.
const INLINE_XATTRS: usize = 1024;

/// Where the data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataForm {
    Inline,
    Blocks,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    pub id: Owner,
    pub holders: Vec<Session>,
    pub holders_stamp: [u8; 8],
    pub stamp: [u8; 16],
    pub mtime: Timestamp,
    pub ctime: Timestamp,
    pub guard: [u8; 16],
    pub nlink: u32,
    pub kind: FileKind,
    pub form: DataForm,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    pub size: u64,
    pub atime: Timestamp,
    pub crtime: Timestamp,
    /// Of a directory: where it is.
    pub parent: Owner,
    /// Of a directory.
    pub buckets: u32,
    /// Not zero: the attributes are in blocks with this stamp.
    pub xattrs_stamp: [u8; 16],
    /// The attributes' bytes in those blocks, or the attributes.
    pub xattrs_bytes: u32,
    pub xattrs: Vec<u8>,
    pub inline: Vec<u8>,
}

impl Inode {
    pub fn decode(id: Owner, block: &[u8]) -> Result<Self> {
        let mut at = BlockCursor(block);
        let mut holders = Vec::new();
        for _ in 0..HOLDERS {
            holders.push(Session::from_bytes(at.array()?));
        }
        holders.retain(|holder| *holder != Session(0));
        let holders_stamp = at.array()?;
        let stamp = at.array()?;
        let (mtime, ctime) = (time(&mut at)?, time(&mut at)?);
        let (guard, nlink) = (at.array()?, at.u32()?);
        if at.u16()? != MAGIC {
            return Err(Error::Damaged("it is no inode"));
        }
        let kind = FileKind::from_stored(at.u8()?).ok_or(Error::Damaged("an unknown kind"))?;
        let form = match at.u8()? {
            0 => DataForm::Inline,
            1 => DataForm::Blocks,
            _ => return Err(Error::Damaged("an unknown form")),
        };
        let (mode, uid, gid, rdev) = (at.u32()?, at.u32()?, at.u32()?, at.u32()?);
        let size = at.u64()?;
        let (atime, crtime) = (time(&mut at)?, time(&mut at)?);
        let (parent, buckets, xattrs_stamp) = (at.array()?, at.u32()?, at.array()?);
        let (xattrs_bytes, inline) = (at.u32()?, at.u32()?);
        let here = if xattrs_stamp == [0; 16] { xattrs_bytes } else { 0 };
        let xattrs = at.bytes(here as usize)?.to_vec();
        let inline = at.bytes(inline as usize)?.to_vec();
        let whole =
            form == DataForm::Blocks || kind != FileKind::File || inline.len() as u64 == size;
        if !whole || size > types::MAX_FILE || (kind == FileKind::Directory && buckets == 0) {
            return Err(Error::Damaged("an inode that contradicts itself"));
        }
        Ok(Self {
            id,
            holders,
            holders_stamp,
            stamp,
            mtime,
            ctime,
            guard,
            nlink,
            kind,
            form,
            mode,
            uid,
            gid,
            rdev,
            size,
            atime,
            crtime,
            parent,
            buckets,
            xattrs_stamp,
            xattrs_bytes,
            xattrs,
            inline,
        })
    }

    /// As a whole block.
    pub fn encode(&self, block_bytes: usize) -> Vec<u8> {
        let mut block = self.encode_holders();
        block.extend(self.encode_touched());
        block.extend(self.guard);
        block.extend(self.nlink.to_le_bytes());
        block.extend(MAGIC.to_le_bytes());
        block.extend([self.kind as u8, u8::from(self.form == DataForm::Blocks)]);
        for word in [self.mode, self.uid, self.gid, self.rdev] {
            block.extend(word.to_le_bytes());
        }
        block.extend(self.size.to_le_bytes());
        push_time(&mut block, self.atime);
        push_time(&mut block, self.crtime);
        block.extend(self.parent);
        block.extend(self.buckets.to_le_bytes());
        block.extend(self.xattrs_stamp);
        block.extend(self.xattrs_bytes.to_le_bytes());
        block.extend((self.inline.len() as u32).to_le_bytes());
        debug_assert_eq!(block.len(), FIXED);
        block.extend(&self.xattrs);
        block.extend(&self.inline);
        block.resize(block_bytes, 0);
        block
    }

    fn encode_holders(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.holders.iter().flat_map(|it| it.to_bytes()).collect();
        bytes.resize(HOLDERS_STAMP, 0);
        bytes.extend(self.holders_stamp);
        bytes
    }

    fn encode_touched(&self) -> Vec<u8> {
        let mut bytes = self.stamp.to_vec();
        push_time(&mut bytes, self.mtime);
        push_time(&mut bytes, self.ctime);
        bytes
    }

    /// Bytes of inline data and attributes together.
    pub fn inline_room(block_bytes: usize) -> usize {
        block_bytes.saturating_sub(FIXED)
    }

    /// Whether so much data fits beside the attributes.
    pub fn fits_inline(&self, len: u64, block_bytes: usize) -> bool {
        len <= (Self::inline_room(block_bytes) - self.xattrs.len()) as u64
    }

    /// Whether such attributes fit beside the data.
    pub fn fits_xattrs(&self, len: usize, block_bytes: usize) -> bool {
        len <= INLINE_XATTRS && len + self.inline.len() <= Self::inline_room(block_bytes)
    }

    /// Writes everything but the holders, if nothing but the holders changed. `old` is the stamp
    /// that was read.
    pub fn replace(&self, old: [u8; 16], block_bytes: usize) -> Ask {
        let bytes = self.encode(block_bytes).split_off(STAMP);
        let action = Action::Patch { offset: STAMP, bytes };
        let compare = Compare::Bytes(STAMP, old.to_vec());
        Ask::change(layout::inode(self.id), action, compare).and_read()
    }

    /// Writes the holders, if no others came or went.
    pub fn replace_holders(&self, old: [u8; 8]) -> Ask {
        let action = Action::Patch { offset: 0, bytes: self.encode_holders() };
        let compare = Compare::Bytes(HOLDERS_STAMP, old.to_vec());
        Ask::change(layout::inode(self.id), action, compare).and_read()
    }

    /// As [`Self::replace_holders`], if nothing else changed either: who goes last must know it.
    pub fn release(&self, old: [u8; 8]) -> Ask {
        self.replace_holders(old).only_if(unchanged(old, self.stamp))
    }

    /// As [`Self::replace`], if no holders came or went either: of who takes the last name and who
    /// goes last, one must know of the other.
    pub fn orphan(&self, old: [u8; 16], block_bytes: usize) -> Ask {
        let compare = unchanged(self.holders_stamp, old);
        self.replace(old, block_bytes).only_if(compare)
    }

    /// Writes a directory's times, whatever other names come and go in it.
    pub fn touch_directory(&self) -> Ask {
        let action = Action::Patch { offset: STAMP, bytes: self.encode_touched() };
        let compare = Compare::Bytes(GUARD, self.guard.to_vec());
        Ask::change(layout::inode(self.id), action, compare).and_read()
    }

    /// Writes a directory's times and links. `old` are the links that were read.
    pub fn relink_directory(&self, old: u32) -> Ask {
        let mut bytes = self.encode_touched();
        bytes.extend(self.guard);
        bytes.extend(self.nlink.to_le_bytes());
        let action = Action::Patch { offset: STAMP, bytes };
        let mut compared = self.guard.to_vec();
        compared.extend(old.to_le_bytes());
        let compare = Compare::Bytes(GUARD, compared);
        Ask::change(layout::inode(self.id), action, compare).and_read()
    }

    /// Removes the inode and all its blocks, if nobody opened or changed it.
    pub fn forget(&self) -> Ask {
        let compare = unchanged(self.holders_stamp, self.stamp);
        Ask::forget(layout::inode(self.id)).only_if(compare)
    }

    /// Something but data changed.
    pub fn changed(&mut self, stamp: [u8; 16], now: Timestamp) {
        self.stamp = stamp;
        self.ctime = now;
    }

    /// Data or names changed.
    pub fn modified(&mut self, stamp: [u8; 16], now: Timestamp) {
        self.changed(stamp, now);
        self.mtime = now;
    }

    /// One name more.
    pub fn link(&mut self) -> Result<()> {
        if self.nlink >= MOST_LINKS {
            return Err(Error::TooManyLinks);
        }
        self.nlink += 1;
        Ok(())
    }

    pub fn attr(&self) -> NodeAttr {
        let attr = Attr {
            ino: node::number(self.id),
            kind: self.kind,
            size: self.size,
            blocks: node::blocks(self.size),
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            nlink: self.nlink,
            rdev: self.rdev,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            crtime: self.crtime,
        };
        NodeAttr { id: self.id, change: self.stamp, attr }
    }
}

fn unchanged(holders_stamp: [u8; 8], stamp: [u8; 16]) -> Compare {
    Compare::Bytes(HOLDERS_STAMP, [&holders_stamp[..], &stamp].concat())
}

fn time(at: &mut BlockCursor) -> Result<Timestamp> {
    let (seconds, nanos) = (i64::from_le_bytes(at.array()?), at.u32()?);
    match nanos {
        0..1_000_000_000 => Ok(Timestamp { seconds, nanos }),
        _ => Err(Error::Damaged("a time that is none")),
    }
}

fn push_time(to: &mut Vec<u8>, at: Timestamp) {
    to.extend(at.seconds.to_le_bytes());
    to.extend(at.nanos.to_le_bytes());
}
