//! Names: found, made and removed.

use crate::attempt::Attempted;
use crate::bucket::{self, Dirent, check_name};
use crate::client::PrivateFs;
use crate::directory::{ChangedBucket, check_empty};
use crate::error::{Error, Result};
use crate::inode::{DataForm, Inode};
use crate::layout;
use crate::node::NodeAttr;
use crate::orphans::remove_name;
use crate::transactions::{Action, Ask, Compare, Owner, Session};
use crate::types::{FileKind, LINK_BYTES, NewNode};

/// What to make besides the inode.
struct Making<'a> {
    kind: FileKind,
    rdev: u32,
    target: &'a [u8],
    /// The session that has it open from the begin.
    open: Option<Session>,
}

const SET_GROUP_ID: u32 = 0o2000;

impl PrivateFs {
    /// What a name stands for.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `NameTooLong`; `Stale` if the directory was removed.
    pub fn lookup(&self, parent: Owner, name: &[u8]) -> Result<NodeAttr> {
        check_name(name)?;
        let attr = self.look(|attempt| {
            let (_, bucket) = find(attempt, parent, name)?;
            let entry = bucket.find(name).ok_or(Error::NotFound)?;
            let inode = attempt.find_inode(entry.id)?;
            Ok(inode.ok_or(Error::Conflict)?.attr())
        })?;
        Ok(self.with_waiting(attr))
    }

    /// Makes a file and opens it. Each call needs a [`Self::close`].
    ///
    /// # Errors
    /// `Exists`, `Full`; as [`Self::lookup`].
    pub fn create(&self, parent: Owner, name: &[u8], node: NewNode) -> Result<NodeAttr> {
        let session = self.session();
        let making = Making { kind: FileKind::File, rdev: 0, target: &[], open: Some(session) };
        let attr = self.make(parent, name, node, &making)?;
        self.opened_new(attr.id, session);
        Ok(attr)
    }

    /// Makes a file, pipe, socket or device.
    ///
    /// # Errors
    /// As [`Self::create`]; `Invalid` for a kind that needs more.
    pub fn mknod(
        &self,
        parent: Owner,
        name: &[u8],
        kind: FileKind,
        rdev: u32,
        node: NewNode,
    ) -> Result<NodeAttr> {
        match kind {
            FileKind::Directory | FileKind::Symlink => Err(Error::Invalid("this kind of node")),
            _ => self.make(parent, name, node, &Making { kind, rdev, target: &[], open: None }),
        }
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// As [`Self::create`]; `TooManyLinks`.
    pub fn mkdir(&self, parent: Owner, name: &[u8], node: NewNode) -> Result<NodeAttr> {
        let making = Making { kind: FileKind::Directory, rdev: 0, target: &[], open: None };
        self.make(parent, name, node, &making)
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// As [`Self::create`]; `NameTooLong` for the target.
    pub fn symlink(
        &self,
        parent: Owner,
        name: &[u8],
        target: &[u8],
        node: NewNode,
    ) -> Result<NodeAttr> {
        if target.len() > LINK_BYTES.min(self.block_bytes) {
            return Err(Error::NameTooLong);
        }
        let making = Making { kind: FileKind::Symlink, rdev: 0, target, open: None };
        self.make(parent, name, node, &making)
    }

    fn make(&self, parent: Owner, name: &[u8], node: NewNode, making: &Making) -> Result<NodeAttr> {
        check_name(name)?;
        let mut inode = self.new_inode(making.kind, node);
        (inode.parent, inode.rdev) = (parent, making.rdev);
        inode.size = making.target.len() as u64;
        inode.nlink = if making.kind == FileKind::Directory { 2 } else { 1 };
        inode.holders.extend(making.open);
        if inode.fits_inline(inode.size, self.block_bytes) {
            inode.inline = making.target.to_vec();
        } else {
            inode.form = DataForm::Blocks;
        }
        self.change(|attempt| {
            let (mut directory, mut bucket) = find(attempt, parent, name)?;
            if bucket.find(name).is_some() {
                return Err(Error::Exists);
            }
            if directory.mode & SET_GROUP_ID != 0 {
                inode.gid = directory.gid;
                let inherited = if inode.kind == FileKind::Directory { SET_GROUP_ID } else { 0 };
                inode.mode |= inherited;
            }
            let entry = Dirent { name: name.to_vec(), id: inode.id, kind: inode.kind };
            bucket.insert(attempt, entry)?;
            bucket.write(attempt);
            let old = directory.nlink;
            if inode.kind == FileKind::Directory {
                directory.link()?;
            }
            note_in(attempt, directory, old);
            let action = Action::Write(inode.encode(self.block_bytes));
            attempt.ask(Ask::change(layout::inode(inode.id), action, Compare::Absent));
            if inode.form == DataForm::Blocks {
                let action = Action::Write(making.target.to_vec());
                attempt.ask(Ask::change(layout::data(inode.id, 0), action, Compare::Absent));
            }
            Ok(inode.attr())
        })
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `Invalid` for anything else; as [`Self::attr`].
    pub fn read_link(&self, id: Owner) -> Result<Vec<u8>> {
        self.look(|attempt| {
            let inode = attempt.inode(id)?;
            let len = usize::try_from(inode.size).unwrap_or(usize::MAX);
            match (inode.kind, inode.form) {
                (FileKind::Symlink, DataForm::Inline) => Ok(inode.inline),
                (FileKind::Symlink, DataForm::Blocks) => {
                    let block = attempt.read(layout::data(id, 0))?.ok_or(Error::Conflict)?;
                    Ok(block.get(..len).ok_or(Error::Damaged("a link's length"))?.to_vec())
                }
                _ => Err(Error::Invalid("no symbolic link")),
            }
        })
    }

    /// Gives a file one name more.
    ///
    /// # Errors
    /// `Exists`, `IsADirectory`, `TooManyLinks`, `NotFound` if it has lost its last name.
    pub fn link(&self, id: Owner, parent: Owner, name: &[u8]) -> Result<NodeAttr> {
        check_name(name)?;
        let attr = self.change(|attempt| {
            let mut inode = attempt.inode(id)?;
            if inode.kind == FileKind::Directory {
                return Err(Error::IsADirectory);
            }
            if inode.nlink == 0 {
                return Err(Error::NotFound);
            }
            let (directory, mut bucket) = find(attempt, parent, name)?;
            if bucket.find(name).is_some() {
                return Err(Error::Exists);
            }
            bucket.insert(attempt, Dirent { name: name.to_vec(), id, kind: inode.kind })?;
            bucket.write(attempt);
            let old = directory.nlink;
            note_in(attempt, directory, old);
            let stamp = inode.stamp;
            inode.link()?;
            inode.changed(self.random(), self.now());
            attempt.ask(inode.replace(stamp, self.block_bytes));
            Ok(inode.attr())
        })?;
        Ok(self.with_waiting(attr))
    }

    /// Removes a name of anything but a directory.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`; `Full` if too many such files are open.
    pub fn unlink(&self, parent: Owner, name: &[u8]) -> Result<()> {
        check_name(name)?;
        self.change(|attempt| {
            let (directory, mut bucket) = find(attempt, parent, name)?;
            let entry = bucket.find(name).ok_or(Error::NotFound)?.clone();
            if entry.kind == FileKind::Directory {
                return Err(Error::IsADirectory);
            }
            bucket.remove(name);
            bucket.write(attempt);
            let old = directory.nlink;
            note_in(attempt, directory, old);
            let inode = attempt.find_inode(entry.id)?.ok_or(Error::Conflict)?;
            remove_name(attempt, inode)
        })
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `NotEmpty`.
    pub fn rmdir(&self, parent: Owner, name: &[u8]) -> Result<()> {
        check_name(name)?;
        self.change(|attempt| {
            let (mut directory, mut bucket) = find(attempt, parent, name)?;
            let entry = bucket.find(name).ok_or(Error::NotFound)?.clone();
            if entry.kind != FileKind::Directory {
                return Err(Error::NotADirectory);
            }
            bucket.remove(name);
            bucket.write(attempt);
            let old = directory.nlink;
            directory.nlink = directory.nlink.saturating_sub(1);
            note_in(attempt, directory, old);
            attempt.ask_afresh();
            let inode = attempt.find_inode(entry.id)?.ok_or(Error::Conflict)?;
            check_empty(attempt, &inode)?;
            attempt.ask(inode.forget());
            Ok(())
        })
    }
}

/// A directory and the bucket of a name.
pub fn find(
    attempt: &mut Attempted<'_>,
    parent: Owner,
    name: &[u8],
) -> Result<(Inode, ChangedBucket)> {
    let directory = attempt.directory(parent)?;
    let bucket = ChangedBucket::read(attempt, &directory, bucket::hash(parent, name))?;
    Ok((directory, bucket))
}

/// Asks for a directory's new times, and its links if they are not the `old` ones.
pub fn note_in(attempt: &mut Attempted<'_>, mut directory: Inode, old: u32) {
    directory.modified(attempt.fs.random(), attempt.fs.now());
    let ask = match directory.nlink == old {
        true => directory.touch_directory(),
        false => directory.relink_directory(old),
    };
    attempt.ask(ask);
}
