//! Names and attributes, and how inodes are created and removed under them.

use super::data::too_large;
use super::inode::Inode;
use super::state::State;
use super::tables::{Dirent, ORPHANS};
use super::types::{
    Attr, DirEntry, FileKind, Handle, Ino, LINK_BYTES, MAX_FILE, MODE_BITS, NAME_BYTES, NewNode,
    ROOT_INO, SetAttr,
};
use crate::{Error, Result};

impl State {
    pub(super) fn attr(&self, ino: Ino) -> Result<Attr> {
        Ok(self.attr_of(ino, &self.meta.inode(ino)?))
    }

    pub(super) fn attr_of(&self, ino: Ino, inode: &Inode) -> Attr {
        let tail = match (self.tails.get(ino), inode.pack) {
            (Some(tail), _) => tail.len() as u64,
            (None, Some(_)) => inode.size % self.block_bytes as u64,
            (None, None) => 0,
        };
        Attr {
            ino,
            kind: inode.kind,
            size: inode.size,
            blocks: (inode.blocks * self.block_bytes as u64 + tail).div_ceil(512),
            mode: inode.mode,
            uid: inode.uid,
            gid: inode.gid,
            nlink: inode.nlink,
            rdev: inode.rdev,
            atime: inode.atime,
            mtime: inode.mtime,
            ctime: inode.ctime,
            crtime: inode.crtime,
        }
    }

    pub(super) fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr> {
        self.directory(parent)?;
        let dirent = self.dirent(parent, name)?;
        self.attr(dirent.ino)
    }

    pub(super) fn resolve(&self, path: &str) -> Result<Attr> {
        let Some(relative) = path.strip_prefix('/') else {
            return Err(Error::Invalid(format!("{path}: a path in the volume begins with /")));
        };
        if relative.split('/').any(|name| name == "..") {
            return Err(Error::Invalid(format!("{path}: .. is not allowed")));
        }
        let mut ino = ROOT_INO;
        for name in relative.split('/').filter(|name| !matches!(*name, "" | ".")) {
            let named = |error| match error {
                Error::NotFound(_) => Error::NotFound(path.to_string()),
                Error::NotADirectory(_) => Error::NotADirectory(path.to_string()),
                other => other,
            };
            self.directory(ino).map_err(named)?;
            ino = self.dirent(ino, name.as_bytes()).map_err(named)?.ino;
        }
        self.attr(ino)
    }

    /// An inode that must be a directory.
    pub(super) fn directory(&self, ino: Ino) -> Result<Inode> {
        let inode = self.meta.inode(ino)?;
        match inode.kind {
            FileKind::Directory => Ok(inode),
            _ => Err(Error::NotADirectory(format!("inode {ino}"))),
        }
    }

    /// The directory that a directory is in.
    pub(super) fn parent(&self, ino: Ino) -> Result<Ino> {
        Ok(self.directory(ino)?.parent)
    }

    pub(super) fn dirent(&self, parent: Ino, name: &[u8]) -> Result<Dirent> {
        check_length(name)?;
        let dirent = self.meta.dirent(parent, name)?;
        dirent.ok_or_else(|| Error::NotFound(show(name)))
    }

    pub(super) fn set_attr(&mut self, ino: Ino, set: SetAttr) -> Result<Attr> {
        let kind = self.meta.inode(ino)?.kind;
        match (set.size, kind) {
            (Some(_), FileKind::Directory) => {
                return Err(Error::IsADirectory(format!("inode {ino}")));
            }
            (Some(size), FileKind::File) if size > MAX_FILE => return Err(too_large()),
            // An extension may turn a shared tail into a block; everything else only frees.
            (Some(_), FileKind::File) => self.make_room_to_resize(ino, set.size)?,
            (Some(_), _) => {
                return Err(Error::Invalid(format!("inode {ino} is no file with a size")));
            }
            (None, _) => self.make_change()?,
        }
        let mut inode = self.meta.inode(ino)?;
        match set.size {
            Some(_) => inode.modified(self.now()),
            None => inode.changed(self.now()),
        }
        inode.mode = set.mode.map_or(inode.mode, |mode| mode & MODE_BITS);
        inode.uid = set.uid.unwrap_or(inode.uid);
        inode.gid = set.gid.unwrap_or(inode.gid);
        inode.atime = set.atime.unwrap_or(inode.atime);
        inode.mtime = set.mtime.unwrap_or(inode.mtime);
        inode.ctime = set.ctime.unwrap_or(inode.ctime);
        if let Some(size) = set.size {
            self.resize(ino, &mut inode, size)?;
            self.expect_edges();
        }
        self.meta.put_inode(ino, &inode)?;
        self.flush_surplus()?;
        Ok(self.attr_of(ino, &inode))
    }

    fn make_room_to_resize(&mut self, ino: Ino, size: Option<u64>) -> Result<()> {
        match size > Some(self.meta.inode(ino)?.size) {
            true => self.make_room(1),
            false => self.make_way(),
        }
    }

    pub(super) fn create(
        &mut self,
        parent: Ino,
        name: &[u8],
        node: NewNode,
    ) -> Result<(Attr, Handle)> {
        let attr = self.mknod(parent, name, FileKind::File, 0, node)?;
        let handle = self.handles.open(attr.ino);
        Ok((attr, handle))
    }

    pub(super) fn mkdir(&mut self, parent: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        let inode = Inode::new(FileKind::Directory, node, self.now().unwrap_or(node.mtime));
        self.add(parent, name, Inode { parent, ..inode })
    }

    pub(super) fn mknod(
        &mut self,
        parent: Ino,
        name: &[u8],
        kind: FileKind,
        rdev: u32,
        node: NewNode,
    ) -> Result<Attr> {
        let inode = Inode::new(kind, node, self.now().unwrap_or(node.mtime));
        match kind {
            FileKind::CharDevice | FileKind::BlockDevice => {
                self.add(parent, name, Inode { rdev, ..inode })
            }
            FileKind::File | FileKind::Fifo | FileKind::Socket => self.add(parent, name, inode),
            FileKind::Directory | FileKind::Symlink => {
                Err(Error::Invalid("a directory or link is not made as a node".into()))
            }
        }
    }

    pub(super) fn symlink(
        &mut self,
        parent: Ino,
        name: &[u8],
        target: &[u8],
        node: NewNode,
    ) -> Result<Attr> {
        if target.len() > LINK_BYTES {
            return Err(Error::NameTooLong(show(target)));
        }
        if target.is_empty() || target.contains(&0) {
            return Err(Error::Invalid("a link's target has bytes and no NUL".into()));
        }
        let inode = Inode::new(FileKind::Symlink, node, self.now().unwrap_or(node.mtime));
        let (size, target) = (target.len() as u64, target.to_vec());
        self.expect_long(target.len());
        self.add(parent, name, Inode { size, target, ..inode })
    }

    /// Creates an inode and its name.
    fn add(&mut self, parent: Ino, name: &[u8], inode: Inode) -> Result<Attr> {
        check_name(name)?;
        let above = self.live_directory(parent)?;
        if self.meta.dirent(parent, name)?.is_some() {
            return Err(Error::Exists(show(name)));
        }
        let directory = inode.kind == FileKind::Directory;
        if directory && above.nlink == u32::MAX {
            return Err(Error::TooManyLinks(format!("inode {parent}")));
        }
        self.make_room(0)?;
        let ino = self.new_inode((parent, name), &inode)?;
        self.changed_directory(parent, i32::from(directory))?;
        Ok(self.attr_of(ino, &inode))
    }

    /// Stores a new inode under a free name.
    pub(super) fn new_inode(&mut self, (parent, name): (Ino, &[u8]), inode: &Inode) -> Result<Ino> {
        let ino = self.counters.next_ino;
        self.counters.next_ino += 1;
        match inode.kind {
            FileKind::Directory => self.counters.directories += 1,
            _ => self.counters.files += 1,
        }
        self.meta.put_inode(ino, inode)?;
        self.meta.put_dirent(parent, name, Dirent { ino, kind: inode.kind })?;
        Ok(ino)
    }

    /// A directory that still has a name, and so may get entries.
    pub(super) fn live_directory(&self, ino: Ino) -> Result<Inode> {
        let inode = self.directory(ino)?;
        match inode.nlink {
            0 => Err(Error::NotFound(format!("inode {ino}"))),
            _ => Ok(inode),
        }
    }

    /// Notes that a directory got or lost names, `subdirectories` of them of directories.
    pub(super) fn changed_directory(&mut self, ino: Ino, subdirectories: i32) -> Result<()> {
        let now = self.now();
        if now.is_none() && subdirectories == 0 {
            return Ok(());
        }
        let mut inode = self.meta.inode(ino)?;
        inode.nlink = inode.nlink.saturating_add_signed(subdirectories);
        inode.modified(now);
        self.meta.put_inode(ino, &inode)
    }

    pub(super) fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        let inode = self.meta.inode(ino)?;
        match inode.kind {
            FileKind::Symlink => Ok(inode.target),
            _ => Err(Error::Invalid(format!("inode {ino} is no symbolic link"))),
        }
    }

    pub(super) fn link(&mut self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr> {
        check_name(name)?;
        self.live_directory(parent)?;
        let inode = self.meta.inode(ino)?;
        if inode.kind == FileKind::Directory {
            return Err(Error::IsADirectory(format!("inode {ino}")));
        }
        if inode.nlink == 0 {
            return Err(Error::NotFound(format!("inode {ino}")));
        }
        if self.meta.dirent(parent, name)?.is_some() {
            return Err(Error::Exists(show(name)));
        }
        let too_many = || Error::TooManyLinks(format!("inode {ino}"));
        let nlink = inode.nlink.checked_add(1).ok_or_else(too_many)?;
        self.make_room(0)?;
        // Making room may have placed the file's tail, so read the inode again.
        let mut inode = self.meta.inode(ino)?;
        inode.nlink = nlink;
        inode.changed(self.now());
        let kind = inode.kind;
        self.meta.put_inode(ino, &inode)?;
        self.meta.put_dirent(parent, name, Dirent { ino, kind })?;
        self.changed_directory(parent, 0)?;
        Ok(self.attr_of(ino, &inode))
    }

    pub(super) fn unlink(&mut self, parent: Ino, name: &[u8]) -> Result<()> {
        self.directory(parent)?;
        let dirent = self.dirent(parent, name)?;
        if dirent.kind == FileKind::Directory {
            return Err(Error::IsADirectory(show(name)));
        }
        self.make_way()?;
        self.meta.remove_dirent(parent, name)?;
        self.drop_link(dirent.ino)?;
        self.changed_directory(parent, 0)
    }

    /// Removes one name of a file. Without names, it goes once nobody refers to it.
    pub(super) fn drop_link(&mut self, ino: Ino) -> Result<()> {
        let mut inode = self.meta.inode(ino)?;
        inode.nlink = inode.nlink.saturating_sub(1);
        inode.changed(self.now());
        if inode.nlink == 0 && !self.handles.is_wanted(ino) {
            return self.remove_inode(ino);
        }
        if inode.nlink == 0 {
            self.meta.open(ORPHANS)?.insert(ino, ())?;
        }
        self.meta.put_inode(ino, &inode)
    }

    pub(super) fn rmdir(&mut self, parent: Ino, name: &[u8]) -> Result<()> {
        self.directory(parent)?;
        let dirent = self.dirent(parent, name)?;
        if dirent.kind != FileKind::Directory {
            return Err(Error::NotADirectory(show(name)));
        }
        self.require_empty(dirent.ino, name)?;
        self.make_way()?;
        self.meta.remove_dirent(parent, name)?;
        self.drop_directory(dirent.ino)?;
        self.changed_directory(parent, -1)
    }

    /// Notes that an empty directory lost its name; it goes once nobody refers to it.
    pub(super) fn drop_directory(&mut self, ino: Ino) -> Result<()> {
        if !self.handles.is_wanted(ino) {
            return self.remove_inode(ino);
        }
        let mut inode = self.meta.inode(ino)?;
        inode.nlink = 0;
        inode.changed(self.now());
        self.meta.open(ORPHANS)?.insert(ino, ())?;
        self.meta.put_inode(ino, &inode)
    }

    pub(super) fn require_empty(&self, ino: Ino, name: &[u8]) -> Result<()> {
        match self.meta.dirents(ino, None, 1)?.is_empty() {
            true => Ok(()),
            false => Err(Error::NotEmpty(show(name))),
        }
    }

    pub(super) fn read_dir(
        &self,
        ino: Ino,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<DirEntry>> {
        self.directory(ino)?;
        let entries = self.meta.dirents(ino, after, limit)?;
        Ok(entries
            .into_iter()
            .map(|(name, dirent)| DirEntry { name, ino: dirent.ino, kind: dirent.kind })
            .collect())
    }

    pub(super) fn open_directory(&mut self, ino: Ino) -> Result<Handle> {
        self.directory(ino)?;
        Ok(self.handles.open_directory(ino))
    }

    pub(super) fn open_file(&mut self, ino: Ino) -> Result<Handle> {
        match self.meta.inode(ino)?.kind {
            FileKind::File => Ok(self.handles.open(ino)),
            FileKind::Directory => Err(Error::IsADirectory(format!("inode {ino}"))),
            _ => Err(Error::Invalid(format!("inode {ino} is a link or special file"))),
        }
    }
}

/// A name as in messages.
pub(super) fn show(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

pub(super) fn check_name(name: &[u8]) -> Result<()> {
    check_length(name)?;
    let bad = name.is_empty()
        || name.contains(&b'/')
        || name.contains(&0)
        || matches!(name, b"." | b"..");
    match bad {
        true => Err(Error::Invalid(format!(
            "{:?}: a name has bytes, no / and no NUL, and is not . or ..",
            show(name)
        ))),
        false => Ok(()),
    }
}

fn check_length(name: &[u8]) -> Result<()> {
    match name.len() > NAME_BYTES {
        true => Err(Error::NameTooLong(show(name))),
        false => Ok(()),
    }
}
