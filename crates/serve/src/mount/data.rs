//! Requests about the data of files.

use super::lane_status::{STATUS_NAME, told};
use super::server::MountServer;
use crate::fuse::{Allocation, Caller, Fail, FileAnswer, Served, xattr};
use fuser::Errno;
use oblivio_volume::Error;
use oblivio_volume::fs::{Ino, ROOT_INO, SeekWhence, SetAttr};

const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

impl MountServer {
    /// The time at which the kernel writes back its cache means nothing: the kernel sends the times
    /// of the file itself, before or after.
    pub(super) fn write(
        &mut self,
        (ino, fh): (Ino, u64),
        offset: u64,
        data: &[u8],
        cached: bool,
        kill: Option<Caller>,
    ) -> Served {
        let handle = self.handle(fh)?;
        if let Some(caller) = kill {
            self.drop_set_ids(ino, caller)?;
        }
        let before = if cached { Some(self.fs.attr(ino)?) } else { None };
        self.fs.write(handle, offset, data)?;
        if let Some(before) = before {
            let (mtime, ctime) = (Some(before.mtime), Some(before.ctime));
            self.fs.set_attr(ino, SetAttr { mtime, ctime, ..SetAttr::default() })?;
        }
        Ok(FileAnswer::Written(u32::try_from(data.len()).unwrap_or(u32::MAX)))
    }

    /// In every mode the kernel leaves the set-ID bits to us.
    pub(super) fn allocate(
        &mut self,
        (ino, fh): (Ino, u64),
        (offset, len): (u64, u64),
        (how, keep_size): (Allocation, bool),
        caller: Caller,
    ) -> Served {
        let handle = self.handle(fh)?;
        if !caller.keeps_set_ids() {
            self.drop_set_ids(ino, caller)?;
        }
        match how {
            Allocation::Punch => self.fs.punch(handle, offset, len)?,
            Allocation::Zero => self.fs.zero_range(handle, offset, len, keep_size)?,
            Allocation::Reserve => self.fs.allocate(handle, offset, len, keep_size)?,
        }
        Ok(FileAnswer::Done)
    }

    pub(super) fn seek(&self, fh: u64, offset: i64, whence: i32) -> Served {
        let whence = match whence {
            SEEK_DATA => SeekWhence::Data,
            SEEK_HOLE => SeekWhence::Hole,
            _ => return Err(Errno::EINVAL.into()),
        };
        let offset = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
        let found = self.fs.seek(self.handle(fh)?, offset, whence)?;
        found.map(FileAnswer::Offset).ok_or(Fail::Errno(Errno::ENXIO))
    }
}

/// The attribute by which `oblivio umount` learns how many files lost data.
pub const LOST_NAME: &[u8] = b"oblivio.lost";
/// Suffix of that value when the loss was for want of room.
pub const NO_ROOM: &str = " full";

impl MountServer {
    pub(super) fn get_xattr(&mut self, ino: Ino, name: &[u8], size: u32) -> Served {
        if let Some(server) = xattr::server(ino, name) {
            return Ok(xattr::sized(server, size)?);
        }
        let value = match name {
            STATUS_NAME if ino == ROOT_INO && self.carried.is_some() => {
                self.upkeep.commit(&mut self.fs)?;
                let status = self.carried.as_ref().map(|carried| told(&carried.tally.status()));
                status.ok_or(Errno::ENODATA)?.into_bytes()
            }
            LOST_NAME if ino == ROOT_INO => {
                let (files, full) = self.lost_now();
                format!("{files}{}", if full { NO_ROOM } else { "" }).into_bytes()
            }
            _ => {
                let value = self.fs.get_xattr(ino, name)?;
                value.ok_or_else(|| known(name).err().unwrap_or(Errno::ENODATA))?
            }
        };
        Ok(xattr::sized(value, size)?)
    }

    pub(super) fn set_xattr(&self, ino: Ino, name: &[u8], value: &[u8], flags: i32) -> Served {
        known(name)?;
        let mode = xattr::mode(flags).ok_or(Errno::EINVAL)?;
        match self.fs.set_xattr(ino, name, value, mode) {
            Ok(()) => Ok(FileAnswer::Done),
            Err(Error::NotFound(_)) => Err(self.no_data(ino)),
            Err(Error::TooLarge(_)) => Err(Errno::E2BIG.into()),
            Err(Error::NameTooLong(_)) => Err(Errno::ERANGE.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// As on other file systems, only root sees attributes in `trusted.`.
    pub(super) fn list_xattrs(&self, ino: Ino, size: u32, caller: Caller) -> Served {
        let mut names = self.fs.list_xattrs(ino)?;
        names.retain(|name| caller.uid == 0 || !name.starts_with(TRUSTED));
        Ok(xattr::sized(xattr::names(names), size)?)
    }

    pub(super) fn remove_xattr(&self, ino: Ino, name: &[u8]) -> Served {
        match self.fs.remove_xattr(ino, name) {
            Ok(()) => Ok(FileAnswer::Done),
            Err(Error::NotFound(_)) => {
                known(name)?;
                Err(self.no_data(ino))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The error for a missing file or a missing attribute.
    fn no_data(&self, ino: Ino) -> Fail {
        match self.fs.attr(ino) {
            Ok(_) => Errno::ENODATA.into(),
            Err(error) => error.into(),
        }
    }
}

const TRUSTED: &[u8] = b"trusted.";
/// The namespaces of attributes that have no meaning to the file system. An attribute in `system.`
/// would be kept without effect, access control lists above all.
const NAMESPACES: [&[u8]; 3] = [b"user.", TRUSTED, b"security."];

/// Checks the name of a new attribute. Names that an older version stored can still be read and
/// removed.
fn known(name: &[u8]) -> Result<(), Errno> {
    match NAMESPACES.iter().find_map(|space| name.strip_prefix(*space)) {
        Some([]) => Err(Errno::EINVAL),
        Some(_) => Ok(()),
        None => Err(Errno::EOPNOTSUPP),
    }
}
