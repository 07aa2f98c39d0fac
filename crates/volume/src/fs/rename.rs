//! Moving names, by the rules of POSIX `rename` and Linux `renameat2`.

use super::directory::{check_name, show};
use super::inode::Inode;
use super::state::State;
use super::tables::Dirent;
use super::types::{FileKind, Ino, NewNode, ROOT_INO, RenameMode};
use crate::{Error, Result};

/// A directory and a name in it.
type Place<'a> = (Ino, &'a [u8]);

impl State {
    /// With a `whiteout`, a character device of number 0 takes the old name in the same step. Union
    /// file systems mark a removal below that way.
    pub(super) fn rename(
        &mut self,
        from: Place<'_>,
        to: Place<'_>,
        mode: RenameMode,
        whiteout: Option<NewNode>,
    ) -> Result<()> {
        check_name(from.1)?;
        check_name(to.1)?;
        self.directory(from.0)?;
        self.live_directory(to.0)?;
        let source = self.dirent(from.0, from.1)?;
        let target = self.meta.dirent(to.0, to.1)?;
        if source.kind == FileKind::Directory {
            self.require_outside(to.0, source.ino)?;
        }
        match (mode, target) {
            (RenameMode::NoReplace, Some(_)) => Err(Error::Exists(show(to.1))),
            (RenameMode::Exchange, None) => Err(Error::NotFound(show(to.1))),
            (RenameMode::Exchange, _) if whiteout.is_some() => {
                Err(Error::Invalid("names that are swapped leave none behind".into()))
            }
            (_, Some(target)) if target.ino == source.ino => Ok(()),
            (RenameMode::Exchange, Some(target)) => self.exchange(from, source, to, target),
            (_, Some(target)) => {
                self.require_replaceable(source, target, to.1)?;
                match whiteout {
                    Some(_) => self.make_room(0)?,
                    None => self.make_way()?,
                }
                self.remove_target(to, target)?;
                self.move_name(from, to, source, whiteout)
            }
            (_, None) => {
                self.make_room(0)?;
                self.move_name(from, to, source, whiteout)
            }
        }
    }

    fn require_replaceable(&self, source: Dirent, target: Dirent, name: &[u8]) -> Result<()> {
        match (source.kind, target.kind) {
            (FileKind::Directory, FileKind::Directory) => self.require_empty(target.ino, name),
            (FileKind::Directory, _) => Err(Error::NotADirectory(show(name))),
            (_, FileKind::Directory) => Err(Error::IsADirectory(show(name))),
            _ => Ok(()),
        }
    }

    fn remove_target(&mut self, to: Place<'_>, target: Dirent) -> Result<()> {
        self.meta.remove_dirent(to.0, to.1)?;
        match target.kind {
            FileKind::Directory => {
                self.drop_directory(target.ino)?;
                self.changed_directory(to.0, -1)
            }
            _ => self.drop_link(target.ino),
        }
    }

    fn move_name(
        &mut self,
        from: Place<'_>,
        to: Place<'_>,
        source: Dirent,
        whiteout: Option<NewNode>,
    ) -> Result<()> {
        self.meta.remove_dirent(from.0, from.1)?;
        if let Some(node) = whiteout {
            let now = self.now().unwrap_or(node.mtime);
            self.new_inode(from, &Inode::new(FileKind::CharDevice, node, now))?;
        }
        self.meta.put_dirent(to.0, to.1, source)?;
        self.moved(source, to.0)?;
        let directories = i32::from(source.kind == FileKind::Directory && from.0 != to.0);
        self.changed_directory(from.0, -directories)?;
        self.changed_directory(to.0, directories)
    }

    fn exchange(
        &mut self,
        from: Place<'_>,
        source: Dirent,
        to: Place<'_>,
        target: Dirent,
    ) -> Result<()> {
        if target.kind == FileKind::Directory {
            self.require_outside(from.0, target.ino)?;
        }
        self.make_way()?;
        self.meta.put_dirent(to.0, to.1, source)?;
        self.meta.put_dirent(from.0, from.1, target)?;
        self.moved(source, to.0)?;
        self.moved(target, from.0)?;
        let is_directory = |dirent: Dirent| i32::from(dirent.kind == FileKind::Directory);
        let gained = match from.0 == to.0 {
            true => 0,
            false => is_directory(source) - is_directory(target),
        };
        self.changed_directory(from.0, -gained)?;
        self.changed_directory(to.0, gained)
    }

    /// Records that an inode's name is in `parent` now.
    fn moved(&mut self, dirent: Dirent, parent: Ino) -> Result<()> {
        let mut inode = self.meta.inode(dirent.ino)?;
        if dirent.kind == FileKind::Directory {
            inode.parent = parent;
        }
        inode.changed(self.now());
        self.meta.put_inode(dirent.ino, &inode)
    }

    /// Fails if `directory` is `moving` or somewhere below it.
    fn require_outside(&self, directory: Ino, moving: Ino) -> Result<()> {
        let mut at = directory;
        loop {
            if at == moving {
                return Err(Error::Invalid("a directory cannot be moved below itself".into()));
            }
            if at == ROOT_INO {
                return Ok(());
            }
            at = self.directory(at)?.parent;
        }
    }
}
