//! Requests about names and attributes.

use super::server::MountServer;
use crate::fuse::convert::now;
use crate::fuse::{Caller, Fail, FileAnswer, NamePlace, O_EXCL, O_TRUNC, Served};
use fuser::{Errno, FopenFlags};
use oblivio_volume::Error;
use oblivio_volume::fs::{Attr, FileKind, Ino, NAME_BYTES, NewNode, RenameMode, SetAttr};

pub const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o0010;

impl MountServer {
    pub(super) fn lookup(&self, at: &NamePlace) -> Served {
        if at.name.len() > NAME_BYTES {
            return Err(Errno::ENAMETOOLONG.into());
        }
        let found = match at.name.as_slice() {
            // This is how the kernel looks up an inode that it forgot but a handle still names.
            b"." => self.fs.attr(at.parent),
            b".." => self.fs.parent(at.parent).and_then(|parent| self.fs.attr(parent)),
            name => self.fs.lookup(at.parent, name),
        };
        match found {
            Ok(attr) => Ok(FileAnswer::Entry(Some(attr))),
            Err(Error::NotFound(_)) => Ok(FileAnswer::Entry(None)),
            Err(error) => Err(error.into()),
        }
    }

    /// Owner, group and mode of a new node. A directory with the set-group-ID bit gives its group,
    /// and new directories inherit the bit.
    fn new_node(&self, parent: Ino, mode: u32, caller: Caller, directory: bool) -> NewNode {
        let mut node =
            NewNode { mode: mode & 0o7777, uid: caller.uid, gid: caller.gid, mtime: now() };
        if let Ok(parent) = self.fs.attr(parent)
            && parent.mode & SET_GID != 0
        {
            node.gid = parent.gid;
            if directory {
                node.mode |= SET_GID;
            }
        }
        node
    }

    pub(super) fn mknod(
        &self,
        at: &NamePlace,
        (kind, rdev): (FileKind, u32),
        mode: u32,
        caller: Caller,
    ) -> Served {
        let node = self.new_node(at.parent, mode, caller, false);
        let attr = self.fs.mknod(at.parent, &at.name, kind, rdev, node)?;
        Ok(FileAnswer::Entry(Some(attr)))
    }

    pub(super) fn mkdir(&self, at: &NamePlace, mode: u32, caller: Caller) -> Served {
        let node = self.new_node(at.parent, mode, caller, true);
        Ok(FileAnswer::Entry(Some(self.fs.mkdir(at.parent, &at.name, node)?)))
    }

    pub(super) fn symlink(&self, at: &NamePlace, target: &[u8], caller: Caller) -> Served {
        let node = self.new_node(at.parent, 0o777, caller, false);
        Ok(FileAnswer::Entry(Some(self.fs.symlink(at.parent, &at.name, target, node)?)))
    }

    pub(super) fn link(&self, ino: Ino, at: &NamePlace) -> Served {
        match self.fs.link(ino, at.parent, &at.name) {
            Err(Error::IsADirectory(_)) => Err(Errno::EPERM.into()),
            linked => Ok(FileAnswer::Entry(Some(linked?))),
        }
    }

    pub(super) fn rename(
        &self,
        from: &NamePlace,
        to: &NamePlace,
        mode: RenameMode,
        whiteout: Option<Caller>,
    ) -> Served {
        match whiteout {
            None => self.fs.rename(from.parent, &from.name, to.parent, &to.name, mode)?,
            Some(caller) => {
                let node = self.new_node(from.parent, 0, caller, false);
                let (from, to) = ((from.parent, &from.name[..]), (to.parent, &to.name[..]));
                self.fs.rename_with_whiteout(from, to, mode, node)?;
            }
        }
        Ok(FileAnswer::Done)
    }

    pub(super) fn create(
        &mut self,
        at: &NamePlace,
        mode: u32,
        flags: i32,
        caller: Caller,
    ) -> Served {
        let node = self.new_node(at.parent, mode, caller, false);
        let (attr, handle) = match self.fs.create(at.parent, &at.name, node) {
            // The kernel did not know of this file; it exists, so it is opened.
            Err(Error::Exists(_)) if flags & O_EXCL == 0 => {
                let attr = self.fs.lookup(at.parent, &at.name)?;
                let handle = self.fs.open_file(attr.ino)?;
                (attr, handle)
            }
            created => created?,
        };
        let fh = self.new_fh();
        self.files.insert(fh, handle);
        Ok(FileAnswer::Created(attr, fh, FopenFlags::FOPEN_KEEP_CACHE))
    }

    pub(super) fn open(&mut self, ino: Ino, flags: i32, caller: Caller) -> Served {
        let handle = self.fs.open_file(ino)?;
        if flags & O_TRUNC != 0 {
            let change = SetAttr { size: Some(0), ..SetAttr::default() };
            let armed =
                if caller.keeps_set_ids() { Ok(()) } else { self.drop_set_ids(ino, caller) };
            if let Err(fail) = armed.and_then(|()| self.set_attr(ino, change, caller).map(drop)) {
                self.fs.close(handle)?;
                return Err(fail);
            }
        }
        let fh = self.new_fh();
        self.files.insert(fh, handle);
        Ok(FileAnswer::Opened(fh, FopenFlags::FOPEN_KEEP_CACHE))
    }

    pub(super) fn set_attr(&self, ino: Ino, change: SetAttr, caller: Caller) -> Served {
        let mut set = SetAttr { mode: change.mode.map(|mode| mode & 0o7777), ..change };
        // A new owner, or a new size by anybody but root, clears the set-ID bits. The answer tells
        // the kernel.
        let owner = set.uid.is_some() || set.gid.is_some();
        if owner || (set.size.is_some() && !caller.keeps_set_ids()) {
            let now = self.fs.attr(ino)?;
            let foreign = !owner && now.gid != caller.gid;
            let without = without_set_ids(&now, set.mode.unwrap_or(now.mode), foreign);
            if without != now.mode {
                set.mode = Some(without);
            }
        }
        match self.fs.set_attr(ino, set) {
            Err(Error::NotFound(_)) if only_times(&change) => {
                Ok(FileAnswer::Attr(unlinked(ino, &change)))
            }
            changed => Ok(FileAnswer::Attr(changed?)),
        }
    }

    /// Clears the set-ID bits before an unprivileged caller changes the content. The answer carries
    /// no attributes, so the kernel has to drop its cached ones first.
    pub(super) fn drop_set_ids(&mut self, ino: Ino, caller: Caller) -> Result<(), Fail> {
        let attr = self.fs.attr(ino)?;
        let mode = without_set_ids(&attr, attr.mode, attr.gid != caller.gid);
        if mode != attr.mode {
            self.fs.set_attr(ino, SetAttr { mode: Some(mode), ..SetAttr::default() })?;
            self.outdated = Some(ino);
        }
        Ok(())
    }
}

/// Whether the kernel writes back the times of a file, which it keeps itself.
fn only_times(change: &SetAttr) -> bool {
    let &SetAttr { mode, uid, gid, size, ctime, .. } = change;
    ctime.is_some() && mode.or(uid).or(gid).is_none() && size.is_none()
}

/// The kernel writes back a file's times even after removing it. An error would needlessly fail the
/// next sync of the whole file system.
fn unlinked(ino: Ino, change: &SetAttr) -> Attr {
    let ctime = change.ctime.unwrap_or_default();
    let mtime = change.mtime.unwrap_or(ctime);
    Attr {
        ino,
        kind: FileKind::File,
        size: 0,
        blocks: 0,
        mode: 0o600,
        uid: 0,
        gid: 0,
        nlink: 0,
        rdev: 0,
        atime: mtime,
        mtime,
        ctime,
        crtime: ctime,
    }
}

/// The set-group-ID bit without group execution has another meaning. It stays unless a caller from
/// outside the group (as far as we can see) changes the content.
fn without_set_ids(attr: &Attr, mode: u32, foreign: bool) -> u32 {
    if attr.kind == FileKind::Directory {
        return mode;
    }
    let group = if foreign || mode & GROUP_EXECUTE != 0 { SET_GID } else { 0 };
    mode & !(SET_UID | group)
}
