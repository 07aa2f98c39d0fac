//! Requests about the data of files.

use super::errno::Fail;
use super::request::{Answer, Caller};
use super::server::{Served, Server};
use fuser::Errno;
use oblivio_volume::Error;
use oblivio_volume::fs::{Ino, SeekWhence, SetAttr};

const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;
const ZERO_RANGE: i32 = 16;
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

impl Server {
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
        Ok(Answer::Written(u32::try_from(data.len()).unwrap_or(u32::MAX)))
    }

    /// In every mode the kernel leaves the set-ID bits to us.
    pub(super) fn allocate(
        &mut self,
        (ino, fh): (Ino, u64),
        (offset, len): (u64, u64),
        mode: i32,
        caller: Caller,
    ) -> Served {
        let handle = self.handle(fh)?;
        let keep_size = mode & KEEP_SIZE != 0;
        let kind = mode & !KEEP_SIZE;
        let known = match kind {
            0 | ZERO_RANGE => true,
            PUNCH_HOLE => keep_size,
            _ => false,
        };
        if !known {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if !caller.keeps_set_ids() {
            self.drop_set_ids(ino, caller)?;
        }
        match kind {
            PUNCH_HOLE => self.fs.punch(handle, offset, len)?,
            ZERO_RANGE => self.fs.zero_range(handle, offset, len, keep_size)?,
            _ => self.fs.allocate(handle, offset, len, keep_size)?,
        }
        Ok(Answer::Done)
    }

    pub(super) fn seek(&self, fh: u64, offset: i64, whence: i32) -> Served {
        let whence = match whence {
            SEEK_DATA => SeekWhence::Data,
            SEEK_HOLE => SeekWhence::Hole,
            _ => return Err(Errno::EINVAL.into()),
        };
        let offset = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
        let found = self.fs.seek(self.handle(fh)?, offset, whence)?;
        found.map(Answer::Offset).ok_or(Fail::Errno(Errno::ENXIO))
    }
}

/// The attribute by which `oblivio umount` learns which process serves a mount.
pub const SERVER_NAME: &[u8] = b"oblivio.pid";
/// The attribute by which it learns how many files lost data.
pub const LOST_NAME: &[u8] = b"oblivio.lost";
/// Suffix of that value when the loss was for want of room.
pub const NO_ROOM: &str = " full";

const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

impl Server {
    pub(super) fn get_xattr(&self, ino: Ino, name: &[u8], size: u32) -> Served {
        let value = match name {
            SERVER_NAME if ino == oblivio_volume::fs::ROOT_INO => {
                std::process::id().to_string().into_bytes()
            }
            LOST_NAME if ino == oblivio_volume::fs::ROOT_INO => {
                let (files, full) = self.lost_now();
                format!("{files}{}", if full { NO_ROOM } else { "" }).into_bytes()
            }
            _ => {
                let value = self.fs.get_xattr(ino, name)?;
                value.ok_or_else(|| known(name).err().unwrap_or(Errno::ENODATA))?
            }
        };
        sized(value, size)
    }

    pub(super) fn set_xattr(&self, ino: Ino, name: &[u8], value: &[u8], flags: i32) -> Served {
        use oblivio_volume::fs::XattrMode;
        known(name)?;
        let mode = match flags & (XATTR_CREATE | XATTR_REPLACE) {
            0 => XattrMode::Set,
            XATTR_CREATE => XattrMode::Create,
            XATTR_REPLACE => XattrMode::Replace,
            _ => return Err(Errno::EINVAL.into()),
        };
        match self.fs.set_xattr(ino, name, value, mode) {
            Ok(()) => Ok(Answer::Done),
            Err(Error::NotFound(_)) => Err(self.no_data(ino)),
            Err(Error::TooLarge(_)) => Err(Errno::E2BIG.into()),
            Err(Error::NameTooLong(_)) => Err(Errno::ERANGE.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// As on other file systems, only root sees attributes in `trusted.`.
    pub(super) fn list_xattrs(&self, ino: Ino, size: u32, caller: Caller) -> Served {
        let mut list = Vec::new();
        let mut names = self.fs.list_xattrs(ino)?;
        names.retain(|name| caller.uid == 0 || !name.starts_with(TRUSTED));
        for name in names {
            list.extend_from_slice(&name);
            list.push(0);
        }
        sized(list, size)
    }

    pub(super) fn remove_xattr(&self, ino: Ino, name: &[u8]) -> Served {
        match self.fs.remove_xattr(ino, name) {
            Ok(()) => Ok(Answer::Done),
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

/// With no room the caller asks only for the length.
fn sized(value: Vec<u8>, room: u32) -> Served {
    let len = u32::try_from(value.len()).map_err(|_| Errno::E2BIG)?;
    match room {
        0 => Ok(Answer::Size(len)),
        _ if len > room => Err(Errno::ERANGE.into()),
        _ => Ok(Answer::Data(value)),
    }
}
