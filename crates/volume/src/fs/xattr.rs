//! Extended attributes: an inode's further names and values.

use super::directory::show;
use super::inode::Inode;
use super::state::State;
use super::tables::{Meta, XATTRS, decode, encode};
use super::types::{Ino, XATTR_NAME_BYTES, XATTR_VALUE_BYTES, XattrMode};
use crate::{Error, Result};
use redb::ReadableTable;

impl Meta {
    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Option<Vec<u8>>> {
        let table = self.open(XATTRS)?;
        let record = table.get((ino, name))?;
        record.map(|record| decode(record.value())).transpose()
    }

    fn xattr_names(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        let table = self.open(XATTRS)?;
        // No name is empty, so the empty one sorts before all of them.
        let range = table.range::<(u64, &[u8])>((ino, &[][..])..(ino + 1, &[][..]))?;
        range.map(|entry| Ok(entry?.0.value().1.to_vec())).collect()
    }
}

impl State {
    pub(super) fn get_xattr(&self, ino: Ino, name: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.meta.inode(ino)?.xattrs {
            0 => Ok(None),
            _ => self.meta.xattr(ino, name),
        }
    }

    pub(super) fn list_xattrs(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        match self.meta.inode(ino)?.xattrs {
            0 => Ok(Vec::new()),
            _ => self.meta.xattr_names(ino),
        }
    }

    pub(super) fn set_xattr(
        &mut self,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
    ) -> Result<()> {
        check_xattr(name, value)?;
        let exists = self.get_xattr(ino, name)?.is_some();
        match mode {
            XattrMode::Create if exists => return Err(Error::Exists(show(name))),
            XattrMode::Replace if !exists => return Err(no_attribute(name)),
            _ => {}
        }
        // A long value takes pages of its own; the database rounds their number up to a power of
        // two.
        let bytes = (value.len() as u64).next_power_of_two() * 2;
        self.expect_long(value.len());
        self.make_room(bytes / self.block_bytes as u64)?;
        let mut inode = self.meta.inode(ino)?;
        let record = encode(&value)?;
        self.meta.open(XATTRS)?.insert((ino, name), record.as_slice())?;
        inode.xattrs += u32::from(!exists);
        inode.changed(self.now());
        self.meta.put_inode(ino, &inode)
    }

    pub(super) fn remove_xattr(&mut self, ino: Ino, name: &[u8]) -> Result<()> {
        if self.get_xattr(ino, name)?.is_none() {
            return Err(no_attribute(name));
        }
        self.make_way()?;
        let mut inode = self.meta.inode(ino)?;
        self.meta.open(XATTRS)?.remove((ino, name))?;
        inode.xattrs = inode.xattrs.saturating_sub(1);
        inode.changed(self.now());
        self.meta.put_inode(ino, &inode)
    }

    /// Removes the attributes of an inode that goes.
    pub(super) fn forget_xattrs(&mut self, ino: Ino, inode: &Inode) -> Result<()> {
        if inode.xattrs > 0 {
            let names = self.meta.xattr_names(ino)?;
            let mut table = self.meta.open(XATTRS)?;
            for name in names {
                table.remove((ino, name.as_slice()))?;
            }
        }
        Ok(())
    }
}

fn no_attribute(name: &[u8]) -> Error {
    Error::NotFound(format!("attribute {}", show(name)))
}

fn check_xattr(name: &[u8], value: &[u8]) -> Result<()> {
    if name.len() > XATTR_NAME_BYTES {
        return Err(Error::NameTooLong(show(name)));
    }
    if name.is_empty() || name.contains(&0) {
        return Err(Error::Invalid("an attribute's name has bytes and no NUL".into()));
    }
    match value.len() > XATTR_VALUE_BYTES {
        true => Err(Error::TooLarge(format!(
            "an attribute's value has at most {XATTR_VALUE_BYTES} bytes"
        ))),
        false => Ok(()),
    }
}
